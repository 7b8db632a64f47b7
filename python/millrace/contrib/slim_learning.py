# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.learning: training operations and a training loop."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.framework import arguments
from millrace import gfile, tf_logging
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import constant
from millrace.framework.errors import OutOfRangeError, at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, get_collection, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.variables import trainable_variables
from millrace.protos import definitions
from millrace.timeline import Timeline
from millrace.train.global_step import get_or_create_global_step
from millrace.train import saver as tf_saver, supervisor  # noqa: F401 - programs take them from here
from millrace.train.supervisor import Supervisor

_USE_GLOBAL_STEP = 0


def clip_gradient_norms(gradients_to_variables: Any, max_norm: float) -> List[Tuple[Any, Any]]:
    """Each gradient clipped to a norm."""
    clipped = []
    for grad, var in gradients_to_variables:
        if isinstance(grad, IndexedSlices):
            grad = IndexedSlices(math_ops.clip_by_norm(grad.values, max_norm), grad.indices, grad.dense_shape)
        elif grad is not None:
            grad = math_ops.clip_by_norm(grad, max_norm)
        clipped.append((grad, var))
    return clipped


def multiply_gradients(grads_and_vars: Any, gradient_multipliers: Dict[Any, Any]) -> List[Tuple[Any, Any]]:
    """Gradients times the factors of their variables (by variable or by name)."""
    if not isinstance(grads_and_vars, list):
        raise at_user_line(ValueError("`grads_and_vars` must be a list."))
    if not gradient_multipliers:
        raise at_user_line(ValueError("`gradient_multipliers` is empty."))
    if not isinstance(gradient_multipliers, dict):
        raise at_user_line(ValueError("`gradient_multipliers` must be a dict."))
    scaled = []
    for grad, var in grads_and_vars:
        key = var if var in gradient_multipliers else var.op.name
        if key in gradient_multipliers:
            if grad is None:
                raise at_user_line(ValueError("Requested multiple of `None` gradient."))
            factor = gradient_multipliers[key]
            grad = IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape) if isinstance(grad, IndexedSlices) else grad * factor
        scaled.append((grad, var))
    return scaled


