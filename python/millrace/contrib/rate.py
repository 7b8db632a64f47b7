# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.rate: how fast one number changes as another one does."""

from __future__ import annotations

import re
from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops, variable_scope
from millrace.ops.variables import Variable


class Rate:
    """Called with values and a denominator, such as a count and a time, it gives the change of the values since the last step over that of the
    denominator, in float64, and 0 where the denominator has not grown. Before the first step both were 0. Its variables are local."""

    def __init__(self, name: Optional[str] = None) -> None:
        self._name = name or type(self).__name__
        self._built = False
        self._vars: List[Variable] = []
        with variable_scope.variable_scope(re.sub("[^A-Za-z0-9.]", "_", self._name), use_resource=True) as scope:
            self._scope = scope

    name = property(lambda self: self._name, doc="Its name.")
    variables = property(lambda self: self._vars, doc="What it keeps from step to step.")

    def build(self, values: Any, denominator: Any) -> None:
        """Makes the variables, which the first call does where this was not called."""
        if self._built:
            raise at_user_line(RuntimeError("The variables of %s are built already." % self._name))
        with variable_scope.variable_scope(self._scope):
            self.numer, self.prev_values = self._variable("numer", values), self._variable("prev_values", values)
            self.denom, self.prev_denominator = self._variable("denom", denominator), self._variable("prev_denominator", denominator)
        self._built = True

    def _variable(self, name: str, like: Tensor) -> Variable:
        zeros = lambda: array_ops.zeros(like.get_shape(), dtypes.float64)
        made = Variable(zeros, trainable=False, name=name, collections=[GraphKeys.LOCAL_VARIABLES], use_resource=True)
        self._vars.append(made)
        return made

    def __call__(self, values: Any, denominator: Any) -> Tensor:
        values, denominator = convert_to_tensor(values), convert_to_tensor(denominator)
        if not self._built:
            self.build(values, denominator)
        return self.call(values, denominator)

    def call(self, values: Tensor, denominator: Tensor) -> Tensor:
        """The rate of this step."""
        values, denominator = math_ops.cast(values, dtypes.float64), math_ops.cast(denominator, dtypes.float64)
        change, step = values - self.prev_values, denominator - self.prev_denominator
        with control_dependencies([change, step]):  # of what the last step has left
            kept = zip((self.numer, self.denom, self.prev_values, self.prev_denominator), (change, step, values, denominator))
            updates = [variable.assign(value) for variable, value in kept]
        with control_dependencies(updates):
            rate = change / step
            return array_ops.where(gen_ops.greater(step + array_ops.zeros_like(rate), 0.0), rate, array_ops.zeros_like(rate))
