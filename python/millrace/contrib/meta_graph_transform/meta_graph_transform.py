# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.meta_graph_transform: MetaGraphDefs whose graphs were changed, without what names nodes that are gone."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional

from millrace import graph_util
from millrace.compat import as_str_any
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys
from millrace.framework.importer import import_graph_def
from millrace.framework.session import Session
from millrace.protos import definitions
from millrace.saved_model import constants
from millrace.tools import graph_transforms
from millrace.train.saver import Saver

_FREEZE_GRAPH_TRANSFORM = "freeze_graph"
_SPARSIFY_GATHER_TRANSFORM = "sparsify_gather"
_Names = Dict[str, List[str]]  # of nodes that have to stay, by collection


def _op_name(tensor_name: str) -> str:
    return tensor_name.lstrip("^").split(":")[0]


def _get_shared_init_op(initializer_names: _Names) -> Optional[str]:
    """The operation that initializes what a SavedModel has."""
    named = initializer_names.get(constants.MAIN_OP_KEY) or initializer_names.get(constants.LEGACY_INIT_OP_KEY)
    return str(named[0]) if named else None


def _gtt_transforms(graph_def: Any, input_names: Any, output_names: Any, initializer_names: _Names, transforms: Any) -> Any:
    """The graph after transforms that keep outputs and initializers."""
    if not transforms:
        made = definitions.GraphDef()
        made.CopyFrom(graph_def)
        return made
    kept = sorted(name for names in initializer_names.values() for name in names)
    return graph_transforms.TransformGraph(graph_def, input_names, output_names + kept, transforms)


def _freeze_transform(graph_def: Any, output_names: Any, initializer_names: _Names, saver_def: Any, checkpoint_path: Any) -> Any:
    """(the graph with its variables as constants, the initializers that are left: those of tables)."""
    tables = initializer_names.get(GraphKeys.TABLE_INITIALIZERS, [])
    frozen = _freeze_graph_with_def_protos(graph_def, output_names, tables, _get_shared_init_op(initializer_names), saver_def, checkpoint_path)
    left = (GraphKeys.TABLE_INITIALIZERS, constants.LEGACY_INIT_OP_KEY, constants.MAIN_OP_KEY) if tables else ()
    return frozen, {key: initializer_names[key] for key in left if key in initializer_names}


def _clean_save_and_restore(graph_def: Any, op: Any, removed_op_names: Any) -> None:
    """Takes what is gone out of the names, slices and dtypes of a saving node."""
    nodes = [_find_op(graph_def, op.name + "/" + what) for what in ("tensor_names", "shape_and_slices")]
    names, slices = (list(node.attr["value"].tensor.string_val) for node in nodes)
    kept = [i for i, name in enumerate(names) if not _is_removed(as_str_any(name), removed_op_names)]
    for node, values in zip(nodes, (names, slices)):
        tensor = node.attr["value"].tensor
        del tensor.string_val[:]
        tensor.string_val.extend([values[i] for i in kept])
        tensor.tensor_shape.dim[0].size = len(kept)
        shapes = node.attr["_output_shapes"].list.shape
        if not shapes:
            shapes.add().dim.add()
        shapes[0].dim[0].size = len(kept)
    types = list(op.attr["dtypes"].list.type)
    del op.attr["dtypes"].list.type[:]
    op.attr["dtypes"].list.type.extend([types[i] for i in kept])


def _sparsify_gather_transform(graph_def: Any, input_names: Any, output_names: Any, initializer_names: _Names, checkpoint_path: Any) -> Any:
    """(the graph whose gathers read tables, the initializers with those of the tables)."""
    init = "sparify_gather_init_op"  # so it is spelled
    while _find_op(graph_def, init):
        init += "_1"
    checkpoint = 'input_checkpoint="%s", ' % checkpoint_path if checkpoint_path else ""
    before = [node.name for node in graph_def.node]
    graph_def = _gtt_transforms(graph_def, input_names, output_names, initializer_names, ['sparsify_gather(%sgroup_init_node="%s")' % (checkpoint, init)])
    after = {node.name for node in graph_def.node}
    removed = [re.sub(r"/part_[^/]*$", "", name) for name in sorted(set(before) - after)]
    tables: List[str] = []
    for i, node in enumerate(graph_def.node):
        if node.name == init:
            tables = [name.lstrip("^") for name in node.input]
            initializer_names[GraphKeys.TABLE_INITIALIZERS] = list(initializer_names.get(GraphKeys.TABLE_INITIALIZERS, [])) + tables
            del graph_def.node[i]
            break
    shared = _find_op(graph_def, _get_shared_init_op(initializer_names))
    if tables:
        shared.input.extend(["^" + name for name in tables])
    for node in graph_def.node:
        if node.name.endswith("SaveV2"):
            _clean_save_and_restore(graph_def, node, removed)
    return graph_def, initializer_names


