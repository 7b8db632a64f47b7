# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.framework.fuse_op: part of a GraphDef as one operation of another type."""

from __future__ import annotations

from typing import Any, Sequence

from millrace.framework.errors import at_user_line
from millrace.graph_util import extract_sub_graph
from millrace.protos import definitions


def fuse_op(
    graph_def: Any, input_nodes: Sequence[str], output_nodes: Sequence[str], output_dtypes: Sequence[int], output_quantized: bool, op_name: str, op_type: str
) -> Any:
    """A GraphDef in which one node op_name of type op_type stands for what lies between input_nodes and output_nodes.

    Its inputs are the input nodes. Each output node, which must have one input, takes one of its outputs, of output_dtypes (numbers of DataType).
    Nodes between may use nothing else of what comes before.
    """
    if not isinstance(graph_def, definitions.GraphDef):
        raise at_user_line(TypeError("graph_def must be a graph_pb2.GraphDef proto."))
    for what, names in (("input_nodes", input_nodes), ("output_nodes", output_nodes)):
        if isinstance(names, str):
            raise at_user_line(TypeError("%s must be a list." % what))
    before = extract_sub_graph(graph_def, list(input_nodes))
    needed = {node.name: node for node in extract_sub_graph(graph_def, list(output_nodes)).node}
    known = {node.name for node in before.node}
    for name in needed.keys() - known - set(output_nodes):
        other = [given for given in needed[name].input if given.lstrip("^").split(":")[0] in known - set(input_nodes)]
        if other:
            raise at_user_line(TypeError("Node %s uses input %s not in input_nodes." % (name, other[0])))
    made = definitions.GraphDef()
    made.node.extend(before.node)
    fused = made.node.add(name=op_name, op=op_type, input=list(input_nodes))
    fused.attr["_output_types"].list.type.extend(output_dtypes)
    fused.attr["_output_quantized"].b = output_quantized
    for i, name in enumerate(output_nodes):
        if len(needed[name].input) != 1:
            raise at_user_line(ValueError("Output node %s must have one input, not %d" % (name, len(needed[name].input))))
        made.node.extend([needed[name]])
        made.node[-1].input[0] = "%s:%d" % (op_name, i) if i else op_name
    made.node.extend(node for node in graph_def.node if node.name not in needed and node.name not in known)
    made.library.CopyFrom(graph_def.library)
    made.versions.CopyFrom(graph_def.versions)
    return made
