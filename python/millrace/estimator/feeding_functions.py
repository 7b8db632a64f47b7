# SPDX-License-Identifier: Apache-2.0
"""Queues that threads fill with the rows of arrays, tables and generators."""

from __future__ import annotations

import collections
import inspect
import itertools
import threading
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np

from millrace import summary
from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import OutOfRangeError, at_user_line
from millrace.framework.graph import name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import queues, math_ops
from millrace.ops.script_ops import py_func
from millrace.train import queue_runner


def _columns(data: Any) -> Tuple[List[np.ndarray], Optional[List[str]]]:
    """The arrays of a table, the numbers of its rows first, and their names where there are more than one."""
    if isinstance(data, np.ndarray):
        return [np.arange(len(data)), data], None
    if isinstance(data, collections.OrderedDict):
        arrays = [np.asarray(v) for v in data.values()]
        if any(len(a) != len(arrays[0]) for a in arrays):
            raise at_user_line(ValueError("the columns of the data have different lengths: %s" % {k: len(v) for k, v in data.items()}))
        return [np.arange(len(arrays[0])), *arrays], list(data)
    if hasattr(data, "index") and hasattr(data, "columns"):  # a pandas table
        return [np.asarray(data.index), *(np.asarray(data[c]) for c in data.columns)], list(data.columns)
    raise at_user_line(TypeError("data must be an array, an OrderedDict of arrays, a pandas DataFrame or a generator function, got %s" % type(data).__name__))


def _orders(count: int, size: int, epochs: Optional[int], generator: np.random.RandomState, shuffle: bool) -> Iterator[np.ndarray]:
    """The rows of each batch, from a row by chance on where `shuffle` is: over the ends of epochs; the last batch may be smaller."""
    waiting, epoch = np.zeros([0], np.int64), 0
    order = (np.arange(count) + (generator.randint(count) if shuffle and count else 0)) % max(1, count)
    while (epochs is None or epoch < epochs) and count:
        waiting, epoch = np.concatenate([waiting, order]), epoch + 1
        while len(waiting) >= size:
            yield waiting[:size]
            waiting = waiting[size:]
    if len(waiting):
        yield waiting


class _RowsFeedFn:
    """The rows of batches of a table, with the number of each first, epoch after epoch."""

    def __init__(
        self, placeholders: Any, data: Any, batch_size: int, random_start: bool = False, seed: Optional[int] = None, num_epochs: Optional[int] = None
    ) -> None:
        self._arrays, _ = _columns(data)
        if placeholders is not None and len(placeholders) != len(self._arrays):
            raise at_user_line(ValueError("Expected {} placeholders; got {}.".format(len(self._arrays), len(placeholders))))
        self._placeholders = placeholders
        self._rows = _orders(len(self._arrays[0]), batch_size, num_epochs, np.random.RandomState(seed), random_start)

    def take(self) -> List[np.ndarray]:
        """The columns of the next batch; StopIteration is the end of the input."""
        chosen = next(self._rows)
        return [array[chosen] for array in self._arrays]

    def __call__(self) -> Any:
        """{placeholder: column} of the next batch; OutOfRangeError at the end."""
        try:
            return dict(zip(self._placeholders, self.take()))
        except StopIteration:
            raise at_user_line(OutOfRangeError(None, None, "All epochs have been emitted.")) from None


_ArrayFeedFn = _OrderedDictNumpyFeedFn = _PandasFeedFn = _RowsFeedFn


def _fill_array(arr: Any, seq: Any, fillvalue: Any = 0) -> None:
    """Sets an array to what lies in sequences, each at the start of its axis, and a value behind."""
    if arr.ndim == 1:
        arr[: len(seq)] = seq
        arr[len(seq) :] = fillvalue
        return
    for part, given in itertools.zip_longest(arr, seq, fillvalue=()):
        _fill_array(part, given, fillvalue)


def _pad_if_needed(batch_key_item: List[np.ndarray], fill_value: Any = 0) -> np.ndarray:
    """Rows as one array, smaller ones with a value behind what they have along each axis."""
    ranks = {np.ndim(row) for row in batch_key_item}
    if len(ranks) > 1:
        raise at_user_line(ValueError("Padding requires all samples must have same rank."))
    if len({np.shape(row) for row in batch_key_item}) == 1:
        return np.stack(batch_key_item)
    made = np.empty((len(batch_key_item), *map(max, zip(*map(np.shape, batch_key_item)))), batch_key_item[0].dtype)
    _fill_array(made, batch_key_item, fill_value)
    return made


