# SPDX-License-Identifier: Apache-2.0
"""What is called before and after each step of a monitored session."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from millrace import gfile
from millrace import tf_logging as logging
from millrace.framework import dtypes, errors  # noqa: F401
from millrace.framework.errors import OutOfRangeError
from millrace.framework.graph import GraphKeys, get_collection, get_default_graph
from millrace.protos import definitions
from millrace.train import meta_graph
from millrace.train.global_step import _get_or_create_global_step_read, get_global_step
from millrace.train.saver import write_graph


class SessionRunArgs(NamedTuple("_SessionRunArgs", [("fetches", Any), ("feed_dict", Any), ("options", Any)])):
    """What a hook adds to a step."""

    def __new__(cls, fetches: Any, feed_dict: Any = None, options: Any = None) -> "SessionRunArgs":
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunValues(NamedTuple("_SessionRunValues", [("results", Any), ("options", Any), ("run_metadata", Any)])):
    """What a step gave for a hook."""


class SessionRunContext:
    """The step that is being run."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self._original_args, self._session, self._stop = original_args, session, False

    original_args = property(lambda self: self._original_args, doc="What the caller of run() asked for.")
    session = property(lambda self: self._session, doc="The session.")
    stop_requested = property(lambda self: self._stop, doc="Whether a hook asked to stop.")

    def request_stop(self) -> None:
        """Makes should_stop() of the session true."""
        self._stop = True


class SessionRunHook:
    """Base of hooks."""

    def begin(self) -> None:
        """Called once, before the session is made; may add to the graph."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Called when the session is there."""

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Called before each step; may return SessionRunArgs."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step."""

    def end(self, session: Any) -> None:
        """Called at the end, unless there was an error."""


_STEPS_WITHOUT_ONE = 20  # runs that leave the global step as it is, before somebody is told


