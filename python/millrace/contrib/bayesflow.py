# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.bayesflow.monte_carlo: expectations by samples."""

from __future__ import annotations

import types
from typing import Any, Callable, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import gen_ops, math_ops


def expectation(
    f: Callable[[Any], Any],
    samples: Any,
    log_prob: Optional[Callable[[Any], Any]] = None,
    use_reparametrization: bool = True,
    axis: Any = 0,
    keep_dims: bool = False,
    name: Optional[str] = None,
) -> Tensor:
    """The mean of f over samples. Gradients go through the samples, or, without reparametrization, through log_prob: E[f grad(log p) + grad(f)]."""
    if not callable(f):
        raise at_user_line(ValueError("`f` must be a callable function."))
    with name_scope(name, "expectation", [samples]):
        if use_reparametrization:
            return math_ops.reduce_mean(f(samples), axis=axis, keepdims=keep_dims)
        if not callable(log_prob):
            raise at_user_line(ValueError("`log_prob` must be a callable function."))
        fixed = gen_ops.stop_gradient(samples)
        values, chances = f(fixed), log_prob(fixed)
        return math_ops.reduce_mean(values + gen_ops.stop_gradient(values) * (chances - gen_ops.stop_gradient(chances)), axis=axis, keepdims=keep_dims)


def _get_samples(dist: Any, z: Any, n: Any, seed: Optional[int]) -> Any:
    """The samples that are given, or n of the distribution."""
    if (n is None) == (z is None):
        raise at_user_line(ValueError('Must specify exactly one of arguments "n" and "z".  Found: n = %s, z = %s' % (n, z)))
    return convert_to_tensor(z, name="z") if n is None else dist.sample(n, seed=seed)


def expectation_importance_sampler(
    f: Callable[[Any], Any],
    log_p: Callable[[Any], Any],
    sampling_dist_q: Any,
    z: Any = None,
    n: Any = None,
    seed: Optional[int] = None,
    name: str = "expectation_importance_sampler",
) -> Tensor:
    """E_p[f] by samples of q: the mean of f p / q, summed with the largest p / q taken out."""
    with name_scope(name, values=[z, n]):
        z = _get_samples(sampling_dist_q, z, n, seed)
        logs = log_p(z) - sampling_dist_q.log_prob(z)
        largest = gen_ops.stop_gradient(math_ops.reduce_max(logs, axis=[0]))
        return math_ops.reduce_mean(f(z) * gen_ops.exp(logs - largest), axis=[0]) * gen_ops.exp(largest)


def expectation_importance_sampler_logspace(
    log_f: Callable[[Any], Any],
    log_p: Callable[[Any], Any],
    sampling_dist_q: Any,
    z: Any = None,
    n: Any = None,
    seed: Optional[int] = None,
    name: str = "expectation_importance_sampler_logspace",
) -> Tensor:
    """The logarithm of E_p[f], f positive, by samples of q."""
    with name_scope(name, values=[z, n]):
        z = _get_samples(sampling_dist_q, z, n, seed)
        logs = log_f(z) + log_p(z) - sampling_dist_q.log_prob(z)
        largest = gen_ops.stop_gradient(math_ops.reduce_max(logs, axis=[0]))
        return gen_ops.log(math_ops.reduce_mean(gen_ops.exp(logs - largest), axis=[0])) + largest


monte_carlo = types.SimpleNamespace(
    expectation=expectation,
    expectation_importance_sampler=expectation_importance_sampler,
    expectation_importance_sampler_logspace=expectation_importance_sampler_logspace,
)
