# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v2.summary: writers of event files that are state of the session, and summaries that are operations which write when they are run.

tf.contrib.summary stands on it too. Which writer summaries go to, whether they are written and at which step is said per thread."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from typing import Any, Callable, Iterator, List, Optional, Tuple

from millrace import tf_logging
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, control_dependencies, device, get_default_graph, name_scope
from millrace.ops import control_flow_ops, gen_ops
from millrace.protos import definitions

SUMMARIES, INITIALIZERS = GraphKeys._SUMMARY_COLLECTION, "_SUMMARY_WRITER_V2"
_CPU = "/device:CPU:0"
_NOT_IN_SCOPES = re.compile(r"[^-_/.A-Za-z0-9]")


class _State(threading.local):
    writer: Any = None
    recording: Any = None  # nothing was said
    step: Any = None


state = _State()


@contextlib.contextmanager
def _setting(name: str, value: Any) -> Iterator[None]:
    before = getattr(state, name)
    setattr(state, name, value)
    try:
        yield
    finally:
        setattr(state, name, before)


# ---- writers ----


class SummaryWriter:
    """What summaries go to."""

    def set_as_default(self) -> None:
        """Lets summaries of this thread go here."""
        raise NotImplementedError

    def as_default(self) -> Any:
        """A context in which summaries go here."""
        raise NotImplementedError

    def init(self) -> Any:
        """An operation that makes the file."""
        raise NotImplementedError

    def flush(self) -> Any:
        """An operation that writes the events that wait."""
        raise NotImplementedError

    def close(self) -> Any:
        """An operation that writes the events that wait, and ends the writer."""
        raise NotImplementedError


class ResourceSummaryWriter(SummaryWriter):
    """A writer that is state of the session, by a name; `make` gives the operation that makes its file from the handle.

    An init() that `can_reopen` makes another file after close().
    """

    def __init__(self, shared_name: str, make: Callable[[Tensor], Operation], can_reopen: bool = False) -> None:
        with device(_CPU):
            self._resource = gen_ops.summary_writer(shared_name=shared_name)
            self._make, self._can_reopen = make, can_reopen
            self._init_op = make(self._resource)
        get_default_graph().add_to_collection(INITIALIZERS, self._init_op)

    def set_as_default(self) -> None:
        """Lets summaries of this thread go here."""
        state.writer = self

    @contextlib.contextmanager
    def as_default(self) -> Iterator["ResourceSummaryWriter"]:
        """A context in which summaries go here."""
        with _setting("writer", self):
            yield self

    def init(self) -> Operation:
        """An operation that makes the file, if there is none."""
        return self._make(self._resource) if self._can_reopen else self._init_op

    def flush(self) -> Operation:
        """An operation that writes the events that wait."""
        return flush(self)

    def close(self) -> Operation:
        """An operation that writes the events that wait, and ends the writer."""
        with control_dependencies([self.flush()]), device(_CPU):
            return gen_ops.close_summary_writer(self._resource)


class NoopSummaryWriter(SummaryWriter):
    """A writer that changes nothing."""

    def set_as_default(self) -> None:
        """Nothing."""

    @contextlib.contextmanager
    def as_default(self) -> Iterator["NoopSummaryWriter"]:
        """A context that changes nothing."""
        yield self

    def init(self) -> None:
        """Nothing."""

    flush = close = init


def create_noop_writer() -> SummaryWriter:
    """A writer that changes nothing."""
    return NoopSummaryWriter()


def file_writer(shared_name: str, logdir: Any, max_queue: Any, flush_millis: Any, filename_suffix: Any, can_reopen: bool = False) -> ResourceSummaryWriter:
    """A writer with an event file in a folder."""
    make = functools.partial(
        gen_ops.create_summary_file_writer,
        logdir=os.fspath(logdir) if isinstance(logdir, os.PathLike) else logdir,
        max_queue=10 if max_queue is None else max_queue,
        flush_millis=120_000 if flush_millis is None else flush_millis,
        filename_suffix=".v2" if filename_suffix is None else filename_suffix,
    )
    return ResourceSummaryWriter(shared_name, make, can_reopen)


def create_file_writer_v2(
    logdir: Any, max_queue: Any = None, flush_millis: Any = None, filename_suffix: Any = None, name: Optional[str] = None
) -> SummaryWriter:
    """A writer with an event file of its own in a folder. Events are written when more than max_queue of them (10) wait, and every flush_millis (two minutes).

    Raises: ValueError when the folder is None.
    """
    if logdir is None:
        raise at_user_line(ValueError("logdir cannot be None"))
    with name_scope(name, "create_file_writer") as scope:
        return file_writer(scope.rstrip("/"), logdir, max_queue, flush_millis, filename_suffix)


