# SPDX-License-Identifier: Apache-2.0
"""Learning rates that change with the step."""
from __future__ import annotations

import math
from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops


def _progress(learning_rate: Any, global_step: Any, steps: Any, staircase: bool) -> Any:
    if global_step is None:
        raise at_user_line(ValueError("global_step is required."))
    rate = convert_to_tensor(learning_rate, name="learning_rate")
    p = math_ops.cast(global_step, rate.dtype.base_dtype) / math_ops.cast(steps, rate.dtype.base_dtype)
    return rate, gen_ops.floor(p) if staircase else p


def exponential_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
                      name: Optional[str] = None) -> Tensor:
    """learning_rate decay_rate^(step / decay_steps)."""
    with name_scope(name, "ExponentialDecay", [learning_rate, global_step]) as scope:
        rate, p = _progress(learning_rate, global_step, decay_steps, staircase)
        return gen_ops.mul(rate, gen_ops.pow(math_ops.cast(decay_rate, rate.dtype.base_dtype), p), name=scope)


def natural_exp_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
                      name: Optional[str] = None) -> Tensor:
    """learning_rate exp(-decay_rate step / decay_steps)."""
    with name_scope(name, "NaturalExpDecay", [learning_rate, global_step]) as scope:
        rate, p = _progress(learning_rate, global_step, decay_steps, staircase)
        return gen_ops.mul(rate, gen_ops.exp(-math_ops.cast(decay_rate, rate.dtype.base_dtype) * p), name=scope)


def inverse_time_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False,
                       name: Optional[str] = None) -> Tensor:
    """learning_rate / (1 + decay_rate step / decay_steps)."""
    with name_scope(name, "InverseTimeDecay", [learning_rate, global_step]) as scope:
        rate, p = _progress(learning_rate, global_step, decay_steps, staircase)
        return gen_ops.real_div(rate, 1 + math_ops.cast(decay_rate, rate.dtype.base_dtype) * p, name=scope)


def polynomial_decay(learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001, power: Any = 1.0,
                     cycle: bool = False, name: Optional[str] = None) -> Tensor:
    """From learning_rate to end_learning_rate in decay_steps."""
    with name_scope(name, "PolynomialDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        dtype = rate.dtype.base_dtype
        step, steps, end = math_ops.cast(global_step, dtype), math_ops.cast(decay_steps, dtype), math_ops.cast(end_learning_rate, dtype)
        if cycle:
            steps = steps * gen_ops.maximum(gen_ops.ceil(step / steps), math_ops.cast(1.0, dtype))
        else:
            step = gen_ops.minimum(step, steps)
        return gen_ops.add((rate - end) * gen_ops.pow(1 - step / steps, math_ops.cast(power, dtype)), end, name=scope)


def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: Optional[str] = None) -> Tensor:
    """Half a cosine from learning_rate to alpha learning_rate."""
    with name_scope(name, "CosineDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        dtype = rate.dtype.base_dtype
        step = gen_ops.minimum(math_ops.cast(global_step, dtype), math_ops.cast(decay_steps, dtype))
        wave = 0.5 * (1.0 + gen_ops.cos(math.pi * (step / math_ops.cast(decay_steps, dtype))))
        return gen_ops.mul(rate, (1 - alpha) * wave + alpha, name=scope)


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: Optional[str] = None) -> Tensor:
    """values[0] up to boundaries[0], then values[1] up to boundaries[1], and so on."""
    if len(boundaries) != len(values) - 1:
        raise at_user_line(ValueError("The length of boundaries should be 1 less than the length of values"))
    with name_scope(name, "PiecewiseConstant", [x] + list(boundaries)) as scope:
        x = convert_to_tensor(x)
        listed = array_ops.stack([convert_to_tensor(v) for v in values])
        passed = math_ops.cast(gen_ops.greater(x, math_ops.cast(array_ops.stack([convert_to_tensor(b) for b in boundaries]), x.dtype.base_dtype)), dtypes.int32)
        return gen_ops.gather(listed, math_ops.reduce_sum(passed), name=scope)
