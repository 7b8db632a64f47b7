# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of sparse tensors, made of dense ops on their indices and values."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.convert import constant_value, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.ops.dialects import bind, either, refuse

__all__ = ["sparse_add", "sparse_concat", "sparse_expand_dims", "sparse_fill_empty_rows", "sparse_maximum", "sparse_minimum", "sparse_reduce_max",
           "sparse_reduce_sum", "sparse_reshape", "sparse_slice", "sparse_softmax", "sparse_split"]


def _sparse(value: Any) -> SparseTensor:
    found = convert_to_tensor_or_sparse_tensor(value)
    if not isinstance(found, SparseTensor):
        raise at_user_line(TypeError("Input must be a SparseTensor, got %s." % (value,)))
    return found


def _rank(sparse: SparseTensor) -> int:
    for count in (sparse.dense_shape.get_shape().num_elements(), sparse.indices.get_shape()[1].value if sparse.indices.get_shape().ndims else None):
        if count is not None:
            return int(count)
    raise at_user_line(ValueError("the rank of the SparseTensor must be known: %s" % sparse))


def _flat(indices: Tensor, shape: Tensor) -> Tensor:
    """Each index as its place in row-major order."""
    strides = gen_ops.cumprod(shape, 0, exclusive=True, reverse=True)
    return math_ops.reduce_sum(indices * strides, axis=1)


def _unflat(places: Tensor, shape: Tensor) -> Tensor:
    strides = gen_ops.cumprod(shape, 0, exclusive=True, reverse=True)
    return gen_ops.floor_mod(gen_ops.floor_div(array_ops.expand_dims(places, 1), strides), shape)


def _order(places: Tensor) -> Tensor:
    """Where the places are in ascending order."""
    return nn_ops.top_k(-places, array_ops.size(places))[1]


