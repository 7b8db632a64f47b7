# SPDX-License-Identifier: Apache-2.0
"""Shapes, slices, joining and splitting, indexing."""

from __future__ import annotations

import builtins
import functools
import operator
from typing import Any, List, Optional, Tuple
from typing import overload as _overload

import numpy as np

from millrace.framework import common_shapes, dtypes, nest, tensor_shape
from millrace.framework.composite_tensors import CompositeTensor, IndexedSlices, SparseTensor, SparseTensorValue
from millrace.framework.convert import constant, convert_to_tensor, shape_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import Dimension
from millrace.ops import gen_ops
from millrace.ops.dialects import bind, either, is_axis, refuse
from millrace.ops.dialects import shown_as as _shown_as
from millrace.ops.gather_ops import batch_gather as batch_gather, gather as gather, gather_nd as gather_nd

newaxis = None


# ---- placeholders and simple sources ----


def placeholder(dtype: Any, shape: Any = None, name: Optional[str] = None) -> Tensor:
    """A tensor that is fed.

    Shapes: `shape`; None: any, and a None in it: any size.
    Raises: InvalidArgumentError when a step needs it and it is not fed; ValueError when a value of another shape is fed.
    """
    if isinstance(shape, (list, tuple)) and any(isinstance(d, (int, np.integer)) and d < 0 for d in shape):
        raise at_user_line(ValueError("Dimensions of a placeholder must be >= 0, or None where they are not known: %s" % (shape,)))
    return gen_ops.placeholder(dtype, shape, name=name)


def placeholder_with_default(input: Any, shape: Any, name: Optional[str] = None) -> Tensor:
    """A tensor that has a value when it is not fed."""
    return gen_ops.placeholder_with_default(input, shape, name=name)


def sparse_placeholder(dtype: Any, shape: Any = None, name: Optional[str] = None) -> SparseTensor:
    """A SparseTensor that is fed."""
    name = name or "Placeholder"
    if shape is None:
        rank, dense_shape = None, placeholder(dtypes.int64, [None], name + "/shape")
    else:
        shape = shape.as_list() if isinstance(shape, tensor_shape.TensorShape) else shape
        if isinstance(shape, (list, tuple)) and any(d is None for d in shape):
            rank, dense_shape = len(shape), placeholder(dtypes.int64, [len(shape)], name + "/shape")
        else:
            dense_shape = convert_to_tensor(shape, dtypes.int64, name + "/shape")
            rank = dense_shape.get_shape()[0].value
    return SparseTensor(
        values=placeholder(dtype, [None], name + "/values"), indices=placeholder(dtypes.int64, [None, rank], name + "/indices"), dense_shape=dense_shape
    )


