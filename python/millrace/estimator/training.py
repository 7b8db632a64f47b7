# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation in turns."""
from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple, Optional, Tuple

from millrace.train.hooks import SessionRunHook


class TrainSpec(NamedTuple):
    """How to train."""

    input_fn: Callable[..., Any]
    max_steps: Optional[int] = None
    hooks: Any = ()


class EvalSpec(NamedTuple):
    """How to evaluate."""

    input_fn: Callable[..., Any]
    steps: Optional[int] = 100
    name: Optional[str] = None
    hooks: Any = ()
    exporters: Any = None
    start_delay_secs: int = 120
    throttle_secs: int = 600


class _StopAfter(SessionRunHook):
    def __init__(self, seconds: float) -> None:
        self._end, self.stopped = time.monotonic() + seconds, False

    def after_run(self, run_context: Any, run_values: Any) -> None:
        if time.monotonic() > self._end:
            self.stopped = True
            run_context.request_stop()


def train_and_evaluate(estimator: Any, train_spec: TrainSpec, eval_spec: EvalSpec) -> Tuple[Any, Any]:
    """Trains for throttle_secs, evaluates, and so on until the last step or the end of the input; the last metrics."""
    while True:
        pause = _StopAfter(eval_spec.throttle_secs)
        estimator.train(train_spec.input_fn, hooks=[*(train_spec.hooks or ()), pause], max_steps=train_spec.max_steps)
        metrics = estimator.evaluate(eval_spec.input_fn, steps=eval_spec.steps, hooks=eval_spec.hooks, name=eval_spec.name)
        if not pause.stopped or train_spec.max_steps is not None and metrics["global_step"] >= train_spec.max_steps:
            return metrics, []
