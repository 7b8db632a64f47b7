# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation in turns."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from millrace import tf_logging
from millrace.compat import as_str_any
from millrace.estimator.estimator import Estimator
from millrace.estimator.exporter import Exporter
from millrace.estimator.run_config import TaskType
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys
from millrace.protos import definitions
from millrace.train import hooks as _hooks
from millrace.train.hooks import CheckpointSaverListener, SessionRunHook

_MAX_DELAY_SECS, _DELAY_SECS_PER_WORKER = 60, 5  # workers begin one after another
_SECONDS_BETWEEN_WARNINGS = 600
_TRAINERS = (TaskType.MASTER, TaskType.CHIEF, TaskType.WORKER)


def _check_input(input_fn: Any) -> None:
    if not callable(input_fn):
        raise at_user_line(TypeError("`input_fn` must be callable, given: %s" % (input_fn,)))


def _check_steps(name: str, steps: Optional[int]) -> None:
    if steps is not None and steps <= 0:
        raise at_user_line(ValueError("Must specify %s > 0, given: %s" % (name, steps)))


def _checked_hooks(hooks: Any) -> Tuple[SessionRunHook, ...]:
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise at_user_line(TypeError("All hooks must be `SessionRunHook` instances, given: %s" % (hook,)))
    return tuple(hooks or ())


def _checked_exporters(exporters: Any) -> Tuple[Exporter, ...]:
    if not exporters:
        return ()
    listed = [exporters] if isinstance(exporters, Exporter) else exporters
    if not hasattr(listed, "__iter__") or not all(isinstance(e, Exporter) for e in listed):
        raise at_user_line(TypeError("`exporters` must be an Exporter, an iterable of Exporter, or `None`, found %s." % (exporters,)))
    names = [e.name for e in listed]
    for name in names:
        if not name:
            raise at_user_line(ValueError("An Exporter cannot have a name that is `None` or empty. All exporter names: %s" % names))
        if not isinstance(name, str):
            raise at_user_line(ValueError("An Exporter must have a string name. Given: %s" % type(name)))
    if len(set(names)) != len(names):
        raise at_user_line(ValueError("`exporters` must have unique names. Such a name cannot be `None`. All exporter names: %s" % names))
    return tuple(listed)


