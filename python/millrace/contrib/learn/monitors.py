# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn.monitors: what is done while an estimator trains."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.framework import arguments
from millrace import tf_logging
from millrace.train.hooks import CheckpointSaverHook, LoggingTensorHook, NanTensorHook, SessionRunHook, StopAtStepHook
from millrace.train.hooks import NanLossDuringTrainingError, StepCounterHook  # noqa: F401


def PrintTensor(tensor_names: Any, every_n: int = 100, first_n: int = 1) -> SessionRunHook:
    """Logs tensors."""
    arguments.only(1, first_n=first_n)
    return LoggingTensorHook(tensor_names, every_n_iter=every_n)


def StopAtStep(num_steps: Optional[int] = None, last_step: Optional[int] = None) -> SessionRunHook:
    """Ends the training."""
    return StopAtStepHook(num_steps, last_step)


def NanLoss(loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True) -> SessionRunHook:
    """Ends the training where the loss is no number."""
    del every_n_steps  # every step is looked at
    return NanTensorHook(loss_tensor, fail_on_nan_loss)


def CheckpointSaver(
    checkpoint_dir: str,
    save_secs: Optional[float] = None,
    save_steps: Optional[int] = None,
    saver: Any = None,
    checkpoint_basename: str = "model.ckpt",
    scaffold: Any = None,
) -> SessionRunHook:
    """Saves."""
    return CheckpointSaverHook(checkpoint_dir, save_secs, save_steps, saver, checkpoint_basename, scaffold)


class ValidationMonitor(SessionRunHook):
    """Evaluates new checkpoints while the estimator trains, and may stop it when a metric no longer gets better."""

    def __init__(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        batch_size: Optional[int] = None,
        eval_steps: Optional[int] = None,
        every_n_steps: int = 100,
        metrics: Any = None,
        hooks: Any = None,
        early_stopping_rounds: Optional[int] = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: Optional[str] = None,
        check_interval_secs: float = 5,
    ) -> None:
        del check_interval_secs  # checkpoints are looked at each time
        self._given: Dict[str, Any] = {
            "x": x,
            "y": y,
            "input_fn": input_fn,
            "batch_size": batch_size,
            "steps": eval_steps,
            "metrics": metrics,
            "hooks": hooks,
            "name": name or "validation",
        }
        self._every, self._rounds, self._metric, self._less = every_n_steps, early_stopping_rounds, early_stopping_metric, early_stopping_metric_minimize
        self._estimator: Any = None
        self._seen: Optional[str] = None
        self._step: Any = None
        self.early_stopped, self.best_step, self.best_value = False, None, None  # type: bool, Any, Any

    def set_estimator(self, estimator: Any) -> None:
        """The estimator that trains."""
        self._estimator = estimator

    def begin(self) -> None:
        """Finds the step."""
        from millrace.train.global_step import get_global_step

        self._step = get_global_step()

    def before_run(self, run_context: Any) -> Any:
        """Asks for the step."""
        from millrace.train.hooks import SessionRunArgs

        return SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Every so many steps, evaluates a checkpoint that is new."""
        step = int(run_values.results)
        if step % self._every:
            return
        latest = self._estimator.latest_checkpoint()
        if latest is None or latest == self._seen:
            tf_logging.debug("Skipping evaluation since there is no new checkpoint.")
            return
        self._seen = latest
        results = self._estimator.evaluate(**self._given)
        tf_logging.info("Validation (step %d): %s", step, ", ".join("%s = %s" % item for item in sorted(results.items())))
        if self._rounds is None:
            return
        if self._metric not in results:
            raise ValueError("Metric %s missing from outputs %s." % (self._metric, sorted(results)))
        value = results[self._metric]
        if self.best_value is None or (value < self.best_value if self._less else value > self.best_value):
            self.best_value, self.best_step = value, step
        elif step - self.best_step >= self._rounds:
            tf_logging.info("Stopping. Best step: %d with %s = %s.", self.best_step, self._metric, self.best_value)
            self.early_stopped = True
            run_context.request_stop()
