# SPDX-License-Identifier: Apache-2.0
"""MetaGraphDefs: a graph, or what lies below a name scope of it, with its collections."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from millrace import gfile, tf_logging
from millrace.framework import versions
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, get_default_graph
from millrace.framework.importer import import_graph_def
from millrace.framework.library_names import prepend_name_scope, strip_name_scope
from millrace.framework.proto_functions import get_collection_proto_type, get_from_proto_function, get_to_proto_function, register_proto_function
from millrace.ops.control_flow_contexts import CondContext, WhileContext
from millrace.ops.variables import Variable
from millrace.protos import definitions, graph_bytes, text_format

_UNBOUND = "$unbound_inputs_"  # in front of the name of an input that lies outside of the scope
_SAVER_OPS = ("SaveV2", "Save", "SaveSlices", "SaveSlice", "RestoreV2", "Restore", "RestoreSlice")

for _key in GraphKeys._VARIABLE_COLLECTIONS:
    register_proto_function(_key, definitions.VariableDef, Variable.to_proto, Variable.from_proto)
register_proto_function(GraphKeys.COND_CONTEXT, definitions.CondContextDef, CondContext.to_proto, CondContext.from_proto)
register_proto_function(GraphKeys.WHILE_CONTEXT, definitions.WhileContextDef, WhileContext.to_proto, WhileContext.from_proto)


# ---- what a graph is made of ----


def ops_used_by_graph_def(graph_def: Any) -> List[str]:
    """The op types of a graph and of the functions that it calls, without the names of functions."""
    waiting, library = graph_bytes.op_types(graph_def.SerializeToString())
    functions = {f.signature.name: f for f in library.function}
    seen, found = set(), set()
    while waiting:
        name = waiting.pop()
        if name in functions:
            if name not in seen:
                seen.add(name)
                waiting.extend(node.op for node in functions[name].node_def)
        else:
            found.add(name)
    return sorted(found)


def registered_ops(names: List[str]) -> Dict[str, Any]:
    """The OpDefs of those names that are registered, without documentation."""
    graph, found = Graph(), {}
    for name in names:
        try:
            op = definitions.OpDef.FromString(graph._op_def(name))
        except Exception:
            continue
        op.summary = op.description = ""
        found[name] = op
    return found


def stripped_op_list_for_graph(graph_def: Any) -> Any:
    """The OpDefs of the ops that a graph uses, its functions' among them, by name and without documentation. RuntimeError where one is not known."""
    used = ops_used_by_graph_def(graph_def)
    known = registered_ops(used)
    for name in used:
        if name not in known:
            raise RuntimeError("Op %s is used by the graph, but is not registered" % name)
    return definitions.OpList(op=[known[name] for name in used])


def strip_graph_default_valued_attrs(meta_graph_def: Any) -> None:
    """Takes the attributes out of the nodes that have the values which their ops give them anyway, for readers with older ops."""
    graph_def = meta_graph_def.graph_def
    functions = {f.signature.name for f in graph_def.library.function}
    ops = registered_ops(ops_used_by_graph_def(graph_def))
    for nodes in [graph_def.node] + [f.node_def for f in graph_def.library.function]:
        for node in nodes:
            if node.op in functions or node.op not in ops:
                continue
            for attr in ops[node.op].attr:
                if attr.HasField("default_value") and attr.name in node.attr and node.attr[attr.name] == attr.default_value:
                    del node.attr[attr.name]
    meta_graph_def.meta_info_def.stripped_default_attrs = True


# ---- writing ----


def _name_of(element: str) -> str:
    return element.lstrip("^").split(":")[0]


def _other_savers_nodes(graph_def: Any, saver_def: Any) -> Set[str]:
    """The nodes of savers other than one. Each saver has a name scope of its own."""

    def scope_of(name: str) -> str:
        return name.rpartition("/")[0]

    own = set() if saver_def is None else {scope_of(_name_of(saver_def.save_tensor_name)), scope_of(_name_of(saver_def.restore_op_name))}
    names = {node.name for node in graph_def.node if node.op in _SAVER_OPS}
    scopes = {scope_of(name) for name in names} - names - own
    return {node.name for node in graph_def.node if any(node.name.startswith(scope + "/") for scope in scopes)}


def _is_inside(element: Any, export_scope: Optional[str], exclude_nodes: Any) -> bool:
    name = element if isinstance(element, str) else getattr(element, "name", None)
    if not isinstance(name, str):
        return True  # nothing is known of it
    if exclude_nodes and (name in exclude_nodes or _name_of(name) in exclude_nodes):
        return False
    return not export_scope or name.startswith((export_scope, _UNBOUND))


