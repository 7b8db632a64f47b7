# SPDX-License-Identifier: Apache-2.0
"""Adding a GraphDef to a graph."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Tuple, cast

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import NotFoundError, at_user_line
from millrace.framework.graph import Operation, Tensor, get_default_graph
from millrace.framework.tensor_shape import TensorShape


def without_shapes(graph_def: Any) -> Any:
    """A copy without the shapes that as_graph_def(add_shapes=True) has noted."""
    made = type(graph_def)()
    made.CopyFrom(graph_def)
    for node in made.node:
        if "_output_shapes" in node.attr:
            del node.attr["_output_shapes"]
    return made


def _encoded_without_shapes(graph_def: Any) -> bytes:
    """without_shapes(graph_def) in its binary form."""
    if not any("_output_shapes" in node.attr for node in graph_def.node):
        return cast(bytes, graph_def.SerializeToString())
    if not hasattr(graph_def, "_with_parts"):  # a message of another package
        return cast(bytes, without_shapes(graph_def).SerializeToString())
    nodes = [
        node._with_parts(attr={name: value for name, value in node.attr.items() if name != "_output_shapes"}) if "_output_shapes" in node.attr else node
        for node in graph_def.node
    ]
    return cast(bytes, graph_def._with_parts(node=nodes).SerializeToString())


def _tell_shapes(operation: Optional[Operation], shapes: Any) -> None:
    """Adds what a GraphDef says of the shapes of an operation's outputs to what is known of them. ValueError where these contradict."""
    outputs = [] if operation is None else operation.outputs
    for tensor, shape in zip(outputs, shapes):
        if len(outputs) == len(shapes) and not shape.unknown_rank and tensor.dtype != dtypes.resource:  # of handles TensorFlow says [2]
            known = tensor.get_shape()
            known.assert_is_compatible_with(TensorShape(shape))
            if not known.is_fully_defined():
                tensor.set_shape(TensorShape(shape))


# Graphs of early 2017 and before say that handles and counts of these are scalars.
_OLD_SHAPES = frozenset(
    "Barrier BarrierIncompleteSize BarrierReadySize ConditionalAccumulator FIFOQueue HashTable LMDBReader MutableHashTable MutableHashTableOfTensors "
    "PaddingFIFOQueue PriorityQueue QueueSize RandomShuffleQueue SparseConditionalAccumulator Stack WholeFileReader".split()
)


def _without_new_defaults(graph_def: Any, producer_op_list: Any) -> Any:
    """A copy without the attributes that the ops here lack and that have the values of their defaults where the graph was made."""
    produced = {op.name: op for op in producer_op_list.op}
    made = type(graph_def)()
    made.CopyFrom(graph_def)
    graph = get_default_graph()
    for nodes in (made.node, *(function.node_def for function in made.library.function)):
        for node in nodes:
            if node.op not in produced:
                continue
            try:
                here = {attr.name for attr in type(produced[node.op]).FromString(graph._op_def(node.op)).attr}
            except NotFoundError:  # which importing tells
                continue
            for attr in produced[node.op].attr:
                if attr.name not in here and attr.name in node.attr and attr.HasField("default_value") and node.attr[attr.name] == attr.default_value:
                    del node.attr[attr.name]
    return made


_defaults: Dict[str, List[Tuple[str, bytes]]] = {}


def _defaults_of(op: str) -> List[Tuple[str, bytes]]:
    """The attributes of an op that have defaults, with these as encoded AttrValues; none where no op has this name."""
    if op not in _defaults:
        from millrace.protos import definitions

        try:
            op_def = definitions.OpDef.FromString(get_default_graph()._op_def(op))
        except NotFoundError:
            return []
        _defaults[op] = [(attr.name, attr.default_value.SerializeToString()) for attr in op_def.attr if attr.HasField("default_value")]
    return _defaults[op]


def _say_defaults(graph_def: Any) -> None:
    """Writes attributes that nodes leave to their defaults into the caller's message, where programs look for them."""
    for node in graph_def.node:
        for name, value in _defaults_of(node.op):
            if name not in node.attr:
                node.attr[name].ParseFromString(value)


def _place_with_mates(graph: Any, operations: List[Operation]) -> None:
    """Operations that are placed with others get no device but theirs."""
    mates = {}
    for operation in operations:
        names = [group[len(b"loc:@") :].decode() for group in operation.colocation_groups()]
        if any(name != operation.name for name in names):
            mates[operation] = [name for name in names if name != operation.name]
            operation._set_device("")
    for operation, names in mates.items():
        devices = [found.device for found in map(graph._find, names) if found is not None and found.device]
        if devices:
            operation._set_device(devices[0])


