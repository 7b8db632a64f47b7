# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.bayesflow.entropy of 1.0 to 1.3: entropies and ratios of evidence by samples."""

from __future__ import annotations

import math
from typing import Any, Optional

from millrace.contrib.bayesflow import _get_samples
from millrace.contrib.variational import ELBOForms, _first
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import check_ops, gen_ops, math_ops


def elbo_ratio(log_p: Any, q: Any, z: Any = None, n: Any = None, seed: Optional[int] = None, form: Any = None, name: str = "elbo_ratio") -> Any:
    """The mean of log p over samples of q, and the entropy of q."""
    with name_scope(name, values=[n, z]):
        z = _get_samples(q, z, n, seed)
        return entropy_shannon(q, z=z, form=form) + math_ops.reduce_mean(log_p(z), axis=[0])


def entropy_shannon(p: Any, z: Any = None, n: Any = None, seed: Optional[int] = None, form: Any = None, name: str = "entropy_shannon") -> Any:
    """The entropy of p: the known one, or by samples."""
    form = form or ELBOForms.default
    if form not in (ELBOForms.default, ELBOForms.analytic_entropy, ELBOForms.sample):
        raise at_user_line(ValueError("ELBOForm not handled by this function: %s" % form))
    if n is not None and form == ELBOForms.analytic_entropy:
        raise at_user_line(ValueError("If form == ELBOForms.analytic_entropy, n must be None."))
    with name_scope(name, values=[n, z]):
        known = _first(form, ELBOForms.analytic_entropy, p.entropy)
        return -1.0 * math_ops.reduce_mean(p.log_prob(_get_samples(p, z, n, seed)), axis=[0]) if known is None else known


def renyi_ratio(log_p: Any, q: Any, alpha: Any, z: Any = None, n: Any = None, seed: Optional[int] = None, name: str = "renyi_ratio") -> Any:
    """log E_q[(p / q)^(1 - alpha)] / (1 - alpha) by samples of q (Li and Turner 2016)."""
    with name_scope(name, values=[alpha, n, z]):
        z = _get_samples(q, z, n, seed)
        logs = (1.0 - alpha) * (log_p(z) - q.log_prob(z))
        largest = gen_ops.stop_gradient(math_ops.reduce_max(logs, axis=[0]))
        return (gen_ops.log(math_ops.reduce_mean(gen_ops.exp(logs - largest), axis=[0])) + largest) / (1.0 - alpha)


def renyi_alpha(step: Any, decay_time: Any, alpha_min: Any, alpha_max: Any = 0.99999, name: str = "renyi_alpha") -> Any:
    """An alpha that goes from alpha_max to alpha_min within decay_time steps."""
    with name_scope(name, values=[step, decay_time, alpha_min, alpha_max]):
        low = convert_to_tensor(alpha_min, name="alpha_min")
        high = convert_to_tensor(alpha_max, dtype=low.dtype, name="alpha_max")
        time, now = math_ops.cast(decay_time, low.dtype), math_ops.cast(step, low.dtype)
        named = (("step", now), ("decay_time", time), ("alpha_min", low), ("alpha_max", high))
        checks = [check_ops.assert_rank(value, 0, message="%s must be scalar" % what) for what, value in named]
        checks.append(check_ops.assert_non_negative(now, message="step must be non-negative"))
        checks.append(check_ops.assert_positive(time, message="decay_time must be positive"))
        with control_dependencies(checks):
            part = (gen_ops.exp(now / time) - 1.0) / (math.e - 1.0)
            part = gen_ops.minimum(gen_ops.maximum(part, 0.0), 1.0)
            return high * (1.0 - part) + low * part
