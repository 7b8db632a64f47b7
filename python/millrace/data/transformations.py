# SPDX-License-Identifier: Apache-2.0
"""Functions for Dataset.apply that make other elements of those of a data set, and what gives its only element."""

from __future__ import annotations

from typing import Any, Callable

from millrace.data import components, structure
from millrace.data.dataset import Dataset
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.framework.tensor_shape import TensorShape, unknown_shape
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops

_Transformation = Callable[[Dataset], Dataset]


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


def unbatch() -> _Transformation:
    """The rows of each element."""
    return lambda dataset: dataset.flat_map(lambda *parts: Dataset.from_tensor_slices(structure.pack(dataset.element_spec, structure.flatten(parts))))


def enumerate_dataset(start: Any = 0) -> _Transformation:
    """Pairs of a number and an element."""
    return lambda dataset: Dataset.zip((Dataset.range(start, 2**63 - 1), dataset))


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> _Transformation:
    """Batches of tensors of several sizes as sparse tensors, each [rows] + row_shape: None there is the largest size of the batch."""
    wanted = TensorShape(row_shape)

    def apply(dataset: Dataset) -> Dataset:
        if not isinstance(dataset.output_types, dtypes.DType):
            raise at_user_line(TypeError("dense_to_sparse_batch needs elements of a single component, got %r" % (dataset.output_types,)))

        def flagged(row: Tensor) -> Any:
            if row.shape.ndims is None:
                fits = control_flow_ops.Assert(
                    math_ops.equal(array_ops.rank(row), wanted.ndims), ["incompatible with the row shape: an element of shape", array_ops.shape(row)]
                )
                with control_dependencies([fits]):
                    row = array_ops.identity(row)
                row.set_shape(unknown_shape(wanted.ndims))
            return row, array_ops.ones_like(row, dtypes.bool)

        def sparse(rows: Tensor, there: Tensor) -> SparseTensor:
            where = array_ops.where(there)
            return SparseTensor(where, array_ops.gather_nd(rows, where), array_ops.shape(rows, out_type=dtypes.int64))

        return dataset.map(flagged).padded_batch(batch_size, (wanted, wanted)).map(sparse)

    return apply


def get_single_element(dataset: Dataset) -> Any:
    """The only element of a data set."""
    if not isinstance(dataset, Dataset):
        raise at_user_line(TypeError("`dataset` must be a `tf.data.Dataset` object."))
    made = gen_ops.dataset_to_single_element(dataset._variant, *dataset._spec)
    return components.element(made, dataset.element_spec)
