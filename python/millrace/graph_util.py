# SPDX-License-Identifier: Apache-2.0
"""tf.graph_util: graphs with their variables as constants."""

from __future__ import annotations

from typing import Any, List, Set

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
    from millrace.framework.tensor_util import make_tensor_proto

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
    made = definitions.GraphDef()
    for node in inference.node:
        new = made.node.add()
        if node.name in values:
            new.op, new.name = "Const", node.name
            proto = make_tensor_proto(values[node.name])
            new.attr["dtype"].type = proto.dtype
            new.attr["value"].tensor.CopyFrom(proto)
        elif node.op == "ReadVariableOp" and _name(node.input[0]) in values:
            new.op, new.name = "Identity", node.name
            new.input.append(node.input[0])
            new.attr["T"].CopyFrom(node.attr["dtype"])
        else:
            new.CopyFrom(node)
            if node.op == "Identity" and "_class" in node.attr:
                del new.attr["_class"]
    made.library.CopyFrom(inference.library)
    made.versions.CopyFrom(inference.versions)
    return made


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
    splices = {n.name: n.input[0] for n in kept if n.op == "Identity" and n.name not in protected and not any(i.startswith("^") for i in n.input)}
    made = definitions.GraphDef()
    for node in kept:
        if node.name in splices:
            continue
        inputs = []
        for name in node.input:
            while name.lstrip("^") in splices:
                name = ("^" if name.startswith("^") else "") + splices[name.lstrip("^")].lstrip("^")
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
