# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.learn_runner: builds and runs an experiment."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional

from millrace.contrib.hparams import HParams
from millrace.contrib.learn.experiment import Experiment
from millrace.contrib.learn.keys import TaskType
from millrace.estimator.run_config import RunConfig
from millrace.framework.errors import at_user_line

_SCHEDULES = {TaskType.MASTER: "train_and_evaluate", TaskType.PS: "run_std_server", TaskType.WORKER: "train"}


def _check(output_dir: Any, run_config: Any, hparams: Any) -> None:
    wrong = None
    if output_dir is not None and run_config is not None:
        wrong = "Cannot provide both `output_dir` and `run_config`"
    elif output_dir is None and run_config is None:
        wrong = "Must set value for `output_dir` or `run_config`"
    elif run_config is None:
        if hparams is not None:
            wrong = "Must set `hparams` as None for `experiment_fn` with `output_dir`."
        elif not output_dir:
            wrong = "Must specify an output directory"
    elif not isinstance(run_config, RunConfig):
        wrong = "`run_config` must be `tf.contrib.learn.RunConfig` instance"
    elif not run_config.model_dir:
        wrong = "Must specify a model directory `model_dir` in `run_config`."
    elif hparams is not None and not isinstance(hparams, HParams):
        wrong = "`hparams` must be `HParams` instance"
    if wrong is not None:
        raise at_user_line(ValueError(wrong))


def _built(experiment_fn: Callable[..., Experiment], output_dir: Optional[str], run_config: Any, hparams: Any) -> Experiment:
    if not callable(experiment_fn):
        raise at_user_line(TypeError('Experiment builder "%s" is not callable.' % (experiment_fn,)))
    wanted = run_config.uid() if hasattr(run_config, "uid") else None
    if run_config is None:
        made = experiment_fn(output_dir)
    elif "run_config" in inspect.signature(experiment_fn).parameters:
        made = experiment_fn(run_config=run_config, hparams=hparams)
    else:
        made = experiment_fn(run_config, hparams)
    if not isinstance(made, Experiment):
        raise at_user_line(TypeError("Experiment builder did not return an Experiment instance, got %s instead." % type(made)))
    if wanted is not None:
        _check_configuration(made.estimator.config, wanted)
    return made


def _check_configuration(config: Any, wanted: str) -> None:
    """That the estimator has got the configuration which experiment_fn was given."""
    if not hasattr(config, "uid"):
        raise at_user_line(RuntimeError("Pass `run_config` argument of the `experiment_fn` to the Estimator in Experiment: it has another one, or none."))
    if config.uid() != wanted:
        message = "`RunConfig` instance is expected to be used by the `Estimator` inside the `Experiment`. expected %s, but got %s"
        raise at_user_line(RuntimeError(message % (wanted, config.uid())))


def _usual_schedule(config: Any) -> str:
    """What a process of a cluster does: by the type of its task; alone it does all."""
    cluster = getattr(config, "cluster_spec", None)
    if not cluster or len(cluster.jobs) == 1 and cluster.num_tasks(cluster.jobs[0]) < 2:
        return "train_and_evaluate"
    if not config.task_type:
        raise at_user_line(ValueError("Must specify a schedule"))
    if config.task_type not in _SCHEDULES:
        raise at_user_line(ValueError("No default schedule for task type: %s" % config.task_type))
    return _SCHEDULES[config.task_type]


def run(
    experiment_fn: Callable[..., Experiment], output_dir: Optional[str] = None, schedule: Optional[str] = None, run_config: Any = None, hparams: Any = None
) -> Any:
    """Calls the method `schedule` of experiment_fn(output_dir), or experiment_fn(run_config, hparams). Without one it is train_and_evaluate; in a cluster
    train on workers, train_and_evaluate on the master and run_std_server on parameter servers."""
    _check(output_dir, run_config, hparams)
    made = _built(experiment_fn, output_dir, run_config, hparams)
    schedule = schedule or _usual_schedule(run_config or getattr(made.estimator, "config", None))
    task = getattr(made, schedule, None)
    if not hasattr(made, schedule):
        raise at_user_line(ValueError("Schedule references non-existent task %s" % schedule))
    if not callable(task):
        raise at_user_line(TypeError("Schedule references non-callable member %s" % schedule))
    return task()