def flush(writer: Any = None, name: Optional[str] = None) -> Operation:
    """An operation that writes the events that wait: of the default writer, of another, or of the handle of one."""
    chosen = state.writer if writer is None else writer
    if chosen is None:
        return control_flow_ops.no_op()
    with device(_CPU):
        return gen_ops.flush_summary_writer(getattr(chosen, "_resource", chosen), name=name)


# ---- whether and when ----


def record_if(condition: Any) -> Any:
    """A context in which summaries are written where a condition holds: a bool, a tensor, or a function that gives one."""
    return _setting("recording", condition)


def is_recording(unless_said: bool) -> Any:
    """Whether summaries are written here: a bool, or a tensor."""
    wanted = state.recording() if callable(state.recording) else state.recording
    return unless_said if wanted is None else wanted


def get_step() -> Any:
    """The step of summaries that are given none, or None."""
    return state.step


def set_step(step: Any) -> None:
    """Sets the step of summaries that are given none: a number, a variable, or None."""
    state.step = step


def _step(step: Any) -> Any:
    found = state.step if step is None else step
    if found is None:
        raise at_user_line(ValueError("No step set via 'step' argument or tf.summary.experimental.set_step()"))
    return found if isinstance(found, Tensor) else convert_to_tensor(found, dtypes.int64)


def record(wanted: Any, write: Callable[[], Any], name: Optional[str]) -> Tensor:
    """Whether it was written: the operation that `write` gives, where the condition `wanted` holds."""

    def written() -> Tensor:
        with control_dependencies([write()]):
            return convert_to_tensor(True)

    with device(_CPU):
        made = control_flow_ops.smart_cond(wanted, written, lambda: convert_to_tensor(False), name=name)
    get_default_graph().add_to_collection(SUMMARIES, made)
    return made


# ---- summaries ----


@contextlib.contextmanager
def summary_scope(name: Optional[str], default_name: str = "summary", values: Any = None) -> Iterator[Tuple[str, str]]:
    """A context with a scope for the operations of a summary: gives its tag, which is the name in the scopes around it, and the scope."""
    name = name or default_name
    around = get_default_graph().get_name_scope()
    tag = around + "/" + name if around else name
    with name_scope(_NOT_IN_SCOPES.sub("", name) or None, default_name, values) as scope:
        yield tag, scope


def write(tag: Any, tensor: Any, step: Any = None, metadata: Any = None, name: Optional[str] = None) -> Tensor:
    """Writes a tensor, and a SummaryMetadata (or one as bytes) that says how it is shown. The value says whether it was written."""
    with name_scope(name, "write_summary") as scope:
        if state.writer is None:
            return convert_to_tensor(False)
        at, data = _step(step), b"" if metadata is None else metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata
        writer = state.writer._resource
        return record(is_recording(True), lambda: gen_ops.write_summary(writer, at, convert_to_tensor(tensor), tag, data, name=scope), "summary_cond")


def write_raw_pb(tensor: Any, step: Any = None, name: Optional[str] = None) -> Tensor:
    """Writes the values of encoded Summary messages in a string tensor. The value says whether it was written."""
    with name_scope(name, "write_raw_pb") as scope:
        if state.writer is None:
            return convert_to_tensor(False)
        at, writer = _step(step), state.writer._resource
        return record(is_recording(True), lambda: gen_ops.write_raw_proto_summary(writer, at, tensor, name=scope), "summary_cond")


def _of_plugin(name: str, content: bytes = b"") -> Any:
    return definitions.SummaryMetadata(plugin_data=definitions.SummaryMetadata.PluginData(plugin_name=name, content=content))


def run_metadata(name: str, data: Any, step: Any = None) -> Tensor:
    """Writes a RunMetadata message."""
    with summary_scope(name, "graph_run_metadata_summary") as (tag, _scope):
        return write(tag, data.SerializeToString(), step, _of_plugin("graph_run_metadata", b"1"))


def run_metadata_graphs(name: str, data: Any, step: Any = None) -> Tensor:
    """Writes the graphs of a RunMetadata message."""
    graphs = definitions.RunMetadata(partition_graphs=data.partition_graphs)
    with summary_scope(name, "graph_run_metadata_graph_summary") as (tag, _scope):
        return write(tag, graphs.SerializeToString(), step, _of_plugin("graph_run_metadata_graph", b"1"))


def trace_on(graph: bool = True, profiler: bool = False) -> None:
    """Warns: what is traced is an eager function."""
    del graph, profiler  # nothing is traced
    tf_logging.warning("Must enable trace in eager mode.")


def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Warns, as trace_on."""
    del name, step, profiler_outdir  # there is no trace
    tf_logging.warning("Can only export trace while executing eagerly.")


def trace_off() -> None:
    """Nothing: there is no trace."""


def all_v2_summary_ops() -> List[Any]:
    """What tf.contrib.summary and tf.compat.v2.summary write in this graph, except graphs and imported events."""
    return get_default_graph().get_collection(SUMMARIES)
