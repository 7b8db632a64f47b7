# SPDX-License-Identifier: Apache-2.0
"""tf.estimator.experimental: training that stops when measures say so, evaluation while it goes on, and the logits of estimators that are made already."""

from __future__ import annotations

import collections
import os
import shutil
import tempfile
import time
from typing import Any, Callable, Dict, Optional, Sequence

from millrace import gfile, names, tf_logging
from millrace.estimator.canned import _dnn_logit_fn_builder, _linear_logit_fn_builder
from millrace.estimator.estimator import Estimator
from millrace.estimator.export import build_raw_supervised_input_receiver_fn  # noqa: F401
from millrace.estimator.linear_sdca import LinearSDCA  # noqa: F401
from millrace.estimator.util import fn_args
from millrace.framework import dtypes, not_provided
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_collection
from millrace.ops import init_ops, nn_ops
from millrace.ops.variable_scope import AUTO_REUSE, get_variable, variable_scope
from millrace.train.checkpoint_management import latest_checkpoint
from millrace.train.global_step import get_global_step
from millrace.train.hooks import SecondOrStepTimer, SessionRunArgs, SessionRunHook
from millrace.train.saver import NewCheckpointReader, Saver


# ---- stopping ----


def read_eval_metrics(eval_dir: str) -> Dict[int, Dict[str, float]]:
    """{step: {name: value}} of the summaries of evaluations in a folder, by steps."""
    from millrace.summary import summary_iterator

    found: Dict[int, Dict[str, float]] = {}
    for path in sorted(gfile.Glob(os.path.join(eval_dir, "*.tfevents.*"))):
        for event in summary_iterator(path):
            values = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")} if event.HasField("summary") else {}
            if values:
                found[event.step] = values
    return collections.OrderedDict(sorted(found.items()))


class _StopOnPredicateHook(SessionRunHook):
    """The chief's: asks now and then whether to stop, and tells the workers by a variable."""

    def __init__(self, should_stop_fn: Callable[[], bool], run_every_secs: Any = 60, run_every_steps: Any = None) -> None:
        if not callable(should_stop_fn):
            raise at_user_line(TypeError("`should_stop_fn` must be callable."))
        self._should_stop, self._timer, self._stop_var = should_stop_fn, SecondOrStepTimer(run_every_secs, run_every_steps), None  # type: Any, Any, Any

    def begin(self) -> None:
        """Makes the variable."""
        self._step, self._stop_var = get_global_step(), _get_or_create_stop_var()
        self._stop = self._stop_var.assign(True)

    def before_run(self, run_context: Any) -> Any:
        """Asks for the step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Asks when it is time."""
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop():
                tf_logging.info("Requesting early stopping at global step %d", step)
                run_context.session.run(self._stop)
                run_context.request_stop()


