# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.slim.evaluation: running an evaluation on checkpoints as they appear."""

from __future__ import annotations

import collections.abc
from typing import Any, Optional

from millrace.framework import arguments
from millrace import summary, tf_logging
from millrace.framework.graph import GraphKeys, get_collection
from millrace.framework.session import Session
from millrace.ops import variables
from millrace.ops.control_flow_ops import group
from millrace.train.checkpoint_utils import checkpoints_iterator, wait_for_new_checkpoint  # noqa: F401
from millrace.train.coordinator import Coordinator
from millrace.train.global_step import get_global_step, get_or_create_global_step, global_step as value_of_step
from millrace.train.queue_runner import start_queue_runners
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
    """The value of final_op after eval_op has run num_evals times on a checkpoint's variables."""
    arguments.only(None, hooks=hooks)
    if summary_op is not None and isinstance(summary_op, int) and summary_op == _DEFAULT:
        summary_op = summary.merge_all()
    step = get_global_step() or get_or_create_global_step()
    saver = Saver(variables_to_restore or variables.global_variables())
    local = group(variables.local_variables_initializer(), *get_collection(GraphKeys.TABLE_INITIALIZERS))
    tf_logging.info("Starting evaluation of %s", checkpoint_path)
    with Session(master, config=session_config) as sess:
        sess.run(variables.global_variables_initializer())
        saver.restore(sess, checkpoint_path)
        sess.run(local)
        coordinator = Coordinator()
        threads = start_queue_runners(sess, coordinator)
        writer = summary.FileWriter(logdir, sess.graph) if summary_op is not None and logdir else None
        try:
            return evaluation(
                sess,
                num_evals,
                initial_op,
                initial_op_feed_dict,
                eval_op,
                eval_op_feed_dict,
                final_op,
                final_op_feed_dict,
                summary_op,
                summary_op_feed_dict,
                writer,
                step,
            )
        finally:
            coordinator.request_stop()
            coordinator.join(threads, ignore_live_threads=True)
            if writer is not None:
                writer.close()


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
    arguments.only(None, init_fn=init_fn)
    value, count = None, 0
    for path in checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn):
        value = evaluate_once(
            master,
            path,
            logdir,
            num_evals,
            initial_op,
            initial_op_feed_dict,
            eval_op,
            eval_op_feed_dict,
            final_op,
            final_op_feed_dict,
            summary_op,
            summary_op_feed_dict,
            variables_to_restore,
            session_config,
            hooks,
        )
        count += 1
        if max_number_of_evaluations is not None and count >= max_number_of_evaluations:
            break
    return value