def _unread(graph_def: Any, keys: Any) -> List[str]:
    """Which keys of an input_map name outputs that no node reads: there is nothing to replace. ValueError where there is no such node."""
    nodes = {node.name for node in graph_def.node}
    read = {_full(name) for node in graph_def.node for name in node.input}
    absent = [key for key in keys if key.lstrip("^").partition(":")[0] not in nodes and _full(key) not in read]
    if absent:
        raise at_user_line(ValueError("Attempted to map inputs that were not found in graph_def: [%s]" % ", ".join(absent)))
    return [key for key in keys if _full(key) not in read]


def _full(name: str) -> str:
    return name if name.startswith("^") or ":" in name else name + ":0"


def import_graph_def(
    graph_def: Any, input_map: Any = None, return_elements: Any = None, name: Optional[str] = None, op_dict: Any = None, producer_op_list: Any = None
) -> Optional[List[Any]]:
    """Adds the nodes of a GraphDef below a name scope ("import" unless given; "" for none). `input_map` replaces tensors
    of it by tensors of the graph; `return_elements` names tensors and operations to return. Attributes that have defaults
    and are not said are then said in graph_def too."""
    del op_dict  # the library knows its ops
    if not hasattr(graph_def, "SerializeToString"):
        raise TypeError("graph_def must be a GraphDef proto.")
    if input_map is not None and not (isinstance(input_map, dict) and all(isinstance(k, (str, bytes)) for k in input_map)):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    if return_elements is not None:
        return_elements = [e.decode() if isinstance(e, bytes) else e for e in return_elements]
        if not all(isinstance(e, str) for e in return_elements):
            raise TypeError("return_elements must be a list of strings.")
        for element in return_elements:
            if ":" in element and not re.fullmatch(r"[^:]*:[0-9]+", element):
                raise at_user_line(ValueError("Requested return_element %r not found in graph_def. Cannot convert %r to a tensor name." % (element, element)))
    if name == "" and not all(isinstance(v, Tensor) for v in (input_map or {}).values()):
        raise at_user_line(
            ValueError(
                "tf.import_graph_def() requires a non-empty `name` if `input_map` contains non-Tensor values. Try calling "
                "tf.convert_to_tensor() on `input_map` values before calling tf.import_graph_def()."
            )
        )
    graph = get_default_graph()
    prefix = "import" if name is None else name
    if prefix.endswith("/"):
        prefix = prefix[:-1]
    elif prefix:
        prefix = graph.unique_name(prefix)
    keys = [key.decode() if isinstance(key, bytes) else key for key in input_map or {}]
    unread = _unread(graph_def, keys)
    mapped = []
    with graph.name_scope(prefix + "/" if prefix else None):
        for key, value in zip(keys, (input_map or {}).values()):
            replacement = value if isinstance(value, Operation) else convert_to_tensor(value)
            if key.startswith("^") and isinstance(replacement, Tensor):
                replacement = replacement.op  # to be waited for
            if key not in unread:
                mapped.append((key, replacement))
    if producer_op_list is not None:
        graph_def = _without_new_defaults(graph_def, producer_op_list)
    has_mates = any("_class" in node.attr for node in graph_def.node)
    known = len(graph.get_operations()) if graph._device_stack or has_mates else 0
    noted = {node.name: node.attr["_output_shapes"].list.shape for node in graph_def.node if "_output_shapes" in node.attr and node.op not in _OLD_SHAPES}
    scope = prefix + "/" if prefix else ""
    shapes = {name: listed for name, listed in noted.items() if graph._find(scope + name) is None}  # nodes whose names are taken get others
    made = graph._import(_encoded_without_shapes(graph_def), prefix, mapped, return_elements or [])
    _say_defaults(graph_def)
    if graph._captures and graph_def.library.function:  # the body of a function: who calls it needs these too
        from millrace.framework.function import _from_library

        for function in _from_library(graph_def.library):
            graph.__dict__.setdefault("_defined_functions", {}).setdefault(function.name, function)
    for name, listed in shapes.items():
        operation = graph._find(scope + name)
        if operation is not None:
            _tell_shapes(operation, listed)
    for key in unread:
        node, _, number = key.lstrip("^").partition(":")
        operation = graph._find(scope + node)
        if operation is not None and int(number or 0) >= len(operation.outputs) and not key.startswith("^"):
            raise at_user_line(ValueError("Attempted to map inputs that were not found in graph_def: [%s]" % key))
    if graph._device_stack:  # operations without a device have got theirs
        placed = {scope + node.name for node in graph_def.node if node.device}
        for operation in graph.get_operations()[known:]:
            if operation.name in placed:
                graph._apply_device_functions(operation)
    if has_mates:
        _place_with_mates(graph, graph.get_operations()[known:])
    return made if return_elements is not None else None
