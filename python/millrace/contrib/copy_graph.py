# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.copy_graph: variables and operations of one graph in another."""

from __future__ import annotations

from typing import Any, List, Sequence

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, Operation, Tensor
from millrace.framework.session import Session
from millrace.ops.variables import Variable


def _named(name: str, scope: str) -> str:
    return "%s/%s" % (scope, name) if scope else name


def _collections(item: Any, scope: str, kept: Sequence[str] = ()) -> List[str]:
    """The collections that have an item, with the scope before the names of those that are not kept as they are."""
    graph = item.graph
    names = [name for name in graph.get_all_collection_keys() if any(member is item for member in graph.get_collection_ref(name))]
    return [name if name in kept else _named(name, scope) for name in names]


def copy_variable_to_graph(org_instance: Any, to_graph: Graph, scope: str = "") -> Variable:
    """A variable of another graph that starts from the first value of this one."""
    if not isinstance(org_instance, Variable):
        raise at_user_line(TypeError("%s is not a Variable" % (org_instance,)))
    kept = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES)
    with Session(graph=org_instance.graph) as session:
        value = session.run(org_instance.initialized_value())
    trainable = any(v is org_instance for v in org_instance.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
    with to_graph.as_default():
        return Variable(value, trainable, name=_named(org_instance.op.name, scope), collections=_collections(org_instance, scope, kept), validate_shape=False)


def copy_op_to_graph(org_instance: Any, to_graph: Graph, variables: Sequence[Any], scope: str = "") -> Any:
    """An operation or a tensor in another graph, with all that it depends on; what is there by its name stays, `variables` above all."""
    if not isinstance(org_instance, (Operation, Tensor)):
        raise at_user_line(TypeError("Could not copy instance: %s" % (org_instance,)))
    copied = {variable.name: variable for variable in variables}
    name = _named(org_instance.name, scope)
    if name in copied:
        return to_graph.get_tensor_by_name(copied[name].name)
    try:
        return to_graph.as_graph_element(name)
    except KeyError:
        pass
    if isinstance(org_instance, Tensor):
        made = copy_op_to_graph(org_instance.op, to_graph, variables, scope).outputs[org_instance.value_index]
    else:
        op = org_instance
        inputs = [copy_op_to_graph(t, to_graph, variables, scope) for t in op.inputs]
        before = [copy_op_to_graph(o, to_graph, variables, scope) for o in op.control_inputs]
        attributes = {key: value for key, value in op.node_def.attr.items() if key not in ("_class", "_output_shapes")}
        with to_graph.as_default(), to_graph.control_dependencies(None), to_graph.control_dependencies(before), to_graph.device(op.device):
            made = to_graph.create_op(op.type, inputs, [t.dtype for t in op.outputs], name=name + "/", attrs=attributes)
    for collection in _collections(org_instance, scope):
        to_graph.add_to_collection(collection, made)
    return made


def get_copied_op(org_instance: Any, graph: Graph, scope: str = "") -> Any:
    """What an operation or a tensor was copied to."""
    return graph.as_graph_element(_named(org_instance.name, scope))
