# SPDX-License-Identifier: Apache-2.0
"""Input functions over arrays and tables."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops.script_ops import py_func


_SHUFFLE = "shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for training); got %s"


def _rows(count: int, batch_size: int, num_epochs: Optional[int], shuffle: bool) -> Iterator[np.ndarray]:
    """The rows of each batch. Batches go on over the ends of epochs; the last may be smaller."""
    waiting = np.zeros([0], np.int64)
    epoch = 0
    while num_epochs is None or epoch < num_epochs:
        waiting = np.concatenate([waiting, np.random.permutation(count) if shuffle else np.arange(count)])
        epoch += 1
        while len(waiting) >= batch_size:
            yield waiting[:batch_size]
            waiting = waiting[batch_size:]
    if len(waiting):
        yield waiting


def _batches(arrays: List[np.ndarray], batch_size: int, num_epochs: Optional[int], shuffle: bool) -> List[Any]:
    """Tensors that are another batch of the arrays in each step."""
    rows, lock = _rows(len(arrays[0]), batch_size, num_epochs, shuffle), threading.Lock()

    def take() -> Any:
        with lock:
            chosen = next(rows, None)
        if chosen is None:
            raise StopIteration("The input has ended after %s epochs" % num_epochs)  # which ends data
        return [array[chosen] for array in arrays]

    types = [dtypes.string if a.dtype.kind in "OUS" else dtypes.as_dtype(a.dtype) for a in arrays]
    made = py_func(take, [], types, stateful=True)
    for tensor, array in zip(made, arrays):
        tensor.set_shape([None, *array.shape[1:]])
    return list(made)


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: Optional[int] = 1,
    shuffle: Optional[bool] = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function over an array, or a dict of arrays by the features' names, and labels."""
    del queue_capacity  # batches are made as they are asked for
    del num_threads  # batches are made as they are asked for
    if not isinstance(shuffle, bool):
        raise at_user_line(ValueError(_SHUFFLE % shuffle))
    if not isinstance(x, (dict, np.ndarray)):
        raise at_user_line(TypeError("x must be a dict or array; got %s" % type(x).__name__))
    features: Dict[Any, np.ndarray] = {k: np.asarray(v) for k, v in (x if isinstance(x, dict) else {None: x}).items()}
    if not features:
        raise at_user_line(ValueError("x cannot be an empty dict"))
    if isinstance(x, np.ndarray) and not x.size:
        raise at_user_line(ValueError("x cannot be an empty array"))
    if isinstance(y, dict):
        if not y:
            raise at_user_line(ValueError("y cannot be empty dict, use None instead."))
        both = sorted(set(features) & set(y))
        if both:
            raise at_user_line(ValueError("%d duplicate keys are found in both x and y: %s" % (len(both), both)))
    return _input_fn(features, y, batch_size, num_epochs, shuffle)


def _input_fn(features: Dict[Any, np.ndarray], y: Any, batch_size: int, num_epochs: Optional[int], shuffle: bool) -> Callable[[], Any]:
    """Over features by name, of which a single one may have none (None), and labels, an array or a dict."""
    labels = {k: np.asarray(v) for k, v in (y if isinstance(y, dict) else {None: y} if y is not None else {}).items()}
    lengths = {len(a) for a in [*features.values(), *labels.values()]}
    if len(lengths) != 1:
        raise at_user_line(
            ValueError(
                "Length of tensors in x and y is mismatched. All elements in x and y must have the same length: %s"
                % {str(k): a.shape for k, a in [*features.items(), *labels.items()]}
            )
        )

    def input_fn() -> Any:
        tensors = _batches([*features.values(), *labels.values()], batch_size, num_epochs, shuffle)
        made: Any = dict(zip(features, tensors))
        target: Any = dict(zip(labels, tensors[len(features) :]))
        made = made[None] if None in features else made
        return made if y is None else (made, target if isinstance(y, dict) else target[None])

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: Optional[int] = 1,
    shuffle: Optional[bool] = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """An input function over a DataFrame, with a Series or DataFrame of labels, which have the same index. A Series is called target_column, which may
    be no column of x."""
    del queue_capacity  # batches are made as they are asked for
    del num_threads  # batches are made as they are asked for
    if not isinstance(shuffle, bool):
        raise at_user_line(ValueError(_SHUFFLE % shuffle))
    if not isinstance(target_column, str):
        raise at_user_line(TypeError("target_column must be a string type"))
    if y is not None:
        if target_column in x:
            raise at_user_line(
                ValueError("Cannot use name %s for target column: DataFrame already has a column with that name: %s" % (target_column, x.columns))
            )
        if not np.array_equal(x.index, y.index):
            raise at_user_line(ValueError("Index for x and y are mismatched.\nIndex for x: %s\nIndex for y: %s\n" % (x.index, y.index)))
    features = {name: x[name].values for name in x.columns}
    labels = None if y is None else {name: y[name].values for name in y.columns} if hasattr(y, "columns") else y.values
    return _input_fn(features, labels, batch_size, num_epochs, shuffle)
