# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.optimizer: gradient descent by gradients times the inverse of an approximate Fisher information (Martens and Grosse 2015)."""

from __future__ import annotations

from typing import Any, List

from millrace.contrib.kfac import estimator as est
from millrace.contrib.kfac.curvature_products import CurvatureMatrixVectorProductComputer
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import colocate_with, control_dependencies
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops, variables
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.train.rules import GradientDescentOptimizer


def _inner(left: Any, right: Any) -> Any:
    return math_ops.add_n([math_ops.reduce_sum(a * b) for a, b in zip(left, right)])


class KfacOptimizer(GradientDescentOptimizer):
    """Steps by gradients that the inverse of the Fisher information of a LayerCollection has multiplied. momentum_type: regular (of such steps), adam (of
    gradients before they are multiplied) or qmodel (by the minimum of the quadratic model). The updates of the averages and of the inverses are operations
    that the program runs itself."""

    def __init__(
        self,
        learning_rate: Any,
        cov_ema_decay: Any,
        damping: Any,
        layer_collection: Any,
        var_list: Any = None,
        momentum: Any = 0.9,
        momentum_type: str = "regular",
        norm_constraint: Any = None,
        name: str = "KFAC",
        estimation_mode: str = "gradients",
        colocate_gradients_with_ops: bool = True,
        batch_size: Any = None,
        placement_strategy: Any = None,
        **kwargs: Any,
    ) -> None:
        kind = momentum_type.lower()
        if kind not in ("regular", "adam", "qmodel"):
            raise at_user_line(ValueError("Unsupported momentum type %s. Must be one of regular, adam, qmodel." % momentum_type))
        if kind != "regular" and norm_constraint is not None:
            raise at_user_line(ValueError("Update clipping is only supported with momentum type 'regular', not '%s'." % kind))
        if kind == "qmodel" and momentum != 0:
            raise at_user_line(ValueError("Momentum must be unspecified if using a momentum_type other than 'regular' or 'adam'."))
        self._layers, self._momentum, self._momentum_type, self._norm_constraint = layer_collection, momentum, kind, norm_constraint
        self._batch_size, self._damping_constant = batch_size, damping
        self._damping: Any = None
        self._adapt_damping, self._is_chief, self._damping_adaptation_interval = False, False, 5
        with variable_scope(name):
            self._fisher_est = est.make_fisher_estimator(
                placement_strategy=placement_strategy,
                variables=var_list or variables.trainable_variables,
                cov_ema_decay=cov_ema_decay,
                damping=damping,
                layer_collection=layer_collection,
                estimation_mode=estimation_mode,
                colocate_gradients_with_ops=colocate_gradients_with_ops,
                **kwargs,
            )
        super().__init__(learning_rate, name=name)

    def set_damping_adaptation_params(
        self,
        is_chief: bool,
        prev_train_batch: Any,
        loss_fn: Any,
        min_damping: float = 1e-5,
        damping_adaptation_decay: float = 0.99,
        damping_adaptation_interval: int = 5,
    ) -> None:
        """Has damping follow, every few steps, how well the quadratic model tells what a step does to the loss (the same paper, section 6.5)."""
        if self._adapt_damping:
            raise at_user_line(ValueError("Damping adaptation parameters already set."))
        self._adapt_damping, self._is_chief = True, is_chief
        self._prev_train_batch, self._loss_fn, self._min_damping = prev_train_batch, loss_fn, min_damping
        self._damping_adaptation_interval = damping_adaptation_interval
        self._omega = damping_adaptation_decay**damping_adaptation_interval
        with variable_scope(self.get_name()):
            self._rho, self._prev_loss, self._q_model_change = (
                get_variable(what, shape=(), dtype=dtypes.float32, trainable=False) for what in ("rho", "prev_loss", "q_model_change")
            )
            self._damping = get_variable("damping", initializer=self._damping_constant, trainable=False)

    @property
    def variables(self) -> Any:  # type: ignore[override]
        """The variables whose Fisher information is estimated."""
        return self._fisher_est.variables

    @property
    def damping(self) -> Any:
        """The damping, which is a variable where it is adapted."""
        return self._damping_constant if self._damping is None else self._damping

    @property
    def damping_adaptation_interval(self) -> int:
        return self._damping_adaptation_interval

    def _everything(self) -> Any:
        if not self._fisher_est.made_vars():
            self._made = self.make_ops_and_vars()
        if getattr(self, "_made", None) is None:
            raise at_user_line(ValueError("The operations of %s were made by the program itself: it has them." % self.get_name()))
        return self._made

    cov_update_ops = property(lambda self: self._everything()[0], doc="The updates of the averages.")
    cov_update_op = property(lambda self: self._everything()[1], doc="All of them.")
    inv_update_ops = property(lambda self: self._everything()[2], doc="The updates of the inverses.")
    inv_update_op = property(lambda self: self._everything()[3], doc="All of them.")
    cov_update_thunks = property(lambda self: self._everything()[4], doc="Functions that make the updates of the averages.")
    inv_update_thunks = property(lambda self: self._everything()[5], doc="Functions that make the updates of the inverses.")

    def make_ops_and_vars(self) -> Any:
        """Variables and updates, as FisherEstimator.make_ops_and_vars."""
        return self._fisher_est.make_ops_and_vars(scope=self.get_name())

    def _scope(self) -> str:
        return self.get_name() + "/" + self._fisher_est.name

    def make_vars_and_create_op_thunks(self) -> Any:
        """Makes the variables; functions that make the updates of averages, and those of inverses."""
        return self._fisher_est.make_vars_and_create_op_thunks(scope=self._scope())

    def create_ops_and_vars_thunks(self) -> Any:
        """Functions that make variables and updates, as FisherEstimator.create_ops_and_vars_thunks."""
        return self._fisher_est.create_ops_and_vars_thunks(scope=self._scope())

    def _same_variables(self, var_list: Any) -> None:
        if set(var_list) != set(self.variables):
            raise at_user_line(ValueError("var_list doesn't match with set of Fisher-estimating variables."))

    def minimize(self, *args: Any, **kwargs: Any) -> Any:
        """A step, and with adapted damping (in which case global_step is needed) the damping of the next ones."""
        with variable_scope(self.get_name()):
            kwargs["var_list"] = kwargs.get("var_list") or self.variables
            self._same_variables(kwargs["var_list"])
            if not (self._adapt_damping and self._is_chief):
                return super().minimize(*args, **kwargs)
            global_step = kwargs.get("global_step")
            if global_step is None:
                raise at_user_line(KeyError("global_step needs to be passed to optimizer.minimize if damping parameter is adapted."))
            with control_dependencies([self._update_damping(global_step)]):
                kept = variables.assign(self._prev_loss, args[0])
                return control_flow_ops.group(kept, super().minimize(*args, **kwargs))

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """The gradients of the variables whose Fisher information is estimated."""
        if len(args) < 2:
            kwargs["var_list"] = kwargs.get("var_list") or self.variables
        self._same_variables(args[1] if len(args) > 1 else kwargs["var_list"])
        return super().compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        """A step by the gradients times the inverse of the Fisher information."""
        if not self._fisher_est.made_vars():
            self._everything()
        return super().apply_gradients(self._steps(list(grads_and_vars)), *args, **kwargs)

    def _squared_fisher_norm(self, grads_and_vars: Any, precon_grads_and_vars: Any) -> Any:
        for (_, one), (_, other) in zip(grads_and_vars, precon_grads_and_vars):
            if one is not other:
                raise at_user_line(ValueError("The variables referenced by the two arguments must match: %s and %s." % (one, other)))
        return _inner([g for g, _ in grads_and_vars], [g for g, _ in precon_grads_and_vars])

    def _update_clip_coeff(self, grads_and_vars: Any, precon_grads_and_vars: Any) -> Any:
        length = self._squared_fisher_norm(grads_and_vars, precon_grads_and_vars) * self._learning_rate**2
        return gen_ops.minimum(1.0, gen_ops.sqrt(self._norm_constraint / length))

    def _clip_updates(self, grads_and_vars: Any, precon_grads_and_vars: Any) -> List[Any]:
        coeff = self._update_clip_coeff(grads_and_vars, precon_grads_and_vars)
        return [(grad * coeff, variable) for grad, variable in precon_grads_and_vars]

    def _compute_prev_updates(self, variables: Any) -> List[Any]:
        return [-self._learning_rate * self._zeros_slot(v, "velocity", self._name) for v in variables]

    def _compute_qmodel_hyperparams(self, precon_grads: Any, prev_updates: Any, grads: Any, variables: Any) -> Any:
        """(alpha, mu, change of the quadratic model): alpha times the preconditioned gradients and mu times the last step go to its minimum."""
        computer = CurvatureMatrixVectorProductComputer(self._layers.losses, variables)
        parts = [(vectors, computer.multiply_fisher_factor_transpose(vectors)) for vectors in (precon_grads, prev_updates)]
        batch_size = math_ops.cast(self._batch_size, parts[0][1][0].dtype)

        def curvature(left: Any, right: Any) -> Any:
            return _inner(left[1], right[1]) / batch_size + self.damping * _inner(left[0], right[0])

        m_11, m_21, m_22 = curvature(parts[0], parts[0]), curvature(parts[1], parts[0]), curvature(parts[1], parts[1])

        def with_last_step() -> Any:
            c = convert_to_tensor([[_inner(grads, precon_grads)], [_inner(grads, prev_updates)]])
            best = -matrix_ops.matmul(gen_ops.matrix_inverse(convert_to_tensor([[m_11, m_21], [m_21, m_22]])), c)
            alpha, mu = array_ops.unstack(array_ops.squeeze(best, [1]))
            return alpha, mu, 0.5 * math_ops.reduce_sum(best * c)

        def without() -> Any:
            c = _inner(grads, precon_grads)
            alpha = -c / m_11
            return alpha, array_ops.zeros_like(alpha), 0.5 * alpha * c

        return control_flow_ops.cond(math_ops.equal(m_22, 0.0), without, with_last_step)

    def _by_qmodel(self, grads_and_vars: Any, precon: Any) -> Any:
        trained = [v for _, v in grads_and_vars]
        alpha, mu, change = self._compute_qmodel_hyperparams(
            [g for g, _ in precon], self._compute_prev_updates(trained), [g for g, _ in grads_and_vars], trained
        )
        kept = self._adapt_damping and self._is_chief
        return alpha, mu, variables.assign(self._q_model_change, change) if kept else control_flow_ops.no_op()

    def _steps(self, grads_and_vars: Any) -> Any:
        if self._momentum_type == "adam":
            return self._fisher_est.multiply_inverse(self._update_velocities(grads_and_vars, self._momentum))
        precon = self._fisher_est.multiply_inverse(grads_and_vars)
        if self._momentum_type == "qmodel":
            alpha, mu, kept = self._by_qmodel(grads_and_vars, precon)
            with control_dependencies([kept]):
                return self._update_velocities(precon, mu, vec_coeff=-alpha)
        if self._norm_constraint is not None:
            precon = self._clip_updates(grads_and_vars, precon)
        if not (self._adapt_damping and self._is_chief):
            return self._update_velocities(precon, self._momentum)
        with control_dependencies([self._by_qmodel(grads_and_vars, precon)[2]]):
            return self._update_velocities(precon, self._momentum)

    def _update_velocities(self, vecs_and_vars: Any, decay: Any, vec_coeff: Any = 1.0) -> List[Any]:
        made = []
        for vector, variable in vecs_and_vars:
            velocity = self._zeros_slot(variable, "velocity", self._name)
            with colocate_with(velocity):
                made.append((array_ops.identity(velocity.assign(decay * velocity + vec_coeff * vector)), variable))
        return made

    def _update_damping(self, global_step: Any) -> Any:
        """Damping for the next steps: less where the loss fell by more than 3/4 of what the model said, more where by less than 1/4."""

        def compute() -> Any:
            loss = self._loss_fn(self._prev_train_batch)
            with control_dependencies([loss]):
                rho = self._rho.assign((loss - self._prev_loss) / self._q_model_change)
            with control_dependencies([rho]):
                now = self._damping
                wanted = control_flow_ops.case(
                    [(gen_ops.less(self._rho, 0.25), lambda: now / self._omega), (gen_ops.greater(self._rho, 0.75), lambda: now * self._omega)],
                    lambda: array_ops.identity(now),
                )
                with control_dependencies([wanted]):
                    return control_flow_ops.group(now.assign(gen_ops.maximum(wanted, self._min_damping)))

        return control_flow_ops.cond(math_ops.equal(math_ops.mod(global_step + 1, self._damping_adaptation_interval), 0), compute, control_flow_ops.no_op)
