# SPDX-License-Identifier: Apache-2.0
"""Steps as one HTML page that needs nothing else, and as text."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Sequence

from millrace.profiler import page
from millrace.profiler.steps import Step, by

_IDLE_ROWS, _HOLDERS = 60, 40


class _Names:
    """Texts by number."""

    def __init__(self) -> None:
        self.all: List[str] = []
        self._known: Dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = len(self.all)
            self.all.append(name)
        return self._known[name]


def html(steps: Sequence[Step], title: str = "Steps of Millrace") -> str:
    """The report. The step in the middle of the list by length is shown first."""
    if not steps:
        raise ValueError("there is no traced step to report")
    names, devices = _Names(), _Names()
    told = [_told(step, names, devices) for step in steps]
    first = sorted(range(len(steps)), key=lambda i: steps[i].length)[len(steps) // 2]
    about = "%s. Times are of the traced run; a trace costs up to a few tenths of a microsecond an op." % (
        "%d steps" % len(steps) if len(steps) > 1 else steps[0].name
    )
    data = {"names": names.all, "devices": devices.all, "steps": told, "means": _means(steps), "first": first, "about": about}
    text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    escaped = title.replace("&", "&amp;").replace("<", "&lt;")
    return page.HEAD.replace("@TITLE@", escaped) + text + page.TAIL


def _told(step: Step, names: _Names, devices: _Names) -> Dict[str, Any]:
    path = step.on_path(step.critical_path())
    when, most, holders = step.peak()
    return {
        "name": step.name,
        "length": step.length,
        "threads": {str(k): v for k, v in step.threads.items()},
        "memory_peak": step.memory_peak,
        "chain": step.longest_chain(),
        "runs": [
            [
                names[r.name],
                names[r.op],
                devices[r.device],
                r.thread,
                r.start,
                r.free,
                r.end,
                r.ready,
                r.helped,
                r.made,
                names[r.wait],
                [f.number for f in r.inputs],
                r.preempted,
                r.asleep,
            ]
            for r in step.runs
        ],
        "parts": [[p.run.number, p.thread, p.asked, p.start, p.end] for p in step.parts],
        "off_cpu": [[o.thread, o.start, o.end, int(o.is_preempted)] for o in step.off_cpu],
        "critical": [[r.number, nanos, gap] for r, nanos, gap in path],
        "idle": idle_sums(step)[:_IDLE_ROWS],
        "memory": step.memory_over_time(),
        "peak": {"at": when, "bytes": most, "holders": [[p.run.number, p.size, p.start, p.end] for p in holders[:_HOLDERS]]},
        "ops": [list(o) for o in by(step.runs, "op")],
    }


def idle_sums(step: Step) -> List[List[Any]]:
    """[thread, why, op, times, nanoseconds], the longest first."""
    sums: Dict[Any, List[int]] = {}
    for idle in step.idle():
        of = sums.setdefault((idle.thread, idle.why, idle.what), [0, 0])
        of[0] += 1
        of[1] += idle.end - idle.start
    return sorted(([*key, *of] for key, of in sums.items()), key=lambda row: -row[4])


def _means(steps: Sequence[Step]) -> List[List[Any]]:
    """[op, runs a step, mean, least, greatest nanoseconds a step, bytes made a step]."""
    rows: Dict[str, List[Any]] = {}
    for step in steps:
        for of in by(step.runs, "op"):
            rows.setdefault(of.op, []).append(of)
    count = len(steps)
    means = [
        [
            op,
            round(sum(o.runs for o in of) / count, 1),
            round(sum(o.nanos for o in of) / count),
            min(o.nanos for o in of) if len(of) == count else 0,
            max(o.nanos for o in of),
            round(sum(o.made for o in of) / count),
        ]
        for op, of in rows.items()
    ]
    return sorted(means, key=lambda row: -row[2])
