# SPDX-License-Identifier: Apache-2.0
"""Convolutions of images and volumes, their transposes, and pools of images."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops
from millrace.ops.dialects import either, given
from millrace.ops.window_ops import by_axis as _by_axis
from millrace.ops.window_ops import convolution as _convolution
from millrace.ops.window_ops import dilated as _dilated
from millrace.ops.window_ops import rates_of_graph as _rates_of_graph
from millrace.ops.window_ops import spatial_size as _spatial_size

__all__ = [
    "atrous_conv2d",
    "avg_pool",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "depthwise_conv2d",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "max_pool",
    "max_pool_with_argmax",
    "separable_conv2d",
]


def _format(data_format: Optional[str], default: str) -> str:
    return default if data_format is None else data_format


def _window(sizes: Any, data_format: str) -> Any:
    """The size of a 2-D window for each of the four axes, of one, two or four numbers."""
    if isinstance(sizes, (int, np.integer)):
        sizes = [sizes]
    if not isinstance(sizes, (list, tuple)) or len(sizes) not in (1, 2):
        return sizes
    pair = list(sizes) * (2 // len(sizes))
    return [1, 1] + pair if data_format.startswith("NC") else [1] + pair + [1]


def _edges(padding: Any) -> Any:
    """("EXPLICIT", the numbers) of a list of pairs, how much is put before and behind each axis; or (padding, none)."""
    if not isinstance(padding, (list, tuple)):
        return padding, ()
    if len(padding) != 4 or any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in padding):
        raise at_user_line(ValueError("padding as a list must be four pairs, of the axes, got %r" % (padding,)))
    return "EXPLICIT", [int(n) for pair in padding for n in pair]


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: Optional[str] = None,
    dilations: Any = (1, 1, 1, 1),
    name: Optional[str] = None,
    filters: Any = None,
) -> Tensor:
    """A 2-D convolution of images [batch, height, width, channels] with a filter [height, width, in, out].

    Shapes: input [b, h, w, in], filter [fh, fw, in, out] -> [b, h', w', out]; SAME: h' = ceil(h / stride), VALID: ceil((h - fh + 1) / stride).
    Raises: ValueError when the input is not of rank 4, the channels are not the filter's, or the padding is neither SAME, VALID nor a list.
    """
    filter = given("conv2d", filter=filter, filters=filters)
    layout = _format(data_format, "NHWC")
    edges, explicit = _edges(padding)
    return gen_ops.conv2d(
        input,
        filter,
        _window(1 if strides is None else strides, layout),
        edges,
        explicit_paddings=explicit,
        use_cudnn_on_gpu=use_cudnn_on_gpu is not False,
        data_format=layout,
        dilations=_window(1 if dilations is None else dilations, layout),
        name=name,
    )


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: Optional[str] = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: Optional[str] = None,
    filters: Any = None,
) -> Tensor:
    """A 3-D convolution."""
    filter = given("conv3d", filter=filter, filters=filters)
    return gen_ops.conv3d(input, filter, strides, padding, data_format=_format(data_format, "NDHWC"), dilations=dilations or (1, 1, 1, 1, 1), name=name)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: Optional[str] = "NHWC",
    name: Optional[str] = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose (gradient) of conv2d; filter [height, width, out, in]."""
    value, filter = given("conv2d_transpose", value=value, input=input), given("conv2d_transpose", filter=filter, filters=filters)
    layout = _format(data_format, "NHWC")
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        value, filter = convert_to_tensor(value), convert_to_tensor(filter)
        channel = 3 if layout == "NHWC" else 1
        if not value.get_shape()[channel].is_compatible_with(filter.get_shape()[3]):
            raise at_user_line(
                ValueError("input channels does not match filter's input channels, %s != %s" % (value.get_shape()[channel], filter.get_shape()[3]))
            )
        sizes = convert_to_tensor(output_shape, dtypes.int32, "output_shape")
        result = gen_ops.conv2d_backprop_input(
            sizes, filter, value, _window(strides, layout), padding, data_format=layout, dilations=_by_axis(dilations, layout, 2), name=scope
        )
        if isinstance(output_shape, (list, tuple)):
            result.set_shape([d if isinstance(d, (int, np.integer)) else None for d in output_shape])
        return result


