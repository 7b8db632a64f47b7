# SPDX-License-Identifier: Apache-2.0
"""Optimizers of tf.contrib.opt that look at whether gradient and momentum have one sign, and the decays of that."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation
from millrace.ops import gen_ops, math_ops
from millrace.train.optimizer import Optimizer


class _SignOptimizer(Optimizer):
    _slot_names = ("m",)

    def __init__(self, learning_rate: Any, beta: Any, sign_decay_fn: Optional[Callable[[Any], Any]], use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._lr, self._beta, self._sign_decay_fn = learning_rate, beta, sign_decay_fn
        self._sign_decay: Any = 1.0

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Operation:
        """An operation that changes variables by gradients, and counts global_step."""
        if self._sign_decay_fn is not None:
            if global_step is None:
                raise at_user_line(ValueError("sign_decay_fn needs a global_step"))
            self._sign_decay = self._sign_decay_fn(global_step)
        return super().apply_gradients(grads_and_vars, global_step, name)


class AddSignOptimizer(_SignOptimizer):
    """Steps (alpha + sign_decay sign(g) sign(m)) g."""

    _rule = "AddSign"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay_fn: Optional[Callable[[Any], Any]] = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._lr, "alpha": self._alpha, "sign_decay": self._sign_decay, "beta": self._beta}


class PowerSignOptimizer(_SignOptimizer):
    """Steps base^(sign_decay sign(g) sign(m)) g."""

    _rule = "PowerSign"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: Any = 0.9,
        sign_decay_fn: Optional[Callable[[Any], Any]] = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ) -> None:
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._logbase = math.log(base)

    def _hyper(self) -> Dict[str, Any]:
        return {"learning_rate": self._lr, "logbase": self._logbase, "sign_decay": self._sign_decay, "beta": self._beta}


def _steps(global_step: Any, decay_steps: Any) -> Any:
    return math_ops.cast(global_step, dtypes.float32), math_ops.cast(decay_steps, dtypes.float32)


def get_linear_decay_fn(decay_steps: Any) -> Callable[[Any], Any]:
    """From 1 to 0 in so many steps."""

    def decay(global_step: Any) -> Any:
        step, whole = _steps(global_step, decay_steps)
        return gen_ops.maximum(whole - step, 0.0) / whole

    return decay


def _of_done(decay_steps: Any, num_periods: float, zero_after: Optional[float], curve: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decay(global_step: Any) -> Any:
        step, whole = _steps(global_step, decay_steps)
        done = gen_ops.minimum(step, whole) / whole * num_periods
        value = curve(done)
        if zero_after is None:
            return value
        return value * math_ops.cast(gen_ops.less_equal(done, 2.0 * zero_after), dtypes.float32)

    return decay


def get_cosine_decay_fn(decay_steps: Any, num_periods: float = 0.5, zero_after: Optional[float] = None) -> Callable[[Any], Any]:
    """Half (1 + cosine) of num_periods in so many steps; 0 after zero_after of them."""
    return _of_done(decay_steps, num_periods, None if zero_after is None else zero_after / 2, lambda done: 0.5 * (gen_ops.cos(2.0 * math.pi * done) + 1.0))


def get_restart_decay_fn(decay_steps: Any, num_periods: float = 1, zero_after: Optional[float] = None) -> Callable[[Any], Any]:
    """As the cosine's, from 1 to 0 in each of num_periods."""
    return _of_done(
        decay_steps, num_periods, None if zero_after is None else zero_after / 2, lambda done: 0.5 * (gen_ops.cos(math.pi * gen_ops.floor_mod(done, 1.0)) + 1.0)
    )
