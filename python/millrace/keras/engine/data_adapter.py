# SPDX-License-Identifier: Apache-2.0
"""What a model is trained on, as data sets of batches: arrays and tensors, lists of numbers, generators, Sequences, and data sets themselves."""

from __future__ import annotations

import inspect
import itertools
from typing import Any, Callable, Iterator, List, Optional, Tuple

import numpy as np

from millrace.data.dataset import Dataset
from millrace.framework import nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.keras.utils.data_utils import GeneratorEnqueuer, OrderedEnqueuer, Sequence
from millrace.layers.nodes import with_leaves
from millrace.ops import array_ops


class DataAdapter:
    """Base of adapters: whether a class can handle inputs and targets, and the data set of the batches that they make."""

    _dataset: Dataset
    _size: Optional[int] = None
    _batch: Optional[int] = None
    _last: Optional[int] = None

    @staticmethod
    def can_handle(x: Any, y: Any = None) -> bool:
        """Whether inputs and targets are of its kind."""
        raise NotImplementedError("DataAdapter.can_handle")

    def _check(self, x: Any, y: Any) -> None:
        if not self.can_handle(x, y):
            raise at_user_line(ValueError("%s Cannot handle input %s" % (type(self).__name__, str((x, y))[:200])))

    def get_dataset(self) -> Dataset:
        """Tuples of the inputs, targets and weights of a batch: as many of the three as there are."""
        return self._dataset

    def get_size(self) -> Optional[int]:
        """The number of batches, where it is known."""
        return self._size

    def batch_size(self) -> Optional[int]:
        """The number of examples in a batch, where it is known."""
        return self._batch

    def has_partial_batch(self) -> bool:
        """Whether the last batch is known to be smaller."""
        return self._last is not None

    def partial_batch_size(self) -> Optional[int]:
        """The number of examples in the last batch where that is smaller."""
        return self._last

    def should_recreate_iterator(self, steps_per_epoch: Optional[int]) -> bool:
        """Whether each epoch begins the data set anew."""
        return self._size is not None or steps_per_epoch is None

    def _count(self, samples: int, batch_size: Optional[int], steps: Optional[int]) -> int:
        """Notes how many batches there are; the size of one: what is given, or what makes so many steps."""
        size = batch_size or (-(-samples // steps) if steps else None)
        if not size:
            raise at_user_line(ValueError("`batch_size` or `steps` is required for `Tensor` or `NumPy` input data."))
        self._size, self._batch, self._last = -(-samples // size), size, samples % size or None
        return size


def _only_x(what: str, y: Any, sample_weights: Any) -> None:
    for name, value in (("y", y), ("sample_weight", sample_weights)):
        if value is not None and not (isinstance(value, (list, tuple, dict)) and not value):
            raise at_user_line(ValueError("`%s` argument is not supported when using %s as input: it gives them too." % (name, what)))


def _is_tensor(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray))


def _together(x: Any, y: Any, sample_weights: Any) -> Tuple[Any, ...]:
    """Those that there are, as tensors, lists as tuples. An output without weights has ones."""
    if y is None:
        return (_as_tensors(x),)
    if sample_weights is None:
        return _as_tensors(x), _as_tensors(y)
    if isinstance(sample_weights, (list, tuple)) and any(w is None for w in sample_weights):
        count = next(w.shape[0] for w in sample_weights if w is not None)
        sample_weights = [np.ones((int(count),), np.float32) if w is None else w for w in sample_weights]
    return _as_tensors(x), _as_tensors(y), _as_tensors(sample_weights)


def _as_tensors(values: Any) -> Any:
    if isinstance(values, list):
        values = tuple(values)
    return with_leaves(lambda v: v if isinstance(v, CompositeTensor) else convert_to_tensor(v), values)


class TensorLikeDataAdapter(DataAdapter):
    """Arrays and tensors, cut into batches; shuffled anew for each of the epochs, all of which are in the data set."""

    def __init__(
        self,
        x: Any,
        y: Any = None,
        sample_weights: Any = None,
        batch_size: Optional[int] = None,
        epochs: int = 1,
        steps: Optional[int] = None,
        shuffle: bool = False,
    ) -> None:
        self._check(x, y)
        samples = int(nest.flatten(x)[0].shape[0])
        size = self._count(samples, batch_size, steps)
        made = _together(x, y, sample_weights)
        orders = [np.random.permutation(samples) if shuffle else np.arange(samples) for _ in range(epochs)]
        places: List[Dataset] = []
        for order in orders:
            whole = samples // size * size
            if whole:
                places.append(Dataset.from_tensor_slices(order[:whole].reshape(-1, size)))
            if whole < samples:
                places.append(Dataset.from_tensors(order[whole:]))
        first = places[0]
        for more in places[1:]:
            first = first.concatenate(more)
        self._dataset = first.map(lambda at: nest.map_structure(lambda t: array_ops.gather(t, at), made))

    @staticmethod
    def can_handle(x: Any, y: Any = None) -> bool:
        """Whether all are arrays or tensors."""
        return all(_is_tensor(v) for v in nest.flatten([x] if y is None else [x, y]))

    def should_recreate_iterator(self, steps_per_epoch: Optional[int]) -> bool:
        """No: the data set has all epochs."""
        del steps_per_epoch  # it changes nothing
        return False


class CompositeTensorDataAdapter(DataAdapter):
    """Arrays and tensors of which some are sparse or ragged."""

    def __init__(
        self, x: Any, y: Any = None, sample_weights: Any = None, batch_size: Optional[int] = None, steps: Optional[int] = None, shuffle: bool = False
    ) -> None:
        self._check(x, y)
        samples = int(nest.flatten(x)[0].shape[0])
        size = self._count(samples, batch_size, steps)
        slices = Dataset.from_tensor_slices(_together(x, y, sample_weights))
        self._dataset = (slices.shuffle(samples) if shuffle else slices).batch(size)

    @staticmethod
    def can_handle(x: Any, y: Any = None) -> bool:
        """Whether all are arrays or tensors, and one is sparse or ragged."""
        flat = nest.flatten([x] if y is None else [x, y])
        return any(isinstance(v, CompositeTensor) for v in flat) and all(_is_tensor(v) or isinstance(v, CompositeTensor) for v in flat)


class ListsOfScalarsDataAdapter(TensorLikeDataAdapter):
    """Lists of numbers or words, and lists of such lists."""

    def __init__(
        self, x: Any, y: Any = None, sample_weights: Any = None, batch_size: Optional[int] = None, shuffle: bool = False, epochs: int = 1, steps: Any = None
    ) -> None:
        if not self.can_handle(x, y):
            raise at_user_line(ValueError("ListsOfScalarsDataAdapter Cannot handle input %s" % str((x, y))[:200]))
        inputs, targets, weights = (None if part is None else np.asarray(part) for part in (x, y, sample_weights))
        super().__init__(inputs, targets, weights, batch_size=batch_size, epochs=epochs, steps=steps, shuffle=shuffle)

    @staticmethod
    def can_handle(x: Any, y: Any = None) -> bool:
        """Whether each is a list of numbers or words, or of such lists."""
        return _of_scalars(x) and (y is None or _of_scalars(y))

    def _check(self, x: Any, y: Any) -> None:
        """Nothing: what was given was looked at, and what is cut are arrays made of it."""


def _of_scalars(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return bool(x) and _of_scalars(x[0])
    return isinstance(x, (float, int, str))


class DatasetAdapter(DataAdapter):
    """A data set, as it is."""

    def __init__(self, x: Any, y: Any = None, sample_weights: Any = None) -> None:
        self._check(x, y)
        _only_x("dataset", y, sample_weights)
        self._dataset = x

    @staticmethod
    def can_handle(x: Any, y: Any = None) -> bool:
        """Whether it is a data set."""
        del y  # it is in the data set
        return isinstance(x, Dataset)


def _of_batches(peek: Any, batches: Callable[[], Iterator[Any]]) -> Dataset:
    """A data set of what a function gives, whose elements are like one of them."""
    return Dataset.from_generator(batches, nest.map_structure(lambda t: t.dtype, peek), nest.map_structure(lambda t: t.shape, peek))


class GeneratorDataAdapter(DataAdapter):
    """What a generator gives, made ahead by threads; without workers when it is asked for."""

    def __init__(
        self, x: Any, y: Any = None, sample_weights: Any = None, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10
    ) -> None:
        self._check(x, y)
        _only_x("python generator", y, sample_weights)
        first = next(x)

        def batches() -> Iterator[Any]:
            items = itertools.chain([first], x)
            if workers <= 0:
                return items
            ahead = GeneratorEnqueuer(items, use_multiprocessing)
            ahead.start(workers, max_queue_size)
            return ahead.get()

        self._batch, self._dataset = int(nest.flatten(first)[0].shape[0]), _of_batches(first, batches)

    @staticmethod
    def can_handle(x: Any, y: Any = None) -> bool:
        """Whether it is a generator."""
        del y  # the generator gives it
        return inspect.isgenerator(x)


class KerasSequenceAdapter(DataAdapter):
    """What a Sequence gives: with workers over and over, made ahead by a thread, else once."""

    def __init__(
        self,
        x: Any,
        y: Any = None,
        sample_weights: Any = None,
        shuffle: bool = False,
        workers: int = 1,
        use_multiprocessing: bool = False,
        max_queue_size: int = 10,
    ) -> None:
        self._check(x, y)
        _only_x("`keras.utils.Sequence`", y, sample_weights)
        first = x[0]

        def batches() -> Iterator[Any]:
            if workers <= 0:
                return (x[i] for i in range(len(x)))
            ahead = OrderedEnqueuer(x, use_multiprocessing)
            ahead.start(workers, max_queue_size)
            return ahead.get()

        made = _of_batches(first, batches)
        self._size, self._batch, self._dataset = len(x), int(nest.flatten(first)[0].shape[0]), made.shuffle(len(x)) if shuffle else made

    @staticmethod
    def can_handle(x: Any, y: Any = None) -> bool:
        """Whether it is a Sequence."""
        del y  # the Sequence gives it
        return isinstance(x, Sequence)


ALL_ADAPTER_CLS: List[Any] = [
    ListsOfScalarsDataAdapter,
    TensorLikeDataAdapter,
    DatasetAdapter,
    GeneratorDataAdapter,
    KerasSequenceAdapter,
    CompositeTensorDataAdapter,
]


def select_data_adapter(x: Any, y: Any) -> Any:
    """The one adapter that can handle inputs and targets. ValueError where none, or more than one, can."""
    found = [kind for kind in ALL_ADAPTER_CLS if kind.can_handle(x, y)]
    if len(found) != 1:
        raise at_user_line(
            ValueError("%s data adapter can handle the input: x of type %s, y of type %s" % ("No" if not found else "More than one", type(x), type(y)))
        )
    return found[0]
