# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.keras.utils.conv_utils: arguments and sizes of convolutions, and which inputs their outputs see."""

from __future__ import annotations

import itertools
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.layers import utils as _utils
from millrace.layers.utils import conv_input_length, conv_output_length, convert_data_format, normalize_tuple  # noqa: F401


def normalize_data_format(value: Optional[str]) -> str:
    """channels_first or channels_last; that of the backend for None."""
    return _utils.normalize_data_format(K.image_data_format() if value is None else value)


def normalize_padding(value: Any) -> Any:
    """same, valid or causal; sizes as they are."""
    if isinstance(value, (list, tuple)):
        return value
    if value.lower() not in ("valid", "same", "causal"):
        raise at_user_line(
            ValueError('The `padding` argument must be a list/tuple or one of "valid", "same" (or "causal", only for `Conv1D). Received: %s' % value)
        )
    return value.lower()


def deconv_output_length(
    input_length: Optional[int], filter_size: int, padding: str, output_padding: Optional[int] = None, stride: int = 0, dilation: int = 1
) -> Optional[int]:
    """How long a transposed convolution's output is; with output_padding so much longer than the shortest that fits."""
    covered = filter_size + (filter_size - 1) * (dilation - 1)
    if output_padding is None or input_length is None:
        return _utils.deconv_output_length(input_length, covered, padding, stride)
    return (input_length - 1) * stride + covered - 2 * {"same": covered // 2, "valid": 0, "full": covered - 1}[padding] + output_padding


def conv_output_shape(input_shape: Any, kernel_shape: Any, strides: Any, padding: str) -> Tuple[Any, ...]:
    """The places of a convolution's output; none where the input has none."""
    sizes = [conv_output_length(*one) for one in zip(input_shape, kernel_shape, itertools.repeat(padding), strides)]
    return tuple(0 if given == 0 else size for given, size in zip(input_shape, sizes))


def conv_connected_inputs(input_shape: Any, kernel_shape: Any, output_position: Any, strides: Any, padding: str) -> List[range]:
    """For each axis the places of the input that a place of the output sees."""
    found = []
    for size, kernel, place, stride in zip(input_shape, kernel_shape, output_position, strides):
        start = place * stride - (0 if padding == "valid" else kernel // 2)
        found.append(range(max(0, start), min(size, start + kernel)))
    return found


def _connections(input_shape: Any, kernel_shape: Any, strides: Any, padding: str) -> Iterator[Tuple[Tuple[int, ...], Tuple[int, ...]]]:
    """Pairs of a place of the output and a place of the input that it sees, in order."""
    for place in itertools.product(*map(range, conv_output_shape(input_shape, kernel_shape, strides, padding))):
        for seen in itertools.product(*conv_connected_inputs(input_shape, kernel_shape, place, strides, padding)):
            yield place, seen


def _sizes(input_shape: Any, kernel_shape: Any, strides: Any, padding: str) -> Tuple[Any, Any]:
    """Kernel and strides with a number for each axis. Errors for what no convolution is."""
    if padding not in ("same", "valid"):
        raise at_user_line(NotImplementedError('Padding type %s not supported. Only "valid" and "same" are implemented.' % padding))
    n = len(input_shape)
    kernel = (kernel_shape,) * n if isinstance(kernel_shape, int) else kernel_shape
    steps = (strides,) * n if isinstance(strides, int) else strides
    if len(kernel) != n or len(steps) != n:
        raise at_user_line(ValueError("Number of strides, input and kernel dimensions must all match. Received: %d, %d, %d." % (len(steps), n, len(kernel))))
    return kernel, steps


def conv_kernel_mask(input_shape: Any, kernel_shape: Any, strides: Any, padding: str) -> np.ndarray:
    """[*places of the input, *places of the output], true where the one is seen by the other."""
    kernel, steps = _sizes(input_shape, kernel_shape, strides, padding)
    mask = np.zeros((*input_shape, *conv_output_shape(input_shape, kernel, steps, padding)), bool)
    for place, seen in _connections(input_shape, kernel, steps, padding):
        mask[seen + place] = True
    return mask


def conv_kernel_idxs(
    input_shape: Any, kernel_shape: Any, strides: Any, padding: str, filters_in: int, filters_out: int, data_format: str
) -> Iterator[Tuple[int, int]]:
    """Pairs of an element of the output and an element of the input that it sees, as numbers in the flat arrays of one example."""
    kernel, steps = _sizes(input_shape, kernel_shape, strides, padding)
    if data_format not in ("channels_first", "channels_last"):
        raise at_user_line(ValueError('Data format %s not recognized. `data_format` must be "channels_first" or "channels_last".' % data_format))

    def joined(places: Any, channel: int) -> Tuple[int, ...]:
        return (channel, *places) if data_format == "channels_first" else (*places, channel)

    output, given = joined(conv_output_shape(input_shape, kernel, steps, padding), filters_out), joined(input_shape, filters_in)
    for place, seen in _connections(input_shape, kernel, steps, padding):
        for source in range(filters_in):
            for to in range(filters_out):
                yield int(np.ravel_multi_index(joined(place, to), output)), int(np.ravel_multi_index(joined(seen, source), given))


def convert_kernel(kernel: Any) -> np.ndarray:
    """A kernel of Theano as TensorFlow has it, and back: its places are in the other order."""
    kernel = np.asarray(kernel)
    if not 3 <= kernel.ndim <= 5:
        raise at_user_line(ValueError("Invalid kernel shape:", kernel.shape))
    return np.flip(kernel, tuple(range(kernel.ndim - 2))).copy()
