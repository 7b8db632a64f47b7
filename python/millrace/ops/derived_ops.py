# SPDX-License-Identifier: Apache-2.0
"""Functions made of others, which TensorFlow has beside the ops."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops
from millrace.ops.random_ops import random_poisson_v2

__all__ = [
    "assert_near",
    "assert_same_float_dtype",
    "lbeta",
    "log_sigmoid",
    "matvec",
    "polyval",
    "random_poisson",
    "reduce_std",
    "reduce_variance",
    "scalar_mul",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "searchsorted",
    "unsorted_segment_mean",
    "unsorted_segment_sqrt_n",
]


def scalar_mul(scalar: Any, x: Any, name: Optional[str] = None) -> Any:
    """x times one number."""
    scalar = convert_to_tensor(scalar, x.dtype.base_dtype, "scalar")
    if scalar.get_shape().ndims not in (None, 0):
        raise at_user_line(ValueError("Only scalar multiply works, got shape %s" % scalar.get_shape()))
    if isinstance(x, IndexedSlices):
        return IndexedSlices(gen_ops.mul(scalar, x.values, name=name), x.indices, x.dense_shape)
    return gen_ops.mul(scalar, x, name=name)


def log_sigmoid(x: Any, name: Optional[str] = None) -> Tensor:
    """The logarithm of the sigmoid."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        return gen_ops.neg(gen_ops.softplus(-convert_to_tensor(x, name="x")), name=scope)


def lbeta(x: Any, name: Optional[str] = None) -> Tensor:
    """The logarithm of the beta function along the last dimension."""
    with name_scope(name, "lbeta", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return gen_ops.sub(math_ops.reduce_sum(gen_ops.lgamma(x), [-1]), gen_ops.lgamma(math_ops.reduce_sum(x, [-1])), name=scope)


def polyval(coeffs: List[Any], x: Any, name: Optional[str] = None) -> Tensor:
    """A polynomial of x, by Horner's rule; the first coefficient is that of the highest power."""
    with name_scope(name, "polyval", [x]):
        x = convert_to_tensor(x, name="x")
        if not len(coeffs):
            return array_ops.zeros_like(x)
        value = convert_to_tensor(coeffs[0], x.dtype.base_dtype)
        for coefficient in coeffs[1:]:
            value = coefficient + value * x
        return value


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Optional[str] = None) -> Tensor:
    """The variance of elements across dimensions; of complex ones the real mean of squared distances."""
    with name_scope(name, "reduce_variance", [input_tensor]):
        x = convert_to_tensor(input_tensor)
        means = math_ops.reduce_mean(x, axis=axis, keepdims=True)
        away = x - means
        square = math_ops.real(away * gen_ops.conj(away)) if x.dtype.is_complex else gen_ops.square(away)
        return math_ops.reduce_mean(square, axis=axis, keepdims=keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Optional[str] = None) -> Tensor:
    """The standard deviation of elements across dimensions."""
    with name_scope(name, "reduce_std", [input_tensor]):
        return gen_ops.sqrt(reduce_variance(input_tensor, axis, keepdims))


