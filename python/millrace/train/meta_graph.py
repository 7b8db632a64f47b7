# SPDX-License-Identifier: Apache-2.0
"""MetaGraphDefs: a graph with its collections."""
from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import proto_functions, versions
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


def create_meta_graph_def(meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None, collection_list: Any = None,
                          graph: Optional[Graph] = None) -> Any:
    """The MetaGraphDef of a graph, or of a GraphDef in its stead, that is not written."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError("graph must be of type Graph, not %s" % type(graph))
    made = export(None, graph or get_default_graph(), saver_def, collection_list, False)
    if graph_def is not None:
        made.graph_def.CopyFrom(graph_def)
    if meta_info_def is not None:
        made.meta_info_def.MergeFrom(meta_info_def)
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


# ---- what a graph is made of ----

def _called(graph_def: Any) -> List[str]:
    """The op types of a graph and of the functions that it calls, without the names of functions."""
    functions = {f.signature.name: f for f in graph_def.library.function}
    seen, found, waiting = set(), set(), [node.op for node in graph_def.node]
    while waiting:
        name = waiting.pop()
        if name in functions:
            if name not in seen:
                seen.add(name)
                waiting.extend(node.op for node in functions[name].node_def)
        else:
            found.add(name)
    return sorted(found)


ops_used_by_graph_def = _called


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The OpDefs of the ops that a graph uses, its functions' among them, by name and without documentation. RuntimeError where one is not known."""
    made, graph = definitions.OpList(), Graph()
    for name in _called(graph_def):
        try:
            op = definitions.OpDef.FromString(graph._op_def(name))
        except Exception:
            raise RuntimeError("Op %s is used by the graph, but is not registered" % name) from None
        op.summary = op.description = ""
        made.op.extend([op])
    return made


def create_meta_graph_def(meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None, collection_list: Any = None, graph: Any = None) -> Any:
    """The MetaGraphDef of a graph, of parts that are given and parts of the graph itself."""
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError("graph must be of type Graph, not %s" % type(graph))
    if graph_def is not None and not isinstance(graph_def, definitions.GraphDef):
        raise TypeError("graph_def must be of type GraphDef, not %s" % type(graph_def))
    made = export(None, graph or get_default_graph(), saver_def, collection_list, False)
    if graph_def is not None:
        made.graph_def.CopyFrom(graph_def)
    if meta_info_def is not None:
        made.meta_info_def.CopyFrom(meta_info_def)
    made.meta_info_def.tensorflow_version, made.meta_info_def.tensorflow_git_version = versions.VERSION, versions.GIT_VERSION
    if not made.meta_info_def.stripped_op_list.op:
        try:
            made.meta_info_def.stripped_op_list.CopyFrom(stripped_op_list_for_graph(made.graph_def))
        except RuntimeError:
            pass  # the graph names ops of others
    return made


def collection_message(key: str) -> Any:
    """The message that the values of a collection are written as, or None where they are written as they are."""
    if key in _VARIABLES:
        return definitions.VariableDef
    if key == GraphKeys.QUEUE_RUNNERS:
        return definitions.QueueRunnerDef
    return proto_functions.get_collection_proto_type(key)
