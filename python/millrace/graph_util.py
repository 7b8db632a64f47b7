# SPDX-License-Identifier: Apache-2.0
"""tf.graph_util: graphs with their variables as constants."""

from __future__ import annotations

from typing import Any, Dict, List, Set

import numpy as np

from millrace.framework import not_provided as _not_provided
from millrace.framework.importer import import_graph_def  # noqa: F401
from millrace.protos import definitions


def _name(text: str) -> str:
    return text.lstrip("^").split(":")[0]


def extract_sub_graph(graph_def: Any, dest_nodes: List[str]) -> Any:
    """The nodes that some nodes need."""
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    nodes = {n.name: n for n in graph_def.node}
    for wanted in dest_nodes:
        if wanted not in nodes:
            raise AssertionError("%s is not in graph" % wanted)
    seen: Set[str] = set()
    stack = list(dest_nodes)
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack.extend(_name(i) for i in nodes[name].input)
    made = definitions.GraphDef()
    made.node.extend([n for n in graph_def.node if n.name in seen])
    made.library.CopyFrom(graph_def.library)
    made.versions.CopyFrom(graph_def.versions)
    return made


def convert_variables_to_constants(
    sess: Any, input_graph_def: Any, output_node_names: List[str], variable_names_whitelist: Any = None, variable_names_blacklist: Any = None
) -> Any:
    """A GraphDef in which variables are constants with the values that they have in a session."""
    inference = extract_sub_graph(input_graph_def, output_node_names)
    names = [
        n.name
        for n in inference.node
        if n.op in ("Variable", "VariableV2", "VarHandleOp")
        and (variable_names_whitelist is None or n.name in variable_names_whitelist)
        and (variable_names_blacklist is None or n.name not in variable_names_blacklist)
    ]
    resources = {n.name for n in inference.node if n.op == "VarHandleOp"}
    fetches = [n + "/Read/ReadVariableOp:0" if n in resources else n + ":0" for n in names]
    values = dict(zip(names, sess.run(fetches))) if names else {}
    handles = _handles(inference, resources & values.keys())
    made = definitions.GraphDef()
    for node in inference.node:
        if node.name in values:
            made.node.extend([_constant(node.name, values[node.name])])
        elif node.input and _name(node.input[0]) in handles:
            made.node.extend(_of_value(node, values[handles[_name(node.input[0])]]))
        else:
            new = made.node.add()
            new.CopyFrom(node)
            if node.op == "Identity" and "_class" in node.attr:
                del new.attr["_class"]
    made.library.CopyFrom(inference.library)
    made.versions.CopyFrom(inference.versions)
    return made


def _constant(name: str, value: Any) -> Any:
    from millrace.framework.tensor_util import make_tensor_proto

    proto = make_tensor_proto(value)
    made = definitions.NodeDef(op="Const", name=name)
    made.attr["dtype"].type = proto.dtype
    made.attr["value"].tensor.CopyFrom(proto)
    return made


_HANDING_ON = ("Identity", "Switch", "Enter", "NextIteration", "Exit")  # what handles of variables pass on their way into branches and loops


def _handles(graph_def: Any, variables: Set[str]) -> Dict[str, str]:
    """{node that gives the handle of a variable: the variable}."""
    found = {name: name for name in variables}
    waiting = [n for n in graph_def.node if n.op in _HANDING_ON and n.input]
    while waiting:
        reached = [n for n in waiting if _name(n.input[0]) in found]
        if not reached:
            break
        found.update((n.name, found[_name(n.input[0])]) for n in reached)
        waiting = [n for n in waiting if n.name not in found]
    return found


_OF_HANDLES = {
    "ReadVariableOp": ("Identity", "T"),
    "ResourceGather": ("GatherV2", "Tparams"),
    "ResourceGatherNd": ("GatherNd", "Tparams"),
    "VariableShape": ("Shape", "T"),
}


def _of_value(node: Any, value: Any) -> List[Any]:
    """What takes the place of a node that is given the handle of a variable, where a constant is in that one's place."""
    new = definitions.NodeDef()
    new.CopyFrom(node)
    if node.op not in _OF_HANDLES and node.op not in _HANDING_ON:
        raise ValueError(
            "Cannot turn the variable that node '%s' (%s) uses into a constant: this operation is not known to only read it" % (node.name, node.op)
        )
    new.op, kind = _OF_HANDLES.get(node.op, (node.op, "T"))
    new.attr[kind].type = _constant("", value).attr["dtype"].type
    for name in ("dtype", "validate_indices", "_class"):
        if name in new.attr:
            del new.attr[name]
    if node.op != "ResourceGather":
        return [new]
    axis = _constant(node.name + "/axis", np.int32(node.attr["batch_dims"].i if "batch_dims" in node.attr else 0))
    new.attr["Taxis"].type = axis.attr["dtype"].type
    new.input[:] = [*node.input[:2], axis.name, *node.input[2:]]
    return [axis, new]


def remove_training_nodes(input_graph: Any, protected_nodes: Any = None) -> Any:
    """The graph without what only training needs: checks for bad numbers, and identities that order nothing. Protected names stay."""
    protected = set(protected_nodes or ())
    checks = {n.name for n in input_graph.node if n.op == "CheckNumerics" and n.name not in protected}
    kept = []
    for node in input_graph.node:
        if node.name not in checks:
            new = definitions.NodeDef()
            new.CopyFrom(node)
            del new.input[:]
            new.input.extend([i for i in node.input if i.lstrip("^") not in checks])
            kept.append(new)
    waited_for = protected.union(i[1:] for n in kept for i in n.input if i.startswith("^"))  # what orders something stays
    splices = {n.name: n.input[0] for n in kept if n.op == "Identity" and n.name not in waited_for and not any(i.startswith("^") for i in n.input)}
    made = definitions.GraphDef()
    for node in kept:
        if node.name in splices:
            continue
        inputs = []
        for name in node.input:
            while name in splices:
                name = splices[name]
            inputs.append(name)
        del node.input[:]
        node.input.extend(inputs)
        made.node.extend([node])
    return made


def tensor_shape_from_node_def_name(graph: Any, input_name: str) -> Any:
    """The shape of a tensor by name."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else input_name + ":0").get_shape()


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether a node has to be on a CPU."""
    op = getattr(node, "op", None)
    return pin_variables_on_cpu and op in ("Variable", "VariableV2")


__getattr__ = _not_provided.getter("graph_util")
