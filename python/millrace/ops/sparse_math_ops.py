# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and layout of sparse tensors."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.unique_names import snake
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.check_ops import assert_equal, assert_less_equal
from millrace.ops.dialects import bind, either, refuse

__all__ = [
    "deserialize_many_sparse",
    "serialize_many_sparse",
    "serialize_sparse",
    "sparse_add",
    "sparse_concat",
    "sparse_expand_dims",
    "sparse_fill_empty_rows",
    "sparse_maximum",
    "sparse_minimum",
    "sparse_reduce_max",
    "sparse_reduce_max_sparse",
    "sparse_reduce_sum",
    "sparse_reduce_sum_sparse",
    "sparse_reset_shape",
    "sparse_reshape",
    "sparse_slice",
    "sparse_softmax",
    "sparse_split",
]


def _sparse(value: Any) -> SparseTensor:
    found = convert_to_tensor_or_sparse_tensor(value)
    if not isinstance(found, SparseTensor):
        raise at_user_line(TypeError("Input must be a SparseTensor, got %s." % (value,)))
    return found


def _parts(sparse: SparseTensor) -> Tuple[Tensor, Tensor, Tensor]:
    return sparse.indices, sparse.values, sparse.dense_shape


def _rank(sparse: SparseTensor) -> int:
    for count in (sparse.dense_shape.get_shape().num_elements(), sparse.indices.get_shape()[1].value if sparse.indices.get_shape().ndims else None):
        if count is not None:
            return int(count)
    raise at_user_line(ValueError("the rank of the SparseTensor must be known: %s" % sparse))


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum: sparse where both are, else dense. Sums of two elements nearer to 0 than the threshold are left out of a sparse one."""
    threshold = either("threshold", threshold, "thresh", thresh, 0)
    a, b = convert_to_tensor_or_sparse_tensor(a), convert_to_tensor_or_sparse_tensor(b)
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise at_user_line(TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?"))
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        real = a.values.dtype.base_dtype.real_dtype
        indices, values, shape = gen_ops.sparse_add(*_parts(a), *_parts(b), convert_to_tensor(threshold, real))
        known = a.get_shape().merge_with(b.get_shape())
        return SparseTensor(indices, values, known.as_list() if known.is_fully_defined() else shape)
    sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
    return gen_ops.sparse_tensor_dense_add(*_parts(sparse), dense)


def _extreme(name: str, op: Any) -> Any:
    def function(sp_a: Any, sp_b: Any, name: Optional[str] = None) -> SparseTensor:
        a, b = _sparse(sp_a), _sparse(sp_b)
        with name_scope(name, scope_name):
            indices, values = op(*_parts(a), *_parts(b))
            return SparseTensor(indices, values, a.dense_shape)

    scope_name = name
    function.__name__ = function.__qualname__ = snake(name[len("Sparse") :])
    function.__doc__ = "The element-wise %s of two sparse tensors; what one of them lacks is 0." % name[len("SparseSparse") :].lower()
    return function


sparse_maximum = _extreme("SparseSparseMaximum", gen_ops.sparse_sparse_maximum)
sparse_minimum = _extreme("SparseSparseMinimum", gen_ops.sparse_sparse_minimum)


def sparse_softmax(sp_input: Any, name: Optional[str] = None) -> SparseTensor:
    """The softmax along the last dimension, of the stored elements alone."""
    sparse = _sparse(sp_input)
    with name_scope(name, "SparseSoftmax"):
        return SparseTensor(sparse.indices, gen_ops.sparse_softmax(*_parts(sparse)), sparse.dense_shape)


def sparse_reshape(sp_input: Any, shape: Any, name: Optional[str] = None) -> SparseTensor:
    """The same elements in another shape; -1 is a size that follows."""
    wanted = math_ops.cast(shape, dtypes.int64)
    with name_scope(name, "SparseReshape") as scope:
        sparse = _sparse(sp_input)
        indices, full = gen_ops.sparse_reshape(sparse.indices, sparse.dense_shape, wanted, name=scope)
        return SparseTensor(indices, array_ops.identity(sparse.values), _reshaped(sparse, constant_value(wanted)) or full)


def _reshaped(sparse: SparseTensor, wanted: Any) -> Optional[List[int]]:
    """The sizes of a sparse tensor in another shape, where they are known. ValueError when it cannot have that shape."""
    count = sparse.get_shape().num_elements()
    if wanted is None or count is None:
        return None
    sizes = [int(size) for size in wanted]
    if sizes.count(-1) > 1:
        raise at_user_line(ValueError("At most one dimension can be inferred (-1). Found: %s" % sizes))
    others = int(np.prod([size for size in sizes if size != -1], dtype=np.int64))
    if sizes.count(-1) == 1 and others > 0 and count % others == 0:
        sizes[sizes.index(-1)] = count // others
    elif -1 in sizes or others != count:
        raise at_user_line(ValueError("Cannot reshape a tensor with %d elements to shape %s" % (count, sizes)))
    return sizes


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: Optional[str] = None) -> SparseTensor:
    """With one more dimension of size 1."""
    with name_scope(name, "SparseExpandDims"):
        sparse = _sparse(sp_input)
        rank = _rank(sparse)
        place = rank if axis is None else constant_value(convert_to_tensor(axis))
        if place is None:  # the step tells
            axis = gen_ops.floor_mod(convert_to_tensor(axis), math_ops.cast(rank + 1, axis.dtype))
        else:
            axis = int(place) + (rank + 1 if place < 0 else 0)
        column = array_ops.zeros_like(sparse.indices[:, :1])
        indices = array_ops.concat([sparse.indices[:, :axis], column, sparse.indices[:, axis:]], 1)
        return SparseTensor(indices, sparse.values, array_ops.concat([sparse.dense_shape[:axis], [1], sparse.dense_shape[axis:]], 0))


def sparse_concat(*args: Any, **kwargs: Any) -> SparseTensor:
    """Sparse tensors joined along an axis: sparse_concat(axis, sp_inputs, name, expand_nonconcat_dim)."""
    given = bind("sparse_concat", ("axis", "sp_inputs", "name", "expand_nonconcat_dim", "concat_dim"), args, kwargs)
    axis = int(either("axis", given.pop("axis", None), "concat_dim", given.pop("concat_dim", None)))
    inputs, name = [_sparse(s) for s in given.pop("sp_inputs")], given.pop("name", None)
    expand = bool(
        either("expand_nonconcat_dims", given.pop("expand_nonconcat_dims", None), "expand_nonconcat_dim", given.pop("expand_nonconcat_dim", None), False)
    )
    refuse(given, "sparse_concat")
    if len(inputs) == 1:
        return inputs[0]
    with name_scope(name, "SparseConcat") as scope:
        shapes = [part.dense_shape for part in inputs]
        if expand:
            rank = _rank(inputs[0])
            largest = math_ops.reduce_max(array_ops.stack(shapes, 0), axis=0)
            along = array_ops.one_hot(axis + (rank if axis < 0 else 0), rank, dtype=dtypes.int64)
            shapes = [largest * (1 - along) + s * along for s in shapes]
        made = gen_ops.sparse_concat([p.indices for p in inputs], [p.values for p in inputs], shapes, concat_dim=axis, name=scope)
        return SparseTensor(made[0], made[1], _joined_shape(inputs, axis, expand) or made[2])


def _joined_shape(inputs: List[SparseTensor], axis: int, expand: bool) -> Optional[List[int]]:
    """The sizes of what is joined, where they follow from constants and the parts fit: the op says where they do not."""
    known = [part.get_shape() for part in inputs]
    rank = known[0].ndims
    if rank is None or any(not s.is_fully_defined() or s.ndims != rank for s in known) or not -rank <= axis < rank:
        return None
    sizes = np.array([s.as_list() for s in known], np.int64)
    joined = sizes.max(axis=0)
    joined[axis] = sizes[:, axis].sum()
    others = np.delete(sizes, axis, axis=1)
    return joined.tolist() if expand or np.all(others == others[0]) else None


def sparse_slice(sp_input: Any, start: Any, size: Any, name: Optional[str] = None) -> SparseTensor:
    """The elements of a block, with indices in it."""
    with name_scope(name, "SparseSlice") as scope:
        sparse = _sparse(sp_input)
        start, size = math_ops.cast(start, dtypes.int64), math_ops.cast(size, dtypes.int64)
        return SparseTensor(*gen_ops.sparse_slice(*_parts(sparse), start, size, name=scope))


def sparse_split(*args: Any, **kwargs: Any) -> List[SparseTensor]:
    """Parts along an axis; the first ones are greater by one where it does not divide: sparse_split(sp_input, num_split, axis)."""
    given = bind(
        "sparse_split",
        ("split_dim", "num_split", "sp_input", "name") if args and isinstance(args[0], int) else ("sp_input", "num_split", "axis", "name"),
        args,
        kwargs,
    )
    if args and not isinstance(given.get("sp_input"), SparseTensor):
        raise at_user_line(ValueError("Keyword arguments are required for this function."))
    if given.get("axis", given.get("split_dim")) is None and "num_split" in given and "sp_input" in given:
        raise at_user_line(ValueError("sparse_split: axis is required"))
    for needed in ("sp_input", "num_split"):
        if needed not in given:
            raise at_user_line(ValueError("sparse_split: %s is required" % needed))
    sparse, count, name = _sparse(given.pop("sp_input")), int(given.pop("num_split")), given.pop("name", None)
    axis = either("axis", given.pop("axis", None), "split_dim", given.pop("split_dim", None))
    refuse(given, "sparse_split")
    with name_scope(name, "SparseSplit") as scope:
        made = gen_ops.sparse_split(math_ops.cast(axis, dtypes.int64), *_parts(sparse), num_split=count, name=scope)
        return [SparseTensor(*parts) for parts in zip(*made)]


def _reduce(op: Any, is_sparse: bool, sp_input: Any, axis: Any, keep: bool, name: Optional[str] = None) -> Any:
    sparse = _sparse(sp_input)
    axes = convert_to_tensor(list(range(_rank(sparse))) if axis is None else axis, dtypes.int32)
    made = op(*_parts(sparse), axes, keep_dims=keep, name=name)
    if is_sparse:
        return SparseTensor(*made)
    static, known = sparse.get_shape(), constant_value(axes)
    if static.ndims is not None and known is not None:
        gone = {int(a) % max(1, static.ndims) for a in known.reshape(-1)}
        made.set_shape([1 if d in gone else static[d] for d in range(static.ndims) if keep or d not in gone])
    return made


def _reduced(name: str, op: Any, is_sparse: bool) -> Any:
    def function(sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None) -> Any:
        axis, keep = either("axis", axis, "reduction_axes", reduction_axes), bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
        return _reduce(op, is_sparse, sp_input, axis, keep)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "The reduction of the stored elements along axes, as a %s tensor." % ("sparse" if is_sparse else "dense")
    return function


sparse_reduce_sum = _reduced("sparse_reduce_sum", gen_ops.sparse_reduce_sum, False)
sparse_reduce_max = _reduced("sparse_reduce_max", gen_ops.sparse_reduce_max, False)
sparse_reduce_sum_sparse = _reduced("sparse_reduce_sum_sparse", gen_ops.sparse_reduce_sum_sparse, True)
sparse_reduce_max_sparse = _reduced("sparse_reduce_max_sparse", gen_ops.sparse_reduce_max_sparse, True)


def sparse_reduce_max_v2(sp_input: Any, axis: Any = None, keepdims: Any = None, output_is_sparse: bool = False, name: Optional[str] = None) -> Any:
    """sparse_reduce_max, or with output_is_sparse sparse_reduce_max_sparse."""
    op = gen_ops.sparse_reduce_max_sparse if output_is_sparse else gen_ops.sparse_reduce_max
    return _reduce(op, output_is_sparse, sp_input, axis, bool(keepdims), name)


def sparse_reduce_sum_v2(sp_input: Any, axis: Any = None, keepdims: Any = None, output_is_sparse: bool = False, name: Optional[str] = None) -> Any:
    """sparse_reduce_sum, or with output_is_sparse sparse_reduce_sum_sparse."""
    op = gen_ops.sparse_reduce_sum_sparse if output_is_sparse else gen_ops.sparse_reduce_sum
    return _reduce(op, output_is_sparse, sp_input, axis, bool(keepdims), name)


def sparse_fill_empty_rows(sp_input: Any, default_value: Any, name: Optional[str] = None) -> Tuple[SparseTensor, Tensor]:
    """(the tensor with an element (row, 0) in each row that had none, which rows had none)."""
    sparse = _sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows"):
        default = convert_to_tensor(default_value, sparse.dtype.base_dtype)
        indices, values, empty, _ = gen_ops.sparse_fill_empty_rows(*_parts(sparse), default)
        return SparseTensor(indices, values, sparse.dense_shape), empty


def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a shape that is at least as large; without one, in the smallest that holds them."""
    sparse = _sparse(sp_input)
    if new_shape is None:
        least = math_ops.reduce_max(sparse.indices, axis=0) + 1  # of no elements: below 0
        return SparseTensor(array_ops.identity(sparse.indices), array_ops.identity(sparse.values), gen_ops.maximum(least, array_ops.zeros_like(least)))
    wanted = math_ops.cast(convert_to_tensor(new_shape, None, "new_shape", dtypes.int64), dtypes.int64)
    have, want = (constant_value(t) for t in (sparse.dense_shape, wanted))
    if have is not None and want is not None:
        if len(have) != len(want):
            raise at_user_line(ValueError("new_shape has rank %d, but the SparseTensor has rank %d" % (len(want), len(have))))
        if (want < have).any():
            raise at_user_line(ValueError("new_shape %s should have dimension sizes >= those of the SparseTensor, %s" % (want.tolist(), have.tolist())))
    with control_dependencies([assert_equal(array_ops.size(wanted), array_ops.size(sparse.dense_shape), message="new_shape has another rank")]):
        check = assert_less_equal(sparse.dense_shape, wanted, message="new_shape is smaller than the shape")
    with control_dependencies([check]):
        return SparseTensor(array_ops.identity(sparse.indices), array_ops.identity(sparse.values), array_ops.identity(wanted))


