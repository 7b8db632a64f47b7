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
from millrace.ops.sparse_ops import sparse_cross, sparse_cross_hashed

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


def _hashes_of(values: Tensor) -> Tensor:
    """Integers as they are, texts by their fingerprints."""
    if values.dtype.base_dtype != dtypes.string:
        return gen_ops.cast(values, dtypes.int64)
    return gen_ops.bitcast(gen_ops.fingerprint(values, "farmhash64"), dtypes.int64)


def _unsigned_remainder(x: Tensor, divisor: int) -> Tensor:
    """Of 64 bits without a sign, in the arithmetic of those with one."""
    largest = 2**63 - 1
    rest, top = gen_ops.bitwise_and(x, largest), gen_ops.bitwise_and(gen_ops.right_shift(x, 63), 1)
    if divisor == largest:  # of which 2^63 is one more
        return gen_ops.floor_mod(gen_ops.floor_mod(rest, largest) + top, largest)
    half = gen_ops.bitwise_and(gen_ops.right_shift(x, 1), largest)
    return gen_ops.floor_mod(gen_ops.floor_mod(half, divisor) * 2 + gen_ops.bitwise_and(x, 1), divisor)


def _crossed_by_first_hash(inputs: Any, num_buckets: int, name: Optional[str]) -> SparseTensor:
    """Combinations numbered by h = h ^ (next + 0x9e3779b97f4a7800 + (h << 10) + (h >> 4)), as TensorFlow's core/lib/hash has it.

    Which entries combine is asked of sparse_cross, by their places.
    """
    if not 0 <= num_buckets <= 2**62:
        raise at_user_line(ValueError("num_buckets must be from 0 to 2**62, got %d" % num_buckets))
    with name_scope(name, "SparseFeatureCross"):
        columns = [i for i in inputs if isinstance(i, SparseTensor)] + [i for i in inputs if not isinstance(i, SparseTensor)]
        hashes = [_hashes_of(array_ops.reshape(c.values if isinstance(c, SparseTensor) else convert_to_tensor(c), [-1])) for c in columns]
        counts = [array_ops.reshape(gen_ops.range(0, array_ops.size(h), 1), [-1]) for h in hashes]
        crosses = sparse_cross(
            [
                SparseTensor(c.indices, n, c.dense_shape) if isinstance(c, SparseTensor) else array_ops.reshape(n, array_ops.shape(c))
                for c, n in zip(columns, counts)
            ]
        )
        parts = gen_ops.string_split(crosses.values, "_X")[1]
        places = array_ops.reshape(gen_ops.string_to_number(parts, dtypes.int32), [-1, len(columns)])
        mixed: Any = convert_to_tensor(SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY, dtypes.int64)
        for k, values in enumerate(hashes):
            found = array_ops.gather(values, places[:, k])
            mixed = gen_ops.bitwise_xor(
                gen_ops.add(mixed, array_ops.zeros_like(found)),
                found + (0x9E3779B97F4A7800 - 2**64) + gen_ops.left_shift(mixed, 10) + gen_ops.right_shift(mixed, 4),
            )
        return SparseTensor(crosses.indices, _unsigned_remainder(mixed, num_buckets or 2**63 - 1), crosses.dense_shape)


def sparse_feature_cross(
    inputs: Any, hashed_output: bool = False, num_buckets: int = 0, name: Optional[str] = None, hash_key: Optional[int] = None
) -> SparseTensor:
    """Of each row all combinations of one entry of each input, as texts, or as numbers by the hash of a key."""
    if not hashed_output:
        return sparse_cross(inputs, name)
    if hash_key is None:
        return _crossed_by_first_hash(inputs, num_buckets, name)
    return sparse_cross_hashed(inputs, num_buckets, hash_key, name)
