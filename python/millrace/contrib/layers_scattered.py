# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.embedding_ops: rows whose elements lie scattered over a vector, where a hash of value and column says."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib.layers_sparse import sparse_feature_cross
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.sparse_math_ops import sparse_fill_empty_rows
from millrace.ops.sparse_ops import sparse_tensor_to_dense
from millrace.ops.variables import PartitionedVariable


def _parts(params: Any) -> Any:
    return list(params) if isinstance(params, (PartitionedVariable, list, tuple)) else [params]


def _size(parts: Any) -> int:
    """The elements of all parts, which must be split evenly."""
    sizes: Any = [p.get_shape()[0].value if p.get_shape().ndims == 1 else None for p in parts]
    if None in sizes:
        raise at_user_line(ValueError("params must be vectors of known size, got shapes %s" % [str(p.get_shape()) for p in parts]))
    for i, size in enumerate(sizes):
        wanted = (sum(sizes) - i - 1) // len(parts) + 1
        if size != wanted:
            raise at_user_line(ValueError("Tensor %d in params has size %d, expected %d." % (i, size, wanted)))
    return int(sum(sizes))


def _sampled_scattered_embedding_lookup(
    params: Any, values: Any, dimension: Optional[int] = None, sampled_candidates: Any = None, hash_key: Optional[int] = None, name: Optional[str] = None
) -> Any:
    """[values..., dimension] elements of params: of columns 0 to dimension - 1, or of those that sampled_candidates [values..., columns] lists."""
    parts, values = [p if hasattr(p, "get_shape") else convert_to_tensor(p) for p in _parts(params)], convert_to_tensor(values)
    total = _size(parts)
    with name_scope(name, "scattered_embedding_lookup", [values]):
        shape, flat = array_ops.shape(values), array_ops.reshape(values, [-1, 1])
        if sampled_candidates is None:
            if dimension is None:
                raise at_user_line(ValueError("You must specify either dimension or sampled_candidates."))
            if dimension <= 0:
                raise at_user_line(ValueError("Dimension must be >0. Given is %d" % dimension))
            columns, width = gen_ops.tile(array_ops.expand_dims(math_ops.range(dimension), 0), array_ops.shape(flat)), convert_to_tensor(dimension)
        else:
            columns = convert_to_tensor(sampled_candidates)
            width = array_ops.shape(columns)[-1]
            fits = math_ops.reduce_all(gen_ops.equal(array_ops.shape(columns)[:-1], shape))
            said = ["The shape of sampled_candidates: ", array_ops.shape(columns), " does not match the shape of values: ", shape]
            with control_dependencies([control_flow_ops.Assert(fits, said)]):
                columns = array_ops.reshape(columns, array_ops.stack([-1, width]))
        ids = sparse_tensor_to_dense(sparse_feature_cross([columns, flat], hashed_output=True, num_buckets=total, hash_key=hash_key))
        found = nn_ops.embedding_lookup(parts, ids, partition_strategy="div")
        made = array_ops.reshape(found, array_ops.concat([shape, array_ops.expand_dims(width, 0)], 0))
        made.set_shape(values.get_shape().concatenate([dimension if sampled_candidates is None else None]))
        return made


def scattered_embedding_lookup(params: Any, values: Any, dimension: int, name: Optional[str] = None, hash_key: Optional[int] = None) -> Any:
    """[values..., dimension] elements of params, where the hash of a value and a column says."""
    if dimension is None:
        raise at_user_line(ValueError("You must specify dimension."))
    return _sampled_scattered_embedding_lookup(params, values, dimension, None, hash_key, name)


def scattered_embedding_lookup_sparse(
    params: Any,
    sparse_values: Any,
    dimension: int,
    combiner: Optional[str] = None,
    default_value: Any = None,
    name: Optional[str] = None,
    hash_key: Optional[int] = None,
) -> Any:
    """scattered_embedding_lookup of the values of each row, combined; empty rows have the default value."""
    if not isinstance(sparse_values, SparseTensor):
        raise at_user_line(TypeError("sparse_values must be SparseTensor"))
    combine = {"sum": gen_ops.sparse_segment_sum, "mean": gen_ops.sparse_segment_mean, "sqrtn": gen_ops.sparse_segment_sqrt_n}.get(combiner or "mean")
    if combine is None:
        raise at_user_line(ValueError("Combiner must be one of 'mean', 'sqrtn' or 'sum'."))
    with name_scope(name, "scattered_embedding_lookup_sparse") as scope:
        if default_value is None:
            default_value = "6ZxWzWOHxZ" if sparse_values.dtype == dtypes.string else 1288896567
        filled, _ = sparse_fill_empty_rows(sparse_values, default_value)
        values, places = gen_ops.unique(filled.values)
        rows = scattered_embedding_lookup(params, values, dimension, hash_key=hash_key)
        return combine(rows, places, math_ops.to_int32(filled.indices[:, 0]), name=scope)


def _sampled_scattered_embedding_lookup_sparse(
    params: Any,
    sp_values: Any,
    dimension: Optional[int] = None,
    sampled_candidates: Any = None,
    hash_key: Optional[int] = None,
    with_sign_hash: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The sum of the lookups of each row; with_sign_hash: each element times 1 or -1 by a second lookup."""
    if not isinstance(sp_values, SparseTensor):
        raise at_user_line(TypeError("sp_values must be SparseTensor"))
    with name_scope(name, "sampled_scattered_embedding_lookup_sparse") as scope:
        rows = sp_values.indices[:, 0]
        candidates = None if sampled_candidates is None else array_ops.gather(sampled_candidates, rows)
        found = _sampled_scattered_embedding_lookup(params, sp_values.values, dimension, candidates, hash_key, "values_lookup")
        if with_sign_hash:
            found = found * _sampled_scattered_embedding_lookup(
                convert_to_tensor([-1.0, 1.0]), sp_values.values, dimension, candidates, hash_key, "signs_lookup"
            )
        return gen_ops.unsorted_segment_sum(found, math_ops.to_int32(rows), math_ops.to_int32(sp_values.dense_shape[0]), name=scope)


def embedding_lookup_sparse_with_distributed_aggregation(
    params: Any, sp_ids: Any, sp_weights: Any, partition_strategy: str = "mod", name: Optional[str] = None, combiner: Optional[str] = None, max_norm: Any = None
) -> Any:
    """tf.nn.embedding_lookup_sparse; where its sums are made is the placement's choice."""
    return nn_ops.embedding_lookup_sparse(
        _parts(params), sp_ids, sp_weights, partition_strategy=partition_strategy, name=name, combiner=combiner or "mean", max_norm=max_norm
    )
