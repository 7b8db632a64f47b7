# SPDX-License-Identifier: Apache-2.0
"""Functions for Dataset.apply that make other elements of those of a data set, and what gives its only element."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from millrace.data import components, structure
from millrace.data.dataset import Dataset, _dataset, _int64
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import RaggedTensorSpec, SparseTensorSpec, TensorSpec
from millrace.ops import gen_ops

_BUFFERED = 64  # fewer of large elements, see the kernel
_Transformation = Callable[[Dataset], Dataset]


def map_and_batch(
    map_func: Any, batch_size: Any, num_parallel_batches: Any = None, drop_remainder: bool = False, num_parallel_calls: Any = None
) -> _Transformation:
    """map, then batch. An element that fails is one of its batch, which fails with it; the others are as they would have been."""
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise at_user_line(ValueError("The `num_parallel_batches` and `num_parallel_calls` arguments are mutually exclusive."))
    size = _int64(batch_size)
    calls = _int64(num_parallel_calls) if num_parallel_calls is not None else size * _int64(num_parallel_batches or 1)

    def apply(dataset: Dataset) -> Dataset:
        f = dataset._function(map_func, "Dataset_map", components.returned)
        mapped = components.specs_of(f.returned)
        if any(isinstance(s, RaggedTensorSpec) for s in structure.flatten(mapped)):
            return dataset.map(map_func, num_parallel_calls=num_parallel_calls).batch(batch_size, drop_remainder=drop_remainder)
        rows = int(batch_size) if drop_remainder is True and isinstance(batch_size, (int, np.integer)) else None
        specs = structure.mapped(lambda s: components.batched(s, rows), mapped)
        types, shapes = components.flat(specs)
        variant = gen_ops.map_and_batch_dataset(dataset._variant, f.captured, size, calls, drop_remainder, f.name, types, shapes, preserve_cardinality=True)
        return Dataset(variant, specs)

    return apply


def parallel_interleave(
    map_func: Any, cycle_length: Any, block_length: Any = 1, sloppy: Any = False, buffer_output_elements: Any = None, prefetch_input_elements: Any = None
) -> _Transformation:
    """interleave, with a thread for each of the data sets that are read at once; each makes up to buffer_output_elements ahead, and
    prefetch_input_elements more of them begin before their turn. `sloppy` takes elements in whatever order they come."""
    cycle, block = _int64(cycle_length), _int64(block_length)
    buffered = _int64(_BUFFERED if buffer_output_elements is None else buffer_output_elements)
    ahead = _int64(2 * cycle if prefetch_input_elements is None else prefetch_input_elements)

    def apply(dataset: Dataset) -> Dataset:
        f = dataset._function(map_func, "Dataset_interleave", _dataset)
        made: Dataset = f.returned
        return made._same(gen_ops.parallel_interleave_dataset(dataset._variant, f.captured, cycle, block, sloppy, buffered, ahead, f.name, *made._spec))

    return apply


def unbatch() -> _Transformation:
    """The rows of each element."""
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start: Any = 0) -> _Transformation:
    """Pairs of a number and an element."""
    return lambda dataset: Dataset.zip((Dataset.range(start, 2**63 - 1), dataset))


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> _Transformation:
    """Batches of tensors of several sizes as sparse tensors, each [rows] + row_shape: None there is the largest size of the batch."""
    wanted = TensorShape(row_shape)

    def apply(dataset: Dataset) -> Dataset:
        if not isinstance(dataset.element_spec, TensorSpec):
            raise at_user_line(TypeError("dense_to_sparse_batch needs elements of a single component, got %r" % (dataset.output_types,)))
        spec = SparseTensorSpec(TensorShape([None]).concatenate(wanted), dataset.output_types)
        sizes = np.array([-1 if size is None else size for size in wanted.as_list()], np.int64)
        return Dataset(gen_ops.dense_to_sparse_batch_dataset(dataset._variant, _int64(batch_size), sizes, *components.flat(spec)), spec)

    return apply


def get_single_element(dataset: Dataset) -> Any:
    """The only element of a data set."""
    if not isinstance(dataset, Dataset):
        raise at_user_line(TypeError("`dataset` must be a `tf.data.Dataset` object."))
    made = gen_ops.dataset_to_single_element(dataset._variant, *dataset._spec)
    return components.element(made, dataset.element_spec)
