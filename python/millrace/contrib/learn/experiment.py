# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.Experiment: an estimator with its inputs, in one process."""

from __future__ import annotations

import inspect
import os
import time
from typing import Any, Callable, Optional, Sequence

from millrace import tf_logging
from millrace.contrib.learn.export_strategy import ExportStrategy
from millrace.contrib.learn.monitors import replace_monitors_with_hooks
from millrace.contrib.learn.monitors_of_models import ValidationMonitor
from millrace.contrib.learn.run_config import Environment
from millrace.framework.errors import at_user_line
from millrace.train import server as _servers
from millrace.train.checkpoint_management import latest_checkpoint


def _sleep(seconds: Any) -> None:
    if seconds and seconds > 0:
        time.sleep(seconds)


def _takes_path(predicate: Callable[..., bool]) -> bool:
    """Whether a predicate takes the path of the checkpoint beside the results."""
    try:
        return len(inspect.signature(predicate).parameters) > 1
    except ValueError:
        return False


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
        delay_workers_by_global_step: bool = False,
        export_strategies: Any = None,
        train_steps_per_iteration: Optional[int] = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Any = None,
    ) -> None:
        refused = {"delay_workers_by_global_step": delay_workers_by_global_step, "checkpoint_and_export": checkpoint_and_export}
        for name, value in refused.items():
            if value:
                raise at_user_line(NotImplementedError("%s of Experiment is not provided: tf.estimator.train_and_evaluate" % name))
        for name, count in (("train_steps_per_iteration", train_steps_per_iteration), ("min_eval_frequency", min_eval_frequency)):
            if count is not None and (int(count) != count or count < 0):
                raise at_user_line(ValueError("`%s` must be an integer, 0 or more, got %s" % (name, count)))
        self._eval_delay_secs, self._continuous_eval_throttle_secs = eval_delay_secs, continuous_eval_throttle_secs or 0
        self._train_steps_per_iteration = int(train_steps_per_iteration) if train_steps_per_iteration else None
        if eval_metrics is not None and not hasattr(estimator, "fit"):
            raise at_user_line(ValueError("`eval_metrics` must be `None` with `tf.estimator.Estimator`"))
        self._set_export_strategies(export_strategies)
        if saving_listeners is not None and hasattr(estimator, "fit"):
            raise at_user_line(ValueError("`saving_listeners` must be `None` with `tf.contrib.learn.Estimator`."))
        self._saving_listeners = saving_listeners
        self._estimator, self._train_input_fn, self._eval_input_fn, self._eval_metrics = estimator, train_input_fn, eval_input_fn, eval_metrics
        self._train_steps, self._eval_steps, self._eval_hooks = train_steps, eval_steps, list(eval_hooks or [])
        self._train_monitors = list(train_monitors or [])
        self._min_eval_frequency, self._local_eval_frequency = 1 if min_eval_frequency is None else int(min_eval_frequency), local_eval_frequency

    estimator = property(lambda self: self._estimator, doc="The estimator.")
    train_steps = property(lambda self: self._train_steps, doc="The step at which training ends, or None.")
    eval_steps = property(lambda self: self._eval_steps, doc="How many batches an evaluation takes.")

    def _set_export_strategies(self, given: Any) -> None:
        made = [given] if isinstance(given, ExportStrategy) else list(given or [])
        if not all(isinstance(each, ExportStrategy) for each in made):
            raise at_user_line(ValueError("`export_strategies` must be an ExportStrategy, an iterable of ExportStrategy, or `None`, found %s." % (given,)))
        self._export_strategies = made

    def reset_export_strategies(self, new_export_strategies: Any = None) -> Any:
        """Exports by others from now on; the ones before."""
        before = self._export_strategies
        self._set_export_strategies(new_export_strategies)
        return before

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Trains with more hooks."""
        self._train_monitors.extend(additional_hooks)

    def _maybe_export(self, results: Any, checkpoint_path: Optional[str] = None) -> Any:
        """What the export strategies have made of a checkpoint, the newest unless it is given."""
        base = os.path.join(self._estimator.model_dir, "export") if self._export_strategies else ""
        return [each.export(self._estimator, os.path.join(base, each.name), checkpoint_path, results) for each in self._export_strategies]

    def train(self, delay_secs: Any = None) -> Any:
        """Trains up to train_steps, delay_secs from now on: without them a worker of a cluster begins 5 seconds after the one before it, 60 at most."""
        if delay_secs is None:
            delay_secs = min(60, 5 * (getattr(getattr(self._estimator, "config", None), "task_id", 0) or 0))
        begun = time.time()
        config = getattr(self._estimator, "config", None)
        if config is not None and config.cluster_spec and config.master and getattr(config, "environment", None) == Environment.CLOUD:
            self._start_server()
        _sleep(delay_secs - (time.time() - begun))
        return self._train(max_steps=self._train_steps)

    def _start_server(self) -> Any:
        config = self._estimator.config
        if not config.cluster_spec or not config.task_type or config.master is None:
            raise at_user_line(ValueError("Could not start server; be sure to specify cluster_spec, task_type and master, or set TF_CONFIG."))
        server = _servers.Server(config.cluster_spec, job_name=config.task_type, task_index=config.task_id, config=config.tf_config, start=False)
        server.start()
        return server

    def run_std_server(self) -> None:
        """Serves the cluster, and does not end."""
        self._start_server().join()

    def _train(self, steps: Optional[int] = None, max_steps: Optional[int] = None, monitors: Sequence[Any] = ()) -> Any:
        hooks = replace_monitors_with_hooks([*self._train_monitors, *monitors], self._estimator)
        if hasattr(self._estimator, "fit"):
            return self._estimator.fit(input_fn=self._train_input_fn, steps=steps, max_steps=max_steps, monitors=hooks)
        listeners = self._saving_listeners
        return self._estimator.train(input_fn=self._train_input_fn, steps=steps, max_steps=max_steps, hooks=hooks, saving_listeners=listeners)

    def evaluate(self, delay_secs: Any = None, name: Optional[str] = None) -> Any:
        """The metrics, delay_secs (without them eval_delay_secs) from now on."""
        _sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        return self._evaluate(self._eval_input_fn, name)

    def _evaluate(self, input_fn: Any, name: Optional[str] = None, checkpoint_path: Optional[str] = None, steps: Optional[int] = None) -> Any:
        more = {"metrics": self._eval_metrics} if hasattr(self._estimator, "fit") else {}
        steps = self._eval_steps if steps is None else steps
        return self._estimator.evaluate(input_fn=input_fn, steps=steps, hooks=self._eval_hooks, name=name, checkpoint_path=checkpoint_path, **more)

    def continuous_eval(
        self,
        delay_secs: Any = None,
        throttle_delay_secs: Any = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Optional[Callable[..., bool]] = None,
        name: str = "continuous",
    ) -> Any:
        """Evaluates each new checkpoint until train_steps are done, or the predicate of (results, path) says no; the last results."""
        return self._continuous_eval(self._eval_input_fn, delay_secs, throttle_delay_secs, evaluate_checkpoint_only_once, continuous_eval_predicate_fn, name)

    def continuous_eval_on_train_data(
        self,
        delay_secs: Any = None,
        throttle_delay_secs: Any = None,
        continuous_eval_predicate_fn: Optional[Callable[..., bool]] = None,
        name: str = "continuous_on_train_data",
    ) -> Any:
        """continuous_eval on what it is trained on."""
        return self._continuous_eval(self._train_input_fn, delay_secs, throttle_delay_secs, True, continuous_eval_predicate_fn, name)

    def _continuous_eval(self, input_fn: Any, delay_secs: Any, throttle_secs: Any, only_once: bool, predicate: Optional[Callable[..., bool]], name: str) -> Any:
        if predicate is not None and not callable(predicate):
            raise at_user_line(ValueError("`continuous_eval_predicate_fn` must be a callable, or None."))
        throttle = self._continuous_eval_throttle_secs if throttle_secs is None else throttle_secs
        _sleep(self._eval_delay_secs if delay_secs is None else delay_secs)
        results, evaluated = None, None
        while predicate is None or predicate(*((results, evaluated if results is not None else None) if _takes_path(predicate) else (results,))):
            if self._has_training_stopped(results):
                break
            begun, newest = time.time(), latest_checkpoint(self._estimator.model_dir)
            if newest is None:
                tf_logging.log_every_n(tf_logging.WARN, "%s is not trained yet: evaluation waits for a checkpoint.", 10, self._estimator)
            if newest is None or newest == evaluated and only_once:
                results = None  # nothing is new
            else:
                results, evaluated = self._evaluate(input_fn, name, newest), newest
                self._maybe_export(results, newest)
            _sleep(throttle - (time.time() - begun))
        return results

    def continuous_train_and_eval(self, continuous_eval_predicate_fn: Optional[Callable[..., bool]] = None) -> Any:
        """Trains train_steps_per_iteration steps (without them a tenth of train_steps, or 1000) and evaluates, until train_steps are done or the predicate
        of the results says no; (the last results, what was exported)."""
        if continuous_eval_predicate_fn is not None and not callable(continuous_eval_predicate_fn):
            raise at_user_line(ValueError("`continuous_eval_predicate_fn` must be a callable, or None."))
        each = self._train_steps_per_iteration if self._train_steps_per_iteration else max(1, self._train_steps // 10) if self._train_steps else 1000
        results, exported, newest = None, None, None
        while continuous_eval_predicate_fn is None or continuous_eval_predicate_fn(
            *((results, newest if results else None) if _takes_path(continuous_eval_predicate_fn) else (results,))
        ):
            if self._has_training_stopped(results):
                break
            self._train(steps=each)
            newest = latest_checkpoint(self._estimator.model_dir)
            results = self._evaluate(self._eval_input_fn, "one_pass", newest)
            exported = self._maybe_export(results)
        return results, exported

    def _has_training_stopped(self, results: Any) -> bool:
        """Whether an evaluation tells of the last step."""
        return bool(results and self._train_steps and results.get("global_step", 0) >= self._train_steps)

    def train_and_evaluate(self) -> Any:
        """Trains, with an evaluation of each new checkpoint, min_eval_frequency steps apart at least (1 by default; 0: of none); (the metrics at the end,
        what was exported)."""
        return self._train_and_evaluate(self._min_eval_frequency)

    def _train_and_evaluate(self, every: Optional[int]) -> Any:
        watching = []
        if every:
            watching.append(
                ValidationMonitor(
                    input_fn=self._eval_input_fn,
                    eval_steps=self._eval_steps,
                    every_n_steps=every,
                    metrics=self._eval_metrics,
                    hooks=self._eval_hooks,
                    check_interval_secs=5,
                )
            )
        self._train(max_steps=self._train_steps, monitors=watching)
        results = self._evaluate(self._eval_input_fn)
        return results, self._maybe_export(results)

    def local_run(self) -> Any:
        """train_and_evaluate, with evaluations local_eval_frequency steps apart."""
        return self._train_and_evaluate(self._local_eval_frequency)

    def test(self) -> Any:
        """One step of training and one of evaluation; the metrics."""
        self._train(steps=1)
        results = self._evaluate(self._eval_input_fn, "one_pass", steps=1)
        self._maybe_export(results)
        return results
