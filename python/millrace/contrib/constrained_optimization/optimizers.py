# SPDX-License-Identifier: Apache-2.0
"""Optimizers of problems with constraints: one player changes the model by the objective plus weights times constraints, the other the weights."""

from __future__ import annotations

import abc
import math
from typing import Any, Callable, Dict, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import colocate_with, control_dependencies
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, variables
from millrace.ops.control_flow_ops import cond, group
from millrace.ops.matrix_ops import matmul, norm, tensordot
from millrace.ops.nn_ops import top_k
from millrace.ops.variables import Variable
from millrace.train.optimizer import Optimizer


# ---- what is legal ----


def _checked(values: Any, rank: int, name: str) -> Any:
    values = convert_to_tensor(values)
    if not values.dtype.is_floating:
        raise at_user_line(ValueError("%s must have a floating-point dtype" % name))
    shape = values.get_shape()
    if shape.ndims != rank or not shape.is_fully_defined():
        raise at_user_line(ValueError("%s must have a known shape with %d dimensions, got %s" % (name, rank, shape)))
    return values


def _onto_simplex(rows: Any, radius: Any) -> Any:
    """The nearest rows whose numbers are not negative and have the sum radius (Held, Wolfe and Crowder 1974)."""
    count = rows.get_shape()[-1].value
    ordered, _ = top_k(rows, count)
    excess = (math_ops.cumsum(ordered, axis=-1) - radius) / math_ops.range(1.0, count + 1.0, 1.0)
    kept = math_ops.reduce_sum(math_ops.cast(gen_ops.greater(ordered, excess), dtypes.int32), -1, keepdims=True)
    chosen = array_ops.one_hot(array_ops.squeeze(kept, -1) - 1, count, dtype=rows.dtype.base_dtype)
    return gen_ops.maximum(rows - math_ops.reduce_sum(chosen * excess, -1, keepdims=True), 0.0)


def _project_multipliers_wrt_euclidean_norm(multipliers: Any, radius: Any) -> Any:
    """The nearest multipliers that are not negative and whose sum is radius at most."""
    multipliers = _checked(multipliers, 1, "multipliers")
    positive = gen_ops.maximum(multipliers, 0.0)
    return cond(gen_ops.less_equal(math_ops.reduce_sum(positive), radius), lambda: positive, lambda: _onto_simplex(multipliers, radius))


def _project_stochastic_matrix_wrt_euclidean_norm(matrix: Any) -> Any:
    """The nearest matrix whose columns are distributions."""
    matrix = _checked(matrix, 2, "matrix")
    if matrix.get_shape()[0] != matrix.get_shape()[1]:
        raise at_user_line(ValueError("matrix must be square (instead has shape %s)" % matrix.get_shape()))
    return array_ops.transpose(_onto_simplex(array_ops.transpose(matrix), 1.0))


def _project_log_stochastic_matrix_wrt_kl_divergence(log_matrix: Any) -> Any:
    """Logarithms of columns that are distributions, in the proportions that are given."""
    return log_matrix - math_ops.reduce_logsumexp(log_matrix, axis=0, keepdims=True)


def _maximal_eigenvector_power_method(matrix: Any, epsilon: float = 1e-6, maximum_iterations: int = 100) -> Any:
    """The eigenvector of the largest eigenvalue, of length 1, by products until one changes no more than epsilon."""
    matrix = convert_to_tensor(matrix)
    if not matrix.dtype.is_floating:
        raise at_user_line(ValueError("matrix must have a floating-point dtype"))
    if epsilon <= 0.0:
        raise at_user_line(ValueError("epsilon must be strictly positive"))
    if maximum_iterations <= 0:
        raise at_user_line(ValueError("maximum_iterations must be strictly positive"))

    def step(i: Any, vector: Any, before: Any) -> Any:
        product = matmul(matrix, array_ops.expand_dims(vector, 1))[:, 0]
        return i + 1, product / norm(product), vector

    def changes(i: Any, vector: Any, before: Any) -> Any:
        return gen_ops.logical_and(gen_ops.less(i, maximum_iterations), gen_ops.greater(norm(vector - before), epsilon))

    ones = array_ops.ones_like(matrix[:, 0])
    return control_flow_ops.while_loop(changes, step, step(convert_to_tensor(0), ones / norm(ones), ones))[1]


# ---- optimizers ----


