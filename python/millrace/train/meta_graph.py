# SPDX-License-Identifier: Apache-2.0
"""MetaGraphDefs: a graph with its collections."""
from __future__ import annotations

from typing import Any, Optional

from millrace.framework.graph import Graph, GraphKeys, Operation, Tensor, get_default_graph
from millrace.framework.importer import import_graph_def
from millrace.ops.variables import Variable
from millrace.protos import definitions, text_format

_VARIABLES = set(GraphKeys._VARIABLE_COLLECTIONS)


def export(filename: Optional[str], graph: Graph, saver_def: Any, collection_list: Any, as_text: bool) -> Any:
    """The MetaGraphDef of a graph, written to a file when one is named."""
    made = definitions.MetaGraphDef()
    made.meta_info_def.tensorflow_version = "1.15.0"
    made.graph_def.MergeFromString(graph._graph_def())
    made.graph_def.SetInParent()
    if saver_def is not None:
        made.saver_def.CopyFrom(saver_def)
    for key in collection_list if collection_list is not None else graph.get_all_collection_keys():
        _add_collection(made, key, graph.get_collection(key))
    if filename:
        with open(filename, "wb") as file:
            file.write(str(made).encode() if as_text else made.SerializeToString())
    return made


def _add_collection(made: Any, key: str, values: Any) -> None:
    if not values:
        return
    if all(hasattr(v, "to_proto") and not isinstance(v, (Tensor, Operation)) for v in values):
        made.collection_def[key].bytes_list.value.extend([v.to_proto().SerializeToString() for v in values])
    elif all(isinstance(v, (Tensor, Operation)) for v in values):
        made.collection_def[key].node_list.value.extend([v.name for v in values])
    elif all(isinstance(v, bool) is False and isinstance(v, int) for v in values):
        made.collection_def[key].int64_list.value.extend(values)
    elif all(isinstance(v, float) for v in values):
        made.collection_def[key].float_list.value.extend(values)
    elif all(isinstance(v, (str, bytes)) for v in values):
        made.collection_def[key].bytes_list.value.extend(values)


def read(meta_graph_or_file: Any) -> Any:
    """A MetaGraphDef as it is, or that of a file."""
    if not isinstance(meta_graph_or_file, (str, bytes)) and hasattr(meta_graph_or_file, "graph_def"):
        return meta_graph_or_file
    with open(meta_graph_or_file, "rb") as file:
        data = file.read()
    try:
        return definitions.MetaGraphDef.FromString(data)
    except (ValueError, UnicodeDecodeError):
        return text_format.Parse(data.decode(), definitions.MetaGraphDef())


def load(meta_graph_or_file: Any, clear_devices: bool, import_scope: Optional[str]) -> Any:
    """Adds the graph and the collections of a MetaGraphDef; the MetaGraphDef."""
    made = read(meta_graph_or_file)
    if clear_devices:
        for node in made.graph_def.node:
            node.device = ""
    import_graph_def(made.graph_def, name=import_scope or "")
    graph = get_default_graph()
    prefix = import_scope + "/" if import_scope else ""
    known = {v.name: v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
    for key in made.collection_def:
        collection = made.collection_def[key]
        kind = collection.WhichOneof("kind")
        if kind is None:
            continue
        values = getattr(collection, kind).value
        if kind == "node_list":
            for name in values:
                element = name if not prefix else ("^" + prefix + name[1:] if name.startswith("^") else prefix + name)
                graph.add_to_collection(key, graph.as_graph_element(element))
        elif kind == "bytes_list" and key in _VARIABLES:
            for value in values:
                definition = definitions.VariableDef.FromString(value)
                name = prefix + definition.variable_name
                if name not in known:
                    known[name] = Variable.from_proto(definition, import_scope)
                if key == GraphKeys.TRAINABLE_VARIABLES:
                    known[name]._trainable = True
                graph.add_to_collection(key, known[name])
        elif kind == "bytes_list" and key == GraphKeys.QUEUE_RUNNERS:
            from millrace.train import queue_runner
            for value in values:
                graph.add_to_collection(key, queue_runner.QueueRunner.from_proto(definitions.QueueRunnerDef.FromString(value), import_scope))
        else:
            for value in values:
                graph.add_to_collection(key, value)
    return made
