# SPDX-License-Identifier: Apache-2.0
"""tf.profiler.profile and its kin: parameters, operations, times and bytes of a graph's operations, summed up by scopes or types."""

from __future__ import annotations

import copy
import os
import re
import sys
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from millrace import gfile
from millrace.framework import flops  # noqa: F401 - registers
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, get_default_graph
from millrace.framework.statistics import get_stats_for_node_def
from millrace.protos import definitions

_NUMBERS = (
    "exec_micros",
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "parameters",
    "float_ops",
)
_DEFAULTS: Dict[str, Any] = {
    "max_depth": 100,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["micros"],
    "step": -1,
    "output": "stdout",
}
_SELECTED = {
    "micros": ("exec_micros", "%dus"),
    "bytes": ("requested_bytes", "%dB"),
    "params": ("parameters", "%d params"),
    "float_ops": ("float_ops", "%d flops"),
    "accelerator_micros": ("accelerator_exec_micros", "%dus"),
    "cpu_micros": ("cpu_exec_micros", "%dus"),
    "peak_bytes": ("peak_bytes", "%dB"),
    "residual_bytes": ("residual_bytes", "%dB"),
    "output_bytes": ("output_bytes", "%dB"),
    "occurrence": ("run_count", "%d"),
}
ALL_ADVICE: Dict[str, Dict[str, Any]] = {"ExpensiveOperationChecker": {}, "AcceleratorUtilizationChecker": {}, "JobChecker": {}, "OperationChecker": {}}


