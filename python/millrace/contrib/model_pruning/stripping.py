# SPDX-License-Identifier: Apache-2.0
"""Graphs whose masked weights are constants, without what has made the masks."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np

from millrace import graph_util, tf_logging
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, get_default_graph
from millrace.framework.importer import import_graph_def
from millrace.framework.session import Session
from millrace.framework.tensor_util import make_tensor_proto
from millrace.protos import definitions
from millrace.train.checkpoint_management import latest_checkpoint
from millrace.train.saver import import_meta_graph


def _node_name(tensor_name: str) -> str:
    return tensor_name.split(":")[0]


def _before_loops(tensor: Any) -> Tuple[Any, Any]:
    """(the tensor that a loop reads, the innermost Enter that brings it in); (the tensor, None) outside of loops."""
    enter = None
    while tensor.op.type in ("Enter", "RefEnter"):
        enter = enter or tensor.op
        tensor = tensor.op.inputs[0]
    return tensor, enter


def _values(graph_def: Any, names: List[str]) -> Dict[str, Tuple[np.ndarray, Any]]:
    """The products of masks and weights, each with the Enter where it is computed in a loop: cells' are, and have one value all the same."""
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="")
        factors = {name: [_before_loops(t) for t in graph.get_operation_by_name(name).inputs] for name in names}
        with Session(graph=graph) as session:
            found = session.run({name: [tensor for tensor, _ in pair] for name, pair in factors.items()})
        return {name: (a * b, next((e.node_def for _, e in factors[name] if e is not None), None)) for name, (a, b) in found.items()}


def strip_pruning_vars_fn(input_graph_def: Any, output_node_names: List[str]) -> Any:
    """A frozen graph in which masked weights are constants, of what the outputs need."""
    values = _values(input_graph_def, [node.name for node in input_graph_def.node if "masked_weight" in node.name and node.op == "Mul"])
    made = definitions.GraphDef()
    for node in input_graph_def.node:
        if node.name not in values:
            made.node.add().CopyFrom(node)
            continue
        value, enter = values[node.name]
        tf_logging.info("%s has %d values, %1.2f%% zeros", node.name, value.size, 100.0 * np.mean(value == 0))
        constant = made.node.add(name=node.name, op="Const")
        constant.attr["dtype"].CopyFrom(node.attr["T"])
        constant.attr["value"].tensor.CopyFrom(make_tensor_proto(value))
        if enter is not None:
            constant.name = node.name + "/value"
            carried = made.node.add()
            carried.CopyFrom(enter)
            carried.name = node.name
            carried.input[:] = [constant.name]
    return graph_util.extract_sub_graph(made, output_node_names)


def graph_def_from_checkpoint(checkpoint_dir: str, output_node_names: List[str]) -> Any:
    """The frozen graph of the newest checkpoint of a folder."""
    path = latest_checkpoint(checkpoint_dir)
    if path is None:
        raise at_user_line(ValueError("Could not find a checkpoint at: %s." % checkpoint_dir))
    saver = import_meta_graph(path + ".meta", clear_devices=True)
    assert saver is not None
    with Session() as session:
        saver.restore(session, path)
        return graph_util.convert_variables_to_constants(session, get_default_graph().as_graph_def(), output_node_names)
