# SPDX-License-Identifier: Apache-2.0
"""`millrace diff`: how two checkpoints or two graphs differ."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np

from millrace.cli import sources
from millrace.cli.answers import Answer, each, sections, shape, table

_ROWS = 20  # of a list, unless all are wanted


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "diff",
        help="how two checkpoints, safetensors files or graphs differ",
        description="Compares tensors by name, or nodes by name. Exit status 1 when something differs.",
    )
    parser.add_argument("path", metavar="FIRST")
    parser.add_argument("other", metavar="SECOND")
    parser.add_argument("--tolerance", type=float, default=0.0, metavar="X", help="numbers that differ by at most X are the same (0: only equal ones)")
    parser.add_argument("--tags", default="", help="of SavedModels: which graph, as serve or serve,gpu")
    parser.add_argument("--all", action="store_true", help="list every difference")
    parser.set_defaults(command=_diff)


def _diff(given: Any) -> Answer:
    if not given.tolerance >= 0:
        raise ValueError("--tolerance is %g, want a number from 0 on" % given.tolerance)
    first, second = sources.open_source(given.path), sources.open_source(given.other)
    named = ("checkpoint", "safetensors", "array")
    if (first.kind in named) != (second.kind in named):
        raise ValueError("%s, %s: both must hold tensors, or both a graph" % (first.told, second.told))
    if first.kind in named:
        return _told(*_tensors(sources.Values(first), sources.Values(second), given.tolerance), given.all)
    return _told(*_graphs(sources.graph_of(first, given.tags), sources.graph_of(second, given.tags)), given.all)


class _Told(NamedTuple):
    facts: Dict[str, Any]
    same: int
    what: str  # was compared
    head: Sequence[str]
    rows: List[Any]


def _told(facts: Dict[str, Any], same: int, what: str, head: Sequence[str], rows: List[Any], everything: bool) -> Answer:
    differ = facts["only_first"] or facts["only_second"] or rows
    lists = [
        "only in the %s\n%s" % (side, _listed([(n,) for n in facts["only_" + side]], everything, indent="  "))
        for side in ("first", "second")
        if facts["only_" + side]
    ]
    differing = len({row[0] for row in rows})
    last = "%d %s are the same" % (same, what) + ("" if differ else ": no difference")
    if differ:
        last += ", %d differ, %d are only in the first, %d only in the second" % (differing, len(facts["only_first"]), len(facts["only_second"]))
    return Answer({**facts, "same": same}, sections(*lists, _listed(rows, everything, head) if rows else "", last), 1 if differ else 0)


def _listed(rows: List[Any], everything: bool, head: Sequence[str] = (), indent: str = "") -> str:
    shown = rows if everything or len(rows) <= _ROWS + 5 else rows[:_ROWS]
    more = "" if len(shown) == len(rows) else "\n%s... and %d more: --all lists them" % (indent, len(rows) - len(shown))
    return table(shown, head, indent) + more


def _tensors(first: sources.Values, second: sources.Values, tolerance: float) -> _Told:
    both = sorted(set(first.names) & set(second.names))
    differing = [d for d in (_difference(n, first[n], second[n], tolerance) for n in each(both, "comparing", "tensors")) if d]
    facts = {"only_first": sorted(set(first.names) - set(second.names)), "only_second": sorted(set(second.names) - set(first.names)), "differing": differing}
    rows = [(d["name"], d["what"], d.get("elements", ""), "%.6g" % d["greatest"] if "greatest" in d else "") for d in differing]
    return _Told(facts, len(both) - len(differing), "tensors", ("tensor", "difference", "elements", "greatest"), rows)


def _difference(name: str, a: Any, b: Any, tolerance: float) -> Dict[str, Any]:
    if a.shape != b.shape:
        return {"name": name, "what": "shape %s, %s" % (shape(a.shape), shape(b.shape))}
    if a.dtype != b.dtype:
        return {"name": name, "what": "type %s, %s" % (a.dtype, b.dtype)}
    if a.dtype.kind not in "fiubc" and a.dtype.name != "bfloat16":
        unequal = int((a != b).sum())
        return {"name": name, "what": "values", "elements": unequal} if unequal else {}
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    same = (a == b) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        gap = np.abs(x - y)
    unequal = ~same & ~(gap <= tolerance)
    if not unequal.any():
        return {}
    return {"name": name, "what": "values", "elements": int(unequal.sum()), "greatest": float(np.nanmax(np.where(unequal, gap, 0)))}


def _graphs(first: Any, second: Any) -> _Told:
    a, b = ({n.name: n for n in g.node} for g in (first, second))
    both = sorted(set(a) & set(b))
    rows = [(name, field, x, y) for name in both for field, x, y in _node_differences(a[name], b[name])]
    facts = {
        "only_first": sorted(set(a) - set(b)),
        "only_second": sorted(set(b) - set(a)),
        "differing": [{"node": n, "field": f, "first": x, "second": y} for n, f, x, y in rows],
    }
    same = len(both) - len({r[0] for r in rows})
    return _Told(facts, same, "nodes", ("node", "field", "first", "second"), [(n, f, _short(x), _short(y)) for n, f, x, y in rows])


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def _node_differences(a: Any, b: Any) -> Any:
    for field in ("op", "device"):
        if getattr(a, field) != getattr(b, field):
            yield field, getattr(a, field), getattr(b, field)
    if list(a.input) != list(b.input):
        yield "inputs", " ".join(a.input), " ".join(b.input)
    for key in sorted((set(a.attr) | set(b.attr)) - {"_output_shapes"}):  # which says what shape functions say
        x, y = (str(n.attr[key]) if key in n.attr else "" for n in (a, b))
        if x != y:
            yield key, x, y
