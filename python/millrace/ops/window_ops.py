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


def dilated(
    value: Any,
    rates: Any,
    padding: str,
    compute: Callable[[Tensor, str], Tensor],
    sizes: Optional[Sequence[int]] = None,
    dims: Optional[Sequence[int]] = None,
    shape_is_there: bool = False,
) -> Tensor:
    """compute(x, "VALID") of the phases of the image, as space_to_batch makes them, with windows of these sizes. Nodes and names are TensorFlow's: `rates`
    are a constant of the graph; that of the sizes is made unless it is there."""
    value = convert_to_tensor(value)
    known_rates = [int(r) for r in constant_value(rates)]
    dims = list(range(1, 1 + len(known_rates))) if dims is None else list(dims)
    base: Any = np.zeros([len(dims), 2], np.int32)
    if padding == "SAME":
        if sizes is None:
            raise at_user_line(ValueError("filter_shape must be specified for SAME padding"))
        if not shape_is_there:
            convert_to_tensor(list(sizes), dtypes.int32, "filter_shape")
        more = [(size - 1) * rate for size, rate in zip(sizes, known_rates)]
        base = array_ops.stack([[n // 2, n - n // 2] for n in more])
    static = value.get_shape()
    size: Any = None if static.ndims is None else [static[d].value for d in dims]
    if size is None or None in size:
        dynamic = array_ops.shape(value)
        size = array_ops.stack([dynamic[d] for d in dims])
    paddings, crops = array_ops.required_space_to_batch_paddings(size, rates, base)
    blocks = np.ones(dims[-1], np.int32)
    blocks[[d - 1 for d in dims]] = known_rates
    paddings, crops = _for_all(paddings, dims), _for_all(crops, dims)
    wide = gen_ops.space_to_batch_nd(value, blocks, paddings)
    return gen_ops.batch_to_space_nd(compute(wide, "VALID"), blocks, crops)


def _for_all(pairs: Tensor, dims: Sequence[int]) -> Any:
    """A pair of numbers for each axis up to the last of `dims`, zeros for axes that are none of them."""
    known = constant_value(pairs)
    if known is not None:
        every = np.zeros([dims[-1], 2], np.int32)
        every[[d - 1 for d in dims]] = known
        return every
    parts: List[Any] = []
    axis, at = 1, 0
    while at < len(dims):
        if dims[at] > axis:
            parts.append(np.zeros([dims[at] - axis, 2], np.int32))
        end = at + 1
        while end < len(dims) and dims[end] == dims[end - 1] + 1:
            end += 1
        parts.append(pairs[at:end])
        axis, at = dims[end - 1] + 1, end
    return array_ops.concat(parts, 0)


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
    with name_scope(name, "conv1d", [value, filters]) as scope:
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
            name=scope,
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
        rates = _list(dilation_rate, count, "dilation_rate")
        return convolved(input, filter, padding, strides, rates, data_format is not None and data_format.startswith("NC"), scope)


def rates_of_graph(rates: Sequence[int]) -> Tensor:
    """The constant that TensorFlow makes of rates."""
    return convert_to_tensor(list(rates), dtypes.int32, "dilation_rate")


def convolved(
    input: Tensor, filter: Tensor, padding: str, strides: Any, rates: Sequence[int], first: bool, name: str, rates_there: Optional[Tensor] = None
) -> Tensor:
    """A convolution of 1, 2 or 3 spatial dimensions whose nodes are of the scope around; `name` is that of its operation."""
    count = len(rates)
    steps = _list(strides, count, "strides")
    _check_steps(steps, list(rates))
    full = [1, 1, *steps] if first else [1, *steps, 1]

    def plain(x: Tensor, how: str) -> Tensor:
        if count == 1:
            return conv1d(x, filter, steps[0], how, data_format="NCHW" if first else None, name=name)
        if count == 2:
            return gen_ops.conv2d(x, filter, full, how, data_format="NCHW" if first else "NHWC", name=name)
        return gen_ops.conv3d(x, filter, full, how, data_format="NCDHW" if first else "NDHWC", name=name)

    if all(r == 1 for r in rates):
        return plain(input, padding)
    places = range(2 if first else 1, count + (2 if first else 1))
    return dilated(input, rates_of_graph(rates) if rates_there is None else rates_there, padding, plain, spatial_size(filter), places)


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

    first = data_format is not None and data_format.startswith("NC")
    size, step = ([1, 1, *window_shape], [1, 1, *steps]) if first else ([1, *window_shape, 1], [1, *steps, 1])

    def plain(x: Tensor, how: str) -> Tensor:
        if count != 1:
            layout = {} if not first else {"data_format": "NCHW" if count == 2 else "NCDHW"}
            return op(x, size, step, how, name=scope, **layout)
        wide = array_ops.expand_dims(x, 2)  # [batch, width, 1, channels]
        return array_ops.squeeze(op(wide, [1, window_shape[0], 1, 1], [1, steps[0], 1, 1], how, name=scope), [2])

    with name_scope(name, "%s_pool" % pooling_type.lower(), [input]) as scope:
        input, of_graph = convert_to_tensor(input), rates_of_graph(rates)

        def whole(x: Tensor) -> Tensor:
            return dilated(x, of_graph, padding, plain) if holes else plain(x, padding)

        if first and (count != 2 or holes):
            first, size, step = False, [1, *window_shape, 1], [1, *steps, 1]
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
    of_graph = rates_of_graph(rates)
    if all(r == 1 for r in rates):
        return op(input, len(rates), padding)
    sizes = None if filter_shape is None else [int(n) for n in np.ravel(constant_value(convert_to_tensor(filter_shape, name="filter_shape")))]
    return dilated(input, of_graph, padding, lambda x, how: op(x, len(rates), how), sizes, dims, shape_is_there=True)


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
