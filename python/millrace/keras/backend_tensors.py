# SPDX-License-Identifier: Apache-2.0
"""Functions of tf.keras.backend that are those of tf with other arguments."""

from __future__ import annotations

from typing import Any, Optional

from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x), scaled so that it sums to one along an axis."""
    return nn_ops.softmax(x, axis)


def softplus(x: Any) -> Any:
    """log(exp(x) + 1)."""
    return gen_ops.softplus(x)


def softsign(x: Any) -> Any:
    """x / (|x| + 1)."""
    return gen_ops.softsign(x)


def pow(x: Any, a: Any) -> Any:
    """x to the power of a."""
    return math_ops.pow(x, a)


def reverse(x: Any, axes: Any) -> Any:
    """The order along one axis or several turned around."""
    return array_ops.reverse(x, [axes] if isinstance(axes, int) else axes)


def reshape(x: Any, shape: Any) -> Any:
    """The same elements in another shape."""
    return array_ops.reshape(x, shape)


def shape(x: Any) -> Any:
    """The shape, as a tensor."""
    return array_ops.shape(x)


def expand_dims(x: Any, axis: int = -1) -> Any:
    """A new axis of size 1."""
    return array_ops.expand_dims(x, axis)


def transpose(x: Any) -> Any:
    """The axes in reverse order."""
    return array_ops.transpose(x)


def tile(x: Any, n: Any) -> Any:
    """x repeated n[i] times along each axis."""
    return array_ops.tile(x, [n] if isinstance(n, int) else n)


def gather(reference: Any, indices: Any) -> Any:
    """The slices of a tensor at indices."""
    return array_ops.gather(reference, indices)


def stack(x: Any, axis: int = 0) -> Any:
    """Tensors joined along a new axis."""
    return array_ops.stack(x, axis)


def one_hot(indices: Any, num_classes: int) -> Any:
    """1 at the place that each index says along a new last axis, 0 elsewhere."""
    return array_ops.one_hot(indices, num_classes, axis=-1)


def zeros_like(x: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """Zeros of the shape and type of a tensor."""
    return array_ops.zeros_like(x, dtype, name)


def ones_like(x: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """Ones of the shape and type of a tensor."""
    return array_ops.ones_like(x, dtype, name)