def _scoped_node(node: Any, export_scope: Optional[str], unbound: List[str], clear_devices: bool) -> Any:
    """A node with names below a scope. An input from outside gets a mark, and is added to `unbound`."""
    made = definitions.NodeDef()
    made.CopyFrom(node)
    if clear_devices:
        made.device = ""
    if not export_scope:
        return made
    made.name = strip_name_scope(node.name, export_scope)
    for i, name in enumerate(node.input):
        if name.lstrip("^").startswith(export_scope):
            made.input[i] = strip_name_scope(name, export_scope)
        else:
            made.input[i] = "^" + _UNBOUND + name[1:] if name.startswith("^") else _UNBOUND + name
            unbound.append(made.input[i])
    if "_class" in node.attr:
        groups = [s.decode() for s in node.attr["_class"].list.s]
        made.attr["_class"].Clear()
        made.attr["_class"].list.s.extend([strip_name_scope(g, export_scope).encode() for g in groups if g.split("@")[-1].startswith(export_scope)])
        made.attr["_class"].list.SetInParent()
    if node.op in ("Enter", "RefEnter"):
        made.attr["frame_name"].s = strip_name_scope(node.attr["frame_name"].s.decode(), export_scope).encode()
    return made


def _scoped_graph(graph_def: Any, export_scope: Optional[str], exclude_nodes: Any, clear_devices: bool, unbound: List[str]) -> Any:
    made = definitions.GraphDef()
    made.versions.CopyFrom(graph_def.versions)
    if graph_def.HasField("library"):
        made.library.CopyFrom(graph_def.library)
    made.node.extend(
        [_scoped_node(node, export_scope, unbound, clear_devices) for node in graph_def.node if _is_inside(node.name, export_scope, exclude_nodes)]
    )
    return made


def _kind_of(item: Any) -> str:
    if isinstance(item, (str, bytes)):
        return "bytes_list"
    if isinstance(item, int):
        return "int64_list"
    if isinstance(item, float):
        return "float_list"
    return "any_list" if hasattr(item, "type_url") else "node_list"  # google.protobuf's Any too


def add_collection_def(
    meta_graph_def: Any, key: Any, graph: Optional[Graph] = None, export_scope: Optional[str] = None, exclude_nodes: Any = None, override_contents: Any = None
) -> None:
    """Adds a collection of a graph to a MetaGraphDef. One that cannot be written is left out, with a warning."""
    if graph is not None and not isinstance(graph, Graph):
        raise at_user_line(TypeError("graph must be of type Graph, not %s" % type(graph)))
    if not isinstance(key, (str, bytes)):
        tf_logging.warning("Only collections with string type keys will be serialized. This key has %s", type(key))
        return
    values = override_contents or (graph or get_default_graph()).get_collection(key)
    values = [v for v in values if _is_inside(v, export_scope, exclude_nodes)]
    if not values:
        return
    try:
        kind, written = _written(key, values, export_scope)  # type: ignore[arg-type]
        getattr(meta_graph_def.collection_def[key], kind).value.extend(written)
        getattr(meta_graph_def.collection_def[key], kind).SetInParent()
    except Exception as error:
        tf_logging.warning(
            "Issue encountered when serializing %s.\nType is unsupported, or the types of the items don't match field type in "
            "CollectionDef. Note this is a warning and probably safe to ignore.\n%s",
            key,
            error,
        )
        if key in meta_graph_def.collection_def:
            del meta_graph_def.collection_def[key]


