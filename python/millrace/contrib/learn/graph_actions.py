# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.graph_actions: graphs are run, trained and evaluated without a loop of one's own."""

from __future__ import annotations

import itertools
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np

from millrace import summary, tf_logging
from millrace.contrib.learn.monitors import NanLossDuringTrainingError, fetches_of, get_default_monitors, tell
from millrace.framework import errors
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, add_to_collection, get_collection
from millrace.framework.library_names import _get_graph_from_inputs
from millrace.framework.session import Session
from millrace.ops import control_flow_ops, lookup_ops, resources, variables
from millrace.protos import definitions
from millrace.train import coordinator, queue_runner
from millrace.train.global_step import assert_global_step, get_global_step
from millrace.train.saver import Saver, load_variable
from millrace.train.session_manager import SessionManager
from millrace.train.supervisor import Supervisor


def get_summary_writer(logdir: str) -> Any:
    """The one writer of a folder."""
    return summary.FileWriterCache.get(logdir)


def clear_summary_writers() -> None:
    """Closes all writers; folders get new ones."""
    summary.FileWriterCache.clear()


# ---- running ----


def run_feeds_iter(output_dict: Dict[str, Any], feed_dicts: Iterable[Any], restore_checkpoint_path: Optional[str] = None) -> Iterator[Dict[str, Any]]:
    """The values of tensors for each feed, in a session that initialises the variables or restores them."""
    if not output_dict:
        raise at_user_line(ValueError("output_dict is invalid: %s." % output_dict))
    if not feed_dicts:
        raise at_user_line(ValueError("feed_dicts is invalid: %s." % (feed_dicts,)))
    with _get_graph_from_inputs(list(output_dict.values())).as_default(), Session() as session:
        session.run(resources.initialize_resources(resources.shared_resources() + resources.local_resources()))
        if restore_checkpoint_path:
            Saver().restore(session, restore_checkpoint_path)
        else:
            session.run(variables.global_variables_initializer())
        session.run([variables.local_variables_initializer(), lookup_ops.tables_initializer()])
        coord = coordinator.Coordinator()
        threads = queue_runner.start_queue_runners(session, coord)
        try:
            for feed in feed_dicts:
                yield session.run(output_dict, feed)
        finally:
            coord.request_stop()
            coord.join(threads, stop_grace_period_secs=120)


def run_feeds(*args: Any, **kwargs: Any) -> List[Dict[str, Any]]:
    """A list of what run_feeds_iter gives."""
    return list(run_feeds_iter(*args, **kwargs))


def run_n(output_dict: Dict[str, Any], feed_dict: Any = None, restore_checkpoint_path: Optional[str] = None, n: int = 1) -> List[Dict[str, Any]]:
    """The values of tensors in n steps."""
    return run_feeds(output_dict, itertools.repeat(feed_dict, n), restore_checkpoint_path)


def infer(restore_checkpoint_path: Optional[str], output_dict: Dict[str, Any], feed_dict: Any = None) -> Dict[str, Any]:
    """The values of tensors in one step."""
    return run_n(output_dict, feed_dict, restore_checkpoint_path)[0]


# ---- training ----


def _step_of(graph: Graph, given: Any) -> Any:
    step = get_global_step(graph) if given is None else given
    if step is None:
        raise at_user_line(ValueError('No "global_step" was provided or found in the graph.'))
    assert_global_step(step)
    return step


def _first(key: str, make: Callable[[], Any]) -> Any:
    """What a collection has; what is made, where it has nothing and something can be made."""
    if not get_collection(key):
        made = make()
        if made is None:
            return None
        add_to_collection(key, made)
    return get_collection(key)[0]


def train(
    graph: Graph,
    output_dir: Optional[str],
    train_op: Any,
    loss_op: Any,
    global_step_tensor: Any = None,
    init_op: Any = None,
    init_feed_dict: Any = None,
    init_fn: Any = None,
    log_every_steps: int = 10,
    supervisor_is_chief: bool = True,
    supervisor_master: str = "",
    supervisor_save_model_secs: float = 600,
    keep_checkpoint_max: Optional[int] = 5,
    supervisor_save_summaries_steps: int = 100,
    feed_fn: Optional[Callable[[], Any]] = None,
    steps: Optional[int] = None,
    fail_on_nan_loss: bool = True,
    monitors: Any = None,
    max_steps: Optional[int] = None,
) -> Any:
    """Trains by a Supervisor, for `steps` more steps or until there were max_steps, or the input ends; the last loss."""
    if steps is not None and max_steps is not None:
        raise at_user_line(ValueError("Can not provide both steps and max_steps."))
    for what, missing in (
        ("Output directory should be non-empty.", not output_dir),
        ("Missing train_op.", train_op is None),
        ("Missing loss_op.", loss_op is None),
    ):
        if missing:
            raise at_user_line(ValueError(what))
    with graph.as_default():
        step_tensor = _step_of(graph, global_step_tensor)
        writer = get_summary_writer(output_dir) if supervisor_is_chief else None  # type: ignore[arg-type]
        if monitors:
            monitors = [monitor for monitor in monitors if supervisor_is_chief or monitor.run_on_all_workers]
        elif supervisor_is_chief:
            written = _first(GraphKeys.SUMMARY_OP, summary.merge_all)
            monitors = get_default_monitors(loss_op, written, supervisor_save_summaries_steps, summary_writer=writer)
        if max_steps is None and steps:
            max_steps = _trained_steps(output_dir, step_tensor) + steps
        for monitor in monitors or ():
            monitor.begin(max_steps=max_steps)
        saved = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        saver = Saver(saved, sharded=True, max_to_keep=keep_checkpoint_max) if saved else None
    supervisor = Supervisor(
        graph,
        init_op=init_op if init_op is not None else Supervisor.USE_DEFAULT,
        init_feed_dict=init_feed_dict,
        is_chief=supervisor_is_chief,
        logdir=output_dir,
        saver=saver,
        global_step=step_tensor,
        summary_op=None,
        summary_writer=writer,
        save_model_secs=supervisor_save_model_secs,
        init_fn=init_fn,
    )
    with supervisor.PrepareSession(supervisor_master, start_standard_services=True) as session:
        supervisor.start_queue_runners(session)
        loss = None
        try:
            for loss in _losses(session, supervisor, step_tensor, [train_op, loss_op], feed_fn, monitors or (), max_steps, log_every_steps):
                if np.isnan(loss) and fail_on_nan_loss:
                    raise NanLossDuringTrainingError
        except (errors.OutOfRangeError, StopIteration) as error:
            tf_logging.info("The input has ended: %s", error)
        finally:
            supervisor.stop(close_summary_writer=False)
            if supervisor_is_chief and supervisor.saver is not None:
                supervisor.saver.save(session, supervisor.save_path, global_step=session.run(step_tensor))
        if supervisor_is_chief:
            for monitor in monitors or ():
                monitor.end()
    return loss


