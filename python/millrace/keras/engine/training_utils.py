# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""What batches give, gathered; data sets that are asked whether they are shuffled; and inputs by name."""

from __future__ import annotations

import atexit
import multiprocessing.pool
import threading
import time
from typing import Any, FrozenSet, Iterator, List, Optional, Tuple

import numpy as np

from millrace import tf_logging
from millrace.data.dataset import Dataset
from millrace.data.inner import obtain_all_variant_tensor_ops
from millrace.framework import dtypes, nest
from millrace.framework.errors import at_user_line
from millrace.framework.type_spec import TensorSpec
from millrace.keras import backend as K
from millrace.keras.engine.composites import is_composite, joined
from millrace.keras.engine.training_data import (  # noqa: F401
    check_array_lengths,
    has_tensors,
    standardize_class_weights,
    standardize_input_data,
    standardize_sample_weights,
    standardize_weights,
)
from millrace.keras.utils.generic_utils import slice_arrays  # noqa: F401
from millrace.ops import gen_ops, math_ops

# ---- what batches give ----

_COPY_THREADS = 4
_COPY_POOL: Any = None


def get_copy_pool() -> Any:
    """The threads that large arrays are copied by."""
    global _COPY_POOL
    if _COPY_POOL is None:
        _COPY_POOL = multiprocessing.pool.ThreadPool(_COPY_THREADS)
        atexit.register(_COPY_POOL.close)
    return _COPY_POOL


def _other_size(found: Tuple[int, ...], wanted: Tuple[int, ...]) -> ValueError:
    return ValueError(
        "Mismatch between expected batch size and model output batch size. Output shape = %s, expected output shape = shape %s" % (tuple(found), tuple(wanted))
    )


class Aggregator:
    """Base of what gathers values of batches: `create` is told those of the first, `aggregate` those of each, and `finalize` leaves all in `results`."""

    def __init__(self, use_steps: bool, num_samples: Optional[int] = None, steps: Optional[int] = None, batch_size: Optional[int] = None) -> None:
        self.use_steps, self.num_samples, self.steps, self.batch_size = use_steps, num_samples, steps, batch_size
        self.results: Any = []

    def create(self, batch_outs: Any) -> None:
        """Makes room, by the values of the first batch."""
        raise NotImplementedError("%s.create" % type(self).__name__)

    def aggregate(self, batch_outs: Any, batch_start: Any = None, batch_end: Any = None) -> None:
        """Takes the values of a batch: of all examples those from batch_start to batch_end, where it is not counted in steps."""
        raise NotImplementedError("%s.aggregate" % type(self).__name__)

    def finalize(self) -> None:
        """Makes `results` what all batches gave."""
        raise NotImplementedError("%s.finalize" % type(self).__name__)


class MetricsAggregator(Aggregator):
    """The mean of the loss over batches, by their sizes, and the last values of metrics, which count themselves."""

    def __init__(self, use_steps: bool, num_samples: Optional[int] = None, steps: Optional[int] = None) -> None:
        super().__init__(use_steps, num_samples, steps)

    def create(self, batch_outs: Any) -> None:
        """Starts with zeros."""
        self.results = [0.0] * len(batch_outs)

    def aggregate(self, batch_outs: Any, batch_start: Any = None, batch_end: Any = None) -> None:
        """Adds a batch."""
        self.results = [self.results[0] + batch_outs[0] * (1 if self.use_steps else batch_end - batch_start), *batch_outs[1:]]

    def finalize(self) -> None:
        """Divides by how many there were."""
        if not self.results:
            raise at_user_line(ValueError("Empty training data."))
        self.results[0] /= self.num_samples or self.steps


class ConcatAggregator(Aggregator):
    """Values of one output, one behind the other."""

    def __init__(self, batch_size: Optional[int]) -> None:
        super().__init__(True, batch_size=batch_size)

    def create(self, batch_outs: Any) -> None:
        """Nothing to make: the values are kept as they come."""

    def aggregate(self, batch_outs: Any, batch_start: Any = None, batch_end: Any = None) -> None:
        """Keeps the value of a batch. ValueError where it has more rows than the batch."""
        if self.batch_size and self.batch_size < batch_outs.shape[0]:
            raise at_user_line(_other_size(batch_outs.shape, (self.batch_size, *batch_outs.shape[1:])))
        self.results.append(batch_outs)

    def finalize(self) -> None:
        """One array, or sparse or ragged value; of a single batch the one that it gave."""
        self.results = self.results[0] if len(self.results) == 1 else joined(self.results)


