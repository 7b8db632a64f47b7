# SPDX-License-Identifier: Apache-2.0
"""Means and variances, at once or from sums: the library's composites under TensorFlow's names."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

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
