# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.tools.freeze_graph: a graph whose variables have become constants."""

from __future__ import annotations

from typing import Any

from millrace import gfile, graph_util
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.framework.importer import import_graph_def, without_shapes
from millrace.framework.session import Session
from millrace.protos import definitions, text_format
from millrace.saved_model import loader, tag_constants
from millrace.saved_model.utils import get_meta_graph_def
from millrace.train.checkpoint_management import checkpoint_exists
from millrace.train.saver import NewCheckpointReader, Saver


def _names(listed: Any) -> Any:
    return [n for n in listed.replace(" ", "").split(",") if n] if isinstance(listed, str) else list(listed or ())


def _tags(tags: Any) -> Any:
    return tags.split(",") if isinstance(tags, str) else list(tags or [tag_constants.SERVING])


def restore(session: Session, saver_def: Any, checkpoint: str, restore_op_name: str = "save/restore_all", filename_tensor_name: str = "save/Const:0") -> None:
    """By a saver, by the op of one in the graph, or each variable that the checkpoint has."""
    if saver_def is not None and saver_def.restore_op_name:
        Saver(saver_def=saver_def).restore(session, checkpoint)
        return
    try:
        operation, name = session.graph.get_operation_by_name(restore_op_name), session.graph.get_tensor_by_name(filename_tensor_name)
    except (KeyError, ValueError):
        saved = NewCheckpointReader(checkpoint).get_variable_to_shape_map()
        variables = [o for o in session.graph.get_operations() if o.type in ("Variable", "VariableV2", "VarHandleOp") and o.name in saved]
        Saver({o.name: o.outputs[0] for o in variables}).restore(session, checkpoint)
    else:
        session.run(operation, {name: checkpoint})


def freeze_graph_with_def_protos(
    input_graph_def: Any,
    input_saver_def: Any,
    input_checkpoint: str,
    output_node_names: Any,
    restore_op_name: str,
    filename_tensor_name: str,
    output_graph: Any,
    clear_devices: bool,
    initializer_nodes: Any,
    variable_names_whitelist: Any = "",
    variable_names_blacklist: Any = "",
    input_meta_graph_def: Any = None,
    input_saved_model_dir: Any = None,
    saved_model_tags: Any = None,
    checkpoint_version: int = 2,
) -> Any:
    """The frozen GraphDef of a graph and a checkpoint, written to a file when one is named."""
    del checkpoint_version  # the reader finds out by itself
    if not input_saved_model_dir and not checkpoint_exists(input_checkpoint):
        raise at_user_line(ValueError("Input checkpoint '%s' doesn't exist!" % input_checkpoint))
    if not output_node_names:
        raise at_user_line(ValueError("You need to supply the name of a node to --output_node_names."))
    if input_saved_model_dir:
        input_meta_graph_def = get_meta_graph_def(input_saved_model_dir, ",".join(_tags(saved_model_tags)))
    if input_meta_graph_def is not None:
        input_graph_def = without_shapes(input_meta_graph_def.graph_def)
        input_saver_def = input_saver_def or input_meta_graph_def.saver_def
    for node in input_graph_def.node if clear_devices else ():
        node.device = ""
    with Graph().as_default(), Session() as session:
        if input_saved_model_dir:
            loader.load(session, _tags(saved_model_tags), input_saved_model_dir)
        else:
            import_graph_def(input_graph_def, name="")
            restore(session, input_saver_def, input_checkpoint, restore_op_name, filename_tensor_name)
        if initializer_nodes:
            session.run(_names(initializer_nodes))
        made = graph_util.convert_variables_to_constants(
            session, input_graph_def, _names(output_node_names), _names(variable_names_whitelist) or None, _names(variable_names_blacklist) or None
        )
    if output_graph:
        with gfile.GFile(output_graph, "wb") as file:
            file.write(made.SerializeToString())
    return made


def _read(path: str, message: Any, binary: bool) -> Any:
    if not gfile.Exists(path):
        raise at_user_line(ValueError("Input file '%s' does not exist!" % path))
    with gfile.GFile(path, "rb" if binary else "r") as file:
        data = file.read()
    return type(message).FromString(data) if binary else text_format.Parse(data, message)


def freeze_graph(
    input_graph: str,
    input_saver: Any,
    input_binary: bool,
    input_checkpoint: str,
    output_node_names: Any,
    restore_op_name: str = "save/restore_all",
    filename_tensor_name: str = "save/Const:0",
    output_graph: Any = None,
    clear_devices: bool = True,
    initializer_nodes: Any = "",
    variable_names_whitelist: Any = "",
    variable_names_blacklist: Any = "",
    input_meta_graph: Any = None,
    input_saved_model_dir: Any = None,
    saved_model_tags: Any = None,
    checkpoint_version: int = 2,
) -> Any:
    """The same, of files: a GraphDef or MetaGraphDef in binary or text form, and a checkpoint."""
    graph = _read(input_graph, definitions.GraphDef(), input_binary) if input_graph else None
    meta = _read(input_meta_graph, definitions.MetaGraphDef(), input_binary) if input_meta_graph else None
    saver = _read(input_saver, definitions.SaverDef(), input_binary) if input_saver else None
    return freeze_graph_with_def_protos(
        graph,
        saver,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_blacklist,
        meta,
        input_saved_model_dir,
        saved_model_tags,
        checkpoint_version,
    )
