# SPDX-License-Identifier: Apache-2.0
"""A graph cut down to what some outputs need of some inputs: tensorflow.python.tools.strip_unused_lib."""

from __future__ import annotations

from typing import Any

from millrace import gfile, graph_util
from millrace.protos import definitions, text_format


def strip_unused(input_graph_def: Any, input_node_names: Any, output_node_names: Any, placeholder_type_enum: Any) -> Any:
    """The GraphDef of what the outputs need, with placeholders for the inputs. The type is one for all, a list, or a dict by name."""
    for name in input_node_names:
        if ":" in name:
            raise ValueError("Name '%s' appears to refer to a Tensor, not a Operation." % name)
    missing = set(input_node_names) - {node.name for node in input_graph_def.node}
    if missing:
        raise KeyError("The following input nodes were not found: %s" % sorted(missing))
    cut = definitions.GraphDef()
    for node in input_graph_def.node:
        if node.name not in input_node_names:
            cut.node.extend([node])
            continue
        made = cut.node.add(op="Placeholder", name=node.name)
        kind = placeholder_type_enum
        if isinstance(kind, dict):
            kind = kind[node.name]
        elif isinstance(kind, (list, tuple)):
            kind = kind[list(input_node_names).index(node.name)]
        made.attr["dtype"].type = kind
        for key in ("_output_shapes", "shape"):
            if key in node.attr:
                made.attr[key].CopyFrom(node.attr[key])
        made.attr["shape"].shape.unknown_rank = made.attr["shape"].shape.unknown_rank or "shape" not in node.attr
    result = graph_util.extract_sub_graph(cut, list(output_node_names))
    if input_graph_def.HasField("library"):
        result.library.CopyFrom(input_graph_def.library)
    return result


def strip_unused_from_files(
    input_graph: Any, input_binary: bool, output_graph: Any, output_binary: bool, input_node_names: str, output_node_names: str, placeholder_type_enum: Any
) -> None:
    """strip_unused of a file into another. Names are separated by commas."""
    if not gfile.Exists(input_graph):
        print("Input graph file '%s' does not exist!" % input_graph)
        return
    if not output_node_names:
        print("You need to supply the name of a node to --output_node_names.")
        return
    graph_def = definitions.GraphDef()
    with gfile.GFile(input_graph, "rb" if input_binary else "r") as file:
        if input_binary:
            graph_def.ParseFromString(file.read())
        else:
            text_format.Merge(file.read(), graph_def)
    made = strip_unused(graph_def, input_node_names.split(","), output_node_names.split(","), placeholder_type_enum)
    with gfile.GFile(output_graph, "wb" if output_binary else "w") as file:
        file.write(made.SerializeToString() if output_binary else str(made))
    print("%d ops in the final graph." % len(made.node))
