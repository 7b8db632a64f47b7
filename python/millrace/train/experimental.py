# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.train.experimental: losses that are scaled so that gradients of half precision do not vanish."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from millrace import names, tf_logging
from millrace.framework import behavior, dtypes, nest, not_provided
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.variables import Variable
from millrace.structures import TrackedByName
from millrace.train.optimizer import Optimizer
from millrace.train.tracking import PythonState as PythonState


class LossScale(TrackedByName):
    """Base of scales: a call gives the number, update(gradients) an operation that changes it, and whether the gradients are to be used."""

    def __init__(self) -> None:
        self._weights: Dict[str, Any] = {}

    def _children(self) -> Dict[str, Any]:
        return dict(self._weights)

    def __call__(self) -> Tensor:
        raise NotImplementedError("LossScale.__call__")

    def update(self, grads: Any) -> Tuple[Any, Any]:
        """(operation, whether to use the gradients)."""
        raise NotImplementedError("LossScale.update")

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Any:
        if name in self._weights:
            raise at_user_line(RuntimeError("Duplicate variables detected. %s" % name))
        made = Variable(initial_value, name=name, dtype=dtype, trainable=False, use_resource=True)
        self._weights[name] = made
        return made

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        raise NotImplementedError("LossScale.get_config")

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> Any:
        """A scale of what get_config gave."""
        return cls(**config)


class FixedLossScale(LossScale):
    """Always one number, at least 1."""

    def __init__(self, loss_scale_value: Any) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float, np.number)):
            raise at_user_line(ValueError("loss_scale_value must be a Python int or float."))
        if loss_scale_value < 1:
            raise at_user_line(ValueError("loss_scale_value must be at least 1."))
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        return math_ops.cast(self._loss_scale_value, dtypes.float32)

    def update(self, grads: Any) -> Tuple[Any, Any]:
        """(nothing to do, True)."""
        del grads  # the scale is fixed
        return control_flow_ops.no_op(), True

    def __repr__(self) -> str:
        return "FixedLossScale(%s)" % self._loss_scale_value

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {"loss_scale_value": self._loss_scale_value}


def _all_finite(grads: Any) -> Tensor:
    flat: List[Any] = [g.values if isinstance(g, IndexedSlices) else g for g in nest.flatten(grads) if g is not None]
    return math_ops.reduce_all([math_ops.reduce_all(gen_ops.is_finite(g)) for g in flat])


class DynamicLossScale(LossScale):
    """A number that grows by `multiplier` after increment_period steps with finite gradients, and shrinks by it where they are not: down to 1."""

    def __init__(self, initial_loss_scale: float = 2.0**15, increment_period: int = 2000, multiplier: float = 2.0) -> None:
        super().__init__()
        self.initial_loss_scale, self.increment_period, self.multiplier = float(initial_loss_scale), int(increment_period), float(multiplier)
        self._scale = self._add_weight("current_loss_scale", self.initial_loss_scale, dtypes.float32)
        self._num_good_steps = self._add_weight("good_steps", 0, dtypes.int64)

    def __call__(self) -> Tensor:
        return self._scale.read_value()

    def update(self, grads: Any) -> Tuple[Tensor, Tensor]:
        """(a bool that changes the scale when it is computed, whether all gradients are finite)."""
        finite = _all_finite(grads)
        scale, good = self._scale.read_value(), self._num_good_steps.read_value() + 1
        due = good >= self.increment_period
        more = scale * self.multiplier
        grown = array_ops.where(gen_ops.logical_and(due, gen_ops.is_finite(more)), more, scale)
        shrunk = gen_ops.maximum(scale / self.multiplier, 1.0)
        zero = array_ops.zeros_like(good)
        steps = array_ops.where(gen_ops.logical_and(finite, gen_ops.logical_not(due)), good, zero)
        changes = [self._scale.assign(array_ops.where(finite, grown, shrunk)).op, self._num_good_steps.assign(steps).op]
        return control_flow_ops.with_dependencies(changes, finite), finite

    def __repr__(self) -> str:
        given = (self.initial_loss_scale, self.increment_period, self.multiplier)
        return "DynamicLossScale(initial_loss_scale=%s, increment_period=%s, multiplier=%s)" % given

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {"initial_loss_scale": self.initial_loss_scale, "increment_period": self.increment_period, "multiplier": self.multiplier}


