# SPDX-License-Identifier: Apache-2.0
"""Normalisation by statistics of batches or of examples."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.nodes import InputSpec, listed
from millrace.layers.settings import SettingsLayer
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.ops.control_flow_ops import smart_cond
from millrace.ops.variables import assign_sub


class BatchNormalization(SettingsLayer):
    """Normalisation by the statistics of the batch while training, by their moving averages otherwise."""

    settings: Tuple[str, ...] = (
        "axis",
        "momentum",
        "epsilon",
        "center",
        "scale",
        "beta_initializer",
        "gamma_initializer",
        "moving_mean_initializer",
        "moving_variance_initializer",
        "beta_regularizer",
        "gamma_regularizer",
        "beta_constraint",
        "gamma_constraint",
    )
    supports_masking = True

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: Optional[bool] = None,
        trainable: bool = True,
        virtual_batch_size: Any = None,
        adjustment: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, **kwargs)
        if virtual_batch_size or adjustment:
            raise NotImplementedError("virtual batches are not provided: leave virtual_batch_size and adjustment out")
        if len(listed(axis)) != 1:
            raise NotImplementedError("batch normalization along several axes is not provided: give one axis, got %s" % (axis,))
        self.axis, self.momentum, self.epsilon, self.center, self.scale = listed(axis)[0], momentum, epsilon, center, scale
        self.renorm, self.renorm_momentum, self.renorm_clipping, self.fused = renorm, renorm_momentum, dict(renorm_clipping or {}), fused
        if set(self.renorm_clipping) - {"rmax", "rmin", "dmax"}:
            raise at_user_line(ValueError("renorm_clipping %s contains keys not in rmax, rmin, dmax" % renorm_clipping))
        self._set(
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            moving_mean_initializer=moving_mean_initializer,
            moving_variance_initializer=moving_variance_initializer,
            beta_regularizer=beta_regularizer,
            gamma_regularizer=gamma_regularizer,
            beta_constraint=beta_constraint,
            gamma_constraint=gamma_constraint,
        )
        self._bessels_correction_test_only = True  # False: fused layers too keep the variance of the batch itself

    def build(self, input_shape: Any) -> None:
        """Makes scale, offset and averages."""
        shape = TensorShape(input_shape)
        if shape.ndims is None:
            raise at_user_line(ValueError("Input has undefined rank: %s" % shape))
        if shape.ndims == 0:
            raise at_user_line(ValueError("batch normalization needs inputs with channels, got a scalar"))
        if not -shape.ndims <= self.axis < shape.ndims:
            raise at_user_line(ValueError("Invalid axis: %d: inputs have the shape %s" % (self.axis, shape)))
        self._axis = self.axis % shape.ndims
        size = shape[self._axis].value
        if size is None:
            raise at_user_line(
                ValueError("Axis %d of input tensor should have a defined dimension but the layer received an input with shape %s." % (self.axis, shape))
            )
        self.input_spec = InputSpec(ndim=shape.ndims, axes={self._axis: size})
        wide = dtypes.float32 if self._dtype in (dtypes.float16, dtypes.bfloat16) else None
        self.gamma = self.add_weight("gamma", [size], wide, self.gamma_initializer, self.gamma_regularizer, True, self.gamma_constraint) if self.scale else None
        self.beta = self.add_weight("beta", [size], wide, self.beta_initializer, self.beta_regularizer, True, self.beta_constraint) if self.center else None
        self._add_averages([size], wide)
        self.built = True

    def _add_averages(self, shape: Any, dtype: Any) -> None:
        def average(name: str, initializer: Any) -> Any:
            return self.add_weight(name, shape, dtype, initializer, trainable=False)

        mean, variance = self.moving_mean_initializer, self.moving_variance_initializer
        self.moving_mean, self.moving_variance = average("moving_mean", mean), average("moving_variance", variance)
        if self.renorm:
            self.renorm_mean, self.renorm_stddev = average("renorm_mean", mean), average("renorm_stddev", variance)

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs; those of half precision in float32."""
        given = inputs.dtype.base_dtype
        if given in (dtypes.float16, dtypes.bfloat16):
            return math_ops.cast(self.call(math_ops.cast(inputs, dtypes.float32), training), given)
        training = K.learning_phase() if training is None else training
        ndims = inputs.get_shape().ndims
        if self.fused is not False and not self.renorm and ndims == 4 and self._axis in (1, 3) and inputs.dtype.base_dtype == dtypes.float32:
            return self._fused(inputs, training)
        axes = [i for i in range(ndims) if i != self._axis]

        def spread(v: Any) -> Any:
            return v if v is None or self._axis == ndims - 1 else array_ops.reshape(v, [1] * self._axis + [-1] + [1] * (ndims - 1 - self._axis))

        if self.renorm:
            outputs = self._renormalised(inputs, training, axes, spread)
        else:
            mean, variance = smart_cond(
                training, lambda: nn_ops.moments(inputs, axes), lambda: (array_ops.identity(self.moving_mean), array_ops.identity(self.moving_variance))
            )
            self._update_averages(inputs, training, mean, variance)
            outputs = nn_ops.batch_normalization(inputs, spread(mean), spread(variance), spread(self.beta), spread(self.gamma), self.epsilon)
        outputs.set_shape(inputs.get_shape())
        return outputs

    def _fused(self, inputs: Any, training: Any) -> Any:
        size = self.moving_mean.get_shape()
        gamma = self.gamma if self.scale else array_ops.ones(size)
        beta = self.beta if self.center else array_ops.zeros(size)
        layout = "NCHW" if self._axis == 1 else "NHWC"
        outputs, mean, variance = smart_cond(
            training,
            lambda: nn_ops.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=layout),
            lambda: nn_ops.fused_batch_norm(inputs, gamma, beta, self.moving_mean, self.moving_variance, self.epsilon, layout, False),
        )
        if not self._bessels_correction_test_only:
            samples = math_ops.cast(array_ops.size(inputs) // array_ops.size(variance), variance.dtype)
            variance = variance * (samples - 1.0) / samples
        self._update_averages(inputs, training, mean, variance)
        return outputs

    def _renormalised(self, inputs: Any, training: Any, axes: Any, spread: Any) -> Any:
        """Batch renormalisation (Ioffe 2017): while training, corrected towards the moving averages."""
        mean, variance = nn_ops.moments(inputs, axes)
        stddev = gen_ops.sqrt(variance + self.epsilon)
        base = gen_ops.maximum(self.renorm_stddev, float(np.sqrt(self.epsilon)))
        r, d = stddev / base, (mean - self.renorm_mean) / base
        limits = self.renorm_clipping
        if limits.get("rmin") is not None:
            r = gen_ops.maximum(r, limits["rmin"])
        if limits.get("rmax") is not None:
            r = gen_ops.minimum(r, limits["rmax"])
        if limits.get("dmax") is not None:
            d = gen_ops.maximum(gen_ops.minimum(d, limits["dmax"]), -limits["dmax"])
        r, d = gen_ops.stop_gradient(r, name="renorm_r"), gen_ops.stop_gradient(d, name="renorm_d")
        normal = smart_cond(
            training,
            lambda: (inputs - spread(mean)) / spread(stddev) * spread(r) + spread(d),
            lambda: (inputs - spread(self.moving_mean)) * spread(gen_ops.rsqrt(self.moving_variance + self.epsilon)),
        )
        with control_dependencies([r, d]):  # these want the averages as they were
            self._update_averages(inputs, training, mean, variance)
            self._update_averages(inputs, training, mean, stddev, (self.renorm_mean, self.renorm_stddev), self.renorm_momentum)
        if self.gamma is not None:
            normal = normal * spread(self.gamma)
        return normal + spread(self.beta) if self.beta is not None else normal

    def _update_averages(self, inputs: Any, training: Any, mean: Any, variance: Any, averages: Any = None, momentum: Any = None) -> None:
        """Moves averages towards the statistics of a batch, by as much as its momentum leaves, and not at all unless the model trains."""
        if isinstance(training, (bool, int)) and not training:
            return
        decay: Any = 1.0 - (self.momentum if momentum is None else momentum)
        if not isinstance(training, (bool, int)):
            decay = math_ops.cast(training, dtypes.float32) * decay
        for average, value in zip(averages or (self.moving_mean, self.moving_variance), (mean, variance)):
            with name_scope("AssignMovingAvg") as scope:
                kind = average.dtype.base_dtype
                rate = math_ops.cast(convert_to_tensor(decay, dtypes.float32), kind)
                self.add_update(assign_sub(average, (average - math_ops.cast(value, kind)) * rate, name=scope), inputs=inputs)


class LayerNormalization(SettingsLayer):
    """Each example normalised by its own mean and variance along axes."""

    settings: Tuple[str, ...] = (
        "axis",
        "epsilon",
        "center",
        "scale",
        "beta_initializer",
        "gamma_initializer",
        "beta_regularizer",
        "gamma_regularizer",
        "beta_constraint",
        "gamma_constraint",
    )
    supports_masking = True

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.axis, self.epsilon, self.center, self.scale = axis, epsilon, center, scale
        self._set(
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            beta_regularizer=beta_regularizer,
            gamma_regularizer=gamma_regularizer,
            beta_constraint=beta_constraint,
            gamma_constraint=gamma_constraint,
        )

    def build(self, input_shape: Any) -> None:
        """Makes scale and offset."""
        shape = TensorShape(input_shape)
        self._axes = sorted(a % shape.ndims for a in listed(self.axis))
        sizes = [shape[a].value for a in self._axes]
        if any(n is None for n in sizes):
            raise at_user_line(ValueError("The axes %s of the input need sizes that are known; its shape is %s" % (self.axis, shape)))
        self.gamma = self.add_weight("gamma", sizes, None, self.gamma_initializer, self.gamma_regularizer, True, self.gamma_constraint) if self.scale else None
        self.beta = self.add_weight("beta", sizes, None, self.beta_initializer, self.beta_regularizer, True, self.beta_constraint) if self.center else None
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        mean = math_ops.reduce_mean(inputs, self._axes, True)
        variance = math_ops.reduce_mean(gen_ops.square(inputs - mean), self._axes, True)
        shape = [inputs.get_shape()[i].value if i in self._axes else 1 for i in range(K.ndim(inputs))]
        wide = [None if v is None else array_ops.reshape(v, shape) for v in (self.beta, self.gamma)]
        made = nn_ops.batch_normalization(inputs, mean, variance, wide[0], wide[1], self.epsilon)
        made.set_shape(inputs.get_shape())
        return made


__all__ = ["BatchNormalization", "LayerNormalization"]
