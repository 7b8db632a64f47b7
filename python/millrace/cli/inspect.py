# SPDX-License-Identifier: Apache-2.0
"""`millrace inspect`: what is in a graph, model, checkpoint, event file, record file or array file."""

from __future__ import annotations

import collections
import math
import os
from typing import Any, Dict, List

import numpy as np

from millrace.cli import sources
from millrace.cli.answers import Answer, Progress, each, sections, shape, size, table
from millrace.framework import dtypes
from millrace.protos import definitions
from millrace.protos.message import DecodeError

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable", "TemporaryVariable")


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "inspect",
        help="what is in a graph, model, checkpoint, event file, record file or array",
        description="Says what a file or folder holds. Files are known by what is in them.",
    )
    parser.add_argument("path", help="a file, a SavedModel's folder, a folder of checkpoints, or a checkpoint's prefix")
    parser.add_argument("--tags", default="", help="of a SavedModel: which graph, as serve or serve,gpu")
    parser.add_argument("--all", action="store_true", help="list every node, tensor or tag")
    parser.add_argument("--values", metavar="NAME", help="of a checkpoint or array: print this tensor, with its least, mean and greatest element")
    parser.set_defaults(command=_inspect)


def _inspect(given: Any) -> Answer:
    source = sources.open_source(given.path)
    if given.values is not None:
        return _value(sources.Values(source), given.values)
    if source.kind in ("checkpoint", "safetensors", "array"):
        return _tensors(source, given.all)
    if source.kind in ("graph", "meta_graph", "saved_model"):
        return _model(source, given)
    return _events(source, given.all) if source.kind == "events" else _records(source)


# ---- named arrays ----


def _value(values: sources.Values, name: str) -> Answer:
    if name not in values.names:
        raise ValueError("%s, and has no tensor '%s'; %s" % (values.source.told, name, sources.nearest(name, values.names)))
    value = values[name]
    facts = {"name": name, "dtype": _type_name(value), "shape": list(value.shape), **_statistics(value)}
    text = "%s  %s %s%s\n%s" % (name, facts["dtype"], shape(value.shape), "".join(", %s %s" % (k, v) for k, v in _statistics(value).items()), value)
    return Answer({**facts, "value": value.tolist()}, text)


def _statistics(value: Any) -> Dict[str, Any]:
    if value.dtype.kind not in "fiub" or value.size == 0:
        return {}
    numbers = value.astype(np.float64)
    facts: Dict[str, Any] = {"least": float(numbers.min()), "mean": float(numbers.mean()), "greatest": float(numbers.max())}
    if not np.isfinite(numbers).all():
        facts["not_finite"] = int((~np.isfinite(numbers)).sum())
    return facts


def _type_name(value: Any) -> str:
    return "string" if value.dtype.kind in "OSU" else str(dtypes.as_dtype(value.dtype).name)


def _tensors(source: sources.Source, everything: bool) -> Answer:
    values = sources.Values(source)
    rows = []
    for name in each(values.names, "reading", "tensors"):
        kind, dims = values.describe(name)
        rows.append((name, kind.name, shape(dims), math.prod(dims), values.num_bytes(name), dims))
    total = sum(r[4] for r in rows)
    shown = rows if everything or len(rows) <= 60 else rows[:50]
    text = "%s %s: %d tensors, %d elements, %s" % (source.kind, source.path, len(rows), sum(r[3] for r in rows), size(total))
    text += "\n\n" + table([(r[0], r[1], r[2], size(r[4])) for r in shown], ("name", "type", "shape", "size"))
    if len(shown) < len(rows):
        text += "\n... and %d more: --all lists them" % (len(rows) - len(shown))
    return Answer(
        {"kind": source.kind, "path": source.path, "bytes": total, "tensors": [{"name": r[0], "dtype": r[1], "shape": r[5], "bytes": r[4]} for r in rows]}, text
    )


# ---- graphs and models ----