def loss_scale_of(given: Any) -> LossScale:
    """A scale of a number, of "dynamic", or what is one already."""
    if given == "dynamic":
        return DynamicLossScale()
    return given if isinstance(given, LossScale) else FixedLossScale(given)


def get_loss_scale_weights(loss_scale: LossScale) -> List[Any]:
    """The variables of a scale."""
    return list(loss_scale._weights.values())


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """Another optimizer with the gradients of a scaled loss, scaled back; steps whose gradients are not finite are left out."""

    _has_slots = False

    def __init__(self, opt: Any, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise at_user_line(ValueError('"opt" must be an instance of Optimizer, but got: %s' % type(opt)))
        super().__init__(False, "%s_%s" % (opt.get_name(), type(self).__name__))
        self._optimizer, self._loss_scale = opt, loss_scale_of(loss_scale)

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """(gradient, variable) pairs, as without a scale."""
        scale = self._loss_scale()
        loss = loss() if callable(loss) else loss
        pairs = self._optimizer.compute_gradients(loss * math_ops.cast(scale, loss.dtype.base_dtype), var_list, *args, **kwargs)

        def back(g: Any) -> Any:
            if g is None:
                return None
            if isinstance(g, IndexedSlices):
                return IndexedSlices(g.values / math_ops.cast(scale, g.values.dtype.base_dtype), g.indices, g.dense_shape)
            return g / math_ops.cast(scale, g.dtype.base_dtype)

        return [(back(g), v) for g, v in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        """An operation that makes a step where all gradients are finite, and changes the scale."""
        pairs = tuple(grads_and_vars)
        update, wanted = self._loss_scale.update([g for g, _ in pairs])
        if wanted is True:
            step = self._optimizer.apply_gradients(pairs, global_step, name)
        else:
            step = control_flow_ops.cond(wanted, lambda: self._optimizer.apply_gradients(pairs, global_step, name), control_flow_ops.no_op)
        return control_flow_ops.group(step, update)

    def _non_slots_of(self, graph: Any) -> Dict[str, Any]:
        return {"base_optimizer": self._optimizer, "loss_scale": self._loss_scale}

    def get_slot(self, var: Any, name: str) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> List[str]:
        """The optimizer's."""
        return self._optimizer.get_slot_names()

    def variables(self) -> List[Any]:
        """The optimizer's."""
        return self._optimizer.variables()


def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """The optimizer, of tf.train or tf.keras, with a scaled loss. No graph is rewritten: operations compute in the types that they say, as those of
    TensorFlow do on processors."""
    of_keras = hasattr(opt, "get_updates")
    kind: Any = MixedPrecisionLossScaleOptimizer
    if of_keras:
        kind = names.find("keras.mixed_precision.experimental.LossScaleOptimizer")
    if isinstance(opt, kind):
        raise at_user_line(ValueError('"opt" must not already be an instance of a %s.' % kind.__name__))
    if not of_keras and not isinstance(opt, Optimizer):
        raise at_user_line(ValueError('"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, but got: %s' % (opt,)))
    if not behavior.using_default_mixed_precision_policy:
        raise at_user_line(
            ValueError(
                "The mixed precision graph rewrite cannot be enabled, because a keras mixed precision Policy has been set: "
                "tf.keras.mixed_precision.experimental.set_policy() was called before. Only one of both can be used."
            )
        )
    tf_logging.warn("The loss is scaled, but no graph is rewritten: tf.cast says where a model computes in half precision.")
    made = kind(opt, loss_scale)
    behavior.mixed_precision_graph_rewrite_is_enabled = True
    return made


def disable_mixed_precision_graph_rewrite() -> None:
    """Lets policies of layers be set again: no graph was rewritten."""
    behavior.mixed_precision_graph_rewrite_is_enabled = False


__getattr__ = not_provided.getter("train.experimental")