class _TrainFields(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: Optional[int]
    hooks: Any


class TrainSpec(_TrainFields):
    """How to train."""

    def __new__(cls, input_fn: Any, max_steps: Optional[int] = None, hooks: Any = None) -> "TrainSpec":
        _check_input(input_fn)
        _check_steps("max_steps", max_steps)
        return super().__new__(cls, input_fn, max_steps, _checked_hooks(hooks))


class _EvalFields(NamedTuple):
    input_fn: Callable[..., Any]
    steps: Optional[int]
    name: Optional[str]
    hooks: Any
    exporters: Any
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalFields):
    """How to evaluate, and what to export then."""

    def __new__(
        cls,
        input_fn: Any,
        steps: Optional[int] = 100,
        name: Optional[str] = None,
        hooks: Any = None,
        exporters: Any = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> "EvalSpec":
        _check_input(input_fn)
        _check_steps("steps", steps)
        if name is not None and not isinstance(name, str):
            raise at_user_line(TypeError("`name` must be string, given: %s" % (name,)))
        hooks, exporters = _checked_hooks(hooks), _checked_exporters(exporters)
        for what, seconds in (("start_delay_secs", start_delay_secs), ("throttle_secs", throttle_secs)):
            if seconds < 0:
                raise at_user_line(ValueError("Must specify %s >= 0, given: %s" % (what, seconds)))
        return super().__new__(cls, input_fn, steps, name, hooks, exporters, start_delay_secs, throttle_secs)


class _StopAtSecsHook(SessionRunHook):
    """Stops after so many seconds."""

    def __init__(self, stop_after_secs: float) -> None:
        self._stop_after_secs, self._start = stop_after_secs, 0.0

    def begin(self) -> None:
        """Notes the time."""
        self._start = time.time()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops when it is time."""
        if time.time() - self._start >= self._stop_after_secs:
            run_context.request_stop()


# ---- evaluations ----


class _EvalStatus:
    """What became of an evaluation."""

    EVALUATED, MISSING_CHECKPOINT, NO_NEW_CHECKPOINT = "evaluated", "missing checkpoint", "no new checkpoint"


class _EvalFound(NamedTuple):
    status: str
    metrics: Optional[Dict[str, Any]]
    checkpoint_path: Optional[str]


class _EvalResult(_EvalFound):
    """The metrics of a checkpoint, or why there are none."""

    def __new__(cls, status: str, metrics: Any = None, checkpoint_path: Optional[str] = None) -> "_EvalResult":
        if status != _EvalStatus.EVALUATED:
            if metrics or checkpoint_path:
                raise at_user_line(ValueError("metrics and checkpoint_path must be `None` if status is not %s" % _EvalStatus.EVALUATED))
            return super().__new__(cls, status, None, None)
        if not metrics:
            raise at_user_line(ValueError("Internal error: `Estimator.evaluate` should never return empty metrics."))
        if not isinstance(metrics, dict):
            raise at_user_line(TypeError("`Estimator.evaluate` should return dict. Given %s." % type(metrics)))
        if GraphKeys.GLOBAL_STEP not in metrics:
            raise at_user_line(ValueError("Internal error: `Estimator.evaluate` result should have `global_step` in result. Given %s" % metrics))
        if not checkpoint_path:
            raise at_user_line(ValueError("Internal error: `checkpoint_path` should never be empty."))
        return super().__new__(cls, status, metrics, checkpoint_path)


class _ContinuousEvalListener:
    """Asked before and after each evaluation whether to go on."""

    def before_eval(self) -> bool:
        """Whether to evaluate."""
        return True

    def after_eval(self, eval_result: _EvalResult) -> bool:
        """Whether to go on."""
        del eval_result  # it goes on whatever came out
        return True


class Evaluator:
    """Evaluates each checkpoint once, and exports it."""

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, max_training_steps: Optional[int]) -> None:
        _assert_eval_spec(eval_spec)
        self._estimator, self._spec, self._max_steps = estimator, eval_spec, max_training_steps
        self._is_final_export_triggered, self._last_warning = False, 0.0
        self._previous: Optional[str] = None

    is_final_export_triggered = property(lambda self: self._is_final_export_triggered, doc="Whether the last step has been exported.")

    def evaluate_and_export(self) -> Tuple[_EvalResult, List[Any]]:
        """(the metrics of the newest checkpoint, what the exporters answered)."""
        path = self._estimator.latest_checkpoint()
        if not path:
            self._warn("Estimator is not trained yet. Will start an evaluation when a checkpoint is ready.")
            return _EvalResult(_EvalStatus.MISSING_CHECKPOINT), []
        if path == self._previous:
            self._warn(
                "No new checkpoint ready for evaluation. Skip the current evaluation pass as evaluation results are expected to be same for the same "
                "checkpoint."
            )
            return _EvalResult(_EvalStatus.NO_NEW_CHECKPOINT), []
        metrics = self._estimator.evaluate(
            input_fn=self._spec.input_fn, steps=self._spec.steps, name=self._spec.name, checkpoint_path=path, hooks=self._spec.hooks
        )
        result = _EvalResult(_EvalStatus.EVALUATED, metrics, path)
        is_final = bool(self._max_steps and metrics[GraphKeys.GLOBAL_STEP] >= self._max_steps)
        folder = os.path.join(as_str_any(self._estimator.model_dir), "export")
        exported = [
            exporter.export(
                estimator=self._estimator,
                export_path=os.path.join(folder, as_str_any(exporter.name)),
                checkpoint_path=path,
                eval_result=metrics,
                is_the_final_export=is_final,
            )
            for exporter in self._spec.exporters
        ]
        self._is_final_export_triggered = self._is_final_export_triggered or is_final
        self._last_warning, self._previous = 0, path
        return result, exported

    def _warn(self, message: str) -> None:
        if time.time() - self._last_warning > _SECONDS_BETWEEN_WARNINGS:
            tf_logging.warning(message)
            self._last_warning = time.time()


class _NewCheckpointListenerForEvaluate(CheckpointSaverListener):
    """Evaluates a checkpoint when it has been written, if the last evaluation is long ago, and the last one in any case."""

    def __init__(self, evaluator: Evaluator, eval_throttle_secs: float, continuous_eval_listener: _ContinuousEvalListener) -> None:
        self._evaluator, self._seconds, self._listener = evaluator, eval_throttle_secs, continuous_eval_listener
        self._timer: Any = None
        self.eval_result: Optional[_EvalResult] = None
        self.export_results: Optional[List[Any]] = None

    def begin(self) -> None:
        """Starts the clock."""
        self._timer = _hooks.SecondOrStepTimer(every_secs=self._seconds)
        self._is_first = True

    def after_save(self, session: Any, global_step_value: int) -> Optional[bool]:
        """Evaluates, but for the checkpoint that is written before the first step; True stops the training."""
        if self._is_first:
            self._is_first = False
            return None
        if not self._listener.before_eval():
            tf_logging.info("Exiting training and evaluation loop, as requested by _ContinuousEvalListener.before_eval.")
            return True
        if not self._timer.should_trigger_for_step(global_step_value):
            tf_logging.info("Skip the current checkpoint eval due to throttle secs (%s secs).", self._seconds)
            return None
        if self._goes_on_after(global_step_value):
            return None
        tf_logging.info("Exiting evaluation, as requested by _ContinuousEvalListener.after_eval.")
        return True

    def end(self, session: Any, global_step_value: int) -> None:
        """Evaluates the last checkpoint, unless that was done."""
        if global_step_value != self._timer.last_triggered_step() and self._listener.before_eval():
            self._goes_on_after(global_step_value)

    def _goes_on_after(self, global_step_value: int) -> bool:
        self._timer.update_last_triggered_step(global_step_value)
        self.eval_result, self.export_results = self._evaluator.evaluate_and_export()
        if self.eval_result.status != _EvalStatus.EVALUATED:
            raise at_user_line(RuntimeError("There was no new checkpoint after the training. Eval status: %s" % self.eval_result.status))
        return self._listener.after_eval(self.eval_result)


def _assert_eval_spec(eval_spec: Any) -> None:
    if not isinstance(eval_spec, EvalSpec):
        raise at_user_line(TypeError("`eval_spec` must have type `tf.estimator.EvalSpec`. Got: %s" % type(eval_spec)))


# ---- tasks ----


class _TrainingExecutor:
    """What each kind of process does."""

    _Evaluator = Evaluator

    def __init__(self, estimator: Any, train_spec: Any, eval_spec: Any, train_hooks: Any = None, continuous_eval_listener: Any = None) -> None:
        for value, kind, name in ((estimator, Estimator, "estimator"), (train_spec, TrainSpec, "train_spec")):
            if not isinstance(value, kind):
                raise at_user_line(TypeError("`%s` must have type `tf.estimator.%s`. Got: %s" % (name, kind.__name__, type(value))))
        if eval_spec and not isinstance(eval_spec, EvalSpec):
            raise at_user_line(TypeError("`eval_spec` must be either `None` or have type `tf.estimator.EvalSpec`. Got: %s" % type(eval_spec)))
        if continuous_eval_listener and not isinstance(continuous_eval_listener, _ContinuousEvalListener):
            raise at_user_line(TypeError("`continuous_eval_listener` must have type `_ContinuousEvalListener`."))
        self._estimator, self._train_spec, self._eval_spec = estimator, train_spec, eval_spec
        self._train_hooks, self._listener = _checked_hooks(train_hooks), continuous_eval_listener or _ContinuousEvalListener()

    estimator = property(lambda self: self._estimator, doc="What is trained.")

    def run(self) -> Any:
        """What this process is to do, as the configuration says."""
        config = self._estimator.config
        if not config.cluster_spec and config.task_type != TaskType.EVALUATOR:
            tf_logging.info("Running training and evaluation locally (non-distributed).")
            return self.run_local()
        if not config.task_type:
            raise at_user_line(ValueError("`estimator.config` must have task_type set. This usually means TF_CONFIG environment is not set correctly."))
        if config.task_type == "local":
            raise at_user_line(
                ValueError(
                    "`task.type` in TF_CONFIG cannot be `local`. Leaving `cluster` and `task` properties in TF_CONFIG absent triggers train "
                    "and evaluate `Estimator` locally (non-distributed)."
                )
            )
        tasks = [name[len("run_") :] for name in dir(self) if name.startswith("run_") and name != "run_local" and callable(getattr(self, name))]
        if config.task_type not in tasks:
            raise at_user_line(ValueError("Task type %s is not supported. Supported task types are %s" % (config.task_type, tasks)))
        return getattr(self, "run_" + config.task_type)()

    def _evaluator(self) -> Evaluator:
        _assert_eval_spec(self._eval_spec)
        return self._Evaluator(self._estimator, self._eval_spec, self._train_spec.max_steps)

    def run_chief(self) -> None:
        """Trains, and writes checkpoints."""
        self._train_in_cluster()

    def run_worker(self) -> None:
        """Trains."""
        self._train_in_cluster()

    def run_master(self) -> None:
        """Trains, writes checkpoints and evaluates them."""
        evaluator = self._evaluator()
        self._train_in_cluster([_NewCheckpointListenerForEvaluate(evaluator, self._eval_spec.throttle_secs, _ContinuousEvalListener())])

    def run_evaluator(self) -> None:
        """Evaluates each new checkpoint until the last step."""
        _assert_eval_spec(self._eval_spec)
        if self._eval_spec.start_delay_secs:
            tf_logging.info("Waiting %f secs before starting eval.", self._eval_spec.start_delay_secs)
            time.sleep(self._eval_spec.start_delay_secs)
        evaluator, last = self._evaluator(), self._train_spec.max_steps
        while True:
            if not self._listener.before_eval():
                tf_logging.info("Exiting evaluation, as requested by _ContinuousEvalListener.before_eval.")
                return
            start = time.time()
            result, _ = evaluator.evaluate_and_export()
            if not self._listener.after_eval(result):
                tf_logging.info("Exiting evaluation, as requested by _ContinuousEvalListener.after_eval.")
                return
            self._pause(time.time() - start, result)
            step = (result.metrics or {}).get(GraphKeys.GLOBAL_STEP)
            if step and last and step >= last:
                tf_logging.info("Exiting evaluation, global_step=%s >= train max_steps=%s", step, last)
                return

    def _pause(self, seconds: float, result: _EvalResult) -> None:
        rest = self._eval_spec.throttle_secs - seconds
        if rest > 0:
            tf_logging.info("Waiting %f secs before starting next eval run.", rest)
            time.sleep(rest)
        elif self._eval_spec.throttle_secs == 0 and result.status != _EvalStatus.EVALUATED:
            tf_logging.warning(
                "EvalSpec.throttle_secs is set as 0. This might overload the job before finding (next) new checkpoint. Please consider to increase it."
            )

    def run_ps(self) -> None:
        """Holds variables for others."""
        self._start_std_server(self._estimator.config).join()

    def run_local(self) -> Tuple[Optional[Dict[str, Any]], Optional[List[Any]]]:
        """Trains in this process alone, and evaluates checkpoints as they are written; the last metrics, and the folders of the last exports."""
        config, evaluator = self._estimator.config, self._evaluator()
        tf_logging.info(
            "Start train and evaluate loop. The evaluate will happen after every checkpoint. Checkpoint frequency is determined based on RunConfig "
            "arguments: save_checkpoints_steps %s or save_checkpoints_secs %s.",
            config.save_checkpoints_steps,
            config.save_checkpoints_secs,
        )
        listener = _NewCheckpointListenerForEvaluate(evaluator, self._eval_spec.throttle_secs, self._listener)
        self._estimator.train(
            input_fn=self._train_spec.input_fn,
            max_steps=self._train_spec.max_steps,
            hooks=[*self._train_spec.hooks, *self._train_hooks],
            saving_listeners=[listener],
        )
        return (listener.eval_result.metrics if listener.eval_result else None), listener.export_results

    def _start_std_server(self, config: Any) -> Any:
        from millrace.train import server

        if not config.cluster_spec or not config.task_type or config.task_id is None:
            raise at_user_line(
                RuntimeError(
                    "Could not start server; be sure to specify cluster_spec, task_type, and task in RunConfig or set the TF_CONFIG environment variable."
                )
            )
        if not config.master:
            if sum(len(tasks) for tasks in config.cluster_spec.as_dict().values()) == 1 and config.task_type in _TRAINERS:
                tf_logging.info("Skip starting Tensorflow server as there is only one node in the cluster.")
                return None
            raise at_user_line(RuntimeError("Could not start server; be sure to specify master in RunConfig or set the TF_CONFIG environment variable."))
        made = server.Server(
            config.cluster_spec,
            job_name=config.task_type,
            task_index=config.task_id,
            config=definitions.ConfigProto(log_device_placement=False),
            start=False,
            protocol=config.protocol,
        )
        made.start()
        return made

    def _train_in_cluster(self, saving_listeners: Any = None) -> None:
        config, told = self._estimator.config, json.loads(os.environ.get("TF_CONFIG") or "{}")
        if not told:
            tf_logging.warn("TF_CONFIG should not be empty in distributed environment.")
        if told.get("environment") != "google":
            self._start_std_server(config)
        if config.task_type == TaskType.WORKER:
            delay = min(_MAX_DELAY_SECS, (config.task_id + 1) * _DELAY_SECS_PER_WORKER)
            tf_logging.info("Waiting %d secs before starting training.", delay)
            time.sleep(delay)
        self._estimator.train(
            input_fn=self._train_spec.input_fn,
            max_steps=self._train_spec.max_steps,
            hooks=[*self._train_spec.hooks, *self._train_hooks],
            saving_listeners=saving_listeners,
        )


def train_and_evaluate(estimator: Any, train_spec: TrainSpec, eval_spec: EvalSpec) -> Any:
    """Trains until the last step or the end of the input, and evaluates each checkpoint that is written, at most every throttle_secs, and the last
    one; (the last metrics, the last exports). Where TF_CONFIG says that this process is one task of a cluster, it does that task."""
    _assert_eval_spec(eval_spec)
    executor = _TrainingExecutor(estimator=estimator, train_spec=train_spec, eval_spec=eval_spec)
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR and config.task_id > 0:
        raise at_user_line(ValueError("For distributed training, there can only be one `evaluator` task (with task id 0).  Given task id %s" % config.task_id))
    return executor.run()
