# SPDX-License-Identifier: Apache-2.0
"""Functions of sparse tensors."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue, convert_to_tensor_or_sparse_tensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, colocate_with, name_scope
from millrace.ops import array_ops, gen_ops, math_ops

__all__ = [
    "sparse_to_dense",
    "sparse_tensor_to_dense",
    "sparse_tensor_dense_matmul",
    "sparse_reorder",
    "sparse_retain",
    "sparse_to_indicator",
    "sparse_transpose",
    "sparse_merge",
    "edit_distance",
]


def _sparse(value: Any) -> SparseTensor:
    found = convert_to_tensor_or_sparse_tensor(value)
    if not isinstance(found, SparseTensor):
        raise TypeError("Input must be a SparseTensor, got %s." % (value,))
    return found


def sparse_to_dense(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0, validate_indices: bool = True, name: Optional[str] = None
) -> Tensor:
    """default_value everywhere but at the indices, where the values are."""
    values = convert_to_tensor(sparse_values)
    indices = convert_to_tensor(sparse_indices)
    shape = convert_to_tensor(output_shape)
    if shape.dtype.base_dtype != indices.dtype.base_dtype:
        shape = math_ops.cast(shape, indices.dtype.base_dtype)
    if default_value == 0 and not isinstance(default_value, Tensor) and values.dtype.base_dtype == dtypes.string:
        default_value = ""
    return gen_ops.sparse_to_dense(
        indices, shape, values, convert_to_tensor(default_value, values.dtype.base_dtype), validate_indices=validate_indices, name=name
    )


def add_sparse_to_tensors_map(sp_input: Any, container: Optional[str] = None, shared_name: Optional[str] = None, name: Optional[str] = None) -> Tensor:
    """Keeps a sparse tensor in a map of the session; its number there, for take_many_sparse_from_tensors_map."""
    sp_input = _sparse(sp_input)
    return gen_ops.add_sparse_to_tensors_map(
        sp_input.indices, sp_input.values, sp_input.dense_shape, container=container or "", shared_name=shared_name or "", name=name
    )


def add_many_sparse_to_tensors_map(sp_input: Any, container: Optional[str] = None, shared_name: Optional[str] = None, name: Optional[str] = None) -> Tensor:
    """Keeps each row of a sparse tensor; their numbers, a vector."""
    sp_input = _sparse(sp_input)
    return gen_ops.add_many_sparse_to_tensors_map(
        sp_input.indices, sp_input.values, sp_input.dense_shape, container=container or "", shared_name=shared_name or "", name=name
    )


def take_many_sparse_from_tensors_map(sparse_map_op: Any, sparse_handles: Any, rank: Optional[int] = None, name: Optional[str] = None) -> SparseTensor:
    """The sparse tensors of these numbers, one below the other, out of the map of the operation that kept them."""
    if not isinstance(sparse_map_op, Operation):
        raise at_user_line(TypeError("sparse_map_op be an Operation"))
    if sparse_map_op.type not in ("AddSparseToTensorsMap", "AddManySparseToTensorsMap"):
        raise at_user_line(TypeError("sparse_map_op must be one of AddSparseToTensorsMap or AddSparseToTensorsMap. Instead, found `%s`." % sparse_map_op.type))
    with colocate_with(sparse_map_op):
        shared_name = sparse_map_op.get_attr("shared_name") or sparse_map_op.name
        indices, values, shape = gen_ops.take_many_sparse_from_tensors_map(
            sparse_handles, dtype=sparse_map_op.get_attr("T"), container=sparse_map_op.get_attr("container"), shared_name=shared_name, name=name
        )
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)


_add_sparse_to_tensors_map, _add_many_sparse_to_tensors_map = add_sparse_to_tensors_map, add_many_sparse_to_tensors_map
_take_many_sparse_from_tensors_map = take_many_sparse_from_tensors_map


def sparse_tensor_to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: Optional[str] = None) -> Tensor:
    """A sparse tensor as a dense one."""
    sp_input = _sparse(sp_input)
    if default_value is None:
        default_value = "" if sp_input.dtype.base_dtype == dtypes.string else False if sp_input.dtype.base_dtype == dtypes.bool_ else 0
    return sparse_to_dense(sp_input.indices, sp_input.dense_shape, sp_input.values, default_value, validate_indices, name)


def sparse_tensor_dense_matmul(sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: Optional[str] = None) -> Tensor:
    """The product of a sparse and a dense matrix."""
    sp_a = _sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [sp_a.indices, sp_a.values, b]) as scope:
        return gen_ops.sparse_tensor_dense_mat_mul(
            sp_a.indices, sp_a.values, sp_a.dense_shape, convert_to_tensor(b, sp_a.dtype.base_dtype), adjoint_a=adjoint_a, adjoint_b=adjoint_b, name=scope
        )


def sparse_reorder(sp_input: Any, name: Optional[str] = None) -> SparseTensor:
    """The same entries in row-major order."""
    sp_input = _sparse(sp_input)
    indices, values = gen_ops.sparse_reorder(sp_input.indices, sp_input.values, sp_input.dense_shape, name=name)
    return SparseTensor(indices, values, array_ops.identity(sp_input.dense_shape))


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The entries whose flag is set."""
    sp_input, to_retain = _sparse(sp_input), convert_to_tensor(to_retain, dtypes.bool_)
    to_retain.get_shape().assert_has_rank(1)
    sp_input.values.get_shape()[0].merge_with(to_retain.get_shape()[0])
    kept = array_ops.reshape(array_ops.where(convert_to_tensor(to_retain, dtypes.bool_)), [-1])
    return SparseTensor(array_ops.gather(sp_input.indices, kept), array_ops.gather(sp_input.values, kept), array_ops.identity(sp_input.dense_shape))


