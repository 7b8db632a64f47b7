# SPDX-License-Identifier: Apache-2.0
"""A traced step, and what can be said of it: why ops waited, the critical path, idle threads, memory.

Times are nanoseconds from the step's beginning. What the fields of StepStats mean here: src/service/step_stats.h.
"""

from __future__ import annotations

import bisect
import itertools
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

_LABEL = re.compile(r"^(?P<name>.*?) = (?P<op>[^\s(]+)(?:\((?P<inputs>.*?)\))?(?: \[helpers (?P<helped>\d+) us\])?$")
_SHORT = 1000  # a delay below it is nobody's fault
_SWITCHES = " thread switches"  # what the device's name ends with that has the times of threads off their CPUs
_POOL = " pool threads"  # and what that of a device does which has the parts that other threads took of its nodes
_PART = " (part)"  # what a part's name ends with, behind the node's


class Label(NamedTuple):
    """A timeline_label's parts."""

    name: str
    op: str
    inputs: List[str]  # "^name" for an order alone
    helped: int  # what other threads did of the op's work, in nanoseconds


def read_label(text: str) -> Optional[Label]:
    """The parts of "node = Op(input, ^control) [helpers N us]"; None when it has another form."""
    found = _LABEL.match(text)
    if found is None:
        return None
    inputs = [i for i in (found.group("inputs") or "").split(", ") if i]
    return Label(found.group("name"), found.group("op"), inputs, 1000 * int(found.group("helped") or 0))


class Run:
    """One run of an op."""

    def __init__(self, number: int, label: Label, device: str, thread: int, start: int, free: int, end: int, ready: int, outputs: List[Any]) -> None:
        self.number, self.name, self.op, self.device, self.thread = number, label.name, label.op, device, thread
        self.start, self.end, self.helped = start, end, label.helped
        self.free = free  # when its thread could do something else: before `end` when the op waits by itself
        self.ready = min(ready, start)
        self.outputs = [_Output.read(o) for o in outputs]
        self.input_names = label.inputs
        self.inputs: List["Run"] = []
        self.readers: List["Run"] = []
        self.wait = ""  # why it began later than it could
        self.preempted = self.asleep = 0  # nanoseconds of it in which its thread had no CPU

    @property
    def is_asynchronous(self) -> bool:
        """Whether it waits without a thread: a Recv, a queue."""
        return self.free < self.end

    @property
    def delay(self) -> int:
        """From when all it waits for was there to its beginning."""
        return self.start - self.ready

    @property
    def made(self) -> int:
        """The bytes that it allocated for its outputs."""
        return sum(o.made for o in self.outputs)

    def __repr__(self) -> str:
        return "<%s '%s' from %.1f us for %.1f us>" % (self.op, self.name, self.start / 1e3, (self.end - self.start) / 1e3)


class Part(NamedTuple):
    """A part of an op's work that another thread took."""

    run: Run
    thread: int
    asked: int  # when the op had split its work
    start: int
    end: int

    @property
    def delay(self) -> int:
        """How long it lay in the pool's queue."""
        return self.start - self.asked


class _Output(NamedTuple):
    held: int  # bytes
    made: int  # those that no input had
    buffer: int  # the same number: the same memory

    @staticmethod
    def read(message: Any) -> "_Output":
        allocation = message.tensor_description.allocation_description
        return _Output(allocation.requested_bytes, allocation.allocated_bytes, allocation.ptr)


class Idle(NamedTuple):
    """A time in which a thread ran no op."""

    thread: int
    start: int
    end: int
    why: str
    what: str  # the op that the reason is about, or ""


class OffCpu(NamedTuple):
    """A time in which the system ran a thread on no CPU."""

    thread: int
    start: int
    end: int
    is_preempted: bool  # others had its CPU; else it slept


class Held(NamedTuple):
    """A piece of memory that an op allocated."""

    run: Run
    size: int
    start: int
    end: int  # when the last that reads it had ended


