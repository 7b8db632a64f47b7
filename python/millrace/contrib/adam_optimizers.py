# SPDX-License-Identifier: Apache-2.0
"""Kin of Adam in tf.contrib.opt."""

from __future__ import annotations

from typing import Any, Dict

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.train.rules import AdamOptimizer


class _LazyRows(AdamOptimizer):
    """Of a sparse gradient, touches the rows alone which it has: moments of the others do not decay meanwhile."""

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        hyper, rows = self._hyper_in(var.dtype.base_dtype), grad.indices
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = hyper["beta1"] * m.sparse_read(rows) + (1 - hyper["beta1"]) * grad.values
        second = self._second_moment(hyper, v.sparse_read(rows), grad.values)
        changes = [(m.scatter_update, first), (v.scatter_update, second), (var.scatter_sub, self._row_step(hyper, first, second))]
        return control_flow_ops.group(*[change(IndexedSlices(values, rows), use_locking=self._use_locking) for change, values in changes])

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_sparse(IndexedSlices(grad, indices), handle)

    def _second_moment(self, hyper: Any, v: Any, grad: Any) -> Any:
        return hyper["beta2"] * v + (1 - hyper["beta2"]) * grad * grad

    def _row_step(self, hyper: Any, m: Any, v: Any) -> Any:
        return _rate(hyper) * m / (gen_ops.sqrt(v) + hyper["epsilon"])


def _rate(hyper: Any) -> Any:
    """Adam's learning rate, by which moments that start at 0 are made up for."""
    return hyper["learning_rate"] * gen_ops.sqrt(1 - hyper["beta2_power"]) / (1 - hyper["beta1_power"])


class LazyAdamOptimizer(_LazyRows):
    """Adam that, of a sparse gradient, touches the rows alone which it has: moments of the others do not decay meanwhile."""


class AdaMaxOptimizer(_LazyRows):
    """Adam by the largest gradient (Kingma and Ba, 2014, section 7.1) in place of the mean square; sparse gradients change their rows alone."""

    _rule, _op = "AdaMax", "ada_max"
    _powers = ("beta1",)

    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8, use_locking: bool = False, name: str = "AdaMax"
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _get_beta_accumulators(self) -> Any:
        return super()._get_beta_accumulators()[0]

    def _second_moment(self, hyper: Any, v: Any, grad: Any) -> Any:
        return gen_ops.maximum(hyper["beta2"] * v, gen_ops.abs(grad))

    def _row_step(self, hyper: Any, m: Any, v: Any) -> Any:
        return hyper["learning_rate"] / (1 - hyper["beta1_power"]) * m / (v + hyper["epsilon"])


class NadamOptimizer(AdamOptimizer):
    """Adam with Nesterov's momentum (Dozat, 2015)."""

    _use_nesterov = True

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        hyper, rows = self._hyper_in(var.dtype.base_dtype), grad.indices
        moments = []
        for slot, beta, change in (("m", hyper["beta1"], grad.values), ("v", hyper["beta2"], grad.values * grad.values)):
            kept = self.get_slot(var, slot)
            with var.graph.control_dependencies([kept.assign(kept.read_value() * beta, use_locking=self._use_locking)]):
                moments.append(kept.scatter_add(IndexedSlices(change * (1 - beta), rows), use_locking=self._use_locking))
        m = (1 - hyper["beta1"]) * grad.values + hyper["beta1"] * array_ops.gather(moments[0], rows)
        step = _rate(hyper) * m / (gen_ops.sqrt(array_ops.gather(moments[1], rows)) + hyper["epsilon"])
        return control_flow_ops.group(*moments, var.scatter_sub(IndexedSlices(step, rows), use_locking=self._use_locking))

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_sparse(IndexedSlices(grad, indices), handle)


class _OfGlobalStep(AdamOptimizer):
    """Takes the powers of the betas from the global step instead of keeping them."""

    _powers = ()

    def __init__(
        self,
        global_step: Any = 0,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._global_step = global_step

    def _prepare(self) -> None:
        super()._prepare()
        self._global_step_on_worker = math_ops.cast(array_ops.identity(self._global_step) + 1, dtypes.float32)

    def _get_beta_accumulators(self) -> Any:
        step: Any = self._global_step_on_worker
        kept = [getattr(self, self._tensor_names[beta]) for beta in ("beta1", "beta2")]
        return gen_ops.pow(kept[0], step), gen_ops.pow(kept[1], step)

    def _hyper_in(self, dtype: Any) -> Dict[str, Any]:
        powers = zip(("beta1_power", "beta2_power"), self._get_beta_accumulators())
        return {**super()._hyper_in(dtype), **{name: math_ops.cast(p, dtype) for name, p in powers}}


class AdamGSOptimizer(_OfGlobalStep):
    """Adam whose bias is corrected by the global step."""


class LazyAdamGSOptimizer(_OfGlobalStep, _LazyRows):
    """LazyAdamOptimizer whose bias is corrected by the global step."""
