# SPDX-License-Identifier: Apache-2.0
"""`millrace convert`: checkpoints and safetensors files into each other, graphs and models into GraphDefs, binary or text, and into ONNX."""

from __future__ import annotations

import os
from typing import Any

from millrace.cli import sources
from millrace.cli.answers import Answer, Progress, size
from millrace.framework.graph import Graph
from millrace.framework.session import Session
from millrace.ops import gen_ops
from millrace.ops.array_ops import placeholder
from millrace.saved_model import loader
from millrace.train import safetensors

_FORMS = ("safetensors", "checkpoint", "checkpoint-v1", "pb", "pbtxt", "onnx")


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "convert",
        help="checkpoints to safetensors and back, graphs and SavedModels to GraphDef files and ONNX",
        description="Writes what SOURCE holds in another form. A SavedModel with --freeze becomes one graph with constants for variables; to ONNX always.",
    )
    parser.add_argument("path", metavar="SOURCE", help="a checkpoint, safetensors file, array file, graph or SavedModel")
    parser.add_argument("target", metavar="TARGET", help="the file; of a checkpoint its prefix")
    parser.add_argument("--to", choices=_FORMS, help="unless TARGET ends in .safetensors, .ckpt, .pb, .pbtxt or .onnx")
    parser.add_argument("--tags", default="", help="of a SavedModel: which graph, as serve or serve,gpu")
    parser.add_argument("--freeze", action="store_true", help="of a SavedModel: put the variables' values into the graph")
    parser.add_argument("--signature", default="serving_default", help="whose outputs --freeze keeps, and whose inputs and outputs an ONNX model has")
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME", help="of an ONNX model: a tensor that is fed (all placeholders, or the signature's)"
    )
    parser.add_argument(
        "--output", action="append", default=[], metavar="NAME", help="of an ONNX model: a tensor that it answers (the ends of the graph, or the signature's)"
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
    source = sources.open_source(given.path)
    if form in ("pb", "pbtxt"):
        return _write_graph(source, given, form)
    if form == "onnx":
        return _write_onnx(source, given)
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
    total = _total_bytes(values)
    progress = Progress("writing", total)
    try:
        safetensors.save(_OnDemand(values), target, told=progress.at)  # type: ignore[arg-type]
    finally:
        progress.end()
    return _done(target, len(values.names), total)


def _total_bytes(values: sources.Values) -> int:
    return sum(value.nbytes for _, value in values.items())


def _write_checkpoint(values: sources.Values, target: str, first_version: bool) -> Answer:
    if not values.names:
        raise ValueError("%s holds no tensor" % values.source.path)
    arrays = dict(values.items())
    with Graph().as_default(), Session() as session:
        holders = {name: placeholder(a.dtype if a.dtype.kind not in "OSU" else "string", a.shape) for name, a in arrays.items()}
        names, slices = list(arrays), [""] * len(arrays)
        write = (gen_ops.save_slices if first_version else gen_ops.save_v2)(target, names, slices, list(holders.values()))
        session.run(write, {holders[name]: a for name, a in arrays.items()})
    return _done(target, len(arrays), sum(a.nbytes for a in arrays.values()))


def _done(target: str, tensors: int, count: int) -> Answer:
    return Answer({"target": target, "tensors": tensors, "bytes": count}, "%s: %d tensors, %s" % (target, tensors, size(count)))


def _write_graph(source: sources.Source, given: Any, form: str) -> Answer:
    meta = sources.meta_graph_of(source, given.tags)
    graph = _frozen(source, meta, given.signature) if given.freeze else meta.graph_def
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
    inputs: Any = given.input
    outputs: Any = given.output
    graph = meta.graph_def
    if source.kind == "saved_model" and os.path.isdir(source.path):
        graph = _frozen(source, meta, given.signature, [o.split(":")[0] for o in given.output])
        if not outputs:
            signature = meta.signature_def[given.signature]
            outputs = {key: info.name for key, info in sorted(signature.outputs.items())}
            inputs = inputs or {key: info.name for key, info in sorted(signature.inputs.items())}
    if not outputs:
        read = {i.lstrip("^").split(":")[0] for n in graph.node for i in n.input}
        outputs = [n.name for n in graph.node if n.name not in read and n.op not in ("NoOp", "Const")]
    written = onnx.convert(graph, outputs, inputs, os.path.splitext(os.path.basename(given.target))[0])
    return _write_whole(given.target, written.SerializeToString(), len(written.graph.node))


def _frozen(source: sources.Source, meta: Any, key: str, outputs: Any = ()) -> Any:
    from millrace import graph_util

    if source.kind != "saved_model" or not os.path.isdir(source.path):
        raise ValueError("--freeze wants a SavedModel's folder, which has the variables' values; %s is %s" % (source.path, source.kind))
    if not outputs and key not in meta.signature_def:
        raise ValueError("%s has no signature '%s'; it has %s" % (source.path, key, ", ".join(sorted(meta.signature_def)) or "none"))
    outputs = list(outputs) or sorted({info.name.split(":")[0] for info in meta.signature_def[key].outputs.values()})
    with Graph().as_default() as graph, Session() as session:
        loader.load(session, sorted(meta.meta_info_def.tags), source.path)
        return graph_util.convert_variables_to_constants(session, graph.as_graph_def(), outputs)