class Step:
    """One step from its StepStats (or the RunMetadata around it)."""

    def __init__(self, stats: Any, name: str = "step") -> None:
        stats = getattr(stats, "step_stats", stats)
        self.name = name
        self.threads: Dict[int, str] = {}
        self.devices: List[str] = []
        self.runs: List[Run] = []
        self.fetched: List[str] = []
        self.memory_peak = self.memory_growth = 0  # of the host, as the allocator counted
        whole: Optional[Tuple[int, int]] = None
        entries: List[Tuple[str, Any, Label]] = []
        switches: List[Any] = []
        parts: List[Tuple[str, Any]] = []
        for device in stats.dev_stats:
            if device.device.endswith(_SWITCHES):
                switches += device.node_stats
                continue
            for thread, of_thread in device.thread_names.items():
                self.threads.setdefault(int(thread), of_thread)
            if device.device.endswith(_POOL):
                parts += [(device.device[: -len(_POOL)], node) for node in device.node_stats]
                continue
            self.devices.append(device.device)
            for node in device.node_stats:
                label = read_label(node.timeline_label) or Label(node.node_name, node.node_name, [], 0)
                if label.name == "_SOURCE":
                    whole = _start(node), _start(node) + _length(node, "all_end_rel")
                    if node.memory:
                        self.memory_peak, self.memory_growth = node.memory[0].peak_bytes, node.memory[0].live_bytes
                elif label.name == "_SINK":
                    self.fetched = label.inputs
                elif node.thread_id or _length(node, "all_end_rel"):  # a constant ran before the step
                    entries.append((device.device, node, label))
        entries.sort(key=lambda e: _start(e[1]))
        ends = [_start(n) + _length(n, "all_end_rel") for _, n, _ in entries]
        self.start = whole[0] if whole else min((_start(n) for _, n, _ in entries), default=0)
        self.length = (whole[1] if whole else max(ends, default=0)) - self.start
        for device_name, node, label in entries:
            start, length = _start(node) - self.start, _length(node, "all_end_rel")
            ready = (node.scheduled_nanos or 1000 * node.scheduled_micros or _start(node)) - self.start
            self.runs.append(
                Run(len(self.runs), label, device_name, node.thread_id, start, start + _length(node, "op_end_rel"), start + length, ready, list(node.output))
            )
        self._connect()
        self._by_thread = self._threads()
        self.parts = self._parts(parts)
        self.off_cpu: List[OffCpu] = [
            OffCpu(n.thread_id, _start(n) - self.start, _start(n) - self.start + _length(n, "all_end_rel"), n.node_name == "preempted") for n in switches
        ]
        for off in self.off_cpu:
            for shared, run in self._busy(off.thread, off.start, off.end):
                if off.is_preempted:
                    run.preempted += shared
                else:
                    run.asleep += shared
        for run in self.runs:
            run.wait = self._why(run)

    # ---- how it hangs together ----

    def _connect(self) -> None:
        """A node of a loop has several runs: who reads it had the last that was over."""
        runs: Dict[str, List[Run]] = {}
        for run in self.runs:
            runs.setdefault(run.name, []).append(run)
        starts = {name: [r.start for r in of] for name, of in runs.items()}  # ascending
        ends = {name: [r.end for r in of] for name, of in runs.items()}  # a node's runs do not overtake each other
        for run in self.runs:
            for name in run.input_names:
                name = name.lstrip("^")
                if name not in runs:
                    continue  # a constant, a feed, a variable: nothing ran for it
                # A Recv is under way before its Send begins, and may end before it does.
                at = (bisect.bisect_right(starts[name], run.end) if run.is_asynchronous else bisect.bisect_right(ends[name], run.start)) - 1
                if at >= 0 and runs[name][at] is not run:
                    run.inputs.append(runs[name][at])
                    runs[name][at].readers.append(run)

    def _threads(self) -> Dict[int, List[Run]]:
        """What each thread ran, in order."""
        by_thread: Dict[int, List[Run]] = {}
        for run in self.runs:
            if run.thread and not run.is_asynchronous:
                by_thread.setdefault(run.thread, []).append(run)
        return by_thread

    def _parts(self, entries: List[Tuple[str, Any]]) -> List[Part]:
        """By time. An entry's run is the one that was under way when it was asked for."""
        runs: Dict[Tuple[str, str], List[Run]] = {}
        for run in self.runs:
            runs.setdefault((run.device, run.name), []).append(run)
        found = []
        for device, node in entries:
            asked, start = (node.scheduled_nanos or 1000 * node.scheduled_micros) - self.start, _start(node) - self.start
            for run in runs.get((device, node.node_name[: -len(_PART)]), []):
                if run.start <= asked <= run.end:
                    found.append(Part(run, node.thread_id, asked, start, start + _length(node, "all_end_rel")))
        return sorted(found, key=lambda p: p.start)

    def _busy(self, thread: int, start: int, end: int) -> List[Tuple[int, Run]]:
        """(nanoseconds, run) of what a thread did in a time."""
        runs = self._by_thread.get(thread, [])
        found = []
        for run in itertools.islice(runs, _first(runs, start), None):
            if run.start >= end:
                break
            shared = min(run.free, end) - max(run.start, start)
            if shared > 0:
                found.append((shared, run))
        return found

    def _preempted(self, thread: int, start: int, end: int) -> int:
        """For how long of a time a thread could have run, had it had a CPU."""
        return sum(max(0, min(o.end, end) - max(o.start, start)) for o in self.off_cpu if o.is_preempted and o.thread == thread)

    def _why(self, run: Run) -> str:
        if run.delay < _SHORT:
            return ""
        busy = self._busy(run.thread, run.ready, run.start)
        if 2 * sum(t for t, _ in busy) >= run.delay:
            longest = max(busy, key=lambda b: b[0])[1]
            return "its thread ran %s%s" % (longest.name, " and %d more" % (len(busy) - 1) if len(busy) > 1 else "")
        if 2 * self._preempted(run.thread, run.ready, run.start) >= run.delay:
            return "other threads of the machine had its thread's CPU"
        last = max(run.inputs, key=lambda r: r.end, default=None)
        if last is not None and last.thread and last.thread != run.thread:
            return "handed over to another thread by %s" % last.name
        return "no thread was free or awake for it"

    # ---- the critical path ----

    def critical_path(self) -> List[Run]:
        """What the end of the step waited for, first to last: of each op the input that came last, or what its thread ran before it."""
        before: Dict[int, Run] = {}
        for runs in self._by_thread.values():
            for earlier, later in zip(runs, runs[1:]):
                before[later.number] = earlier
        path: List[Run] = []
        run = max(self.runs, key=lambda r: r.end, default=None)
        seen = set()
        while run is not None and run.number not in seen:
            seen.add(run.number)
            path.append(run)
            candidates = list(run.inputs)
            if run.number in before:
                candidates.append(before[run.number])
            run = max((c for c in candidates if c.number not in seen), key=lambda r: r.end, default=None)
        return path[::-1]

    def longest_chain(self) -> int:
        """The time of the longest chain of ops that need each other: what no number of threads can shorten."""
        chains: List[int] = []
        for run in self.runs:  # in the order of their starts
            own = run.end - run.start if not run.is_asynchronous else 0
            chains.append(own + max((chains[i.number] for i in run.inputs if i.number < run.number), default=0))
        return max(chains, default=0)

    def on_path(self, path: List[Run]) -> List[Tuple[Run, int, int]]:
        """(run, nanoseconds of it that count, gap before it): sums to the path's end."""
        rows, at = [], 0
        for run in path:
            start = max(run.start, at) if run.end > at else at
            rows.append((run, max(run.end - start, 0), max(start - at, 0)))
            at = max(at, run.end)
        return rows

    # ---- idle threads ----

    def idle(self) -> List[Idle]:
        """The times in which threads ran no op, and why."""
        first = min((r.start for r in self.runs), default=0)
        last = max((r.end for r in self.runs), default=0)
        helps: Dict[int, List[Part]] = {}
        for part in self.parts:
            helps.setdefault(part.thread, []).append(part)
        found: List[Idle] = []

        def add(thread: int, start: int, end: int, why: str, what: str = "") -> None:
            if end - start >= _SHORT:
                found.append(Idle(thread, start, end, why, what))

        def no_op(thread: int, start: int, end: int, why: str, what: str = "") -> None:
            """But for what it did of the work of ops of other threads."""
            for part in helps.get(thread, []):
                if part.start < end and part.end > start:
                    add(thread, start, part.start, why, what)
                    start = part.end
            add(thread, start, end, why, what)

        for thread in helps.keys() - self._by_thread.keys():
            no_op(thread, 0, self.length, "no op had a part for it")
        for thread, runs in self._by_thread.items():
            add(thread, 0, first, "before the first op: feeds, and of a new step its compilation")
            at = first
            for run in runs:
                if run.start > at:
                    ready = min(max(run.ready, at), run.start)
                    blamed = max(run.inputs, key=lambda r: r.end, default=None)
                    if blamed is None:
                        no_op(thread, at, ready, "nothing was ready")
                    elif blamed.is_asynchronous:
                        no_op(thread, at, ready, "waited for a value on its way", blamed.name)
                    else:
                        no_op(thread, at, ready, "nothing was ready: waited for", blamed.name)
                    no_op(thread, ready, run.start, "between ops: hand-over, release of memory", run.name)
                at = max(at, run.free)
            no_op(thread, at, max(last, at), "no more work for it")
            add(thread, max(last, at), self.length, "after the last op: fetches")
        return found

    # ---- memory ----

    def memory(self) -> List[Held]:
        """What ops allocated for outputs, and until when it was read. Buffers that pass from op to op are one piece."""
        pieces: List[Held] = []
        of_run: Dict[int, Dict[int, int]] = {}  # run, buffer: the piece
        fetched = set(self.fetched)
        for run in self.runs:
            mine = of_run.setdefault(run.number, {})
            known = {b: p for given in run.inputs for b, p in of_run.get(given.number, {}).items()}
            for output in run.outputs:
                if output.made:
                    mine[output.buffer] = len(pieces)
                    pieces.append(Held(run, output.made, run.start, run.end))
                elif output.buffer in known:
                    mine[output.buffer] = known[output.buffer]
            is_kept = run.name in fetched or not run.readers
            end = self.length if is_kept else max(r.end for r in run.readers)
            for piece in mine.values():
                pieces[piece] = pieces[piece]._replace(end=max(pieces[piece].end, end))
        return pieces

    def memory_over_time(self, pieces: Optional[List[Held]] = None) -> List[Tuple[int, int]]:
        """(nanoseconds, bytes held from then on)."""
        changes: Dict[int, int] = {}
        for piece in self.memory() if pieces is None else pieces:
            changes[piece.start] = changes.get(piece.start, 0) + piece.size
            changes[piece.end] = changes.get(piece.end, 0) - piece.size
        line, total = [(0, 0)], 0
        for when in sorted(changes):
            total += changes[when]
            line.append((when, total))
        return line

    def peak(self) -> Tuple[int, int, List[Held]]:
        """(when, bytes, who held them, the largest first)."""
        pieces = self.memory()
        when, most = max(self.memory_over_time(pieces), key=lambda p: p[1])
        return when, most, sorted((p for p in pieces if p.start <= when < p.end), key=lambda p: -p.size)


