# SPDX-License-Identifier: Apache-2.0
"""Convolutions along sequences of images."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.keras.backend_windows import layout
from millrace.layers.recurrent import LSTMCell, _OwnCell
from millrace.layers.settings import InputSpec
from millrace.layers.utils import normalize_tuple
from millrace.layers.utils import conv_output_length
from millrace.ops import array_ops


class ConvLSTM2DCell(LSTMCell):
    """A step of a long short-term memory of images."""

    settings: Tuple[str, ...] = (
        "filters",
        "kernel_size",
        "strides",
        "padding",
        "data_format",
        "dilation_rate",
        *(n for n in LSTMCell.settings if n not in ("units", "implementation")),
    )

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: Any = None,
        dilation_rate: Any = (1, 1),
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(filters, *args, **kwargs)
        self.filters, self.kernel_size, self.strides = int(filters), normalize_tuple(kernel_size, 2, "kernel_size"), normalize_tuple(strides, 2, "strides")
        self.padding, self.data_format, self.dilation_rate = padding.lower(), layout(data_format), normalize_tuple(dilation_rate, 2, "dilation_rate")

    def build(self, input_shape: Any) -> None:
        """Makes kernels and bias."""
        channels = TensorShape(input_shape)[1 if self.data_format == "channels_first" else -1].value
        if channels is None:
            raise at_user_line(ValueError("The channel dimension of the inputs should be defined. Found `None`."))
        self.kernel = self.add_weight(
            "kernel", [*self.kernel_size, channels, self.filters * 4], None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint
        )
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel",
            [*self.kernel_size, self.filters, self.filters * 4],
            None,
            self.recurrent_initializer,
            self.recurrent_regularizer,
            True,
            self.recurrent_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight("bias", [self.filters * 4], None, self._first_bias(), self.bias_regularizer, True, self.bias_constraint)
        self.built = True

    def project(self, x: Any) -> Any:
        """What the images of a step add to the gates."""
        if self._masks[0] is not None:
            x = x * self._masks[0]
        made = K.conv2d(x, self.kernel, self.strides, self.padding, self.data_format, self.dilation_rate)
        return made if self.bias is None else K.bias_add(made, self.bias, self.data_format)

    def advance(self, projected: Any, states: Any) -> Tuple[Any, List[Any]]:
        """(output, new states)."""
        h, c = states
        axis = 1 if self.data_format == "channels_first" else 3
        i, f, g, o = array_ops.split(projected + K.conv2d(self._before(h), self.recurrent_kernel, (1, 1), "same", self.data_format), 4, axis)
        cell = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(g)
        made = self.recurrent_activation(o) * self.activation(cell)
        return made, [made, cell]


class ConvLSTM2D(_OwnCell):
    """A long short-term memory along sequences of images."""

    kind = ConvLSTM2DCell

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.input_spec = [InputSpec(ndim=5)]

    def build(self, input_shape: Any) -> None:
        """Builds the cell, and variables for states that are kept."""
        shape = TensorShape(input_shape[0] if isinstance(input_shape, list) and not isinstance(input_shape[0], (int, type(None))) else input_shape)
        self._image = self._out(shape.as_list()[2:])
        super().build(input_shape)
        self.input_spec = [InputSpec(ndim=5)]

    def _out(self, image: Any) -> List[Any]:
        cell, first = self.cell, self.cell.data_format == "channels_first"
        sizes = image[1:] if first else image[:2]
        made = [conv_output_length(n, k, cell.padding, s, d) for n, k, s, d in zip(sizes, cell.kernel_size, cell.strides, cell.dilation_rate)]
        return [cell.filters, *made] if first else [*made, cell.filters]

    def _state_shapes(self, batch: int) -> List[Any]:
        return [(batch, *self._image)] * 2

    def get_initial_state(self, inputs: Any) -> List[Any]:
        """The states before the first step for inputs: zeros."""
        sizes = [array_ops.shape(inputs)[0], *self._image]
        return [array_ops.zeros(array_ops.stack(sizes), inputs.dtype.base_dtype) for _ in range(2)]

    def _shape_states(self, states: List[Any], batch: Optional[int]) -> None:
        for s in states:
            s.set_shape([batch, *self._image])

    def _stepping(self, x: Any, start: List[Any], training: Any, constants: List[Any]) -> Any:
        if constants:
            raise at_user_line(ValueError("RNN cell does not support constants"))
        self.cell.drop(x[:, 0], start[0], training)
        return (lambda now, states: self.cell.advance(self.cell.project(now), states)), x, start[0]