class _CheckForStoppingHook(SessionRunHook):
    """A worker's: stops when the chief has said so."""

    def begin(self) -> None:
        """Finds the variable."""
        self._stop_var = _get_or_create_stop_var()

    def before_run(self, run_context: Any) -> Any:
        """Asks for it."""
        return SessionRunArgs(self._stop_var)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops."""
        if run_values.results:
            tf_logging.info("Early stopping requested, suspending run.")
            run_context.request_stop()


def _get_or_create_stop_var() -> Any:
    with variable_scope("signal_early_stopping", reuse=AUTO_REUSE):
        return get_variable(
            "STOP", shape=[], dtype=dtypes.bool, initializer=init_ops.constant_initializer(False), trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES]
        )


def make_early_stopping_hook(
    estimator: Any, should_stop_fn: Callable[[], bool], run_every_secs: Optional[float] = 60, run_every_steps: Optional[int] = None
) -> SessionRunHook:
    """A hook that stops training when should_stop_fn(), asked every so many seconds or steps, says so."""
    if not isinstance(estimator, Estimator):
        raise at_user_line(TypeError("`estimator` must have type `tf.estimator.Estimator`. Got: %s" % type(estimator)))
    if (run_every_secs is None) == (run_every_steps is None):
        raise at_user_line(ValueError("Only one of `run_every_secs` and `run_every_steps` must be set."))
    return _StopOnPredicateHook(should_stop_fn, run_every_secs, run_every_steps) if estimator.config.is_chief else _CheckForStoppingHook()


def _hook_of(
    estimator: Any, judge: Callable[[Dict[int, Dict[str, float]]], bool], eval_dir: Optional[str], run_every_secs: Any, run_every_steps: Any
) -> SessionRunHook:
    folder = eval_dir or estimator.eval_dir()
    return make_early_stopping_hook(estimator, lambda: judge(read_eval_metrics(folder)), run_every_secs, run_every_steps)


def _beyond(higher: bool) -> Callable[..., SessionRunHook]:
    def hook(
        estimator: Any,
        metric_name: str,
        threshold: float,
        eval_dir: Optional[str] = None,
        min_steps: int = 0,
        run_every_secs: Optional[float] = 60,
        run_every_steps: Optional[int] = None,
    ) -> SessionRunHook:
        def judge(found: Dict[int, Dict[str, float]]) -> bool:
            later = [m[metric_name] for step, m in found.items() if step >= min_steps and metric_name in m]
            return any(value > threshold if higher else value < threshold for value in later)

        return _hook_of(estimator, judge, eval_dir, run_every_secs, run_every_steps)

    hook.__name__ = "stop_if_%s_hook" % ("higher" if higher else "lower")
    hook.__doc__ = "A hook that stops training when a measure of evaluations is %s than a threshold, from min_steps on." % ("higher" if higher else "lower")
    return hook


def _without(increase: bool) -> Callable[..., SessionRunHook]:
    def hook(
        estimator: Any,
        metric_name: str,
        max_steps: int,
        eval_dir: Optional[str] = None,
        min_steps: int = 0,
        run_every_secs: Optional[float] = 60,
        run_every_steps: Optional[int] = None,
    ) -> SessionRunHook:
        def judge(found: Dict[int, Dict[str, float]]) -> bool:
            best, at = None, 0
            for step, measures in found.items():
                if step < min_steps or metric_name not in measures:
                    continue
                value = measures[metric_name]
                if best is None or (value > best if increase else value < best):
                    best, at = value, step
                if step - at >= max_steps:
                    return True
            return False

        return _hook_of(estimator, judge, eval_dir, run_every_secs, run_every_steps)

    return hook


stop_if_higher_hook, stop_if_lower_hook = _beyond(True), _beyond(False)


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> SessionRunHook:
    """A hook that stops training when a measure of evaluations has not grown for so many steps."""
    return _without(True)(estimator, metric_name, max_steps_without_increase, eval_dir, min_steps, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: Optional[str] = None,
    min_steps: int = 0,
    run_every_secs: Optional[float] = 60,
    run_every_steps: Optional[int] = None,
) -> SessionRunHook:
    """A hook that stops training when a measure of evaluations has not shrunk for so many steps."""
    return _without(False)(estimator, metric_name, max_steps_without_decrease, eval_dir, min_steps, run_every_secs, run_every_steps)


class _StopAtCheckpointStepHook(SessionRunHook):
    """Stops a worker when a checkpoint of the last step is there."""

    def __init__(self, model_dir: str, last_step: int, wait_after_file_check_secs: float = 30) -> None:
        if last_step is None:
            raise at_user_line(ValueError("last_step must be specified."))
        self._model_dir, self._last_step, self._wait = model_dir, last_step, wait_after_file_check_secs

    def begin(self) -> None:
        """Finds the global step."""
        self._step = get_global_step()

    def before_run(self, run_context: Any) -> Any:
        """Asks for the step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Waits for the checkpoint once the step is reached."""
        if run_values.results + 1 < self._last_step or run_context.session.run(self._step) < self._last_step:
            return
        path = latest_checkpoint(self._model_dir)
        if path is not None and NewCheckpointReader(path).get_tensor(GraphKeys.GLOBAL_STEP) >= self._last_step:
            run_context.request_stop()
        else:
            time.sleep(self._wait)


def make_stop_at_checkpoint_step_hook(estimator: Any, last_step: int, wait_after_file_check_secs: float = 30) -> SessionRunHook:
    """A hook that stops training when the checkpoint of a step is written; the chief's stops at the step."""
    from millrace.train.hooks import StopAtStepHook

    if estimator.config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return _StopAtCheckpointStepHook(estimator.model_dir, last_step, wait_after_file_check_secs)


