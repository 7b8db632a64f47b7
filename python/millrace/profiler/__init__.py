# SPDX-License-Identifier: Apache-2.0
"""What steps did: traces, reports, and the numbers in them.

    with tf.profiler.record(steps=range(10, 20)) as trace:   # of all sessions
        train()
    trace.save("report.html")                                # or trace.json, for Perfetto and chrome://tracing
    print(trace.text())

Of a program that is not to be touched: MILLRACE_TRACE=DIR in its environment, then Trace.read(DIR), or `millrace trace DIR`.
"""

from __future__ import annotations

import glob
import importlib
import os
import threading
import warnings
from typing import Any, Container, Iterator, List, Optional, Sequence, Union

from millrace.framework import not_provided as _not_provided
from millrace.framework import session as _sessions
from millrace.profiler import chrome as _chrome
from millrace.profiler import report as _report
from millrace.profiler.steps import Held, Idle, OfOp, Run, Step, by
from millrace.protos import definitions

__all__ = [
    "AdviceProto",
    "GraphNodeProto",
    "MultiGraphNodeProto",
    "OpLogProto",
    "ProfileOptionBuilder",
    "Profiler",
    "advise",
    "profile",
    "write_op_log",
    "Held",
    "Idle",
    "OfOp",
    "Run",
    "Step",
    "Trace",
    "by",
    "record",
]


def _later(name: str) -> Any:
    if name in ("ProfileOptionBuilder", "Profiler", "advise", "profile", "write_op_log"):  # looks at graphs, which traces do not need
        return getattr(importlib.import_module("millrace.profiler.model_analyzer"), name)
    if name in ("AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto"):
        return getattr(definitions, name)
    raise AttributeError("module 'millrace.profiler' has no attribute %r" % name)


__getattr__ = _not_provided.getter("profiler", _later)


