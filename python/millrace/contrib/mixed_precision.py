# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.mixed_precision: losses that are scaled, so that small gradients of half precision are not lost."""

from __future__ import annotations

import abc
from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import control_flow_ops, gen_ops, math_ops, state_ops
from millrace.ops.variables import Variable
from millrace.train.optimizer import Optimizer


class LossScaleManager(metaclass=abc.ABCMeta):
    """Says what a loss is multiplied by, and changes it by what becomes of the gradients."""

    @abc.abstractmethod
    def get_loss_scale(self) -> Tensor:
        """The factor."""

    @abc.abstractmethod
    def update_loss_scale(self, finite_grads: Any) -> Any:
        """An operation that changes the factor, given whether all gradients were finite."""


class FixedLossScaleManager(LossScaleManager):
    """A factor that does not change."""

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise at_user_line(ValueError("loss scale must be at least 1."))
        self._loss_scale = constant(loss_scale, dtypes.float32)

    def get_loss_scale(self) -> Tensor:
        """The factor."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """Changes nothing."""
        del finite_grads  # the factor stays
        return control_flow_ops.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A factor that grows after so many steps in a row with finite gradients, and shrinks after so many with others."""

    def __init__(
        self, init_loss_scale: float, incr_every_n_steps: int, decr_every_n_nan_or_inf: int = 2, incr_ratio: float = 2, decr_ratio: float = 0.8
    ) -> None:
        self._incr_every, self._decr_every, self._incr_ratio, self._decr_ratio = incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio
        self._loss_scale: Any = Variable(float(init_loss_scale), trainable=False, dtype=dtypes.float32, name="loss_scale")
        self._num_good_steps: Any = Variable(0, trainable=False, dtype=dtypes.int32, name="good_steps")
        self._num_bad_steps: Any = Variable(0, trainable=False, dtype=dtypes.int32, name="bad_steps")

    def get_loss_scale(self) -> Tensor:
        """The factor."""
        return convert_to_tensor(self._loss_scale)

    def _scaled(self, scale: Any) -> Any:
        """Sets the factor, and counts anew."""
        changes = [(self._loss_scale, scale), (self._num_good_steps, 0), (self._num_bad_steps, 0)]
        return control_flow_ops.group(*[state_ops.assign(var, value) for var, value in changes])

    def _good(self) -> Any:
        def grow() -> Any:
            wanted = self._loss_scale * self._incr_ratio
            return self._scaled(control_flow_ops.cond(gen_ops.is_finite(wanted), lambda: wanted, lambda: convert_to_tensor(self._loss_scale)))

        return control_flow_ops.cond(
            gen_ops.greater_equal(self._num_good_steps + 1, self._incr_every),
            grow,
            lambda: control_flow_ops.group(state_ops.assign_add(self._num_good_steps, 1)),
        )

    def _bad(self) -> Any:
        def count() -> Any:
            return control_flow_ops.group(state_ops.assign_add(self._num_bad_steps, 1), state_ops.assign(self._num_good_steps, 0))

        return control_flow_ops.cond(
            gen_ops.greater_equal(self._num_bad_steps + 1, self._decr_every),
            lambda: self._scaled(gen_ops.maximum(1.0, self._loss_scale * self._decr_ratio)),
            count,
        )

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """Counts the step, and changes the factor where it is time."""
        return control_flow_ops.cond(finite_grads, self._good, self._bad)


class LossScaleOptimizer(Optimizer):
    """An optimizer of a scaled loss. A step whose gradients are not all finite changes no variable."""

    def __init__(self, opt: Any, loss_scale_manager: LossScaleManager) -> None:
        super().__init__(False, "LossScaleOptimizer")
        self._opt, self._loss_scale_manager = opt, loss_scale_manager

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> Any:
        """The gradients, as they are without the factor."""
        scale = self._loss_scale_manager.get_loss_scale()
        loss = loss() if callable(loss) else loss
        scaled = loss * math_ops.cast(scale, loss.dtype.base_dtype)
        pairs = self._opt.compute_gradients(
            scaled,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        return [(None if gradient is None else gradient * math_ops.cast(1.0 / scale, gradient.dtype.base_dtype), var) for gradient, var in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """Applies them where all are finite, and changes the factor."""
        pairs = list(grads_and_vars)
        finite = [math_ops.reduce_all(gen_ops.is_finite(getattr(gradient, "values", gradient))) for gradient, _ in pairs if gradient is not None]
        all_finite = math_ops.reduce_all(finite)
        applied = control_flow_ops.cond(all_finite, lambda: control_flow_ops.group(self._opt.apply_gradients(pairs, global_step)), control_flow_ops.no_op)
        return control_flow_ops.group(applied, self._loss_scale_manager.update_loss_scale(all_finite), name=name)