# ---- evaluation on the way ----


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates an estimator while it trains in this process: at the beginning, every so many steps, and at the end."""

    def __init__(
        self, estimator: Any, input_fn: Callable[..., Any], steps: Optional[int] = None, hooks: Any = None, name: Optional[str] = None, every_n_iter: int = 100
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:
            raise at_user_line(ValueError("invalid every_n_iter=%s." % every_n_iter))
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise at_user_line(ValueError("InMemoryEvaluator supports only single machine (aka Local) setting."))
        self._estimator, self._input_fn, self._steps, self._hooks, self._name = estimator, input_fn, steps, hooks, name
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)
        self._seen = 0

    def begin(self) -> None:
        """Starts to count."""
        self._seen, self._step = 0, get_global_step()
        self._timer.reset()
        self._saver = Saver(get_collection(GraphKeys.GLOBAL_VARIABLES) + get_collection(GraphKeys.SAVEABLE_OBJECTS), save_relative_paths=True)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Evaluates the first values."""
        self._evaluate(session)

    def _evaluate(self, session: Any) -> None:
        folder = tempfile.mkdtemp()
        try:
            path = self._saver.save(session, os.path.join(folder, "model"), global_step=self._step, write_meta_graph=False)
            self._estimator.evaluate(self._input_fn, self._steps, self._hooks, path, self._name)
        finally:
            shutil.rmtree(folder)
        self._timer.update_last_triggered_step(self._seen)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Evaluates when it is time."""
        self._seen += 1
        if self._timer.should_trigger_for_step(self._seen):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        """Evaluates the last values."""
        self._evaluate(session)


# ---- parts of models ----


def call_logit_fn(logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any) -> Any:
    """What a function of features and those of mode, params and config that it takes gives: logits, or a dict of them."""
    given = {"mode": mode, "params": params, "config": config}
    made = logit_fn(features=features, **{name: value for name, value in given.items() if name in fn_args(logit_fn)})
    if not isinstance(made, Tensor) and not (isinstance(made, dict) and all(isinstance(value, Tensor) for value in made.values())):
        raise at_user_line(ValueError("logit_fn should return a Tensor or a dictionary mapping strings to Tensors, got %r" % (made,)))
    return made


def dnn_logit_fn_builder(
    units: Any,
    hidden_units: Sequence[int],
    feature_columns: Any,
    activation_fn: Any = nn_ops.relu,
    dropout: Optional[float] = None,
    input_layer_partitioner: Any = None,
    batch_norm: bool = False,
) -> Callable[..., Any]:
    """A function (features, mode) that gives a deep model's logits."""
    return _dnn_logit_fn_builder(units, hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm)


def linear_logit_fn_builder(units: int, feature_columns: Any, sparse_combiner: str = "sum") -> Callable[..., Any]:
    """A function of features that gives a linear model's logits."""
    return _linear_logit_fn_builder(units, feature_columns, sparse_combiner)


def _of_contrib(name: str) -> Any:
    if name == "KMeans":
        return names.find("contrib.factorization").SeededKMeans
    raise AttributeError(name)


__getattr__ = not_provided.getter("estimator.experimental", _of_contrib)