def _model(source: sources.Source, given: Any) -> Answer:
    meta = sources.meta_graph_of(source, given.tags)
    facts: Dict[str, Any] = {"kind": source.kind, "path": source.path, **_graph_facts(meta.graph_def)}
    parts = [
        "%s %s: %d nodes, %d functions, written by version %d" % (source.kind, source.path, facts["num_nodes"], len(facts["functions"]), facts["producer"])
    ]
    if source.kind == "saved_model":
        facts["tags"] = sorted(meta.meta_info_def.tags)
        parts[0] += ", tags " + ",".join(facts["tags"])
    facts["signatures"] = {key: _signature_facts(s) for key, s in sorted(meta.signature_def.items()) if not key.startswith("__")}
    for key, signature in facts["signatures"].items():
        rows = [(side, name, f["dtype"], shape(f["shape"]), f["tensor"]) for side in ("inputs", "outputs") for name, f in signature[side].items()]
        parts.append("signature %s (%s)\n%s" % (key, signature["method"], table([(r[0][:-1], *r[1:]) for r in rows], indent="  ")))
    parts.append("placeholders\n" + table([(p["name"], p["dtype"], shape(p["shape"])) for p in facts["placeholders"]], indent="  "))
    parts.append(
        "read by no node\n"
        + table([(o["name"], o["op"]) for o in facts["ends"][:20]], indent="  ")
        + ("\n  ... and %d more" % (len(facts["ends"]) - 20) if len(facts["ends"]) > 20 else "")
    )
    parts.append("%d variables, %s" % (len(facts["variables"]), size(sum(v["bytes"] for v in facts["variables"]))))
    parts.append("ops\n" + table(list(facts["ops"].items())[: None if given.all else 15], indent="  "))
    if facts["unknown_ops"]:
        parts.append("not known here, so what needs them cannot run: " + ", ".join(facts["unknown_ops"]))
    if given.all:
        parts.append("nodes\n" + table([(n.name, n.op, " ".join(n.input)) for n in meta.graph_def.node], indent="  "))
        facts["nodes"] = [{"name": n.name, "op": n.op, "inputs": list(n.input), "device": n.device} for n in meta.graph_def.node]
    return Answer(facts, sections(*parts))


def _graph_facts(graph: Any) -> Dict[str, Any]:
    from millrace.train.meta_graph import registered_ops

    functions = {f.signature.name for f in graph.library.function}
    nodes = list(graph.node) + [n for f in graph.library.function for n in f.node_def]
    read = {name.split(":")[0].lstrip("^") for n in graph.node for name in n.input}
    ops = collections.Counter(n.op for n in nodes)
    known = registered_ops(sorted(ops))
    return {
        "num_nodes": len(graph.node),
        "producer": graph.versions.producer,
        "functions": sorted(functions),
        "ops": dict(ops.most_common()),
        "unknown_ops": sorted(op for op in ops if op not in functions and op not in known),
        "placeholders": [{"name": n.name, **_typed(n)} for n in graph.node if n.op.startswith("Placeholder")],
        "ends": [{"name": n.name, "op": n.op} for n in graph.node if n.name not in read and n.op not in ("Const", "NoOp", "Assert")],
        "variables": [{"name": n.name, **_typed(n), "bytes": _bytes(n)} for n in graph.node if n.op in _VARIABLES],
    }


def _typed(node: Any) -> Dict[str, Any]:
    known = node.attr["shape"].shape if "shape" in node.attr else None
    return {"dtype": _name_of_type(node.attr["dtype"].type), "shape": _dims(known)}


def _name_of_type(number: int) -> str:
    try:
        return str(dtypes.as_dtype(number).name)
    except (TypeError, KeyError, ValueError):
        return "?"


def _dims(known: Any) -> Any:
    return None if known is None or known.unknown_rank else [None if d.size < 0 else d.size for d in known.dim]


def _bytes(node: Any) -> int:
    dims = _dims(node.attr["shape"].shape) if "shape" in node.attr else None
    if dims is None or None in dims:
        return 0
    try:
        width = dtypes.as_dtype(node.attr["dtype"].type).size
    except (TypeError, KeyError, ValueError):
        return 0
    count = width
    for d in dims:
        count *= d
    return int(count)


