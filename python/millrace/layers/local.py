# SPDX-License-Identifier: Apache-2.0
"""Convolutions with a kernel of its own at each place."""

from __future__ import annotations

import math
from typing import Any, List, Tuple

import numpy as np

from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.keras.utils import conv_utils
from millrace.layers.convolutional import _Conv
from millrace.layers.settings import InputSpec
from millrace.layers.utils import conv_output_length
from millrace.ops import array_ops, math_ops, matrix_ops, sparse_ops


def make_2d(tensor: Any, split_dim: int) -> Any:
    """A tensor as a matrix: its first split_dim axes are the rows, the others the columns."""
    sizes = array_ops.shape(tensor)
    return array_ops.reshape(tensor, array_ops.stack([math_ops.reduce_prod(sizes[:split_dim]), math_ops.reduce_prod(sizes[split_dim:])]))


class LocallyConnected2D(_Conv):
    """A convolution of images with a kernel of its own at each place. By `implementation` the kernels are (1) one matrix for each place, (2) a
    dense matrix from all inputs to all outputs, zero where they do not meet, or (3) the elements of that matrix where they do; 1 has no padding."""

    settings: Tuple[str, ...] = (*(n for n in _Conv.settings if n != "dilation_rate"), "implementation")

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        if implementation not in (1, 2, 3):
            raise at_user_line(ValueError("Unrecognized implementation mode: %s." % (implementation,)))
        if padding.lower() not in (("valid",) if implementation == 1 else ("valid", "same")):
            raise at_user_line(ValueError('Invalid border mode for %s (only "valid" is supported if implementation is 1): %s' % (type(self).__name__, padding)))
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            **kwargs,
        )
        self.implementation = implementation

    def _joined(self, places: Any, channels: int) -> List[int]:
        """Sizes of places and channels in the order of the data."""
        return [channels, *places] if self._first else [*places, channels]

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
        shape: List[int] = [math.prod(self._out), math.prod(self.kernel_size) * channels, self.filters]
        if self.implementation == 2:
            shape = [*self._joined(sizes, channels), *self._joined(self._out, self.filters)]
            seen = conv_utils.conv_kernel_mask(tuple(sizes), self.kernel_size, self.strides, self.padding)
            channel_axes = (0, self.rank + 1) if self._first else (self.rank, 2 * self.rank + 1)
            self.kernel_mask = np.expand_dims(seen, channel_axes)  # where inputs and outputs meet
        elif self.implementation == 3:
            pairs = conv_utils.conv_kernel_idxs(tuple(sizes), self.kernel_size, self.strides, self.padding, channels, self.filters, self.data_format)
            self._places = np.asarray(sorted(pairs), np.int64)  # of an element of the output and one of the input
            self._full = [math.prod(self._out) * self.filters, math.prod(n or 0 for n in sizes) * channels]
            shape = [len(self._places)]
        self.kernel = self.add_weight("kernel", shape, None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint)
        if self.use_bias:
            self.bias = self.add_weight("bias", [*self._out, self.filters], None, self.bias_initializer, self.bias_regularizer, True, self.bias_constraint)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={1 if self._first else -1: channels})
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        inputs, output = convert_to_tensor(inputs), self._joined(self._out, self.filters)
        if self.implementation == 1:
            made = K.local_conv(inputs, self.kernel, self.kernel_size, self.strides, self._out, self.data_format)
        else:
            flat = array_ops.reshape(inputs, [-1, inputs.get_shape()[1:].num_elements()])
            made = array_ops.reshape(self._by_dense(flat) if self.implementation == 2 else self._by_sparse(flat), [-1, *output])
        made.set_shape([inputs.get_shape()[0].value, *output])
        return self.activation(K.bias_add(made, self.bias, self.data_format) if self.bias is not None else made)

    def _by_dense(self, flat: Any) -> Any:
        kernel = convert_to_tensor(self.kernel)
        return matrix_ops.matmul(flat, array_ops.reshape(kernel * self.kernel_mask.astype(kernel.dtype.as_numpy_dtype), [flat.get_shape()[1].value, -1]))

    def _by_sparse(self, flat: Any) -> Any:
        matrix = SparseTensor(self._places, convert_to_tensor(self.kernel), self._full)
        return array_ops.transpose(sparse_ops.sparse_tensor_dense_matmul(matrix, flat, adjoint_b=True))


class LocallyConnected1D(LocallyConnected2D):
    """A convolution of sequences with a kernel of its own at each place; implementations as those of LocallyConnected2D."""

    rank = 1
