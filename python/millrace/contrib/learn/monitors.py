# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn.monitors: what is done while an estimator trains, and how sessions run it."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Optional

from millrace.contrib.learn.monitor_kinds import (  # noqa: F401
    BaseMonitor,
    CaptureVariable,
    EveryN,
    LoggingTrainable,
    NanLoss,
    PrintTensor,
    StopAtStep,
)
from millrace.contrib.learn.monitors_of_models import (  # noqa: F401
    CheckpointSaver,
    ExportMonitor,
    GraphDump,
    StepCounter,
    SummarySaver,
    ValidationMonitor,
)
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, get_default_graph
from millrace.summary import FileWriterCache as SummaryWriterCache  # noqa: F401
from millrace.train.global_step import get_global_step
from millrace.train.hooks import NanLossDuringTrainingError, SessionRunArgs, SessionRunHook  # noqa: F401


def _fetched(wanted: Any) -> Any:
    made = get_default_graph().as_graph_element(wanted)
    if isinstance(made, Operation):
        if len(made.outputs) != 1:
            raise at_user_line(ValueError("the operation %s has %d outputs: name the tensor" % (made.name, len(made.outputs))))
        return made.outputs[0]
    return made


def fetches_of(monitors: Any, step: int) -> Dict[str, Any]:
    """What monitors want to see of a step, by names."""
    wanted = [fetch for monitor in monitors for fetch in monitor.step_begin(step) or []]
    return {fetch if isinstance(fetch, str) else fetch.name: _fetched(fetch) for fetch in wanted}


def tell(monitors: Any, step: int, results: Any, session: Any) -> bool:
    """Tells monitors of a step; whether one stops."""
    stops = [monitor.step_end(step, results) for monitor in monitors]
    for monitor in monitors:
        monitor.post_step(step, session)
    return any(stops)


class RunHookAdapterForMonitors(SessionRunHook):
    """Monitors as a hook of sessions."""

    def __init__(self, monitors: Any) -> None:
        self._monitors = list(monitors)
        self._last_step: Optional[int] = None
        self._step_tensor: Any = None

    def begin(self) -> None:
        """Tells the monitors."""
        self._last_step, self._step_tensor = None, get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: Any) -> Any:
        """Asks for what the monitors want."""
        self._last_step = step = int(run_context.session.run(self._step_tensor)) + 1
        return SessionRunArgs(fetches_of(self._monitors, step))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Tells the monitors, and stops where one says so."""
        assert self._last_step is not None  # before_run was called
        if tell(self._monitors, self._last_step, run_values.results or {}, run_context.session):
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Tells the monitors."""
        self._last_step = None
        for monitor in self._monitors:
            if "session" in inspect.signature(monitor.end).parameters:
                monitor.end(session=session)
            else:
                monitor.end()


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> List[SessionRunHook]:
    """Hooks as they are, and monitors of an estimator as one hook."""
    given = list(monitors_or_hooks or [])
    hooks = [each for each in given if isinstance(each, SessionRunHook)]
    others = [each for each in given if not isinstance(each, SessionRunHook)]
    if not getattr(estimator.config, "is_chief", True):
        others = [monitor for monitor in others if monitor.run_on_all_workers]
    for each in given:
        if hasattr(each, "set_estimator"):
            each.set_estimator(estimator)
    if others:
        hooks.append(RunHookAdapterForMonitors(others))
    return hooks


def get_default_monitors(loss_op: Any = None, summary_op: Any = None, save_summary_steps: int = 100, output_dir: Any = None, summary_writer: Any = None) -> Any:
    """Monitors that log a loss and write summaries."""
    made: List[BaseMonitor] = []
    if loss_op is not None:
        made.append(PrintTensor({"loss": loss_op.name}))
    if summary_op is not None:
        made.append(SummarySaver(summary_op, save_steps=save_summary_steps, output_dir=output_dir, summary_writer=summary_writer))
    return made