def _signature_facts(signature: Any) -> Dict[str, Any]:
    def described(infos: Any) -> Dict[str, Any]:
        return {name: {"tensor": info.name, "dtype": _name_of_type(info.dtype), "shape": _dims(info.tensor_shape)} for name, info in sorted(infos.items())}

    return {"method": signature.method_name, "inputs": described(signature.inputs), "outputs": described(signature.outputs)}


# ---- records ----


def _each_record(path: str, what: str) -> Any:
    from millrace.python_io import tf_record_iterator

    progress, at = Progress(what, os.path.getsize(path)), 0
    try:
        for record in tf_record_iterator(path):
            yield record
            at += len(record) + 16
            progress.at(at)
    finally:
        progress.end()


def _records(source: sources.Source) -> Answer:
    lengths: List[int] = []
    features: Dict[str, Any] = {}
    examples = 0
    for record in _each_record(source.path, "reading"):
        lengths.append(len(record))
        if len(lengths) <= 1000:
            examples += _note_features(record, features)
    facts: Dict[str, Any] = {
        "kind": "records",
        "path": source.path,
        "records": len(lengths),
        "bytes": os.path.getsize(source.path),
        "shortest": min(lengths, default=0),
        "longest": max(lengths, default=0),
    }
    text = "records %s: %d, of %d to %d bytes, %s in all" % (source.path, len(lengths), facts["shortest"], facts["longest"], size(facts["bytes"]))
    if examples:
        facts["features"] = {k: {"type": sorted(f["type"]), "values": sorted(f["values"]), "examples": f["examples"]} for k, f in sorted(features.items())}
        rows = [
            (k, "/".join(f["type"]), "%d" % f["values"][0] if len(f["values"]) == 1 else "%d to %d" % (f["values"][0], f["values"][-1]), f["examples"])
            for k, f in facts["features"].items()
        ]
        text += "\n\nfeatures of the first %d examples\n%s" % (examples, table(rows, ("name", "type", "values", "examples"), "  "))
    return Answer(facts, text)


def _note_features(record: bytes, features: Dict[str, Any]) -> bool:
    try:
        example = definitions.Example.FromString(record)
    except DecodeError:
        return False
    found = False
    for name, feature in example.features.feature.items():
        kind = feature.WhichOneof("kind")
        noted = features.setdefault(name, {"type": set(), "values": set(), "examples": 0})
        noted["type"].add((kind or "none").replace("_list", ""))
        noted["values"].add(len(getattr(feature, kind).value) if kind else 0)
        noted["examples"] += 1
        found = True
    return found


def _events(source: sources.Source, everything: bool) -> Answer:
    tags: Dict[Any, Dict[str, Any]] = {}
    count, first, last, graphs = 0, None, None, 0
    for record in _each_record(source.path, "reading"):
        event = definitions.Event.FromString(record)
        count += 1
        first = event.wall_time if first is None else first
        last = event.wall_time
        graphs += bool(event.graph_def)
        for value in event.summary.value:
            kind = value.WhichOneof("value") or "none"
            noted = tags.setdefault((value.tag, kind), {"count": 0, "first_step": event.step})
            noted.update(count=noted["count"] + 1, last_step=event.step)
            if kind == "simple_value":
                noted["last"] = float(value.simple_value)
    facts: Dict[str, Any] = {
        "kind": "events",
        "path": source.path,
        "events": count,
        "graphs": graphs,
        "seconds": (last or 0) - (first or 0),
        "tags": [{"tag": tag, "kind": kind, **noted} for (tag, kind), noted in sorted(tags.items())],
    }
    rows = [
        (
            t["tag"],
            t["kind"].replace("simple_value", "scalar"),
            t["count"],
            "%d..%d" % (t["first_step"], t["last_step"]),
            "%.6g" % t["last"] if "last" in t else "",
        )
        for t in facts["tags"][: None if everything else 60]
    ]
    text = "events %s: %d over %.1f s, %d graphs" % (source.path, count, facts["seconds"], graphs)
    return Answer(facts, sections(text, table(rows, ("tag", "kind", "count", "steps", "last"))))
