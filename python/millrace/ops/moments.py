# SPDX-License-Identifier: Apache-2.0
"""Means and variances, at once or from sums: the library's composites under TensorFlow's names."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.dialects import either

__all__ = ["moments", "normalize_moments", "sufficient_statistics", "weighted_moments"]


def _axes(axes: Any) -> List[int]:
    """Axes as numbers, which they have to be when the graph is built."""
    known = constant_value(axes) if isinstance(axes, Tensor) else axes
    if known is None:
        raise at_user_line(ValueError("axes must be known when the graph is built, got %s" % axes))
    return [int(a) for a in np.ravel(known)]


def moments(x: Any, axes: Any, shift: Any = None, name: Optional[str] = None, keep_dims: Any = None, keepdims: Any = None) -> Any:
    """(mean, variance) over axes. The variance is computed from the mean, and needs no `shift`."""
    del shift
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "moments", [x, axes]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_integer:
            mean = math_ops.reduce_mean(x, _axes(axes), True)
            both = mean, math_ops.reduce_mean(gen_ops.squared_difference(x, mean), _axes(axes), True)
            return both if keep else tuple(array_ops.squeeze(m, _axes(axes)) for m in both)
        return tuple(gen_ops.moments(x, axes=_axes(axes), keep_dims=keep, name=scope))


def weighted_moments(x: Any, axes: Any, frequency_weights: Any, name: Optional[str] = None, keep_dims: Any = None, keepdims: Any = None) -> Any:
    """(mean, variance) over axes, of weighted values."""
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "weighted_moments") as scope:
        x = convert_to_tensor(x, name="x")
        weights = math_ops.cast(convert_to_tensor(frequency_weights, name="frequency_weights"), x.dtype.base_dtype)
        return tuple(gen_ops.weighted_moments(x, weights, axes=_axes(axes), keep_dims=keep, name=scope))


def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keep_dims: Any = None, name: Optional[str] = None, keepdims: Any = None) -> Tuple[Any, ...]:
    """(count, sum, sum of squares, shift) over axes, which normalize_moments takes; of x - shift where a shift is given."""
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "sufficient_statistics", [x, shift]) as scope:
        x = convert_to_tensor(x, name="x")
        if shift is not None:
            shift = convert_to_tensor(shift, x.dtype.base_dtype, name="shift")
        given = [] if shift is None else [shift]
        return (*gen_ops.sufficient_statistics(x, given, axes=sorted(set(_axes(axes))), keep_dims=keep, name=scope), shift)


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(mean, variance) from what sufficient_statistics gives."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]) as scope:
        mean, variance = gen_ops.normalize_moments(counts, mean_ss, variance_ss, [] if shift is None else [shift], name=scope)
        return mean, variance


def batch_norm_gradients(
    grad_y: Any, x: Any, scale: Any, pop_mean: Any, pop_var: Any, epsilon: float, data_format: Any, is_training: bool = True
) -> Tuple[Tensor, Tensor, Tensor]:
    """The gradients by x, scale and offset of x normalized with its own mean and variance, or with those given, stated in plain operations.

    Shapes: grad_y and x [batch, height, width, c], or with data_format NCHW [batch, c, height, width]; scale, pop_mean and pop_var [c] -> that of x, [c], [c].
    Halves are computed in float32, which the gradients by scale and offset stay in.
    """
    first = data_format in ("NCHW", b"NCHW")
    axes, spread = ([0, 2, 3], [1, -1, 1, 1]) if first else ([0, 1, 2], [1, 1, 1, -1])
    x, grad_y = convert_to_tensor(x), convert_to_tensor(grad_y)
    wide, incoming = (math_ops.cast(t, dtypes.float32) if t.dtype.base_dtype == dtypes.float16 else t for t in (x, grad_y))

    def along(value: Any) -> Tensor:
        return array_ops.reshape(value, spread)

    mean, variance = moments(wide, axes) if is_training else (pop_mean, pop_var)
    inverse = gen_ops.rsqrt(along(variance) + epsilon)
    normalized = (wide - along(mean)) * inverse
    grad_offset, grad_scale = math_ops.reduce_sum(incoming, axes), math_ops.reduce_sum(incoming * normalized, axes)
    through = incoming
    if is_training:
        count = math_ops.cast(array_ops.size(wide) / array_ops.size(grad_offset), wide.dtype.base_dtype)
        through = incoming - (along(grad_offset) + normalized * along(grad_scale)) / count
    return math_ops.cast(through * inverse * along(scale), x.dtype.base_dtype), grad_scale, grad_offset
