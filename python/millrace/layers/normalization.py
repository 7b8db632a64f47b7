# SPDX-License-Identifier: Apache-2.0
"""Normalisation by statistics of batches or of examples."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.settings import InputSpec, SettingsLayer
from millrace.layers.base import listed
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


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
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.axis, self.momentum, self.epsilon, self.center, self.scale = axis if isinstance(axis, int) else axis[0], momentum, epsilon, center, scale
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

    def build(self, input_shape: Any) -> None:
        """Makes scale, offset and averages."""
        size = TensorShape(input_shape)[self.axis].value
        if size is None:
            raise at_user_line(
                ValueError("Axis %d of input tensor should have a defined dimension but the layer received an input with shape %s." % (self.axis, input_shape))
            )
        self.input_spec = InputSpec(ndim=TensorShape(input_shape).ndims, axes={self.axis: size})
        self.gamma = self.add_weight("gamma", [size], None, self.gamma_initializer, self.gamma_regularizer, True, self.gamma_constraint) if self.scale else None
        self.beta = self.add_weight("beta", [size], None, self.beta_initializer, self.beta_regularizer, True, self.beta_constraint) if self.center else None
        self.moving_mean = self.add_weight("moving_mean", [size], None, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.add_weight("moving_variance", [size], None, self.moving_variance_initializer, trainable=False)
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs."""
        rank = K.ndim(inputs)
        axis = self.axis % rank
        others = [i for i in range(rank) if i != axis]
        shape = [1 if i != axis else inputs.get_shape()[axis].value for i in range(rank)]
        mean, variance = nn_ops.moments(inputs, others)
        used = [
            K.in_train_phase(lambda b=b: array_ops.identity(b), lambda a=a: array_ops.identity(a.value()), training)
            for b, a in ((mean, self.moving_mean), (variance, self.moving_variance))
        ]
        if training not in (0, False):
            for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                self.add_update(K.moving_average_update(average, value, self.momentum), inputs=inputs)
        wide = [None if v is None else array_ops.reshape(v, shape) for v in (*used, self.beta, self.gamma)]
        made = nn_ops.batch_normalization(inputs, wide[0], wide[1], wide[2], wide[3], self.epsilon)
        made.set_shape(inputs.get_shape())
        return made


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
