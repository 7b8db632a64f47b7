# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.slim.evaluation: running an evaluation on checkpoints as they appear."""

from __future__ import annotations

import collections.abc
from typing import Any, List, Optional

from millrace import summary, tf_logging
from millrace.contrib import training_loops
from millrace.contrib.training_loops import StopAfterNEvalsHook, SummaryAtEndHook
from millrace.ops import variables
from millrace.train.checkpoint_utils import checkpoints_iterator, wait_for_new_checkpoint  # noqa: F401
from millrace.train.global_step import get_global_step, get_or_create_global_step, global_step as value_of_step
from millrace.train.monitored_session import Scaffold
from millrace.train.saver import Saver

_DEFAULT = 0


def _fetches(given: Any) -> Any:
    """What a session can run: the values of a dict as a list."""
    return list(given) if isinstance(given, collections.abc.ValuesView) else given


def evaluation(
    sess: Any,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = None,
    summary_op_feed_dict: Any = None,
    summary_writer: Any = None,
    global_step: Any = None,
) -> Any:
    """The value of final_op after eval_op has run num_evals times in a session."""
    if initial_op is not None:
        sess.run(_fetches(initial_op), initial_op_feed_dict)
    for i in range(num_evals):
        if eval_op is not None:
            sess.run(_fetches(eval_op), eval_op_feed_dict)
        tf_logging.info("Evaluation [%d/%d]", i + 1, num_evals)
    value = None if final_op is None else sess.run(_fetches(final_op), final_op_feed_dict)
    if summary_op is not None and summary_writer is not None:
        step = get_global_step() if global_step is None else global_step
        summary_writer.add_summary(sess.run(summary_op, summary_op_feed_dict), None if step is None else value_of_step(sess, step))
        summary_writer.flush()
    return value


def _restorer(initial_op: Any, feed_dict: Any, init_fn: Any, variables_to_restore: Any) -> Scaffold:
    get_or_create_global_step()
    saver = Saver(variables_to_restore or variables.global_variables())
    return Scaffold(init_op=initial_op, init_feed_dict=feed_dict, init_fn=init_fn, saver=saver)


def _hooks(num_evals: int, logdir: Optional[str], summary_op: Any, feed_dict: Any, given: Any) -> List[Any]:
    if isinstance(summary_op, int) and summary_op == _DEFAULT:
        summary_op = summary.merge_all()
    at_end = [SummaryAtEndHook(logdir, summary_op=summary_op, feed_dict=feed_dict)] if summary_op is not None and logdir else []
    return [StopAfterNEvalsHook(num_evals), *at_end, *(given or [])]


def evaluate_once(
    master: str,
    checkpoint_path: str,
    logdir: Optional[str],
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Any = None,
) -> Any:
    """The value of final_op after eval_op has run num_evals times, or until the input ends, on a checkpoint's variables."""
    return training_loops.evaluate_once(
        checkpoint_path,
        master,
        _restorer(initial_op, initial_op_feed_dict, None, variables_to_restore),
        _fetches(eval_op),
        eval_op_feed_dict,
        _fetches(final_op),
        final_op_feed_dict,
        _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks),
        session_config,
    )


def evaluation_loop(
    master: str,
    checkpoint_dir: str,
    logdir: Optional[str],
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    init_fn: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: Optional[int] = None,
    session_config: Any = None,
    timeout: Optional[float] = None,
    timeout_fn: Any = None,
    hooks: Any = None,
) -> Any:
    """evaluate_once of each checkpoint as it appears; the last value of final_op."""
    return training_loops.evaluate_repeatedly(
        checkpoint_dir,
        master,
        _restorer(initial_op, initial_op_feed_dict, init_fn, variables_to_restore),
        _fetches(eval_op),
        eval_op_feed_dict,
        _fetches(final_op),
        final_op_feed_dict,
        eval_interval_secs,
        _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks),
        session_config,
        max_number_of_evaluations,
        timeout,
        timeout_fn,
    )
