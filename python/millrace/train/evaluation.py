# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a checkpoint by a monitored session that counts its steps."""

from __future__ import annotations

from typing import Any, Optional

from millrace import tf_logging
from millrace.framework import dtypes
from millrace.framework.graph import GraphKeys, get_collection, get_default_graph
from millrace.ops import init_ops, math_ops, variable_scope
from millrace.train.hooks import FinalOpsHook, SessionRunArgs, SessionRunHook
from millrace.train.monitored_session import ChiefSessionCreator, MonitoredSession


def _get_or_create_eval_step() -> Any:
    """The variable that counts steps of evaluation."""
    found = get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    with get_default_graph().name_scope(None):
        return variable_scope.get_variable(
            "eval_step",
            shape=[],
            dtype=dtypes.int64,
            initializer=init_ops.zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
        )


def _flat(given: Any) -> Any:
    return given.values() if isinstance(given, dict) else given if isinstance(given, (list, tuple)) else [given]


class _StopAfterNEvalsHook(SessionRunHook):
    """Stops after so many steps."""

    def __init__(self, num_evals: Optional[int], log_progress: bool = True) -> None:
        self._num_evals, self._log_progress, self._evals_completed = num_evals, log_progress, None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: Any) -> Any:
        """Asks for the count."""
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops when it is time."""
        done = run_values.results["evals_completed"]
        if self._log_progress:
            tf_logging.info("Evaluation [%d%s]", done, "" if self._num_evals is None else "/%d" % self._num_evals)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


def _evaluate_once(
    checkpoint_path: Optional[str],
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Any = None,
    config: Any = None,
) -> Any:
    """The value of final_ops after eval_ops have run, on a checkpoint's variables, until a hook says stop or the input ends."""
    step = _get_or_create_eval_step()
    hooks = list(hooks or [])
    if eval_ops is not None:
        counted = step.assign_add(math_ops.cast(1, step.dtype.base_dtype), use_locking=True)
        updates = list(_flat(eval_ops))
        eval_ops = {"updates": updates, "count": counted}
        with get_default_graph().control_dependencies([*updates, counted]):
            completed = step.read_value()
        for hook in hooks:
            if isinstance(hook, _StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(completed)
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    hooks.append(last)
    with MonitoredSession(ChiefSessionCreator(scaffold, master, config, checkpoint_filename_with_path=checkpoint_path), hooks) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    return last.final_ops_values
