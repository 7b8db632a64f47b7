# SPDX-License-Identifier: Apache-2.0
"""Optimizers of tf.contrib.opt that look at whether gradient and momentum have one sign, and the decays of that."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.train.rules import Ruled, by_rule


@by_rule
class _SignOptimizer(Ruled):
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

    _rule, _op = "AddSign", "add_sign"

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

    _rule, _op = "PowerSign", "power_sign"

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


def _done(global_step: Any, decay_steps: Any, num_periods: float) -> Tuple[Any, Any]:
    """Periods that are done, and the same as steps, of decay_steps in all."""
    if global_step is None:
        raise at_user_line(ValueError("global_step is required for the decay."))
    whole = math_ops.cast(decay_steps, dtypes.float32)
    steps = num_periods * gen_ops.minimum(math_ops.cast(global_step, dtypes.float32), whole)
    return steps / whole, steps


def get_linear_decay_fn(decay_steps: Any) -> Callable[[Any], Any]:
    """From 1 to 0 in so many steps."""

    def decay(global_step: Any) -> Any:
        return gen_ops.maximum(0.0, 1.0 - _done(global_step, decay_steps, 1.0)[0])

    return decay


def _until(zero_after: Optional[float], done: Any, value: Any) -> Any:
    return value if zero_after is None else array_ops.where(gen_ops.greater_equal(done, zero_after), array_ops.zeros_like(value), value)


def get_cosine_decay_fn(decay_steps: Any, num_periods: float = 0.5, zero_after: Optional[float] = None) -> Callable[[Any], Any]:
    """Half (1 + cosine) of num_periods in so many steps; 0 after zero_after of them."""

    def decay(global_step: Any) -> Any:
        done, _ = _done(global_step, decay_steps, num_periods)
        return _until(zero_after, done, 0.5 * (1.0 + gen_ops.cos(2.0 * math.pi * done)))

    return decay


def get_restart_decay_fn(decay_steps: Any, num_periods: float = 1, zero_after: Optional[float] = None) -> Callable[[Any], Any]:
    """As the cosine's, from 1 to 0 in each of num_periods."""

    def decay(global_step: Any) -> Any:
        done, steps = _done(global_step, decay_steps, num_periods)
        whole = math_ops.cast(decay_steps, dtypes.float32)
        return _until(zero_after, done, 0.5 * (1.0 + gen_ops.cos(math.pi * gen_ops.floor_mod(steps, whole) / whole)))

    return decay