class Trace:
    """Traced steps, as RunMetadata messages."""

    def __init__(self, metadata: Sequence[Any] = (), names: Optional[Sequence[str]] = None) -> None:
        self._metadata = list(metadata)
        self._names = list(names) if names is not None else []
        self._lock = threading.Lock()

    @classmethod
    def read(cls, path: Union[str, "os.PathLike[str]"]) -> "Trace":
        """The steps of a folder that MILLRACE_TRACE named, of one of its files, or of any file with a RunMetadata message. Files of a folder that are
        no traces are left out, with a warning; ValueError where there is no other."""
        path = os.fspath(path)
        files = sorted(glob.glob(os.path.join(glob.escape(path), "*.pb"))) if os.path.isdir(path) else [path]
        if not files:
            raise FileNotFoundError(2, "holds no traces (trace-*.pb)", path)
        found, wrong = {}, []
        for file in files:
            try:
                found[file] = _read(file)
            except ValueError as error:
                wrong.append(str(error))
        if not found:
            raise ValueError(wrong[0])
        for fault in wrong:
            warnings.warn("%s; it is left out" % fault, stacklevel=2)
        return cls(list(found.values()), [_step_name(file) for file in found])

    def add(self, metadata: Any, name: str = "") -> None:
        """One step more. Thread-safe."""
        with self._lock:
            self._names.append(name or "step %d" % len(self._metadata))
            self._metadata.append(metadata)

    @property
    def metadata(self) -> List[Any]:
        """The RunMetadata messages."""
        return list(self._metadata)

    @property
    def steps(self) -> List[Step]:
        """The steps, to be asked."""
        return [Step(m, self._names[i] if i < len(self._names) else "step %d" % i) for i, m in enumerate(self._metadata)]

    def __len__(self) -> int:
        return len(self._metadata)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self) -> str:
        return "<Trace of %d steps>" % len(self)

    def html(self, title: str = "Steps of Millrace") -> str:
        """A page with all of it, which needs no network and no other file."""
        return _report.html(self.steps, title)

    def _repr_html_(self) -> str:
        page = self.html().replace("&", "&amp;").replace('"', "&quot;")
        return '<iframe srcdoc="%s" style="width:100%%;height:800px;border:0"></iframe>' % page

    def chrome(self) -> str:
        """JSON for Perfetto and chrome://tracing."""
        return _chrome.chrome(self.steps)

    def save(self, path: Union[str, "os.PathLike[str]"], title: str = "Steps of Millrace") -> None:
        """Writes .html, .json (Perfetto, chrome://tracing), or .pb (one step's RunMetadata)."""
        path = os.fspath(path)
        form = os.path.splitext(path)[1]
        if form in (".html", ".htm"):
            data = self.html(title).encode()
        elif form == ".json":
            data = self.chrome().encode()
        elif form == ".pb" and len(self) == 1:
            data = self._metadata[0].SerializeToString()
        else:
            raise ValueError("%s: want .html, .json, or .pb for a single step" % path)
        _write(path, data)

    def text(self, rows: int = 5) -> str:
        """The gist for a terminal: a line a step, and of the one in the middle, by their times, what took longest; `rows` of each list."""
        steps = self.steps
        if not steps:
            return "no steps"
        middle = sorted(steps, key=lambda s: s.length)[len(steps) // 2]
        lines = [_head(step) for step in steps[: 2 * rows]] if len(steps) > 1 else []
        if len(steps) > 2 * rows:
            least, most = min(s.length for s in steps), max(s.length for s in steps)
            lines.append("... and %d steps more, in all %s to %s us" % (len(steps) - 2 * rows, _micros(least), _micros(most)))
        return "\n".join([*lines, *([""] if lines else []), _text(middle, rows)])


def _read(file: str) -> Any:
    with open(file, "rb") as stream:
        try:
            metadata = definitions.RunMetadata.FromString(stream.read())
        except ValueError as error:
            raise ValueError("%s is no trace: %s" % (file, error)) from None
    if not metadata.step_stats.dev_stats:
        raise ValueError("%s is no trace: it has no step_stats" % file)
    return metadata


def _write(path: str, data: bytes) -> None:
    temporary = path + ".tmp"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _step_name(file: str) -> str:
    parts = os.path.splitext(os.path.basename(file))[0].split("-")
    if len(parts) == 4 and parts[0] == "trace" and all(p.isdigit() for p in parts[1:]):
        return "process %s, session %d, step %d" % (parts[1], int(parts[2]), int(parts[3]))
    return os.path.basename(file)


def _micros(nanos: int) -> str:
    return "%.1f" % (nanos / 1e3)


def _head(step: Step) -> str:
    return "%s: %s us, %d ops" % (step.name, _micros(step.length), len(step.runs))


def _text(step: Step, rows: int) -> str:
    path = step.on_path(step.critical_path())
    when, most, holders = step.peak()
    lines = [_head(step)]
    lines += ["  ops by time (us)"] + ["    %-32s %6d runs %12s" % (o.op, o.runs, _micros(o.nanos)) for o in by(step.runs, "op")[:rows]]
    longest = sorted(path, key=lambda row: -row[1])[:rows]
    lines += ["  critical path: %d ops, %s us in them; the longest" % (len(path), _micros(sum(nanos for _, nanos, _ in path)))]
    lines += ["    %-56s %12s" % (r.name, _micros(nanos)) for r, nanos, _ in longest]
    late = [r for r in sorted(step.runs, key=lambda r: -r.delay)[:rows] if r.wait]
    if late:
        lines += ["  waits before ops (us)"] + ["    %-40s %12s  %s" % (r.name, _micros(r.delay), r.wait) for r in late]
    idle = _report.idle_sums(step)[:rows]
    if idle:
        lines += ["  idle threads (us)"] + [
            "    %-14s %12s  %s" % (step.threads.get(t, str(t)), _micros(nanos), (why + " " + what).strip()) for t, why, what, _, nanos in idle
        ]
    taken = sum(o.end - o.start for o in step.off_cpu if o.is_preempted)
    if taken:
        lines += ["  others had its threads' CPUs for %s us" % _micros(taken)]
    lines += ["  memory of outputs: at most %d bytes, at %s us; held by" % (most, _micros(when))]
    lines += ["    %-56s %12d" % (p.run.name, p.size) for p in holders[:rows]]
    return "\n".join(lines)


class record:
    """A context in which steps are traced: of `session`, or of all; those whose numbers, from 0 on, are in `steps` (default: all).

    `as` gives the Trace; with `folder` each step is written there, too, as a RunMetadata message.
    """

    def __init__(self, folder: Optional[str] = None, steps: Optional[Container[int]] = None, session: Any = None) -> None:
        self._folder, self._steps, self._session = folder, steps, session
        self._next = 0
        self._lock = threading.Lock()
        self.trace = Trace()

    def __enter__(self) -> Trace:
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
        _sessions.recorders.append(self)
        return self.trace

    def __exit__(self, *unused: Any) -> None:
        _sessions.recorders.remove(self)

    def begin(self, session: Any) -> int:
        """The number of a step that starts, -1 when it is not to be traced."""
        if self._session is not None and session is not self._session:
            return -1
        with self._lock:
            number = self._next
            self._next += 1
        return number if self._steps is None or number in self._steps else -1

    def end(self, number: int, metadata: bytes) -> None:
        """What the step told, encoded: it is decoded when somebody looks at it."""
        own = definitions.RunMetadata()
        own._parse_later(metadata)
        self.trace.add(own, "step %d" % number)
        if self._folder is not None:
            _write(os.path.join(self._folder, "trace-%d-0-%06d.pb" % (os.getpid(), number)), metadata)
