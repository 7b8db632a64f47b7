# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training.sgdr_decay: a learning rate that starts again."""

from __future__ import annotations

import math
from typing import Any, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import control_flow_ops, gen_ops, math_ops


def sgdr_decay(learning_rate: Any, global_step: Any, initial_period_steps: Any, t_mul: Any = 2.0, m_mul: Any = 1.0, name: Optional[str] = None) -> Tensor:
    """A half cosine from learning_rate to 0 in initial_period_steps, and again; each period is t_mul times as long as the one before, and starts
    at m_mul times its rate (Loshchilov and Hutter, 2016)."""
    if global_step is None:
        raise at_user_line(ValueError("global_step is required for sgdr_decay."))
    with name_scope(name, "SGDRDecay", [learning_rate, global_step, initial_period_steps, t_mul, m_mul]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        step, first, longer, less = (math_ops.cast(value, rate.dtype) for value in (global_step, initial_period_steps, t_mul, m_mul))
        done = step / first

        def growing() -> Any:
            """(the number of the period, how much of it is done): n periods take (1 - t_mul^n) / (1 - t_mul) of the first."""
            period = gen_ops.floor(gen_ops.log(1.0 - done * (1.0 - longer)) / gen_ops.log(longer))
            before = (1.0 - longer**period) / (1.0 - longer)
            return period, (done - before) / longer**period

        def alike() -> Any:
            return gen_ops.floor(done), done - gen_ops.floor(done)

        period, part = control_flow_ops.cond(gen_ops.equal(longer, 1.0), alike, growing)
        return gen_ops.mul(0.5 * rate * less**period, gen_ops.cos(part * math.pi) + 1.0, name=scope)
