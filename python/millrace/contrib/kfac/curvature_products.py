# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.curvature_matrix_vector_products: Fisher, Hessian and Gauss-Newton matrices times vectors."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.contrib.kfac import utils
from millrace.framework import nest
from millrace.ops import math_ops
from millrace.ops.gradients import gradients


class CurvatureMatrixVectorProductComputer:
    """Products with the curvature, in the tensors wrt_tensors, of the sum of losses. F = J' L J, where J is the matrix of the derivatives of the
    losses' inputs and L the curvature in these; with L = B B' a factor of F is J' B."""

    def __init__(self, losses: Any, wrt_tensors: Any) -> None:
        self._losses, self._wrt_tensors = losses, wrt_tensors
        self._inputs = [loss.inputs for loss in losses]

    @property
    def _total_loss(self) -> Any:
        return math_ops.add_n([loss.evaluate() for loss in self._losses])

    def _forth(self, vecs: Any) -> Any:
        """J times vecs."""
        flat = utils.fwd_gradients(nest.flatten(self._inputs), self._wrt_tensors, grad_xs=vecs, stop_gradients=self._wrt_tensors)
        return nest.pack_sequence_as(self._inputs, flat)

    def _back(self, loss_vecs: Any) -> Any:
        """J' times vectors of the losses' inputs."""
        return gradients(nest.flatten(self._inputs), self._wrt_tensors, grad_ys=nest.flatten(loss_vecs), stop_gradients=self._wrt_tensors)

    def _each(self, method: str, vecs: Any) -> Tuple[Any, ...]:
        return tuple(getattr(loss, method)(vec) for loss, vec in zip(self._losses, vecs))

    def multiply_fisher(self, vecs: Any) -> Any:
        """The Fisher information times vecs."""
        return self._back(self._each("multiply_fisher", self._forth(vecs)))

    def multiply_fisher_factor_transpose(self, vecs: Any) -> Any:
        """B' J times vecs."""
        return self._each("multiply_fisher_factor_transpose", self._forth(vecs))

    def multiply_fisher_factor(self, loss_inner_vecs: Any) -> Any:
        """J' B times vectors of the losses."""
        return self._back(self._each("multiply_fisher_factor", loss_inner_vecs))

    def multiply_hessian(self, vecs: Any) -> Any:
        """The second derivatives of the losses times vecs."""
        return gradients(gradients(self._total_loss, self._wrt_tensors), self._wrt_tensors, grad_ys=vecs)

    def multiply_generalized_gauss_newton(self, vecs: Any) -> Any:
        """The generalized Gauss-Newton matrix times vecs."""
        return self._back(self._each("multiply_hessian", self._forth(vecs)))

    def multiply_generalized_gauss_newton_factor_transpose(self, vecs: Any) -> Any:
        """B' J times vecs, B of the second derivatives."""
        return self._each("multiply_hessian_factor_transpose", self._forth(vecs))

    def multiply_generalized_gauss_newton_factor(self, loss_inner_vecs: Any) -> Any:
        """J' B times vectors of the losses, B of the second derivatives."""
        return self._back(self._each("multiply_hessian_factor", loss_inner_vecs))

    @property
    def fisher_factor_inner_shapes(self) -> Tuple[Any, ...]:
        return tuple(loss.fisher_factor_inner_shape for loss in self._losses)

    @property
    def generalized_gauss_newton_factor_inner_shapes(self) -> Tuple[Any, ...]:
        return tuple(loss.hessian_factor_inner_shape for loss in self._losses)
