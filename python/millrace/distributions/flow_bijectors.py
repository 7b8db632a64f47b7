# SPDX-License-Identifier: Apache-2.0
"""Bijectors that are networks: real-valued non-volume-preserving maps, masked autoregressive flows, batch normalization."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from millrace.distributions.bijector import Bijector
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.layers import scoped
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, nn_ops, template


def _size(x: Any) -> int:
    found = x.get_shape().with_rank_at_least(1)[-1].value
    if found is None:
        raise at_user_line(NotImplementedError("Rightmost dimension must be known prior to graph execution."))
    return int(found)


class RealNVP(Bijector):
    """y is x in the first num_masked places; the others are scaled and shifted by a function of these."""

    def __init__(
        self,
        num_masked: int,
        shift_and_log_scale_fn: Callable[..., Any],
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        name: Optional[str] = None,
    ) -> None:
        if num_masked <= 0:
            raise at_user_line(ValueError("num_masked must be a positive integer."))
        self._masked, self._function = num_masked, shift_and_log_scale_fn
        super().__init__(1, is_constant_jacobian=is_constant_jacobian, validate_args=validate_args, name=name or "real_nvp")

    def _parts(self, x: Any) -> Any:
        if _size(x) <= self._masked:
            raise at_user_line(ValueError("Number of masked units %d must be smaller than the event size %d." % (self._masked, _size(x))))
        first, second = x[..., : self._masked], x[..., self._masked :]
        shift, log_scale = self._function(first, _size(x) - self._masked)
        return first, second, shift, log_scale

    def _forward(self, x: Any) -> Any:
        first, second, shift, log_scale = self._parts(x)
        if log_scale is not None:
            second = second * gen_ops.exp(log_scale)
        return array_ops.concat([first, second if shift is None else second + shift], -1)

    def _inverse(self, y: Any) -> Any:
        first, second, shift, log_scale = self._parts(y)
        if shift is not None:
            second = second - shift
        return array_ops.concat([first, second if log_scale is None else second * gen_ops.exp(-log_scale)], -1)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        log_scale = self._parts(x)[3]
        return array_ops.zeros([], x.dtype.base_dtype) if log_scale is None else math_ops.reduce_sum(log_scale, [-1])

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -self._forward_log_det_jacobian(y)  # the masked part, which the scale is of, is the same


def real_nvp_default_template(
    hidden_layers: Any, shift_only: bool = False, activation: Any = nn_ops.relu, name: Optional[str] = None, *args: Any, **kwargs: Any
) -> Callable[..., Any]:
    """A template of dense layers for RealNVP: (x, output_units) to a shift and, without shift_only, the logarithm of a scale."""

    dense: Any = scoped.dense

    def network(x: Any, output_units: int) -> Any:
        vector = x.get_shape().ndims == 1
        if vector:
            x = array_ops.expand_dims(x, 0)
        for units in hidden_layers:
            x = dense(x, units, *args, activation=activation, **kwargs)
        x = dense(x, (1 if shift_only else 2) * output_units, *args, activation=None, **kwargs)
        if vector:
            x = array_ops.squeeze(x, [0])
        return (x, None) if shift_only else tuple(array_ops.split(x, 2, axis=-1))

    return template.make_template(name or "real_nvp_default_template", network)


MASK_INCLUSIVE, MASK_EXCLUSIVE = "inclusive", "exclusive"


def _gen_mask(num_blocks: int, n_in: int, n_out: int, mask_type: str = MASK_EXCLUSIVE, dtype: Any = np.float32) -> Any:
    """[n_out, n_in] of 0 and 1: a block of outputs sees its own block of inputs (not if exclusive) and those before.

    Blocks are n_in // num_blocks and n_out // num_blocks wide. Where there are fewer inputs than blocks none is seen, as TensorFlow has it.
    """
    wide, high = n_in // num_blocks, n_out // num_blocks
    block = np.arange(n_in)[None, :] // max(1, wide)
    seen = np.arange(n_out)[:, None] >= (block + (mask_type == MASK_EXCLUSIVE)) * high
    return (seen & (block < num_blocks) & (wide > 0)).astype(dtype)


def masked_dense(
    inputs: Any,
    units: int,
    num_blocks: Optional[int] = None,
    exclusive: bool = False,
    kernel_initializer: Any = None,
    reuse: Optional[bool] = None,
    name: Optional[str] = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A dense layer whose blocks of units see the blocks of inputs up to their own (before their own if exclusive)."""
    inputs = convert_to_tensor(inputs, name="inputs")
    size = _size(inputs)
    if num_blocks is None or num_blocks < 1:
        raise at_user_line(ValueError("num_blocks must be 1 or more, got %s" % num_blocks))
    mask = convert_to_tensor(_gen_mask(num_blocks, size, units, MASK_EXCLUSIVE if exclusive else MASK_INCLUSIVE).T, inputs.dtype.base_dtype)
    layer = MaskedDense(mask, units, *args, kernel_initializer=kernel_initializer, name=name, _scope=name, _reuse=reuse, **kwargs)
    return layer.apply(inputs)


