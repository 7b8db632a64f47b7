# SPDX-License-Identifier: Apache-2.0
"""`millrace run` and `explain`: one step of a graph or SavedModel on arrays from files."""

from __future__ import annotations

import os
import re
import statistics
import time
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from millrace.cli import models, sources
from millrace.cli.answers import Answer, each, sections, shape
from millrace.framework import dtypes, errors
from millrace.framework.graph import Graph
from millrace.framework.importer import import_graph_def
from millrace.saved_model import loader
from millrace.tools import freeze_graph


_MOST_STEPS = 10**9
_SUGGESTED = 5


def add_to(commands: Any) -> None:
    """The commands' arguments."""
    run = step_command(commands, "run", _run, "runs a graph or SavedModel on .npy feeds", "Runs a model: prints what it answers and how long that took.")
    run.add_argument("--out", metavar="DIR", help="write each output as DIR/NAME.npy")
    run.add_argument("--repeat", type=int, default=1, metavar="N", help="run N times and give the least, median and greatest time")
    step_command(
        commands,
        "explain",
        _explain,
        "what the compiler makes of a step, and where each node would run",
        "Compiles a step without running it: stages and their times, partitions, places and why.",
    )


def step_command(
    commands: Any, name: str, function: Any, summary: str, description: str, path: str = "a GraphDef, a MetaGraphDef or a SavedModel's folder"
) -> Any:
    """A command about a step of a model, with the arguments that say which."""
    parser = commands.add_parser(name, help=summary, description=description)
    parser.add_argument("path", help=path)
    parser.add_argument("--tags", default="", help="of a SavedModel: which graph, as serve or serve,gpu")
    parser.add_argument("--signature", default="serving_default", help="of a SavedModel, unless --fetch names tensors")
    parser.add_argument(
        "--feed", action="append", default=[], metavar="NAME=FILE", help=".npy file (or FILE.npz:ARRAY) for an input of the signature or a tensor"
    )
    parser.add_argument(
        "--fetch", action="append", default=[], metavar="NAME", help="a tensor, or an operation (its first output, if it has any); may be repeated"
    )
    models.add_checkpoint_to(parser)
    parser.set_defaults(command=function)
    return parser


class _Step(NamedTuple):
    fetches: Dict[str, str]  # what it is called here, its tensor or operation
    feeds: Dict[str, Any]  # by tensor


def open_step(given: Any, session: Any) -> _Step:
    """The model in the session, and what is fed and fetched."""
    source = sources.open_source(given.path)
    meta = sources.meta_graph_of(source, given.tags)
    if source.kind == "saved_model" and os.path.isdir(source.path):
        loader.load(session, sorted(meta.meta_info_def.tags), source.path)
    else:
        import_graph_def(meta.graph_def, name="")
        checkpoint = models.checkpoint_of(source, given.checkpoint)
        if checkpoint is not None and given.command is not _explain:
            freeze_graph.restore(session, meta.saver_def if meta.saver_def.restore_op_name else None, checkpoint)
    signature = None
    if not given.fetch:
        if given.signature not in meta.signature_def:
            known = [s for s in sorted(meta.signature_def) if not s.startswith("__")]
            raise ValueError(
                "%s has no signature '%s'%s: say with --fetch what to compute%s"
                % (source.path, given.signature, "; it has %s" % ", ".join(known) if known else "", _suggested(meta.graph_def))
            )
        signature = meta.signature_def[given.signature]
    fetches = {name: info.name for name, info in sorted(signature.outputs.items())} if signature else {f: _fetched(session.graph, f) for f in given.fetch}
    feeds = {}
    for text in given.feed:
        name, value = _feed(text)
        if signature is not None and name not in signature.inputs and ":" not in name:
            raise ValueError("signature '%s' has no input '%s'; it has %s" % (given.signature, name, ", ".join(sorted(signature.inputs))))
        tensor = signature.inputs[name].name if signature is not None and name in signature.inputs else name if ":" in name else name + ":0"
        feeds[tensor] = value
        wanted = session.graph.get_tensor_by_name(tensor).dtype
        if (wanted == dtypes.string) != (value.dtype.kind in "OSU"):
            raise ValueError("--feed %s has elements of type %s; %s wants %s" % (text, value.dtype, tensor, wanted.name))
    missing = sorted(set(signature.inputs) - {t.partition("=")[0] for t in given.feed}) if signature is not None else []
    if missing and given.command is not _explain:
        raise ValueError("signature '%s' wants a --feed for: %s" % (given.signature, ", ".join("%s (%s)" % (m, signature.inputs[m].name) for m in missing)))  # type: ignore[union-attr]
    if given.command is _explain and signature is not None:
        feeds.update({signature.inputs[m].name: None for m in missing})
    return _Step(fetches, feeds)


