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


def exponential_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Optional[str] = None) -> Tensor:
    """learning_rate decay_rate^(step / decay_steps)."""
    with name_scope(name, "ExponentialDecay", [learning_rate, global_step]) as scope:
        rate, p = _progress(learning_rate, global_step, decay_steps, staircase)
        return gen_ops.mul(rate, gen_ops.pow(math_ops.cast(decay_rate, rate.dtype.base_dtype), p), name=scope)


def natural_exp_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Optional[str] = None) -> Tensor:
    """learning_rate exp(-decay_rate step / decay_steps)."""
    with name_scope(name, "NaturalExpDecay", [learning_rate, global_step]) as scope:
        rate, p = _progress(learning_rate, global_step, decay_steps, staircase)
        return gen_ops.mul(rate, gen_ops.exp(-math_ops.cast(decay_rate, rate.dtype.base_dtype) * p), name=scope)


def inverse_time_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Optional[str] = None) -> Tensor:
    """learning_rate / (1 + decay_rate step / decay_steps)."""
    with name_scope(name, "InverseTimeDecay", [learning_rate, global_step]) as scope:
        rate, p = _progress(learning_rate, global_step, decay_steps, staircase)
        return gen_ops.real_div(rate, 1 + math_ops.cast(decay_rate, rate.dtype.base_dtype) * p, name=scope)


def polynomial_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001, power: Any = 1.0, cycle: bool = False, name: Optional[str] = None
) -> Tensor:
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
        dtype = x.dtype.base_dtype
        bounds = [convert_to_tensor(bound) for bound in boundaries]
        for own in (bound.dtype.base_dtype for bound in bounds):  # a float cut to an integer would be another bound
            if own != dtype and (own, dtype) != (dtypes.int32, dtypes.int64):
                raise at_user_line(ValueError("Boundaries (%s) must have the same dtype as x (%s)." % (own, dtype)))
        steps = [convert_to_tensor(value) for value in values]
        for own in (step.dtype.base_dtype for step in steps):
            if own != steps[0].dtype.base_dtype:
                raise at_user_line(ValueError("Values must have elements all with the same dtype (%s vs %s)." % (steps[0].dtype.base_dtype, own)))
        listed = array_ops.stack(steps)
        passed = math_ops.cast(gen_ops.greater(x, math_ops.cast(array_ops.stack(bounds), dtype)), dtypes.int32)
        return gen_ops.gather(listed, math_ops.reduce_sum(passed), name=scope)


piecewise_constant_decay = piecewise_constant


def cosine_decay_restarts(
    learning_rate: Any, global_step: Any, first_decay_steps: Any, t_mul: float = 2.0, m_mul: float = 1.0, alpha: float = 0.0, name: Optional[str] = None
) -> Tensor:
    """Half cosines that begin again, each t_mul times as long and m_mul times as high as the one before (Loshchilov and Hutter, SGDR)."""
    with name_scope(name, "SGDRDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base_dtype
        done = math_ops.cast(global_step, dtype) / math_ops.cast(first_decay_steps, dtype)
        times, higher, low = (math_ops.cast(v, dtype) for v in (t_mul, m_mul, alpha))
        restarts = math_ops.cast(gen_ops.floor(done), dtype)
        if t_mul == 1.0:
            done = done - restarts
        else:
            restarts = gen_ops.floor(gen_ops.log(1.0 - done * (1.0 - times)) / gen_ops.log(times))
            done = (done - (1.0 - times**restarts) / (1.0 - times)) / times**restarts
        wave = 0.5 * higher**restarts * (1.0 + gen_ops.cos(math.pi * done))
        return gen_ops.mul(rate, (1 - low) * wave + low, name=scope)


def _linear_cosine(rate: Tensor, global_step: Any, decay_steps: Any, num_periods: float, alpha: float, beta: float, noise: Any, scope: str) -> Tensor:
    dtype = rate.dtype.base_dtype
    steps = math_ops.cast(decay_steps, dtype)
    step = gen_ops.minimum(math_ops.cast(global_step, dtype), steps)
    left = (steps - step) / steps
    if noise is not None:
        left = left + noise(step)
    wave = 0.5 * (1.0 + gen_ops.cos(math.pi * (2.0 * num_periods * (step / steps))))
    return gen_ops.mul(rate, (alpha + left) * wave + beta, name=scope)


def linear_cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, num_periods: float = 0.5, alpha: float = 0.0, beta: float = 0.001, name: Optional[str] = None
) -> Tensor:
    """A line down to zero times a cosine of num_periods periods, between alpha and beta (Bello and others, 2017)."""
    with name_scope(name, "LinearCosineDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        return _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, None, scope)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: float = 1.0,
    variance_decay: float = 0.55,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: Optional[str] = None,
) -> Tensor:
    """linear_cosine_decay whose line has noise of a variance that falls."""
    from millrace.ops import random_ops

    with name_scope(name, "NoisyLinearCosineDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")

        def noise(step: Any) -> Any:
            deviation = gen_ops.sqrt(initial_variance / (1.0 + step) ** variance_decay)
            return deviation * random_ops.random_normal([], dtype=rate.dtype.base_dtype)

        return _linear_cosine(rate, global_step, decay_steps, num_periods, alpha, beta, noise, scope)