def _of_generator(data: Callable[[], Any], size: int, epochs: Optional[int], pad: Any) -> Tuple[Callable[[], Any], List[np.ndarray]]:
    first = next(data())
    if not isinstance(first, dict):
        raise at_user_line(TypeError("data generator must yield dicts, got %s" % type(first).__name__))
    names = sorted(first)

    rows, begun = iter(data()), 0  # begun: how many times it has been begun again

    def take() -> Any:
        """Whole batches, over the ends of epochs: it ends before a batch that would begin in an epoch too many, as TensorFlow counts them."""
        nonlocal rows, begun
        if epochs is not None and begun >= epochs:
            raise StopIteration
        chosen: List[Any] = []
        while len(chosen) < size:
            row = next(rows, None)
            if row is None:
                rows, begun = iter(data()), begun + 1
                row = next(rows, None)
            if row is None:  # it has ended for good, whatever num_epochs says
                begun = begun if epochs is None else max(epochs, begun)
                break
            chosen.append(row)
        if not chosen:
            raise StopIteration
        for row in chosen:
            if sorted(row) != names:
                called = getattr(data, "__name__", data)
                raise KeyError("key mismatch between dicts emitted by %s. Expected %s keys; got %s" % (called, names, sorted(row)))
        columns = [[np.asarray(row[name]) for row in chosen] for name in names]
        return [_pad_if_needed(column, pad) if pad is not None and column[0].ndim else np.stack(column) for column in columns]

    return take, [np.asarray(first[name])[None] for name in names]


def enqueue_data(
    data: Any,
    capacity: int,
    shuffle: bool = False,
    min_after_dequeue: Optional[int] = None,
    num_threads: int = 1,
    seed: Optional[int] = None,
    name: str = "enqueue_input",
    enqueue_size: int = 1,
    num_epochs: Optional[int] = None,
    pad_value: Any = None,
) -> Any:
    """A queue of rows that threads of a QueueRunner fill: the row's number, then its values, of an array, an OrderedDict of arrays, or a pandas table;
    or the values, by sorted keys, of a function that makes a generator of dicts, whose rows may have different lengths where pad_value is given."""
    with name_scope(name):
        if pad_value is not None and not callable(data):
            raise at_user_line(NotImplementedError("pad_value is only supported for generators"))
        generated = callable(data) and (inspect.isfunction(data) or inspect.ismethod(data))
        if generated:
            if pad_value is not None and shuffle:
                raise at_user_line(NotImplementedError("padding and shuffling not yet supported"))
            taken, samples = _of_generator(data, enqueue_size, num_epochs, pad_value)
            sources = [taken] * num_threads
        else:
            samples, _ = _columns(data)
            share = -(-num_epochs // num_threads) if num_epochs is not None else None
            left = num_epochs
            sources = []
            for i in range(num_threads):
                epochs = None if left is None else min(left, share or 0)
                left = None if left is None else left - (epochs or 0)
                sources.append(_RowsFeedFn(None, data, enqueue_size, shuffle, None if seed is None else seed + i, epochs).take)
        types = [dtypes.string if a.dtype.kind in "OUS" else dtypes.as_dtype(a.dtype) for a in samples]
        shapes = [TensorShape(a.shape[1:]) for a in samples]
        if pad_value is not None:
            shapes = [TensorShape([None] * s.ndims) if s.ndims else s for s in shapes]
        if shuffle:
            least = int(capacity / 4) if min_after_dequeue is None else min_after_dequeue
            queue: Any = queues.RandomShuffleQueue(capacity, least, types, shapes, seed=seed)
        elif pad_value is not None:
            queue = queues.PaddingFIFOQueue(capacity, types, shapes)
        else:
            queue = queues.FIFOQueue(capacity, types, shapes)
        lock = threading.Lock()
        enqueues = []
        for source in sources:
            made = py_func(_locked(source, lock if generated else threading.Lock()), [], types, stateful=True)
            for tensor, shape in zip(made, shapes):
                tensor.set_shape(TensorShape([None]).concatenate(shape))
            enqueues.append(queue.enqueue_many(made))
        queue_runner.add_queue_runner(queue_runner.QueueRunner(queue, enqueues))
        full = math_ops.cast(queue.size(), dtypes.float32) * constant(1.0 / capacity)
        summary.scalar("queue/%sfraction_of_%d_full" % (queue.name, capacity), full)
        return queue


_enqueue_data = enqueue_data


def _locked(function: Callable[[], Any], lock: Any) -> Callable[[], Any]:
    def call() -> Any:
        with lock:
            return function()

    return call