def serialize_sparse(sp_input: Any, name: Optional[str] = None, out_type: Any = dtypes.string) -> Tensor:
    """A vector of three strings, or variants: the indices, values and shape."""
    return gen_ops.serialize_sparse(*_parts(_sparse(sp_input)), out_type=out_type, name=name)


def serialize_many_sparse(sp_input: Any, name: Optional[str] = None, out_type: Any = dtypes.string) -> Tensor:
    """serialize_sparse of each slice along the first dimension, as rows of a matrix."""
    return gen_ops.serialize_many_sparse(*_parts(_sparse(sp_input)), out_type=out_type, name=name)


def deserialize_sparse(serialized_sparse: Any, dtype: Any, rank: Optional[int] = None, name: Optional[str] = None) -> SparseTensor:
    """One SparseTensor out of an array of serialized ones of one rank, of which each is a slice."""
    indices, values, shape = gen_ops.deserialize_sparse(serialized_sparse, dtype, name=name)
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)


def deserialize_many_sparse(serialized_sparse: Any, dtype: Any, rank: Optional[int] = None, name: Optional[str] = None) -> SparseTensor:
    """The sparse tensor whose slices were serialized, in this order."""
    indices, values, shape = gen_ops.deserialize_many_sparse(serialized_sparse, dtype, name=name)
    if rank is not None:
        indices.set_shape([None, rank + 1])
        shape.set_shape([rank + 1])
    return SparseTensor(indices, values, shape)
