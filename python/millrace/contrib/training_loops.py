# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation by monitored sessions, which start the graph's queue runners."""

from __future__ import annotations

import time
from typing import Any, Callable, List, Optional, Tuple

from millrace import summary, tf_logging
from millrace.contrib import slim_learning
from millrace.train.checkpoint_utils import checkpoints_iterator
from millrace.contrib.slim_learning import clip_gradient_norms
from millrace.framework.composite_tensors import IndexedSlices
from millrace.ops import math_ops
from millrace.train.global_step import get_global_step
from millrace.train.global_step import global_step as value_of_step
from millrace.train.hooks import FinalOpsHook, SessionRunHook
from millrace.train.monitored_session import ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession


def clip_gradient_norms_fn(max_norm: float) -> Callable[[Any], List[Tuple[Any, Any]]]:
    """A function that clips gradients, for create_train_op."""
    return lambda gradients_to_variables: clip_gradient_norms(gradients_to_variables, max_norm)


def add_gradients_summaries(grads_and_vars: Any) -> List[Any]:
    """Records of the gradients and of their norms."""
    made = []
    for gradient, variable in grads_and_vars:
        if gradient is not None:
            values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
            made.append(summary.histogram(variable.op.name + "_gradient", values))
            made.append(summary.scalar(variable.op.name + "_gradient_norm", math_ops.global_norm([values])))
    return made


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = slim_learning._USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    transform_grads_fn: Any = None,
    summarize_gradients: bool = False,
    gate_gradients: int = 1,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Any:
    """A tensor with the loss, whose computation updates the variables."""
    return slim_learning.create_train_op(
        total_loss,
        optimizer,
        global_step=global_step,
        update_ops=update_ops,
        variables_to_train=variables_to_train,
        transform_grads_fn=transform_grads_fn,
        summarize_gradients=summarize_gradients,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        check_numerics=check_numerics,
    )


def train(
    train_op: Any,
    logdir: Optional[str],
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: Any = 600,
    save_summaries_steps: Any = 100,
    config: Any = None,
    max_wait_secs: float = 7200,
    run_metadata: Any = None,
) -> Any:
    """Runs train_op until a hook says stop; its last value. `run_metadata` is filled by each step."""
    if logdir is None and is_chief and (save_checkpoint_secs or save_summaries_steps):
        raise ValueError("logdir cannot be None when save_checkpoint_secs or save_summaries_steps are given")
    loss = None
    with MonitoredTrainingSession(
        master, is_chief, logdir, scaffold, hooks, chief_only_hooks, save_checkpoint_secs, save_summaries_steps, config=config, max_wait_secs=max_wait_secs
    ) as session:
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss


class StopAfterNEvalsHook(SessionRunHook):
    """Stops after so many steps."""

    def __init__(self, num_evals: Optional[int], log_progress: bool = True) -> None:
        self._count, self._log, self._done = num_evals, log_progress, 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Counts from 0."""
        self._done = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts."""
        self._done += 1
        if self._log and self._count is not None:
            tf_logging.info("Evaluation [%d/%d]", self._done, self._count)
        if self._count is not None and self._done >= self._count:
            run_context.request_stop()


class SummaryAtEndHook(SessionRunHook):
    """Writes a summary when the session ends."""

    def __init__(self, log_dir: Optional[str] = None, summary_writer: Any = None, summary_op: Any = None, feed_dict: Any = None) -> None:
        if log_dir is None and summary_writer is None:
            raise ValueError("SummaryAtEndHook needs a log_dir or a summary_writer")
        self._folder, self._writer, self._op, self._feed = log_dir, summary_writer, summary_op, feed_dict

    def begin(self) -> None:
        """Finds the summaries of the graph."""
        self._op = summary.merge_all() if self._op is None else self._op
        self._step = get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the file, in which the graph is also where there are no summaries."""
        if self._writer is None:
            assert self._folder is not None
            self._writer = summary.FileWriterCache.get(self._folder)

    def end(self, session: Any) -> None:
        """Writes it."""
        if self._op is not None:
            self._writer.add_summary(session.run(self._op, self._feed), None if self._step is None else value_of_step(session, self._step))
        self._writer.flush()


def evaluate_once(
    checkpoint_path: str,
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
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_filename_with_path=checkpoint_path)
    with MonitoredSession(creator, [*(hooks or []), last]) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    return last.final_ops_values


def evaluate_repeatedly(
    checkpoint_dir: str,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    eval_interval_secs: float = 60,
    hooks: Any = None,
    config: Any = None,
    max_number_of_evaluations: Optional[int] = None,
    timeout: Optional[float] = None,
    timeout_fn: Any = None,
) -> Any:
    """evaluate_once of each checkpoint as it appears; the last value of final_ops."""
    value, count = None, 0
    if max_number_of_evaluations is not None and max_number_of_evaluations <= 0:
        raise ValueError("`max_number_of_evaluations` must be either None or a positive number.")
    for path in checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn):
        tf_logging.info("Starting evaluation of %s at %s", path, time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime()))
        value = evaluate_once(path, master, scaffold, eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks, config)
        count += 1
        if max_number_of_evaluations is not None and count >= max_number_of_evaluations:
            break
    return value
