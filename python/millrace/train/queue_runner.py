# SPDX-License-Identifier: Apache-2.0
"""Threads that fill queues."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Iterable, List, Optional, Set

from millrace import tf_logging
from millrace.framework import errors
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection, get_default_graph
from millrace.framework.proto_functions import register_proto_function
from millrace.framework.default_session import get_default_session
from millrace.framework.session import BaseSession
from millrace.protos.definitions import QueueRunnerDef  # type: ignore[attr-defined]


class QueueRunner:
    """Runs operations that fill a queue, each in its thread, until the input ends or somebody asks to stop."""

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Any = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None,
        import_scope: Optional[str] = None,
    ) -> None:
        self._lock = threading.Lock()
        self._running: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()  # threads by session; a session stays when they have ended
        self._raised: List[Exception] = []
        self.failure: Optional[Exception] = None  # the first error of a thread that made its coordinator stop
        if queue_runner_def is not None:
            if queue or enqueue_ops:
                raise at_user_line(ValueError("queue_runner_def and queue are mutually exclusive."))
            self._read(queue_runner_def, import_scope)
            return
        if queue is None or not enqueue_ops:
            raise at_user_line(ValueError("Must provide queue and enqueue_ops."))
        ends = (errors.OutOfRangeError,) if queue_closed_exception_types is None else queue_closed_exception_types
        if not isinstance(ends, tuple) or not ends or not all(isinstance(t, type) and issubclass(t, errors.OpError) for t in ends):
            raise at_user_line(TypeError("queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: %s" % (ends,)))
        self._queue, self._enqueue_ops, self._ends = queue, enqueue_ops, ends
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op

    def _read(self, definition: Any, import_scope: Optional[str]) -> None:
        graph, prefix = get_default_graph(), import_scope + "/" if import_scope else ""

        def named(name: str) -> Any:
            return graph.as_graph_element(prefix + name)

        self._queue = named(definition.queue_name)
        self._enqueue_ops = [named(name) for name in definition.enqueue_op_name]
        self._close_op, self._cancel_op = named(definition.close_op_name), named(definition.cancel_op_name)
        codes = definition.queue_closed_exception_types
        self._ends = tuple(errors.exception_type_from_error_code(code) for code in codes) or (errors.OutOfRangeError,)

    queue = property(lambda self: self._queue, doc="The queue.")
    enqueue_ops = property(lambda self: self._enqueue_ops, doc="The operations that fill it, one for each thread.")
    close_op = property(lambda self: self._close_op, doc="The operation that closes the queue when the input has ended.")
    cancel_op = property(lambda self: self._cancel_op, doc="The operation that closes the queue at once, when the coordinator stops.")
    queue_closed_exception_types = property(lambda self: self._ends, doc="The errors that mean that the input has ended.")
    exceptions_raised = property(lambda self: self._raised, doc="The errors of threads that have no coordinator.")
    name = property(lambda self: self._queue.name, doc="The name of the queue.")

    # ---- threads ----

    def _fill(self, sess: Any, enqueue_op: Any, coord: Any) -> None:
        """What a thread does."""
        ended = False
        try:
            enqueue = sess.make_callable(enqueue_op)
            while coord is None or not coord.should_stop():
                try:
                    enqueue()
                except self._ends:
                    ended = True
                    return
        except Exception as error:  # pylint: disable=broad-except
            if coord is not None:
                if coord.should_stop() and isinstance(error, errors.CancelledError):  # the session was closed while it waited
                    return
                if self.failure is None and not coord.should_stop():
                    self.failure = error
                coord.request_stop(error)
                return
            with self._lock:
                self._raised.append(error)
            if getattr(sess, "_closed", False):  # the program has ended its session, and so the filling
                return
            tf_logging.error("Exception in QueueRunner: %s", error)
            raise
        finally:
            self._leave(sess, ended)

    def _leave(self, sess: Any, ended: bool) -> None:
        """The last thread closes the queue at the end of the input."""
        with self._lock:
            self._running[sess] -= 1
            last = ended and self._running[sess] == 0
        if last:
            _run_quietly(sess, self._close_op)

    def _cancel_on_stop(self, sess: Any, coord: Any) -> None:
        coord.wait_for_stop()
        _run_quietly(sess, self._cancel_op)

    def create_threads(self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False) -> List[threading.Thread]:
        """The threads that fill the queue, and with a coordinator one that cancels when it stops; none while those of before run."""
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._raised = []
            self.failure = None
        threads = [
            threading.Thread(target=self._fill, args=(sess, op, coord), name="QueueRunnerThread-%s-%s" % (self.name, _name_of(op))) for op in self._enqueue_ops
        ]
        if coord is not None:
            threads.append(threading.Thread(target=self._cancel_on_stop, args=(sess, coord), name="QueueRunnerThread-%s-close_on_stop" % self.name))
        for thread in threads:
            thread.daemon = thread.daemon or daemon
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def started(self, sess: Any) -> bool:
        """Whether threads were made for a session."""
        with self._lock:
            return sess in self._running

    # ---- as a message ----

    def to_proto(self, export_scope: Optional[str] = None) -> Any:
        """The QueueRunnerDef; None when the queue lies outside the scope."""
        prefix = export_scope.rstrip("/") + "/" if export_scope else ""
        if export_scope and not self.name.startswith(export_scope):
            return None

        def stripped(name: str) -> str:
            return name[len(prefix) :] if name.startswith(prefix) else name

        return QueueRunnerDef(
            queue_name=stripped(self.name),
            enqueue_op_name=[stripped(_name_of(op)) for op in self._enqueue_ops],
            close_op_name=stripped(self._close_op.name),
            cancel_op_name=stripped(self._cancel_op.name),
            queue_closed_exception_types=[errors.error_code_from_exception_type(t) for t in self._ends],
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: Optional[str] = None) -> "QueueRunner":
        """One of a QueueRunnerDef, in the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


