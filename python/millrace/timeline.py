# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.client.timeline: a step's times for Chrome's trace viewer."""
from __future__ import annotations

import json
from typing import Any, Dict, List


class Timeline:
    """The times of a step, from RunMetadata.step_stats."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._stats = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule") -> str:
        """JSON for chrome://tracing."""
        events: List[Dict[str, Any]] = []
        for pid, device in enumerate(self._stats.dev_stats):
            events.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": device.device}})
            for node in device.node_stats:
                name, _, label = node.node_name, None, node.timeline_label
                kind = label.split(" = ")[1].split("(")[0] if " = " in label else name
                events.append({"ph": "X", "cat": "Op", "name": kind, "pid": pid, "tid": node.thread_id, "ts": node.all_start_micros,
                               "dur": max(1, node.all_end_rel_micros), "args": {"name": name, "op": kind}})
        return json.dumps({"traceEvents": events}, indent=2)
