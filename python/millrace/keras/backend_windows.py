# SPDX-License-Identifier: Apache-2.0
"""Windows over sequences, images and volumes, and loops over steps, of tf.keras.backend."""

from __future__ import annotations

import itertools
from typing import Any, List, Optional, Sequence, Tuple

from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.keras.backend_settings import image_data_format
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, nn_ops
from millrace.ops.tensor_array_ops import TensorArray

_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def layout(data_format: Optional[str]) -> str:
    """channels_last or channels_first; the default where nothing is said."""
    found = image_data_format() if data_format is None else data_format
    if found not in ("channels_first", "channels_last"):
        raise at_user_line(ValueError("Unknown data_format: %s" % found))
    return found


def _padding(padding: str) -> str:
    if padding not in ("same", "valid", "causal"):
        raise at_user_line(ValueError("Invalid padding: %s" % padding))
    return padding.upper()


def _sized(value: Any, n: int, what: str) -> List[int]:
    made = [value] * n if isinstance(value, int) else [int(v) for v in value]
    if len(made) != n:
        raise at_user_line(ValueError("`%s` must be a tuple of %d integers. Received: %s" % (what, n, value)))
    return made


def _convolution(x: Any, kernel: Any, n: int, strides: Any, padding: str, data_format: Any, dilation_rate: Any) -> Any:
    first = layout(data_format) == "channels_first"
    mode = _padding(padding)
    kernel = convert_to_tensor(kernel)
    if mode == "CAUSAL":
        left = (kernel.get_shape().as_list()[0] - 1) * _sized(dilation_rate, n, "dilation_rate")[0]
        x, mode = temporal_padding(x, (left, 0)), "VALID"
    return nn_ops.convolution(
        convert_to_tensor(x), kernel, mode, _sized(strides, n, "strides"), _sized(dilation_rate, n, "dilation_rate"), data_format=_FORMATS[n][first]
    )


def conv1d(x: Any, kernel: Any, strides: Any = 1, padding: str = "valid", data_format: Any = None, dilation_rate: Any = 1) -> Any:
    """A convolution of sequences."""
    return _convolution(x, kernel, 1, strides, padding, data_format, dilation_rate)


def conv2d(x: Any, kernel: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None, dilation_rate: Any = (1, 1)) -> Any:
    """A convolution of images."""
    return _convolution(x, kernel, 2, strides, padding, data_format, dilation_rate)


def conv3d(x: Any, kernel: Any, strides: Any = (1, 1, 1), padding: str = "valid", data_format: Any = None, dilation_rate: Any = (1, 1, 1)) -> Any:
    """A convolution of volumes."""
    return _convolution(x, kernel, 3, strides, padding, data_format, dilation_rate)


def separable_conv2d(
    x: Any, depthwise_kernel: Any, pointwise_kernel: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None, dilation_rate: Any = (1, 1)
) -> Any:
    """A convolution of each channel alone, then a 1x1 convolution."""
    first, step = layout(data_format) == "channels_first", _sized(strides, 2, "strides")
    return nn_ops.separable_conv2d(
        convert_to_tensor(x),
        convert_to_tensor(depthwise_kernel),
        convert_to_tensor(pointwise_kernel),
        [1, 1, *step] if first else [1, *step, 1],
        _padding(padding),
        rate=_sized(dilation_rate, 2, "dilation_rate"),
        data_format="NCHW" if first else "NHWC",
    )


def depthwise_conv2d(x: Any, depthwise_kernel: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None, dilation_rate: Any = (1, 1)) -> Any:
    """A convolution of each channel alone."""
    first, step = layout(data_format) == "channels_first", _sized(strides, 2, "strides")
    return nn_ops.depthwise_conv2d(
        convert_to_tensor(x),
        convert_to_tensor(depthwise_kernel),
        [1, 1, *step] if first else [1, *step, 1],
        _padding(padding),
        rate=_sized(dilation_rate, 2, "dilation_rate"),
        data_format="NCHW" if first else "NHWC",
    )


