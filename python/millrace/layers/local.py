# SPDX-License-Identifier: Apache-2.0
"""Convolutions with a kernel of its own at each place."""

from __future__ import annotations

from typing import Any, List, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.convolutional import _Conv
from millrace.layers.settings import InputSpec
from millrace.layers.utils import conv_output_length


class LocallyConnected2D(_Conv):
    """A convolution of images with a kernel of its own at each place."""

    settings: Tuple[str, ...] = tuple(n for n in _Conv.settings if n != "dilation_rate")

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        activation: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if padding.lower() != "valid":
            raise at_user_line(ValueError('Invalid border mode for %s (only "valid" is supported): %s' % (type(self).__name__, padding)))
        super().__init__(filters, kernel_size, strides, padding, data_format, 1, activation, *args, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Makes kernels and bias."""
        given = TensorShape(input_shape).as_list()
        sizes = given[2:] if self._first else given[1:-1]
        channels = self._channels(input_shape)
        if any(n is None for n in sizes):
            raise at_user_line(
                ValueError(
                    "The spatial dimensions of the inputs to a %s layer should be fully-defined, but layer received the inputs shape %s"
                    % (type(self).__name__, given)
                )
            )
        self._out: List[int] = [conv_output_length(n, k, self.padding, s) or 0 for n, k, s in zip(sizes, self.kernel_size, self.strides)]
        places, features = 1, channels
        for n in self._out:
            places *= n
        for k in self.kernel_size:
            features *= k
        self.kernel = self.add_weight(
            "kernel", [places, features, self.filters], None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint
        )
        if self.use_bias:
            self.bias = self.add_weight("bias", [*self._out, self.filters], None, self.bias_initializer, self.bias_regularizer, True, self.bias_constraint)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={1 if self._first else -1: channels})
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        if self.rank == 1:
            made = K.local_conv1d(inputs, self.kernel, self.kernel_size, self.strides)
        else:
            made = K.local_conv2d(inputs, self.kernel, self.kernel_size, self.strides, self._out, self.data_format)
        made.set_shape([inputs.get_shape()[0].value, self.filters, *self._out] if self._first else [inputs.get_shape()[0].value, *self._out, self.filters])
        return self.activation(K.bias_add(made, self.bias, self.data_format) if self.bias is not None else made)


class LocallyConnected1D(LocallyConnected2D):
    """A convolution of sequences with a kernel of its own at each place."""

    rank = 1

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid", data_format: Any = "channels_last", *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(filters, kernel_size, strides, padding, data_format, *args, **kwargs)
