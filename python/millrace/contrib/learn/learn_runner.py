# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.learn_runner: builds and runs an experiment."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional

from millrace.contrib.learn.experiment import Experiment
from millrace.framework.errors import at_user_line


def run(
    experiment_fn: Callable[..., Experiment], output_dir: Optional[str] = None, schedule: Optional[str] = None, run_config: Any = None, hparams: Any = None
) -> Any:
    """Calls the method `schedule` (train_and_evaluate unless given) of experiment_fn(output_dir), or experiment_fn(run_config, hparams)."""
    if (output_dir is None) == (run_config is None):
        raise at_user_line(ValueError("Must set exactly one of output_dir and run_config."))
    if not callable(experiment_fn):
        raise at_user_line(TypeError('Experiment builder "%s" is not callable.' % (experiment_fn,)))
    if run_config is not None:
        named = inspect.signature(experiment_fn).parameters
        made = experiment_fn(run_config=run_config, hparams=hparams) if "run_config" in named else experiment_fn(run_config, hparams)
    else:
        made = experiment_fn(output_dir)
    if not isinstance(made, Experiment):
        raise at_user_line(TypeError("Experiment builder did not return an Experiment instance, got %s instead." % type(made)))
    task = getattr(made, schedule or "train_and_evaluate", None)
    if task is None:
        raise at_user_line(ValueError("Schedule references non-existent task %s" % schedule))
    return task()
