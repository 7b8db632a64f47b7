# SPDX-License-Identifier: Apache-2.0
"""Rows of tables by sparse ids, some of which may be missing."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops, sparse_math_ops, sparse_ops
from millrace.ops.variables import PartitionedVariable


def _type_of(table: Any) -> Any:
    return dtypes.as_dtype(table.dtype).base_dtype if hasattr(table, "dtype") else convert_to_tensor(table).dtype.base_dtype


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: Optional[str] = None,
    default_id: Optional[int] = None,
    name: Optional[str] = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """embedding_lookup_sparse of any rank that leaves out ids below zero and weights that are not above it. Of a row without ids it
    gives zeros, or what default_id names."""
    combiner = combiner or "mean"
    tables = list(embedding_weights) if isinstance(embedding_weights, (list, tuple, PartitionedVariable)) else [embedding_weights]
    kinds = {_type_of(t) for t in tables}
    if len(kinds) > 1:
        raise at_user_line(TypeError("embedding_weights must be of one type, got %s" % sorted(k.name for k in kinds)))
    kinds |= {sparse_weights.dtype.base_dtype} if sparse_weights is not None else set()
    if len(kinds) > 1:
        raise at_user_line(ValueError("embedding_weights and sparse_weights must be of one type, got %s" % sorted(k.name for k in kinds)))
    with name_scope(name, "embedding_lookup", [sparse_ids.values]) as scope:
        shape = convert_to_tensor(sparse_ids.dense_shape)
        known = shape.get_shape()[0].value if shape.get_shape().ndims == 1 else None
        last: Any = (array_ops.size(shape) if known is None else known) - 1
        rows = math_ops.reduce_prod(array_ops.slice(shape, [0], [last]))
        ids = sparse_math_ops.sparse_reshape(sparse_ids, [rows, array_ops.gather(shape, last)])
        weights = None if sparse_weights is None else SparseTensor(ids.indices, sparse_weights.values, ids.dense_shape)
        keep = gen_ops.greater_equal(ids.values, 0)
        if weights is not None:
            keep = gen_ops.logical_and(keep, array_ops.ones_like(weights.values, dtypes.bool))  # an error where there are not as many weights as ids
        ids = sparse_ops.sparse_retain(ids, keep)
        weights = None if weights is None else sparse_ops.sparse_retain(weights, keep)
        if weights is not None and combiner != "sum":
            keep = gen_ops.greater(weights.values, 0)
            ids, weights = (sparse_ops.sparse_retain(part, keep) for part in (ids, weights))
        ids, is_empty = sparse_math_ops.sparse_fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_math_ops.sparse_fill_empty_rows(weights, 1.0)
        made = nn_ops.embedding_lookup_sparse(tables, ids, weights, partition_strategy, combiner=combiner, max_norm=max_norm)
        width = made.get_shape()[1:]
        if default_id is None:  # their gradient is a row of zeros
            if width.ndims in (None, 1):
                is_empty = gen_ops.tile(array_ops.reshape(is_empty, [-1, 1]), array_ops.stack([1, array_ops.shape(made)[1]]))
            made = array_ops.where(is_empty, array_ops.zeros_like(made), made, name=scope)
        lead = array_ops.slice(math_ops.cast(shape, dtypes.int32), [0], [last])
        made = array_ops.reshape(made, array_ops.concat([lead, array_ops.slice(array_ops.shape(made), [1], [-1])], 0))
        made.set_shape(TensorShape([None] * ((known or 2) - 1)).concatenate(width))
        return made


def safe_embedding_lookup_sparse_v2(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Optional[int] = None,
    max_norm: Any = None,
    name: Optional[str] = None,
) -> Tensor:
    """safe_embedding_lookup_sparse with the arguments of TensorFlow 2."""
    return safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, "div", max_norm)


def embedding_lookup_and_transform(
    params: Any, ids: Any, partition_strategy: str = "mod", name: Optional[str] = None, max_norm: Any = None, transform_fn: Any = None
) -> Tensor:
    """embedding_lookup of rows that a function, which gets them as [ids, d...], has changed.

    Shapes: params [rows, d...], ids [i...], what the function gives [ids, e...] -> [i..., e...].
    """
    if transform_fn is None:
        return nn_ops.embedding_lookup(params, ids, partition_strategy, name, max_norm=max_norm)
    with name_scope(name, "embedding_lookup", [ids]) as scope:
        ids = convert_to_tensor(ids, name="ids")
        changed = transform_fn(nn_ops.embedding_lookup(params, array_ops.reshape(ids, [-1]), partition_strategy, max_norm=max_norm))
        made = array_ops.reshape(changed, array_ops.concat([array_ops.shape(ids), array_ops.shape(changed)[1:]], 0), scope)
        made.set_shape(ids.get_shape().concatenate(changed.get_shape()[1:]))
        return made
