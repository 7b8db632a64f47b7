# SPDX-License-Identifier: Apache-2.0
"""Windows over one, two or three dimensions: convolutions and pooling of any rank, with holes."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, gen_ops
from millrace.ops.dialects import either, given

__all__ = ["conv1d", "convolution", "max_pool3d", "avg_pool3d", "pool", "with_space_to_batch", "atrous_conv2d_transpose"]


def spatial_size(filters: Any) -> List[int]:
    """How many taps a filter has along each spatial dimension."""
    return [int(d) for d in convert_to_tensor(filters).get_shape().as_list()[:-2]]  # type: ignore[arg-type]


def by_axis(sizes: Any, data_format: str, count: int) -> Any:
    """Numbers for each axis, of one, of one for each spatial axis, or of all; ones for None."""
    sizes = [1] if sizes is None else [sizes] if isinstance(sizes, (int, np.integer)) else list(sizes)
    if len(sizes) not in (1, count):
        return sizes
    spatial = sizes * (count // len(sizes))
    return [1, 1, *spatial] if data_format.startswith("NC") else [1, *spatial, 1]


def dilated(value: Any, rate: Sequence[int], padding: str, compute: Callable[[Tensor, str], Tensor], size: Sequence[int]) -> Tensor:
    """compute(x, "VALID") of the phases of the image, as space_to_batch makes them, with windows of this size."""
    value = convert_to_tensor(value)
    static, dynamic = value.get_shape().as_list(), array_ops.shape(value)
    paddings: List[List[Any]] = []
    crops: List[List[Any]] = []
    for i, (step, taps) in enumerate(zip(rate, size)):
        extra = (taps - 1) * step if padding == "SAME" else 0
        length = (static[1 + i] if static[1 + i] is not None else dynamic[1 + i]) + extra
        missing = (step - length % step) % step
        paddings.append([extra // 2, extra - extra // 2 + missing])
        crops.append([0, missing])
    wide = gen_ops.space_to_batch_nd(value, list(rate), convert_to_tensor(paddings, dtypes.int32))
    return gen_ops.batch_to_space_nd(compute(wide, "VALID"), list(rate), convert_to_tensor(crops, dtypes.int32))


def _list(value: Any, count: int, name: str) -> List[int]:
    made = [1] * count if value is None else [value] * count if isinstance(value, int) else list(value)
    if len(made) != count:
        raise at_user_line(ValueError("%s must have %d elements, got %s" % (name, count, made)))
    return made


def _check_steps(steps: List[int], rates: List[int]) -> None:
    if any(s > 1 for s in steps) and any(r > 1 for r in rates):
        raise at_user_line(ValueError("strides > 1 not supported in conjunction with dilation_rate > 1"))


def _channels_last(value: Tensor, count: int, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Of a tensor whose channels are the second dimension."""
    axes = list(range(2, count + 2))
    made = compute(array_ops.transpose(value, [0, *axes, 1]))
    return array_ops.transpose(made, [0, count + 1, *range(1, count + 1)])


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: Any = None,
    data_format: Optional[str] = None,
    name: Optional[str] = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution of sequences [batch, width, channels] with a filter [width, in, out], whose taps are `dilations` apart."""
    value = given("conv1d", value=value, input=input)
    with name_scope(name, "conv1d", [value, filters]):
        channels_first = data_format in ("NCHW", "NCW")
        spatial = 2 if channels_first else 1

        def along(sizes: Any) -> Any:
            return sizes if isinstance(sizes, (int, np.integer)) else sizes[0] if len(sizes) == 1 else sizes[spatial]

        step, rate = along(stride), along(1 if dilations is None else dilations)
        x = array_ops.expand_dims(value, spatial)
        result = gen_ops.conv2d(
            x,
            array_ops.expand_dims(filters, 0),
            [1, 1, 1, step] if channels_first else [1, 1, step, 1],
            padding,
            use_cudnn_on_gpu=use_cudnn_on_gpu is not False,
            data_format="NCHW" if channels_first else "NHWC",
            dilations=[1, 1, 1, rate] if channels_first else [1, 1, rate, 1],
        )
        return array_ops.squeeze(result, [spatial])


def convolution(
    input: Any,
    filter: Any = None,
    padding: Any = None,
    strides: Any = None,
    dilation_rate: Any = None,
    name: Optional[str] = None,
    data_format: Optional[str] = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution of 1, 2 or 3 spatial dimensions."""
    filter, dilation_rate = given("convolution", filter=filter, filters=filters), either("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, "convolution", [input, filter]) as scope:
        input = convert_to_tensor(input)
        filter = convert_to_tensor(filter, input.dtype.base_dtype)
        count = (filter.get_shape().ndims or 4) - 2
        steps, rates = _list(strides, count, "strides"), _list(dilation_rate, count, "dilation_rate")
        _check_steps(steps, rates)
        first = data_format is not None and data_format.startswith("NC")

        def plain(x: Tensor, how: str, name: Optional[str], channels_first: bool) -> Tensor:
            full = [1, 1] + steps if channels_first else [1] + steps + [1]
            if count == 1:
                return conv1d(x, filter, steps[0], how, data_format="NCHW" if channels_first else None, name=name)
            if count == 2:
                return gen_ops.conv2d(x, filter, full, how, data_format="NCHW" if channels_first else "NHWC", name=name)
            return gen_ops.conv3d(x, filter, full, how, data_format="NCDHW" if channels_first else "NDHWC", name=name)

        if all(r == 1 for r in rates):
            return plain(input, padding, scope, first)

        def with_holes(x: Tensor) -> Tensor:
            return dilated(x, rates, padding, lambda wide, how: plain(wide, how, None, False), spatial_size(filter))

        return _channels_last(input, count, with_holes) if first else with_holes(input)


def max_pool3d(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: Optional[str] = None) -> Tensor:
    """The largest value of each window of volumes."""
    return gen_ops.max_pool3d(input, by_axis(ksize, data_format, 3), by_axis(strides, data_format, 3), padding, data_format=data_format, name=name)


def avg_pool3d(input: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: Optional[str] = None) -> Tensor:
    """The mean of each window of volumes."""
    return gen_ops.avg_pool3d(input, by_axis(ksize, data_format, 3), by_axis(strides, data_format, 3), padding, data_format=data_format, name=name)


def pool(
    input: Any,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: str,
    dilation_rate: Any = None,
    strides: Any = None,
    name: Optional[str] = None,
    data_format: Optional[str] = None,
    dilations: Any = None,
) -> Tensor:
    """The largest values ("MAX") or the means ("AVG") of windows of 1, 2 or 3 spatial dimensions."""
    dilation_rate = either("dilations", dilations, "dilation_rate", dilation_rate)
    count = len(window_shape)
    ops = {"MAX": (gen_ops.max_pool, gen_ops.max_pool3d), "AVG": (gen_ops.avg_pool, gen_ops.avg_pool3d)}
    if pooling_type not in ops:
        raise at_user_line(ValueError("pooling_type must be MAX or AVG, got %s" % (pooling_type,)))
    if count not in (1, 2, 3):
        raise at_user_line(ValueError("window_shape must have 1, 2 or 3 elements, got %s" % (list(window_shape),)))
    steps, rates = _list(strides, count, "strides"), _list(dilation_rate, count, "dilation_rate")
    _check_steps(steps, rates)
    holes = any(r > 1 for r in rates)
    if holes and padding == "SAME":
        raise at_user_line(ValueError("pooling with SAME padding is not implemented for dilation_rate > 1, got %s" % rates))
    op = ops[pooling_type][count == 3]

    plainly = count == 2 and not holes and data_format in (None, "NHWC")  # one node, of the scope's name

    def plain(x: Tensor, how: str) -> Tensor:
        size, step = [1, *window_shape, 1], [1, *steps, 1]
        if plainly:
            return op(x, size, step, how, name=scope)
        if count == 1:
            return array_ops.squeeze(op(array_ops.expand_dims(x, 2), [1, window_shape[0], 1, 1], [1, steps[0], 1, 1], how), [2])
        return op(x, size, step, how)

    def whole(x: Tensor) -> Tensor:
        return dilated(x, rates, padding, plain, window_shape) if holes else plain(x, padding)

    with name_scope(name, "%s_pool" % pooling_type.lower(), [input]) as scope:
        input = convert_to_tensor(input)
        if count == 2 and not holes and data_format == "NCHW":
            return op(input, [1, 1, *window_shape], [1, 1, *steps], padding, data_format="NCHW", name=scope)
        if data_format is not None and data_format.startswith("NC"):
            return _channels_last(input, count, whole)
        return whole(input)


def with_space_to_batch(
    input: Any, dilation_rate: Any, padding: str, op: Any, filter_shape: Any = None, spatial_dims: Any = None, data_format: Optional[str] = None
) -> Tensor:
    """op(input, number of dimensions, padding) over every dilation_rate-th element: batches of them are made, and put together again."""
    input = convert_to_tensor(input)
    rates = [int(r) for r in np.ravel(constant_value(convert_to_tensor(dilation_rate)))]
    first = data_format is not None and data_format.startswith("NC")
    dims = list(spatial_dims) if spatial_dims is not None else list(range(2 if first else 1, len(rates) + (2 if first else 1)))
    if any(b <= a for a, b in zip(dims, dims[1:])) or dims[0] < 1:
        raise at_user_line(ValueError("spatial_dims must be a monotonically increasing sequence of positive integers, got %s" % dims))
    if padding not in ("SAME", "VALID"):
        raise at_user_line(ValueError("Invalid padding method %r" % (padding,)))
    if all(r == 1 for r in rates):
        return op(input, len(rates), padding)
    base = None
    if padding == "SAME":
        if filter_shape is None:
            raise at_user_line(ValueError("filter_shape must be specified for SAME padding"))
        sizes = np.ravel(constant_value(convert_to_tensor(filter_shape)))[: len(rates)]
        more = (sizes - 1) * np.array(rates)
        base = np.stack([more // 2, more - more // 2], 1)
    paddings, crops = array_ops.required_space_to_batch_paddings(array_ops.gather(array_ops.shape(input), dims), rates, base)
    blocks, places = np.ones(dims[-1], np.int32), [d - 1 for d in dims]
    blocks[places] = rates
    rows = [places.index(i) if i in places else None for i in range(dims[-1])]
    wide, narrow = (array_ops.stack([t[r] if r is not None else [0, 0] for r in rows]) for t in (paddings, crops))
    return gen_ops.batch_to_space_nd(op(gen_ops.space_to_batch_nd(input, blocks, wide), len(rates), "VALID"), blocks, narrow)


def atrous_conv2d_transpose(value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: Optional[str] = None) -> Tensor:
    """The transpose (gradient) of atrous_conv2d; filters [height, width, out, in]."""
    value, filters = convert_to_tensor(value), convert_to_tensor(filters)
    if rate < 1:
        raise at_user_line(ValueError("rate %d cannot be less than one" % rate))
    if not value.get_shape()[3].is_compatible_with(filters.get_shape()[3]):
        raise at_user_line(
            ValueError("value's input channels does not match filters' input channels, %s != %s" % (value.get_shape()[3], filters.get_shape()[3]))
        )
    if padding not in ("SAME", "VALID"):
        raise at_user_line(ValueError("padding must be either VALID or SAME: %s" % (padding,)))
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]) as scope:
        result = gen_ops.conv2d_backprop_input(
            convert_to_tensor(output_shape, dtypes.int32), filters, value, [1, 1, 1, 1], padding, dilations=[1, rate, rate, 1], name=scope
        )
        if isinstance(output_shape, (list, tuple)):
            result.set_shape([d if isinstance(d, int) else None for d in output_shape])
        return result