class ProfileOptionBuilder:
    """Makes the options of profile, one call after the other."""

    def __init__(self, options: Optional[Dict[str, Any]] = None) -> None:
        self._options = copy.deepcopy(options if options is not None else _DEFAULTS)

    @staticmethod
    def trainable_variables_parameter() -> Dict[str, Any]:
        """The parameters of trained variables, by scopes."""
        return {**copy.deepcopy(_DEFAULTS), "account_type_regexes": ["_trainable_variables"], "select": ["params"], "max_depth": 10000}

    @staticmethod
    def float_operation() -> Dict[str, Any]:
        """Operations with floating point numbers, of those whose shapes are known."""
        return {**copy.deepcopy(_DEFAULTS), "min_float_ops": 1, "select": ["float_ops"], "order_by": "float_ops", "max_depth": 10000}

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> Dict[str, Any]:
        """Times and bytes of a traced step."""
        return {
            **copy.deepcopy(_DEFAULTS),
            "max_depth": 10000,
            "min_micros": min_micros,
            "min_bytes": min_bytes,
            "min_accelerator_micros": min_accelerator_micros,
            "min_cpu_micros": min_cpu_micros,
            "min_peak_bytes": min_peak_bytes,
            "min_residual_bytes": min_residual_bytes,
            "min_output_bytes": min_output_bytes,
            "select": ["micros", "bytes"],
            "order_by": "micros",
        }

    def build(self) -> Dict[str, Any]:
        """The options."""
        return copy.deepcopy(self._options)

    def _with(self, **values: Any) -> "ProfileOptionBuilder":
        self._options.update(values)
        return self

    def with_max_depth(self, max_depth: int) -> "ProfileOptionBuilder":
        """How deep scopes are shown."""
        return self._with(max_depth=max_depth)

    def with_min_memory(self, min_bytes: int = 0, min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0) -> "ProfileOptionBuilder":
        """Shows what has so many bytes."""
        return self._with(min_bytes=min_bytes, min_peak_bytes=min_peak_bytes, min_residual_bytes=min_residual_bytes, min_output_bytes=min_output_bytes)

    def with_min_execution_time(self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0) -> "ProfileOptionBuilder":
        """Shows what takes so long."""
        return self._with(min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros)

    def with_min_parameters(self, min_params: int) -> "ProfileOptionBuilder":
        """Shows what has so many parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> "ProfileOptionBuilder":
        """Shows types of which there are so many."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> "ProfileOptionBuilder":
        """Shows what has so many operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: List[str]) -> "ProfileOptionBuilder":
        """Counts operations of these types, or in these devices and collections."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self, start_name_regexes: Any = None, show_name_regexes: Any = None, hide_name_regexes: Any = None, trim_name_regexes: Any = None
    ) -> "ProfileOptionBuilder":
        """Which names are shown: those below the start, that match show, do not match hide, and lie not below trim."""
        given = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{name: list(value) for name, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> "ProfileOptionBuilder":
        """Sums up what is shown alone."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> "ProfileOptionBuilder":
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> "ProfileOptionBuilder":
        """Prints."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> "ProfileOptionBuilder":
        """Writes to a file."""
        return self._with(output="file:outfile=%s" % outfile)

    def with_timeline_output(self, timeline_file: str) -> "ProfileOptionBuilder":
        """Writes the step for chrome://tracing to a file."""
        return self._with(output="timeline:outfile=%s" % timeline_file)

    def with_pprof_output(self, pprof_file: str) -> Any:
        """Is not there."""
        raise at_user_line(NotImplementedError("ProfileOptionBuilder.with_pprof_output(%r): use with_file_output, or tf.profiler.Trace.save." % pprof_file))

    def order_by(self, attribute: str) -> "ProfileOptionBuilder":
        """What rows are ordered by: "name", "depth", "bytes", "micros", "params", "float_ops", "occurrence" ..."""
        return self._with(order_by=attribute)

    def select(self, attributes: List[str]) -> "ProfileOptionBuilder":
        """What rows show."""
        unknown = [a for a in attributes if a not in (*_SELECTED, "device", "op_types", "input_shapes", "tensor_value")]
        if unknown:
            raise at_user_line(ValueError("select: unknown %s" % unknown))
        return self._with(select=list(attributes))

    def with_step(self, step: int) -> "ProfileOptionBuilder":
        """The step whose times are shown; -1: their mean."""
        return self._with(step=step)


def _step_numbers(run_meta: Any) -> Dict[str, Dict[str, int]]:
    """{operation: times and bytes} of a traced step."""
    found: Dict[str, Dict[str, int]] = {}
    for device in run_meta.step_stats.dev_stats if run_meta is not None else ():
        for node in device.node_stats:
            kept = found.setdefault(node.node_name.split(":")[0], dict.fromkeys((*_NUMBERS, "runs"), 0))
            micros = max(node.op_end_rel_micros - node.op_start_rel_micros, 0) or node.all_end_rel_micros
            kept["exec_micros"] += micros
            kept["cpu_exec_micros" if "gpu" not in device.device.lower() else "accelerator_exec_micros"] += micros
            kept["runs"] += 1
            kept["requested_bytes"] += sum(m.total_bytes for m in node.memory)
            kept["peak_bytes"] += sum(m.peak_bytes for m in node.memory)
            kept["residual_bytes"] += sum(m.live_bytes for m in node.memory)
            kept["output_bytes"] += sum(o.tensor_description.allocation_description.requested_bytes for o in node.output)
    return found


class _Counted:
    """What is known of an operation."""

    def __init__(self, op: Any, node: Any, kinds: Iterable[str], step: Optional[Dict[str, int]], logged: Any) -> None:
        self.op, self.name, self.kinds = op, op.name, [op.type, *([op.device] if op.device else []), *kinds]
        self.numbers: Dict[str, int] = dict.fromkeys(_NUMBERS, 0)
        self.runs = 0
        if step is not None:
            self.runs = step["runs"]
            self.numbers.update((k, step[k]) for k in _NUMBERS)
        if op.type in ("Variable", "VariableV2", "VarHandleOp"):
            self.numbers["parameters"] = _elements(op)
        if logged is not None:
            self.kinds += list(logged.types)
        if logged is not None and logged.float_ops:
            self.numbers["float_ops"] = logged.float_ops
        else:
            try:
                self.numbers["float_ops"] = int(get_stats_for_node_def(op.graph, node, "flops").value or 0)
            except ValueError:  # shapes that are not known
                pass


def _elements(op: Any) -> int:
    from millrace.framework.tensor_shape import TensorShape

    return TensorShape(op.get_attr("shape")).num_elements() or 0


def _matches(regexes: Iterable[str], text: str) -> bool:
    return any(re.fullmatch(r, text) for r in regexes)


class Profiler:
    """Profiles of a graph with the traced steps that it was given."""

    def __init__(self, graph: Any = None, op_log: Any = None) -> None:
        self._graph = graph or get_default_graph()
        self._logged = {entry.name: entry for entry in op_log.log_entries} if op_log is not None else {}
        self._steps: Dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Takes a traced step."""
        self._steps[step] = run_meta

    def _counted(self, options: Dict[str, Any]) -> List[_Counted]:
        wanted = options.get("step", -1)
        metas = list(self._steps.values()) if wanted < 0 else [self._steps[wanted]]
        steps = [_step_numbers(m) for m in metas]
        trained = {v.op.name for v in self._graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
        nodes = {n.name: n for n in self._graph.as_graph_def().node}
        made = []
        for op in self._graph.get_operations():
            of_steps = [s[op.name] for s in steps if op.name in s]
            step = {k: sum(s[k] for s in of_steps) // (len(of_steps) if k != "runs" else 1) for k in of_steps[0]} if of_steps else None
            one = _Counted(op, nodes[op.name], ["_trainable_variables"] if op.name in trained else [], step, self._logged.get(op.name))
            if any(_matches(options["account_type_regexes"], kind) for kind in one.kinds):
                made.append(one)
        return made

    # ---- views ----

    def profile_name_scope(self, options: Dict[str, Any]) -> Any:
        """A GraphNodeProto with the scopes below it."""
        return self._tree(options, lambda one: one.name.split("/"), "scope")

    def profile_graph(self, options: Dict[str, Any]) -> Any:
        """A GraphNodeProto with all operations side by side."""
        return self._tree(options, lambda one: [one.name], "graph")

    def profile_operations(self, options: Dict[str, Any]) -> Any:
        """A MultiGraphNodeProto with one below it for each type of operation."""
        return self._groups(options, lambda one: [one.op.type], "op")

    def profile_python(self, options: Dict[str, Any]) -> Any:
        """A MultiGraphNodeProto with the lines of the program below it that made the operations."""
        return self._groups(options, _lines_of, "code")

    def _shown(self, options: Dict[str, Any], node: Any, count: int = 1) -> bool:
        least = {
            "total_requested_bytes": "min_bytes",
            "total_exec_micros": "min_micros",
            "total_parameters": "min_params",
            "total_float_ops": "min_float_ops",
            "total_peak_bytes": "min_peak_bytes",
            "total_residual_bytes": "min_residual_bytes",
            "total_output_bytes": "min_output_bytes",
            "total_cpu_exec_micros": "min_cpu_micros",
            "total_accelerator_exec_micros": "min_accelerator_micros",
        }
        wanted = [options.get(minimum, 0) <= getattr(node, total) for total, minimum in least.items() if options.get(minimum, 0)]
        return (
            (not wanted or any(wanted))
            and count >= options.get("min_occurrence", 0)
            and _matches(options["show_name_regexes"], node.name)
            and not _matches(options["hide_name_regexes"], node.name)
        )

    def _tree(self, options: Dict[str, Any], path_of: Callable[[_Counted], List[str]], cmd: str) -> Any:
        nodes: Dict[str, Any] = {"": definitions.GraphNodeProto(name="_TFProfRoot")}
        below: Dict[str, List[str]] = {"": []}
        for one in self._counted(options):
            parts, path = path_of(one), ""
            for part in parts:
                inner = path + "/" + part if path else part
                if inner not in nodes:
                    nodes[inner] = definitions.GraphNodeProto(name=inner)
                    below.setdefault(path, []).append(inner)
                    below.setdefault(inner, [])
                path = inner
            node = nodes[path]
            for name, value in one.numbers.items():
                setattr(node, name, value)
            node.run_count, node.total_definition_count = one.runs, 1
            if one.op.device:
                node.devices.append(one.op.device)
            for x in one.op.outputs:
                if x.get_shape().ndims is not None:
                    node.shapes.append(x.get_shape().as_proto())

        def summed(path: str, depth: int) -> Any:
            node = nodes[path]
            inner = [summed(p, depth + 1) for p in below[path] if not _matches(options["trim_name_regexes"], p)]
            for name in _NUMBERS:
                setattr(node, "total_" + name, getattr(node, name) + sum(getattr(i, "total_" + name) for i in inner))
            node.total_run_count = node.run_count + sum(i.total_run_count for i in inner)
            node.total_definition_count += sum(i.total_definition_count for i in inner)
            if depth < options["max_depth"]:
                kept = [i for i in inner if i.children or self._shown(options, i)]
                node.children.extend(_ordered(kept, options))
            return node

        root = summed("", 0)
        starts = options["start_name_regexes"]
        if starts != [".*"]:
            found = [n for p, n in nodes.items() if p and _matches(starts, p)]
            root = definitions.GraphNodeProto(name="_TFProfRoot", children=found)
            for name in (*_NUMBERS, "run_count", "definition_count"):
                name = "total_" + name
                setattr(root, name, sum(getattr(n, name) for n in found))
        _write(options, root, cmd, self._steps)
        return root

    def _groups(self, options: Dict[str, Any], path_of: Callable[[_Counted], List[str]], cmd: str) -> Any:
        root = definitions.MultiGraphNodeProto(name="_TFProfRoot")
        groups: Dict[str, Any] = {}
        for one in self._counted(options):
            for key in path_of(one):
                node = groups.setdefault(key, definitions.MultiGraphNodeProto(name=key))
                inner = node.graph_nodes.add(name=one.name, run_count=one.runs, total_run_count=one.runs, total_definition_count=1)
                for name, value in one.numbers.items():
                    for target, field in ((inner, name), (inner, "total_" + name), (node, name), (node, "total_" + name)):
                        setattr(target, field, (getattr(target, field) if target is node else 0) + value)
        kept = _ordered([g for g in groups.values() if self._shown(options, g, len(g.graph_nodes))], options)
        counted = kept if options["account_displayed_op_only"] else groups.values()
        for name in _NUMBERS:
            setattr(root, "total_" + name, sum(getattr(g, name) for g in counted))
        root.children.extend(kept)
        _write(options, root, cmd, self._steps)
        return root

    def advise(self, options: Optional[Dict[str, Any]] = None) -> Any:
        """An AdviceProto: the most expensive operations, and those that could be cheaper."""
        made = definitions.AdviceProto()
        all_of = self._counted({**_DEFAULTS, "account_type_regexes": [".*"]})
        for checker in options if options is not None else ALL_ADVICE:
            if checker not in ALL_ADVICE:
                raise at_user_line(ValueError("no checker %s: there are %s" % (checker, sorted(ALL_ADVICE))))
            reports = made.checkers[checker].reports
            if checker == "ExpensiveOperationChecker":
                total = sum(o.numbers["exec_micros"] for o in all_of)
                for one in sorted(all_of, key=lambda o: -o.numbers["exec_micros"])[:5] if total else []:
                    reports.append(
                        "%s (%s): %dus, %.1f%% of the step" % (one.name, one.op.type, one.numbers["exec_micros"], 100.0 * one.numbers["exec_micros"] / total)
                    )
            elif checker == "OperationChecker":
                first = [o.name for o in all_of if o.op.type in ("Conv2D", "MaxPool", "AvgPool") and o.op.get_attr("data_format") == b"NCHW"]
                reports.extend(["%s: channels come first, which costs a copy on CPUs" % name for name in first])
        return made

    def serialize_to_string(self) -> bytes:
        """An OpLogProto of the operations, as bytes."""
        return op_log_of(self._graph, None, True).SerializeToString()


def _lines_of(one: _Counted) -> List[str]:
    trace = one.op.traceback
    return ["%s:%s" % (os.path.basename(frame[0]), frame[1]) for frame in trace[-1:]] if trace else ["?"]


def _ordered(nodes: List[Any], options: Dict[str, Any]) -> List[Any]:
    by = options["order_by"]
    if by in ("name", "depth"):
        return sorted(nodes, key=lambda n: n.name)
    field = "total_" + _SELECTED[by][0] if by in _SELECTED and by != "occurrence" else ""
    return sorted(nodes, key=lambda n: -(getattr(n, field) if field else len(getattr(n, "graph_nodes", ()))))


def _row(node: Any, options: Dict[str, Any]) -> str:
    parts = []
    for what in options["select"]:
        field, text = _SELECTED.get(what, ("", ""))
        if field == "run_count":
            parts.append("%d" % len(getattr(node, "graph_nodes", ())))
        elif field:
            parts.append("%s/%s" % (text % getattr(node, field), text % getattr(node, "total_" + field)))
    return "%s (%s)" % (node.name, ", ".join(parts))


def _write(options: Dict[str, Any], root: Any, cmd: str, steps: Dict[int, Any]) -> None:
    kind, _, path = options.get("output", "stdout").partition(":outfile=")
    if options.get("dump_to_file"):  # what 1.0 called it; it goes before the other, as in 1.15
        kind, path = "file", options["dump_to_file"]
    if kind == "none":
        return
    if kind == "timeline":
        from millrace.timeline import Timeline

        for meta in list(steps.values())[-1:]:
            with gfile.GFile(path, "w") as file:
                file.write(Timeline(meta.step_stats).generate_chrome_trace_format())
        return
    lines: List[str] = []
    stack: List[Tuple[Any, int]] = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        lines.append("  " * depth + _row(node, options))
        stack.extend((child, depth + 1) for child in reversed(node.children))
    text = "node name | %s (%s view)\n%s\n" % (" | ".join(options["select"]), cmd, "\n".join(lines))
    if kind == "file":
        with gfile.GFile(path, "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


def profile(graph: Any = None, run_meta: Any = None, op_log: Any = None, cmd: str = "scope", options: Optional[Dict[str, Any]] = None) -> Any:
    """The numbers of a graph's operations: by scopes (cmd "scope"), each ("graph"), by types ("op") or by lines of the program ("code"). They are
    printed, unless the options say otherwise, and given as a message."""
    profiler = Profiler(graph, op_log)
    if run_meta is not None:
        profiler.add_step(0, run_meta)
    views = {"scope": profiler.profile_name_scope, "graph": profiler.profile_graph, "op": profiler.profile_operations, "code": profiler.profile_python}
    if cmd not in views:
        raise at_user_line(ValueError("unknown cmd: %s" % cmd))
    return views[cmd]({**_DEFAULTS, **(options or {})})


def advise(graph: Any = None, run_meta: Any = None, options: Optional[Dict[str, Any]] = None) -> Any:
    """What is expensive in a traced step, as an AdviceProto."""
    profiler = Profiler(graph)
    if run_meta is not None:
        profiler.add_step(0, run_meta)
    return profiler.advise(options)


def op_log_of(graph: Any, op_log: Any, add_trace: bool) -> Any:
    """An OpLogProto: operations with their flops, types that collections give them, and the lines that made them."""
    made = definitions.OpLogProto()
    if op_log is not None:
        made.CopyFrom(op_log)
    entries = {e.name: e for e in made.log_entries}
    numbers: Dict[str, int] = {text: number for number, text in made.id_to_string.items()}

    def number_of(text: str) -> int:
        if text not in numbers:
            numbers[text] = len(numbers)
            made.id_to_string[numbers[text]] = text
        return numbers[text]

    graph = graph or get_default_graph()
    for one in Profiler(graph)._counted({**_DEFAULTS, "account_type_regexes": [".*"]}):
        entry = entries.get(one.name) or made.log_entries.add(name=one.name)
        if one.numbers["float_ops"] and not entry.float_ops:
            entry.float_ops = one.numbers["float_ops"]
        if "_trainable_variables" in one.kinds and "_trainable_variables" not in entry.types:
            entry.types.append("_trainable_variables")
        for frame in one.op.traceback if add_trace else ():
            entry.code_def.traces.add(file_id=number_of(frame[0]), lineno=frame[1], function_id=number_of(frame[2]), line_id=number_of(frame[3] or ""))
    return made


def write_op_log(graph: Any, log_dir: str, op_log: Any = None, run_meta: Any = None, add_trace: bool = True) -> None:
    """Writes the OpLogProto of a graph to the file tfprof_log in a folder."""
    del run_meta  # shapes come from the graph
    with gfile.GFile(os.path.join(log_dir, "tfprof_log"), "wb") as file:
        file.write(op_log_of(graph, op_log, add_trace).SerializeToString())
