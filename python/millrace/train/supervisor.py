# SPDX-License-Identifier: Apache-2.0
"""tf.train.Supervisor: a session that is initialised or restored, and saved and summarised by threads beside the program."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Callable, Iterator, List, Optional

from millrace import tf_logging
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, get_default_graph
from millrace.ops import control_flow_ops, lookup_ops, variables
from millrace.protos import definitions
from millrace.train import meta_graph
from millrace.train.coordinator import Coordinator, LooperThread
from millrace.train.global_step import global_step as global_step_value
from millrace.train.saver import Saver, write_graph
from millrace.train.session_manager import SessionManager
from millrace.train.signals import SupervisedSignals


class Supervisor:
    """Prepares sessions of a training program, and looks after checkpoints and summaries while it runs."""

    USE_DEFAULT = 0

    def __init__(
        self,
        graph: Any = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: Optional[str] = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Optional[Callable[[Any], None]] = None,
        local_init_run_options: Any = None,
    ) -> None:
        from millrace import summary

        self._graph = get_default_graph() if graph is None else graph
        with self._graph.as_default():
            self.ready_op = self._given(ready_op, GraphKeys.READY_OP, variables.report_uninitialized_variables)
            self.ready_for_local_init_op = self._given(ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None)
            self.init_op = self._given(init_op, GraphKeys.INIT_OP, variables.global_variables_initializer)
            self.local_init_op = self._given(
                local_init_op, GraphKeys.LOCAL_INIT_OP, lambda: control_flow_ops.group(variables.local_variables_initializer(), lookup_ops.tables_initializer())
            )
            self.saver = self._given(saver, GraphKeys.SAVERS, lambda: Saver() if variables.global_variables() else None)
            self.summary_op = self._given(summary_op, GraphKeys.SUMMARY_OP, summary.merge_all)
            self.global_step = self._given(global_step, GraphKeys.GLOBAL_STEP, self._default_global_step_tensor)
        self._meta_graph_def = meta_graph.create_meta_graph_def(graph=self._graph, saver_def=self.saver.saver_def if self.saver else None)
        self.is_chief, self.init_feed_dict, self.init_fn, self.coord = is_chief, init_feed_dict, init_fn, Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._logdir: Optional[str] = None
        self.save_summaries_secs: Optional[float] = None
        self.save_model_secs: Optional[float] = None
        self.save_path: Optional[str] = None
        self.summary_writer: Any = None
        if is_chief:
            self._logdir, self.save_summaries_secs, self.save_model_secs = logdir, save_summaries_secs, save_model_secs
            if logdir:
                self.save_path = os.path.join(logdir, checkpoint_basename)
            if summary_writer is not self.USE_DEFAULT:
                self.summary_writer = summary_writer
            elif logdir:
                self.summary_writer = summary.FileWriter(logdir)
        self._wrote_graph = False
        self.session_manager = session_manager or SessionManager(
            self.local_init_op, self.ready_op, self.ready_for_local_init_op, self._graph, recovery_wait_secs, local_init_run_options
        )
        self._check_devices()
        self._graph.finalize()

    def _given(self, value: Any, key: str, make: Callable[[], Any]) -> Any:
        """What the program gave, what a collection has, or something new that the collection then has."""
        if value is not self.USE_DEFAULT or isinstance(value, bool):
            return value
        found = self._graph.get_collection(key)
        if len(found) > 1:
            tf_logging.info("Found %d %s operations. Returning the first one.", len(found), key)
        if found:
            return found[0]
        made = make()
        if made is not None:
            self._graph.add_to_collection(key, made)
        return made

    def _default_global_step_tensor(self) -> Any:
        operation = self._graph._find("global_step")
        if operation is None:
            return None
        dtype = operation.outputs[0].dtype.base_dtype
        if dtype not in (dtypes.int32, dtypes.int64) and operation.type != "VarHandleOp":
            tf_logging.warning("Found 'global_step' is not an int type: %s", dtype)
            return None
        if operation.type == "VarHandleOp":
            return next((v for v in self._graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if v.op is operation), None)
        return operation.outputs[0]

    def _check_devices(self) -> None:
        """A worker's variables lie where the chief's do: it must be told."""
        for op in self._graph.get_operations() if not self.is_chief else ():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise at_user_line(ValueError("When using replicas, all Variables must have their device set: %s" % op))

    coordinator = property(lambda self: self.coord, doc="The coordinator of its threads.")

    def prepare_or_wait_for_session(
        self, master: str = "", config: Any = None, wait_for_checkpoint: bool = False, max_wait_secs: float = 7200, start_standard_services: bool = True
    ) -> Any:
        """A session that is ready: restored from logdir where it has a checkpoint, else initialised; a worker waits for the chief."""
        self.coord.clear_stop()
        if self.summary_writer:
            self.summary_writer.reopen()
        if self.is_chief:
            session = self.session_manager.prepare_session(
                master,
                init_op=self.init_op,
                saver=self.saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self.init_feed_dict,
                init_fn=self.init_fn,
            )
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(session)
        else:
            session = self.session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    PrepareSession = prepare_or_wait_for_session

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self.summary_writer and not self._wrote_graph:
            self.summary_writer.add_graph(self._graph)
            self.summary_writer.add_meta_graph(self._meta_graph_def)
            self._wrote_graph = True

    def start_standard_services(self, sess: Any) -> Optional[List[Any]]:
        """Starts the threads that write summaries, steps a second and checkpoints; the chief has them."""
        if not self.is_chief:
            raise at_user_line(RuntimeError("Only chief supervisor can start standard services. Because only chief supervisors can write events."))
        if not self._logdir:
            tf_logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self.global_step is not None and self.summary_writer:
            self.summary_writer.add_session_log(definitions.SessionLog(status=definitions.SessionLog.START), self._step(sess))
        threads: List[LooperThread] = []
        if self.save_summaries_secs and self.summary_writer:
            if self.summary_op is not None:
                threads.append(SVSummaryThread(self, sess))
            if self.global_step is not None:
                threads.append(SVStepCounterThread(self, sess))
        if self.saver and self.save_model_secs:
            threads.append(SVTimerCheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    StartStandardServices = start_standard_services

    def _step(self, sess: Any) -> Optional[int]:
        return global_step_value(sess, self.global_step) if self.global_step is not None else None

    def summary_computed(self, sess: Any, summary: Any, global_step: Optional[int] = None) -> None:
        """Writes a summary into the event file."""
        if not self.summary_writer:
            raise at_user_line(RuntimeError("Writing a summary requires a summary writer."))
        self.summary_writer.add_summary(summary, self._step(sess) if global_step is None else global_step)

    SummaryComputed = summary_computed

    def start_queue_runners(self, sess: Any, queue_runners: Any = None) -> List[Any]:
        """Starts the threads of queue runners, those of the graph unless given."""
        threads: List[Any] = []
        for runner in self._graph.get_collection(GraphKeys.QUEUE_RUNNERS) if queue_runners is None else queue_runners:
            threads.extend(runner.create_threads(sess, coord=self.coord, daemon=True, start=True))
        return threads

    StartQueueRunners = start_queue_runners

    def loop(self, timer_interval_secs: Optional[float], target: Any, args: Any = None, kwargs: Any = None) -> LooperThread:
        """A thread that calls a function again and again until the supervisor stops."""
        looper = LooperThread(self.coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    Loop = loop

    def should_stop(self) -> bool:
        """Whether somebody asked to stop."""
        return self.coord.should_stop()

    ShouldStop = should_stop

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop."""
        self.coord.request_stop(ex)

    RequestStop = request_stop

    def stop_on_exception(self) -> Any:
        """A context in which an exception stops the threads."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Waits until somebody asks to stop."""
        self.coord.wait_for_stop()

    def stop(self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False) -> None:
        """Stops and joins the threads."""
        self.coord.request_stop()
        try:
            self.coord.join(threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer:
                self.summary_writer.add_session_log(definitions.SessionLog(status=definitions.SessionLog.STOP))
                self.summary_writer.close()
                self._wrote_graph = False

    Stop = stop

    @contextlib.contextmanager
    def managed_session(self, master: str = "", config: Any = None, start_standard_services: bool = True, close_summary_writer: bool = True) -> Iterator[Any]:
        """A context with a session; at its end threads stop, and what they raised is raised. OutOfRangeError ends it quietly."""
        session, signals, leave = None, None, None
        try:
            session = self.prepare_or_wait_for_session(master, config, start_standard_services=start_standard_services)
            signals = SupervisedSignals(self, session)
            with session.as_default():
                yield session
        except Exception as error:  # pylint: disable=broad-except
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer, ignore_live_threads=True)
            finally:
                if signals is not None:
                    leave = signals.end()
                if session is not None:
                    session.close()
        if leave is not None:
            leave()