def zeros(shape: Any, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
    """A tensor of zeros."""
    return _filled(shape, dtype, name, "zeros", 0)


def ones(shape: Any, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
    """A tensor of ones."""
    return _filled(shape, dtype, name, "ones", 1)


def _filled(shape: Any, dtype: Any, name: Optional[str], default: str, value: Any) -> Tensor:
    dtype = dtypes.as_dtype(dtype).base_dtype
    if dtype == dtypes.bool_:
        value = bool(value)
    elif dtype == dtypes.string and value == 0:
        value = ""
    with name_scope(name, default, [shape]) as scope:
        if not isinstance(shape, Tensor):
            try:
                dims = tensor_shape.as_shape(shape)
                count = dims.num_elements()
                if count is not None and count < 1000 and np.ndim(shape):
                    return constant(value, dtype, dims, scope)
                if dims.is_fully_defined():
                    shape = shape_tensor(dims, "shape_as_tensor")
            except (TypeError, ValueError):
                pass
            if not isinstance(shape, Tensor):
                packed = isinstance(shape, (list, tuple)) and any(isinstance(size, Tensor) or hasattr(size, "_as_graph_element") for size in shape)
                if packed:
                    _compare_elements(shape)
                shape = shape_tensor(shape, "packed" if packed else "shape")
        if not shape.get_shape().ndims:  # a number is the shape of a vector
            shape = reshape(shape, [-1])
        return gen_ops.fill(shape, constant(value, dtype), name=scope)


def _compare_elements(sizes: Any) -> None:
    """Leaves the nodes that 1.15 makes to see whether sizes with tensors among them are few elements: seeds of later operations are counted by nodes."""
    try:
        sizes = [int(size) if isinstance(size, Dimension) else size for size in sizes]
        gen_ops.less(functools.reduce(operator.mul, sizes), 1000)
    except (TypeError, ValueError):  # sizes of different types: there as here the comparison is given up
        pass


def zeros_like(tensor: Any, dtype: Any = None, name: Optional[str] = None, optimize: bool = True) -> Tensor:
    """Zeros of the shape and type of a tensor."""
    with name_scope(name, "zeros_like", [tensor]) as scope:
        tensor, dtype = _like(tensor, dtype)
        if optimize and tensor.get_shape().is_fully_defined() and dtype not in (dtypes.variant, dtypes.resource):
            return zeros(tensor.get_shape(), dtype, scope)
        if dtype != tensor.dtype.base_dtype:
            return zeros(shape(tensor), dtype, scope)
        return gen_ops.zeros_like(tensor, name=scope)


def ones_like(tensor: Any, dtype: Any = None, name: Optional[str] = None, optimize: bool = True) -> Tensor:
    """Ones of the shape and type of a tensor."""
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor, dtype = _like(tensor, dtype)
        made = ones(shape_internal(tensor, optimize=optimize), dtype, scope)
        made.set_shape(tensor.get_shape())
        return made


def _like(tensor: Any, dtype: Any) -> Tuple[Tensor, dtypes.DType]:
    tensor = convert_to_tensor(tensor, name="tensor")
    return tensor, tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype)


def fill(dims: Any, value: Any, name: Optional[str] = None) -> Tensor:
    """A tensor of shape `dims` with one value everywhere."""
    return gen_ops.fill(dims, value, name=name)


def _type_of_number(value: Any) -> dtypes.DType:
    if hasattr(value, "dtype"):
        return dtypes.as_dtype(value.dtype).base_dtype
    kind = np.asarray(value).dtype.kind
    return {"f": dtypes.float32, "i": dtypes.int32}.get(kind) or dtypes.as_dtype(np.asarray(value).dtype)


def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Optional[int] = None, dtype: Any = None, name: Optional[str] = None
) -> Tensor:
    """on_value at the place that each index says along a new axis, off_value elsewhere.

    Shapes: indices [i...] -> [i..., depth], or with the new axis elsewhere.
    Raises: ValueError when the axis is out of range; an index out of range gives off_value everywhere.
    """
    if dtype is None:
        known = [_type_of_number(v) for v in (on_value, off_value) if v is not None]
        if len(set(known)) > 1:
            raise at_user_line(TypeError("dtype %s of on_value does not match dtype %s of off_value" % (known[0].name, known[1].name)))
        dtype = known[0] if known else dtypes.float32
    dtype = dtypes.as_dtype(dtype).base_dtype
    for what, value in (("on_value", on_value), ("off_value", off_value)):
        if hasattr(value, "dtype") and dtypes.as_dtype(value.dtype).base_dtype != dtype:
            raise at_user_line(TypeError("dtype %s of %s does not match dtype parameter %s" % (value.dtype, what, dtype)))
    with name_scope(name, "one_hot", [indices, depth]) as scope:
        on = (
            convert_to_tensor(1 if on_value is None else on_value, dtype, "on_value")
            if dtype != dtypes.bool_
            else convert_to_tensor(True if on_value is None else bool(on_value), name="on_value")
        )
        off = (
            convert_to_tensor(0 if off_value is None else off_value, dtype, "off_value")
            if dtype != dtypes.bool_
            else convert_to_tensor(False if off_value is None else bool(off_value), name="off_value")
        )
        return gen_ops.one_hot(indices, depth, on, off, axis=-1 if axis is None else axis, name=scope)


# ---- shapes ----


def shape(input: Any, name: Optional[str] = None, out_type: Any = dtypes.int32) -> Tensor:
    """The shape of a tensor, as a tensor."""
    if isinstance(input, (SparseTensor, SparseTensorValue)):
        return gen_ops.cast(convert_to_tensor(input.dense_shape), out_type, name=name)
    with name_scope(name, "Shape", [input]) as scope:
        input = convert_to_tensor(input)
        static = input.get_shape()
        if static.is_fully_defined():
            return constant(np.array(static.as_list(), dtypes.as_dtype(out_type).as_numpy_dtype), out_type, name=scope)
        return gen_ops.shape(input, out_type=out_type, name=scope)


