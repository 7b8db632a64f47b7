# SPDX-License-Identifier: Apache-2.0
"""tf.train.Supervisor: a session that is initialised or restored, and saved and summarised by threads beside the program."""
from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Callable, Iterator, List, Optional

from millrace.framework.graph import GraphKeys, get_collection, get_default_graph
from millrace.ops import control_flow_ops, variables
from millrace.train.coordinator import Coordinator, LooperThread
from millrace.train.global_step import get_global_step
from millrace.train.global_step import global_step as global_step_value
from millrace.train.monitored_session import SessionManager
from millrace.train.saver import Saver


class Supervisor:
    """Prepares sessions of a training program, and looks after checkpoints and summaries while it runs."""

    USE_DEFAULT = 0

    def __init__(self, graph: Any = None, ready_op: Any = USE_DEFAULT, ready_for_local_init_op: Any = USE_DEFAULT, is_chief: bool = True,
                 init_op: Any = USE_DEFAULT, init_feed_dict: Any = None, local_init_op: Any = USE_DEFAULT, logdir: Optional[str] = None,
                 summary_op: Any = USE_DEFAULT, saver: Any = USE_DEFAULT, global_step: Any = USE_DEFAULT, save_summaries_secs: float = 120,
                 save_model_secs: float = 600, recovery_wait_secs: float = 30, stop_grace_secs: float = 120, checkpoint_basename: str = "model.ckpt",
                 session_manager: Any = None, summary_writer: Any = USE_DEFAULT, init_fn: Optional[Callable[[Any], None]] = None,
                 local_init_run_options: Any = None) -> None:
        self._graph = graph or get_default_graph()
        with self._graph.as_default():
            self.ready_op = self._given(ready_op, GraphKeys.READY_OP, variables.report_uninitialized_variables)
            self.init_op = self._given(init_op, GraphKeys.INIT_OP, variables.global_variables_initializer)
            self.ready_for_local_init_op = self._given(ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None)
            self.local_init_op = self._given(local_init_op, GraphKeys.LOCAL_INIT_OP, lambda: control_flow_ops.group(
                variables.local_variables_initializer(), *get_collection(GraphKeys.TABLE_INITIALIZERS)))
            from millrace import summary
            self.summary_op = self._given(summary_op, GraphKeys.SUMMARY_OP, summary.merge_all)
            self.saver = self._given(saver, GraphKeys.SAVERS, lambda: Saver(allow_empty=True) if variables.global_variables() else None)
            self.global_step = get_global_step() if global_step is self.USE_DEFAULT else global_step
        self.is_chief, self.init_feed_dict, self.init_fn = is_chief, init_feed_dict, init_fn
        self.save_summaries_secs, self.save_model_secs, self._stop_grace_secs = save_summaries_secs, save_model_secs, stop_grace_secs
        self._logdir = logdir if is_chief else None
        self.save_path = os.path.join(logdir, checkpoint_basename) if logdir and is_chief else None
        if summary_writer is not self.USE_DEFAULT:
            self.summary_writer = summary_writer
        else:
            self.summary_writer = summary.FileWriter(logdir) if self._logdir else None
        self.coord = Coordinator()
        self.session_manager = session_manager or SessionManager(self.local_init_op, self.ready_op, self.ready_for_local_init_op, self._graph,
                                                                 recovery_wait_secs, local_init_run_options)
        self._wrote_graph = False
        self._graph.finalize()

    def _given(self, value: Any, key: str, make: Callable[[], Any]) -> Any:
        """What the program gave, what a collection has, or something new that the collection then has."""
        if value is not self.USE_DEFAULT or isinstance(value, bool):
            return value
        found = get_collection(key)
        if found:
            return found[0]
        made = make()
        if made is not None:
            self._graph.add_to_collection(key, made)
        return made

    coordinator = property(lambda self: self.coord, doc="The coordinator of its threads.")

    def prepare_or_wait_for_session(self, master: str = "", config: Any = None, wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
                                    start_standard_services: bool = True) -> Any:
        """A session that is ready: restored from logdir where it has a checkpoint, else initialised."""
        self.coord.clear_stop()
        if self.summary_writer and hasattr(self.summary_writer, "reopen"):
            self.summary_writer.reopen()
        if self.is_chief:
            session = self.session_manager.prepare_session(
                master, init_op=self.init_op, saver=self.saver, checkpoint_dir=self._logdir, wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs, config=config, init_feed_dict=self.init_feed_dict, init_fn=self.init_fn)
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
        if self.summary_writer and not self._wrote_graph:
            self.summary_writer.add_graph(self._graph)
            self._wrote_graph = True

    def start_standard_services(self, sess: Any) -> List[Any]:
        """Starts the threads that write summaries and checkpoints; the chief has them."""
        if not self.is_chief:
            raise RuntimeError("Only chief supervisor can start standard services.")
        threads = []
        if self._logdir and self.summary_op is not None and self.summary_writer and self.save_summaries_secs:
            threads.append(self.loop(self.save_summaries_secs, self._summarise, (sess,)))
        if self._logdir and self.saver and self.save_path and self.save_model_secs:
            threads.append(self.loop(self.save_model_secs, self._save, (sess,)))
        return threads

    def _step(self, sess: Any) -> Optional[int]:
        return global_step_value(sess, self.global_step) if self.global_step is not None else None

    def _summarise(self, sess: Any) -> None:
        self.summary_computed(sess, sess.run(self.summary_op))

    def _save(self, sess: Any) -> None:
        self.saver.save(sess, self.save_path, global_step=self._step(sess))

    def summary_computed(self, sess: Any, summary: Any, global_step: Optional[int] = None) -> None:
        """Writes a summary into the event file."""
        if not self.summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        self.summary_writer.add_summary(summary, self._step(sess) if global_step is None else global_step)

    SummaryComputed = summary_computed

    def start_queue_runners(self, sess: Any, queue_runners: Any = None) -> List[Any]:
        """Starts the threads of queue runners, those of the graph unless given."""
        threads: List[Any] = []
        for runner in get_collection(GraphKeys.QUEUE_RUNNERS) if queue_runners is None else queue_runners:
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
        return self.coord.should_stop()  # type: ignore[no-any-return]

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
        while not self.coord.should_stop():
            time.sleep(0.05)

    def stop(self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False) -> None:
        """Stops and joins the threads."""
        self.coord.request_stop()
        try:
            self.coord.join(threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads)
        finally:
            if close_summary_writer and self.summary_writer:
                self.summary_writer.close()
                self._wrote_graph = False

    Stop = stop

    @contextlib.contextmanager
    def managed_session(self, master: str = "", config: Any = None, start_standard_services: bool = True,
                        close_summary_writer: bool = True) -> Iterator[Any]:
        """A context with a session; at its end threads stop, and what they raised is raised. OutOfRangeError ends it quietly."""
        session = None
        try:
            session = self.prepare_or_wait_for_session(master, config, start_standard_services=start_standard_services)
            with session.as_default():
                yield session
        except Exception as error:  # pylint: disable=broad-except
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer, ignore_live_threads=True)
            finally:
                if session is not None:
                    session.close()
