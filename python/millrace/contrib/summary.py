# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.summary: summaries as operations that write events themselves, when they are run. Unless a context says so, none is written."""

from __future__ import annotations

import os
from typing import Any, Callable, List, Optional

from millrace import summary as _summary
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.default_session import get_default_session
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor, device, get_default_graph, name_scope
from millrace.ops import control_flow_ops, gen_ops, summary_writers as _writers
from millrace.ops.summary_writers import SummaryWriter, all_v2_summary_ops as all_summary_ops, flush  # noqa: F401
from millrace.train.global_step import get_or_create_global_step

_CPU = "/device:CPU:0"


def create_file_writer(
    logdir: Optional[str], max_queue: Any = None, flush_millis: Any = None, filename_suffix: Any = None, name: Optional[str] = None
) -> SummaryWriter:
    """A writer for a folder; those of one folder, or of one name if there are names, are one in a session. None for the folder: one that changes nothing."""
    if logdir is None:
        return _writers.create_noop_writer()
    folder = str(logdir)
    return _writers.file_writer(name or "logdir:" + folder, folder, max_queue, flush_millis, filename_suffix, can_reopen=True)


create_summary_file_writer = create_file_writer


def create_db_writer(db_uri: Any, experiment_name: Any = None, run_name: Any = None, user_name: Any = None, name: Any = None) -> Any:
    """Refused: summaries are not written to databases."""
    del db_uri, experiment_name, run_name, user_name, name  # refused, whatever they are
    raise at_user_line(NotImplementedError("summaries are not written to databases: tf.contrib.summary.create_file_writer writes them to an event file"))


# ---- whether to record ----


def always_record_summaries() -> Any:
    """A context in which all summaries are written."""
    return _writers.record_if(True)


def never_record_summaries() -> Any:
    """A context in which none is."""
    return _writers.record_if(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A context in which they are written at each n-th global step."""
    step = convert_to_tensor(get_or_create_global_step() if global_step is None else global_step)
    with device(_CPU):
        return _writers.record_if(gen_ops.equal(gen_ops.floor_mod(step, convert_to_tensor(n, step.dtype)), convert_to_tensor(0, step.dtype)))


def should_record_summaries() -> Any:
    """Whether summaries are written here: a bool, or a tensor."""
    return _writers.is_recording(False)


def _step(step: Any) -> Tensor:
    if step is None:
        step = get_or_create_global_step()
    return step if isinstance(step, Tensor) else convert_to_tensor(step, dtypes.int64)


def _record(name: str, family: Optional[str], write: Callable[..., Operation], step: Any) -> Any:
    """Lets `write` write with a writer, a step, a tag and a name, where the context says so. The tag is the name in its scope, behind the family."""
    writer, graph = _writers.state.writer, get_default_graph()
    if writer is None:
        return control_flow_ops.no_op()
    around = graph.get_name_scope()

    def written() -> Operation:
        base, clean_family = _summary._tag(name, family)
        with name_scope(around + "/" if around else None), name_scope(base or "summary") as scope:
            tag = (clean_family + "/" if clean_family else "") + scope.rstrip("/")
            return write(writer._resource, _step(step), tag, scope)

    return _writers.record(should_record_summaries(), written, "")


# ---- kinds of summaries ----


def generic(name: str, tensor: Any, metadata: Any = None, family: Optional[str] = None, step: Any = None) -> Any:
    """Writes a tensor; metadata is a SummaryMetadata, or one as bytes."""
    data = b"" if metadata is None else metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata
    return _record(name, family, lambda writer, at, tag, scope: gen_ops.write_summary(writer, at, convert_to_tensor(tensor), tag, data, name=scope), step)


def scalar(name: str, tensor: Any, family: Optional[str] = None, step: Any = None) -> Any:
    """Writes a number."""
    return _record(name, family, lambda writer, at, tag, scope: gen_ops.write_scalar_summary(writer, at, tag, convert_to_tensor(tensor), name=scope), step)


def histogram(name: str, tensor: Any, family: Optional[str] = None, step: Any = None) -> Any:
    """Writes a histogram."""
    return _record(name, family, lambda writer, at, tag, scope: gen_ops.write_histogram_summary(writer, at, tag, convert_to_tensor(tensor), name=scope), step)


def image(name: str, tensor: Any, bad_color: Any = None, max_images: int = 3, family: Optional[str] = None, step: Any = None) -> Any:
    """Writes images [batch, height, width, channels]. Pixels that are not finite have the bad colour: red, unless another is given."""
    colour = convert_to_tensor([255, 0, 0, 255] if bad_color is None else bad_color, dtypes.uint8)

    def write(writer: Any, at: Any, tag: str, scope: str) -> Operation:
        return gen_ops.write_image_summary(writer, at, tag, convert_to_tensor(tensor), colour, max_images=max_images, name=scope)

    return _record(name, family, write, step)


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int, family: Optional[str] = None, step: Any = None) -> Any:
    """Writes sounds."""

    def write(writer: Any, at: Any, tag: str, scope: str) -> Operation:
        return gen_ops.write_audio_summary(writer, at, tag, tensor, sample_rate, max_outputs=max_outputs, name=scope)

    return _record(name, family, write, step)


def graph(param: Tensor, step: Any = None, name: Optional[str] = None) -> Operation:
    """Writes a GraphDef, which is encoded in a string tensor. TypeError when it is no tensor."""
    if not isinstance(param, Tensor):
        raise at_user_line(TypeError("graph() needs a tf.Tensor (e.g. tf.placeholder) in graph mode, but was: %s" % type(param)))
    if _writers.state.writer is None:
        return control_flow_ops.no_op()
    with device(_CPU):
        return gen_ops.write_graph_summary(_writers.state.writer._resource, _step(step), param, name=name)


def import_event(tensor: Any, name: Optional[str] = None) -> Operation:
    """Writes an Event message, which is encoded in a string tensor."""
    if _writers.state.writer is None:
        return control_flow_ops.no_op()
    return gen_ops.import_event(_writers.state.writer._resource, tensor, name=name)


def _flush_all() -> List[Operation]:
    """Operations that write what is in the queues of all writers of the graph."""
    return [flush(operation.inputs[0]) for operation in summary_writer_initializer_op()]


def eval_dir(model_dir: str, name: Optional[str] = None) -> str:
    """The folder of evaluations."""
    return os.path.join(model_dir, "eval" if not name else "eval_" + name)


def summary_writer_initializer_op() -> List[Operation]:
    """The operations that make the files."""
    return get_default_graph().get_collection(_writers.INITIALIZERS)


def initialize(graph: Any = None, session: Any = None) -> None:
    """Makes the files, and writes a graph or a GraphDef where one is given; needs a default writer."""
    if _writers.state.writer is None:
        raise at_user_line(RuntimeError("No default tf.contrib.summary.SummaryWriter found"))
    session = session or get_default_session()
    if session is None:
        raise at_user_line(ValueError("session must be passed if no default session exists"))
    session.run(summary_writer_initializer_op())
    if graph is not None:
        definition = graph.as_graph_def(add_shapes=True) if isinstance(graph, Graph) else graph
        fed = gen_ops.placeholder(dtypes.string)
        session.run(gen_ops.write_graph_summary(_writers.state.writer._resource, _step(0), fed), {fed: definition.SerializeToString()})