register_proto_function(GraphKeys.QUEUE_RUNNERS, QueueRunnerDef, QueueRunner.to_proto, QueueRunner.from_proto)


def _name_of(operation: Any) -> str:
    """The name of an operation, which programs of before 1.4 may give instead of it."""
    return operation if isinstance(operation, str) else operation.name


def _run_quietly(sess: Any, operation: Any) -> None:
    """Runs an operation; that the session or the queue is closed already does not matter."""
    try:
        sess.run(operation)
    except Exception as error:  # pylint: disable=broad-except
        tf_logging.vlog(1, "Ignored exception: %s", error)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a queue runner to those of the graph."""
    add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None, coord: Any = None, daemon: bool = True, start: bool = True, collection: str = GraphKeys.QUEUE_RUNNERS
) -> List[threading.Thread]:
    """Starts the threads of the graph's queue runners, and returns them."""
    if sess is None:
        sess = get_default_session()
        if sess is None:
            raise at_user_line(
                ValueError(
                    "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an "
                    "explicit session to tf.train.start_queue_runners(sess=sess)"
                )
            )
    if not isinstance(sess, BaseSession):
        if hasattr(sess, "_tf_sess"):  # a monitored session has started them
            return []
        raise at_user_line(TypeError("sess must be a `tf.Session` object. Given class: %s" % type(sess)))
    threads: List[threading.Thread] = []
    for runner in sess.graph.get_collection(collection):
        threads.extend(runner.create_threads(sess, coord=coord, daemon=daemon, start=start))
    return threads


# ---- a step that waits for a queue that nobody fills ----


def _operations_before(elements: Iterable[Any]) -> Iterable[Operation]:
    """The operations that some tensors and operations need."""
    waiting: List[Operation] = [e.op if isinstance(e, Tensor) else e for e in elements]
    seen: Set[Operation] = set(waiting)
    while waiting:
        operation = waiting.pop()
        yield operation
        for before in [*(x.op for x in operation.inputs), *operation.control_inputs]:
            if before not in seen:
                seen.add(before)
                waiting.append(before)


def unfilled_queues(sess: Any, elements: Iterable[Any]) -> List[str]:
    """The names of queues that a step reads and that have queue runners, none of which was started for the session."""
    runners = [r for r in sess.graph.get_collection(GraphKeys.QUEUE_RUNNERS) if isinstance(r, QueueRunner)]
    if not runners or any(r.started(sess) for r in runners):
        return []
    read = {operation.name for operation in _operations_before(elements)}
    return sorted({r.name for r in runners} & read)


def warn_of_waiting(sess: Any, elements: Iterable[Any]) -> None:
    """Warns, once for each session, of a step that has waited for some seconds for such a queue."""
    names = [] if getattr(sess, "_warned_of_waiting", False) else unfilled_queues(sess, elements)
    if names:
        sess._warned_of_waiting = True
        tf_logging.warning(
            "This step waits for the queue%s %s, and no queue runner was started that would fill it. Call tf.train.start_queue_runners(sess) first.",
            "s" if len(names) > 1 else "",
            ", ".join(repr(n) for n in names),
        )