class ConstrainedOptimizer(abc.ABC):
    """An optimizer of a ConstrainedMinimizationProblem, by another optimizer."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    optimizer = property(lambda self: self._optimizer, doc="The optimizer of the model.")

    @abc.abstractmethod
    def _minimize_constrained(self, minimization_problem: Any, global_step: Any, name: Optional[str], options: Dict[str, Any]) -> Any:
        """A step that regards the constraints; options are compute_gradients's."""

    def _after(self, problem: Any, make: Callable[[], Any]) -> Any:
        with control_dependencies(list(problem.pre_train_ops or [])):
            return make()

    def minimize_constrained(
        self,
        minimization_problem: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: Any = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: Optional[str] = None,
        grad_loss: Any = None,
    ) -> Any:
        """A step that regards the constraints."""
        options = _options(var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss)
        return self._after(minimization_problem, lambda: self._minimize_constrained(minimization_problem, global_step, name, options))

    def minimize_unconstrained(
        self,
        minimization_problem: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: Any = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: Optional[str] = None,
        grad_loss: Any = None,
    ) -> Any:
        """A step that makes the objective small and nothing else."""
        options = _options(var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss)
        objective = minimization_problem.objective
        return self._after(minimization_problem, lambda: self._optimizer.minimize(objective, global_step=global_step, name=name, **options))

    def minimize(
        self,
        minimization_problem: Any,
        unconstrained_steps: Any = None,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: Any = Optimizer.GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: Optional[str] = None,
        grad_loss: Any = None,
    ) -> Any:
        """A step that regards the constraints, after unconstrained_steps that do not."""
        given = (minimization_problem, global_step, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, name, grad_loss)
        if unconstrained_steps is None:
            return self.minimize_constrained(*given)
        if global_step is None:
            raise at_user_line(ValueError("global_step cannot be None if unconstrained_steps is provided"))
        steps = convert_to_tensor(unconstrained_steps)
        early = gen_ops.less(math_ops.cast(global_step, steps.dtype), steps)
        return cond(early, lambda: self.minimize_unconstrained(*given), lambda: self.minimize_constrained(*given))


def _options(var_list: Any, gate_gradients: Any, aggregation_method: Any, colocate_gradients_with_ops: bool, grad_loss: Any) -> Dict[str, Any]:
    return {
        "var_list": var_list,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "grad_loss": grad_loss,
    }


class _RegretOptimizer(ConstrainedOptimizer):
    """The second player has a variable of weights, which constraint_optimizer, or the model's own optimizer, changes, and which is projected then."""

    _state_name: str

    def __init__(self, optimizer: Optimizer, constraint_optimizer: Optional[Optimizer] = None) -> None:
        super().__init__(optimizer)
        self._constraint_optimizer = constraint_optimizer

    constraint_optimizer = property(lambda self: self._constraint_optimizer, doc="The optimizer of the weights, or None.")

    @abc.abstractmethod
    def _initial_state(self, num_constraints: int) -> Any:
        """The first weights."""

    @abc.abstractmethod
    def _game(self, state: Any, objective: Any, constraints: Any, proxies: Any) -> Tuple[Any, Any]:
        """(the model's loss, what the weights are to grow by)."""

    @abc.abstractmethod
    def _projected(self, state: Any) -> Any:
        """The nearest legal weights."""

    def _minimize_constrained(self, minimization_problem: Any, global_step: Any, name: Optional[str], options: Dict[str, Any]) -> Any:
        objective, constraints, proxies = minimization_problem.objective, minimization_problem.constraints, minimization_problem.proxy_constraints
        proxies = constraints if proxies is None else proxies
        if len({t.dtype.base_dtype for t in (objective, constraints, proxies)}) > 1:
            raise at_user_line(ValueError("objective, constraints and proxy_constraints must have the same dtype"))
        count = minimization_problem.num_constraints
        state = Variable(lambda: self._initial_state(count), trainable=False, name=self._state_name)
        loss, growth = self._game(state, objective, array_ops.reshape(constraints, [count]), array_ops.reshape(proxies, [count]))
        pairs, more = self._optimizer.compute_gradients(loss, **options), (-growth, state)
        if self._constraint_optimizer is None:
            updates = [self._optimizer.apply_gradients([*pairs, more], name="update")]
        else:
            with control_dependencies([gradient for gradient, _ in [*pairs, more] if gradient is not None]):
                updates = [
                    self._optimizer.apply_gradients(pairs, name="update"),
                    self._constraint_optimizer.apply_gradients([more], name="optimizer_state_update"),
                ]
        with control_dependencies(updates), colocate_with(state):
            legal = variables.assign(state, self._projected(state), name=name if global_step is None else "project")
            if global_step is None:
                return legal
            return group(legal, variables.assign_add(global_step, math_ops.cast(1, global_step.dtype.base_dtype)), name=name)