def _do_transforms(
    graph_def: Any, input_names: Any, output_names: Any, initializer_names: _Names, transforms: Any, saver_def: Any = None, checkpoint_path: Any = None
) -> Any:
    """(graph, initializers) after all transforms in their order."""
    made = definitions.GraphDef()
    made.CopyFrom(graph_def)
    names = dict(initializer_names)
    waiting: List[str] = []
    for transform in transforms:
        if transform not in (_FREEZE_GRAPH_TRANSFORM, _SPARSIFY_GATHER_TRANSFORM):
            waiting.append(transform)
            continue
        made, waiting = _gtt_transforms(made, input_names, output_names, names, waiting), []
        if transform == _FREEZE_GRAPH_TRANSFORM:
            made, names = _freeze_transform(made, [_op_name(name) for name in output_names], names, saver_def, checkpoint_path)
        else:
            made, names = _sparsify_gather_transform(made, input_names, output_names, names, checkpoint_path)
    if transforms:
        made = _gtt_transforms(made, input_names, output_names, names, waiting)
    return made, names


def _connect_to_shared_init_op(graph_def: Any, shared_init_op_name: Any, nodes_to_connect: Any) -> None:
    """Adds an operation that runs others."""
    if nodes_to_connect:
        node = graph_def.node.add()
        node.name, node.op = shared_init_op_name, "NoOp"
        node.input.extend(["^" + name for name in nodes_to_connect])


def _freeze_graph_with_def_protos(
    input_graph_def: Any, output_node_names: Any, initializer_names: Any, shared_init_op_name: Any, input_saver_def: Any, input_checkpoint: Any
) -> Any:
    with Graph().as_default():
        import_graph_def(input_graph_def, name="")
        with Session() as sess:
            Saver(saver_def=input_saver_def).restore(sess, input_checkpoint)
            frozen = graph_util.convert_variables_to_constants(sess, input_graph_def, output_node_names + initializer_names)
    _connect_to_shared_init_op(frozen, shared_init_op_name, initializer_names)
    return frozen


def _find_all_mandatory_retain_ops(base_meta_graph_def: Any) -> _Names:
    """What has to stay: what savers, variables, tables and sessions' starts name."""
    names: _Names = {}
    savers = [base_meta_graph_def.saver_def] if base_meta_graph_def.HasField("saver_def") else []
    for saver in savers + _messages(base_meta_graph_def, GraphKeys.SAVERS, definitions.SaverDef):
        names.setdefault(GraphKeys.SAVERS, []).extend([saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name])
    for key in (
        GraphKeys.GLOBAL_VARIABLES,
        GraphKeys.TRAINABLE_VARIABLES,
        GraphKeys.MOVING_AVERAGE_VARIABLES,
        GraphKeys.LOCAL_VARIABLES,
        GraphKeys.MODEL_VARIABLES,
    ):
        initializers = [variable.initializer_name for variable in _messages(base_meta_graph_def, key, definitions.VariableDef)]
        if initializers:
            names[key] = initializers
    tables = _nodes(base_meta_graph_def, GraphKeys.TABLE_INITIALIZERS)
    if tables:
        names[GraphKeys.TABLE_INITIALIZERS] = tables
    for key in (
        constants.LEGACY_INIT_OP_KEY,
        constants.MAIN_OP_KEY,
        GraphKeys.INIT_OP,
        GraphKeys.LOCAL_INIT_OP,
        GraphKeys.READY_OP,
        GraphKeys.READY_FOR_LOCAL_INIT_OP,
    ):
        starts = _nodes(base_meta_graph_def, key)
        if starts is not None:
            if len(starts) != 1:
                raise at_user_line(ValueError("Collection %s has %d elements; expected exactly one." % (key, len(starts))))
            names[key] = starts
    return names


def _nodes(meta_graph_def: Any, key: str) -> Optional[List[str]]:
    """The nodes that a collection names."""
    if key not in meta_graph_def.collection_def:
        return None
    values = list(meta_graph_def.collection_def[key].node_list.value)
    if not values:
        raise at_user_line(ValueError("Collection %s is present but type is not node_list." % key))
    return values


def _messages(meta_graph_def: Any, key: str, kind: Any) -> List[Any]:
    """The messages of a collection."""
    if key not in meta_graph_def.collection_def:
        return []
    values = list(meta_graph_def.collection_def[key].bytes_list.value)
    if not values:
        raise at_user_line(ValueError("Collection %s is present but type is not bytes_list." % key))
    return [kind.FromString(value) for value in values]