class SliceAggregator(Aggregator):
    """Values of one output in an array that is made at once; large ones are copied by threads."""

    _BINARY_SIZE_THRESHOLD = 2**14  # elements from which on threads copy
    _MAX_COPY_SECONDS = 300

    def __init__(self, num_samples: Optional[int], batch_size: Optional[int]) -> None:
        super().__init__(False, num_samples, batch_size=batch_size)
        self._pool = get_copy_pool()
        self._copies: List[threading.Event] = []
        self._errors: List[BaseException] = []

    def create(self, batch_outs: Any) -> None:
        """Makes the array."""
        self.results = np.empty((self.num_samples, *batch_outs.shape[1:]), batch_outs.dtype)

    def aggregate(self, batch_outs: Any, batch_start: Any = None, batch_end: Any = None) -> None:
        """Copies the value of a batch; one of all examples is kept as it is."""
        self._raise_errors()
        if batch_end - batch_start == self.num_samples:
            if batch_outs.shape[0] != self.num_samples:
                raise at_user_line(_other_size(batch_outs.shape, self.results.shape))
            self.results = batch_outs
        elif np.prod(batch_outs.shape) < self._BINARY_SIZE_THRESHOLD:
            self.results[batch_start:batch_end] = batch_outs
        else:
            done = threading.Event()
            self._pool.apply_async(self._copy, args=(batch_outs, batch_start, batch_end, done))
            self._copies.append(done)

    def _copy(self, batch_outs: Any, batch_start: Any, batch_end: Any, done: threading.Event) -> None:
        try:
            self.results[batch_start:batch_end] = batch_outs
        except Exception as error:  # raised where the batches are taken
            self._errors.append(error)
        finally:
            done.set()

    def _raise_errors(self) -> None:
        if self._errors:
            raise self._errors[0]

    def finalize(self) -> None:
        """Waits until all is copied. ValueError where that takes too long."""
        end = time.monotonic() + self._MAX_COPY_SECONDS
        for done in self._copies:
            if not done.wait(max(0.0, end - time.monotonic())):
                raise at_user_line(ValueError("Timed out waiting for copy to complete: it takes more than %s s." % self._MAX_COPY_SECONDS))
        self._raise_errors()


class OutputsAggregator(Aggregator):
    """Values of all outputs of a model, in the structure that a batch gives."""

    _structure: Any = None

    def create(self, batch_outs: Any) -> None:
        """Makes room for each output."""
        self._structure = nest.get_traverse_shallow_structure(lambda x: not is_composite(x), batch_outs)
        for value in nest.flatten_up_to(self._structure, batch_outs):
            if not is_composite(value) and not isinstance(value, np.ndarray):
                raise at_user_line(RuntimeError("Attempted to aggregate unsupported object %r: outputs are arrays, or sparse or ragged values." % (value,)))
            whole = self.use_steps or is_composite(value)
            self.results.append(ConcatAggregator(self.batch_size) if whole else SliceAggregator(self.num_samples, self.batch_size))
            self.results[-1].create(value)

    def aggregate(self, batch_outs: Any, batch_start: Any = None, batch_end: Any = None) -> None:
        """Gives each output its value."""
        for value, result in zip(nest.flatten_up_to(self._structure, batch_outs), self.results):
            result.aggregate(value, batch_start, batch_end)

    def finalize(self) -> None:
        """Ends each, and packs them."""
        for result in self.results:
            result.finalize()
        self.results = nest.pack_sequence_as(self._structure, [result.results for result in self.results])


# ---- losses ----


def weighted_masked_objective(fn: Any) -> Any:
    """A loss function as one number of targets, outputs, weights and a mask, as up to 1.12: the mean where the mask is, and over weights that are not 0."""
    if fn is None:
        return None

    def weighted(y_true: Any, y_pred: Any, weights: Any, mask: Any = None) -> Any:
        each = fn(y_true, y_pred)
        if mask is not None:
            counts = math_ops.cast(mask, K.floatx())
            each = each * counts / K.mean(counts)
        if weights is not None:
            each = K.mean(each, list(range(K.ndim(weights) or 0, K.ndim(each) or 0))) * weights
            each = each / K.mean(math_ops.cast(gen_ops.not_equal(weights, 0), K.floatx()))
        return K.mean(each)

    return weighted