def _written(key: str, values: List[Any], export_scope: Optional[str]) -> Tuple[str, List[Any]]:
    """The kind of a collection's list, and what goes into it."""
    to_proto = get_to_proto_function(key)
    if to_proto:
        messages = [to_proto(v, export_scope=export_scope) for v in values]
        wanted = get_collection_proto_type(key)
        for message in messages:
            if message is not None and not isinstance(message, wanted):
                raise TypeError("got %s, expected %s" % (type(message), wanted))
        return "bytes_list", [m.SerializeToString() for m in messages if m is not None]
    kind = _kind_of(values[0])
    if kind == "node_list":
        return kind, [strip_name_scope(v.name, export_scope) for v in values if not export_scope or v.name.startswith(export_scope)]
    if kind == "bytes_list":
        return kind, [v.encode() if isinstance(v, str) else v for v in values]
    if kind == "any_list":
        return kind, [definitions.Any(type_url=v.type_url, value=v.value) for v in values]  # type: ignore[attr-defined,call-arg]
    return kind, list(values)


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    graph: Any = None,
    export_scope: Optional[str] = None,
    exclude_nodes: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
) -> Any:
    """The MetaGraphDef of a graph, of parts that are given and parts of the graph itself."""
    for value, what, kind in (
        (graph, "graph", Graph),
        (meta_info_def, "meta_info_def", definitions.MetaGraphDef.MetaInfoDef),
        (graph_def, "graph_def", definitions.GraphDef),
        (saver_def, "saver_def", definitions.SaverDef),
    ):
        if value is not None and not isinstance(value, kind):
            raise at_user_line(TypeError("%s must be of type %s, not %s" % (what, kind.__name__, type(value))))
    graph = graph or get_default_graph()
    made = definitions.MetaGraphDef()
    if meta_info_def is not None:
        made.meta_info_def.CopyFrom(meta_info_def)
    made.meta_info_def.tensorflow_version, made.meta_info_def.tensorflow_git_version = versions.VERSION, versions.GIT_VERSION
    made.graph_def.CopyFrom(graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def)
    made.graph_def.SetInParent()
    if not made.meta_info_def.stripped_op_list.op:
        try:
            made.meta_info_def.stripped_op_list.CopyFrom(stripped_op_list_for_graph(made.graph_def))
        except RuntimeError as error:
            tf_logging.info("%s: the list of ops is left out", error)
    if strip_default_attrs:
        strip_graph_default_valued_attrs(made)
    if saver_def is not None:
        made.saver_def.CopyFrom(saver_def)
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        only = [get_from_proto_function(key)(saver_def)] if clear_extraneous_savers and key == GraphKeys.SAVERS and saver_def is not None else None
        add_collection_def(made, key, graph, export_scope, exclude_nodes, only)
    return made


def export_scoped_meta_graph(
    filename: Optional[str] = None,
    graph_def: Any = None,
    graph: Optional[Graph] = None,
    export_scope: Optional[str] = None,
    as_text: bool = False,
    unbound_inputs_col_name: Optional[str] = "unbound_inputs",
    clear_devices: bool = False,
    saver_def: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    **kwargs: Any,
) -> Tuple[Any, Dict[str, Any]]:
    """(the MetaGraphDef of a graph or of a name scope of it, its variables by their names there); written to a file when one is named.

    Inputs of the scope that come from outside are named in a collection. `kwargs`: meta_info_def, collection_list.
    """
    graph = graph or get_default_graph()
    excluded: Any = None
    if export_scope or clear_extraneous_savers or clear_devices:
        unbound: List[str] = []
        whole = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
        if clear_extraneous_savers:
            excluded = _other_savers_nodes(whole, saver_def)
        graph_def = _scoped_graph(whole, export_scope, excluded, clear_devices, unbound)
        if unbound_inputs_col_name:
            graph.clear_collection(unbound_inputs_col_name)
            for name in unbound:
                graph.add_to_collection(unbound_inputs_col_name, name)
    variables = {
        strip_name_scope(v.name, export_scope): v
        for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=export_scope)
        if _is_inside(v, export_scope, excluded)
    }
    made = create_meta_graph_def(
        graph_def=graph_def,
        graph=graph,
        export_scope=export_scope,
        exclude_nodes=excluded,
        saver_def=saver_def,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
        **kwargs,
    )
    if filename:
        filename = gfile.as_path(filename)
        folder = gfile.folder_of(filename)
        if folder and not gfile.IsDirectory(folder):
            gfile.MakeDirs(folder)
        gfile.atomic_write(filename, str(made) if as_text else made.SerializeToString())
    return made, variables


# ---- reading ----


def read_meta_graph_file(meta_graph_or_file: Any) -> Any:
    """A MetaGraphDef as it is, or that of a file, in either form. OSError when there is none."""
    if isinstance(meta_graph_or_file, definitions.MetaGraphDef):
        return meta_graph_or_file
    if not gfile.Exists(meta_graph_or_file):
        raise at_user_line(OSError("File %s does not exist." % meta_graph_or_file))
    with gfile.GFile(meta_graph_or_file, "rb") as file:
        data = file.read()
    try:
        return definitions.MetaGraphDef.FromString(data)
    except (ValueError, UnicodeDecodeError):
        pass
    try:
        return text_format.Parse(data.decode(), definitions.MetaGraphDef())
    except (ValueError, UnicodeDecodeError) as error:
        raise at_user_line(OSError("Cannot parse file %s: %s." % (meta_graph_or_file, error))) from None