def _add_pruned_collection(base_meta_graph_def: Any, meta_graph_def: Any, collection_name: str, removed_op_names: Any) -> None:
    """The collection without what names a node that is gone."""
    base, made = base_meta_graph_def.collection_def[collection_name], meta_graph_def.collection_def[collection_name]
    if base.HasField("any_list"):
        for value in base.any_list.value:
            if not _is_removed_mentioned(value.value, removed_op_names):
                made.any_list.value.add().CopyFrom(value)
    elif base.HasField("bytes_list"):
        made.bytes_list.value.extend([value for value in base.bytes_list.value if not _is_removed_mentioned(value, removed_op_names)])
    elif base.HasField("node_list"):
        made.node_list.value.extend([value for value in base.node_list.value if not _is_removed(value, removed_op_names)])
    else:
        made.CopyFrom(base)


def _add_pruned_saver(base_meta_graph_def: Any, meta_graph_def: Any, removed_op_names: Any) -> None:
    """The saver, of which nothing may be gone."""
    if base_meta_graph_def.HasField("saver_def"):
        saver = base_meta_graph_def.saver_def
        for name in (saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name):
            _check_tensor_not_removed(name, removed_op_names)
        meta_graph_def.saver_def.CopyFrom(saver)


def _find_op(graph_def: Any, op_name: Any) -> Any:
    return next((node for node in graph_def.node if node.name == op_name), None)


def _add_pruned_signature(base_meta_graph_def: Any, meta_graph_def: Any, signature_name: str, removed_op_names: Any) -> None:
    """The signature, unless a tensor of it is gone."""
    signature = base_meta_graph_def.signature_def[signature_name]
    tensors = [info.name for side in (signature.inputs, signature.outputs) for info in side.values()]
    if all(name and not _is_removed(name, removed_op_names) for name in tensors):
        meta_graph_def.signature_def[signature_name].CopyFrom(signature)


def _is_removed(tensor_name: str, removed_op_names: Any) -> bool:
    return tensor_name.split(":")[0] in removed_op_names


def _is_removed_mentioned(s: Any, removed_op_names: Any) -> bool:
    """Whether a text or message names one of the nodes."""
    words = set(re.findall(r"[/a-zA-Z0-9_]+", as_str_any(s)))
    return any(word.endswith(name) for word in words for name in removed_op_names)


def _check_tensor_not_removed(tensor_name: str, removed_op_names: Any) -> None:
    if not tensor_name:
        raise at_user_line(ValueError("Tensor name should not be empty"))
    if _is_removed(tensor_name, removed_op_names):
        raise at_user_line(ValueError("Expected Tensor, but it was removed: %s" % tensor_name))


def _add_new_inits_to_collection(meta_graph_def: Any, updated_initializer_names: _Names) -> None:
    """The initializers of tables that came along."""
    tables = updated_initializer_names.get(GraphKeys.TABLE_INITIALIZERS)
    if tables:
        known = _nodes(meta_graph_def, GraphKeys.TABLE_INITIALIZERS) or []
        meta_graph_def.collection_def[GraphKeys.TABLE_INITIALIZERS].node_list.value.extend(sorted(set(tables) - set(known)))


def meta_graph_transform(base_meta_graph_def: Any, input_names: Any, output_names: Any, transforms: Any, tags: Any, checkpoint_path: Any = None) -> Any:
    """A MetaGraphDef with some tags, whose graph has been changed by transforms: those of tools.graph_transforms, and freeze_graph, which needs a
    checkpoint. What names a node that is gone is left out; savers and initializers stay."""
    made = definitions.MetaGraphDef()
    graph_def, names = _do_transforms(
        base_meta_graph_def.graph_def,
        input_names,
        output_names,
        _find_all_mandatory_retain_ops(base_meta_graph_def),
        transforms,
        base_meta_graph_def.saver_def,
        checkpoint_path,
    )
    made.graph_def.CopyFrom(graph_def)
    made.meta_info_def.CopyFrom(base_meta_graph_def.meta_info_def)
    made.meta_info_def.ClearField("tags")
    made.meta_info_def.tags.extend(tags)
    removed = {node.name for node in base_meta_graph_def.graph_def.node} - {node.name for node in made.graph_def.node}
    if _FREEZE_GRAPH_TRANSFORM not in transforms:
        _add_pruned_saver(base_meta_graph_def, made, removed)
    for name in base_meta_graph_def.collection_def:
        _add_pruned_collection(base_meta_graph_def, made, name, removed)
    _add_new_inits_to_collection(made, names)
    for name in base_meta_graph_def.signature_def:
        _add_pruned_signature(base_meta_graph_def, made, name, removed)
    return made
