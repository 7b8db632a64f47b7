# SPDX-License-Identifier: Apache-2.0
"""GGT of tf.contrib.opt: full-matrix adaptive steps by a window of the last moments (Agarwal and others, 2018).

All gradients are one vector g. Its moving mean m fills, step by step, the rows of a ring of `window` past ones; M is the ring's transpose by
the square root of how many have come. With M^T M + svd_eps I = U diag(s) U^T, the step is M U diag((sqrt(s) + sigma_eps)^-3) U^T M^T m, and
where no s is tiny also what m has outside of M's columns, by the smallest sqrt(s).
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, control_dependencies
from millrace.ops import array_ops, control_flow_ops, gen_ops, linalg_ops, math_ops, matrix_ops
from millrace.train.optimizer import Optimizer


class GGTOptimizer(Optimizer):
    """GGT. Gradients must be dense, and variables of one dtype, float32 or float64."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        use_locking: bool = False,
        name: str = "GGT",
        window: int = 10,
        eps: Any = 1e-4,
        svd_eps: Any = 1e-6,
        sigma_eps: Any = 1e-2,
    ) -> None:
        super().__init__(use_locking, name)
        self._hypers = {"lr": learning_rate, "beta1": beta1, "eps": eps, "svd_eps": svd_eps, "sigma_eps": sigma_eps}
        self._window = window
        self._places: Dict[str, Tuple[int, int]] = {}  # by variable's name: where its part of the vector begins and ends

    def _hyper(self) -> Dict[str, Any]:
        return {**self._hypers, "window": self._window}

    def _create_slots(self, var_list: Any) -> None:
        self._variables: List[Any] = sorted(var_list, key=lambda v: v.name)
        dtype, size = var_list[0].dtype.base_dtype, 0
        for v in self._variables:
            self._places[v.name] = (size, size + v.get_shape().num_elements())
            size = self._places[v.name][1]
        begin = {"global_step": [], "grad_buffer": [self._window, size], "moment1": [size], "flat_grad": [size]}
        for name, shape in begin.items():
            self._create_non_slot_variable(array_ops.zeros(shape, dtype), name, self._variables[0])

    def _get_moment1(self) -> Any:
        return self._get_non_slot_variable("moment1")

    def _get_grad_buffer(self) -> Any:
        return self._get_non_slot_variable("grad_buffer")

    def _get_flat_grad(self) -> Any:
        return self._get_non_slot_variable("flat_grad")

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rows = math_ops.range(*self._places[var.name])
        return self._get_flat_grad().scatter_update(IndexedSlices(array_ops.reshape(grad, [-1]), rows))

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        raise at_user_line(NotImplementedError("Sparse gradient updates are not supported."))

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        raise at_user_line(NotImplementedError("Sparse gradient updates are not supported."))

    def _finish(self, update_ops: Any, name_scope: str) -> Operation:
        dtype = self._get_flat_grad().dtype.base_dtype
        hyper = {k: math_ops.cast(convert_to_tensor(self._call_if_callable(v)), dtype) for k, v in self._hypers.items()}
        with control_dependencies([getattr(u, "op", u) for u in update_ops]):
            step = array_ops.identity(self._get_non_slot_variable("global_step").assign_add(1.0))
            kept = hyper["beta1"] * self._get_moment1().read_value()
            moment = array_ops.identity(self._get_moment1().assign(kept + (1 - hyper["beta1"]) * self._get_flat_grad().read_value()))
            row = math_ops.mod(math_ops.cast(step, dtypes.int32) - 1, self._window)
            ring = array_ops.identity(self._get_grad_buffer().scatter_update(IndexedSlices(moment, row)))
        change = hyper["lr"] * self._step(hyper, moment, ring / gen_ops.sqrt(gen_ops.minimum(step, math_ops.cast(self._window, dtype))))
        updates = []
        for v in self._variables:
            begin, end = self._places[v.name]
            updates.append(v.assign_sub(array_ops.reshape(change[begin:end], v.get_shape()), use_locking=self._use_locking))
        return control_flow_ops.group(*updates, name=name_scope)

    def _step(self, hyper: Any, moment: Any, rows: Any) -> Any:
        """The change of all variables for a learning rate of 1; rows are M^T."""
        damping = hyper["svd_eps"] * matrix_ops.eye(self._window, dtype=rows.dtype)
        sigma, u, _ = linalg_ops.svd(matrix_ops.matmul(rows, rows, transpose_b=True) + damping)
        root = gen_ops.sqrt(sigma)
        within = matrix_ops.matmul(u, matrix_ops.matmul(rows, moment[:, None]), transpose_a=True)

        def back(scale: Any) -> Any:
            return matrix_ops.matmul(rows, matrix_ops.matmul(u, scale[:, None] * within), transpose_a=True)[:, 0]

        head, least = back((root + hyper["sigma_eps"]) ** -3), math_ops.reduce_min(root)
        return control_flow_ops.cond(least > hyper["eps"], lambda: head + (moment - back(1 / sigma)) / least, lambda: array_ops.identity(head))
