# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.client.timeline: a step's times and memory for Chrome's trace viewer."""

from __future__ import annotations

import collections
import json
import re
from typing import Any, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.profiler.steps import read_label

AllocationMaximum = collections.namedtuple("AllocationMaximum", ("timestamp", "num_bytes", "tensors"))
StepStatsAnalysis = collections.namedtuple("StepStatsAnalysis", ("chrome_trace", "allocator_maximums"))

_TRANSFER = re.compile(r"^\[.*?\] (?P<edge>\S+) from (?P<source>\S+) to (?P<target>\S+)$")


def _allocator(name: str) -> str:
    """TensorFlow's name for the memory of the host."""
    return "cpu" if name in ("", "host") else name


class _ChromeTraceFormatter:
    """Events of the trace format, in the order in which they were added; what describes processes comes first."""

    def __init__(self) -> None:
        self._processes: List[Dict[str, Any]] = []
        self._events: List[Dict[str, Any]] = []

    def process(self, pid: int, name: str) -> None:
        """Names a row of the viewer."""
        self._processes.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})

    def thread(self, pid: int, tid: int, name: str) -> None:
        """Names a thread of a row."""
        self._processes.append({"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}})

    def event(self, phase: str, category: str, name: str, pid: int, tid: int, timestamp: int, **more: Any) -> None:
        """Adds an event."""
        self._events.append({"ph": phase, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": timestamp, **more})

    def format_to_string(self, pretty: bool = False) -> str:
        """The trace as JSON."""
        trace = {"traceEvents": self._processes + self._events}
        return json.dumps(trace, indent=4, separators=(",", ": ")) if pretty else json.dumps(trace, separators=(",", ":"))


class _Output:
    """A tensor that a node of the step made: where, when, and until when it is read."""

    def __init__(self, name: str, number: int, pid: int, tid: int, made: int, allocator: str, num_bytes: int, passed_on: int = 0) -> None:
        self.name, self.number, self.pid, self.tid, self.made = name, number, pid, tid, made
        self.allocator, self.num_bytes, self.last_read = allocator, num_bytes, made
        self.passed_on = passed_on  # the address of what it had from another node and gave on as it was; 0: it made something
        self.address = passed_on


class Timeline:
    """The times of a step, from RunMetadata.step_stats.

    With the step's graph, arrows lead from the nodes that make tensors to those that read them; nodes whose label lists
    their inputs have them anyway.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._stats, self._graph = step_stats, graph

    def _read(self, node: Any) -> Tuple[str, str, List[str]]:
        """(name, op, names of inputs) of a node's statistics."""
        label = read_label(node.timeline_label)
        if label is not None:
            inputs = label.inputs
            if not inputs and self._graph is not None:
                made = self._graph._find(label.name)
                inputs = [t.op.name for t in made.inputs] if made is not None else []
            return label.name, label.op, inputs
        transfer = _TRANSFER.match(node.timeline_label)
        if transfer is not None:
            return transfer.group("edge"), "RecvTensor", []
        return node.node_name, node.node_name, []

    def _outputs(self, trace: _ChromeTraceFormatter) -> Dict[str, _Output]:
        """The events of all nodes; the tensors that they made, by node."""
        made: Dict[str, _Output] = {}
        for pid, device in enumerate(self._stats.dev_stats):
            trace.process(pid, device.device + " Compute")
            for tid, thread in sorted(device.thread_names.items()):
                trace.thread(pid, tid, thread)
            for node in device.node_stats:
                name, op, inputs = self._read(node)
                arguments = {"name": name, "op": op, **{"input%d" % i: given for i, given in enumerate(inputs)}}
                if node.scheduled_micros:
                    arguments["waited_us"] = node.all_start_micros - node.scheduled_micros
                duration = max(node.op_end_rel_micros, node.all_end_rel_micros, 1)
                trace.event("X", "Op", op, pid, node.thread_id, node.all_start_micros, dur=duration, args=arguments)
                sizes = [
                    (_allocator(o.tensor_description.allocation_description.allocator_name), o.tensor_description.allocation_description.requested_bytes)
                    for o in node.output
                ]
                allocator = sizes[0][0] if sizes else ""
                made[name] = tensor = _Output(name, len(made), pid, node.thread_id, node.all_start_micros + duration, allocator, sum(s for _, s in sizes))
                given = [o.tensor_description.allocation_description for o in node.output]
                if len(given) == 1:
                    tensor.address = given[0].ptr
                    tensor.passed_on = 0 if given[0].allocated_bytes else given[0].ptr
        return made

    def _connect(self, trace: _ChromeTraceFormatter, made: Dict[str, _Output], show_dataflow: bool) -> None:
        flows = 0
        for pid, device in enumerate(self._stats.dev_stats):
            for node in device.node_stats:
                for given in self._read(node)[2]:
                    tensor = made.get(given.lstrip("^").split(":")[0])
                    if tensor is None:
                        continue
                    tensor.last_read = max(tensor.last_read, node.all_start_micros)
                    if show_dataflow and (tensor.pid, tensor.tid) != (pid, node.thread_id) and not given.startswith("^"):
                        trace.event("s", "DataFlow", tensor.name, tensor.pid, tensor.tid, tensor.made, id=flows)
                        trace.event("t", "DataFlow", tensor.name, pid, node.thread_id, node.all_start_micros, id=flows)
                        flows += 1

    def _memory(self, trace: Optional[_ChromeTraceFormatter], made: Dict[str, _Output]) -> Dict[str, AllocationMaximum]:
        """The most that each allocator held at once of what the nodes made. What a node passes on is still its maker's."""
        changes: Dict[str, List[Tuple[int, int, _Output]]] = {}
        owners: Dict[int, _Output] = {}  # by address
        passed = set()
        for tensor in sorted(made.values(), key=lambda t: t.made):
            owner = owners.get(tensor.passed_on) if tensor.passed_on else None
            if owner is None:
                owners[tensor.address] = tensor
            else:
                owner.last_read = max(owner.last_read, tensor.last_read)
                passed.add(tensor.name)
        for tensor in made.values():
            if tensor.allocator and tensor.name not in passed:
                changes.setdefault(tensor.allocator, []).extend([(tensor.made, 1, tensor), (tensor.last_read + 1, -1, tensor)])
        maximums: Dict[str, AllocationMaximum] = {}
        for pid, allocator in enumerate(sorted(changes), len(self._stats.dev_stats)):
            if trace is not None:
                trace.process(pid, allocator + " Memory")
            held: Dict[str, int] = {}
            most = AllocationMaximum(0, -1, set())
            for when, sign, tensor in sorted(changes[allocator], key=lambda c: (c[0], -c[1])):
                if sign > 0:
                    held[tensor.name] = tensor.num_bytes
                else:
                    held.pop(tensor.name, None)
                total = sum(held.values())
                if total > most.num_bytes:
                    most = AllocationMaximum(when, total, set(held))
                if trace is not None:
                    trace.event("C", "Memory", allocator, pid, 0, when, args={allocator: total})
            maximums[allocator] = most
        return maximums

    def analyze_step_stats(self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule") -> StepStatsAnalysis:
        """(the trace, the most memory that each allocator held at once). op_time: there are no streams of a GPU, and all kinds are one."""
        if op_time not in ("schedule", "gpu", "all"):
            raise at_user_line(ValueError("op_time must be 'schedule', 'gpu' or 'all', got %r" % (op_time,)))
        trace = _ChromeTraceFormatter()
        made = self._outputs(trace)
        self._connect(trace, made, show_dataflow)
        return StepStatsAnalysis(trace, self._memory(trace if show_memory else None, made))

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule") -> str:
        """JSON for chrome://tracing."""
        return self.analyze_step_stats(show_dataflow, show_memory, op_time).chrome_trace.format_to_string(pretty=True)
