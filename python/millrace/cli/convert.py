# SPDX-License-Identifier: Apache-2.0
"""`millrace convert`: checkpoints and safetensors files into each other, graphs and models into GraphDefs, binary or text, SavedModels and ONNX."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Any, Iterator

import numpy as np

from millrace import graph_util
from millrace.cli import models, sources
from millrace.cli.answers import Answer, Progress, each, size
from millrace.framework.graph import Graph
from millrace.framework.importer import without_shapes
from millrace.framework.session import Session
from millrace.ops import gen_ops
from millrace.ops.array_ops import placeholder
from millrace.saved_model import loader
from millrace.tools import freeze_graph
from millrace.train import safetensors
from millrace.train.saver import import_meta_graph

_FORMS = ("safetensors", "checkpoint", "checkpoint-v1", "pb", "pbtxt", "onnx", "saved_model")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "convert",
        help="checkpoints to safetensors and back, graphs and SavedModels to GraphDef files, SavedModels and ONNX",
        description="Writes what SOURCE holds in another form. With --freeze a model becomes one graph with constants for variables; to ONNX always. "
        "The variables' values are in the SavedModel, or in the checkpoint beside a .meta file, or where --checkpoint says.",
    )
    parser.add_argument("path", metavar="SOURCE", help="a checkpoint, safetensors file, array file, graph or SavedModel")
    parser.add_argument("target", metavar="TARGET", help="the file; of a checkpoint its prefix")
    parser.add_argument("--to", choices=_FORMS, help="unless TARGET ends in .safetensors, .ckpt, .pb, .pbtxt or .onnx")
    parser.add_argument("--tags", default="", help="of a SavedModel: which graph, as serve or serve,gpu")
    models.add_checkpoint_to(parser)
    parser.add_argument("--freeze", action="store_true", help="put the variables' values into the graph, of which --output, or the signature, stays")
    parser.add_argument(
        "--signature", default="serving_default", help="of a SavedModel: whose outputs --freeze keeps, and whose inputs and outputs an ONNX model has"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[KEY=]NAME",
        help="of a SavedModel or an ONNX model: a tensor that is fed, and what it is called there (all placeholders, or the signature's)",
    )
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[KEY=]NAME",
        help="a tensor that the model answers (the signature's; of an ONNX model without one the ends of the graph)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace TARGET")
    parser.set_defaults(command=_convert)


def _convert(given: Any) -> Answer:
    form = given.to or {".safetensors": "safetensors", ".ckpt": "checkpoint", ".pb": "pb", ".pbtxt": "pbtxt", ".onnx": "onnx"}.get(
        os.path.splitext(given.target)[1]
    )
    if form is None:
        raise ValueError("how to write %s? Say it with --to (%s)" % (given.target, ", ".join(_FORMS)))
    exists = [p for p in (given.target, given.target + ".index") if os.path.exists(p)]
    if exists and not given.overwrite:
        raise FileExistsError(17, "is there already (--overwrite replaces it)", exists[0])
    folder = os.path.dirname(given.target.rstrip(os.sep))
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(2, "there is no such folder, in which %s could be written" % os.path.basename(given.target), folder)
    source = sources.open_source(given.path)
    if form in ("pb", "pbtxt"):
        return _write_graph(source, given, form)
    if form == "onnx":
        return _write_onnx(source, given)
    if form == "saved_model":
        return _write_saved_model(source, given)
    values = sources.Values(source)
    return _write_safetensors(values, given.target) if form == "safetensors" else _write_checkpoint(values, given.target, form == "checkpoint-v1")


class _OnDemand:
    """Arrays that are read when they are written."""

    def __init__(self, values: sources.Values) -> None:
        self._values = values

    def __iter__(self) -> Any:
        return iter(self._values.names)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]


def _write_safetensors(values: sources.Values, target: str) -> Answer:
    def described(name: str) -> Any:
        kind, dims = values.describe(name)
        return np.dtype(kind.as_numpy_dtype), dims

    total = sum(map(values.num_bytes, values.names))
    progress = Progress("writing", total)
    try:
        safetensors.save(_OnDemand(values), target, told=progress.at, described=described)  # type: ignore[arg-type]
    finally:
        progress.end()
    return _done(target, len(values.names), total)


def _write_checkpoint(values: sources.Values, target: str, first_version: bool) -> Answer:
    if not values.names:
        raise ValueError("%s holds no tensor" % values.source.path)
    arrays = {name: values[name] for name in each(values.names, "reading", "tensors")}
    with Graph().as_default(), models.session() as session:
        holders = {name: placeholder(a.dtype if a.dtype.kind not in "OSU" else "string", a.shape) for name, a in arrays.items()}
        names, slices = list(arrays), [""] * len(arrays)
        write = (gen_ops.save_slices if first_version else gen_ops.save_v2)(target, names, slices, list(holders.values()))
        session.run(write, {holders[name]: a for name, a in arrays.items()})
    return _done(target, len(arrays), sum(a.nbytes for a in arrays.values()))


def _done(target: str, tensors: int, count: int) -> Answer:
    return Answer({"target": target, "tensors": tensors, "bytes": count}, "%s: %d tensors, %s" % (target, tensors, size(count)))


def _write_graph(source: sources.Source, given: Any, form: str) -> Answer:
    graph = _frozen(source, given) if given.freeze else sources.graph_of(source, given.tags)
    return _write_whole(given.target, str(graph).encode() if form == "pbtxt" else graph.SerializeToString(), len(graph.node))


def _write_whole(target: str, data: bytes, nodes: int) -> Answer:
    temporary = target + ".tmp"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, target)
    return Answer({"target": target, "nodes": nodes, "bytes": len(data)}, "%s: %d nodes, %s" % (target, nodes, size(len(data))))


def _write_onnx(source: sources.Source, given: Any) -> Answer:
    from millrace import onnx

    meta = sources.meta_graph_of(source, given.tags)
    inputs: Any = _named(given.input)
    outputs: Any = _named(given.output)
    graph = meta.graph_def
    if _has_values(source, given):
        graph = _frozen(source, given)
        if not outputs:
            signature = meta.signature_def[given.signature]
            outputs = {key: info.name for key, info in sorted(signature.outputs.items())}
            inputs = inputs or {key: info.name for key, info in sorted(signature.inputs.items())}
    if not outputs:
        outputs = models.ends(graph)
    written = onnx.convert(graph, outputs, inputs, os.path.splitext(os.path.basename(given.target))[0])
    return _write_whole(given.target, written.SerializeToString(), len(written.graph.node))


def _write_saved_model(source: sources.Source, given: Any) -> Answer:
    from millrace.saved_model import simple_save

    temporary = given.target.rstrip(os.sep) + ".tmp%d" % os.getpid()
    if source.kind == "graph" and given.checkpoint:
        raise ValueError("%s does not list its variables, as a .meta file does: --freeze it, then make a SavedModel of that" % source.path)
    with _opened(source, given) as session:
        graph = session.graph
        placeholders = [op.name for op in graph.get_operations() if op.type in ("Placeholder", "PlaceholderV2")]
        inputs, outputs = _named(given.input or placeholders), _named(given.output)
        if not outputs:
            raise ValueError("a SavedModel wants to know what it answers: --output NAME")
        simple_save(session, temporary, *({key: _tensor(graph, name) for key, name in of.items()} for of in (inputs, outputs)))
        nodes = len(graph.get_operations())
    if os.path.isdir(given.target):
        shutil.rmtree(given.target)  # --overwrite has said so
    os.replace(temporary, given.target)
    told = {"target": given.target, "nodes": nodes, "inputs": inputs, "outputs": outputs}
    return Answer(told, "%s: %d nodes, from %s to %s" % (given.target, nodes, ", ".join(inputs), ", ".join(outputs)))


def _named(given: Any) -> Any:
    """What KEY=NAME and NAME say: names of tensors by key, which without one is NAME, and for an operation's first tensor the operation's."""
    return dict(text.split("=", 1) if "=" in text else (text[:-2] if text.endswith(":0") else text, text) for text in given)


def _tensor(graph: Graph, name: str) -> Any:
    try:
        return graph.get_tensor_by_name(name if ":" in name else name + ":0")
    except KeyError:
        known = [op.name for op in graph.get_operations()]
        raise ValueError("the graph has no tensor '%s'; %s" % (name, sources.nearest(name.split(":")[0], known))) from None


# ---- variables' values ----


def _has_values(source: sources.Source, given: Any) -> bool:
    return models.is_folder(source) or models.checkpoint_of(source, given.checkpoint) is not None


@contextlib.contextmanager
def _opened(source: sources.Source, given: Any) -> Iterator[Session]:
    """A session on the graph, in which variables have their values."""
    meta = sources.meta_graph_of(source, given.tags)
    with Graph().as_default(), models.session() as session:
        if models.is_folder(source):
            loader.load(session, sorted(meta.meta_info_def.tags), source.path)
        else:
            meta.graph_def.CopyFrom(without_shapes(meta.graph_def))
            import_meta_graph(meta, clear_devices=True)
            checkpoint = models.checkpoint_of(source, given.checkpoint)
            if checkpoint is not None:
                freeze_graph.restore(session, meta.saver_def, checkpoint)
            elif any(node.op in _VARIABLES for node in meta.graph_def.node):
                raise ValueError("%s has variables without values: --checkpoint PREFIX says where they are" % source.path)
        yield session


def _frozen(source: sources.Source, given: Any) -> Any:
    """The graph with constants for variables: what its outputs need."""
    outputs = list(_named(given.output).values())
    if not outputs:
        signatures = sources.meta_graph_of(source, given.tags).signature_def
        if given.signature not in signatures:
            has = ", ".join(sorted(signatures)) or "none"
            raise ValueError("%s has no signature '%s' (it has %s): --output NAME says what it answers" % (source.path, given.signature, has))
        outputs = [info.name for info in signatures[given.signature].outputs.values()]
    with _opened(source, given) as session:
        for name in outputs:
            _tensor(session.graph, name)
        return graph_util.convert_variables_to_constants(session, session.graph.as_graph_def(), sorted({name.split(":")[0] for name in outputs}))
