# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.summary: summaries as operations that write events themselves, when they are run."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Iterator, List, Optional

import numpy as np

from millrace import summary as _summary
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, get_default_graph, name_scope
from millrace.framework.default_session import get_default_session
from millrace.ops import control_flow_ops, gen_ops
from millrace.ops.script_ops import py_func
from millrace.protos import definitions
from millrace.train.global_step import get_global_step, get_or_create_global_step

_OPS, _INITIALIZERS = "_summary_ops_v2", "_summary_writer_init_v2"


def _state() -> Any:
    return get_default_graph().__dict__.setdefault("_summaries_v2", {"writer": None, "record": False, "events": {}})


def _run(function: Callable[..., Any], *tensors: Any) -> Operation:
    """An operation that calls Python."""

    def call(*values: Any) -> np.bool_:
        function(*values)
        return np.bool_(True)

    return py_func(call, list(tensors), dtypes.bool, stateful=True).op


class _Events:
    """The file of all writers of one name: made when it is needed, flushed when more than max_queue events wait, and new after a close."""

    def __init__(self, make: Callable[[], Any], max_queue: int) -> None:
        self._make, self._max_queue = make, max_queue
        self._file: Any = None
        self._waiting = 0
        self._closed = False

    def start(self) -> Any:
        """The file, open."""
        self._closed = False
        self._file = self._file or self._make()
        return self._file

    def add(self, write: Callable[[Any], Any]) -> None:
        """Lets a function of the file add an event."""
        if self._closed:
            raise RuntimeError("the summary writer is closed")
        write(self.start())
        self._waiting += 1
        if self._waiting > self._max_queue:
            self.flush()

    def flush(self) -> None:
        """Writes what waits."""
        self._waiting = 0
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Writes what waits, and closes the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._closed, self._waiting = None, True, 0


class SummaryWriter:
    """Events of a folder; the file is made when init() or the first summary runs."""

    def __init__(self, events: _Events) -> None:
        self._events = events

    _resource = property(lambda self: self, doc="What flush() and the other operations take for the writer.")

    def init(self) -> Operation:
        """An operation that makes the file, a new one after close()."""
        return _run(self._events.start)

    def flush(self) -> Operation:
        """An operation that writes what is in the queue."""
        return _run(self._events.flush)

    def close(self) -> Operation:
        """An operation that writes what is in the queue, and closes the file."""
        return _run(self._events.close)

    def set_as_default(self) -> None:
        """Lets summaries of the default graph go here."""
        _state()["writer"] = self

    @contextlib.contextmanager
    def as_default(self) -> Iterator["SummaryWriter"]:
        """A context in which summaries go here."""
        state = _state()
        before, state["writer"] = state["writer"], self
        try:
            yield self
        finally:
            state["writer"] = before


def create_file_writer(
    logdir: Optional[str],
    max_queue: Optional[int] = None,
    flush_millis: Optional[int] = None,
    filename_suffix: Optional[str] = None,
    name: Optional[str] = None,
) -> Any:
    """A writer for a folder; those of one folder, or of one name if there are names, have one file. None for the folder: one that writes nothing."""
    if logdir is None:
        return _Nothing(_Events(lambda: None, 0))
    folder, seconds = os.fspath(logdir), (120000 if flush_millis is None else flush_millis) / 1000.0
    events = _Events(lambda: _summary.FileWriter(folder, flush_secs=seconds, filename_suffix=filename_suffix), 10 if max_queue is None else max_queue)
    made = SummaryWriter(_state()["events"].setdefault(name or "logdir:" + folder, events))
    get_default_graph().add_to_collection(_INITIALIZERS, made.init())
    return made


create_summary_file_writer = create_file_writer


class _Nothing(SummaryWriter):
    def init(self) -> Operation:
        return control_flow_ops.no_op()

    flush = close = init

    def set_as_default(self) -> None:
        """Lets summaries of the default graph go nowhere."""
        _state()["writer"] = None

    @contextlib.contextmanager
    def as_default(self) -> Iterator["SummaryWriter"]:
        """A context in which summaries go nowhere."""
        state = _state()
        before, state["writer"] = state["writer"], None
        try:
            yield self
        finally:
            state["writer"] = before


# ---- whether to record ----


@contextlib.contextmanager
def _recording(value: Any) -> Iterator[None]:
    state = _state()
    before, state["record"] = state["record"], value
    try:
        yield
    finally:
        state["record"] = before


def always_record_summaries() -> Any:
    """A context in which all summaries are written."""
    return _recording(True)


