# SPDX-License-Identifier: Apache-2.0
"""Pools and transposed convolutions whose number of dimensions the input says, or whose name does."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.random_seed import get_seed
from millrace.ops import array_ops, gen_ops, nn_ops, window_ops
from millrace.ops.dialects import given

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool_v2",
    "conv1d_transpose",
    "conv_transpose",
    "fractional_avg_pool_v2",
    "fractional_max_pool_v2",
    "max_pool1d",
    "max_pool2d",
    "max_pool_v2",
]


def _sizes(value: Any, count: int, channels_first: bool, what: str) -> Any:
    """One number for each of the input's dimensions, out of one for all, one for each of space, or all of them."""
    listed = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(listed) == 1:
        listed = listed * count
    if len(listed) == count + 2:
        return listed
    if len(listed) != count:
        raise at_user_line(ValueError("%s should be of length 1, %d or %d but was %d" % (what, count, count + 2, len(listed))))
    return [1, 1, *listed] if channels_first else [1, *listed, 1]


def _dimensions(input: Tensor, data_format: Optional[str]) -> int:
    count = len(data_format) if data_format else input.get_shape().ndims
    if count not in (3, 4, 5):
        raise at_user_line(ValueError("Input tensor must be of rank 3, 4 or 5 but was %s." % count))
    return count - 2


def _pool(kind: str, input: Any, ksize: Any, strides: Any, padding: Any, data_format: Optional[str], name: Optional[str]) -> Tensor:
    input = convert_to_tensor(input, name="input")
    count = _dimensions(input, data_format)
    data_format = data_format or ("NWC", "NHWC", "NDHWC")[count - 1]
    first = data_format.startswith("NC")
    ksize, strides = _sizes(ksize, count, first, "ksize"), _sizes(strides, count, first, "strides")
    if count == 3:
        return getattr(window_ops, kind + "_pool3d")(input, ksize, strides, padding, data_format=data_format, name=name)
    of_images = getattr(nn_ops, kind + "_pool")
    if count == 2:
        return of_images(input, ksize, strides, padding, data_format=data_format, name=name)
    axis = 2 if first else 1  # a height of one

    def image(sizes: Any) -> Any:
        return [*sizes[:axis], 1, *sizes[axis:]]

    with name_scope(name, "%s_pool1d" % kind, [input]) as scope:
        made = of_images(array_ops.expand_dims(input, axis), image(ksize), image(strides), padding, data_format="NCHW" if first else "NHWC")
        return array_ops.squeeze(made, [axis], name=scope)


def avg_pool_v2(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Optional[str] = None, name: Optional[str] = None) -> Tensor:
    """Means of windows over one, two or three dimensions."""
    return _pool("avg", input, ksize, strides, padding, data_format, name)


def max_pool_v2(input: Any, ksize: Any, strides: Any, padding: Any, data_format: Optional[str] = None, name: Optional[str] = None) -> Tensor:
    """Largest elements of windows over one, two or three dimensions."""
    return _pool("max", input, ksize, strides, padding, data_format, name)


def avg_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: Optional[str] = None) -> Tensor:
    """Means of windows along one dimension."""
    return _pool("avg", input, ksize, strides, padding, data_format, name)


def max_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NWC", name: Optional[str] = None) -> Tensor:
    """Largest elements of windows along one dimension."""
    return _pool("max", input, ksize, strides, padding, data_format, name)


def max_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: Optional[str] = None) -> Tensor:
    """Largest elements of windows of images."""
    return _pool("max", input, ksize, strides, padding, data_format, name)


avg_pool2d = nn_ops.avg_pool


def conv1d_transpose(
    input: Any = None,
    filters: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: Optional[str] = None,
    value: Any = None,
    filter: Any = None,
    stride: Any = None,
) -> Tensor:
    """The transpose of a convolution along one dimension; filters are [width, outputs, inputs]. value, filter and stride are older names."""
    input = given("conv1d_transpose", input=input, value=value)
    filters = given("conv1d_transpose", filters=filters, filter=filter)
    strides = given("conv1d_transpose", strides=strides, stride=stride)
    return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations, name)


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: Optional[str] = None,
    dilations: Any = None,
    name: Optional[str] = None,
) -> Tensor:
    """The transpose of a convolution over one, two or three dimensions."""
    if dilations is not None and any(d != 1 for d in (dilations if isinstance(dilations, (list, tuple)) else [dilations])):
        raise at_user_line(NotImplementedError("conv_transpose with dilations is not provided: use tf.nn.atrous_conv2d_transpose."))
    rank = output_shape.get_shape()[0].value if isinstance(output_shape, Tensor) else len(output_shape) if hasattr(output_shape, "__len__") else None
    if rank is None:
        raise at_user_line(ValueError("output_shape must be a tensor or sized collection."))
    if rank not in (3, 4, 5):
        raise at_user_line(ValueError("output_shape must be of length 3, 4 or 5 but was %d." % rank))
    input, filters, count = convert_to_tensor(input, name="input"), convert_to_tensor(filters, name="filters"), rank - 2
    data_format = data_format or ("NWC", "NHWC", "NDHWC")[count - 1]
    first = data_format.startswith("NC")
    strides = _sizes(strides, count, first, "strides")
    if count == 3:
        return nn_ops.conv3d_transpose(input, filters, output_shape, strides, padding, data_format=data_format, name=name)
    if count == 2:
        return nn_ops.conv2d_transpose(input, filters, output_shape, strides, padding, data_format=data_format, name=name)
    axis = 2 if first else 1
    with name_scope(name, "conv1d_transpose", [input, filters]) as scope:
        shape = convert_to_tensor(output_shape)
        shape = array_ops.concat([shape[:axis], [1], shape[axis:]], 0)
        made = nn_ops.conv2d_transpose(
            array_ops.expand_dims(input, axis),
            array_ops.expand_dims(filters, 0),
            shape,
            [*strides[:axis], 1, *strides[axis:]],
            padding,
            data_format="NCHW" if first else "NHWC",
        )
        return array_ops.squeeze(made, [axis], name=scope)


def _fractional(
    op: Any, value: Any, pooling_ratio: Any, pseudo_random: bool, overlapping: bool, seed: int, name: Optional[str]
) -> Tuple[Tensor, Tensor, Tensor]:
    first, second = get_seed(seed) if seed else (0, 0)
    ratios = [float(ratio) for ratio in _sizes(pooling_ratio, 2, False, "pooling_ratio")]
    return op(value, ratios, pseudo_random, overlapping, deterministic=bool(seed), seed=first, seed2=second, name=name)


def fractional_avg_pool_v2(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, seed: int = 0, name: Optional[str] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    """(means of regions of about `pooling_ratio` elements, where rows of regions begin, where columns do).

    The ratio is one number, one for each axis of space, or one for each axis; where regions begin is drawn anew in each step unless a seed is given.
    """
    return _fractional(gen_ops.fractional_avg_pool, value, pooling_ratio, pseudo_random, overlapping, seed, name)


def fractional_max_pool_v2(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False, seed: int = 0, name: Optional[str] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    """As fractional_avg_pool_v2, with the largest element of each region."""
    return _fractional(gen_ops.fractional_max_pool, value, pooling_ratio, pseudo_random, overlapping, seed, name)
