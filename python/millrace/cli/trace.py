# SPDX-License-Identifier: Apache-2.0
"""`millrace trace`: what steps did, of a model that it runs or of a program that left traces."""

from __future__ import annotations

import glob
import os
import sys
import warnings
from typing import Any, Dict, List

from millrace.cli import models, run
from millrace.cli.answers import Answer, each, sections, table
from millrace.framework.graph import Graph
from millrace.profiler import Step, Trace, by, record
from millrace.profiler.report import idle_sums


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = run.step_command(
        commands,
        "trace",
        _trace,
        "what steps did: a report of times, waits, memory",
        "Runs a model and traces steps after the first, or reads what a program left in the folder that MILLRACE_TRACE named.",
        "a GraphDef, a MetaGraphDef, a SavedModel's folder, or a folder of traces or one of them (trace-*.pb)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the report as .html, or .json for Perfetto and chrome://tracing")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="trace N steps of the model")
    parser.add_argument("--rows", type=int, default=8, metavar="N", help="at most N lines of each list")


def _trace(given: Any) -> Answer:
    run.check_repeat(given.repeat)
    if given.out and os.path.splitext(given.out)[1] not in (".html", ".json"):
        raise ValueError("--out is %s, want a name in .html or .json" % given.out)
    is_traced = _is_traced(given.path)
    if is_traced and (given.feed or given.fetch or given.tags):
        raise ValueError("%s holds traces; --feed, --fetch and --tags are for a model, which is run" % given.path)
    trace = _read(given.path) if is_traced else _ran(given)
    if given.out:
        trace.save(given.out, "Steps of %s" % os.path.basename(os.path.normpath(given.path)))
    steps = trace.steps
    middle = sorted(steps, key=lambda s: s.length)[len(steps) // 2]
    facts = {"steps": [_facts(step) for step in steps], "out": given.out}
    return Answer(facts, _text(steps, middle, given.out, given.rows))


def _is_traced(path: str) -> bool:
    """Whether it is a folder of traces, or one; a folder with neither a model in it counts as one."""
    if os.path.isdir(path):
        return bool(glob.glob(os.path.join(glob.escape(path), "trace-*.pb"))) or not os.listdir(path)
    return os.path.basename(path).startswith("trace-")


def _read(path: str) -> Trace:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trace = Trace.read(path)
    for warning in told:
        print("millrace: %s" % warning.message, file=sys.stderr)
    return trace


def _ran(given: Any) -> Trace:
    with Graph().as_default(), models.session() as session:
        step = run.open_step(given, session)
        run.run_step(given, session, step)  # compiles
        with record() as trace:
            for _ in each(range(given.repeat), "tracing", "steps"):
                run.run_step(given, session, step)
    return trace


def _facts(step: Step) -> Dict[str, Any]:
    path = step.on_path(step.critical_path())
    when, most, holders = step.peak()
    return {
        "name": step.name,
        "micros": step.length / 1e3,
        "nodes": len(step.runs),
        "ops": [{"op": o.op, "runs": o.runs, "micros": o.nanos / 1e3, "queued_micros": o.delay / 1e3, "bytes": o.made} for o in by(step.runs, "op")],
        "critical_path": [{"node": r.name, "op": r.op, "micros": nanos / 1e3, "gap_micros": gap / 1e3} for r, nanos, gap in path],
        "longest_chain_micros": step.longest_chain() / 1e3,
        "waits": [{"node": r.name, "micros": r.delay / 1e3, "why": r.wait} for r in sorted(step.runs, key=lambda r: -r.delay) if r.wait],
        "idle": [
            {"thread": step.threads.get(t, str(t)), "why": why, "node": what, "times": times, "micros": nanos / 1e3}
            for t, why, what, times, nanos in idle_sums(step)
        ],
        "memory": {
            "peak_bytes": most,
            "at_micros": when / 1e3,
            "allocator_peak_bytes": step.memory_peak,
            "holders": [{"node": p.run.name, "bytes": p.size} for p in holders],
        },
    }


def _text(steps: List[Step], shown: Step, out: Any, rows: int) -> str:
    told = _facts(shown)
    head = "%s: %d nodes in %.3f ms" % (shown.name, told["nodes"], told["micros"] / 1e3)
    if len(steps) > 1:
        head = "%d steps, %.3f to %.3f ms; the middle one is %s" % (len(steps), min(s.length for s in steps) / 1e6, max(s.length for s in steps) / 1e6, head)
    parts = [head + (", report in %s" % out if out else "")]
    parts.append(
        table(
            [(o["op"], o["runs"], round(o["micros"], 1), round(o["queued_micros"], 1), o["bytes"]) for o in told["ops"][:rows]],
            ("op", "nodes", "us", "queued us", "bytes"),
        )
        + ("\n... and %d ops more: --rows N shows so many" % (len(told["ops"]) - rows) if len(told["ops"]) > rows else "")
    )
    longest = sorted(told["critical_path"], key=lambda node: -node["micros"])[:rows]
    parts.append(
        "critical path: %d nodes; the longest chain of nodes that need each other takes %.1f us\n" % (len(told["critical_path"]), told["longest_chain_micros"])
        + table([(r["node"], r["op"], round(r["micros"], 1)) for r in longest], ("node", "op", "us"))
    )
    if told["waits"]:
        parts.append("waits before nodes\n" + table([(w["node"], round(w["micros"], 1), w["why"]) for w in told["waits"][:rows]], ("node", "us", "why")))
    if told["idle"]:
        parts.append(
            "idle threads\n" + table([(i["thread"], round(i["micros"], 1), i["why"], i["node"]) for i in told["idle"][:rows]], ("thread", "us", "why", "node"))
        )
    memory = told["memory"]
    parts.append(
        "peak of outputs: %d bytes at %.1f us\n" % (memory["peak_bytes"], memory["at_micros"])
        + table([(h["node"], h["bytes"]) for h in memory["holders"][:rows]], ("node", "bytes"))
    )
    return sections(*parts)