class OfOp(NamedTuple):
    """Sums over runs."""

    op: str
    runs: int
    nanos: int  # that threads spent on it
    helped: int  # that other threads spent on it
    waited: int  # asynchronously
    delay: int  # before it
    made: int  # bytes


def by(runs: Iterable[Run], key: str) -> List[OfOp]:
    """Sums by "op" or "name" of runs, the longest first."""
    sums: Dict[str, List[int]] = {}
    for run in runs:
        of = sums.setdefault(getattr(run, key), [0] * 6)
        for i, value in enumerate((1, run.free - run.start, run.helped, run.end - run.free, run.delay, run.made)):
            of[i] += value
    return sorted((OfOp(name, *of) for name, of in sums.items()), key=lambda o: -(o.nanos + o.helped))


def _start(node: Any) -> int:
    return int(node.all_start_nanos or 1000 * node.all_start_micros)


def _length(node: Any, field: str) -> int:
    return int(getattr(node, field + "_nanos") or 1000 * getattr(node, field + "_micros"))


def _first(runs: List[Run], start: int) -> int:
    """The last run of a thread that begins at `start` or earlier."""
    low, high = 0, len(runs)
    while low < high:
        middle = (low + high) // 2
        if runs[middle].start <= start:
            low = middle + 1
        else:
            high = middle
    return max(low - 1, 0)