def transposed_sizes(
    x: Any, kernel_size: Any, strides: Any, padding: str, first: bool, output_padding: Any = None, dilation_rate: Any = (1, 1, 1)
) -> Tuple[List[Any], List[Any]]:
    """The sizes of a transposed convolution's output as the graph computes them, that of the batch before them, and the numbers that are known, or None."""
    static, dynamic, at = x.get_shape().as_list(), array_ops.shape(x), 2 if first else 1
    same, places = padding.upper() == "SAME", range(len(kernel_size))

    def of(size: Any, i: int) -> Any:
        covered, stride = kernel_size[i] + (kernel_size[i] - 1) * (dilation_rate[i] - 1), strides[i]
        if output_padding is not None:
            return (size - 1) * stride + covered - (covered // 2 * 2 if same else 0) + output_padding[i]
        return size * stride if same else size * stride + max(covered - stride, 0)

    batch, sizes = dynamic[0], [dynamic[at + i] for i in places]
    return [batch, *(of(sizes[i], i) for i in places)], [None if static[at + i] is None else of(static[at + i], i) for i in places]


def _transposed(x: Any, kernel: Any, output_shape: Any, n: int, strides: Any, padding: str, data_format: Any, rate: Any = 1) -> Any:
    first, step = layout(data_format) == "channels_first", _sized(strides, n, "strides")
    op = nn_ops.conv2d_transpose if n == 2 else nn_ops.conv3d_transpose
    x, shape = convert_to_tensor(x), output_shape
    if isinstance(shape, (list, tuple)):
        shape = array_ops.stack([array_ops.shape(x)[0] if shape[0] is None else shape[0], *shape[1:]])
    steps, rates = ([1, 1, *s] if first else [1, *s, 1] for s in (step, _sized(rate, n, "dilation_rate")))
    return op(x, convert_to_tensor(kernel), shape, steps, _padding(padding), data_format=_FORMATS[n][first], dilations=rates)


def conv2d_transpose(
    x: Any, kernel: Any, output_shape: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None, dilation_rate: Any = (1, 1)
) -> Any:
    """The transpose of a convolution of images."""
    return _transposed(x, kernel, output_shape, 2, strides, padding, data_format, dilation_rate)


def conv3d_transpose(x: Any, kernel: Any, output_shape: Any, strides: Any = (1, 1, 1), padding: str = "valid", data_format: Any = None) -> Any:
    """The transpose of a convolution of volumes."""
    return _transposed(x, kernel, output_shape, 3, strides, padding, data_format)


def _pool(x: Any, pool_size: Any, strides: Any, padding: str, data_format: Any, pool_mode: str, n: int) -> Any:
    first, size = layout(data_format) == "channels_first", _sized(pool_size, n, "pool_size")
    step, mode = size if strides is None else _sized(strides, n, "strides"), _padding(padding)
    if pool_mode not in ("max", "avg"):
        raise at_user_line(ValueError("Invalid pooling mode: %s" % pool_mode))
    x = convert_to_tensor(x)
    if n == 1:
        axis = 3 if first else 2
        wide = _pool(array_ops.expand_dims(x, axis), [size[0], 1], [step[0], 1], padding, data_format, pool_mode, 2)
        return array_ops.squeeze(wide, [axis])
    op = {("max", 2): nn_ops.max_pool, ("avg", 2): nn_ops.avg_pool, ("max", 3): nn_ops.max_pool3d, ("avg", 3): nn_ops.avg_pool3d}[pool_mode, n]
    return op(x, [1, 1, *size] if first else [1, *size, 1], [1, 1, *step] if first else [1, *step, 1], mode, data_format=_FORMATS[n][first])  # type: ignore[operator]


def pool1d(x: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: Any = None, pool_mode: str = "max") -> Any:
    """The largest or mean values of windows over sequences."""
    return _pool(x, pool_size, strides, padding, data_format or "channels_last", pool_mode, 1)


def pool2d(x: Any, pool_size: Any, strides: Any = (1, 1), padding: str = "valid", data_format: Any = None, pool_mode: str = "max") -> Any:
    """The largest or mean values of windows over images."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode, 2)


def pool3d(x: Any, pool_size: Any, strides: Any = (1, 1, 1), padding: str = "valid", data_format: Any = None, pool_mode: str = "max") -> Any:
    """The largest or mean values of windows over volumes."""
    return _pool(x, pool_size, strides, padding, data_format, pool_mode, 3)


def temporal_padding(x: Any, padding: Any = (1, 1)) -> Any:
    """Zeros before and after sequences."""
    return array_ops.pad(x, [[0, 0], list(padding), [0, 0]])


def spatial_2d_padding(x: Any, padding: Any = ((1, 1), (1, 1)), data_format: Any = None) -> Any:
    """Zeros around images."""
    inner = [list(p) for p in padding]
    return array_ops.pad(x, [[0, 0], [0, 0], *inner] if layout(data_format) == "channels_first" else [[0, 0], *inner, [0, 0]])


spatial_3d_padding = spatial_2d_padding


def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """Each entry along an axis several times."""
    x = convert_to_tensor(x)
    shape = x.get_shape().as_list()
    axis %= len(shape)
    wide = array_ops.tile(array_ops.expand_dims(x, axis + 1), [rep if i == axis + 1 else 1 for i in range(len(shape) + 1)])
    dynamic = array_ops.shape(x)
    sizes = [-1 if i == axis and s is None else dynamic[i] if s is None else s * (rep if i == axis else 1) for i, s in enumerate(shape)]
    made = array_ops.reshape(wide, array_ops.stack(sizes) if any(s is None for s in shape) else sizes)
    made.set_shape([None if s is None else s * (rep if i == axis else 1) for i, s in enumerate(shape)])
    return made


def resize_images(x: Any, height_factor: int, width_factor: int, data_format: Any, interpolation: str = "nearest") -> Any:
    """Images so many times as high and wide: each row and column several times, or bilinear between them."""
    if interpolation not in ("nearest", "bilinear"):
        raise at_user_line(ValueError("interpolation should be one of nearest or bilinear, got %r" % (interpolation,)))
    at = 2 if layout(data_format) == "channels_first" else 1
    if interpolation == "bilinear":
        x = convert_to_tensor(x)
        images = array_ops.transpose(x, [0, 2, 3, 1]) if at == 2 else x
        sizes = [factor * (images.get_shape()[i].value or array_ops.shape(images)[i]) for i, factor in ((1, height_factor), (2, width_factor))]
        made = gen_ops.resize_bilinear(images, array_ops.stack(sizes), half_pixel_centers=True)
        made.set_shape([images.get_shape()[0], *(size if isinstance(size, int) else None for size in sizes), images.get_shape()[3]])
        return array_ops.transpose(made, [0, 3, 1, 2]) if at == 2 else made
    return repeat_elements(repeat_elements(x, height_factor, at), width_factor, at + 1)


def resize_volumes(x: Any, depth_factor: int, height_factor: int, width_factor: int, data_format: Any) -> Any:
    """Each layer, row and column several times."""
    at = 2 if layout(data_format) == "channels_first" else 1
    return repeat_elements(resize_images(x, depth_factor, height_factor, data_format), width_factor, at + 2)


def bias_add(x: Any, bias: Any, data_format: Any = None) -> Any:
    """x + a number for each channel, or an entry for each place of an example."""
    first = layout(data_format) == "channels_first"
    x, bias = convert_to_tensor(x), convert_to_tensor(bias)
    rank, own = x.get_shape().ndims, bias.get_shape().as_list()
    if len(own) not in (1, (rank or 1) - 1) or rank is not None and rank < 2:
        raise at_user_line(ValueError("Unexpected bias dimensions %d, expect to be 1 or %d dimensions" % (len(own), (rank or 1) - 1)))
    if len(own) == 1:
        return x + array_ops.reshape(bias, [1, own[0]] + [1] * (rank - 2)) if first and rank > 2 else gen_ops.add(x, bias)
    shape = [1, own[-1], *own[:-1]] if first else [1, *own]
    return x + array_ops.reshape(array_ops.transpose(bias, [len(own) - 1, *range(len(own) - 1)]) if first else bias, shape)


def local_conv(inputs: Any, kernel: Any, kernel_size: Any, strides: Any, output_shape: Any, data_format: Any = None) -> Any:
    """A convolution along any number of axes with a kernel of its own at each place, [places, size * channels, filters]."""
    first, n = layout(data_format) == "channels_first", len(output_shape)
    _, features, filters = kernel.get_shape().as_list()
    parts = []
    for place in itertools.product(*map(range, output_shape)):
        seen = [slice(i * step, i * step + size) for i, step, size in zip(place, strides, kernel_size)]
        window = inputs[(slice(None), slice(None), *seen) if first else (slice(None), *seen, slice(None))]
        parts.append(array_ops.reshape(window, [1, -1, features]))
    made = array_ops.reshape(matrix_ops.matmul(array_ops.concat(parts, 0), convert_to_tensor(kernel)), [*output_shape, -1, filters])
    return array_ops.transpose(made, [n, n + 1, *range(n)] if first else [n, *range(n), n + 1])


def local_conv1d(inputs: Any, kernel: Any, kernel_size: Any, strides: Any, data_format: Any = None) -> Any:
    """A convolution of sequences with a kernel of its own at each place, [places, size * channels, filters]."""
    return local_conv(inputs, kernel, kernel_size, strides, kernel.get_shape().as_list()[:1], data_format)


def local_conv2d(inputs: Any, kernel: Any, kernel_size: Any, strides: Any, output_shape: Any, data_format: Any = None) -> Any:
    """A convolution of images with a kernel of its own at each place, [places, size * channels, filters]."""
    return local_conv(inputs, kernel, kernel_size, strides, output_shape, data_format)


# ---- loops ----


def rnn(
    step_function: Any,
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Any = None,
    unroll: bool = False,
    input_length: Optional[int] = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    output_like: Any = None,
) -> Tuple[Any, Any, List[Any]]:
    """(last output, outputs, last states) of a function (input, states) -> (output, states) over the steps, [batch, steps, ...], or with time_major
    [steps, batch, ...]. Steps that a mask leaves out keep the states, and repeat the output before or with zero_output_for_mask put out zeros.
    Inputs and outputs may be structures of tensors."""
    del input_length  # that of the inputs
    form = inputs
    flat = [convert_to_tensor(x) for x in nest.flatten(inputs)]
    for x in flat:
        if (x.get_shape().ndims or 3) < 3:
            raise at_user_line(ValueError("Input should be at least 3D."))

    def swapped(x: Any) -> Any:
        return x if time_major else array_ops.transpose(x, [1, 0, *range(2, x.get_shape().ndims or 2)])

    along = [swapped(x) for x in flat]
    states = [convert_to_tensor(s) for s in nest.flatten(initial_states)]
    constants = list(constants or [])
    flags: Any = None
    if mask is not None:
        mask = math_ops.cast(convert_to_tensor(mask), dtypes.bool_)
        flags = swapped(mask if mask.get_shape().ndims == 2 else array_ops.reshape(mask, array_ops.shape(mask)[:2]))
    if go_backwards:
        along = [array_ops.reverse(x, [0]) for x in along]
        flags = None if flags is None else array_ops.reverse(flags, [0])
    steps = along[0].get_shape().as_list()[0]

    def chosen(flag: Any, new: List[Any], old: Sequence[Any]) -> List[Any]:
        def one(n: Any, o: Any) -> Any:
            sizes = array_ops.concat([array_ops.shape(flag), [1] * (n.get_shape().ndims - 1)], 0)
            return array_ops.where(gen_ops.logical_or(array_ops.reshape(flag, sizes), array_ops.zeros_like(n, dtypes.bool_)), n, o)

        return [one(n, o) for n, o in zip(new, old)]

    structure: Any = None

    def step(x: Sequence[Any], now: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
        nonlocal structure
        structure, new = step_function(nest.pack_sequence_as(form, list(x)), [*now, *constants])
        return nest.flatten(structure), nest.flatten(new)

    if unroll:
        if not steps:
            raise at_user_line(ValueError("Unrolling requires a fixed number of timesteps."))
        made: List[Any] = []
        for i, now in enumerate(zip(*(array_ops.unstack(values) for values in along))):
            output, new = step(now, states)
            if flags is not None:
                output = chosen(flags[i], output, made[-1] if made and not zero_output_for_mask else [array_ops.zeros_like(o) for o in output])
                new = chosen(flags[i], new, states)
            made.append(output)
            states = list(new)
        outputs, last = [array_ops.stack(values) for values in zip(*made)], made[-1]
    else:
        count = array_ops.shape(along[0])[0]
        kept_inputs = [TensorArray(x.dtype.base_dtype, size=count).unstack(x) for x in along]
        kept_flags = None if flags is None else TensorArray(dtypes.bool_, size=count).unstack(flags)
        # An output, for its shape and type: zeros come before the first step.
        trial = [output_like] if output_like is not None else step([x[0] for x in along], states)[0]
        shapes, zeros = [t.get_shape() for t in trial], [array_ops.zeros_like(t) for t in trial]
        many = len(trial)

        def body(time: Any, *rest: Any) -> Any:
            kept, before, now = rest[:many], rest[many : 2 * many], rest[2 * many :]
            read = [values.read(time) for values in kept_inputs]
            for x, whole in zip(read, along):
                x.set_shape(whole.get_shape()[1:])
            output, new = step(read, now)
            if kept_flags is not None:
                flag = kept_flags.read(time)
                flag.set_shape(flags.get_shape()[1:])
                output = chosen(flag, output, zeros if zero_output_for_mask else before)
                new = chosen(flag, new, now)
            for t, shape in [*zip(output, shapes), *((n, s.get_shape()) for n, s in zip(new, now))]:
                t.set_shape(shape)
            return (time + 1, *(values.write(time, t) for values, t in zip(kept, output)), *output, *new)

        found = control_flow_ops.while_loop(
            lambda time, *rest: gen_ops.less(time, count),
            body,
            (convert_to_tensor(0), *(TensorArray(t.dtype.base_dtype, size=count) for t in trial), *zeros, *states),
            parallel_iterations=32,
            swap_memory=True,
        )
        outputs, last, states = [values.stack() for values in found[1 : 1 + many]], list(found[1 + many : 1 + 2 * many]), list(found[1 + 2 * many :])
        for values, shape in zip(outputs, shapes):
            values.set_shape([steps, *(shape.as_list() if shape.ndims is not None else [])])
    for t, values in zip(last, outputs):
        t.set_shape(values.get_shape()[1:])
    outputs = [swapped(values) for values in outputs]
    return nest.pack_sequence_as(structure, last), nest.pack_sequence_as(structure, outputs), states
