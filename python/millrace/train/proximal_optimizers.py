# SPDX-License-Identifier: Apache-2.0
"""Optimizers whose regularisation sets weights to exactly 0."""

from __future__ import annotations

from typing import Any, Dict

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import math_ops
from millrace.train.rules import Ruled, by_rule


@by_rule
class AdagradDAOptimizer(Ruled):
    """Adagrad by dual averaging."""

    _rule, _op = "AdagradDA", "adagrad_da"
    _slot_names = ("gradient_accumulator", "gradient_squared_accumulator")

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        if initial_gradient_squared_accumulator_value <= 0.0:
            raise at_user_line(ValueError("initial_gradient_squared_accumulator_value must be positive: %s" % initial_gradient_squared_accumulator_value))
        super().__init__(use_locking, name)
        self._learning_rate, self._global_step, self._initial = learning_rate, global_step, initial_gradient_squared_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _hyper(self) -> Dict[str, Any]:
        step = math_ops.cast(self._global_step, dtypes.int64) + 1
        return {"learning_rate": self._learning_rate, "l1": self._l1, "l2": self._l2, "global_step": step}

    def _slot_values(self) -> Dict[int, float]:
        return {1: self._initial}


@by_rule
class ProximalAdagradOptimizer(Ruled):
    """Adagrad with a proximal step."""

    _rule, _op = "ProximalAdagrad", "proximal_adagrad"
    _slot_names = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise at_user_line(ValueError("initial_accumulator_value must be positive: %s" % initial_accumulator_value))
        super().__init__(use_locking, name)
        self._learning_rate, self._initial = learning_rate, initial_accumulator_value
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate, "l1": self._l1, "l2": self._l2}

    def _slot_values(self) -> Dict[int, float]:
        return {0: self._initial}


@by_rule
class ProximalGradientDescentOptimizer(Ruled):
    """Gradient descent with a proximal step."""

    _rule, _op = "ProximalGradientDescent", "proximal_gradient_descent"
    _rate, _gradient = "alpha", "delta"

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._l1, self._l2 = learning_rate, l1_regularization_strength, l2_regularization_strength

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._learning_rate, "l1": self._l1, "l2": self._l2}
