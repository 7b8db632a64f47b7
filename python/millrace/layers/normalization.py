# SPDX-License-Identifier: Apache-2.0
"""Normalisation by statistics of batches or of examples."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.strategy import get_strategy, has_strategy
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.nodes import InputSpec, listed
from millrace.layers.settings import SettingsLayer
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.ops.control_flow_ops import smart_cond
from millrace.ops.variables import assign, assign_sub


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
    _reads_in_its_type = False  # what it computes in half precision is computed in float32

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
        if virtual_batch_size is not None and virtual_batch_size <= 0:
            raise at_user_line(ValueError("virtual_batch_size must be a positive integer that divides the size of batches, got %s" % (virtual_batch_size,)))
        for what, value in (("virtual_batch_size", virtual_batch_size), ("adjustment", adjustment)):
            if fused and value is not None:
                raise at_user_line(ValueError("Passing fused=True is not supported when %s is specified." % what))
        if virtual_batch_size is not None and adjustment is not None:
            raise at_user_line(ValueError("When using virtual_batch_size, adjustment cannot be specified"))
        self.virtual_batch_size, self.adjustment = virtual_batch_size, adjustment
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.renorm, self.renorm_momentum, self.renorm_clipping, self.fused = renorm, renorm_momentum, dict(renorm_clipping or {}), fused
        self._choose_fused()
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

    @property
    def _can_be_fused(self) -> bool:
        axes = listed(self.axis)
        return not self.renorm and len(axes) == 1 and axes[0] in (-3, -1, 1, 3) and self.virtual_batch_size is None and self.adjustment is None

    def _choose_fused(self, ndims: Optional[int] = None) -> None:
        """Whether the fused kernel serves, as far as it is known: the number of dimensions of the inputs is when they are."""
        if ndims is None:
            self.fused = True if self.fused is None else self.fused
        else:
            self.fused = bool(self.fused and ndims == 4 and self._can_be_fused)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer; `adjustment` is a function and none of them."""
        virtual = {} if self.virtual_batch_size is None else {"virtual_batch_size": self.virtual_batch_size}
        renorm = {name: getattr(self, name) for name in ("renorm", "renorm_clipping", "renorm_momentum")} if self.renorm else {}
        return {**super().get_config(), **virtual, **renorm}

    def build(self, input_shape: Any) -> None:
        """Makes scale, offset and averages."""
        shape = TensorShape(input_shape)
        if shape.ndims is None:
            raise at_user_line(ValueError("Input has undefined rank: %s" % shape))
        if shape.ndims == 0:
            raise at_user_line(ValueError("batch normalization needs inputs with channels, got a scalar"))
        for axis in listed(self.axis):
            if not -shape.ndims <= axis < shape.ndims:
                raise at_user_line(ValueError("Invalid axis: %d: inputs have the shape %s" % (axis, shape)))
        self.axis = axes = [axis % shape.ndims for axis in listed(self.axis)]
        if len(set(axes)) != len(axes):
            raise at_user_line(ValueError("Duplicate axis: %s" % axes))
        known = {axis: shape[axis].value for axis in axes}
        for axis, size in known.items():
            if size is None:
                raise at_user_line(
                    ValueError("Axis %d of input tensor should have a defined dimension but the layer received an input with shape %s." % (axis, shape))
                )
        self.input_spec = InputSpec(ndim=shape.ndims, axes=known)
        self._choose_fused(shape.ndims)
        wide = dtypes.float32 if self._dtype in (dtypes.float16, dtypes.bfloat16) else None
        if self.virtual_batch_size is not None and 0 in axes:
            raise at_user_line(ValueError("When using virtual_batch_size, the batch dimension must be 0 and thus axis cannot include 0"))
        sizes = [known.get(i, 1) for i in range(shape.ndims)] if self._has_whole_weights else [known[axes[0]]]
        if self.virtual_batch_size is not None:
            sizes.insert(1, 1)
        self._add_scale_and_offset(sizes, wide)
        self._add_averages(sizes, wide)
        self.built = True

    def _add_scale_and_offset(self, shape: Any, dtype: Any) -> None:
        self._add_scale(shape, dtype)
        self._add_offset(shape, dtype)

    def _add_scale(self, shape: Any, dtype: Any) -> None:
        self.gamma = self.add_weight("gamma", shape, dtype, self.gamma_initializer, self.gamma_regularizer, True, self.gamma_constraint) if self.scale else None
        self._ones: Any = constant(1.0, dtypes.float32, shape) if self.fused and not self.scale else None

    def _add_offset(self, shape: Any, dtype: Any) -> None:
        self.beta = self.add_weight("beta", shape, dtype, self.beta_initializer, self.beta_regularizer, True, self.beta_constraint) if self.center else None
        self._zeros: Any = constant(0.0, dtypes.float32, shape) if self.fused and not self.center else None

    def _add_averages(self, shape: Any, dtype: Any) -> None:
        def average(name: str, initializer: Any) -> Any:
            return self.add_weight(name, shape, dtype, initializer, trainable=False)

        mean, variance = self.moving_mean_initializer, self.moving_variance_initializer
        self.moving_mean, self.moving_variance = average("moving_mean", mean), average("moving_variance", variance)
        if self.renorm:

            def stddev(*args: Any, **kwargs: Any) -> Any:
                return gen_ops.sqrt(variance(*args, **kwargs))

            self.moving_stddev = average("moving_stddev", stddev)
            self.renorm_mean, self.renorm_stddev = average("renorm_mean", mean), average("renorm_stddev", stddev)

    @property
    def _has_whole_weights(self) -> bool:
        """Whether weights have all dimensions of what they are for, of size 1 where they are the same along it."""
        return self.virtual_batch_size is not None or len(self.axis) > 1

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs; those of half precision in float32."""
        given = inputs.dtype.base_dtype
        narrow = given in (dtypes.float16, dtypes.bfloat16)
        training = K.learning_phase() if training is None else training
        plain = not self._has_whole_weights and not self.renorm and self.adjustment is None
        if self.fused and plain and inputs.get_shape().ndims == 4 and self.axis[0] in (1, 3) and (narrow or given == dtypes.float32):
            return self._fused(inputs, training)
        if narrow:
            return math_ops.cast(self.call(math_ops.cast(inputs, dtypes.float32), training), given)
        if self.virtual_batch_size is None:
            outputs = self._normalised(inputs, training)
        else:
            sizes = [-1, *(-1 if n is None else n for n in inputs.get_shape().as_list()[1:])]
            if sizes.count(-1) > 1:
                dynamic = array_ops.shape(inputs)
                sizes = [dynamic[i] if n == -1 and i else n for i, n in enumerate(sizes)]
            outputs = array_ops.reshape(self._normalised(array_ops.reshape(inputs, [self.virtual_batch_size, *sizes]), training), sizes)
        outputs.set_shape(inputs.get_shape())
        return outputs

    def _normalised(self, inputs: Any, training: Any) -> Any:
        """The outputs for inputs, or for ghost batches (Hoffer and others 2017), whose number is the second dimension: each part of the batch,
        every n-th example, goes by statistics of its own, and the averages move by their mean."""
        ghosts, ndims = self.virtual_batch_size is not None, inputs.get_shape().ndims
        axes = [axis + ghosts for axis in self.axis]
        others = [i for i in range(ndims) if i not in axes and not (ghosts and i == 1)]
        place = None if self._has_whole_weights or axes[0] == ndims - 1 else [1] * axes[0] + [-1] + [1] * (ndims - 1 - axes[0])

        def spread(v: Any) -> Any:
            return v if v is None or place is None else array_ops.reshape(v, place)

        mean, variance = smart_cond(
            training,
            lambda: nn_ops.moments(inputs, others, keep_dims=self._has_whole_weights),
            lambda: (convert_to_tensor(self.moving_mean), convert_to_tensor(self.moving_variance)),
        )
        if _batches_may_be_empty():  # there is no mean of nothing, but its gradient is none either
            mean, variance = (array_ops.where(array_ops.size(inputs) > 0, v, array_ops.zeros_like(v)) for v in (mean, variance))
        beta, gamma = self._adjusted(inputs, training, spread)
        if not (isinstance(training, (bool, int)) and not training):
            new_mean, new_variance = (math_ops.reduce_mean(v, 1, True) if ghosts else v for v in (mean, variance))
            if self.renorm:
                r, d = self._renorm(training, new_mean, new_variance)
                beta, gamma = _composed(spread(r), spread(d), beta, gamma)
            else:
                self._update_averages(inputs, training, new_mean, new_variance)
        return nn_ops.batch_normalization(inputs, spread(mean), spread(variance), beta, gamma, self.epsilon)

    def _adjusted(self, inputs: Any, training: Any, spread: Any) -> Tuple[Any, Any]:
        """(offset, scale): while training, after those that `adjustment` makes of the shape of the inputs."""
        beta, gamma = spread(self.beta), spread(self.gamma)
        if self.adjustment is None or (isinstance(training, (bool, int)) and not training):
            return beta, gamma
        scale, offset = self.adjustment(array_ops.shape(inputs))
        scale = smart_cond(training, lambda: scale, lambda: array_ops.ones_like(scale))
        offset = smart_cond(training, lambda: offset, lambda: array_ops.zeros_like(offset))
        return _composed(scale, offset, beta, gamma)

    def _fused(self, inputs: Any, training: Any) -> Any:
        size, here = self.moving_mean.get_shape(), inputs.graph
        gamma = self.gamma if self.scale else self._ones if self._ones.graph is here else array_ops.ones(size)
        beta = self.beta if self.center else self._zeros if self._zeros.graph is here else array_ops.zeros(size)
        layout = "NCHW" if self.axis[0] == 1 else "NHWC"
        outputs, mean, variance = smart_cond(
            training,
            lambda: nn_ops.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=layout),
            lambda: nn_ops.fused_batch_norm(inputs, gamma, beta, self.moving_mean, self.moving_variance, self.epsilon, layout, False),
        )
        if not self._bessels_correction_test_only:
            samples = math_ops.cast(array_ops.size(inputs) // array_ops.size(variance), variance.dtype)
            variance = variance * (samples - 1.0) / samples
        self._update_averages(inputs, training, mean, variance, self._share_kept(training))
        return outputs

    def _share_kept(self, training: Any) -> Any:
        """How much of the averages stays, as a tensor: the momentum, all where the layer does not train."""
        return smart_cond(training, lambda: convert_to_tensor(self.momentum, dtypes.float32), lambda: convert_to_tensor(1.0, dtypes.float32))

    def _renorm(self, training: Any, mean: Any, variance: Any) -> Tuple[Any, Any]:
        """Batch renormalisation (Ioffe 2017): the (scale, offset) that correct a batch towards averages of training, which move after it was;
        those for inference, of standard deviations as well, move behind them."""
        stddev = gen_ops.sqrt(variance + self.epsilon)
        base = gen_ops.maximum(self.renorm_stddev, float(np.sqrt(self.epsilon)))
        scale, offset = stddev / base, (mean - self.renorm_mean) / base
        with control_dependencies([scale, offset]):
            moved = [
                self._moved(average, array_ops.identity(value), training, self.renorm_momentum)
                for average, value in ((self.renorm_mean, mean), (self.renorm_stddev, stddev))
            ]
        with control_dependencies(moved):
            mean, variance = array_ops.identity(mean), array_ops.identity(variance)
        self.add_update(self._moved(self.moving_mean, mean, training, self.momentum))
        deviation = self._moved(self.moving_stddev, gen_ops.sqrt(variance + self.epsilon), training, self.momentum)
        after = smart_cond(training, lambda: gen_ops.relu(deviation * deviation - self.epsilon), lambda: array_ops.identity(self.moving_variance))
        with name_scope("AssignNewValue") as scope:
            self.add_update(assign(self.moving_variance, after, name=scope))
        limits = self.renorm_clipping
        if limits.get("rmin") is not None:
            scale = gen_ops.maximum(scale, limits["rmin"])
        if limits.get("rmax") is not None:
            scale = gen_ops.minimum(scale, limits["rmax"])
        if limits.get("dmax") is not None:
            offset = gen_ops.minimum(gen_ops.maximum(offset, -limits["dmax"]), limits["dmax"])
        scale = smart_cond(training, lambda: scale, lambda: array_ops.ones_like(scale))
        offset = smart_cond(training, lambda: offset, lambda: array_ops.zeros_like(offset))
        return gen_ops.stop_gradient(scale, name="renorm_r"), gen_ops.stop_gradient(offset, name="renorm_d")

    def _update_averages(self, inputs: Any, training: Any, mean: Any, variance: Any, kept: Any = None) -> None:
        """Moves the averages towards the statistics of a batch, unless the layer does not train; of them as much stays as `kept`, a tensor, says."""
        if isinstance(training, (bool, int)) and not training:
            return
        if _batches_may_be_empty():
            there_are_some = array_ops.size(inputs) > 0
            mean, variance = (
                array_ops.where(there_are_some, value, math_ops.cast(average, value.dtype))
                for average, value in ((self.moving_mean, mean), (self.moving_variance, variance))
            )
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            self.add_update(self._moved(average, value, training, self.momentum if kept is None else kept), inputs=inputs)

    def _moved(self, average: Any, value: Any, training: Any, momentum: Any) -> Any:
        """An average after it moved towards a value, by as much as the momentum leaves, and not at all unless the model trains."""
        decay: Any = None if isinstance(momentum, Tensor) else 1.0 - momentum
        if decay is not None and not isinstance(training, (bool, int)):
            decay = math_ops.cast(training, dtypes.float32) * decay
        with name_scope("AssignMovingAvg") as scope:
            decay = 1.0 - momentum if decay is None else decay
            kind = average.dtype.base_dtype
            rate = math_ops.cast(convert_to_tensor(decay, dtypes.float32, name="decay"), kind)
            return assign_sub(average, (average - math_ops.cast(value, kind)) * rate, name=scope)


def _batches_may_be_empty() -> bool:
    """Whether the strategy says so."""
    return has_strategy() and bool(getattr(get_strategy().extended, "experimental_enable_get_next_as_optional", False))


def _composed(scale: Any, offset: Any, beta: Any, gamma: Any) -> Tuple[Any, Any]:
    """(offset, scale) of one scale and offset, and those of the layer behind it."""
    if gamma is not None:
        scale, offset = scale * gamma, offset * gamma
    return offset if beta is None else offset + beta, scale


class BatchNormalizationV2(BatchNormalization):
    """As TensorFlow 2 has it: a layer that is not trained goes by its moving averages, while its model trains too."""

    def _choose_fused(self, ndims: Optional[int] = None) -> None:
        if ndims is None:
            if self.fused and not self._can_be_fused:
                raise at_user_line(
                    ValueError("Passing fused=True is only supported when axis is 1 or 3, and unsupported with renorm=True, virtual_batch_size or adjustment")
                )
            self.fused = False if self.fused is None and not self._can_be_fused else self.fused
        elif self.fused and ndims != 4:
            raise at_user_line(ValueError("Batch normalization layers with fused=True only support 4D input tensors, got %d dimensions" % ndims))
        else:
            self.fused = ndims == 4 if self.fused is None else self.fused

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs."""
        return super().call(inputs, training if self.trainable else False)


BatchNormalizationV2.__name__ = "BatchNormalization"  # as settings say it


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
        if not isinstance(axis, (int, list, tuple)):
            raise at_user_line(ValueError("Expected an int or a list/tuple of ints for the argument 'axis', but received instead: %s" % (axis,)))
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
        if shape.ndims is None:
            raise at_user_line(ValueError("Input shape %s has undefined rank." % shape))
        for axis in listed(self.axis):
            if not -shape.ndims <= axis < shape.ndims:
                raise at_user_line(ValueError("Invalid axis: %d" % axis))
        if len({axis % shape.ndims for axis in listed(self.axis)}) < len(listed(self.axis)):
            raise at_user_line(ValueError("Duplicate axis: %s" % (self.axis,)))
        self._axes = self.axis = sorted(a % shape.ndims for a in listed(self.axis))
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
