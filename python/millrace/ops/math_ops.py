# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, comparisons, reductions, linear algebra."""

from __future__ import annotations

import builtins
from typing import Any, List, Optional
from typing import Protocol as _Protocol

import numpy as np

from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, gen_ops
from millrace.ops.dialects import either, given


# ---- arithmetic ----


def add(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x + y, element by element."""
    return gen_ops.add(x, y, name=name)


def subtract(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x - y, element by element."""
    return gen_ops.sub(x, y, name=name)


def multiply(x: Any, y: Any, name: Optional[str] = None) -> Any:
    """x * y, element by element."""
    return gen_ops.mul(x, y, name=name)


class _OfElements(_Protocol):
    """A function of each element."""

    def __call__(self, x: Any, name: Optional[str] = None) -> Any: ...


class _Reduction(_Protocol):
    """A function of the elements along axes."""

    def __call__(
        self,
        input_tensor: Any,
        axis: Any = None,
        keepdims: Optional[bool] = None,
        name: Optional[str] = None,
        reduction_indices: Any = None,
        keep_dims: Optional[bool] = None,
    ) -> Tensor: ...


def _of_elements(op: Any, what: str, default: str) -> _OfElements:
    """A function of each element, which of a SparseTensor takes those that are stored: it is 0 at 0."""

    def function(x: Any, name: Optional[str] = None) -> Any:
        if isinstance(x, SparseTensor):
            with name_scope(name, default, [x.values]) as scope:
                return SparseTensor(x.indices, op(x.values, name=scope), x.dense_shape)
        return op(x, name=name)

    function.__name__ = function.__qualname__ = "negative" if default == "Neg" else default.lower()
    function.__doc__ = what
    return function


negative = _of_elements(gen_ops.neg, "-x of each element.", "Neg")
sign = _of_elements(gen_ops.sign, "-1, 0 or 1; of a complex number its direction.", "Sign")
square = _of_elements(gen_ops.square, "x * x of each element.", "Square")
sqrt = _of_elements(gen_ops.sqrt, "The square root.", "Sqrt")
erf = _of_elements(gen_ops.erf, "The error function.", "Erf")
sub, mul, neg = subtract, multiply, negative


def abs(x: Any, name: Optional[str] = None) -> Any:
    """|x| of each element; the absolute value of complex numbers is real."""
    if isinstance(x, SparseTensor):
        with name_scope(name, "Abs", [x.values]) as scope:
            return SparseTensor(x.indices, abs(x.values, scope), x.dense_shape)
    x = convert_to_tensor(x, name="x")
    if x.dtype.base_dtype in (dtypes.complex64, dtypes.complex128):
        return gen_ops.complex_abs(x, Tout=x.dtype.real_dtype, name=name)
    return gen_ops.abs(x, name=name)


complex_abs = abs


def div(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x / y; of integers, rounded down."""
    return _floor_div_or_real(x, y, name, "div")


def _floor_div_or_real(x: Any, y: Any, name: Optional[str], default: str) -> Tensor:
    with name_scope(name, default, [x, y]) as scope:
        x, y = _same_type(x, y)
        if x.dtype.is_floating or x.dtype.is_complex:
            return gen_ops.real_div(x, y, name=scope)
        return gen_ops.floor_div(x, y, name=scope)


def _same_type(x: Any, y: Any) -> Any:
    if isinstance(y, Tensor) and not isinstance(x, Tensor):
        x = convert_to_tensor(x, y.dtype.base_dtype, "x")
    x = convert_to_tensor(x, name="x")
    y = convert_to_tensor(y, x.dtype.base_dtype, "y")
    if x.dtype.base_dtype != y.dtype.base_dtype:
        raise at_user_line(TypeError("x and y must have the same dtype, got %r != %r" % (x.dtype, y.dtype)))
    return x, y


_TRUEDIV = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.int32: dtypes.float64,
    dtypes.int64: dtypes.float64,
}


def truediv(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x / y; of integers, in floating point."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x, y = _same_type(x, y)
        wide = _TRUEDIV.get(x.dtype.base_dtype)
        if wide is not None:
            x, y = cast(x, wide), cast(y, wide)
        return gen_ops.real_div(x, y, name=scope)


def divide(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x / y as Python does it."""
    return truediv(x, y, name)


def realdiv(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x / y of their own type: of integers, rounded towards zero."""
    x, y = _same_type(x, y)
    return (gen_ops.truncate_div if x.dtype.is_integer else gen_ops.real_div)(x, y, name=name)


def floordiv(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x / y rounded down."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        x, y = _same_type(x, y)
        return gen_ops.floor_div(x, y, name=scope)


floor_div = floordiv


def floormod(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """The remainder of floordiv."""
    return gen_ops.floor_mod(x, y, name=name)


mod = floormod


def truncatediv(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x / y rounded towards zero."""
    return gen_ops.truncate_div(x, y, name=name)


def truncatemod(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """The remainder of truncatediv."""
    return gen_ops.truncate_mod(x, y, name=name)


def pow(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x to the power of y."""
    with name_scope(name, "Pow", [x]) as scope:
        return gen_ops.pow(x, y, name=scope)


def cast(x: Any, dtype: Any, name: Optional[str] = None) -> Any:
    """The same values in another type."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, cast(x.values, dtype, name), x.dense_shape)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, dtype, name), x.indices, x.dense_shape)
    with name_scope(name, "Cast", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.base_dtype == dtype:
            return x
        return gen_ops.cast(x, dtype, name=scope)


def _limits_of(dtype: Any, source: Any) -> Any:
    """The least and greatest numbers of `source` that are within `dtype`."""
    if dtype.is_floating or not source.is_floating:
        return dtype.min, dtype.max
    narrow = source == dtypes.bfloat16
    number = np.float32 if narrow else source.as_numpy_dtype
    with np.errstate(over="ignore"):
        low, high = number(dtype.min), number(dtype.max)
    limits = np.nextafter(low, number(0)) if float(low) < int(dtype.min) else low, np.nextafter(high, number(0)) if float(high) > int(dtype.max) else high
    return (np.array(limits).view(np.uint32) & 0xFFFF0000).view(number) if narrow else limits  # bfloat16 is a float32 that ends early


def saturate_cast(value: Any, dtype: Any, name: Optional[str] = None) -> Tensor:
    """cast, with values out of range set to the nearest one in it."""
    value, dtype = convert_to_tensor(value), dtypes.as_dtype(dtype)
    limit = _limits_of(dtype, value.dtype.base_dtype)
    infinite = value.dtype.is_floating and not dtype.is_floating  # values may be more than the greatest number of their type
    if infinite or value.dtype.min < dtype.min:
        value = maximum(value, convert_to_tensor(limit[0], value.dtype.base_dtype))
    if infinite or value.dtype.max > dtype.max:
        value = minimum(value, convert_to_tensor(limit[1], value.dtype.base_dtype))
    return cast(value, dtype, name)


def to_float(x: Any, name: str = "ToFloat") -> Any:
    """cast to float32."""
    return cast(x, dtypes.float32, name)


def to_double(x: Any, name: str = "ToDouble") -> Any:
    """cast to float64."""
    return cast(x, dtypes.float64, name)


def to_int32(x: Any, name: str = "ToInt32") -> Any:
    """cast to int32."""
    return cast(x, dtypes.int32, name)


def to_int64(x: Any, name: str = "ToInt64") -> Any:
    """cast to int64."""
    return cast(x, dtypes.int64, name)


def to_bfloat16(x: Any, name: str = "ToBFloat16") -> Any:
    """cast to bfloat16."""
    return cast(x, dtypes.bfloat16, name)


def round(x: Any, name: Optional[str] = None) -> Tensor:
    """Rounded to the nearest integer, halves to even."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else gen_ops.round(x, name=name)


def _type_of_bound(value: Any) -> dtypes.DType:
    if hasattr(value, "dtype"):
        return dtypes.as_dtype(value.dtype).base_dtype
    if isinstance(value, float):
        return dtypes.float32
    return dtypes.int64 if isinstance(value, int) and not -(2**31) <= value < 2**31 else dtypes.int32


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """start, start + delta, ... before limit."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        if dtype is None:  # of what each of them is by itself, the widest
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            dtype = builtins.max((_type_of_bound(v) for v in (start, limit, delta)), key=lambda t: order.index(t) if t in order else 0)
        dtype = dtypes.as_dtype(dtype)
        values = [
            cast(v, dtype) if hasattr(v, "get_shape") else convert_to_tensor(v, dtype, n) for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        return gen_ops.range(values[0], values[1], values[2], name=scope)


def linspace(start: Any, stop: Any, num: Any, name: Optional[str] = None) -> Tensor:
    """num values from start to stop."""
    return gen_ops.lin_space(start, stop, num, name=name)


lin_space = linspace


def add_n(inputs: Any, name: Optional[str] = None) -> Any:
    """The sum of tensors of one shape."""
    inputs = nest.listed(inputs) if not isinstance(inputs, Tensor) else []
    if not inputs:
        raise at_user_line(ValueError("inputs must be a list of at least one Tensor with the same dtype and shape"))
    tensors = [convert_to_tensor(x) for x in inputs]
    if len(tensors) == 1:
        return array_ops.identity(tensors[0], name) if name else tensors[0]
    return gen_ops.add_n(tensors, name=name)


def _as_indexed_slices(x: Any, optimize: bool = True) -> IndexedSlices:
    """A tensor as slices, all of its rows. `optimize`: the shape is a constant where it is known."""
    if isinstance(x, IndexedSlices):
        return x
    if not isinstance(x, Tensor):
        raise at_user_line(TypeError("Not a Tensor or IndexedSlices: %s" % type(x)))
    shape = array_ops.shape(x) if optimize else gen_ops.shape(x)
    return IndexedSlices(x, range(0, shape[0]), shape)


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: Optional[str] = None) -> Tensor:
    """The sum of tensors of one shape and type."""
    inputs = nest.listed(inputs) if not isinstance(inputs, Tensor) else []
    if not inputs:
        raise at_user_line(ValueError("inputs must be a list of at least one Tensor with the same dtype and shape"))
    tensors = [convert_to_tensor(x) for x in inputs]
    if tensor_dtype is not None and any(t.dtype.base_dtype != dtypes.as_dtype(tensor_dtype) for t in tensors):
        raise at_user_line(TypeError("tensor_dtype is %s, but input is of type %s" % (tensor_dtype, tensors[0].dtype)))
    if len(tensors) == 1 and name is None:
        return tensors[0]
    known = tensor_shape.as_shape(shape)
    for t in tensors:
        known = known.merge_with(t.get_shape())
    if not known.is_fully_defined():
        total = gen_ops.add_n(tensors, name=name)
        total.set_shape(known)
        return total
    return gen_ops.accumulate_nv2(tensors, known, name=name)


# ---- comparisons and logic ----


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """Whether exactly one is true."""
    return gen_ops.logical_and(gen_ops.logical_or(x, y), gen_ops.logical_not(gen_ops.logical_and(x, y)), name=name)


def equal(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """Whether x == y, element by element."""
    return gen_ops.equal(x, y, name=name)


def not_equal(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """Whether x != y, element by element."""
    return gen_ops.not_equal(x, y, name=name)


def maximum(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """The larger of both, element by element."""
    return gen_ops.maximum(x, y, name=name)


def minimum(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """The smaller of both, element by element."""
    return gen_ops.minimum(x, y, name=name)


def argmax(input: Any, axis: Any = None, name: Optional[str] = None, dimension: Any = None, output_type: Any = dtypes.int64) -> Tensor:
    """Where the largest element is, along an axis."""
    return gen_ops.arg_max(input, either("axis", axis, "dimension", dimension, 0), output_type=output_type, name=name)


def argmin(input: Any, axis: Any = None, name: Optional[str] = None, dimension: Any = None, output_type: Any = dtypes.int64) -> Tensor:
    """Where the smallest element is, along an axis."""
    return gen_ops.arg_min(input, either("axis", axis, "dimension", dimension, 0), output_type=output_type, name=name)


def arg_max(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: Optional[str] = None) -> Tensor:
    """argmax with the arguments of the op."""
    return gen_ops.arg_max(input, dimension, output_type=output_type, name=name)


def arg_min(input: Any, dimension: Any, output_type: Any = dtypes.int64, name: Optional[str] = None) -> Tensor:
    """argmin with the arguments of the op."""
    return gen_ops.arg_min(input, dimension, output_type=output_type, name=name)


# ---- reductions ----


def _axes(x: Tensor, axis: Any) -> Any:
    ndims = x.get_shape().ndims
    if axis is not None:
        is_list = isinstance(axis, (list, tuple)) and len(axis) > 1 and all(isinstance(a, int) for a in axis)
        if is_list and ndims and len({a % ndims for a in axis}) < len(axis) and all(-ndims <= a < ndims for a in axis):
            return sorted({a % ndims for a in axis})  # TensorFlow 1.x takes an axis that is named twice
        return axis
    if ndims is not None:
        return constant(np.arange(ndims, dtype=np.int32))
    return gen_ops.range(0, array_ops.rank(x), 1)


def reduced_shape(input_shape: Any, axes: Any) -> Any:
    """The shape of a reduction that keeps its axes as ones."""
    shape, axes = convert_to_tensor(input_shape), convert_to_tensor(axes)
    known = constant_value(shape), constant_value(axes)
    if known[0] is not None and known[1] is not None:
        sizes = np.array(known[0])
        sizes[known[1].astype(np.int64)] = 1
        return constant(sizes)
    shape, axes = to_int32(shape), to_int32(axes)
    rank = array_ops.size(shape)
    axes = gen_ops.floor_mod(axes + rank, rank)
    return gen_ops.dynamic_stitch([gen_ops.range(0, rank, 1), axes], [shape, array_ops.fill(array_ops.shape(axes), 1)])


def _reduction(name: str, op: Any, what: str, dtype: Any = None) -> _Reduction:
    def reduce(
        input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Optional[str] = None, reduction_indices: Any = None, keep_dims: Any = None
    ) -> Tensor:
        axis = either("axis", axis, "reduction_indices", reduction_indices)
        keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
        x = convert_to_tensor(input_tensor, dtype, name="input_tensor")
        made: Tensor = op(x, _axes(x, axis), keep_dims=keep, name=name)
        if axis is None and not keep:
            made.set_shape([])
        return made

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = "%s along axes (all unless given)." % what
    return reduce


reduce_sum = _reduction("reduce_sum", gen_ops.sum, "The sum")
reduce_mean = _reduction("reduce_mean", gen_ops.mean, "The mean")
reduce_prod = _reduction("reduce_prod", gen_ops.prod, "The product")
reduce_max = _reduction("reduce_max", gen_ops.max, "The maximum")
reduce_min = _reduction("reduce_min", gen_ops.min, "The minimum")
reduce_all = _reduction("reduce_all", gen_ops.all, "Whether all are true", dtypes.bool_)
reduce_any = _reduction("reduce_any", gen_ops.any, "Whether any is true", dtypes.bool_)


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = dtypes.int64,
    name: Optional[str] = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
    input: Any = None,
) -> Tensor:
    """How many elements are not zero, along axes."""
    input_tensor = given("count_nonzero", input_tensor=input_tensor, input=input)
    with name_scope(name, "count_nonzero", [input_tensor]):
        x = convert_to_tensor(input_tensor, name="input")
        flags = cast(gen_ops.not_equal(x, array_ops.zeros([], x.dtype.base_dtype)), dtypes.int64)
        return cast(reduce_sum(flags, axis, keepdims, None, reduction_indices, keep_dims), dtype)


def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Optional[str] = None, reduction_indices: Any = None, keep_dims: Any = None
) -> Tensor:
    """log(sum(exp(x))) along axes, without overflow."""
    axis = either("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        x = convert_to_tensor(input_tensor)
        largest = reduce_max(x, axis, True)
        shift = gen_ops.stop_gradient(array_ops.where(gen_ops.is_finite(largest), largest, array_ops.zeros_like(largest)))
        logs = gen_ops.log(reduce_sum(gen_ops.exp(x - shift), axis, keep))
        return gen_ops.add(logs, shift if keep else array_ops.reshape(shift, array_ops.shape(logs)), name=scope)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Optional[str] = None) -> Tensor:
    """Running sums along an axis."""
    return gen_ops.cumsum(x, axis, exclusive=exclusive, reverse=reverse, name=name)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Optional[str] = None) -> Tensor:
    """Running products along an axis."""
    return gen_ops.cumprod(x, axis, exclusive=exclusive, reverse=reverse, name=name)


# ---- clipping ----


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: Optional[str] = None) -> Any:
    """Values below the minimum or above the maximum set to these."""
    with name_scope(name, "clip_by_value", [t]) as scope:
        if isinstance(t, IndexedSlices):
            return IndexedSlices(clip_by_value(t.values, clip_value_min, clip_value_max), t.indices, t.dense_shape)
        t = convert_to_tensor(t, name="t")
        clipped = gen_ops.maximum(gen_ops.minimum(t, clip_value_max), clip_value_min, name=scope)
        if not t.shape.is_compatible_with(clipped.shape):
            raise at_user_line(
                ValueError(
                    "clip_by_value: bounds of shapes %s and %s do not fit a tensor of shape %s"
                    % (convert_to_tensor(clip_value_min).shape, convert_to_tensor(clip_value_max).shape, t.shape)
                )
            )
        return clipped


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: Optional[str] = None) -> Any:
    """Scaled down to a norm of at most clip_norm."""
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        if isinstance(t, IndexedSlices):
            return IndexedSlices(clip_by_norm(t.values, clip_norm, axes), t.indices, t.dense_shape)
        t = convert_to_tensor(t, name="t")
        if isinstance(clip_norm, Tensor):
            clip_norm = cast(clip_norm, t.dtype.base_dtype)
        squares = reduce_sum(t * t, axes, True)
        longer = gen_ops.greater(squares, 0)  # the root has no derivative at 0, nor need it have one
        size = array_ops.where(longer, gen_ops.sqrt(array_ops.where(longer, squares, array_ops.ones_like(squares))), squares)
        clipped = t * clip_norm
        t.get_shape().assert_is_compatible_with(clipped.get_shape())  # a norm for each element, not more of them
        return array_ops.identity(clipped / gen_ops.maximum(size, clip_norm), scope)


def global_norm(t_list: Any, name: Optional[str] = None) -> Optional[Tensor]:
    """The norm of all tensors together; None entries count nothing."""
    values = [t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t) for t in t_list if t is not None]
    return gen_ops.global_norm(values, name=name or "global_norm") if values else None


def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: Optional[str] = None) -> Any:
    """(tensors scaled down to a common norm of at most clip_norm, that norm); None entries stay None."""
    if isinstance(t_list, (Tensor, str)) or not hasattr(t_list, "__iter__"):
        raise at_user_line(TypeError("t_list should be a sequence"))
    t_list = list(t_list)
    size = convert_to_tensor(use_norm) if use_norm is not None else global_norm(t_list, name and name + "_norm")
    if size is None:
        return t_list, constant(0.0)
    with name_scope(name, "clip_by_global_norm", [size]):
        scale = clip_norm * gen_ops.minimum(1.0 / size, constant(1.0, size.dtype.base_dtype) / clip_norm)
        scale = scale + (size - size)  # an infinite norm is no number to scale by: NaN, and not zeros that hide it
        clipped: List[Any] = []
        for t in t_list:
            if t is None:
                clipped.append(None)
            elif isinstance(t, IndexedSlices):
                clipped.append(IndexedSlices(t.values * scale, t.indices, t.dense_shape))
            else:
                clipped.append(gen_ops.mul(t, cast(scale, convert_to_tensor(t).dtype.base_dtype)))
        return clipped, size


def clip_by_average_norm(t: Any, clip_norm: Any, name: Optional[str] = None) -> Tensor:
    """Scaled down to an average norm of at most clip_norm."""
    t = convert_to_tensor(t)
    count = cast(array_ops.size(t), t.dtype.base_dtype)
    average = gen_ops.sqrt(reduce_sum(t * t)) / count
    return array_ops.identity(t * (clip_norm / gen_ops.maximum(average, clip_norm)), name)


def sigmoid(x: Any, name: Optional[str] = None) -> Tensor:
    """1 / (1 + exp(-x))."""
    return gen_ops.sigmoid(x, name=name)


tanh = _of_elements(gen_ops.tanh, "The hyperbolic tangent.", "Tanh")


def conj(x: Any, name: Optional[str] = None) -> Tensor:
    """The complex conjugate; real tensors as they are."""
    if isinstance(x, Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex or x.dtype.base_dtype == dtypes.variant:
            return gen_ops.conj(x, name=scope)
        if not (x.dtype.is_floating or x.dtype.is_integer):
            raise at_user_line(TypeError("Expected numeric or variant tensor, got dtype %r" % x.dtype))
        return x


def real(input: Any, name: Optional[str] = None) -> Tensor:
    """The real part."""
    with name_scope(name, "Real", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return gen_ops.real(x, Tout=x.dtype.real_dtype, name=scope) if x.dtype.is_complex else x


def imag(input: Any, name: Optional[str] = None) -> Tensor:
    """The imaginary part; of what is not complex zeros."""
    with name_scope(name, "Imag", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return gen_ops.imag(x, Tout=x.dtype.real_dtype, name=scope) if x.dtype.is_complex else array_ops.zeros_like(x)


def complex(real: Any, imag: Any, name: Optional[str] = None) -> Tensor:
    """A complex tensor of two real ones."""
    real = convert_to_tensor(real)
    out = dtypes.complex128 if real.dtype.base_dtype == dtypes.float64 else dtypes.complex64
    return gen_ops.complex(real, imag, Tout=out, name=name)


def angle(input: Any, name: Optional[str] = None) -> Tensor:
    """The argument of complex numbers; of real ones 0 or pi."""
    with name_scope(name, "Angle", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        if x.dtype.is_complex:
            return gen_ops.angle(x, Tout=x.dtype.real_dtype, name=scope)
        return array_ops.where(gen_ops.less(x, array_ops.zeros_like(x)), np.pi * array_ops.ones_like(x), array_ops.zeros_like(x))


def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32) -> Tensor:
    """How often each number occurs; with weights, their sum for each number."""
    return bincount_v2(arr, weights, minlength, maxlength, dtype)


def bincount_v2(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32, name: Optional[str] = None) -> Tensor:
    """bincount, with a name for the scope of its operations."""
    with name_scope("bincount" if name is None else name):
        arr = convert_to_tensor(arr, dtypes.int32, "arr")
        some = gen_ops.cast(gen_ops.greater(array_ops.size(arr), 0), dtypes.int32)
        size = some * (reduce_max(arr) + 1)
        if minlength is not None:
            size = gen_ops.maximum(convert_to_tensor(minlength, dtypes.int32), size)
        if maxlength is not None:
            size = gen_ops.minimum(convert_to_tensor(maxlength, dtypes.int32), size)
        if weights is None:
            return gen_ops.bincount(arr, size, constant([], dtype))
        if maxlength is not None:
            arr = array_ops.where(gen_ops.less(arr, size), arr, -array_ops.ones_like(arr))  # left out
        return gen_ops.unsorted_segment_sum(convert_to_tensor(weights, name="weights"), arr, size)