def conv3d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: Optional[str] = "NDHWC",
    name: Optional[str] = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose (gradient) of conv3d; filter [depth, height, width, out, in]."""
    value, filter = given("conv3d_transpose", value=value, input=input), given("conv3d_transpose", filter=filter, filters=filters)
    layout = _format(data_format, "NDHWC")
    return gen_ops.conv3d_backprop_input_v2(
        convert_to_tensor(output_shape, name="output_shape"),
        filter,
        value,
        _by_axis(strides, layout, 3),
        padding,
        data_format=layout,
        dilations=_by_axis(dilations, layout, 3),
        name=name or "conv3d_transpose",
    )


def depthwise_conv2d(
    input: Any, filter: Any, strides: Any, padding: Any, rate: Any = None, name: Optional[str] = None, data_format: Optional[str] = None, dilations: Any = None
) -> Tensor:
    """Each channel convolved with filters of its own, whose taps are rate[0] and rate[1] apart (dilations is its later name)."""
    rate = either("dilations", dilations, "rate", rate)
    with name_scope(name, "depthwise", [input, filter]) as scope:
        return _each_channel(input, filter, strides, padding, rate, _format(data_format, "NHWC"), scope)


def _each_channel(input: Any, filter: Any, strides: Any, padding: Any, rate: Any, layout: str, name: str) -> Tensor:
    """depthwise_conv2d in the scope around."""
    filter = convert_to_tensor(filter)
    array_ops.shape(filter)
    rates = _rates_of_graph([1, 1] if rate is None else rate)
    if rate is None or list(rate) == [1, 1]:
        return gen_ops.depthwise_conv2d_native(input, filter, strides, padding, data_format=layout, name=name)

    def plain(x: Tensor, how: str) -> Tensor:
        return gen_ops.depthwise_conv2d_native(x, filter, strides, how, data_format=layout, name=name)

    return _dilated(input, rates, padding, plain, _spatial_size(filter), (2, 3) if layout == "NCHW" else None, shape_is_there=True)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: Optional[str] = None,
    data_format: Optional[str] = None,
    dilations: Any = None,
) -> Tensor:
    """depthwise_conv2d, then a 1x1 convolution."""
    rate = either("dilations", dilations, "rate", rate)
    with name_scope(name, "separable_conv2d", [input]) as scope:
        layout = _format(data_format, "NHWC")
        between = _each_channel(input, depthwise_filter, strides, padding, rate, layout, "depthwise")
        return gen_ops.conv2d(between, pointwise_filter, [1, 1, 1, 1], "VALID", data_format=layout, name=scope)


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: str, name: Optional[str] = None) -> Tensor:
    """A convolution whose filter has holes: elements are `rate` apart."""
    return _convolution(value, filters, padding, dilation_rate=[rate, rate], name=name)


def max_pool(
    value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None, data_format: str = "NHWC", name: Optional[str] = None, input: Any = None
) -> Tensor:
    """The largest value of each window."""
    with name_scope(name, "MaxPool", [value]) as scope:
        return gen_ops.max_pool(
            value if input is None else input, _window(ksize, data_format), _window(strides, data_format), padding, data_format=data_format, name=scope
        )


def avg_pool(
    value: Any = None, ksize: Any = None, strides: Any = None, padding: Any = None, data_format: str = "NHWC", name: Optional[str] = None, input: Any = None
) -> Tensor:
    """The mean of each window."""
    with name_scope(name, "AvgPool", [value]) as scope:
        return gen_ops.avg_pool(
            value if input is None else input, _window(ksize, data_format), _window(strides, data_format), padding, data_format=data_format, name=scope
        )


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NHWC",
    Targmax: Any = None,
    name: Optional[str] = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:
    """max_pool, and where each maximum was: in its image, or with include_batch_in_index in the batch. The fifth place was Targmax before 1.14."""
    if data_format != "NHWC":
        if isinstance(data_format, str) and data_format.startswith("NC"):
            raise at_user_line(ValueError("Data formats other than 'NHWC' are not yet supported, got %r" % data_format))
        Targmax, name, data_format = data_format, Targmax if isinstance(Targmax, str) else name, "NHWC"
    index = either("output_dtype", output_dtype, "Targmax", Targmax, dtypes.int64)
    size, step = _window(ksize, "NHWC"), _window(strides, "NHWC")
    return gen_ops.max_pool_with_argmax(input, size, step, padding, Targmax=index, include_batch_in_index=include_batch_in_index, name=name)


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: Optional[str] = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of conv2d in its input."""
    edges, explicit = _edges(padding)
    return gen_ops.conv2d_backprop_input(
        input_sizes,
        given("conv2d_backprop_input", filter=filter, filters=filters),
        out_backprop,
        _window(strides, data_format),
        edges,
        explicit_paddings=explicit,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_window(dilations, data_format),
        name=name,
    )


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: Optional[str] = None,
) -> Tensor:
    """The gradient of conv2d in its filter."""
    edges, explicit = _edges(padding)
    return gen_ops.conv2d_backprop_filter(
        input,
        filter_sizes,
        out_backprop,
        _window(strides, data_format),
        edges,
        explicit_paddings=explicit,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_window(dilations, data_format),
        name=name,
    )


depthwise_conv2d_native = gen_ops.depthwise_conv2d_native
depthwise_conv2d_native_backprop_input = gen_ops.depthwise_conv2d_native_backprop_input
depthwise_conv2d_native_backprop_filter = gen_ops.depthwise_conv2d_native_backprop_filter
