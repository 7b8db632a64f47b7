# SPDX-License-Identifier: Apache-2.0
"""tf.keras.mixed_precision.experimental.LossScaleOptimizer: an optimizer of tf.keras with a scaled loss."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.errors import at_user_line
from millrace.keras.optimizer_base import Optimizer
from millrace.ops import control_flow_ops, math_ops
from millrace.train.experimental import LossScale, loss_scale_of


class LossScaleOptimizer(Optimizer):
    """Another optimizer with the gradients of a scaled loss, scaled back; steps whose gradients are not finite are left out where the scale is dynamic."""

    _has_slots = False

    def __init__(self, opt: Any, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise at_user_line(ValueError('"opt" must be an instance of OptimizerV2, but got: %s' % (opt,)))
        for what in ("clipnorm", "clipvalue"):
            if hasattr(opt, what):
                raise at_user_line(
                    ValueError(
                        "LossScaleOptimizer does not support wrapping optimizers with a %s. Optimizer %s has %s %s" % (what, opt, what, getattr(opt, what))
                    )
                )
        self._optimizer, self._loss_scale = opt, loss_scale_of(loss_scale)
        super().__init__(type(self).__name__)

    @property
    def loss_scale(self) -> LossScale:
        """The scale."""
        return self._loss_scale

    def get_scaled_loss(self, loss: Any) -> Any:
        """A loss, or the function that gives it, times the scale."""
        if callable(loss):
            return lambda: self.get_scaled_loss(loss())
        return loss * math_ops.cast(self._loss_scale(), loss.dtype.base_dtype)

    def get_unscaled_gradients(self, grads: Any) -> List[Any]:
        """The gradients of a scaled loss divided by the scale."""
        factor = 1.0 / self._loss_scale()

        def back(g: Any) -> Any:
            if isinstance(g, IndexedSlices):
                return IndexedSlices(g.values * math_ops.cast(factor, g.values.dtype.base_dtype), g.indices, g.dense_shape)
            return None if g is None else g * math_ops.cast(factor, g.dtype.base_dtype)

        return [back(g) for g in grads]

    def get_gradients(self, loss: Any, params: Any) -> List[Any]:
        """The gradients, as without a scale."""
        return self.get_unscaled_gradients(self._optimizer.get_gradients(self.get_scaled_loss(loss), params))

    def _gradients_of(self, loss: Any, var_list: List[Any], grad_loss: Any) -> List[Any]:
        return self.get_unscaled_gradients(self._optimizer._gradients_of(self.get_scaled_loss(loss), var_list, grad_loss))

    def apply_gradients(self, grads_and_vars: Any, name: Optional[str] = None) -> Any:
        """An operation that makes a step, where the gradients are to be used, and changes the scale."""
        pairs = list(grads_and_vars)
        update, wanted = self._loss_scale.update([g for g, _ in pairs])
        if wanted is True:
            step = self._optimizer.apply_gradients(pairs, name)
        else:
            self._optimizer._make_variables([v for g, v in pairs if g is not None])
            step = control_flow_ops.cond(wanted, lambda: self._optimizer.apply_gradients(pairs, name), control_flow_ops.no_op)
        return control_flow_ops.group(step, update)

    @property
    def iterations(self) -> Any:
        """The optimizer's."""
        return self._optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._optimizer.iterations = variable

    @property
    def learning_rate(self) -> Any:
        """The optimizer's."""
        return self._optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._optimizer.learning_rate = value

    @property
    def lr(self) -> Any:
        """The optimizer's learning rate."""
        return self._optimizer.learning_rate

    @property  # type: ignore[misc]
    def weights(self) -> List[Any]:
        """Those of the optimizer, and of the scale."""
        return [*self._optimizer.weights, *self._loss_scale._weights.values()]

    def variables(self) -> List[Any]:
        """Its weights."""
        return self.weights

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot(var, slot_name)

    def get_slot_names(self) -> List[str]:
        """The optimizer's."""
        return self._optimizer.get_slot_names()

    def numbers(self) -> Dict[str, Any]:
        """What it is made of, by the names that checkpoints have."""
        return {"base_optimizer": self._optimizer, "loss_scale": self._loss_scale}

    def get_config(self) -> Dict[str, Any]:
        """Not provided, nor is it in TensorFlow 1.15."""
        raise at_user_line(NotImplementedError("get_config() is not yet implemented for LossScaleOptimizers"))

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """Not provided, nor is it in TensorFlow 1.15."""
        raise at_user_line(NotImplementedError("from_config() is not yet implemented for LossScaleOptimizers"))