def shape_internal(input: Any, name: Optional[str] = None, optimize: bool = True, out_type: Any = dtypes.int32) -> Tensor:
    """shape; without optimize an op even where it is known."""
    if optimize or isinstance(input, SparseTensor):
        return shape(input, name, out_type)
    return gen_ops.shape(input, out_type=out_type, name=name)


def size_internal(input: Any, name: Optional[str] = None, optimize: bool = True, out_type: Any = dtypes.int32) -> Tensor:
    """size; without optimize an op even where it is known."""
    if optimize or isinstance(input, SparseTensor):
        return size(input, name, out_type)
    return gen_ops.size(input, out_type=out_type, name=name)


def rank_internal(input: Any, name: Optional[str] = None, optimize: bool = True) -> Tensor:
    """rank; without optimize an op even where it is known."""
    if optimize or isinstance(input, SparseTensor):
        return rank(input, name)
    return gen_ops.rank(input, name=name)


def shape_n(input: Any, out_type: Any = dtypes.int32, name: Optional[str] = None) -> List[Tensor]:
    """The shapes of several tensors."""
    return gen_ops.shape_n(input, out_type=out_type, name=name)


def size(input: Any, name: Optional[str] = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements of a tensor."""
    if isinstance(input, (SparseTensor, SparseTensorValue)):
        return gen_ops.prod(gen_ops.cast(convert_to_tensor(input.dense_shape), out_type), 0, name=name)
    with name_scope(name, "Size", [input]) as scope:
        input = convert_to_tensor(input)
        count = input.get_shape().num_elements()
        return constant(count, out_type, name=scope) if count is not None else gen_ops.size(input, out_type=out_type, name=scope)


def rank(input: Any, name: Optional[str] = None) -> Tensor:
    """The number of dimensions of a tensor."""
    if isinstance(input, (SparseTensor, SparseTensorValue)):
        return size(input.dense_shape, name)
    with name_scope(name, "Rank", [input]) as scope:
        input = convert_to_tensor(input)
        ndims = input.get_shape().ndims
        return constant(ndims, dtypes.int32, name=scope) if ndims is not None else gen_ops.rank(input, name=scope)


def reshape(tensor: Any, shape: Any, name: Optional[str] = None) -> Tensor:
    """The same elements in another shape; one size may be -1.

    Shapes: tensor [...], shape [k] -> the sizes in `shape`, with -1 for what is left.
    Raises: ValueError when the numbers of elements differ; InvalidArgumentError when that shows in the step alone.
    """
    return gen_ops.reshape(tensor, shape, name=name)


def expand_dims(input: Any, axis: Any = None, name: Optional[str] = None, dim: Any = None) -> Tensor:
    """A new axis of size 1."""
    axis = either("axis", axis, "dim", dim)
    if axis is None:
        raise at_user_line(ValueError("axis must be specified"))
    return gen_ops.expand_dims(input, axis, name=name)


def squeeze(input: Any, axis: Any = None, name: Optional[str] = None, squeeze_dims: Any = None) -> Tensor:
    """Without axes of size 1: those given, or all."""
    axis = either("axis", axis, "squeeze_dims", squeeze_dims)
    dims: Any = () if axis is None else [axis] if np.isscalar(axis) else axis
    return gen_ops.squeeze(input, squeeze_dims=dims, name=name)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """Axes in another order: reversed unless `perm` says.

    Shapes: a [s0, s1, ...] -> [s[perm[0]], s[perm[1]], ...].
    Raises: ValueError when perm has another length than the rank, or is no permutation.
    """
    op = gen_ops.conjugate_transpose if conjugate else gen_ops.transpose
    with name_scope(name, "transpose", [a]) as scope:
        if perm is None:
            a = convert_to_tensor(a, name="a")
            ndims = a.get_shape().ndims
            if ndims is not None:
                perm = np.arange(ndims - 1, -1, -1, dtype=np.int32)
            else:
                last = rank(a) - 1
                perm = last - gen_ops.range(0, rank(a), 1)
        return op(a, perm, name=scope)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two axes exchanged; with conjugate, of the conjugates."""
    with name_scope(name, "matrix_transpose", [a]):
        a = convert_to_tensor(a, name="a")
        ndims = a.get_shape().ndims
        if ndims is not None:
            if ndims < 2:
                raise at_user_line(ValueError("Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: %s" % a.get_shape()))
            perm: Any = list(range(ndims - 2)) + [ndims - 1, ndims - 2]
        else:
            n = rank(a)
            perm = concat([gen_ops.range(0, n - 2, 1), [n - 1, n - 2]], 0)
        return transpose(a, perm, conjugate=conjugate)


# ---- joining and splitting ----


@_overload
def concat(values: Any, axis: Any, name: Optional[str] = None) -> Tensor: ...


@_overload
def concat(concat_dim: int, values: Any, name: Optional[str] = None) -> Tensor: ...


@_shown_as(lambda values, axis, name="concat": None)
def concat(*args: Any, **kwargs: Any) -> Tensor:
    """Tensors joined along an axis: concat(values, axis, name), or concat(concat_dim, values, name) as in 0.x.

    Shapes: values of one rank, equal but for the axis, which adds up.
    Raises: ValueError when other sizes differ or the axis is out of range; TypeError when the types differ.
    """
    first_is_axis = bool(args) and is_axis(args[0]) and (len(args) < 2 or isinstance(args[1], (list, tuple, Tensor)))
    old = bool(args) and (
        first_is_axis or "values" in kwargs or len(args) > 1 and isinstance(args[1], (list, tuple)) and not isinstance(args[0], (list, tuple))
    )
    given = bind("concat", ("concat_dim", "values", "name") if old else ("values", "axis", "name"), args, kwargs)
    values, axis, concat_dim, name = (given.pop(key, None) for key in ("values", "axis", "concat_dim", "name"))
    refuse(given, "concat")
    if values is None:
        raise at_user_line(TypeError("concat() missing the values"))
    axis = either("axis", axis, "concat_dim", concat_dim)
    if axis is None:
        raise at_user_line(TypeError("concat() missing the axis"))
    values = nest.listed(values)
    if len(values) == 1:
        with name_scope(name, "concat"):
            convert_to_tensor(axis, dtypes.int32, "concat_dim").get_shape().assert_has_rank(0)
            return identity(values[0], "concat" if name is None else name)
    return gen_ops.concat_v2(values, axis, name="concat" if name is None else name)


concat_v2 = concat


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors joined along a new axis.

    Shapes: n values [s...] -> [n, s...], or with n at `axis`.
    Raises: ValueError when the shapes differ or the axis is out of range.
    """
    if axis == 0:
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass
    values = unstack(values) if isinstance(values, Tensor) else list(values)
    rank = next((s.ndims + 1 for s in (v.get_shape() for v in values if isinstance(v, Tensor)) if s.ndims is not None), None)
    if rank is not None and not -rank <= axis < rank:
        raise at_user_line(ValueError("axis = %d not in [%d, %d)" % (axis, -rank, rank)))
    return gen_ops.pack(values, axis=axis, name=name)


def _any_tensor(values: Any) -> bool:
    return any(isinstance(v, Tensor) or hasattr(v, "_as_graph_element") for v in values)


def pack(values: Any, name: str = "pack", axis: int = 0) -> Tensor:
    """stack, as it was called in 0.x."""
    return stack(values, axis, name)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """stack along axis 0."""
    return stack(values, 0, name)


def unstack(value: Any, num: Optional[int] = None, axis: int = 0, name: str = "unstack") -> List[Tensor]:
    """The slices along an axis."""
    value = convert_to_tensor(value)
    if num is None:
        static = value.get_shape()
        if static.ndims is None:
            raise at_user_line(ValueError("Cannot infer num from shape %s: give unstack num=" % static))
        if axis < -static.ndims or axis >= static.ndims:
            raise at_user_line(ValueError("axis = %d not in [%d, %d)" % (axis, -static.ndims, static.ndims)))
        num = static[axis].value
        if num is None:
            raise at_user_line(ValueError("Cannot infer num from shape %s: give unstack num=" % static))
    parts = gen_ops.unpack(value, num, axis=axis, name=name)
    return [] if num == 0 else parts  # an op without results is given as an operation


def unpack(value: Any, num: Optional[int] = None, name: str = "unpack", axis: int = 0) -> List[Tensor]:
    """unstack, as it was called in 0.x."""
    return unstack(value, num, axis, name)


@_overload
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Optional[int] = None, name: Optional[str] = None) -> List[Tensor]: ...


@_overload
def split(split_dim: int, num_split: int, value: Any, name: Optional[str] = None) -> List[Tensor]: ...


@_shown_as(lambda value, num_or_size_splits, axis=0, num=None, name="split": None)
def split(*args: Any, **kwargs: Any) -> List[Tensor]:
    """Pieces along an axis: split(value, num_or_size_splits, axis, num, name), or split(split_dim, num_split, value, name) as in 0.x.

    Shapes: value [..., n, ...] -> pieces [..., n / num, ...], or of the sizes that are given.
    Raises: ValueError when n is no multiple of num, or the sizes do not add up to n.
    """
    old = bool(args) and is_axis(args[0]) and ("value" in kwargs or len(args) > 2 and not is_axis(args[2]))
    new_names, old_names = ("value", "num_or_size_splits", "axis", "num", "name"), ("split_dim", "num_split", "value", "name")
    given = bind("split", old_names if old else new_names, args, kwargs)
    value, num, name = given.pop("value", None), given.pop("num", None), given.pop("name", None) or "split"
    axis = either("axis", given.pop("axis", None), "split_dim", given.pop("split_dim", None), 0)
    num_or_size_splits = either("num_or_size_splits", given.pop("num_or_size_splits", None), "num_split", given.pop("num_split", None))
    refuse(given, "split")
    if value is None or num_or_size_splits is None:
        raise at_user_line(TypeError("split() missing %s" % ("the value" if value is None else "num_or_size_splits")))
    value = convert_to_tensor(value)
    if isinstance(num_or_size_splits, Tensor):
        if num_or_size_splits.get_shape().ndims == 0:
            raise at_user_line(ValueError("Rank-0 tensors are not supported as the num_or_size_splits argument to split: %s" % (num_or_size_splits,)))
        number = num or num_or_size_splits.get_shape()[0].value
        if number is None:
            raise at_user_line(ValueError("Cannot infer num from shape %s" % num_or_size_splits.get_shape()))
        return gen_ops.split_v(value, num_or_size_splits, axis, number, name=name)
    if isinstance(num_or_size_splits, (int, np.integer, tensor_shape.Dimension)):
        convert_to_tensor(int(num_or_size_splits))  # nothing reads it: it is there in TensorFlow, whose graphs' sizes seeds depend on
        return gen_ops.split(axis, value, int(num_or_size_splits), name=name)
    sizes = convert_to_tensor(num_or_size_splits)
    return gen_ops.split_v(value, sizes, axis, num or len(num_or_size_splits), name=name)


def tile(input: Any, multiples: Any, name: Optional[str] = None) -> Tensor:
    """The tensor repeated along each axis."""
    return gen_ops.tile(input, multiples, name=name)


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", name: Optional[str] = None, constant_values: Any = 0) -> Tensor:
    """The tensor with a border: of a value, or mirrored (REFLECT, SYMMETRIC)."""
    mode = str(mode).upper()
    if mode == "CONSTANT":
        if not isinstance(constant_values, Tensor) and not np.any(constant_values):
            made = gen_ops.pad(tensor, paddings, name=name)
        else:
            made = gen_ops.pad_v2(tensor, paddings, constant_values, name=name)
    elif mode in ("REFLECT", "SYMMETRIC"):
        made = gen_ops.mirror_pad(tensor, paddings, mode, name=name)
    else:
        raise at_user_line(ValueError("Unknown padding mode: %s" % mode))
    sizes, known = made.op.inputs[0].get_shape(), constant_value(made.op.inputs[1], partial=True)
    if not made.get_shape().is_fully_defined() and sizes.ndims is not None and known is not None:  # the borders of some axes are known
        made.set_shape(
            [
                None if size is None or pair is None or any(p is None for p in pair) else size + sum(int(p) for p in pair)
                for size, pair in zip(sizes.as_list(), known)
            ]
        )
    return made


def reverse(tensor: Any, axis: Any = None, name: Optional[str] = None, dims: Any = None) -> Tensor:
    """The order along axes turned around; `axis` (`dims` in 0.x) may be one bool for each axis."""
    axis = either("axis", axis, "dims", dims)
    if axis is None:
        raise at_user_line(TypeError("reverse() missing the axis"))
    if not isinstance(axis, Tensor):
        if isinstance(axis, (list, tuple)) and any(isinstance(a, Tensor) for a in axis):
            axis = convert_to_tensor(axis)
        elif np.asarray(axis).dtype == np.bool_:
            axis = [i for i, flag in enumerate(axis) if flag]
            if not axis:
                return identity(tensor, name)
    if isinstance(axis, Tensor) and axis.dtype == dtypes.bool_:
        return gen_ops.reverse(tensor, axis, name=name)
    return gen_ops.reverse_v2(tensor, axis, name=name)


reverse_v2 = reverse


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None, name: Optional[str] = None, seq_dim: Any = None, batch_dim: Any = None
) -> Tensor:
    """The first seq_lengths[i] elements of each entry of the batch turned around."""
    return gen_ops.reverse_sequence(
        input, seq_lengths, either("seq_axis", seq_axis, "seq_dim", seq_dim), batch_dim=either("batch_axis", batch_axis, "batch_dim", batch_dim, 0), name=name
    )


# ---- slicing and indexing ----


def identity(input: Any, name: Optional[str] = None) -> Any:
    """A tensor with the value of another."""
    if isinstance(input, CompositeTensor):
        return input._of_components([identity(part) for part in input._components()])
    return gen_ops.identity(input, name=name)


def slice(input_: Any = None, begin: Any = None, size: Any = None, name: Optional[str] = None, input: Any = None) -> Tensor:
    """The block that starts at `begin` and has a size (-1: to the end)."""
    return gen_ops.slice(input_ if input is None else input, begin, size, name=name)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: Optional[str] = None,
) -> Tensor:
    """Every strides[i]-th element from begin[i] to before end[i]. `assign(value)` of the result changes the variable `var` there."""
    if strides is None:
        strides = ones_like(begin)
    masks = dict(begin_mask=begin_mask, end_mask=end_mask, ellipsis_mask=ellipsis_mask, new_axis_mask=new_axis_mask, shrink_axis_mask=shrink_axis_mask)
    made = gen_ops.strided_slice(input_, begin, end, strides, **masks, name=name)

    def assign(value: Any, name: Optional[str] = None) -> Tensor:
        if var is None:
            raise at_user_line(ValueError("Sliced assignment is only supported for variables"))
        return var._assign_slice(begin, end, strides, value, masks, name)

    made.assign = assign  # type: ignore[attr-defined]
    return made


_SLICE_TYPE_ERROR = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices"  # programs match it
)


def _checked_index(index: Any) -> Any:
    """An index, if it is one: nothing is rounded to an integer."""
    if isinstance(index, (int, np.integer, Dimension)) and not isinstance(index, bool):
        return index
    dtype = getattr(index, "dtype", None)
    if isinstance(index, np.ndarray):
        fits = index.ndim == 0 and index.dtype.kind in "iu"
    elif isinstance(dtype, dtypes.DType):
        fits = dtype.base_dtype in (dtypes.int32, dtypes.int64) and index.shape.ndims in (None, 0)
    else:
        fits = dtype is None and hasattr(index, "__index__") and not isinstance(index, bool)
    if not fits:
        raise at_user_line(TypeError(_SLICE_TYPE_ERROR + ", got {!r}".format(index)))
    return index


def slice_helper(tensor: Any, spec: Any, var: Any = None) -> Tensor:
    """tensor[spec]: integers, slices, ellipsis, None and scalar integer tensors; a boolean array or tensor alone is boolean_mask.

    TypeError for every other index.
    """
    if not isinstance(spec, (list, tuple)):
        spec = (spec,)
    begin: List[Any] = []
    end: List[Any] = []
    strides: List[Any] = []
    masks = {"begin": 0, "end": 0, "ellipsis": 0, "new_axis": 0, "shrink": 0}
    if (
        len(spec) == 1
        and isinstance(spec[0], (Tensor, np.ndarray))
        and (spec[0].dtype == dtypes.bool_ if isinstance(spec[0], Tensor) else spec[0].dtype == np.bool_)
    ):
        return boolean_mask(tensor, spec[0])
    for i, s in enumerate(spec):
        if isinstance(s, builtins.slice):
            begin.append(0 if s.start is None else _checked_index(s.start))
            end.append(0 if s.stop is None else _checked_index(s.stop))
            strides.append(1 if s.step is None else _checked_index(s.step))
            masks["begin"] |= (s.start is None) << i
            masks["end"] |= (s.stop is None) << i
        elif s is Ellipsis:
            begin.append(0), end.append(0), strides.append(1)  # type: ignore[func-returns-value]
            masks["ellipsis"] |= 1 << i
        elif s is None:
            begin.append(0), end.append(0), strides.append(1)  # type: ignore[func-returns-value]
            masks["new_axis"] |= 1 << i
        else:
            begin.append(_checked_index(s))
            end.append(s + 1)
            strides.append(1)
            masks["shrink"] |= 1 << i
    with name_scope(None, "strided_slice", [tensor]) as scope:
        if begin:
            packed = [_index_vector(v) for v in (begin, end, strides)]
            if any(dtypes.as_dtype(p.dtype) == dtypes.int64 for p in packed):
                packed = [
                    gen_ops.cast(p, dtypes.int64) if isinstance(p, Tensor) and p.dtype != dtypes.int64 else convert_to_tensor(p, dtypes.int64) for p in packed
                ]
        else:
            packed = [np.zeros(0, np.int32) for _ in (0, 1, 2)]
        packed = [p if isinstance(p, Tensor) else constant(p, name=n) for p, n in zip(packed, ("stack", "stack_1", "stack_2"))]
        return strided_slice(
            tensor, packed[0], packed[1], packed[2], masks["begin"], masks["end"], masks["ellipsis"], masks["new_axis"], masks["shrink"], var, scope
        )


def _index_vector(values: List[Any]) -> Any:
    if all(hasattr(v, "__index__") or hasattr(v, "__int__") and not hasattr(v, "_as_graph_element") for v in values):
        numbers = np.array([int(v) for v in values], np.int64)
        return numbers if np.any(numbers != numbers.astype(np.int32)) else numbers.astype(np.int32)
    wide = any(getattr(v, "dtype", None) == dtypes.int64 for v in values)
    dtype = dtypes.int64 if wide else dtypes.int32
    return gen_ops.pack([gen_ops.cast(v, dtype) if isinstance(v, Tensor) and v.dtype.base_dtype != dtype else convert_to_tensor(v, dtype) for v in values])


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Optional[int] = None) -> Tensor:
    """The elements where `mask` is true."""
    with name_scope(name, None, [tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        dims = mask.get_shape()
        if dims.ndims == 0:
            raise at_user_line(ValueError("mask cannot be scalar."))
        if dims.ndims is None:
            raise at_user_line(ValueError("Number of mask dimensions must be specified, even if some dimensions are None."))
        axis = axis or 0
        count = dims.ndims
        tensor.get_shape()[axis : axis + count].assert_is_compatible_with(dims)
        sizes = shape(tensor)
        leading = gen_ops.prod(sizes[axis : axis + count], [0])
        flat = reshape(tensor, concat([sizes[:axis], [leading], sizes[axis + count :]], 0))
        first = dims.num_elements()
        static = tensor.get_shape()
        flat.set_shape(static[:axis].concatenate([first]).concatenate(static[axis + count :]))
        where_true = squeeze(gen_ops.where(reshape(mask, [-1])), [1])
        return gather(flat, where_true, axis=axis)


def where(condition: Any, x: Any = None, y: Any = None, name: Optional[str] = None) -> Tensor:
    """Where the condition is true; with x and y: x there, y elsewhere."""
    if x is None and y is None:
        return gen_ops.where(condition, name=name)
    if x is None or y is None:
        raise at_user_line(ValueError("x and y must both be non-None or both be None."))
    return gen_ops.select(condition, x, y, name=name)


def select(condition: Any, t: Any, e: Any, name: Optional[str] = None) -> Tensor:
    """where with two values, as it was called in 0.x."""
    return gen_ops.select(condition, t, e, name=name)


def unique(x: Any, out_idx: Any = dtypes.int32, name: Optional[str] = None) -> Any:
    """The distinct elements, and for each element which of them it is."""
    return gen_ops.unique(x, out_idx=out_idx, name=name)


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: Optional[str] = None) -> Any:
    """What is in x and not in y, and where."""
    return gen_ops.list_diff(x, y, out_idx=index_dtype, name=name)


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: Optional[str] = None) -> IndexedSlices:
    """The slices of `a` but those whose index is among mask_indices."""
    with name_scope(name, "sparse_mask", [a.values, a.indices, mask_indices]):
        kept, places = setdiff1d(a.indices, convert_to_tensor(mask_indices, a.indices.dtype))
        return IndexedSlices(gather(a.values, places), kept, a.dense_shape)


def listdiff(x: Any, y: Any, out_idx: Any = None, name: Optional[str] = None) -> Any:
    """setdiff1d, as it was called in 0.x."""
    return gen_ops.list_diff(x, y, out_idx=out_idx or dtypes.int32, name=name)


def meshgrid(*args: Any, **kwargs: Any) -> List[Tensor]:
    """Grids of coordinates, as NumPy's."""
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise at_user_line(TypeError("'%s' is an invalid keyword argument for this function" % next(iter(kwargs))))
    if indexing not in ("xy", "ij"):
        raise at_user_line(ValueError("indexing parameter must be either 'xy' or 'ij'"))
    with name_scope(name, "meshgrid", args):
        count = len(args)
        parts = [reshape(stack(x) if isinstance(x, (list, tuple)) else x, [1] * i + [-1] + [1] * (count - i - 1)) for i, x in enumerate(args)]
        sizes = [size(x) for x in args]
        if indexing == "xy" and count > 1:
            parts[0] = reshape(parts[0], [1, -1] + [1] * (count - 2))
            parts[1] = reshape(parts[1], [-1, 1] + [1] * (count - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        unit = gen_ops.fill(stack(sizes), gen_ops.cast(1, parts[0].dtype.base_dtype))
        return [p * unit for p in parts]


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: Optional[str] = None) -> Tensor:
    """For each length n, n times true and then false."""
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            longest = gen_ops.max(reshape(lengths, [-1]), [0])  # of a vector: that of a constant is known when the graph is built
            maxlen = gen_ops.maximum(longest, gen_ops.cast(0, lengths.dtype))
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.shape.ndims not in (0, None):
            raise at_user_line(ValueError("maxlen must be scalar for sequence_mask, got shape %s" % maxlen.shape))
        row = gen_ops.range(gen_ops.cast(0, maxlen.dtype), maxlen, gen_ops.cast(1, maxlen.dtype))
        mask = gen_ops.less(row, gen_ops.cast(expand_dims(lengths, -1), maxlen.dtype.base_dtype))
        return mask if dtypes.as_dtype(dtype) == dtypes.bool_ else gen_ops.cast(mask, dtype)


def required_space_to_batch_paddings(input_shape: Any, block_shape: Any, base_paddings: Any = None, name: Optional[str] = None) -> Any:
    """Paddings and crops that make a shape divisible into blocks: tensors, of known values where all that is given is known."""
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtypes.int32, "input_shape")
        blocks = convert_to_tensor(block_shape, dtypes.int32, "block_shape")
        blocks.get_shape().assert_is_fully_defined()
        blocks.get_shape().assert_has_rank(1)
        count = blocks.get_shape()[0].value
        if count == 0:
            return zeros([0, 2], dtypes.int32), zeros([0, 2], dtypes.int32)
        sizes.get_shape().assert_is_compatible_with([count])
        base = zeros([count, 2], dtypes.int32) if base_paddings is None else convert_to_tensor(base_paddings, dtypes.int32, "base_paddings")
        base.get_shape().assert_is_compatible_with([count, 2])
        known = [constant_value(t) for t in (sizes, blocks, base)]
        if all(v is not None for v in known):
            extra = (-(known[0] + known[2][:, 0] + known[2][:, 1])) % known[1]
            paddings = np.stack([known[2][:, 0], known[2][:, 1] + extra], 1).astype(np.int32)
            return constant(paddings, name="paddings"), constant(np.stack([0 * extra, extra], 1).astype(np.int32), name="crops")
        before, behind = base[:, 0], base[:, 1]
        more = gen_ops.floor_mod(blocks - gen_ops.floor_mod(sizes + before + behind, blocks, name="mod"), blocks, name="mod")
        end = behind + more
        return stack([[before[i], end[i]] for i in range(count)], name="paddings"), stack([[0, more[i]] for i in range(count)], name="crops")


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> tensor_shape.TensorShape:
    """The shape of x + y."""
    return common_shapes.broadcast_shape(shape_x, shape_y)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape of x + y, as a tensor."""
    return gen_ops.broadcast_args(shape_x, shape_y)
