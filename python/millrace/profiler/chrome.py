# SPDX-License-Identifier: Apache-2.0
"""Steps in the JSON of Chrome's trace viewer, which Perfetto reads too.

Times are microseconds with fractions, from the beginning of the first step: viewers read them as doubles, which have no room for the nanoseconds of
times since 1970. `otherData` has that beginning. A device of a process is a row of the viewer ("process"), with a line for each thread; ops that wait
without a thread (Recv, queues) have lines of their own, as many as wait at once. (millrace.timeline writes what TensorFlow's Timeline does.)
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Sequence, Tuple

from millrace.profiler.steps import Run, Step

_WAITS = 1 << 40  # from here on, numbers of lines that are no threads


class _Rows:
    """The numbers of rows, and the events that name them."""

    def __init__(self) -> None:
        self.events: List[Dict[str, Any]] = []
        self._rows: Dict[str, int] = {}
        self._lines: Dict[Tuple[int, int], str] = {}

    def row(self, name: str) -> int:
        if name not in self._rows:
            self._rows[name] = len(self._rows)
            self.events.append({"ph": "M", "name": "process_name", "pid": self._rows[name], "args": {"name": name}})
        return self._rows[name]

    def line(self, row: int, thread: int, name: str) -> int:
        if (row, thread) not in self._lines:
            self._lines[row, thread] = name
            self.events.append({"ph": "M", "name": "thread_name", "pid": row, "tid": thread, "args": {"name": name}})
        return thread


def chrome(steps: Sequence[Step]) -> str:
    """The JSON of some steps."""
    rows = _Rows()
    began = min((step.start for step in steps), default=0)
    events: List[Dict[str, Any]] = []
    for step in steps:
        made = _OfStep(step, rows, began).events
        for event in made:
            if "id" in event:
                event["id"] += len(events)  # the arrows of each step are its own
        events += made
    return json.dumps({"traceEvents": rows.events + events, "otherData": {"began_nanos_since_1970": str(began)}}, separators=(",", ":"))


class _OfStep:
    """The events of one step."""

    def __init__(self, step: Step, rows: _Rows, began: int) -> None:
        self.events: List[Dict[str, Any]] = []
        self._step, self._rows, self._after = step, rows, step.start - began
        of_process = step.name.split(",")[0] + " " if step.name.startswith("process ") else ""  # of several in one folder
        self._row_of = {device: rows.row(of_process + device) for device in step.devices}
        self._line_of = self._lines()
        whole = rows.row(of_process + "steps")
        self._event("X", step.name, "Step", (whole, rows.line(whole, 0, "steps")), 0, dur=step.length / 1e3)
        for run in step.runs:
            end = run.end if run.is_asynchronous else run.free
            self._event("X", run.op, "Op", self._line_of[run.number], run.start, dur=(end - run.start) / 1e3, args=_told(run))
        self._parts()
        for run in step.runs:
            for given in run.inputs:
                source, target = self._line_of[given.number], self._line_of[run.number]
                if source != target:
                    # What waits without a thread has it at its end, others begin with it. Arrows hang on what is under way at their ends.
                    self._arrow("DataFlow", source, max(given.start, given.end - 1), target, max(run.start, run.end - 1) if run.is_asynchronous else run.start)
        memory = rows.row(of_process + "memory of outputs")
        for when, held in step.memory_over_time():
            self._event("C", "memory of outputs", "Memory", (memory, 0), when, args={"bytes": held})

    def _event(self, phase: str, name: str, category: str, where: Tuple[int, int], when: int, **more: Any) -> None:
        self.events.append({"ph": phase, "name": name, "cat": category, "pid": where[0], "tid": where[1], "ts": (self._after + when) / 1e3, **more})

    def _arrow(self, name: str, source: Tuple[int, int], left: int, target: Tuple[int, int], reached: int) -> None:
        number = len(self.events)
        self._event("s", name, name, source, left, id=number)
        self._event("f", name, name, target, reached, id=number, bp="e")

    def _thread(self, device: str, thread: int) -> Tuple[int, int]:
        row = self._row_of[device]
        return row, self._rows.line(row, thread, self._step.threads.get(thread, "thread %d" % thread))

    def _lines(self) -> List[Tuple[int, int]]:
        """(row, line) of each run: what waits without a thread takes the first line on which nothing waits."""
        places, waiting = [], {}  # type: List[Tuple[int, int]], Dict[str, List[int]]
        for run in self._step.runs:  # by their beginnings
            if not run.is_asynchronous:
                places.append(self._thread(run.device, run.thread))
                continue
            ends = waiting.setdefault(run.device, [])
            lane = next((i for i, end in enumerate(ends) if end <= run.start), len(ends))
            ends[lane : lane + 1] = [run.end]
            row = self._row_of[run.device]
            places.append((row, self._rows.line(row, _WAITS + lane, "waits without a thread %d" % (lane + 1))))
        return places

    def _parts(self) -> None:
        """What other threads took of the work of ops."""
        for part in self._step.parts:
            place = self._thread(part.run.device, part.thread)
            told = {"name": part.run.name, "queued_us": part.delay / 1e3}
            self._event("X", part.run.op + " (part)", "Part", place, part.start, dur=(part.end - part.start) / 1e3, args=told)
            self._arrow("Part", self._line_of[part.run.number], part.asked, place, part.start)


def _told(run: Run) -> Dict[str, Any]:
    told: Dict[str, Any] = {"name": run.name, "op": run.op, **{"input%d" % i: given for i, given in enumerate(run.input_names)}}
    told["waited_us"] = run.delay / 1e3
    if run.wait:
        told["why"] = run.wait
    if run.made:
        told["bytes"] = run.made
    for name, nanos in (("helped_us", run.helped), ("preempted_us", run.preempted), ("asleep_us", run.asleep)):
        if nanos:
            told[name] = nanos / 1e3
    return told
