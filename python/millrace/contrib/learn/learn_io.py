# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn.io: input functions over arrays, tables and generators."""

from __future__ import annotations

import collections.abc
import importlib.util
import types
from typing import Any, Callable, Optional

from millrace.estimator.feeding_functions import enqueue_data
from millrace.estimator.inputs import numpy_input_fn, pandas_input_fn  # noqa: F401
from millrace.framework.errors import at_user_line

HAS_PANDAS = importlib.util.find_spec("pandas") is not None
HAS_DASK = importlib.util.find_spec("dask") is not None


def _target_keys(target_key: Any, keys: Any) -> Any:
    if target_key is None:
        return []
    named: Any = [target_key] if isinstance(target_key, str) else target_key
    if not isinstance(named, collections.abc.Iterable) or not all(isinstance(key, str) for key in named):
        raise at_user_line(TypeError("target_key must be str or Container of str; got %s" % type(target_key).__name__))
    for key in named:
        if key not in keys:
            raise at_user_line(KeyError("target_key not in yielded dict. Expected %s keys; got %s" % (keys, key)))
    return list(named)


def generator_input_fn(
    x: Callable[[], Any],
    target_key: Any = None,
    batch_size: int = 128,
    num_epochs: Optional[int] = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    pad_value: Any = None,
) -> Callable[[], Any]:
    """An input function over what a generator function yields: a dict of arrays, one example each time. target_key names the labels."""
    if not isinstance(x, types.FunctionType):
        raise at_user_line(TypeError("x must be generator function; got %s" % type(x).__name__))
    generator = x()
    if not isinstance(generator, types.GeneratorType):
        raise at_user_line(TypeError("x() must be generator; got %s" % type(generator).__name__))
    first = next(generator)
    if not isinstance(first, collections.abc.Mapping):
        raise at_user_line(TypeError("x() must yield dict; got %s" % type(first).__name__))
    keys = sorted(first)
    targets = _target_keys(target_key, keys)

    def input_fn() -> Any:
        queue = enqueue_data(x, queue_capacity, shuffle=shuffle, num_threads=num_threads, enqueue_size=batch_size, num_epochs=num_epochs, pad_value=pad_value)
        made = queue.dequeue_many(batch_size) if num_epochs is None else queue.dequeue_up_to(batch_size)
        features = dict(zip(keys, made if isinstance(made, (list, tuple)) else [made]))
        if not targets:
            return features
        labels = {key: features.pop(key) for key in targets}
        return features, labels if len(labels) > 1 else labels[targets[0]]

    return input_fn


def _pandas() -> Any:
    import pandas  # type: ignore[import-untyped,unused-ignore]

    return pandas


def _is_table(data: Any) -> bool:
    return HAS_PANDAS and isinstance(data, _pandas().DataFrame)


def _numeric(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def extract_pandas_data(data: Any) -> Any:
    """The numbers of a table; anything else as it is."""
    if not _is_table(data):
        return data
    wrong = [column for column in data.columns if not _numeric(data[column].dtype)]
    if wrong:
        raise at_user_line(ValueError("Data types for extracting pandas data must be int, float, or bool. Found in %s." % wrong))
    return data.values.astype("float")


def extract_pandas_matrix(data: Any) -> Any:
    """The values of a table; anything else as it is."""
    return data.values if _is_table(data) else data


def extract_pandas_labels(labels: Any) -> Any:
    """The values of a table of one column; anything else as it is."""
    if not _is_table(labels):
        return labels
    if len(labels.columns) > 1:
        raise at_user_line(ValueError("Only one column for labels is allowed."))
    if not _numeric(labels[labels.columns[0]].dtype):
        raise at_user_line(ValueError("Data types for extracting labels must be int, float, or bool."))
    return labels.values


def extract_dask_data(data: Any) -> Any:
    """The values of a table of Dask; anything else as it is."""
    return data.compute() if HAS_DASK and hasattr(data, "compute") else data


extract_dask_labels = extract_dask_data
