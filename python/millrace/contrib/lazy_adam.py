# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.opt.LazyAdamOptimizer."""

from __future__ import annotations

from typing import Any

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import init_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.variables import Variable
from millrace.train.optimizer import Optimizer


class LazyAdamOptimizer(Optimizer):
    """Adam that, of a sparse gradient, touches the rows alone which it has: moments of the others do not decay meanwhile."""

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "Adam"
    ) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon
        self._powers: Any = None

    def _create_slots(self, var_list: Any) -> None:
        if self._powers is None or self._powers[0].graph is not var_list[0].graph:
            with init_scope():
                self._powers = [
                    Variable(convert_to_tensor(float(beta), dtypes.float32), name=name, trainable=False)
                    for beta, name in ((self._beta1, "beta1_power"), (self._beta2, "beta2_power"))
                ]
        for v in var_list:
            self._zeros_slot(v, "m", self._name)
            self._zeros_slot(v, "v", self._name)

    def _prepare(self) -> None:
        self._tensors = [convert_to_tensor(self._call_if_callable(value)) for value in (self._lr, self._beta1, self._beta2, self._epsilon)]

    def _hyper_of(self, var: Any) -> Any:
        """Learning rate, betas, epsilon and the betas' powers, in the type of a variable."""
        return [math_ops.cast(t, var.dtype.base_dtype) for t in [*self._tensors, *(p.value() for p in self._powers)]]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rate, beta1, beta2, epsilon, power1, power2 = self._hyper_of(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        if var._is_resource:
            return gen_ops.resource_apply_adam(var.handle, m.handle, v.handle, power1, power2, rate, beta1, beta2, epsilon, grad, use_locking=self._use_locking)
        return gen_ops.apply_adam(var, m, v, power1, power2, rate, beta1, beta2, epsilon, grad, use_locking=self._use_locking).op

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        rate, beta1, beta2, epsilon, power1, power2 = self._hyper_of(var)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rows, which = gen_ops.unique(grad.indices)  # a row that comes twice counts with the sum
        values = gen_ops.unsorted_segment_sum(grad.values, which, array_ops.size(rows))
        first = beta1 * m.sparse_read(rows) + (1 - beta1) * values
        second = beta2 * v.sparse_read(rows) + (1 - beta2) * values * values
        step = rate * gen_ops.sqrt(1 - power2) / (1 - power1) * first / (gen_ops.sqrt(second) + epsilon)
        changes = [_scatter("update", m, rows, first), _scatter("update", v, rows, second), _scatter("sub", var, rows, step)]
        return control_flow_ops.group(*changes)

    def _finish(self, update_ops: Any, name_scope: str) -> Any:
        with self._powers[0].graph.control_dependencies(update_ops):
            powers = [
                p.assign(p.value() * math_ops.cast(beta, dtypes.float32), use_locking=self._use_locking) for p, beta in zip(self._powers, self._tensors[1:3])
            ]
        return control_flow_ops.group(*update_ops, *powers, name=name_scope)

    def variables(self) -> Any:
        """All variables that it has made."""
        return super().variables() + list(self._powers or ())


def _scatter(what: str, var: Any, rows: Any, values: Any) -> Any:
    if var._is_resource:
        return getattr(gen_ops, "resource_scatter_" + what)(var.handle, rows, values)
    return getattr(gen_ops, "scatter_" + what)(var, rows, values)
