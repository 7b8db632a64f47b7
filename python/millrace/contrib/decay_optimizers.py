# SPDX-License-Identifier: Apache-2.0
"""Optimizers of tf.contrib.opt that make weights smaller beside the gradient's step (Loshchilov and Hutter, 2017), and LARS."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops
from millrace.train.optimizer import Optimizer
from millrace.train.rules import AdamOptimizer, MomentumOptimizer


class DecoupledWeightDecayExtension(Optimizer):
    """To be the first base of an optimizer: before a step of it, variables lose weight_decay of themselves; of a sparse gradient, its rows."""

    def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
        self._weight_decay = weight_decay
        self._decay_var_list: Optional[Sequence[Any]] = None
        super().__init__(*args, **kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """As the optimizer's; decay_var_list are the variables to make smaller, all unless given."""
        self._decay_var_list = decay_var_list
        return super().minimize(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None, decay_var_list: Any = None) -> Any:
        """As the optimizer's; decay_var_list are the variables to make smaller, all unless given."""
        self._decay_var_list = decay_var_list or self._decay_var_list
        try:
            return super().apply_gradients(grads_and_vars, global_step, name)
        finally:
            self._decay_var_list = None

    def _prepare(self) -> None:
        self._weight_decay_tensor = convert_to_tensor(self._call_if_callable(self._weight_decay), name="weight_decay")
        super()._prepare()

    def _decayed(self, var: Any, rows: Any = None) -> Any:
        """An operation that makes a variable smaller, or some rows of it."""
        if self._decay_var_list and not any(v is var for v in self._decay_var_list):
            return control_flow_ops.no_op()
        decay = math_ops.cast(self._weight_decay_tensor, var.dtype.base_dtype)
        if rows is None:
            return var.assign_sub(decay * var.read_value(), self._use_locking)
        return var.scatter_sub(IndexedSlices(decay * array_ops.gather(var, rows), rows), use_locking=self._use_locking)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with get_default_graph().control_dependencies([self._decayed(var)]):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        with get_default_graph().control_dependencies([self._decayed(handle)]):
            return super()._resource_apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with get_default_graph().control_dependencies([self._decayed(var, grad.indices)]):
            return super()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        with get_default_graph().control_dependencies([self._decayed(handle, indices)]):
            return super()._resource_apply_sparse(grad, handle, indices)


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """The class of an optimizer whose first argument is the decay of weights: extend_with_decoupled_weight_decay(AdamOptimizer)(0.001, ...)."""
    return type("OptimizerWithDecoupledWeightDecay", (DecoupledWeightDecayExtension, base_optimizer), {"__doc__": base_optimizer.__doc__})


class MomentumWOptimizer(DecoupledWeightDecayExtension, MomentumOptimizer):
    """Gradient descent with momentum and decay of weights."""

    def __init__(
        self, weight_decay: Any, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "MomentumW", use_nesterov: bool = False
    ) -> None:
        super().__init__(weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


class AdamWOptimizer(DecoupledWeightDecayExtension, AdamOptimizer):
    """Adam with decay of weights."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


class LARSOptimizer(MomentumOptimizer):
    """Momentum whose learning rate is, for each variable, by the norms of it and its gradient (You, Gitman and Ginsburg, 2017). Variables whose
    names contain a string of skip_list, and sparse gradients, have the rate as it is, and no decay."""

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Optional[Sequence[str]] = None,
        use_nesterov: bool = False,
    ) -> None:
        for what, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise at_user_line(ValueError("%s should be positive: %s" % (what, value)))
        super().__init__(learning_rate, momentum, False, name, use_nesterov)
        self._weight_decay, self._eeta, self._epsilon, self._skip_list = weight_decay, eeta, epsilon, skip_list

    def compute_lr(self, grad: Any, var: Any) -> Tuple[Any, Any]:
        """(learning rate, gradient with the decay of weights) of a variable."""
        rate = math_ops.cast(self._call_if_callable(self._learning_rate), var.dtype.base_dtype)
        if any(part in var.name for part in self._skip_list or ()):
            return rate, grad
        of_var, of_grad = matrix_ops.norm(var, ord=2), matrix_ops.norm(grad, ord=2)
        ratio = self._eeta * of_var / (of_grad + self._weight_decay * of_var + self._epsilon)
        both = gen_ops.logical_and(gen_ops.greater(of_var, 0.0), gen_ops.greater(of_grad, 0.0))
        return rate * array_ops.where(both, ratio, array_ops.ones_like(ratio)), grad + self._weight_decay * var

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rate, grad = self.compute_lr(grad, var)
        return self._updated("apply_momentum", var, learning_rate=array_ops.ones([], grad.dtype), grad=grad * rate)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return self._apply_dense(grad, handle)