def _check_bound(meta_graph_def: Any, collection: Optional[str], input_map: Any) -> None:
    if not collection or collection not in meta_graph_def.collection_def:
        return
    given = set(input_map or {})
    names = [n.decode() if isinstance(n, bytes) else n for n in _values(meta_graph_def.collection_def[collection])]
    if names and set(names) != given:
        raise at_user_line(
            ValueError("Graph contains unbound inputs: %s. Must provide these inputs through input_map." % ",".join(n for n in names if n not in given))
        )


def _values(collection: Any) -> Any:
    kind = collection.WhichOneof("kind")
    return [] if kind is None else getattr(collection, kind).value


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Optional[Graph] = None,
    import_scope: Optional[str] = None,
    input_map: Any = None,
    unbound_inputs_col_name: Optional[str] = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
) -> Dict[str, Any]:
    """Adds the graph and the collections of a MetaGraphDef; its variables by their names in it."""
    return import_scoped_meta_graph_with_return_elements(
        meta_graph_or_file, clear_devices, graph, import_scope, input_map, unbound_inputs_col_name, restore_collections_predicate
    )[0]


def import_scoped_meta_graph_with_return_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Optional[Graph] = None,
    import_scope: Optional[str] = None,
    input_map: Any = None,
    unbound_inputs_col_name: Optional[str] = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: Any = None,
) -> Tuple[Dict[str, Any], Any]:
    """import_scoped_meta_graph's variables, and the elements of the graph that were asked for."""
    definition = read_meta_graph_file(meta_graph_or_file)
    _check_bound(definition, unbound_inputs_col_name, input_map)
    graph = graph or get_default_graph()
    with graph.as_default():
        graph_def = definition.graph_def
        if clear_devices:
            for node in graph_def.node:
                node.device = ""
        if not import_scope:
            scope = graph.get_name_scope()
        else:
            scope = import_scope[:-1] if import_scope.endswith("/") else graph.unique_name(import_scope, mark_as_used=False)
        elements = import_graph_def(graph_def, name=import_scope or (scope and scope + "/"), input_map=input_map, return_elements=return_elements)
        known: Dict[bytes, Any] = {}
        keys = sorted(definition.collection_def, key=lambda k: (k != GraphKeys.TRAINABLE_VARIABLES, k))  # these say which variables are trained
        for key in keys:
            if key != unbound_inputs_col_name and restore_collections_predicate(key):
                _add_collection(graph, key, definition.collection_def[key], scope, known)
        variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope or None)
    return {strip_name_scope(v.name, scope or None): v for v in variables}, elements


def _add_collection(graph: Graph, key: str, collection: Any, scope: str, known: Dict[bytes, Any]) -> None:
    kind, values = collection.WhichOneof("kind"), _values(collection)
    if kind is None:
        tf_logging.error("Cannot identify data type for collection %s. Skipping.", key)
        return
    from_proto = get_from_proto_function(key)
    if from_proto and kind == "bytes_list":
        for value in values:
            element = known.get(value) if key in GraphKeys._VARIABLE_COLLECTIONS else None
            if element is None:
                message = get_collection_proto_type(key).FromString(value)
                if key == GraphKeys.TRAINABLE_VARIABLES:
                    message.trainable = True
                element = from_proto(message, import_scope=scope or None)
            if key in GraphKeys._VARIABLE_COLLECTIONS:
                known[value] = element
            graph.add_to_collection(key, element)
        return
    for value in values:
        if kind == "node_list":
            value = graph.as_graph_element(prepend_name_scope(value, scope or None))
        elif kind == "bytes_list" and scope:
            value = prepend_name_scope(value.decode(), scope) if isinstance(value, bytes) else value
        graph.add_to_collection(key, value)


def copy_scoped_meta_graph(from_scope: str, to_scope: str, from_graph: Optional[Graph] = None, to_graph: Optional[Graph] = None) -> Dict[str, Any]:
    """Copies what lies below a name scope below another one, also of another graph; the new variables by their names there."""
    from_graph, to_graph = from_graph or get_default_graph(), to_graph or get_default_graph()
    if from_graph is to_graph and from_scope == to_scope:
        raise at_user_line(ValueError("'from_scope' and 'to_scope' need to be different when performing copy in the same graph."))
    definition, _ = export_scoped_meta_graph(export_scope=from_scope, graph=from_graph)
    return import_scoped_meta_graph(definition, graph=to_graph, import_scope=to_scope)