def _suggested(graph: Any) -> str:
    """The ends of a graph, the last first: those that were made last are likely to be meant."""
    found = models.ends(graph)[::-1]
    more = ", and %d more" % (len(found) - _SUGGESTED) if len(found) > _SUGGESTED else ""
    return ", such as %s%s, which no node reads" % (", ".join(found[:_SUGGESTED]), more) if found else ""


def _fetched(graph: Any, name: str) -> str:
    """An operation stands for its first output, as in --feed; one without outputs is run."""
    try:
        has_output = ":" not in name and bool(graph.get_operation_by_name(name).outputs)
    except KeyError:
        raise ValueError("the graph has no '%s'; %s" % (name, sources.nearest(name, [op.name for op in graph.get_operations()]))) from None
    return name + ":0" if has_output else name


def _feed(text: str) -> Tuple[str, Any]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise ValueError("--feed is '%s', want NAME=FILE" % text)
    if ".npz:" in path:
        path, _, member = path.partition(".npz:")
        path += ".npz"
    else:
        member = ""
    arrays = sources.load_arrays(path)
    names = list(arrays)
    if not member and len(names) != 1:
        raise ValueError("%s holds %s: say which as %s:ARRAY" % (path, ", ".join(names), path))
    if member and member not in names:
        raise ValueError("%s has no array '%s'; it holds %s" % (path, member, ", ".join(names)))
    return name, arrays[member or names[0]]


def run_step(given: Any, session: Any, step: _Step) -> List[Any]:
    """One step of the model."""
    try:
        return list(session.run(list(step.fetches.values()), step.feeds))
    except errors.InvalidArgumentError as error:
        unfed = re.match(r"You must feed a value for placeholder tensor '([^']*)' with (.*)", error.message)
        if unfed is None:
            raise
        raise ValueError("%s wants a value: --feed %s=FILE.npy, %s" % (unfed.group(1), unfed.group(1), unfed.group(2))) from None
    except errors.FailedPreconditionError as error:
        if "uninitialized value" not in error.message:
            raise
        raise ValueError(
            "%s has no values for its variables (%s): --checkpoint PREFIX says where they are; `millrace convert %s frozen.pb --freeze "
            "--checkpoint PREFIX --output NAME` puts them into one file" % (given.path, error.message.split(":")[0], given.path)
        ) from None


def check_repeat(count: int) -> None:
    """Refuses a number of steps that is none."""
    if not 1 <= count <= _MOST_STEPS:
        raise ValueError("--repeat is %d, want 1 to %d" % (count, _MOST_STEPS))


def _run(given: Any) -> Answer:
    check_repeat(given.repeat)
    with Graph().as_default(), models.session() as session:
        step = open_step(given, session)
        times: List[float] = []
        for _ in each(range(given.repeat), "running", "steps"):
            start = time.perf_counter()
            values = run_step(given, session, step)
            times.append(time.perf_counter() - start)
    answers = {name: np.asarray(v) for name, v in zip(step.fetches, values) if v is not None}
    if given.out:
        os.makedirs(given.out, exist_ok=True)
        for name, value in answers.items():
            np.save(os.path.join(given.out, "".join(c if c.isalnum() or c in "-_." else "_" for c in name) + ".npy"), value, allow_pickle=False)
    facts = {
        "outputs": {n: {"dtype": str(v.dtype), "shape": list(v.shape), "value": v.tolist() if v.size <= 100 else None} for n, v in answers.items()},
        "seconds": {"first": times[0], "least": min(times), "median": statistics.median(times), "greatest": max(times), "runs": len(times)},
    }
    took = "%.3f ms" % (times[0] * 1e3)
    if len(times) > 1:
        took += " for the first of %d steps; of all: %.3f to %.3f ms, median %.3f ms" % (
            len(times),
            min(times) * 1e3,
            max(times) * 1e3,
            statistics.median(times) * 1e3,
        )
    shown = ["%s  %s %s\n%s" % (n, v.dtype, shape(v.shape), np.array2string(v, threshold=50)) for n, v in answers.items()]
    shown += ["%s  has run" % name for name in step.fetches if name not in answers]
    return Answer(facts, sections(*shown, took))


def _explain(given: Any) -> Answer:
    with Graph().as_default(), models.session() as session:
        step = open_step(given, session)
        fetches, feeds = list(step.fetches.values()), list(step.feeds)
        if given.json:
            return Answer(session.explain(fetches, feeds, as_text=False), "")
        return Answer({}, session.explain(fetches, feeds).rstrip("\n"))
