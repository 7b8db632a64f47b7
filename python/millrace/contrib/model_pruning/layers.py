# SPDX-License-Identifier: Apache-2.0
"""Layers and recurrent cells whose kernels have masks."""

from __future__ import annotations

from typing import Any, List

from millrace import layers as _layers
from millrace.contrib.framework import add_arg_scope
from millrace.contrib.layers import _collect, _normalized, _renamed, _variables_of, xavier_initializer
from millrace.contrib.model_pruning.weights import MASK_COLLECTION as MASK_COLLECTION
from millrace.contrib.model_pruning.weights import MASKED_WEIGHT_COLLECTION as MASKED_WEIGHT_COLLECTION
from millrace.contrib.model_pruning.weights import masked
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import init_ops, nn_ops, rnn_cells
from millrace.ops.variable_scope import variable_scope


class _Masked:
    """A layer with a mask and a bound beside its kernel."""

    kernel: Any

    def build(self, input_shape: Any) -> None:
        """Makes the variables, and what the kernel is behind its mask."""
        super().build(input_shape)  # type: ignore[misc]
        self.built = False
        shape = self.kernel.get_shape().as_list()
        self.mask = self.add_weight("mask", shape, initializer=init_ops.ones_initializer(), trainable=False)  # type: ignore[attr-defined]
        self.threshold = self.add_weight("threshold", [], initializer=init_ops.zeros_initializer(), trainable=False)  # type: ignore[attr-defined]
        self.masked_kernel = masked(self.kernel, self.mask, self.threshold)
        self.built = True

    def _kernel_of_call(self) -> Any:
        return self.masked_kernel


class MaskedConv2D(_Masked, _layers.Conv2D):
    """tf.layers.Conv2D with a masked kernel."""


class MaskedFullyConnected(_Masked, _layers.Dense):
    """tf.layers.Dense with a masked kernel."""


@add_arg_scope
def masked_convolution(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: Any = None,
    rate: Any = 1,
    activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """tf.contrib.layers.conv2d with masked weights."""
    inputs = convert_to_tensor(inputs)
    if inputs.get_shape().ndims != 4:
        raise at_user_line(ValueError("Sparse Convolution not supported for input with rank %s" % inputs.get_shape().ndims))
    if data_format not in (None, "NHWC", "NCHW"):
        raise at_user_line(ValueError("Invalid data_format: %r" % (data_format,)))
    with variable_scope(scope, "Conv", [inputs], reuse=reuse, custom_getter=_renamed) as sc:
        layer = MaskedConv2D(
            num_outputs,
            kernel_size,
            stride,
            padding,
            "channels_first" if data_format == "NCHW" else "channels_last",
            rate,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=sc.name,
            _scope=sc,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        _variables_of(layer, variables_collections)
        return _collect(_normalized(outputs, normalizer_fn, normalizer_params, activation_fn), outputs_collections)


masked_conv2d = masked_convolution


@add_arg_scope
def masked_fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """tf.contrib.layers.fully_connected with masked weights."""
    if not isinstance(num_outputs, int):
        raise at_user_line(ValueError("num_outputs should be int or long, got %s." % (num_outputs,)))
    with variable_scope(scope, "fully_connected", [inputs], reuse=reuse, custom_getter=_renamed) as sc:
        layer = MaskedFullyConnected(
            num_outputs,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=sc.name,
            _scope=sc,
            _reuse=reuse,
        )
        outputs = layer(convert_to_tensor(inputs))
        _variables_of(layer, variables_collections)
        return _collect(_normalized(outputs, normalizer_fn, normalizer_params, activation_fn), outputs_collections)


# ---- recurrent cells ----


class _MaskedCell:
    _masked_kernel: Any = None

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        kernel, *rest = super()._parameters(depth, dtype)  # type: ignore[misc]
        shape = kernel.get_shape().as_list()
        mask = self._variable("mask", shape, dtype, init_ops.ones_initializer(), trainable=False)  # type: ignore[attr-defined]
        threshold = self._variable("threshold", [], dtype, init_ops.zeros_initializer(), trainable=False)  # type: ignore[attr-defined]
        known = self._masked_kernel
        if known is None or known.graph is not kernel.graph or known.op._get_control_flow_context() is not None:  # made in a loop or a branch: only there
            known = self._masked_kernel = masked(kernel, mask, threshold)
        return [known, *rest]


class MaskedBasicLSTMCell(_MaskedCell, rnn_cells.BasicLSTMCell):
    """tf.nn.rnn_cell.BasicLSTMCell with a masked kernel."""


class MaskedLSTMCell(_MaskedCell, rnn_cells.LSTMCell):
    """tf.nn.rnn_cell.LSTMCell with a masked kernel."""