def sparse_transpose(sp_input: Any, perm: Any = None, name: Optional[str] = None) -> SparseTensor:
    """The dimensions in another order (reversed unless perm says)."""
    sp_input = _sparse(sp_input)
    with name_scope(name, "SparseTranspose", [sp_input.indices]) as scope:
        rank = sp_input.indices.get_shape()[1].value if perm is None else None
        if perm is None:
            perm = list(range(rank))[::-1] if rank is not None else math_ops.range(array_ops.size(sp_input.dense_shape) - 1, -1, -1)
        indices = array_ops.gather(sp_input.indices, perm, axis=1)
        return sparse_reorder(SparseTensor(indices, sp_input.values, array_ops.gather(sp_input.dense_shape, perm)), name=scope)


def sparse_to_indicator(sp_input: Any, vocab_size: int, name: Optional[str] = None) -> Tensor:
    """For each row of integer entries, which of [0, vocab_size) occur: the last dimension is replaced."""
    sp_input = _sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [sp_input.indices]) as scope:
        rank = sp_input.indices.get_shape()[1].value
        if rank is None:
            raise ValueError("sparse_to_indicator needs a sparse tensor of known rank, got indices of shape %s" % sp_input.indices.get_shape())
        rows = sp_input.indices[:, : rank - 1]
        at = array_ops.concat([rows, array_ops.expand_dims(math_ops.cast(sp_input.values, dtypes.int64), 1)], 1)
        shape = array_ops.concat([sp_input.dense_shape[: rank - 1], [vocab_size]], 0)
        return sparse_to_dense(at, shape, True, False, False, name=scope)


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """The Levenshtein distance between sequences along the last dimension of sparse tensors."""
    hypothesis, truth = _sparse(hypothesis), _sparse(truth)
    return gen_ops.edit_distance(
        hypothesis.indices, hypothesis.values, hypothesis.dense_shape, truth.indices, truth.values, truth.dense_shape, normalize=normalize, name=name
    )


def sparse_merge(sp_ids: Any, sp_values: Any, vocab_size: Any, name: Optional[str] = None, already_sorted: bool = False) -> SparseTensor:
    """Sparse values at the places that sparse ids say: the last index of each is its id, below vocab_size."""
    ids = list(sp_ids) if isinstance(sp_ids, (list, tuple)) and not isinstance(sp_ids, SparseTensorValue) else [sp_ids]
    sizes = list(vocab_size) if isinstance(vocab_size, (list, tuple)) else [vocab_size]
    if len(ids) != len(sizes):
        raise at_user_line(ValueError("sp_ids and vocab_size have to have equal lengths."))
    ids, sp_values = [_sparse(i) for i in ids], _sparse(sp_values)
    with name_scope(name, "SparseMerge", [sp_values]):
        columns = [array_ops.expand_dims(gen_ops.cast(i.values, DstT=dtypes.int64), 1) for i in ids]
        indices = array_ops.concat([ids[0].indices[:, :-1], *columns], 1)
        shape = array_ops.concat([ids[0].dense_shape[:-1], array_ops.stack([convert_to_tensor(s, dtypes.int64) for s in sizes])], 0)
        merged = SparseTensor(indices, sp_values.values, shape)
        return merged if already_sorted else sparse_reorder(merged)