# ---- data sets ----

_ONE_FOR_ONE = frozenset(
    (
        "CacheDataset",
        "CacheDatasetV2",
        "ConcatenateDataset",
        "FilterDataset",
        "FixedLengthRecordDataset",
        "FixedLengthRecordDatasetV2",
        "MapDataset",
        "ModelDataset",
        "OptimizeDataset",
        "ParallelMapDataset",
        "ParallelMapDatasetV2",
        "PrefetchDataset",
        "RangeDataset",
        "RepeatDataset",
        "SkipDataset",
        "SparseTensorSliceDataset",
        "TakeDataset",
        "TensorDataset",
        "TensorSliceDataset",
        "TextLineDataset",
        "TFRecordDataset",
        "ZipDataset",
    )
)
_SHUFFLES = frozenset(("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3"))
_BATCHES = frozenset(("BatchDataset", "BatchDatasetV2", "PaddedBatchDataset", "PaddedBatchDatasetV2", "WindowDataset"))


def _assert_made_of(dataset: Dataset, good: FrozenSet[str], what: str) -> None:
    other = next((op for op in obtain_all_variant_tensor_ops(dataset) if op.type not in good), None)
    if other is not None:
        raise at_user_line(ValueError("Could not assert that dataset is not %s: it is made by %s, node %s." % (what, other.type, other.name)))


def assert_not_batched(dataset: Dataset) -> None:
    """ValueError unless it is sure that the elements of a data set are no batches."""
    _assert_made_of(dataset, _ONE_FOR_ONE | _SHUFFLES, "batched")


def assert_not_shuffled(dataset: Dataset) -> None:
    """ValueError unless it is sure that a data set is not shuffled."""
    _assert_made_of(dataset, _ONE_FOR_ONE | _BATCHES, "shuffled")


def verify_dataset_shuffled(x: Dataset) -> None:
    """Warns where it is sure that a data set is not shuffled."""
    try:
        assert_not_shuffled(x)
    except ValueError:
        return
    tf_logging.warning("Expected a shuffled dataset but input dataset `x` is not shuffled. Please invoke `shuffle()` on input dataset.")


# ---- inputs ----


class ModelInputs:
    """Inputs of a model: one, several in a list, or in a dictionary by name."""

    def __init__(self, inputs: Any) -> None:
        self._names = sorted(inputs) if isinstance(inputs, dict) else ["input_%d" % (i + 1) for i in range(len(nest.flatten(inputs)))]
        self._flat = [inputs[name] for name in self._names] if isinstance(inputs, dict) else nest.flatten(inputs)
        self._is_dict, self._is_single = isinstance(inputs, dict), not isinstance(inputs, (list, tuple, dict))

    def get_input_names(self) -> List[str]:
        """Their names: the keys in order, or input_1 and so on."""
        return self._names

    def get_symbolic_inputs(self, return_single_as_list: bool = False) -> Any:
        """Tensors for them: placeholders of any number of examples for arrays and for what describes tensors."""
        self._flat = [_symbolic(value, name) for value, name in zip(self._flat, self._names)]
        if self._is_dict:
            return dict(zip(self._names, self._flat))
        return self._flat[0] if self._is_single and not return_single_as_list else self._flat

    def as_dict(self) -> Iterator[Tuple[str, Any]]:
        """Pairs of a name and its input."""
        return zip(self._names, self._flat)

    def as_list(self) -> List[Any]:
        """The inputs."""
        return self._flat


def _symbolic(value: Any, name: str) -> Any:
    if isinstance(value, (list, float, int)):
        value = np.asarray(value)
        value = np.expand_dims(value, 1) if value.ndim == 1 else value
    if not isinstance(value, (np.ndarray, TensorSpec)):
        return value
    kind: Any = dtypes.as_dtype(value.dtype)
    if isinstance(value, np.ndarray) and kind.is_floating:
        kind = dtypes.as_dtype(K.floatx())
    return K.placeholder((None, *(tuple(value.shape[1:]) or (1,))), dtype=kind.name, name=name)