def _sorted(indices: Tensor, values: Tensor, shape: Tensor) -> SparseTensor:
    order = _order(_flat(indices, shape))
    return SparseTensor(array_ops.gather(indices, order), array_ops.gather(values, order), shape)


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum: sparse where both are, else dense. Sums of two elements nearer to 0 than the threshold are left out of a sparse one."""
    threshold = either("threshold", threshold, "thresh", thresh, 0)
    a, b = convert_to_tensor_or_sparse_tensor(a), convert_to_tensor_or_sparse_tensor(b)
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise at_user_line(TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?"))
    with name_scope(None, "SparseAdd"):
        if not isinstance(a, SparseTensor) or not isinstance(b, SparseTensor):
            sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
            return dense + gen_ops.scatter_nd(sparse.indices, sparse.values, sparse.dense_shape)
        return _joined(a, b, gen_ops.unsorted_segment_sum, threshold)


def _joined(a: SparseTensor, b: SparseTensor, combine: Any, threshold: Any = 0) -> SparseTensor:
    """The elements of both, those at one place combined."""
    shape = a.dense_shape
    every, where = (lambda u: (u[0], u[1]))(gen_ops.unique(_flat(array_ops.concat([a.indices, b.indices], 0), shape)))
    values = combine(array_ops.concat([a.values, b.values], 0), where, array_ops.size(every))
    order = _order(every)
    every, values = array_ops.gather(every, order), array_ops.gather(values, order)
    if isinstance(threshold, Tensor) or threshold != 0:
        alone = array_ops.gather(gen_ops.equal(gen_ops.unsorted_segment_sum(array_ops.ones_like(where), where, array_ops.size(every)), 1), order)
        kept = gen_ops.logical_or(alone, gen_ops.greater_equal(gen_ops.abs(values), math_ops.cast(threshold, values.dtype.base_dtype)))
        every, values = array_ops.boolean_mask(every, kept), array_ops.boolean_mask(values, kept)
    return SparseTensor(_unflat(every, shape), values, shape)


def _extreme(name: str, segment: Any, extreme: Any) -> Any:
    def function(sp_a: Any, sp_b: Any, name: str = name) -> SparseTensor:
        a, b = _sparse(sp_a), _sparse(sp_b)
        with name_scope(name):  # an element that one of them lacks is 0 there
            zeros = [SparseTensor(s.indices, array_ops.zeros_like(s.values), s.dense_shape) for s in (b, a)]
            a, b = (_joined(s, z, gen_ops.unsorted_segment_sum) for s, z in zip((a, b), zeros))
            return SparseTensor(a.indices, extreme(a.values, b.values), a.dense_shape)
    function.__name__, function.__doc__ = name, "The element-wise %s." % name
    return function


sparse_maximum = _extreme("SparseSparseMaximum", gen_ops.unsorted_segment_max, gen_ops.maximum)
sparse_minimum = _extreme("SparseSparseMinimum", gen_ops.unsorted_segment_min, gen_ops.minimum)


def sparse_softmax(sp_input: Any, name: Optional[str] = None) -> SparseTensor:
    """The softmax along the last dimension, of the stored elements alone."""
    with name_scope(name, "SparseSoftmax"):
        sparse = _sparse(sp_input)
        lead = sparse.dense_shape[:-1]
        row, count = _flat(sparse.indices[:, :-1], lead), gen_ops.prod(lead, [0])
        tops = gen_ops.unsorted_segment_max(gen_ops.stop_gradient(sparse.values), row, count)
        powers = gen_ops.exp(sparse.values - array_ops.gather(tops, row))
        sums = gen_ops.unsorted_segment_sum(powers, row, count)
        return SparseTensor(sparse.indices, powers / array_ops.gather(sums, row), sparse.dense_shape)


def sparse_reshape(sp_input: Any, shape: Any, name: Optional[str] = None) -> SparseTensor:
    """The same elements in another shape; -1 is a size that follows."""
    with name_scope(name, "SparseReshape"):
        sparse = _sparse(sp_input)
        wanted = math_ops.cast(convert_to_tensor(shape, None, "shape", dtypes.int64), dtypes.int64)
        unknown = gen_ops.equal(wanted, -1)
        rest = gen_ops.prod(array_ops.where(unknown, array_ops.ones_like(wanted), wanted), [0])
        total = gen_ops.prod(sparse.dense_shape, [0])
        full = array_ops.where(unknown, array_ops.zeros_like(wanted) + gen_ops.floor_div(total, gen_ops.maximum(rest, 1)), wanted)
        made = SparseTensor(_unflat(_flat(sparse.indices, sparse.dense_shape), full), sparse.values, full)
        if wanted.get_shape().num_elements() is not None:
            made.indices.set_shape([None, wanted.get_shape().num_elements()])
        return made


def sparse_expand_dims(sp_input: Any, axis: Any = None, name: Optional[str] = None) -> SparseTensor:
    """With one more dimension of size 1."""
    with name_scope(name, "SparseExpandDims"):
        sparse = _sparse(sp_input)
        rank = _rank(sparse)
        axis = rank if axis is None else int(axis) + (rank + 1 if axis < 0 else 0)
        column = array_ops.zeros_like(sparse.indices[:, :1])
        indices = array_ops.concat([sparse.indices[:, :axis], column, sparse.indices[:, axis:]], 1)
        return SparseTensor(indices, sparse.values, array_ops.concat([sparse.dense_shape[:axis], [1], sparse.dense_shape[axis:]], 0))


def sparse_concat(*args: Any, **kwargs: Any) -> SparseTensor:
    """Sparse tensors joined along an axis: sparse_concat(axis, sp_inputs, name, expand_nonconcat_dim)."""
    given = bind("sparse_concat", ("axis", "sp_inputs", "name", "expand_nonconcat_dim", "concat_dim"), args, kwargs)
    axis = either("axis", given.pop("axis", None), "concat_dim", given.pop("concat_dim", None))
    inputs, name, expand = [_sparse(s) for s in given.pop("sp_inputs")], given.pop("name", None), given.pop("expand_nonconcat_dim", False)
    refuse({k: v for k, v in given.items() if k != "expand_nonconcat_dims"}, "sparse_concat")
    if len(inputs) == 1:
        return inputs[0]
    with name_scope(name, "SparseConcat"):
        rank = _rank(inputs[0])
        axis = int(axis) + (rank if axis < 0 else 0)
        along = array_ops.one_hot(axis, rank, dtype=dtypes.int64)
        offset: Any = array_ops.zeros([], dtypes.int64)
        shape, moved = inputs[0].dense_shape, []
        for i, part in enumerate(inputs):
            moved.append(part.indices + along * offset)
            offset = offset + part.dense_shape[axis]
            if i:
                shape = gen_ops.maximum(shape, part.dense_shape) if expand or given else shape
        shape = shape * (1 - along) + along * offset
        return _sorted(array_ops.concat(moved, 0), array_ops.concat([p.values for p in inputs], 0), shape)


def sparse_slice(sp_input: Any, start: Any, size: Any, name: Optional[str] = None) -> SparseTensor:
    """The elements of a block, with indices in it."""
    with name_scope(name, "SparseSlice"):
        sparse = _sparse(sp_input)
        start, size = math_ops.cast(start, dtypes.int64), math_ops.cast(size, dtypes.int64)
        inside = math_ops.reduce_all(gen_ops.logical_and(gen_ops.greater_equal(sparse.indices, start), gen_ops.less(sparse.indices, start + size)), axis=1)
        shape = gen_ops.maximum(gen_ops.minimum(size, sparse.dense_shape - start), 0)
        return SparseTensor(array_ops.boolean_mask(sparse.indices, inside) - start, array_ops.boolean_mask(sparse.values, inside), shape)


def sparse_split(*args: Any, **kwargs: Any) -> List[SparseTensor]:
    """Parts along an axis; the first ones are greater by one where it does not divide: sparse_split(sp_input, num_split, axis)."""
    given = bind("sparse_split", ("split_dim", "num_split", "sp_input", "name") if args and isinstance(args[0], int) else
                 ("sp_input", "num_split", "axis", "name"), args, kwargs)
    sparse, count, name = _sparse(given.pop("sp_input")), int(given.pop("num_split")), given.pop("name", None)
    axis = int(either("axis", given.pop("axis", None), "split_dim", given.pop("split_dim", None), 0))
    refuse(given, "sparse_split")
    with name_scope(name, "SparseSplit"):
        rank = _rank(sparse)
        axis += rank if axis < 0 else 0
        along = array_ops.one_hot(axis, rank, dtype=dtypes.int64)
        length = sparse.dense_shape[axis]
        least, more = gen_ops.floor_div(length, count), gen_ops.floor_mod(length, count)
        parts, at = [], array_ops.zeros([], dtypes.int64)
        for i in range(count):
            size = least + gen_ops.cast(gen_ops.less(convert_to_tensor(i, dtypes.int64), more), dtypes.int64)
            parts.append(sparse_slice(sparse, along * at, sparse.dense_shape * (1 - along) + along * size))
            at = at + size
        return parts


def _reduced(name: str, segment: Any) -> Any:
    def function(sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None) -> Tensor:
        sparse = _sparse(sp_input)
        axis, keep = either("axis", axis, "reduction_axes", reduction_axes), bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
        rank = _rank(sparse)
        known = None if axis is None else constant_value(axis)
        if axis is not None and known is None:
            raise at_user_line(ValueError("the axes of a sparse reduction must be constants"))
        axes = set(range(rank)) if known is None else {int(a) % rank for a in known.reshape(-1)}
        rest = [d for d in range(rank) if d not in axes]
        with name_scope(None, name):
            lead = array_ops.gather(sparse.dense_shape, convert_to_tensor(rest, dtypes.int32))
            row = _flat(array_ops.gather(sparse.indices, convert_to_tensor(rest, dtypes.int32), axis=1), lead)
            sums = segment(sparse.values, row, gen_ops.prod(lead, [0]))
            shape = array_ops.concat([[1] if d in axes else sparse.dense_shape[d:d + 1] for d in range(rank) if keep or d not in axes] or [[]], 0) \
                if keep or rest else convert_to_tensor([], dtypes.int64)
            made = array_ops.reshape(sums, shape)
            static = sparse.get_shape()
            if static.ndims is not None:
                made.set_shape([1 if d in axes else static[d] for d in range(rank) if keep or d not in axes])
            return made
    function.__name__, function.__doc__ = name, "The reduction of the stored elements along axes, as a dense tensor."
    return function


sparse_reduce_sum = _reduced("SparseReduceSum", gen_ops.unsorted_segment_sum)


def _segment_max(values: Tensor, row: Tensor, count: Any) -> Tensor:
    """0 where there is no element, as in TensorFlow."""
    tops = gen_ops.unsorted_segment_max(values, row, count)
    present = gen_ops.unsorted_segment_sum(array_ops.ones_like(row), row, count)
    return array_ops.where(gen_ops.greater(present, 0), tops, array_ops.zeros_like(tops))


sparse_reduce_max = _reduced("SparseReduceMax", _segment_max)


def sparse_fill_empty_rows(sp_input: Any, default_value: Any, name: Optional[str] = None) -> Tuple[SparseTensor, Tensor]:
    """(the tensor with an element (row, 0) in each row that had none, which rows had none)."""
    with name_scope(name, "SparseFillEmptyRows"):
        sparse = _sparse(sp_input)
        rows = sparse.dense_shape[0]
        present = gen_ops.unsorted_segment_sum(array_ops.ones_like(sparse.indices[:, 0]), sparse.indices[:, 0], rows)
        empty = gen_ops.equal(present, 0)
        lacking = array_ops.boolean_mask(gen_ops.range(array_ops.zeros_like(rows), rows, array_ops.ones_like(rows)), empty)
        added = array_ops.stack([lacking, array_ops.zeros_like(lacking)], 1)
        filler = gen_ops.fill(array_ops.shape(lacking), convert_to_tensor(default_value, sparse.dtype.base_dtype))
        made = _sorted(array_ops.concat([sparse.indices, added], 0), array_ops.concat([sparse.values, filler], 0), sparse.dense_shape)
        return made, empty