_DEFAULT_HASH_KEY = 0xDECAFCAFFE


def crossed_columns(inputs: Any) -> Tuple[List[Any], List[Tensor], Any]:
    """What crosses take: the sparse columns as (indices, values, shape), the dense ones, and what texts or numbers are hashed as."""
    if not isinstance(inputs, list):
        raise at_user_line(TypeError("Inputs must be a list"))
    if not all(isinstance(i, (SparseTensor, Tensor)) for i in inputs):
        raise at_user_line(TypeError("All inputs must be SparseTensors or tensors"))
    sparse, dense = [i for i in inputs if isinstance(i, SparseTensor)], [i for i in inputs if isinstance(i, Tensor)]
    internal = dtypes.string

    def as_wanted(values: Tensor) -> Tensor:
        nonlocal internal
        if values.dtype.base_dtype == dtypes.string:
            return values
        internal = dtypes.int64
        return math_ops.cast(values, dtypes.int64)

    columns = [(i.indices, as_wanted(i.values), i.dense_shape) for i in sparse]
    dense = [as_wanted(d) for d in dense]
    return columns, dense, internal


def _crossed(inputs: Any, hashed: bool, num_buckets: int, hash_key: Any, name: Optional[str]) -> SparseTensor:
    columns, dense, internal = crossed_columns(inputs)
    indices, values, shapes = ([c[part] for c in columns] for part in range(3))
    made = gen_ops.sparse_cross(
        indices,
        values,
        shapes,
        dense,
        hashed,
        num_buckets,
        _DEFAULT_HASH_KEY if hash_key is None else hash_key,
        dtypes.int64 if hashed else dtypes.string,
        internal,
        name=name,
    )
    return SparseTensor(*made)


def sparse_cross(inputs: Any, name: Optional[str] = None) -> SparseTensor:
    """Of each row all combinations of one entry of each input, as texts joined by _X_."""
    return _crossed(inputs, False, 0, None, name)


def sparse_cross_hashed(inputs: Any, num_buckets: int = 0, hash_key: Optional[int] = None, name: Optional[str] = None) -> SparseTensor:
    """sparse_cross with numbers below num_buckets (any, where that is 0) for the combinations, by TensorFlow's hash."""
    return _crossed(inputs, True, num_buckets, hash_key, name)


_sparse_cross, _sparse_cross_hashed = sparse_cross, sparse_cross_hashed


def _truediv(indices: Tensor, values: Tensor, shape: Tensor, dense: Tensor, name: Optional[str] = None) -> Tensor:
    if values.dtype.base_dtype.is_integer:
        kind = dtypes.float32 if values.dtype.base_dtype.size <= 2 else dtypes.float64
        values, dense = math_ops.cast(values, kind), math_ops.cast(dense, kind)
    return gen_ops.sparse_dense_cwise_div(indices, values, shape, dense, name=name)


def _with_dense(op: Any, name: str) -> Any:
    def operate(sparse: SparseTensor, dense: Any) -> Any:
        if isinstance(dense, SparseTensor):
            return NotImplemented
        with name_scope(None, name, [sparse.values, dense]) as scope:
            dense = convert_to_tensor(dense, sparse.dtype.base_dtype, "y")
            return SparseTensor(sparse.indices, op(sparse.indices, sparse.values, sparse.dense_shape, dense, name=scope), sparse.dense_shape)

    return operate


sparse_dense_cwise_add = _with_dense(gen_ops.sparse_dense_cwise_add, "add")
sparse_dense_cwise_add.__doc__ = "The stored elements of a SparseTensor plus those of a dense one, which is broadcast, at their places."

for _method, _op, _scope in (
    ("__mul__", gen_ops.sparse_dense_cwise_mul, "mul"),
    ("__rmul__", gen_ops.sparse_dense_cwise_mul, "mul"),
    ("__truediv__", _truediv, "truediv"),
    ("__div__", gen_ops.sparse_dense_cwise_div, "div"),
):
    setattr(SparseTensor, _method, _with_dense(_op, _scope))
SparseTensor.__array_priority__ = 100  # type: ignore[attr-defined]