class SVSummaryThread(LooperThread):
    """Writes the summary again and again."""

    def __init__(self, sv: Supervisor, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv, self._sess = sv, sess

    def run_loop(self) -> None:
        """Writes it once."""
        if self._sv.global_step is not None:
            record, step = self._sess.run([self._sv.summary_op, self._sv.global_step])
        else:
            record, step = self._sess.run(self._sv.summary_op), None
        if self._sv.summary_writer:
            tf_logging.info("Recording summary at step %s.", step)
            self._sv.summary_writer.add_summary(record, step)


class SVStepCounterThread(LooperThread):
    """Writes how many steps a second are made."""

    def __init__(self, sv: Supervisor, sess: Any, step_counter: Any = None) -> None:
        super().__init__(sv.coord, sv.save_summaries_secs)
        self._sv, self._sess, self._counter = sv, sess, sv.global_step if step_counter is None else step_counter
        self._tag = "%s/sec" % self._counter.op.name
        self._last_time, self._last_step = 0.0, 0

    def start_loop(self) -> None:
        """Counts from here."""
        self._last_time, self._last_step = time.time(), global_step_value(self._sess, self._counter)

    def run_loop(self) -> None:
        """Writes the steps a second since the last time."""
        step, now = global_step_value(self._sess, self._counter), time.time()
        rate = (step - self._last_step) / (now - self._last_time) if now > self._last_time else float("inf")
        self._last_time, self._last_step = now, step
        if self._sv.summary_writer:
            record = definitions.Summary()
            record.value.add(tag=self._tag, simple_value=rate)
            self._sv.summary_writer.add_summary(record, step)
        tf_logging.log_first_n(tf_logging.INFO, "%s: %g", 10, self._tag, rate)


class SVTimerCheckpointThread(LooperThread):
    """Writes a checkpoint again and again."""

    def __init__(self, sv: Supervisor, sess: Any) -> None:
        super().__init__(sv.coord, sv.save_model_secs)
        self._sv, self._sess = sv, sess

    def run_loop(self) -> None:
        """Writes one."""
        tf_logging.info("Saving checkpoint to path %s", self._sv.save_path)
        self._sv.saver.save(self._sess, self._sv.save_path, global_step=self._sv.global_step)
        if self._sv.summary_writer and self._sv.global_step is not None:
            self._sv.summary_writer.add_session_log(
                definitions.SessionLog(status=definitions.SessionLog.CHECKPOINT, checkpoint_path=self._sv.save_path),
                global_step_value(self._sess, self._sv.global_step),
            )
