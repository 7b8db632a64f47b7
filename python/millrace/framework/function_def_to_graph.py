# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.function_def_to_graph: the body of a FunctionDef as a graph."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.func_graph import FuncGraph
from millrace.framework.graph import get_default_graph
from millrace.framework.importer import import_graph_def
from millrace.framework.tensor_shape import TensorShape
from millrace.protos import definitions


def function_def_to_graph(fdef: Any, input_shapes: Any = None) -> FuncGraph:
    """A FuncGraph with the nodes of a function, its arguments and its results."""
    graph = FuncGraph(fdef.signature.name)
    graph_def, names = function_def_to_graph_def(fdef, input_shapes)
    outside = get_default_graph()
    with graph.as_default():
        for function in {id(f): f for g in (outside, *_around(outside)) for f in g.__dict__.get("_defined_functions", {}).values()}.values():
            function.add_to_graph(graph)
        import_graph_def(graph_def, name="")
        graph.inputs = [graph.get_tensor_by_name(arg.name + ":0") for arg in fdef.signature.input_arg]
        graph.outputs = [graph.get_tensor_by_name(names[fdef.ret[arg.name]]) for arg in fdef.signature.output_arg]
        graph.control_outputs = [graph.get_operation_by_name(fdef.control_ret[name]) for name in fdef.signature.control_output]
    return graph


def _around(graph: Any) -> Any:
    while hasattr(graph, "_outer"):
        graph = graph._outer
        yield graph


def function_def_to_graph_def(fdef: Any, input_shapes: Any = None) -> Tuple[Any, Dict[str, str]]:
    """(a GraphDef of the nodes of a function, with placeholders as its arguments; {name of a tensor in the function: its name in a graph})."""
    arguments = fdef.signature.input_arg
    if input_shapes is not None and len(input_shapes) != len(arguments):
        raise at_user_line(
            ValueError(
                "Length of input_shapes must match the number of input_args. len(input_shapes): %d len(input_arg): %d" % (len(input_shapes), len(arguments))
            )
        )
    graph_def = definitions.GraphDef(versions=get_default_graph().graph_def_versions)
    names: Dict[str, str] = {}
    for i, arg in enumerate(arguments):
        node = graph_def.node.add(name=arg.name, op="Placeholder")
        node.attr["dtype"].type = arg.type
        if input_shapes is not None and input_shapes[i] is not None:
            node.attr["shape"].shape.CopyFrom(TensorShape(input_shapes[i]).as_proto())
        for key, value in fdef.arg_attr[i].attr.items() if i in fdef.arg_attr else ():
            node.attr[key].CopyFrom(value)
        names[arg.name], names["^" + arg.name] = arg.name + ":0", "^" + arg.name
    for node in fdef.node_def:
        names["^" + node.name] = "^" + node.name
        number = 0
        for name, count in _outputs_of(node):
            for i in range(count):
                names["%s:%s:%d" % (node.name, name, i)] = "%s:%d" % (node.name, number)
                number += 1
    for node in fdef.node_def:
        made = graph_def.node.add()
        made.CopyFrom(node)
        del made.input[:]
        made.input.extend(names[name] for name in node.input)
    return graph_def, names


def _outputs_of(node: Any) -> Any:
    """(name, number of tensors) of each output of a node."""
    functions = {name: f for g in (get_default_graph(), *_around(get_default_graph())) for name, f in g.__dict__.get("_defined_functions", {}).items()}
    if node.op in functions:
        return [(arg.name, 1) for arg in functions[node.op].definition.signature.output_arg]
    found = []
    for arg in definitions.OpDef.FromString(get_default_graph()._op_def(node.op)).output_arg:
        many = node.attr[arg.number_attr].i if arg.number_attr else len(node.attr[arg.type_list_attr].list.type) if arg.type_list_attr else 1
        found.append((arg.name, int(many)))
    return found