def _trained_steps(output_dir: Any, step_tensor: Any) -> int:
    try:
        return int(load_variable(output_dir, step_tensor.op.name))
    except (errors.NotFoundError, ValueError):
        return 0


def _losses(
    session: Any, supervisor: Supervisor, step_tensor: Any, fetched: List[Any], feed_fn: Any, monitors: Any, max_steps: Optional[int], log_every_steps: int
) -> Iterator[Any]:
    """The loss of each step, until there are enough, or a monitor stops."""
    step = logged = session.run(step_tensor)
    while not supervisor.should_stop() and (max_steps is None or step < max_steps):
        began = time.time()
        feed = feed_fn() if feed_fn is not None else None
        (_, loss), seen = session.run([fetched, fetches_of(monitors, step + 1)], feed)
        stops = tell(monitors, step + 1, {**seen, fetched[1].name: loss}, session)
        yield loss
        if stops:
            return
        before, step = step, session.run(step_tensor)
        if step <= before:
            tf_logging.error("Global step was not incremented by train op at step %d: new step %d", before, step)
        if step == max_steps or step - logged >= log_every_steps:
            tf_logging.info("training step %d, loss = %.5f (%.3f sec/batch).", step, loss, time.time() - began)
            logged = step


# ---- evaluating ----


def evaluate(
    graph: Graph,
    output_dir: Optional[str],
    checkpoint_path: Optional[str],
    eval_dict: Dict[str, Any],
    update_op: Any = None,
    global_step_tensor: Any = None,
    supervisor_master: str = "",
    log_every_steps: int = 10,
    feed_fn: Optional[Callable[[], Any]] = None,
    max_steps: Optional[int] = None,
) -> Tuple[Any, Any]:
    """(the values of eval_dict in the last of max_steps steps, or when the input has ended; the step of the training). They are written as
    summaries into output_dir. Each step runs update_op, or eval_dict where there is none."""
    if not output_dir:
        raise at_user_line(ValueError("Output directory should be non-empty."))
    with graph.as_default():
        step_tensor = _step_of(graph, global_step_tensor)
        saver = _first(GraphKeys.SAVERS, lambda: Saver() if variables.global_variables() else None)
        local = _first(GraphKeys.LOCAL_INIT_OP, lambda: control_flow_ops.group(variables.local_variables_initializer(), lookup_ops.tables_initializer()))
        manager = SessionManager(
            local_init_op=local,
            ready_op=_first(GraphKeys.READY_OP, variables.report_uninitialized_variables),
            ready_for_local_init_op=_first(GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None),
        )
        session, restored = manager.recover_session(supervisor_master, saver, checkpoint_path)
        with session:
            if not restored:
                tf_logging.warning("Failed to initialize from %s.", checkpoint_path)
                session.run(variables.global_variables_initializer())
                if checkpoint_path:
                    saver.restore(session, checkpoint_path)
                session.run(local)
            coord = coordinator.Coordinator()
            threads = queue_runner.start_queue_runners(session, coord)
            trained = session.run(step_tensor)
            results = _evaluated(session, eval_dict, update_op, feed_fn, max_steps, log_every_steps)
            coord.request_stop()
            coord.join(threads, stop_grace_period_secs=120)
    _write(output_dir, results, trained)
    return results, trained


def _evaluated(session: Any, eval_dict: Any, update_op: Any, feed_fn: Any, max_steps: Optional[int], log_every_steps: int) -> Any:
    results, step, feed = None, 0, None
    try:
        while max_steps is None or step < max_steps:
            feed = feed_fn() if feed_fn is not None else None
            made = session.run(eval_dict if update_op is None else update_op, feed)
            step, results = step + 1, made if update_op is None else None
            if step % log_every_steps == 0:
                results = session.run(eval_dict, feed) if results is None else results
                tf_logging.info("Results after %d steps: %s.", step, results)
    except (errors.OutOfRangeError, StopIteration) as error:
        tf_logging.info("The input has ended: %s", error)
    return session.run(eval_dict, feed) if results is None else results


def _write(output_dir: Any, results: Dict[str, Any], step: int) -> None:
    record = definitions.Summary()
    for key, value in results.items():
        if isinstance(value, (float, np.float32)):
            record.value.add(tag=key, simple_value=float(value))
        elif value is not None:
            tf_logging.warning("Skipping summary for %s, must be a float or np.float32.", key)
    writer = get_summary_writer(output_dir)
    writer.add_summary(record, step)
    writer.flush()
