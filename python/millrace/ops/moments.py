# SPDX-License-Identifier: Apache-2.0
"""Means and variances, at once or from sums."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.dialects import either

__all__ = ["moments", "normalize_moments", "sufficient_statistics", "weighted_moments"]


def moments(x: Any, axes: Any, shift: Any = None, name: Optional[str] = None, keep_dims: Any = None, keepdims: Any = None) -> Any:
    """(mean, variance) over axes. The variance is computed from the mean, and needs no `shift`."""
    del shift
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "moments", [x, axes]):
        y = convert_to_tensor(x)
        wide = math_ops.cast(y, dtypes.float32) if y.dtype == dtypes.float16 else y
        mean = math_ops.reduce_mean(wide, axes, True, name="mean")
        variance = math_ops.reduce_mean(gen_ops.squared_difference(wide, gen_ops.stop_gradient(mean)), axes, True, name="variance")
        if not keep:
            mean, variance = array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes)
        if y.dtype == dtypes.float16:
            return math_ops.cast(mean, dtypes.float16), math_ops.cast(variance, dtypes.float16)
        return mean, variance


def weighted_moments(x: Any, axes: Any, frequency_weights: Any, name: Optional[str] = None, keep_dims: Any = None, keepdims: Any = None) -> Any:
    """(mean, variance) over axes, of weighted values."""
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "weighted_moments"):
        x = convert_to_tensor(x)
        w = math_ops.cast(convert_to_tensor(frequency_weights), x.dtype.base_dtype)
        total = math_ops.reduce_sum(w + array_ops.zeros_like(x), axes, True)
        mean = math_ops.reduce_sum(w * x, axes, True) / total
        variance = math_ops.reduce_sum(w * gen_ops.squared_difference(x, mean), axes, True) / total
        return (mean, variance) if keep else (array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes))


def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keep_dims: Any = None, name: Optional[str] = None, keepdims: Any = None) -> Tuple[Any, ...]:
    """(count, sum, sum of squares, shift) over axes, which normalize_moments takes; of x - shift where a shift is given."""
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        axes = sorted({int(a) for a in axes})
        sizes = [x.get_shape()[a].value for a in axes] if x.get_shape().ndims is not None else [None]
        if None in sizes:
            count = math_ops.cast(math_ops.reduce_prod(array_ops.gather(array_ops.shape(x), axes)), x.dtype.base_dtype, name="count")
        else:
            product = 1
            for size in sizes:
                product *= size  # type: ignore[operator]
            count = convert_to_tensor(product, x.dtype.base_dtype, name="count")
        if shift is not None:
            shift = convert_to_tensor(shift, x.dtype.base_dtype, name="shift")
        total = x if shift is None else x - shift
        squares = gen_ops.square(x) if shift is None else gen_ops.squared_difference(x, shift)
        return (count, math_ops.reduce_sum(total, axes, keep, name="mean_ss"), math_ops.reduce_sum(squares, axes, keep, name="var_ss"), shift)


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(mean, variance) from what sufficient_statistics gives."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        share = gen_ops.reciprocal(counts, name="divisor")
        offset = gen_ops.mul(mean_ss, share, name="shifted_mean" if shift is not None else "mean")
        mean = offset if shift is None else gen_ops.add(offset, shift, name="mean")
        return mean, gen_ops.sub(gen_ops.mul(variance_ss, share), gen_ops.square(offset), name="variance")
