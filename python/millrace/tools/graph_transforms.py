# SPDX-License-Identifier: Apache-2.0
"""tensorflow.tools.graph_transforms: changes of GraphDefs, by their names and arguments."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, List, Set, Tuple

from millrace.framework import dtypes, errors
from millrace.framework.errors import at_user_line
from millrace.protos import definitions

_Arguments = Dict[str, List[str]]
_ARGUMENT = re.compile(r"\s*(\w+)\s*=\s*(\"[^\"]*\"|[^,\s)]+)\s*(,|$)")
_ELSEWHERE = (  # of TensorFlow's tool
    "add_default_attributes backport_concatv2 backport_tensor_array_v3 flatten_atrous_conv fold_batch_norms fold_constants fold_old_batch_norms "
    "freeze_requantization_ranges fuse_convolutions fuse_pad_and_conv fuse_remote_graph fuse_resize_and_conv fuse_resize_pad_and_conv insert_logging "
    "merge_duplicate_nodes obfuscate_names quantize_nodes quantize_weights round_weights sparsify_gather"
).split()


def _node_name(name: str) -> str:
    """The node that an input or a tensor's name is of."""
    return name.lstrip("^").split(":")[0]


def _copy(graph_def: Any, nodes: Iterable[Any]) -> Any:
    made = definitions.GraphDef()
    made.library.CopyFrom(graph_def.library)
    made.node.extend(nodes)
    return made


def _reached(graph_def: Any, outputs: Iterable[str], ends: Iterable[str] = ()) -> Set[str]:
    nodes, found, left = {n.name: n for n in graph_def.node}, set(), [_node_name(name) for name in outputs]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            if name not in ends and name in nodes:
                left.extend(map(_node_name, nodes[name].input))
    return found


def _one(arguments: _Arguments, transform: str, name: str, default: Any = None) -> str:
    given = arguments.get(name, [])
    if len(given) == 1 or (not given and default is not None):
        return given[0] if given else str(default)
    raise at_user_line(errors.InvalidArgumentError(None, None, "%s expects exactly one '%s' argument, got %d." % (transform, name, len(given))))