def _segment_counts(data: Tensor, segment_ids: Tensor, num_segments: Any) -> Tensor:
    ones = array_ops.ones(array_ops.shape(segment_ids), data.dtype.base_dtype)
    counts = gen_ops.maximum(gen_ops.unsorted_segment_sum(ones, segment_ids, num_segments), 1)
    extra = gen_ops.sub(array_ops.rank(data), array_ops.rank(segment_ids))
    shape = array_ops.concat([array_ops.shape(counts), array_ops.ones(array_ops.reshape(extra, [1]), dtypes.int32)], 0)
    return array_ops.reshape(counts, shape)


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: Optional[str] = None) -> Tensor:
    """The means of the rows of each segment; 0 for a segment without rows."""
    with name_scope(name, "UnsortedSegmentMean"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        return gen_ops.unsorted_segment_sum(data, segment_ids, num_segments) / _segment_counts(data, segment_ids, num_segments)


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: Optional[str] = None) -> Tensor:
    """The sums of the rows of each segment by the square root of their number."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        return gen_ops.unsorted_segment_sum(data, segment_ids, num_segments) / gen_ops.sqrt(_segment_counts(data, segment_ids, num_segments))


def matvec(
    a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, name: Optional[str] = None
) -> Tensor:
    """Matrices times vectors."""
    with name_scope(name, "MatVec", [a, b]):
        column = array_ops.expand_dims(convert_to_tensor(b), -1)
        product = matrix_ops.matmul(a, column, transpose_a=transpose_a, adjoint_a=adjoint_a, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
        return array_ops.squeeze(product, [-1])


def random_poisson(lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """`shape` samples for each rate."""
    return random_poisson_v2(shape, lam, dtype, seed, name)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: Optional[int] = None,
    message: Optional[str] = None,
    name: Optional[str] = None,
) -> Any:
    """An operation that fails where x and y are not close."""
    with name_scope(name, "assert_near", [x, y]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, "y")
        small = 10 * {"float64": 2.220446e-16, "float16": 0.000976}.get(x.dtype.base_dtype.name, 1.1920929e-07)
        slack = (small if atol is None else atol) + (small if rtol is None else rtol) * gen_ops.abs(y)
        shown = data if data is not None else [message or "", "x and y not equal to tolerance", x, y]
        return control_flow_ops.Assert(math_ops.reduce_all(gen_ops.less(gen_ops.abs(x - y), slack)), shown, summarize=summarize)


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The floating type that all tensors have; ValueError where they have not. None among them counts nothing."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    for tensor in [t for t in tensors or () if t is not None]:
        if wanted is None:
            wanted = tensor.dtype.base_dtype
        elif tensor.dtype.base_dtype != wanted:
            raise at_user_line(ValueError("Tensor %s is of type %s and not %s" % (getattr(tensor, "name", tensor), tensor.dtype.base_dtype.name, wanted.name)))
    wanted = wanted or dtypes.float32
    if not wanted.is_floating:
        raise at_user_line(ValueError("Expected floating point type, got %s." % wanted.name))
    return wanted


def bessel_i0(x: Any, name: Optional[str] = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    with name_scope(name, "bessel_i0", [x]):
        x = convert_to_tensor(x)
        return gen_ops.mul(gen_ops.exp(math_ops.abs(x)), gen_ops.bessel_i0e(x))


def bessel_i1(x: Any, name: Optional[str] = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    with name_scope(name, "bessel_i1", [x]):
        x = convert_to_tensor(x)
        return gen_ops.mul(gen_ops.exp(math_ops.abs(x)), gen_ops.bessel_i1e(x))


def histogram_fixed_width_bins(values: Any, value_range: Any, nbins: int = 100, dtype: Any = dtypes.int32, name: Optional[str] = None) -> Tensor:
    """The number of the part of a range that each value lies in; what is outside counts in the first and the last."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        shape = array_ops.shape(values)
        values = array_ops.reshape(values, [-1])
        value_range = convert_to_tensor(value_range, values.dtype, "value_range")
        bins = convert_to_tensor(nbins, dtypes.int32, "nbins")
        scaled = math_ops.truediv(values - value_range[0], value_range[1] - value_range[0], name="scaled_values")
        indices = gen_ops.floor(math_ops.cast(bins, scaled.dtype) * scaled, name="indices")
        clipped = gen_ops.maximum(gen_ops.minimum(indices, math_ops.cast(bins - 1, indices.dtype)), array_ops.zeros_like(indices))
        return array_ops.reshape(math_ops.cast(clipped, dtype), shape)


def histogram_fixed_width(values: Any, value_range: Any, nbins: int = 100, dtype: Any = dtypes.int32, name: Optional[str] = None) -> Tensor:
    """How many values lie in each of nbins equal parts of a range."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        values = convert_to_tensor(values, name="values")
        return gen_ops.histogram_fixed_width(
            values, convert_to_tensor(value_range, values.dtype), convert_to_tensor(nbins, dtypes.int32), dtype=dtype, name=scope
        )


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: Optional[str] = None) -> Tensor:
    """For each value the place in its sorted row where it could be inserted."""
    if side not in ("left", "right"):
        raise at_user_line(ValueError("side must be either 'right' or 'left'.  Saw: %s." % side))
    sequence, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
    length = gen_ops.shape(sequence)[-1]
    rows, wanted = array_ops.reshape(sequence, [-1, length]), array_ops.reshape(values, [-1, gen_ops.shape(values)[-1]])
    op = gen_ops.lower_bound if side == "left" else gen_ops.upper_bound
    return array_ops.reshape(op(rows, wanted, out_type=out_type, name=name), gen_ops.shape(values))
