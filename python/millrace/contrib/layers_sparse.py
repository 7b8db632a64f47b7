# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers' sparse_ops: dense tensors as sparse ones, and combinations of features."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.sparse_ops import crossed_columns

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE


def _ignored(dtype: Any, ignore_value: Any) -> Tensor:
    if ignore_value is None:
        ignore_value = "" if dtype == dtypes.string else array_ops.zeros([], dtype)
    return convert_to_tensor(ignore_value, dtype, "ignore_value")


def dense_to_sparse_tensor(dense_tensor: Any, ignore_value: Any = None) -> SparseTensor:
    """The elements that are not `ignore_value` (0, or the empty text)."""
    with name_scope("DenseToSparseTensor"):
        dense = convert_to_tensor(dense_tensor)
        indices = array_ops.where(gen_ops.not_equal(dense, _ignored(dense.dtype, ignore_value)), name="indices")
        return SparseTensor(indices, gen_ops.gather_nd(dense, indices, name="values"), array_ops.shape(dense, out_type=dtypes.int64, name="dense_shape"))


def indicators_to_sparse_ids(indicators: Any, ignore_value: Any = None, dtype: Any = dtypes.int64) -> SparseTensor:
    """The numbers of the classes that indicators [..., classes] have, side by side in each row."""
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer:
        raise at_user_line(ValueError("Invalid dtype %s not integer." % dtype))
    with name_scope(None, "indicators_to_sparse_ids", [indicators]):
        indicators = convert_to_tensor(indicators, name="indicators")
        there = gen_ops.cast(gen_ops.not_equal(indicators, _ignored(indicators.dtype, ignore_value)), dtypes.int64)
        counted = there * gen_ops.cumsum(there, -1)  # 1 for the first that is there
        sparse = dense_to_sparse_tensor(counted)
        return SparseTensor(
            array_ops.concat([sparse.indices[:, :-1], array_ops.expand_dims(sparse.values - 1, 1)], 1),
            gen_ops.cast(sparse.indices[:, -1], dtype),
            array_ops.concat([sparse.dense_shape[:-1], array_ops.reshape(math_ops.reduce_max(counted), [1])], 0),
        )


def sparse_row_envelope(sparse_input: Any, row_axis: int = 0, col_axis: int = 1, name: Optional[str] = None) -> Tensor:
    """For each row one more than the last column that is there; 0 for empty rows."""
    if not all(isinstance(axis, int) for axis in (row_axis, col_axis)):
        raise at_user_line(ValueError("`row_axis` and `col_axis` must be integers."))
    if row_axis == col_axis:
        raise at_user_line(ValueError("Row and column can not be the same axis."))
    with name_scope(name, "sparse_row_envelope"):
        rows = gen_ops.cast(sparse_input.dense_shape[row_axis], dtypes.int32)
        ends = gen_ops.unsorted_segment_max(sparse_input.indices[:, col_axis] + 1, sparse_input.indices[:, row_axis], rows)
        return gen_ops.maximum(ends, array_ops.zeros_like(ends))


def sparse_feature_cross(
    inputs: Any, hashed_output: bool = False, num_buckets: int = 0, name: Optional[str] = None, hash_key: Optional[int] = None
) -> SparseTensor:
    """Of each row all combinations of one entry of each input, as texts, or as numbers by the hash of a key (None: by TensorFlow's first hash)."""
    columns, dense, internal = crossed_columns(inputs)
    indices, values, shapes = ([c[part] for c in columns] for part in range(3))
    out = dtypes.int64 if hashed_output else dtypes.string
    if hash_key is None:
        return SparseTensor(*gen_ops.sparse_feature_cross(indices, values, shapes, dense, hashed_output, num_buckets, out, internal, name=name))
    return SparseTensor(*gen_ops.sparse_feature_cross_v2(indices, values, shapes, dense, hashed_output, num_buckets, hash_key, out, internal, name=name))