class SecondOrStepTimer:
    """Every so many steps or seconds."""

    def __init__(self, every_secs: Optional[float] = None, every_steps: Optional[int] = None) -> None:
        if (every_steps is None) == (every_secs is None):
            raise ValueError("exactly one of every_steps and every_secs should be provided.")
        self._steps, self._secs = every_steps, every_secs
        self._step: Optional[int] = None
        self._time = 0.0

    def reset(self) -> None:
        """Forgets when it last was time."""
        self._step, self._time = None, 0.0

    def last_triggered_step(self) -> Optional[int]:
        """When it last was time."""
        return self._step

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is time again."""
        if self._step is None:
            return True
        if self._step == step:
            return False
        return time.time() >= self._time + self._secs if self._secs is not None else step >= self._step + (self._steps or 1)

    def update_last_triggered_step(self, step: int) -> Any:
        """(seconds, steps) since the last time."""
        now = time.time()
        passed = (None, None) if self._step is None else (now - self._time, step - self._step)
        self._step, self._time = step, now
        return passed


def _step_tensor() -> Any:
    """The steps before this one, where increments wait for it. The variable itself is fetched as the step leaves it."""
    found = _get_or_create_global_step_read()
    if found is None:
        raise RuntimeError("A global step is needed: call tf.train.get_or_create_global_step() when building the graph.")
    return found


class LoggingTensorHook(SessionRunHook):
    """Logs tensors every so many steps or seconds."""

    def __init__(
        self, tensors: Any, every_n_iter: Optional[int] = None, every_n_secs: Optional[float] = None, at_end: bool = False, formatter: Any = None
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError("invalid every_n_iter=%s." % every_n_iter)
        if not isinstance(tensors, dict):
            self._order = [t if isinstance(t, str) else t.name for t in tensors]
            tensors = dict(zip(self._order, tensors))
        else:
            self._order = list(tensors)
        self._tensors, self._formatter, self._at_end = tensors, formatter, at_end
        self._timer = SecondOrStepTimer(every_n_secs, every_n_iter) if not only_at_end else None
        self._iteration, self._now = 0, False

    def begin(self) -> None:
        """Finds the tensors."""
        if self._timer:
            self._timer.reset()
        self._iteration = 0
        graph = get_default_graph()
        self._current = {n: graph.as_graph_element(t) for n, t in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for the tensors when it is time."""
        self._now = self._timer is not None and self._timer.should_trigger_for_step(self._iteration)
        return SessionRunArgs(self._current) if self._now else None

    def _log(self, values: Dict[str, Any]) -> None:
        seconds, _ = self._timer.update_last_triggered_step(self._iteration) if self._timer else (None, None)
        if self._formatter:
            logging.info(self._formatter(values))
        else:
            text = ", ".join("%s = %s" % (n, np.array2string(np.asarray(values[n]), precision=6)) for n in self._order)
            logging.info(text + (" (%.3f sec)" % seconds if seconds is not None else ""))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs."""
        if self._now:
            self._log(run_values.results)
        self._iteration += 1

    def end(self, session: Any) -> None:
        """Logs once more, if wanted."""
        if self._at_end:
            self._log(session.run(self._current))


_READERS = ("ReadVariableOp", "IsVariableInitialized", "VarIsInitializedOp")


def _changes(user: Any) -> bool:
    """Whether an operation that takes a variable writes into it, once training has begun, or one in a branch that it hands it to."""
    if user.type in ("Switch", "RefSwitch"):
        return any(_changes(inner) for output in user.outputs for inner in output.consumers())
    if user.type in ("Assign", "AssignVariableOp"):
        first = user.name.rpartition("/")[0] == user.inputs[0].op.name
        return not first and not user.inputs[1].op.type.startswith("Restore")
    by_reference = any(arg.is_ref for arg in user.op_def.input_arg) or user.inputs[0].dtype == dtypes.resource
    return by_reference and user.type not in _READERS


class StopAtStepHook(SessionRunHook):
    """Stops after a number of steps, or at a step.

    Where one step is asked for and nothing in the graph advances the global step, as programs of before 1.4 may have it, the first run is that step."""

    def __init__(self, num_steps: Optional[int] = None, last_step: Optional[int] = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("Exactly one of num_steps or last_step must be specified.")
        self._num_steps, self._last_step = num_steps, last_step

    def begin(self) -> None:
        """Finds the global step."""
        self._step = _step_tensor()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads where it begins."""
        if self._last_step is None:
            self._last_step = int(session.run(self._step)) + (self._num_steps or 0)

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for the global step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Stops when it is time."""
        if int(run_values.results) + 1 >= (self._last_step or 0):
            if int(run_context.session.run(self._step)) >= (self._last_step or 0) or (self._num_steps == 1 and not self._advances()):
                run_context.request_stop()

    def _advances(self) -> bool:
        return any(_changes(user) for user in get_global_step().op.outputs[0].consumers())


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint every so many seconds or steps."""

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: Optional[float] = None,
        save_steps: Optional[int] = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Any = None,
        steps_per_run: int = 1,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._dir = gfile.as_path(checkpoint_dir)
        self._path = os.path.join(self._dir, checkpoint_basename)
        self._writer: Any = None
        self._saver, self._scaffold, self._timer = saver, scaffold, SecondOrStepTimer(save_secs, save_steps)
        self._listeners, self._steps_per_run = list(listeners or []), steps_per_run

    def begin(self) -> None:
        """Finds the global step."""
        from millrace.summary import FileWriterCache

        self._writer = FileWriterCache.get(self._dir)
        self._step = _step_tensor()
        for listener in self._listeners:
            listener.begin()

    def _the_saver(self) -> Any:
        if self._saver is None and self._scaffold is not None:
            self._saver = self._scaffold.saver
        if self._saver is None:
            found = get_collection(GraphKeys.SAVERS)
            if len(found) != 1:
                raise RuntimeError(
                    "%s items in collection %s. Please pass a saver or scaffold to CheckpointSaverHook."
                    % ("More than one" if found else "No", GraphKeys.SAVERS)
                )
            self._saver = found[0]
        return self._saver

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Writes the graph, which is whole by now, and the values with which the training begins."""
        graph = get_default_graph()
        gfile.MakeDirs(self._dir)
        write_graph(graph.as_graph_def(add_shapes=True), self._dir, "graph.pbtxt")
        self._writer.add_graph(graph)
        saver = self._the_saver()
        self._writer.add_meta_graph(meta_graph.create_meta_graph_def(graph=graph, saver_def=saver.saver_def if saver else None))
        self.save_now(session)

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for the global step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves when it is time."""
        if self._timer.should_trigger_for_step(int(run_values.results) + self._steps_per_run):
            step = int(run_context.session.run(self._step))
            if self._timer.should_trigger_for_step(step):
                self._timer.update_last_triggered_step(step)
                if self._save(run_context.session, step):
                    run_context.request_stop()

    def save_now(self, session: Any) -> None:
        """Saves, whatever the time, unless this step is saved."""
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._timer.update_last_triggered_step(step)
            self._save(session, step)

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def _save(self, session: Any, step: int) -> bool:
        """Whether a listener asks to stop."""
        logging.info("Saving checkpoints for %d into %s.", step, self._path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._the_saver().save(session, self._path, global_step=step)
        wants_stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                logging.info("%s asks the training to stop after the checkpoint of step %d.", type(listener).__name__, step)
                wants_stop = True
        self._writer.add_session_log(definitions.SessionLog(status=definitions.SessionLog.CHECKPOINT, checkpoint_path=self._path), step)
        return wants_stop

    def end(self, session: Any) -> None:
        """Saves the last values."""
        step = int(session.run(self._step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)


class StepCounterHook(SessionRunHook):
    """Records how many steps there are a second."""

    def __init__(
        self,
        every_n_steps: Optional[int] = 100,
        every_n_secs: Optional[float] = None,
        output_dir: Optional[str] = None,
        summary_writer: Any = None,
        steps_per_run: int = 1,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._writer, self._dir, self._steps_per_run = summary_writer, output_dir, steps_per_run
        self._seen: Optional[int] = None
        self._times_seen, self._times_to_tell = 0, _STEPS_WITHOUT_ONE

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step."""
        self._step = _step_tensor()
        self._tag = get_global_step().op.name + "/sec"
        if self._writer is None and self._dir:
            from millrace.summary import FileWriterCache

            self._writer = FileWriterCache.get(self._dir)

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for the global step."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Records when it is time."""
        self._look_whether_it_moves(int(run_values.results))
        if not self._timer.should_trigger_for_step(int(run_values.results) + self._steps_per_run):
            return
        step = int(run_context.session.run(self._step))
        if self._timer.should_trigger_for_step(step):
            seconds, steps = self._timer.update_last_triggered_step(step)
            if seconds:
                self._log_and_record(steps, seconds, step)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        """What subclasses override to record more."""
        self._record(self._tag, elapsed_steps / elapsed_time, global_step)

    def _record(self, tag: str, rate: float, step: int) -> None:
        if self._writer is not None:
            self._writer.add_summary(definitions.Summary(value=[definitions.Summary.Value(tag=tag, simple_value=rate)]), step)
        logging.info("%s: %g", tag, rate)

    def _look_whether_it_moves(self, step: int) -> None:
        if step == self._seen:
            self._times_seen += 1
        else:
            self._seen, self._times_seen, self._times_to_tell = step, 0, _STEPS_WITHOUT_ONE
        if self._times_seen == self._times_to_tell:
            self._times_to_tell *= 2
            logging.warning(
                "The global step (tf.train.get_global_step) is %d and has not been increased for %d runs: minimize takes it as `global_step`.",
                step,
                self._times_seen,
            )


class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Stops, or fails, when a loss is not a number."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fail = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Looks at it."""
        if np.isnan(run_values.results):
            if self._fail:
                raise NanLossDuringTrainingError
            logging.warn("Model diverged with loss = NaN.")
            run_context.request_stop()


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds."""

    def __init__(
        self,
        save_steps: Optional[int] = None,
        save_secs: Optional[float] = None,
        output_dir: Optional[str] = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("exactly one of scaffold or summary_op must be provided.")
        self._summary_op, self._scaffold, self._writer, self._dir = summary_op, scaffold, summary_writer, output_dir
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._now = False

    def begin(self) -> None:
        """Finds the global step."""
        self._step = _step_tensor()
        if self._writer is None and self._dir:
            from millrace.summary import FileWriterCache

            self._writer = FileWriterCache.get(self._dir)
        self._next: Optional[int] = None

    def _ops(self) -> List[Any]:
        op = self._summary_op if self._summary_op is not None else self._scaffold.summary_op if self._scaffold is not None else None
        return [] if op is None else list(op) if isinstance(op, (list, tuple)) else [op]

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for the summaries when it is time."""
        self._now = self._next is None or self._timer.should_trigger_for_step(self._next)
        request: Dict[str, Any] = {"step": self._step}
        if self._now and self._ops():
            request["summary"] = self._ops()
        return SessionRunArgs(request)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes them."""
        step = int(run_values.results["step"]) + 1
        if self._next is None or self._now:
            step = int(run_context.session.run(self._step))
        if self._next is None and self._writer is not None:
            self._writer.add_session_log(definitions.SessionLog(status=definitions.SessionLog.START), step)
        if self._now:
            self._timer.update_last_triggered_step(step)
            for record in run_values.results.get("summary", []):
                if self._writer is not None:
                    self._writer.add_summary(record, step)
        self._next = step + 1

    def end(self, session: Any) -> None:
        """Writes what is still in memory."""
        if self._writer is not None:
            self._writer.flush()


class FinalOpsHook(SessionRunHook):
    """Runs operations at the end."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._ops, self._feed = final_ops, final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: Any) -> None:
        """Runs them."""
        if self._ops is None:
            return
        try:
            self.final_ops_values = session.run(self._ops, self._feed)
        except OutOfRangeError:
            logging.warning("The operations of FinalOpsHook have a dependency back to some input source, which has ended: give it those of variables alone.")
            raise


class GlobalStepWaiterHook(SessionRunHook):
    """Waits until the global step has got so far."""

    def __init__(self, wait_until_step: int) -> None:
        self._wanted, self._done = wait_until_step, False

    def begin(self) -> None:
        """Finds the global step."""
        self._step = _step_tensor()

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Waits."""
        while not self._done and self._wanted > 0:
            self._done = int(run_context.session.run(self._step)) >= self._wanted
            if not self._done:
                time.sleep(0.5)
        return None


class ProfilerHook(SessionRunHook):
    """Writes timeline-STEP.json, which Chrome's trace viewer shows, every so many steps or seconds."""

    def __init__(
        self, save_steps: Optional[int] = None, save_secs: Optional[float] = None, output_dir: str = "", show_dataflow: bool = True, show_memory: bool = False
    ) -> None:
        self._path = os.path.join(output_dir, "timeline-{}.json")
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._show_dataflow, self._show_memory = show_dataflow, show_memory
        self._dir = output_dir
        self._next: Optional[int] = None

    def begin(self) -> None:
        """Finds the global step."""
        from millrace.summary import FileWriterCache

        self._step, self._next, self._writer = _step_tensor(), None, FileWriterCache.get(self._dir)

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Asks for the step's times when it is time: not for those of the first step, in which much is made ready."""
        del run_context  # the form of all hooks
        self._now = self._next is not None and self._timer.should_trigger_for_step(self._next)
        options = definitions.RunOptions(trace_level=definitions.RunOptions.FULL_TRACE) if self._now else None
        return SessionRunArgs({"step": self._step}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes them."""
        step = int(run_values.results["step"]) + 1
        if self._next is None:
            self._timer.update_last_triggered_step(step - 1)
        if self._now:
            step = int(run_context.session.run(self._step))
            self._timer.update_last_triggered_step(step)
            from millrace.timeline import Timeline

            path = self._path.format(step)
            logging.info("Saving timeline for %d into '%s'.", step, path)
            with gfile.Open(path, "w") as file:
                file.write(Timeline(run_values.run_metadata.step_stats).generate_chrome_trace_format(self._show_dataflow, self._show_memory))
            self._writer.add_run_metadata(run_values.run_metadata, "step_%d" % step)
        self._next = step + 1


class FeedFnHook(SessionRunHook):
    """Feeds what a function returns."""

    def __init__(self, feed_fn: Any) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Feeds it."""
        return SessionRunArgs(None, feed_dict=self.feed_fn())


class CheckpointSaverListener:
    """Base of what is told about checkpoints."""

    def begin(self) -> None:
        """Called once."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before each checkpoint."""

    def after_save(self, session: Any, global_step_value: int) -> Any:
        """Called after each checkpoint; what is true asks the training to stop."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end."""