class AdditiveExternalRegretOptimizer(_RegretOptimizer):
    """Lagrange's multipliers, one for each constraint, which grow by the constraints; their sum is maximum_multiplier_radius at most."""

    _state_name = "external_regret_optimizer_state"

    def __init__(self, optimizer: Optimizer, constraint_optimizer: Optional[Optimizer] = None, maximum_multiplier_radius: Optional[float] = None) -> None:
        super().__init__(optimizer, constraint_optimizer)
        if maximum_multiplier_radius is not None and maximum_multiplier_radius <= 0.0:
            raise at_user_line(ValueError("maximum_multiplier_radius must be strictly positive"))
        self._radius = maximum_multiplier_radius

    def _initial_state(self, num_constraints: int) -> Any:
        return array_ops.zeros([num_constraints])

    def _lagrange_multipliers(self, state: Any) -> Any:
        return state

    def _game(self, state: Any, objective: Any, constraints: Any, proxies: Any) -> Tuple[Any, Any]:
        multipliers = array_ops.identity(self._lagrange_multipliers(state))
        return objective + tensordot(math_ops.cast(multipliers, proxies.dtype), proxies, 1), math_ops.cast(constraints, multipliers.dtype.base_dtype)

    def _projected(self, state: Any) -> Any:
        return gen_ops.maximum(state, 0.0) if self._radius is None else _project_multipliers_wrt_euclidean_norm(state, self._radius)


class _SwapRegretOptimizer(_RegretOptimizer):
    """A matrix whose columns are distributions over objective and constraints: its stationary distribution weighs these."""

    _state_name = "swap_regret_optimizer_state"

    @abc.abstractmethod
    def _stochastic_matrix(self, state: Any) -> Any:
        """The matrix."""

    def _distribution(self, state: Any) -> Any:
        vector = gen_ops.abs(_maximal_eigenvector_power_method(self._stochastic_matrix(state)))
        return vector / math_ops.reduce_sum(vector)

    def _game(self, state: Any, objective: Any, constraints: Any, proxies: Any) -> Tuple[Any, Any]:
        distribution = self._distribution(state)
        all_of_them = array_ops.concat([array_ops.expand_dims(objective, 0), proxies], 0)
        loss = tensordot(math_ops.cast(distribution, all_of_them.dtype), all_of_them, 1)
        growth = math_ops.cast(array_ops.concat([array_ops.zeros([1], constraints.dtype), constraints], 0), distribution.dtype)
        return loss, array_ops.expand_dims(growth, 1) * array_ops.expand_dims(distribution, 0)


class AdditiveSwapRegretOptimizer(_SwapRegretOptimizer):
    """The matrix itself is the variable; it starts with all weight on the objective."""

    def _initial_state(self, num_constraints: int) -> Any:
        size = num_constraints + 1
        return array_ops.concat([array_ops.ones([1, size]), array_ops.zeros([size - 1, size])], 0)

    def _stochastic_matrix(self, state: Any) -> Any:
        return array_ops.identity(state)

    def _projected(self, state: Any) -> Any:
        return _project_stochastic_matrix_wrt_euclidean_norm(state)


class MultiplicativeSwapRegretOptimizer(_SwapRegretOptimizer):
    """The logarithm of the matrix is the variable; no weight falls below minimum_multiplier_radius / (constraints + 1)."""

    def __init__(
        self,
        optimizer: Optimizer,
        constraint_optimizer: Optional[Optimizer] = None,
        minimum_multiplier_radius: float = 1e-3,
        initial_multiplier_radius: Optional[float] = None,
    ) -> None:
        super().__init__(optimizer, constraint_optimizer)
        if not 0.0 < minimum_multiplier_radius < 1.0:
            raise at_user_line(ValueError("minimum_multiplier_radius must be in the range (0,1)"))
        first = minimum_multiplier_radius if initial_multiplier_radius is None else initial_multiplier_radius
        if not minimum_multiplier_radius <= first <= 1.0:
            raise at_user_line(ValueError("initial_multiplier_radius must be in the range [minimum_multiplier_radius,1]"))
        self._minimum, self._first = minimum_multiplier_radius, first

    def _initial_state(self, num_constraints: int) -> Any:
        size = num_constraints + 1
        most, least = math.log(1.0 - self._first * (size - 1) / size), math.log(self._first / size)
        return array_ops.concat([array_ops.fill([1, size], most), array_ops.fill([size - 1, size], least)], 0)

    def _stochastic_matrix(self, state: Any) -> Any:
        return gen_ops.exp(state)

    def _projected(self, state: Any) -> Any:
        size = state.get_shape()[0].value
        return gen_ops.maximum(_project_log_stochastic_matrix_wrt_kl_divergence(state), math.log(self._minimum / size))