def _strip_unused_nodes(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    """What the outputs stand on, as far as the inputs, which become placeholders."""
    ends = {_node_name(name) for name in inputs}
    used = _reached(graph_def, outputs, ends)
    names = arguments.get("name", [])
    types, shapes = (dict(zip(names, arguments.get(what + "_for_name", []))) for what in ("type", "shape"))
    kept = []
    for node in graph_def.node:
        if node.name in ends and node.name in used and node.op != "Placeholder":
            made = definitions.NodeDef(name=node.name, op="Placeholder")
            kind = types.get(node.name) or _one(arguments, "strip_unused_nodes", "type", "float")
            made.attr["dtype"].type = dtypes.as_dtype({"float": "float32", "double": "float64"}.get(kind, kind)).as_datatype_enum
            made.attr["shape"].shape.SetInParent()
            for size in filter(None, (shapes.get(node.name) or _one(arguments, "strip_unused_nodes", "shape", "")).split(",")):
                made.attr["shape"].shape.dim.add().size = int(size)
            kept.append(made)
        elif node.name in used:
            kept.append(node)
    return _copy(graph_def, kept)


def _remove_nodes(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    """Takes out nodes of some ops that hand on their first input, unless they are inputs or outputs."""
    kinds, kept_names = set(arguments.get("op", [])), {_node_name(name) for name in [*inputs, *outputs]}
    if not kinds:
        raise at_user_line(errors.InvalidArgumentError(None, None, "remove_nodes expects at least one 'op' argument, e.g. remove_nodes(op=Identity)."))
    most = int(_one(arguments, "remove_nodes", "max_inputs", 1))
    controlled = {_node_name(name) for node in graph_def.node for name in node.input if name.startswith("^")}
    instead = {
        node.name: node.input[0]
        for node in graph_def.node
        if node.op in kinds and 0 < len(node.input) <= most and node.name not in kept_names | controlled and not node.input[0].startswith("^")
    }
    kept = []
    for node in graph_def.node:
        if node.name not in instead:
            made = definitions.NodeDef()
            made.CopyFrom(node)
            for i, name in enumerate(made.input):
                while _node_name(name) in instead and not name.startswith("^"):
                    name = instead[_node_name(name)]
                made.input[i] = name
            kept.append(made)
    return _copy(graph_def, kept)


def _changed(graph_def: Any, change: Callable[[Any], None]) -> Any:
    made = _copy(graph_def, graph_def.node)
    for node in made.node:
        change(node)
    return made


def _set_device(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    device, only_default = _one(arguments, "set_device", "device", ""), _one(arguments, "set_device", "if_default", "false") in ("true", "1")

    def change(node: Any) -> None:
        if not (only_default and node.device):
            node.device = device

    return _changed(graph_def, change)


def _remove_device(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    return _set_device(graph_def, inputs, outputs, {})


def _remove_attribute(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    attribute, op = _one(arguments, "remove_attribute", "attribute_name"), _one(arguments, "remove_attribute", "op_name", "*")

    def change(node: Any) -> None:
        if op in ("*", node.op) and attribute in node.attr:
            del node.attr[attribute]

    return _changed(graph_def, change)


def _rename_attribute(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    old, new = (_one(arguments, "rename_attribute", name) for name in ("old_attribute_name", "new_attribute_name"))
    op = _one(arguments, "rename_attribute", "op_name", "*")

    def change(node: Any) -> None:
        if op in ("*", node.op) and old in node.attr:
            node.attr[new].CopyFrom(node.attr[old])
            del node.attr[old]

    return _changed(graph_def, change)


def _rename_op(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    old, new = (_one(arguments, "rename_op", name) for name in ("old_op_name", "new_op_name"))

    def change(node: Any) -> None:
        node.op = new if node.op == old else node.op

    return _changed(graph_def, change)


def _sort_by_execution_order(graph_def: Any, inputs: List[str], outputs: List[str], arguments: _Arguments) -> Any:
    """Each node behind what it stands on."""
    left, order = list(graph_def.node), []
    done: Set[str] = set()
    names = {node.name for node in left}
    while left:
        ready = [node for node in left if all(_node_name(name) in done or _node_name(name) not in names for name in node.input)]
        if not ready:  # a loop: in the order in which they are
            ready = left[:1]
        done.update(node.name for node in ready)
        order += ready
        left = [node for node in left if node.name not in done]
    return _copy(graph_def, order)


_TRANSFORMS: Dict[str, Any] = {
    "strip_unused_nodes": _strip_unused_nodes,
    "remove_nodes": _remove_nodes,
    "remove_device": _remove_device,
    "set_device": _set_device,
    "remove_attribute": _remove_attribute,
    "rename_attribute": _rename_attribute,
    "rename_op": _rename_op,
    "sort_by_execution_order": _sort_by_execution_order,
}


def _parsed(text: str) -> Tuple[str, _Arguments]:
    whole = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    if whole is None:
        raise at_user_line(errors.InvalidArgumentError(None, None, "The transform %r is not like name or name(argument=value, ...)." % text))
    arguments: _Arguments = {}
    rest = (whole[2] or "").strip()
    while rest:
        found = _ARGUMENT.match(rest)
        if found is None:
            raise at_user_line(errors.InvalidArgumentError(None, None, "The arguments of the transform %r are not like argument=value: %r." % (whole[1], rest)))
        arguments.setdefault(found[1], []).append(found[2].strip('"'))
        rest = rest[found.end() :]
    return whole[1], arguments


def TransformGraph(input_graph_def: Any, inputs: Any, outputs: Any, transforms: Any) -> Any:
    """A GraphDef after some transforms, such as "strip_unused_nodes" or "set_device(device=/cpu:0)"; of TensorFlow's tool those that change no numbers.
    inputs and outputs name nodes or tensors."""
    made = definitions.GraphDef()
    made.CopyFrom(input_graph_def)
    for text in transforms:
        name, arguments = _parsed(text)
        if name in _ELSEWHERE:
            raise at_user_line(NotImplementedError("The transform %s is not provided; those that are: %s." % (name, ", ".join(_TRANSFORMS))))
        if name not in _TRANSFORMS:
            raise at_user_line(errors.InvalidArgumentError(None, None, "Transform '%s' not recognized." % name))
        made = _TRANSFORMS[name](made, list(inputs), list(outputs), arguments)
    return made
