# SPDX-License-Identifier: Apache-2.0
"""Learning rates that change with the step: the library's composites under TensorFlow's names."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.random_seed import op_seeds
from millrace.ops import gen_ops


def _decay(composite: Callable[..., Any], scope_name: str, name: Optional[str], learning_rate: Any, global_step: Any, *inputs: Any, **attrs: Any) -> Tensor:
    if global_step is None:
        raise at_user_line(ValueError("global_step is required."))
    with name_scope(name, scope_name, [learning_rate, global_step]) as scope:
        return composite(learning_rate, global_step, *inputs, **attrs, name=scope)


def exponential_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Optional[str] = None) -> Tensor:
    """learning_rate decay_rate^(step / decay_steps)."""
    return _decay(gen_ops.exponential_decay, "ExponentialDecay", name, learning_rate, global_step, decay_steps, decay_rate, staircase=staircase)


def natural_exp_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Optional[str] = None) -> Tensor:
    """learning_rate exp(-decay_rate step / decay_steps)."""
    return _decay(gen_ops.natural_exp_decay, "NaturalExpDecay", name, learning_rate, global_step, decay_steps, decay_rate, staircase=staircase)


def inverse_time_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Optional[str] = None) -> Tensor:
    """learning_rate / (1 + decay_rate step / decay_steps)."""
    return _decay(gen_ops.inverse_time_decay, "InverseTimeDecay", name, learning_rate, global_step, decay_steps, decay_rate, staircase=staircase)


def polynomial_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001, power: Any = 1.0, cycle: bool = False, name: Optional[str] = None
) -> Tensor:
    """From learning_rate to end_learning_rate in decay_steps."""
    return _decay(gen_ops.polynomial_decay, "PolynomialDecay", name, learning_rate, global_step, decay_steps, end_learning_rate, power, cycle=cycle)


def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0, name: Optional[str] = None) -> Tensor:
    """Half a cosine from learning_rate to alpha learning_rate."""
    return _decay(gen_ops.cosine_decay, "CosineDecay", name, learning_rate, global_step, decay_steps, alpha)


def cosine_decay_restarts(
    learning_rate: Any, global_step: Any, first_decay_steps: Any, t_mul: Any = 2.0, m_mul: Any = 1.0, alpha: Any = 0.0, name: Optional[str] = None
) -> Tensor:
    """Half cosines that begin again, each t_mul times as long and m_mul times as high as the one before (Loshchilov and Hutter, SGDR)."""
    equal = not isinstance(t_mul, Tensor) and float(t_mul) == 1.0
    return _decay(gen_ops.cosine_decay_restarts, "SGDRDecay", name, learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha, equal_periods=equal)


def linear_cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, num_periods: Any = 0.5, alpha: Any = 0.0, beta: Any = 0.001, name: Optional[str] = None
) -> Tensor:
    """A line down to zero times a cosine of num_periods periods, between alpha and beta (Bello and others, 2017)."""
    return _decay(gen_ops.linear_cosine_decay, "LinearCosineDecay", name, learning_rate, global_step, decay_steps, num_periods, alpha, beta)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: Optional[str] = None,
) -> Tensor:
    """linear_cosine_decay whose line has noise of a variance that falls."""
    seed, seed2 = op_seeds(None)
    noise = (initial_variance, variance_decay)
    return _decay(
        gen_ops.noisy_linear_cosine_decay,
        "NoisyLinearCosineDecay",
        name,
        learning_rate,
        global_step,
        decay_steps,
        *noise,
        num_periods,
        alpha,
        beta,
        seed=seed,
        seed2=seed2,
    )


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: Optional[str] = None) -> Tensor:
    """values[0] up to boundaries[0], then values[1] up to boundaries[1], and so on."""
    if len(boundaries) != len(values) - 1:
        raise at_user_line(ValueError("The length of boundaries should be 1 less than the length of values"))
    with name_scope(name, "PiecewiseConstant", [x] + list(boundaries)) as scope:
        x = convert_to_tensor(x, name="x")
        dtype = x.dtype.base_dtype
        bounds = [convert_to_tensor(bound, name="boundaries_%d" % i) for i, bound in enumerate(boundaries)]
        for own in (bound.dtype.base_dtype for bound in bounds):  # a float cut to an integer would be another bound
            if own != dtype and (own, dtype) != (dtypes.int32, dtypes.int64):
                raise at_user_line(ValueError("Boundaries (%s) must have the same dtype as x (%s)." % (own, dtype)))
        steps = [convert_to_tensor(value, name="values_%d" % i) for i, value in enumerate(values)]
        for own in (step.dtype.base_dtype for step in steps):
            if own != steps[0].dtype.base_dtype:
                raise at_user_line(ValueError("Values must have elements all with the same dtype (%s vs %s)." % (steps[0].dtype.base_dtype, own)))
        return gen_ops.piecewise_constant(x, bounds, steps, name=scope)


piecewise_constant_decay = piecewise_constant
