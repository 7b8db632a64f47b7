# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.error_interpolation: tags of messages, such as {{node name}}, and what the program says of the nodes that they name."""

from __future__ import annotations

import collections
import os
import re
from typing import Any, Dict, Iterable, List, Tuple

from millrace.protos import definitions

_ParseTag = collections.namedtuple("_ParseTag", ["type", "name"])
_NAME = r"[A-Za-z0-9_.][A-Za-z0-9_.\-/]*"
_TAG = re.compile(r"\{\{(%s) (%s)\}\}" % (_NAME, _NAME))

# Lines of files that have one of these in their path are the library's, not the program's.
_BAD_FILE_SUBSTRINGS = [os.path.join("millrace", "framework"), os.path.join("millrace", "ops"), "<embedded"]


def parse_message(message: str) -> Tuple[List[str], List[_ParseTag]]:
    """What is between the tags of a message, and the tags."""
    parts = _TAG.split(message)
    return parts[::3], [_ParseTag(*pair) for pair in zip(parts[1::3], parts[2::3])]


# ---- the scopes of a node ----


def _summary(name: str, lines: List[str], what: str, prefix: str) -> str:
    if not lines:
        return "%sNo %s were active during op '%s' creation." % (prefix, what, name)
    head = "%s%s active during op '%s' creation:" % (prefix, what[0].upper() + what[1:], name)
    return "\n".join([head] + ["%s  %s" % (prefix, line) for line in lines])


def _compute_device_summary_from_list(name: str, device_assignment_list: Any, prefix: str = "") -> str:
    """The device scopes in which an operation was made, a line each."""
    lines = ["with tf.device(%s): <%s:%s>" % (entry.obj, entry.filename, entry.lineno) for entry in device_assignment_list]
    return _summary(name, lines, "device assignments", prefix)


def _compute_device_assignment_summary_from_op(op: Any, prefix: str = "") -> str:
    return _compute_device_summary_from_list(op.name, op._device_assignments, prefix)


def _compute_colocation_summary_from_dict(name: str, colocation_dict: Any, prefix: str = "") -> str:
    """The colocation scopes in which an operation was made, a line each."""
    lines = ["with tf.colocate_with(%s): <%s:%s>" % (mate, place.filename, place.lineno) for mate, place in colocation_dict.items()]
    return _summary(name, lines, "node-device colocations", prefix)


def _compute_colocation_summary_from_op(op: Any, prefix: str = "") -> str:
    return _compute_colocation_summary_from_dict(op.name, op._colocation_dict, prefix)


# ---- the line of a node ----


def _find_index_of_defining_frame_for_op(op: Any) -> int:
    """Which entry of an operation's traceback is the program's innermost; 0 when none is."""
    for index in range(len(op.traceback) - 1, -1, -1):
        if not any(part in op.traceback[index][0] for part in _BAD_FILE_SUBSTRINGS):
            return index
    return 0


def _get_defining_frame_from_op(op: Any) -> Any:
    """That entry. An operation that no line of the program made has none: its file has no name."""
    return op.traceback[_find_index_of_defining_frame_for_op(op)] if op.traceback else ("<unknown>", 0, "", "")


def _compute_useful_frames(op: Any, num: int) -> List[Any]:
    """At most `num` entries of the traceback around the program's innermost."""
    end = min(_find_index_of_defining_frame_for_op(op) + 3, len(op.traceback))
    return list(op.traceback[max(end - num, 0) : end])


def compute_field_dict(op: Any, strip_file_prefix: str = "") -> Dict[str, Any]:
    """What messages may say of an operation: file, line, defined_at, colocations, devices, devs_and_colocs."""
    file, line = _get_defining_frame_from_op(op)[:2]
    file = file[len(strip_file_prefix) :] if file.startswith(strip_file_prefix) else file
    colocations, devices = _compute_colocation_summary_from_op(op), _compute_device_assignment_summary_from_op(op)
    return {
        "file": file,
        "line": line,
        "defined_at": " (defined at %s:%d)" % (file, line),
        "colocations": colocations,
        "devices": devices,
        "devs_and_colocs": colocations + "\n" + devices,
    }


def traceback_files_common_prefix(all_ops: Iterable[Any]) -> str:
    """The folder that the files of all operations, given in lists, lie below."""
    folders = {os.path.dirname(entry[0]) for ops in all_ops for op in ops or () for entry in op.traceback if "<embedded" not in entry[0]}
    try:
        return os.path.commonpath(folders)
    except ValueError:  # none, or some that have none in common, such as <stdin>'s
        return ""


def create_graph_debug_info_def(operations: Iterable[Tuple[str, Any]]) -> Any:
    """The GraphDebugInfo of pairs of a function's name and an operation: the lines that made each."""
    made = definitions.GraphDebugInfo()
    places: Dict[str, int] = {}
    for function, op in operations:
        trace = made.traces[function + op.name]
        for entry in reversed(_compute_useful_frames(op, 10)):
            trace.file_line_cols.add(file_index=places.setdefault(entry[0], len(places)), line=entry[1])
    made.files.extend(places)
    return made


# ---- messages ----


def _said_of_node(op: Any, sources: List[Any], prefix: str) -> Tuple[str, str]:
    """What stands for the tag of a node, and what to say at the end of the nodes that it reads."""
    own = compute_field_dict(op, prefix)["defined_at"]
    others: Dict[str, str] = {}
    for source in sources:
        place = compute_field_dict(source, prefix)["defined_at"]
        if place != own:
            others.setdefault(place, " %s%s" % (source.name, place))
    end = "\nInput Source operations connected to node %s:\n%s" % (op.name, "\t\n".join(others.values())) if others else ""
    return "node %s%s " % (op.name, own), end


def interpolate(error_message: str, graph: Any) -> str:
    """A message with what the program says of the nodes in its tags: {{node name}}, {{colocation_node name}}. Those of functions go away."""
    between, tags = parse_message(error_message)
    found = [graph._find(tag.name) for tag in tags]
    sources = [[] if op is None else list(dict.fromkeys([t.op for t in op.inputs] + op.control_inputs)) for op in found]
    prefix = traceback_files_common_prefix([op, *around] for op, around in zip(found, sources) if op is not None)
    said: List[str] = []
    ends: Dict[str, List[str]] = {"sources": [], "colocations": []}
    for tag, op, around in zip(tags, found, sources):
        text = "" if tag.type == "function_node" else "{{%s %s}}" % tag
        if op is not None and tag.type == "node":
            text, end = _said_of_node(op, around, prefix)
            ends["sources"] += [end] if end else []
        elif op is not None and tag.type == "colocation_node":
            fields = compute_field_dict(op, prefix)
            text = "node %s%s placed on device %s " % (op.name, fields["defined_at"], fields["devices"])
            ends["colocations"].append(fields["devs_and_colocs"])
        said.append(text)
    whole = between[0] + "".join(text + rest for text, rest in zip(said, between[1:]))
    if ends["sources"]:
        whole += "\n\nErrors may have originated from an input operation." + "\n".join(ends["sources"])
    if ends["colocations"]:
        whole += "Additional information about colocations:" + "\n".join(ends["colocations"])
    return whole
