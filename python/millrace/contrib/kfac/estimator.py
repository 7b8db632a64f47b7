# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.estimator: approximations of the Fisher information of a model, by moving averages."""

from __future__ import annotations

import itertools
from typing import Any, Callable, List

import numpy as np

from millrace.contrib.kfac import utils
from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import colocate_with, device
from millrace.ops import control_flow_ops
from millrace.ops.gradients import gradients
from millrace.ops.variable_scope import variable_scope


def make_fisher_estimator(placement_strategy: Any = None, **kwargs: Any) -> FisherEstimator:
    """An estimator; placement_strategy may be round_robin."""
    if placement_strategy not in (None, "round_robin"):
        raise at_user_line(ValueError("Unimplemented vars and ops placement strategy: %s." % placement_strategy))
    return FisherEstimatorRoundRobin(**kwargs)


class FisherEstimator:
    """Estimates the Fisher information of variables by the layers of a collection. estimation_mode: gradients (of targets by chance), empirical (of the
    given targets), curvature_prop (random vectors times a factor of the losses' curvature) or exact (all of them)."""

    def __init__(
        self,
        variables: Any,
        cov_ema_decay: Any,
        damping: Any,
        layer_collection: Any,
        exps: Any = (-1,),
        estimation_mode: str = "gradients",
        colocate_gradients_with_ops: bool = True,
        name: str = "FisherEstimator",
        compute_cholesky: bool = False,
        compute_cholesky_inverse: bool = False,
    ) -> None:
        self._variables, self._cov_ema_decay, self._damping, self._layers = variables, cov_ema_decay, damping, layer_collection
        self._exps, self._estimation_mode, self._colocate, self._name = exps, estimation_mode, colocate_gradients_with_ops, name
        self._compute_cholesky, self._compute_cholesky_inverse = compute_cholesky, compute_cholesky_inverse
        self._made_vars = False

    @property
    def variables(self) -> Any:
        return self._variables() if callable(self._variables) else self._variables

    @property
    def damping(self) -> Any:
        return self._damping

    @property
    def blocks(self) -> Any:
        """The blocks of the collection."""
        return self._layers.get_blocks()

    @property
    def factors(self) -> Any:
        """The factors of the collection."""
        return self._layers.get_factors()

    @property
    def name(self) -> str:
        return self._name

    def _each_block(self, vecs_and_vars: Any, method: str, *args: Any) -> List[Any]:
        given = utils.SequenceDict((variable, vector) for vector, variable in vecs_and_vars)
        made = utils.SequenceDict()
        for params, block in self._layers.fisher_blocks.items():
            made[params] = getattr(block, method)(given[params], *args)
        return [(made[variable], variable) for _, variable in vecs_and_vars]

    def multiply_inverse(self, vecs_and_vars: Any) -> List[Any]:
        """The inverse of the damped estimate times vectors, as (vector, variable)."""
        return self.multiply_matpower(-1, vecs_and_vars)

    def multiply(self, vecs_and_vars: Any) -> List[Any]:
        """The damped estimate times vectors, as (vector, variable)."""
        return self.multiply_matpower(1, vecs_and_vars)

    def multiply_matpower(self, exp: float, vecs_and_vars: Any) -> List[Any]:
        """A power of the damped estimate times vectors, as (vector, variable)."""
        return self._each_block(vecs_and_vars, "multiply_matpower", exp)

    def multiply_cholesky(self, vecs_and_vars: Any, transpose: bool = False) -> List[Any]:
        """The Cholesky factor of the damped estimate times vectors, as (vector, variable)."""
        self._asked_for(self._compute_cholesky, "compute_cholesky")
        return self._each_block(vecs_and_vars, "multiply_cholesky", transpose)

    def multiply_cholesky_inverse(self, vecs_and_vars: Any, transpose: bool = False) -> List[Any]:
        """The inverse of the Cholesky factor of the damped estimate times vectors, as (vector, variable)."""
        self._asked_for(self._compute_cholesky_inverse, "compute_cholesky_inverse")
        return self._each_block(vecs_and_vars, "multiply_cholesky_inverse", transpose)

    @staticmethod
    def _asked_for(asked: bool, name: str) -> None:
        if not asked:
            raise at_user_line(ValueError("The estimator was not made with %s=True." % name))

    def made_vars(self) -> bool:
        """Whether the variables were made."""
        return self._made_vars

    def _finalize_layer_collection(self) -> None:
        self._layers.create_subgraph()
        self._layers.check_registration(self.variables)
        modes = {"gradients": self._by_samples, "empirical": self._by_targets, "curvature_prop": self._by_random_signs, "exact": self._by_all_columns}
        if self._estimation_mode not in modes:
            raise at_user_line(ValueError("Unrecognized value %s for estimation_mode: %s." % (self._estimation_mode, ", ".join(modes))))
        blocks = list(self.blocks)
        for grads, block in zip(modes[self._estimation_mode]([block.tensors_to_compute_grads() for block in blocks]), blocks):
            block.instantiate_factors(grads, self.damping)
        for block in blocks:
            for exp in self._exps:
                block.register_matpower(exp)
            if self._compute_cholesky:
                block.register_cholesky()
            if self._compute_cholesky_inverse:
                block.register_cholesky_inverse()

    def create_ops_and_vars_thunks(self, scope: Any = None) -> Any:
        """Four lists of functions, one for each factor: they make the variables of averages, update these, make the variables of inverses, update these."""
        if self._made_vars:
            raise at_user_line(Exception("Already made variables."))
        self._made_vars = True
        self._finalize_layer_collection()
        scope, factors = self.name if scope is None else scope, list(self.factors)

        def inside(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
            def thunk() -> Any:
                with variable_scope(scope):
                    return function(*args)

            return thunk

        def inverses(factor: Any) -> Any:
            return control_flow_ops.group(*factor.make_inverse_update_ops())

        return (
            [inside(factor.instantiate_cov_variables) for factor in factors],
            [inside(factor.make_covariance_update_op, self._cov_ema_decay) for factor in factors],
            [inside(factor.instantiate_inv_variables) for factor in factors],
            [inside(inverses, factor) for factor in factors],
        )

    def make_vars_and_create_op_thunks(self, scope: Any = None) -> Any:
        """Makes the variables; functions that make the updates of averages, and those of inverses."""
        raise NotImplementedError("%s has no make_vars_and_create_op_thunks." % type(self).__name__)

    def make_ops_and_vars(self, scope: Any = None) -> Any:
        """Makes all: (updates of averages, their group, updates of inverses, their group, functions that make the ones, and the others)."""
        cov_thunks, inv_thunks = self.make_vars_and_create_op_thunks(scope=scope)
        cov_ops, inv_ops = [thunk() for thunk in cov_thunks], [thunk() for thunk in inv_thunks]
        with variable_scope(self.name if scope is None else scope):
            cov_op = control_flow_ops.group(*cov_ops, name="cov_update_op")
            inv_op = control_flow_ops.group(*inv_ops, name="inv_update_op")
        return cov_ops, cov_op, inv_ops, inv_op, cov_thunks, inv_thunks

    def _gradients(self, ys: Any, tensors: Any, grad_ys: Any = None) -> Any:
        flat = gradients(ys, nest.flatten(tensors), grad_ys=grad_ys, colocate_gradients_with_ops=self._colocate)
        return nest.pack_sequence_as(tensors, flat)

    def _by_samples(self, tensors: Any) -> Any:
        return [(grad,) for grad in self._gradients(self._layers.eval_losses_on_samples(), tensors)]

    def _by_targets(self, tensors: Any) -> Any:
        return [(grad,) for grad in self._gradients(self._layers.eval_losses(), tensors)]

    def _by_random_signs(self, tensors: Any) -> Any:
        vectors = []
        for loss in self._layers.losses:
            with colocate_with(self._layers.loss_colocation_ops[loss]):
                vectors.append(loss.multiply_fisher_factor(utils.generate_random_signs(loss.fisher_factor_inner_shape)))
        inputs = nest.flatten([loss.inputs for loss in self._layers.losses])
        return [(grad,) for grad in self._gradients(inputs, tensors, nest.flatten(vectors))]

    def _by_all_columns(self, tensors: Any) -> Any:
        made = []
        for loss in self._layers.losses:
            with colocate_with(self._layers.loss_colocation_ops[loss]):
                for index in np.ndindex(*loss.fisher_factor_inner_static_shape.as_list()[1:]):
                    made.append(self._gradients(loss.inputs, tensors, loss.multiply_fisher_factor_replicated_one_hot(index)))
        return [tuple(grads) for grads in zip(*made)]


class RoundRobinPlacementMixin:
    """Puts averages and inverses on devices in turn, where devices are given."""

    create_ops_and_vars_thunks: Any

    def __init__(self, cov_devices: Any = None, inv_devices: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cov_devices, self._inv_devices = cov_devices, inv_devices

    def make_vars_and_create_op_thunks(self, scope: Any = None) -> Any:
        """Makes the variables; functions that make the updates of averages, and those of inverses."""
        cov_vars, covs, inv_vars, invs = self.create_ops_and_vars_thunks(scope=scope)
        for thunk, where in zip(cov_vars, itertools.cycle(self._cov_devices or [None])):
            _on(where, thunk)()
        for thunk in inv_vars:
            thunk()
        return tuple(
            [_on(where, thunk) for thunk, where in zip(thunks, itertools.cycle(devices or [None]))]
            for thunks, devices in ((covs, self._cov_devices), (invs, self._inv_devices))
        )


def _on(where: Any, thunk: Callable[[], Any]) -> Callable[[], Any]:
    if where is None:
        return thunk

    def placed() -> Any:
        with device(where):
            return thunk()

    return placed


class FisherEstimatorRoundRobin(RoundRobinPlacementMixin, FisherEstimator):
    """An estimator whose averages and inverses are on devices in turn."""
