# SPDX-License-Identifier: Apache-2.0
"""Averages of variables over the steps."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection, colocate_with, get_default_graph, init_scope, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.ops.variables import Variable, assign_sub, global_variables, moving_average_variables, trainable_variables
from millrace.train import slot_creator


def assign_moving_average(variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: Optional[str] = None) -> Tensor:
    """variable -= (1 - decay) (variable - value); with zero_debias as if it had started at the first value."""
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        with colocate_with(variable):
            decay = convert_to_tensor(1.0 - decay, name="decay")
            if decay.dtype.base_dtype != variable.dtype.base_dtype:
                decay = math_ops.cast(decay, variable.dtype.base_dtype)
            delta = _debiased_delta(variable, value, decay) if zero_debias else (variable - value) * decay
            return assign_sub(variable, delta, name=scope)


def _debiased_delta(variable: Any, value: Any, decay: Any) -> Tensor:
    """The average of what was seen so far starts at 0; divided by 1 - (1 - decay)^steps it is one of the values alone."""
    dtype = variable.dtype.base_dtype
    with variable_scope(variable.op.name, values=[variable, value, decay]) as scope:

        def fresh(what: str) -> str:
            taken = {v.op.name for v in scope.global_variables()}
            if scope.reuse or scope.name + "/" + what not in taken:
                return what
            return next("%s_%d" % (what, i) for i in itertools.count(1) if "%s/%s_%d" % (scope.name, what, i) not in taken)

        biased = get_variable(fresh("biased"), initializer=init_ops.zeros_initializer(dtype), shape=variable.get_shape(), dtype=dtype, trainable=False)
        step = get_variable(fresh("local_step"), initializer=init_ops.zeros_initializer(dtype), shape=[], dtype=dtype, trainable=False)
        updates = [biased.assign_sub((biased - value) * decay), step.assign_add(array_ops.ones([], dtype))]
        with get_default_graph().control_dependencies(updates):
            return variable - biased.read_value() / (1 - gen_ops.pow(1.0 - decay, step.read_value()))


def weighted_moving_average(value: Any, decay: Any, weight: Any, truediv: bool = True, collections: Any = None, name: Optional[str] = None) -> Tensor:
    """The moving average of value * weight by that of weight, both kept in variables of their own."""
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        kept = []
        for what, update in (("value_x_weight", value * weight), ("weight", weight)):
            variable = get_variable(
                what,
                shape=update.get_shape(),
                dtype=update.dtype.base_dtype,
                initializer=init_ops.zeros_initializer(),
                trainable=False,
                collections=collections,
            )
            kept.append(assign_moving_average(variable, update, decay, zero_debias=False))
        return (math_ops.truediv if truediv else math_ops.div)(*kept, name=scope.name)  # type: ignore[misc, arg-type]


class ExponentialMovingAverage:
    """Keeps averages of variables and tensors: shadow = decay shadow + (1 - decay) value."""

    def __init__(self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage") -> None:
        self._decay, self._num_updates, self._zero_debias, self._name = decay, num_updates, zero_debias, name
        self._averages: Dict[Any, Variable] = {}

    def __repr__(self) -> str:
        return "<ExponentialMovingAverage '%s', decay %s, of %d>" % (self._name, getattr(self._decay, "name", self._decay), len(self._averages))

    @property
    def name(self) -> str:
        """Its name, which is part of the names of its variables."""
        return self._name

    def apply(self, var_list: Any = None) -> Operation:
        """An operation that updates the averages of variables (the trainable ones unless given) or tensors."""
        if var_list is None:
            var_list = trainable_variables()
        debiased = set()
        for var in var_list:
            if var.dtype.base_dtype not in (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64):
                raise at_user_line(TypeError("The variables must be half, float, or double: %s" % var.name))
            if var not in self._averages:
                with init_scope():
                    self._averages[var] = self._make(var)
            if self._zero_debias and not isinstance(var, Variable):
                debiased.add(var)
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = math_ops.cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = gen_ops.minimum(decay, (1.0 + count) / (10.0 + count))
            # A variable is read here, after what the context waits for: averages of a training step are of the values behind it.
            values = [var.read_value() if isinstance(var, Variable) else var for var in var_list]
            updates = [assign_moving_average(self._averages[var], value, decay, zero_debias=var in debiased) for var, value in zip(var_list, values)]
            return control_flow_ops.group(*updates, name=scope)

    def _make(self, var: Any) -> Variable:
        if isinstance(var, Variable):
            add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, var)
            return slot_creator.create_slot(var, var.initialized_value(), self._name, colocate_with_primary=True)
        beside = var.op.type in ("Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable")
        return slot_creator.create_zeros_slot(var, self._name, colocate_with_primary=beside)

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
        wanted = dict.fromkeys(moving_avg_variables)
        for v in wanted:
            names[self.average_name(v)] = v
        taken = {v.op.name for v in wanted}
        for v in global_variables():
            if v not in wanted and v.op.name not in taken and v.op.name not in names:
                names[v.op.name] = v
        return names
