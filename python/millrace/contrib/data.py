# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.data: functions for Dataset.apply, and tf.data under its older name."""

import inspect as _inspect
from typing import Any, Callable, Dict, Optional as _Optional

import numpy as _np

from millrace.data import *  # noqa: F403
from millrace.data import Dataset as _Dataset
from millrace.data import components as _components, structure as _structure
from millrace.data.csv import csv_batches as _csv_batches
from millrace.data.dataset import _int64
from millrace.data.readers import TFRecordDataset as _TFRecordDataset
from millrace.data.running import StatsAggregator as _StatsAggregator
from millrace.framework import dtypes as _dtypes
from millrace.framework.errors import at_user_line as _at_user_line
from millrace.framework.graph import Tensor as _Tensor
from millrace.framework.tensor_shape import TensorShape as _TensorShape
from millrace.ops import gen_ops as _gen_ops
from millrace.ops.block_ops import ensure_shape as _ensure_shape

from millrace.data.experimental import (  # noqa: F401
    AUTOTUNE,
    CheckpointInputPipelineHook,
    Counter,
    CsvDataset,
    Optional,
    RandomDataset,
    Reducer,
    SqlDataset,
    TFRecordWriter,
    bucket_by_sequence_length,
    bytes_produced_stats,
    choose_from_datasets,
    copy_to_device,
    dense_to_sparse_batch,
    enumerate_dataset,
    get_next_as_optional,
    get_single_element,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    latency_stats,
    make_batched_features_dataset,
    make_csv_dataset as _make_csv_dataset,
    make_saveable_from_iterator,
    make_tf_record_dataset,
    map_and_batch,
    parallel_interleave,
    parse_example_dataset,
    prefetch_to_device,
    rejection_resample as _rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    unbatch,
    unique,
)

_Transformation = Callable[[_Dataset], _Dataset]


def _side_by_side(given: Any) -> Any:
    """A structure in which lists of tensors or arrays that differ in type or shape are tuples: in 1.2 lists were structures, from 1.3 on they are tensors."""
    if isinstance(given, tuple):
        return type(given)(*map(_side_by_side, given)) if hasattr(given, "_fields") else tuple(map(_side_by_side, given))
    if isinstance(given, list) and given and all(isinstance(part, (_np.ndarray, _Tensor)) for part in given):
        if len({_dtypes.as_dtype(part.dtype).base_dtype for part in given}) > 1 or not all(_alike(given[0], part) for part in given):
            return tuple(given)
    return given


def _alike(a: Any, b: Any) -> bool:
    return _TensorShape(a.shape).is_compatible_with(b.shape)


class _AnyDataset(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Dataset)


class Dataset(_Dataset, metaclass=_AnyDataset):  # type: ignore[no-redef]
    """tf.data.Dataset, made of lists as well, as 1.2 makes it: their members lie side by side where they cannot be one tensor."""

    @staticmethod
    def from_tensors(tensors: Any) -> _Dataset:
        """One element: the tensors."""
        return _Dataset.from_tensors(_side_by_side(tensors))

    @staticmethod
    def from_tensor_slices(tensors: Any) -> _Dataset:
        """An element for each row of the tensors."""
        return _Dataset.from_tensor_slices(_side_by_side(tensors))

    @staticmethod
    def zip(datasets: Any) -> _Dataset:
        """Elements of several data sets side by side."""
        return _Dataset.zip(tuple(datasets) if isinstance(datasets, list) else datasets)


def rejection_resample(*args: Any, **kwargs: Any) -> Any:
    """tf.data.experimental.rejection_resample of (class_func, target_dist, initial_dist, seed); or, as 1.2 and 1.3 call it, with the data set before these, or
    as `dataset`: the resampled data set."""
    dataset = kwargs.pop("dataset", None)
    if dataset is None and args and isinstance(args[0], _Dataset):
        dataset, args = args[0], args[1:]
    made = _rejection_resample(*args, **kwargs)
    return made if dataset is None else dataset.apply(made)


class StatsAggregator(_StatsAggregator):
    """Where data sets count: tf.data.experimental.StatsAggregator, which data sets name in their options."""

    def subscribe(self, iterator: Any) -> Any:
        """NotImplementedError: iterators that are there already do not begin to count."""
        raise _at_user_line(
            NotImplementedError("%r does not begin to count: give the aggregator to Options.experimental_stats.aggregator of the data set." % iterator)
        )


def make_csv_dataset(*args: Any, comment: _Optional[str] = None, default_float_type: Any = None, **kwargs: Any) -> _Dataset:
    """tf.data.experimental.make_csv_dataset of the same arguments. comment: what lines begin with that are left out; default_float_type: of columns of
    numbers that are not whole, where types are guessed: else float32, and float64 where that is too small."""
    bound = _inspect.signature(_make_csv_dataset).bind(*args, **kwargs)
    bound.apply_defaults()
    return _csv_batches(**bound.arguments, comment=comment, float_type=None if default_float_type is None else _dtypes.as_dtype(default_float_type))


def batch_and_drop_remainder(batch_size: Any) -> _Transformation:
    """Batches of one size; what is left over is left out."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> _Transformation:
    """padded_batch of one size; what is left over is left out."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


sloppy_interleave = parallel_interleave


def sliding_window_batch(window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1) -> _Transformation:
    """Batches of window_size elements, window_stride apart; each begins window_shift (`stride` is its older name, 1) elements behind the one before it."""
    if stride is not None and window_shift is not None:
        raise _at_user_line(ValueError("Cannot specify both `stride` and `window_shift`"))
    shift = 1 if stride is None and window_shift is None else window_shift if stride is None else stride

    def apply(dataset: _Dataset) -> _Dataset:
        specs = _structure.mapped(lambda spec: _components.batched(spec, None), dataset.element_spec)
        types, shapes = _components.flat(specs)
        size, by, step = (_int64(number) for number in (window_size, shift, window_stride))
        return _Dataset(_gen_ops.sliding_window_dataset(dataset._variant, size, by, step, types, shapes), specs)

    return apply


def assert_element_shape(expected_shapes: Any) -> _Transformation:
    """The elements, which must have these shapes: what is known says so now, the rest in the step."""

    def apply(dataset: _Dataset) -> _Dataset:
        wanted = [_TensorShape(shape) for shape in _structure.flatten(expected_shapes)]
        merged = [known.merge_with(shape) for known, shape in zip(dataset._spec[1], wanted)]

        def checked(*parts: Any) -> Any:
            made = [_ensure_shape(tensor, shape) for tensor, shape in zip(_structure.flatten(parts), merged)]
            return _structure.pack(dataset.element_spec, made)

        return dataset.map(checked)

    return apply


def reduce_dataset(dataset: _Dataset, reducer: Reducer) -> Any:
    """The state of a reducer behind all elements, as Dataset.reduce gives it."""
    if not isinstance(dataset, _Dataset):
        raise _at_user_line(TypeError("`dataset` must be a `tf.data.Dataset` object."))
    return dataset.reduce(reducer.init_func(_np.int64(0)), reducer.reduce_func)


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Dict[str, Any],
    reader: Any = _TFRecordDataset,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: _Optional[int] = None,
    capacity: int = 10000,
) -> Any:
    """The next batch of make_batched_features_dataset, from an iterator that needs no initializer."""
    batches = make_batched_features_dataset(
        file_pattern, batch_size, features, reader=reader, reader_args=reader_args, num_epochs=num_epochs, shuffle=randomize_input, shuffle_buffer_size=capacity
    )
    return batches.make_one_shot_iterator().get_next()