class MaskedDense(scoped.Dense):
    """A dense layer whose kernel is multiplied by a mask."""

    def __init__(self, mask: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._mask = mask

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        whole = self.kernel
        try:
            self.kernel = whole * self._mask
            return super().call(inputs)
        finally:
            self.kernel = whole


def masked_autoregressive_default_template(
    hidden_layers: Any,
    shift_only: bool = False,
    activation: Any = nn_ops.relu,
    log_scale_min_clip: float = -5.0,
    log_scale_max_clip: float = 3.0,
    log_scale_clip_gradient: bool = False,
    name: Optional[str] = None,
    *args: Any,
    **kwargs: Any,
) -> Callable[..., Any]:
    """A template of masked layers for MaskedAutoregressiveFlow: the shift and the logarithm of the scale of each place, by the places before it."""

    def network(x: Any) -> Any:
        x = convert_to_tensor(x, name="x")
        size, shape, vector = _size(x), array_ops.shape(x), x.get_shape().ndims == 1
        static = x.get_shape()
        if vector:
            x = array_ops.expand_dims(x, 0)
        for i, units in enumerate(hidden_layers):
            x = masked_dense(x, units, size, i == 0, *args, activation=activation, **kwargs)
        x = masked_dense(x, (1 if shift_only else 2) * size, size, not len(hidden_layers), *args, activation=None, **kwargs)
        if shift_only:
            return array_ops.reshape(x, shape), None
        x = array_ops.reshape(x, array_ops.concat([shape, [2]], 0))
        x.set_shape(static.concatenate([2]))
        shift, log_scale = array_ops.unstack(x, 2, axis=-1)
        clipped = math_ops.clip_by_value(log_scale, log_scale_min_clip, log_scale_max_clip)
        return shift, clipped if log_scale_clip_gradient else log_scale + gen_ops.stop_gradient(clipped - log_scale)

    return template.make_template(name or "masked_autoregressive_default_template", network)


class MaskedAutoregressiveFlow(Bijector):
    """Each place scaled and shifted by functions of the places of y before it: the inverse is one step, the function as many as there are places."""

    def __init__(
        self,
        shift_and_log_scale_fn: Callable[..., Any],
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        unroll_loop: bool = False,
        name: Optional[str] = None,
    ) -> None:
        self._function, self._unroll = shift_and_log_scale_fn, unroll_loop
        super().__init__(1, is_constant_jacobian=is_constant_jacobian, validate_args=validate_args, name=name or "masked_autoregressive_flow")

    def _step(self, x: Any, y: Any) -> Any:
        shift, log_scale = self._function(y)
        if log_scale is not None:
            x = x * gen_ops.exp(log_scale)
        return x if shift is None else x + shift

    def _forward(self, x: Any) -> Any:
        size = x.get_shape().with_rank_at_least(1)[-1].value
        y = self._step(x, array_ops.zeros_like(x))  # the variables are made here, outside of the loop
        if self._unroll:
            for _ in range(_size(x) - 1):
                y = self._step(x, y)
            return y
        most = array_ops.shape(x)[-1] if size is None else size
        return control_flow_ops.while_loop(lambda i, y: gen_ops.less(i, most), lambda i, y: (i + 1, self._step(x, y)), [1, y])[1]

    def _inverse(self, y: Any) -> Any:
        shift, log_scale = self._function(y)
        x = y if shift is None else y - shift
        return x if log_scale is None else x * gen_ops.exp(-log_scale)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        log_scale = self._function(y)[1]
        return array_ops.zeros([], y.dtype.base_dtype) if log_scale is None else -math_ops.reduce_sum(log_scale, [-1])


class BatchNormalization(Bijector):
    """The inverse of a layer of batch normalization: y has the mean and the spread, x has neither."""

    def __init__(self, batchnorm_layer: Any = None, training: bool = True, validate_args: bool = False, name: str = "batch_normalization") -> None:
        if batchnorm_layer is None:
            batchnorm_layer = scoped.BatchNormalization(gamma_constraint=lambda g: nn_ops.relu(g) + 1e-6)
        if not isinstance(batchnorm_layer, scoped.BatchNormalization):
            raise at_user_line(ValueError("batchnorm_layer must be an instance of BatchNormalization layer, got %s" % (batchnorm_layer,)))
        if getattr(batchnorm_layer, "renorm", False) or getattr(batchnorm_layer, "virtual_batch_size", None):
            raise at_user_line(ValueError("BatchNorm Bijector does not support renormalization or virtual batches."))
        self.batchnorm, self._training = batchnorm_layer, training
        axis = batchnorm_layer.axis
        super().__init__(len(axis) if isinstance(axis, (list, tuple)) else 1, is_constant_jacobian=False, validate_args=validate_args, name=name)

    def _built(self, x: Any) -> Any:
        """The axes of events, after the layer's variables were made."""
        if not self.batchnorm.built:
            self.batchnorm._dtype = self.batchnorm._dtype or x.dtype.base_dtype
            self.batchnorm.build(x.get_shape())  # only: what a forward transformation sees is no batch to average
        axis = self.batchnorm.axis
        return [a % x.get_shape().ndims for a in (axis if isinstance(axis, (list, tuple)) else [axis])]

    def _wide(self, value: Any, x: Any, axes: Any) -> Any:
        sizes = x.get_shape().as_list()
        return array_ops.reshape(value, [sizes[i] if i in axes else 1 for i in range(len(sizes))])

    def _forward(self, x: Any) -> Any:
        axes, layer = self._built(x), self.batchnorm
        made = x
        if layer.center:
            made = made - self._wide(layer.beta, x, axes)
        if layer.scale:
            made = made / self._wide(layer.gamma, x, axes)
        spread = gen_ops.sqrt(self._wide(layer.moving_variance, x, axes) + layer.epsilon)
        return made * spread + self._wide(layer.moving_mean, x, axes)

    def _inverse(self, y: Any) -> Any:
        return self.batchnorm.apply(y, training=self._training)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._log_det(x, False) * -1.0

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._log_det(y, self._training)

    def _log_det(self, y: Any, of_batch: bool) -> Any:
        axes, layer = self._built(y), self.batchnorm
        if of_batch:
            variance = math_ops.reduce_mean(gen_ops.squared_difference(y, math_ops.reduce_mean(y, self._others(y, axes), True)), self._others(y, axes))
        else:
            variance = convert_to_tensor(layer.moving_variance)
        total = -0.5 * math_ops.reduce_sum(gen_ops.log(variance + layer.epsilon))
        return total + math_ops.reduce_sum(gen_ops.log(layer.gamma)) if layer.scale else total

    @staticmethod
    def _others(y: Any, axes: Any) -> Any:
        return [i for i in range(y.get_shape().ndims) if i not in axes]
