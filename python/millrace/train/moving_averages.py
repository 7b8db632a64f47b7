# SPDX-License-Identifier: Apache-2.0
"""Averages of variables over the steps."""
from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection, colocate_with, get_default_graph, init_scope, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.variable_scope import get_variable_scope
from millrace.ops.variables import Variable, global_variables, moving_average_variables, trainable_variables


def assign_moving_average(variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: Optional[str] = None) -> Tensor:
    """variable -= (1 - decay) (variable - value); with zero_debias as if it had started at the first value."""
    with name_scope(name, "AssignMovingAvg", [value, decay]) as scope:
        with colocate_with(variable):
            decay = convert_to_tensor(1.0 - decay, name="decay") if not isinstance(decay, Tensor) else 1.0 - decay
            if decay.dtype.base_dtype != variable.dtype.base_dtype:
                decay = math_ops.cast(decay, variable.dtype.base_dtype)
            if zero_debias:
                delta = _debiased_delta(variable, value, decay)
            else:
                delta = (variable - value) * decay
            return variable.assign_sub(delta, name=scope)  # type: ignore[no-any-return]


def _debiased_delta(variable: Any, value: Any, decay: Any) -> Tensor:
    with init_scope():
        biased = Variable(array_ops.zeros(variable.get_shape(), variable.dtype.base_dtype), trainable=False, name=variable.op.name + "/biased")
        step = Variable(array_ops.zeros([], variable.dtype.base_dtype), trainable=False, name=variable.op.name + "/local_step")
    update = biased.assign_sub((biased - value) * decay)
    count = step.assign_add(array_ops.ones([], step.dtype.base_dtype))
    return variable - update / (1 - gen_ops.pow(1.0 - decay, count))


class ExponentialMovingAverage:
    """Keeps averages of variables and tensors: shadow = decay shadow + (1 - decay) value."""

    def __init__(self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage") -> None:
        self._decay, self._num_updates, self._zero_debias, self._name = decay, num_updates, zero_debias, name
        self._averages: Dict[Any, Variable] = {}

    @property
    def name(self) -> str:
        """Its name, which is part of the names of its variables."""
        return self._name

    def apply(self, var_list: Any = None) -> Operation:
        """An operation that updates the averages of variables (the trainable ones unless given) or tensors."""
        if var_list is None:
            var_list = trainable_variables()
        for var in var_list:
            if var.dtype.base_dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
                raise at_user_line(TypeError("The variables must be half, float, or double: %s" % var.name))
            if var not in self._averages:
                self._averages[var] = self._make(var)
        graph = get_default_graph()
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = math_ops.cast(self._num_updates, dtypes.float32)
                decay = gen_ops.minimum(decay, (1.0 + count) / (10.0 + count))
            updates = []
            for var in var_list:
                debias = self._zero_debias and not isinstance(var, Variable)
                updates.append(assign_moving_average(self._averages[var], var, decay, zero_debias=debias))
            del graph
            return control_flow_ops.group(*updates, name=scope)

    def _make(self, var: Any) -> Variable:
        name = var.op.name + "/" + self._name
        scope = get_variable_scope().name
        if scope:
            name = scope + "/" + name
        graph = get_default_graph()
        with graph.control_dependencies(None), graph.name_scope(None):
            if isinstance(var, Variable):
                first: Any = var.initial_value if var.initial_value is not None else array_ops.zeros(var.get_shape(), var.dtype.base_dtype)
                add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
                with graph.colocate_with(var.op):
                    return Variable(first, trainable=False, name=name)
            if not var.get_shape().is_fully_defined():
                raise at_user_line(ValueError("The average of %s needs a known shape" % var.name))
            made = Variable(array_ops.zeros(var.get_shape(), var.dtype.base_dtype), trainable=False, name=name)
            add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            return made

    def average(self, var: Any) -> Optional[Variable]:
        """The average of a variable, or None."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name under which the average of a variable is saved."""
        if var in self._averages:
            return str(self._averages[var].op.name)
        return get_default_graph().unique_name(var.op.name + "/" + self._name, mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Any = None) -> Dict[str, Any]:
        """For a Saver: the variables, each under the name of its average where it has one."""
        if moving_avg_variables is None:
            moving_avg_variables = trainable_variables() + moving_average_variables()
        names: Dict[str, Any] = {}
        wanted = set(v for v in moving_avg_variables if isinstance(v, Variable))
        for v in wanted:
            names[self.average_name(v)] = v
        taken = {v.op.name for v in wanted}
        for v in global_variables():
            if v not in wanted and v.op.name not in taken and v.op.name not in names:
                names[v.op.name] = v
        return names
