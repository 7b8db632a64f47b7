# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.data: functions for Dataset.apply, and tf.data under its older name."""

from typing import Any, Callable

from millrace.data import *  # noqa: F403
from millrace.data import Dataset
from millrace.data import components as _components
from millrace.data import structure as _structure
from millrace.framework.errors import at_user_line as _at_user_line
from millrace.framework.tensor_shape import TensorShape as _TensorShape
from millrace.ops import gen_ops as _gen_ops
from millrace.ops.block_ops import ensure_shape as _ensure_shape

from millrace.data.grouping import (  # noqa: F401
    Reducer,
    bucket_by_sequence_length,
    choose_from_datasets,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    unique,
)

_Transformation = Callable[[Dataset], Dataset]
AUTOTUNE = -1


def batch_and_drop_remainder(batch_size: Any) -> _Transformation:
    """Batches of one size; what is left over is left out."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> _Transformation:
    """padded_batch of one size; what is left over is left out."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def map_and_batch(
    map_func: Any, batch_size: Any, num_parallel_batches: Any = None, drop_remainder: bool = False, num_parallel_calls: Any = None
) -> _Transformation:
    """map, then batch."""
    calls = num_parallel_calls
    if calls is None and isinstance(batch_size, int):
        calls = batch_size * (num_parallel_batches or 1)
    return lambda dataset: dataset.map(map_func, num_parallel_calls=calls).batch(batch_size, drop_remainder=drop_remainder)


def parallel_interleave(
    map_func: Any, cycle_length: Any, block_length: Any = 1, sloppy: Any = False, buffer_output_elements: Any = None, prefetch_input_elements: Any = None
) -> _Transformation:
    """interleave, in that order."""
    del sloppy, buffer_output_elements, prefetch_input_elements  # hints: the order is the same with any
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


sloppy_interleave = parallel_interleave


def unbatch() -> _Transformation:
    """The rows of each element."""
    return lambda dataset: dataset.flat_map(lambda *parts: Dataset.from_tensor_slices(_structure.pack(dataset.element_spec, _structure.flatten(parts))))


def sliding_window_batch(window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1) -> _Transformation:
    """Batches of window_size elements, window_stride apart; each begins window_shift (`stride` is its older name, 1) elements behind the one before it."""
    if stride is not None and window_shift is not None:
        raise _at_user_line(ValueError("Cannot specify both `stride` and `window_shift`"))
    shift = 1 if stride is None and window_shift is None else window_shift if stride is None else stride

    def apply(dataset: Dataset) -> Dataset:
        def batched(*window: Any) -> Any:
            parts = [part.batch(window_size, drop_remainder=True) for part in _structure.flatten(window)]
            return Dataset.zip(_structure.pack(dataset.element_spec, parts)) if len(parts) > 1 else parts[0]

        return dataset.window(window_size, shift, window_stride, drop_remainder=True).flat_map(batched)

    return apply


def assert_element_shape(expected_shapes: Any) -> _Transformation:
    """The elements, which must have these shapes: what is known says so now, the rest in the step."""

    def apply(dataset: Dataset) -> Dataset:
        wanted = [_TensorShape(shape) for shape in _structure.flatten(expected_shapes)]
        merged = [known.merge_with(shape) for known, shape in zip(dataset._spec[1], wanted)]

        def checked(*parts: Any) -> Any:
            made = [_ensure_shape(tensor, shape) for tensor, shape in zip(_structure.flatten(parts), merged)]
            return _structure.pack(dataset.element_spec, made)

        return dataset.map(checked)

    return apply


def enumerate_dataset(start: Any = 0) -> _Transformation:
    """Pairs of a number and an element."""
    return lambda dataset: Dataset.zip((Dataset.range(start, 2**63 - 1), dataset))


def get_single_element(dataset: Dataset) -> Any:
    """The only element of a data set."""
    made = _gen_ops.dataset_to_single_element(dataset._variant, *dataset._spec)
    return _components.element(made, dataset.element_spec)