def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = 1,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Any = None,
    check_numerics: bool = True,
    transform_grads_fn: Optional[Callable[[Any], Any]] = None,
) -> Any:
    """The loss, as a tensor whose evaluation does a training step with the updates that layers asked for."""
    if isinstance(global_step, int) and global_step is _USE_GLOBAL_STEP:
        global_step = get_or_create_global_step()
    updates = set(get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
    if updates:
        with control_dependencies(list(updates)):
            barrier = control_flow_ops.no_op(name="update_barrier")
        total_loss = control_flow_ops.with_dependencies([barrier], total_loss)
    grads = optimizer.compute_gradients(
        total_loss,
        variables_to_train or trainable_variables(),
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if gradient_multipliers:
        grads = multiply_gradients(grads, gradient_multipliers)
    if transform_grads_fn:
        grads = transform_grads_fn(grads)
    if clip_gradient_norm > 0:
        grads = clip_gradient_norms(grads, clip_gradient_norm)
    if summarize_gradients:
        from millrace import summary

        for grad, var in grads:
            if grad is not None:
                summary.histogram(var.op.name + "/gradient", grad.values if isinstance(grad, IndexedSlices) else grad)
    updated = optimizer.apply_gradients(grads, global_step=global_step)
    with control_dependencies([updated]):
        if check_numerics:
            from millrace.ops import gen_ops

            total_loss = gen_ops.check_numerics(total_loss, "LossTensor is inf or nan")
        train_op = array_ops.identity(total_loss, name="train_op")
    ops = get_default_graph().get_collection_ref(GraphKeys.TRAIN_OP)
    if train_op not in ops:
        ops.append(train_op)
    return train_op


def _write_trace(metadata: Any, path: str) -> None:
    tf_logging.info("Writing trace to %s", path)
    with gfile.GFile(path, "w") as file:
        file.write(Timeline(metadata.step_stats).generate_chrome_trace_format())


def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Dict[str, Any]) -> Tuple[Any, bool]:
    """(the loss of one step, whether to stop), as tensors of train_step_kwargs say: should_trace (into logdir), should_log and should_stop."""
    metadata, options, began = None, None, time.time()
    if "should_trace" in train_step_kwargs:
        if "logdir" not in train_step_kwargs:
            raise at_user_line(ValueError("logdir must be present in train_step_kwargs when should_trace is present"))
        if sess.run(train_step_kwargs["should_trace"]):
            metadata, options = definitions.RunMetadata(), definitions.RunOptions(trace_level=definitions.RunOptions.FULL_TRACE)
    loss = sess.run(train_op, options=options, run_metadata=metadata)
    took = time.time() - began
    if metadata is not None:
        _write_trace(metadata, os.path.join(train_step_kwargs["logdir"], "tf_trace-%d.json" % sess.run(global_step)))
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        tf_logging.info("global step %d: loss = %.4f (%.3f sec/step)", sess.run(global_step), loss, took)
    return loss, "should_stop" in train_step_kwargs and bool(sess.run(train_step_kwargs["should_stop"]))


def _step_arguments(global_step: Any, number_of_steps: Optional[int], log_every_n_steps: int, trace_every_n_steps: Any, logdir: Any) -> Dict[str, Any]:
    """What a step function is told."""
    with name_scope("train_step"):
        made: Dict[str, Any] = {"should_stop": gen_ops.greater_equal(global_step, number_of_steps) if number_of_steps else constant(False)}
        if log_every_n_steps > 0:
            made["should_log"] = gen_ops.equal(math_ops.mod(global_step, log_every_n_steps), 0)
        if trace_every_n_steps is not None:
            made.update(should_trace=gen_ops.equal(math_ops.mod(global_step, trace_every_n_steps), 0), logdir=logdir)
        return made


def _wait_for_step(sess: Any, global_step: Any, step: int) -> None:
    while sess.run(global_step) < step:
        time.sleep(1)


def train(
    train_op: Any,
    logdir: Optional[str],
    train_step_fn: Any = train_step,
    train_step_kwargs: Any = None,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: Optional[int] = None,
    init_op: Any = Supervisor.USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = Supervisor.USE_DEFAULT,
    init_fn: Any = None,
    ready_op: Any = Supervisor.USE_DEFAULT,
    summary_op: Any = Supervisor.USE_DEFAULT,
    save_summaries_secs: float = 600,
    summary_writer: Any = Supervisor.USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: float = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Any = None,
    trace_every_n_steps: Any = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Runs the training operation until a step function says stop; returns the last loss. Workers but the chief begin at startup_delay_steps.

    Threads that do not stop in time are left behind with a warning, whatever ignore_live_threads says."""
    del ignore_live_threads  # they are left behind in any case
    arguments.only(None, sync_optimizer=sync_optimizer)
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    graph = graph or (train_op.graph if isinstance(train_op, Tensor) else get_default_graph())
    with graph.as_default():
        global_step = get_or_create_global_step() if global_step is None else global_step
    if logdir is None:
        given = dict(summary_op=None if summary_op is Supervisor.USE_DEFAULT else summary_op, saver=saver, trace_every_n_steps=trace_every_n_steps)
        for name in (name for name, value in given.items() if value is not None):
            raise at_user_line(ValueError("Cannot provide %s because logdir=None" % name))
    if train_step_kwargs is None:
        with graph.as_default():
            traced = trace_every_n_steps if is_chief else None
            train_step_kwargs = _step_arguments(global_step, number_of_steps, log_every_n_steps, traced, logdir)
    watcher = Supervisor(
        graph=graph,
        is_chief=is_chief,
        logdir=logdir,
        init_op=init_op,
        init_feed_dict=init_feed_dict,
        local_init_op=local_init_op,
        ready_op=ready_op,
        summary_op=summary_op if logdir else None,
        global_step=global_step,
        saver=saver or Supervisor.USE_DEFAULT,
        save_summaries_secs=save_summaries_secs,
        save_model_secs=save_interval_secs,
        init_fn=init_fn,
        summary_writer=summary_writer,
    )
    loss = None
    with watcher.managed_session(master, config=session_config) as sess:
        if session_wrapper is not None:
            sess = session_wrapper(sess)
        if not is_chief and startup_delay_steps > 0:
            _wait_for_step(sess, global_step, min(startup_delay_steps, number_of_steps or sys.maxsize))
        stop = False
        try:
            while not stop and not watcher.should_stop():
                loss, stop = train_step_fn(sess, train_op, global_step, train_step_kwargs)
        except OutOfRangeError as error:  # the end of the input
            tf_logging.info("Caught OutOfRangeError. Stopping Training. %s", error)
        if logdir and watcher.is_chief and watcher.saver:
            watcher.saver.save(sess, watcher.save_path, global_step=global_step)
    return loss
