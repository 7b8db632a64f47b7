# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.Experiment: an estimator with its inputs, in one process."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional

from millrace.framework.errors import at_user_line


class Experiment:
    """An estimator, what it is trained on and what it is judged by."""

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Any = None,
        train_steps: Optional[int] = None,
        eval_steps: Optional[int] = 100,
        train_monitors: Any = None,
        eval_hooks: Any = None,
        local_eval_frequency: Any = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: Optional[int] = None,
        **unused: Any,
    ) -> None:
        del eval_delay_secs  # evaluation follows training at once
        del continuous_eval_throttle_secs  # evaluation follows training at once
        if eval_metrics is not None and not hasattr(estimator, "fit"):
            raise at_user_line(ValueError("`eval_metrics` must be `None` with `tf.estimator.Estimator`"))
        self._estimator, self._train_input, self._eval_input, self._metrics = estimator, train_input_fn, eval_input_fn, eval_metrics
        self._train_steps, self._eval_steps, self._eval_hooks = train_steps, eval_steps, list(eval_hooks or [])
        self._monitors, self._every = list(train_monitors or []), min_eval_frequency or local_eval_frequency

    estimator = property(lambda self: self._estimator, doc="The estimator.")
    train_steps = property(lambda self: self._train_steps, doc="The step at which training ends, or None.")
    eval_steps = property(lambda self: self._eval_steps, doc="How many batches an evaluation takes.")

    def train(self, delay_secs: Any = None) -> Any:
        """Trains up to train_steps, delay_secs from now on."""
        time.sleep(delay_secs or 0)
        return self._train(self._train_steps)

    def _train(self, max_steps: Optional[int]) -> Any:
        if hasattr(self._estimator, "fit"):
            return self._estimator.fit(input_fn=self._train_input, max_steps=max_steps, monitors=self._monitors)
        return self._estimator.train(self._train_input, hooks=self._monitors, max_steps=max_steps)

    def evaluate(self, delay_secs: Any = None, name: Optional[str] = None) -> Any:
        """The metrics, delay_secs from now on."""
        time.sleep(delay_secs or 0)
        if hasattr(self._estimator, "fit"):
            return self._estimator.evaluate(input_fn=self._eval_input, steps=self._eval_steps, metrics=self._metrics, name=name, hooks=self._eval_hooks)
        return self._estimator.evaluate(self._eval_input, steps=self._eval_steps, hooks=self._eval_hooks, name=name)

    def train_and_evaluate(self) -> Any:
        """Trains, with an evaluation every min_eval_frequency steps where that is given; (the metrics at the end, nothing exported)."""
        results, step = None, 0
        if self._every and self._train_steps:
            while step < self._train_steps:
                self._train(min(step + self._every, self._train_steps))
                results = self.evaluate()
                before, step = step, int(results["global_step"])
                if step == before:
                    break
        else:
            self.train()
            results = self.evaluate()
        return results, []

    local_run = train_and_evaluate

    def test(self) -> Any:
        """One step of training and one evaluation."""
        self._train(1)
        return self.evaluate(), []
