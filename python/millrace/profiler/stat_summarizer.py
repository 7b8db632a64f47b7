# SPDX-License-Identifier: Apache-2.0
"""What the nodes of traced steps took over many steps, as text: TensorFlow's StatSummarizer, which tensorflow.python.pywrap_tensorflow makes of a graph."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List

from millrace import tf_logging
from millrace.protos.definitions import GraphDef, StepStats  # type: ignore[attr-defined]

_COLUMNS = "\t%24s\t%17s\t%9s\t%9s\t%8s\t%8s\t%10s\t%9s\t%s" % (
    "[node type]", "[start]", "[first]", "[avg ms]", "[%]", "[cdf%]", "[mem KB]", "[times called]", "[Name]",
)  # fmt: skip
_COLUMNS_OF_TYPES = "\t%24s\t%9s\t%10s\t%11s\t%11s\t%10s\t%9s" % ("[Node type]", "[count]", "[avg ms]", "[avg %]", "[cdf %]", "[mem KB]", "[times called]")


class _Node:
    """A node over all steps: when it began in each (microseconds from the step's begin), how long it took, and the bytes that it asked for."""

    def __init__(self, name: str, type: str) -> None:
        self.name, self.type, self.calls = name, type, 0
        self.starts: List[int] = []
        self.took: List[int] = []
        self.bytes: List[int] = []

    def mean(self, values: List[int]) -> float:
        """The mean of a call."""
        return sum(values) / len(values)


def _said(values: List[int]) -> str:
    """Count, first, last, least, largest, mean and deviation of numbers."""
    if not values:
        return "count=0"
    if min(values) == max(values):
        return "count=%d curr=%d(all same)" % (len(values), values[-1])
    mean = sum(values) / len(values)
    deviation = int(math.sqrt(sum((v - mean) ** 2 for v in values) / len(values)))
    told = (len(values), values[0], values[-1], min(values), max(values), mean, deviation)
    return "count=%d first=%d curr=%d min=%d max=%d avg=%g std=%d" % told


def _title(text: str) -> str:
    return "============================== %s ==============================" % text


class StatSummarizer:
    """Adds up the StepStats of steps; types of nodes are the graph's, where it has the node."""

    def __init__(self, graph_def: bytes = b"") -> None:
        self._types = {node.name: node.op for node in GraphDef.FromString(graph_def).node}
        self._nodes: Dict[str, _Node] = {}
        self._took: List[int] = []  # of whole steps
        self._bytes: List[int] = []

    def ProcessStepStatsStr(self, step_stats_str: bytes) -> None:
        """Adds a serialized StepStats."""
        self.ProcessStepStats(StepStats.FromString(step_stats_str))

    def ProcessStepStats(self, step_stats: Any) -> None:
        """Adds a StepStats."""
        traced = [node for device in step_stats.dev_stats for node in device.node_stats]
        first = min((node.all_start_micros for node in traced), default=0)
        for node in traced:
            self._node(node).calls += 1
            kept = self._nodes[node.node_name]
            kept.starts.append(node.all_start_micros - first)
            kept.took.append(node.op_end_rel_micros - node.op_start_rel_micros)
            kept.bytes.append(sum(memory.total_bytes for memory in node.memory))
        self._took.append(sum(node.op_end_rel_micros - node.op_start_rel_micros for node in traced))
        self._bytes.append(sum(memory.total_bytes for node in traced for memory in node.memory))

    def _node(self, traced: Any) -> _Node:
        name, labelled = traced.node_name, traced.timeline_label.partition(" = ")[2].partition("(")[0]
        return self._nodes.setdefault(name, _Node(name, self._types.get(name) or labelled or "<>"))

    def _rows(self, key: Callable[[_Node], float]) -> Iterator[str]:
        every, sofar = sum(node.mean(node.took) for node in self._nodes.values()) or 1.0, 0.0
        for node in sorted(self._nodes.values(), key=key):
            share = 100 * node.mean(node.took) / every
            sofar += share
            times = (node.mean(node.starts) / 1e3, node.took[0] / 1e3, node.mean(node.took) / 1e3)
            rest = (share, sofar, node.mean(node.bytes) / 1e3, node.calls / len(self._took), node.name)
            yield "\t%24s\t%17.3f\t%9.3f\t%9.3f\t%7.3f%%\t%7.3f%%\t%10.3f\t%9d\t%s" % (node.type, *times, *rest)

    def _types_rows(self) -> Iterator[str]:
        of_type: Dict[str, List[_Node]] = {}
        for node in self._nodes.values():
            of_type.setdefault(node.type, []).append(node)
        took = {type: sum(node.mean(node.took) for node in nodes) for type, nodes in of_type.items()}
        every, sofar = sum(took.values()) or 1.0, 0.0
        for type in sorted(took, key=lambda t: -took[t]):
            nodes, share = of_type[type], 100 * took[type] / every
            sofar += share
            calls = sum(node.calls for node in nodes) / len(self._took)
            memory = sum(node.mean(node.bytes) for node in nodes) / 1e3
            yield "\t%24s\t%9d\t%10.3f\t%10.3f%%\t%10.3f%%\t%10.3f\t%9d" % (type, len(nodes), took[type] / 1e3, share, sofar, memory, calls)

    def GetOutputString(self) -> str:
        """Tables of the nodes in the order of their begin, by time and by memory, of their types, and what whole steps took."""
        lines: List[str] = []
        keys = {"Run Order": lambda n: n.mean(n.starts), "Top by Computation Time": lambda n: -n.mean(n.took), "Top by Memory Use": lambda n: -n.mean(n.bytes)}
        for title, key in keys.items():
            lines += [_title(title), _COLUMNS, *self._rows(key), ""]
        lines += ["Number of nodes executed: %d" % len(self._nodes), _title("Summary by node type"), _COLUMNS_OF_TYPES, *self._types_rows(), ""]
        lines += ["Timings (microseconds): " + _said(self._took), "Memory (bytes): " + _said(self._bytes), "%d nodes observed" % len(self._nodes), ""]
        return "\n".join(lines)

    def PrintStepStats(self) -> None:
        """Logs it."""
        tf_logging.info("%s", self.GetOutputString())


def NewStatSummarizer(unused: bytes = b"") -> StatSummarizer:
    """One that sums up nothing yet, for a serialized GraphDef."""
    return StatSummarizer(unused)


def DeleteStatSummarizer(summarizer: StatSummarizer) -> None:
    """Nothing to do: Python frees it."""
    del summarizer  # nothing else holds it
