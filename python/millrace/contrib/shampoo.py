# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.opt.ShampooOptimizer (Gupta, Koren and Singer 2018)."""

from __future__ import annotations

from typing import Any, Callable

from millrace.contrib.matrix_functions import matrix_inverse_pth_root, matrix_square_root
from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import colocate_with
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, variables
from millrace.ops.linalg_ops import self_adjoint_eig
from millrace.ops.matrix_ops import eye, matmul, tensordot
from millrace.train.optimizer import Optimizer


def _at(value: Any, step: Any) -> Any:
    """A setting, which may be a function of the step."""
    return value(step) if callable(value) else value


class ShampooOptimizer(Optimizer):
    """Gradients times, for each of their dimensions, a power of the sum of the products of gradients along the others. Dimensions of more than
    max_matrix_size have a diagonal only. Settings may be functions of the step."""

    def __init__(
        self,
        global_step: Any = 0,
        max_matrix_size: int = 768,
        gbar_decay: Any = 0.0,
        gbar_weight: Any = 1.0,
        mat_gbar_decay: Any = 1.0,
        mat_gbar_weight: Any = 1.0,
        learning_rate: Any = 1.0,
        svd_interval: Any = 1,
        precond_update_interval: Any = 1,
        epsilon: float = 1e-4,
        alpha: Any = 0.5,
        use_iterative_root: bool = False,
        use_locking: bool = False,
        name: str = "Shampoo",
    ) -> None:
        super().__init__(use_locking, name)
        self._global_step, self._max_matrix_size = math_ops.cast(global_step, dtypes.float32), max_matrix_size
        self._gbar, self._mat_gbar = (gbar_decay, gbar_weight), (mat_gbar_decay, mat_gbar_weight)
        self._learning_rate, self._svd_interval, self._precond_update_interval = learning_rate, svd_interval, precond_update_interval
        self._epsilon, self._alpha, self._use_iterative_root = epsilon, alpha, use_iterative_root

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            with colocate_with(v):
                self._zeros_slot(v, "gbar", self._name)
                for i, size in enumerate(v.get_shape().as_list()):
                    whole = size <= self._max_matrix_size
                    if whole and self._svd_interval != 1:
                        self._get_or_make_slot(v, eye(size), "H_%d" % i, self._name)
                    self._get_or_make_slot(v, array_ops.zeros([size, size] if whole else [size]), "Gbar_%d" % i, self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._step_of(grad, var, None)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        if handle.get_shape()[0].value > self._max_matrix_size and self._gbar[0] == 0.0:
            return self._step_of(grad, handle, indices)
        shape = array_ops.shape(handle, out_type=indices.dtype)
        return self._step_of(convert_to_tensor(IndexedSlices(grad, indices, shape)), handle, None)

    @staticmethod
    def _averaged(var: Any, decay: Any, decay_now: Any, rest: Any) -> Any:
        """decay var + rest, which the variable becomes."""
        if not callable(decay) and decay == 0.0:
            return rest
        return variables.assign_add(var, rest if not callable(decay) and decay == 1.0 else (decay_now - 1) * var + rest)

    def _step_of(self, grad: Any, var: Any, indices: Any) -> Any:
        step = self._global_step + 1
        decay, weight = (_at(value, step) for value in self._gbar)
        made = grad if indices is not None else self._averaged(self.get_slot(var, "gbar"), self._gbar[0], decay, weight * grad)
        shape = var.get_shape().as_list()
        exponent = -_at(self._alpha, step) / len(shape)
        for i, size in enumerate(shape):
            others = [j for j in range(len(shape)) if j != i]
            if size <= self._max_matrix_size:
                made = tensordot(made, self._root(grad, var, i, size, others, exponent, step), ([0], [0]))
            else:
                turned = array_ops.transpose(made, [*range(1, len(shape)), 0])
                made = turned * self._diagonal_root(grad, var, i, size, others, exponent, step, indices if i == 0 else None, indices is not None)
        rate = _at(self._learning_rate, step)
        if indices is not None:
            return variables.scatter_add(var, indices, -rate * made)
        return variables.assign_sub(var, rate * made)

    def _every(self, interval: Any, step: Any, fresh: Callable[[], Any], kept: Callable[[], Any]) -> Any:
        if not callable(interval) and interval == 1:
            return fresh()
        return control_flow_ops.cond(gen_ops.less(gen_ops.floor_mod(step, math_ops.cast(_at(interval, step), dtypes.float32)), 1.0), fresh, kept)

    def _root(self, grad: Any, var: Any, i: int, size: int, others: Any, exponent: Any, step: Any) -> Any:
        """The power of a dimension's matrix."""
        matrix = self.get_slot(var, "Gbar_%d" % i)
        decay, weight = (_at(value, step) for value in self._mat_gbar)

        def updated() -> Any:
            products = tensordot(grad, grad, (others, others))
            return array_ops.identity(self._averaged(matrix, self._mat_gbar[0], decay, weight * _at(self._precond_update_interval, step) * products))

        mean = self._every(self._precond_update_interval, step, updated, lambda: array_ops.identity(matrix)) / float(size)
        if self._svd_interval == 1:
            return self._power(mean, size, exponent)
        kept = self.get_slot(var, "H_%d" % i)
        return self._every(
            self._svd_interval, step, lambda: array_ops.identity(variables.assign(kept, self._power(mean, size, exponent))), lambda: array_ops.identity(kept)
        )

    def _power(self, matrix: Any, size: int, exponent: Any) -> Any:
        if size == 1:
            return gen_ops.pow(matrix + self._epsilon, exponent)
        if self._use_iterative_root:
            return matrix_inverse_pth_root(matrix_square_root(matrix, size, 100, self._epsilon), size, 2 * exponent, 100, 1e-6, 0.0)
        values, vectors = self_adjoint_eig(matrix + self._epsilon * eye(size))
        return matmul(vectors * gen_ops.pow(gen_ops.maximum(values, self._epsilon), exponent), vectors, transpose_b=True)

    def _diagonal_root(self, grad: Any, var: Any, i: int, size: int, others: Any, exponent: Any, step: Any, indices: Any, sparse: bool) -> Any:
        """The power of the diagonal of a dimension's matrix, where it is large; of some rows only where there are indices."""
        squares = math_ops.reduce_sum(grad * grad, axis=others) / (1.0 if sparse else float(size)) if others else grad * grad
        diagonal = self.get_slot(var, "Gbar_%d" % i)
        decay, weight = (_at(value, step) for value in self._mat_gbar)
        if indices is None:
            now = self._averaged(diagonal, self._mat_gbar[0], decay, weight * squares)
        elif callable(self._mat_gbar[0]) or self._mat_gbar[0] != 1.0:
            raise at_user_line(NotImplementedError("sparse gradients of large variables need mat_gbar_decay=1.0: pass max_matrix_size of their rows at least"))
        else:
            now = array_ops.gather(variables.scatter_add(diagonal, indices, weight * squares), indices)
        now = array_ops.identity(now)
        return array_ops.where(gen_ops.greater(now, 0.0), gen_ops.pow(now, exponent), array_ops.zeros_like(now))
