# SPDX-License-Identifier: Apache-2.0
"""Where the columns of data frames come from: arrays, pandas tables, files. build(cache, num_epochs=n) ends after n passes over the data."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.contrib.learn.dataframe.series import TensorFlowTransform, parameter
from millrace.estimator.feeding_functions import enqueue_data
from millrace.framework.errors import at_user_line
from millrace.ops.readers import TextLineReader, TFRecordReader
from millrace.train import batching
from millrace.train.input import string_input_producer


class _Source(TensorFlowTransform):
    """Columns of nothing, in batches of batch_size rows through a queue of queue_capacity rows that num_threads threads fill."""

    input_valency = 0

    def __init__(
        self,
        batch_size: Optional[int],
        num_threads: Optional[int],
        enqueue_size: Optional[int],
        queue_capacity: Optional[int],
        shuffle: bool,
        min_after_dequeue: Optional[int],
        seed: Optional[int],
    ) -> None:
        self._batch_size, self._num_threads = 32 if batch_size is None else batch_size, num_threads or 1
        self._enqueue_size = max(1, self._batch_size // self._num_threads) if enqueue_size is None else enqueue_size
        self._queue_capacity = self._batch_size * 10 if queue_capacity is None else queue_capacity
        self._min_after_dequeue = self._queue_capacity // 4 if min_after_dequeue is None else min_after_dequeue
        self._shuffle, self._seed = shuffle, seed

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of its class."""
        return type(self).__name__

    @parameter
    def batch_size(self) -> int:
        """The rows of a batch."""
        return self._batch_size

    @parameter
    def num_threads(self) -> int:
        """How many threads fill the queue."""
        return self._num_threads

    @parameter
    def enqueue_size(self) -> int:
        """How many rows a thread puts in at once."""
        return self._enqueue_size

    @parameter
    def queue_capacity(self) -> int:
        """How many rows the queue holds."""
        return self._queue_capacity

    @parameter
    def shuffle(self) -> bool:
        """Whether the order is random."""
        return self._shuffle

    @parameter
    def min_after_dequeue(self) -> int:
        """How many rows stay in the queue where the order is random."""
        return self._min_after_dequeue

    @parameter
    def seed(self) -> Optional[int]:
        """Of the order."""
        return self._seed


class BaseInMemorySource(_Source):
    """Rows of data in memory, and their index. data_name: what operations are named after."""

    def __init__(
        self,
        data: Any,
        num_threads: Optional[int] = None,
        enqueue_size: Optional[int] = None,
        batch_size: Optional[int] = None,
        queue_capacity: Optional[int] = None,
        shuffle: bool = False,
        min_after_dequeue: Optional[int] = None,
        seed: Optional[int] = None,
        data_name: str = "in_memory_data",
    ) -> None:
        super().__init__(batch_size, num_threads, enqueue_size, queue_capacity, shuffle, min_after_dequeue, seed)
        self._data, self._data_name = data, data_name

    @parameter
    def data(self) -> Any:
        """The data."""
        return self._data

    @parameter
    def data_name(self) -> str:
        """What operations are named after."""
        return self._data_name

    def _apply_transform(self, input_tensors: List[Any], **kwargs: Any) -> Any:
        queue = enqueue_data(
            self._data,
            self._queue_capacity,
            self._shuffle,
            self._min_after_dequeue,
            num_threads=self._num_threads,
            seed=self._seed,
            name=self._data_name,
            enqueue_size=self._enqueue_size,
            num_epochs=kwargs.get("num_epochs"),
        )
        return self.return_type(*queue.dequeue_many(self._batch_size))


class NumpySource(BaseInMemorySource):
    """The rows of an array, as `value`, and their numbers, as `index`."""

    _output_names = ("index", "value")


class OrderedDictNumpySource(BaseInMemorySource):
    """The rows of arrays by name, and their numbers, as `index`."""

    @property
    def _output_names(self) -> Tuple[str, ...]:  # type: ignore[override]
        return ("index", *self._data)


class PandasSource(BaseInMemorySource):
    """The columns of a pandas table, and its index."""

    @property
    def _output_names(self) -> Tuple[str, ...]:  # type: ignore[override]
        return ("index", *self._data.columns)


class ReaderSource(_Source):
    """What a reader reads in work units (file names), as `value`, and its keys, as `index`: strings.

    reader_cls(**reader_kwargs) makes the reader."""

    _output_names = ("index", "value")

    def __init__(
        self,
        reader_cls: Any,
        work_units: Any,
        reader_kwargs: Optional[Dict[str, Any]] = None,
        enqueue_size: Optional[int] = None,
        batch_size: int = 1,
        queue_capacity: Optional[int] = None,
        shuffle: bool = False,
        min_after_dequeue: Optional[int] = None,
        num_threads: int = 1,
        seed: Optional[int] = None,
    ) -> None:
        super().__init__(batch_size, num_threads, enqueue_size, queue_capacity, shuffle, min_after_dequeue, seed)
        self._reader_cls, self._work_units, self._reader_kwargs = reader_cls, list(work_units), reader_kwargs or {}

    @parameter
    def reader_cls(self) -> Any:
        """What makes the reader."""
        return self._reader_cls

    @parameter
    def work_units(self) -> List[Any]:
        """The names of the files."""
        return self._work_units

    @parameter
    def reader_kwargs(self) -> Dict[str, Any]:
        """What the reader is made with."""
        return self._reader_kwargs

    def _apply_transform(self, input_tensors: List[Any], **kwargs: Any) -> Any:
        units = string_input_producer(self._work_units, num_epochs=kwargs.get("num_epochs"), shuffle=self._shuffle, seed=self._seed)
        read = list(self._reader_cls(**self._reader_kwargs).read_up_to(units, self._enqueue_size))
        common: Dict[str, Any] = {
            "batch_size": self._batch_size,
            "capacity": self._queue_capacity,
            "num_threads": self._num_threads,
            "enqueue_many": True,
            "shapes": [[], []],
        }
        if self._shuffle:
            return self.return_type(*batching.shuffle_batch(read, min_after_dequeue=self._min_after_dequeue, seed=self._seed, **common))
        return self.return_type(*batching.batch(read, **common))


def _files(file_names: Any) -> Any:
    if isinstance(file_names, str):
        raise at_user_line(ValueError("file_names should be a list of names, got %r" % file_names))
    return file_names


def TextFileSource(file_names: Any, reader_kwargs: Optional[Dict[str, Any]] = None, enqueue_size: int = 1, batch_size: int = 1, **kwargs: Any) -> ReaderSource:
    """The lines of files. kwargs: as ReaderSource takes them."""
    return ReaderSource(TextLineReader, _files(file_names), reader_kwargs, enqueue_size, batch_size, **kwargs)


def TFRecordSource(file_names: Any, reader_kwargs: Optional[Dict[str, Any]] = None, enqueue_size: int = 1, batch_size: int = 1, **kwargs: Any) -> ReaderSource:
    """The records of files. kwargs: as ReaderSource takes them."""
    return ReaderSource(TFRecordReader, _files(file_names), reader_kwargs, enqueue_size, batch_size, **kwargs)
