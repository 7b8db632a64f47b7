# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.resampler: values of images between their pixels."""

from __future__ import annotations

from typing import Any

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, math_ops


def _check(data: TensorShape, warp: TensorShape) -> None:
    if data.ndims not in (None, 4):
        raise at_user_line(ValueError("Only bilinear interpolation is currently supported: data should be [batch, height, width, channels], got %s" % data))
    if warp.ndims is not None and warp.ndims < 2:
        raise at_user_line(ValueError("warp should be at least a matrix, got shape %s" % warp))
    if warp.ndims is not None and not warp[-1:].is_compatible_with([2]):
        raise at_user_line(ValueError("Last dimension of warp tensor should be 2 (x, y), got shape %s" % warp))
    if data.ndims is not None and warp.ndims is not None and not data[:1].is_compatible_with(warp[:1]):
        raise at_user_line(ValueError("Batch size of data and warp tensor must be the same, but input shapes are: %s, %s" % (data, warp)))


def resampler(data: Any, warp: Any, name: str = "resampler") -> Tensor:
    """The bilinear interpolation of images [batch, height, width, channels] at places (x, y): warp [batch, ..., 2]. What lies outside is 0."""
    with name_scope(name, values=[data, warp]) as scope:
        data, warp = convert_to_tensor(data, name="data"), convert_to_tensor(warp, name="warp")
        _check(data.get_shape(), warp.get_shape())
        sizes, shape = array_ops.shape(data), array_ops.shape(warp)
        flat = array_ops.reshape(warp, array_ops.stack([sizes[0], -1, 2]))
        low = gen_ops.floor(flat)
        edge = array_ops.stack([sizes[2], sizes[1]])
        image = array_ops.expand_dims(math_ops.range(sizes[0]), 1) + array_ops.zeros_like(flat[..., 0], "int32")
        total: Any = None
        for right in (0, 1):
            for below in (0, 1):
                corner = low + math_ops.cast([right, below], data.dtype.base_dtype)
                share = math_ops.reduce_prod(1 - gen_ops.abs(flat - corner), [-1], keepdims=True)
                place = math_ops.cast(corner, "int32")
                inside = gen_ops.logical_and(gen_ops.greater_equal(place, 0), gen_ops.less(place, edge))
                inside = math_ops.reduce_all(inside, [-1], keepdims=True)
                place = gen_ops.minimum(gen_ops.maximum(place, 0), edge - 1)
                pixels = array_ops.gather_nd(data, array_ops.stack([image, place[..., 1], place[..., 0]], -1))
                part = math_ops.cast(inside, data.dtype.base_dtype) * share * pixels
                total = part if total is None else total + part
        made = array_ops.reshape(total, array_ops.concat([shape[:-1], sizes[3:]], 0), name=scope)
        if warp.get_shape().ndims is not None:
            made.set_shape(warp.get_shape()[:-1].concatenate(data.get_shape().with_rank(4)[3:]))
        return made