def never_record_summaries() -> Any:
    """A context in which none is."""
    return _recording(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A context in which they are written at each n-th global step."""
    step = get_or_create_global_step() if global_step is None else global_step
    return _recording(
        lambda: gen_ops.equal(
            gen_ops.floor_mod(convert_to_tensor(step), convert_to_tensor(n, step.dtype.base_dtype)), convert_to_tensor(0, step.dtype.base_dtype)
        )
    )


def should_record_summaries() -> Any:
    """Whether summaries are written here: a bool, or a tensor."""
    wanted = _state()["record"]
    return wanted() if callable(wanted) else wanted


def _step(step: Any) -> Tensor:
    found = step if step is not None else get_global_step()
    if found is None:
        raise at_user_line(ValueError("a summary needs a step: pass step=, or make tf.train.get_or_create_global_step() first"))
    return gen_ops.cast(convert_to_tensor(found), dtypes.int64)


def _record(name: str, family: Optional[str], make: Callable[[str], Any], step: Any) -> Operation:
    """An operation that writes the summary that `make` gives for a tag, where the context says so. The tag is its name in its scope, behind the family."""
    writer, wanted = _state()["writer"], should_record_summaries()
    if writer is None or wanted is False:
        return control_flow_ops.no_op()

    def write() -> Tensor:
        def add(data: bytes, at: Any) -> np.bool_:
            writer._events.add(lambda file: file.add_summary(data, int(at)))
            return np.bool_(True)

        return py_func(add, [make(tag), _step(step)], dtypes.bool)

    with name_scope(("%s/%s" % (family, name) if family else name) or "summary") as scope:
        tag = ("%s/" % family if family else "") + scope.rstrip("/")
        made = write().op if wanted is True else control_flow_ops.cond(wanted, write, lambda: convert_to_tensor(False)).op
    get_default_graph().add_to_collection(_OPS, made)
    return made


# ---- kinds of summaries ----


def scalar(name: str, tensor: Any, family: Optional[str] = None, step: Any = None) -> Operation:
    """Writes a number."""
    return _record(name, family, lambda tag: gen_ops.scalar_summary(tag, gen_ops.cast(convert_to_tensor(tensor), dtypes.float32)), step)


def histogram(name: str, tensor: Any, family: Optional[str] = None, step: Any = None) -> Operation:
    """Writes a histogram."""
    return _record(name, family, lambda tag: gen_ops.histogram_summary(tag, tensor), step)


def image(name: str, tensor: Any, bad_color: Any = None, max_images: int = 3, family: Optional[str] = None, step: Any = None) -> Operation:
    """Writes images [batch, height, width, channels]."""
    if bad_color is not None:
        raise at_user_line(NotImplementedError("tf.contrib.summary.image(bad_color=...): values that are not finite are red"))
    return _record(name, family, lambda tag: gen_ops.image_summary(tag, tensor, max_images=max_images), step)


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, family: Optional[str] = None, step: Any = None) -> Operation:
    """Writes sounds."""
    return _record(
        name,
        family,
        lambda tag: gen_ops.audio_summary_v2(tag, tensor, gen_ops.cast(convert_to_tensor(sample_rate), dtypes.float32), max_outputs=max_outputs),
        step,
    )


def generic(name: str, tensor: Any, metadata: Any = None, family: Optional[str] = None, step: Any = None) -> Operation:
    """Writes a tensor; metadata is a SummaryMetadata, or one as bytes."""
    data = metadata if isinstance(metadata, bytes) else b"" if metadata is None else metadata.SerializeToString()
    return _record(name, family, lambda tag: gen_ops.tensor_summary_v2(tag, tensor, data), step)


def graph(param: Any, step: Any = None, name: Optional[str] = None) -> Operation:
    """Writes a graph: a GraphDef, or one as a string tensor."""
    writer = _state()["writer"]
    if writer is None:
        return control_flow_ops.no_op()

    def add(data: bytes, at: Any) -> None:
        event = definitions.Event(step=int(at), graph_def=data)
        writer._events.add(lambda file: file.add_event(event))

    given = param.SerializeToString() if hasattr(param, "SerializeToString") else param
    with name_scope(name or "graph"):
        return _run(add, convert_to_tensor(given, dtypes.string), _step(0 if step is None else step))


def import_event(tensor: Any, name: Optional[str] = None) -> Operation:
    """Writes an Event message, given as a string tensor."""
    writer = _state()["writer"]
    if writer is None:
        return control_flow_ops.no_op()
    with name_scope(name or "import_event"):
        return _run(lambda data: writer._events.add(lambda file: file.add_event(definitions.Event.FromString(data))), convert_to_tensor(tensor, dtypes.string))


def flush(writer: Any = None, name: Optional[str] = None) -> Operation:
    """An operation that writes what is in a writer's queue: the default one's, unless it is given."""
    chosen = writer or _state()["writer"]
    with name_scope(name or "flush"):
        return control_flow_ops.no_op() if chosen is None else chosen.flush()


def _flush_all() -> List[Operation]:
    """Operations that write what is in the queues of all writers of the graph."""
    return [_run(events.flush) for events in _state()["events"].values()]


def eval_dir(model_dir: str, name: Optional[str] = None) -> str:
    """The folder of evaluations."""
    return os.path.join(model_dir, "eval" if not name else "eval_" + name)


# ---- all of them ----


def all_summary_ops() -> List[Operation]:
    """The operations that write summaries."""
    return get_default_graph().get_collection(_OPS)


def summary_writer_initializer_op() -> List[Operation]:
    """The operations that make the files."""
    return get_default_graph().get_collection(_INITIALIZERS)


def initialize(graph: Any = None, session: Any = None) -> None:
    """Makes the files, and writes a graph where one is given; needs a default writer."""
    if _state()["writer"] is None:
        raise at_user_line(RuntimeError("No default tf.contrib.summary.SummaryWriter found"))
    session = session or get_default_session()
    if session is None:
        raise at_user_line(ValueError("Argument `session must be passed if no default session exists"))
    session.run(summary_writer_initializer_op())
    if graph is not None:
        _state()["writer"]._events.add(lambda file: file.add_graph(graph))
