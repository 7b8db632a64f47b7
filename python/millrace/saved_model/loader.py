# SPDX-License-Identifier: Apache-2.0
"""Loading SavedModels."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from millrace import gfile
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.framework.library_names import prepend_name_scope
from millrace.protos import definitions
from millrace.saved_model import constants
from millrace.saved_model.reading import maybe_saved_model_directory, parse_saved_model  # noqa: F401
from millrace.saved_model.signature_def_utils import load_op_from_signature_def
from millrace.train.saveable import all_saveable_objects
from millrace.train.saver import import_meta_graph_with_return_elements


def _assets(graph: Any) -> List[Any]:
    if constants.ASSETS_KEY not in graph.collection_def:
        return list(graph.asset_file_def)
    found = [definitions.AssetFileDef() for _ in graph.collection_def[constants.ASSETS_KEY].any_list.value]
    for asset, entry in zip(found, graph.collection_def[constants.ASSETS_KEY].any_list.value):
        entry.Unpack(asset)
    return found


def get_asset_tensors(export_dir: Any, meta_graph_def_to_load: Any, import_scope: Optional[str] = None) -> Dict[str, str]:
    """{name of the tensor of an asset: the path of the file}."""
    folder = os.path.join(gfile.as_path(export_dir), constants.ASSETS_DIRECTORY)
    return {prepend_name_scope(a.tensor_info.name, import_scope): os.path.join(folder, a.filename) for a in _assets(meta_graph_def_to_load)}


def _operation(graph: Any, definition: Any, signature: str, collections: Any, import_scope: Optional[str]) -> Any:
    """The operation that a signature names, or else a collection; None where there is none."""
    if signature in definition.signature_def:
        with graph.as_default():
            return load_op_from_signature_def(definition.signature_def[signature], signature, import_scope)
    for key in collections:
        if key in definition.collection_def:
            listed = definition.collection_def[key].node_list.value
            if len(listed) != 1:
                raise at_user_line(RuntimeError("Expected exactly one SavedModel main op. Found: %s" % list(listed)))
            try:
                return graph.as_graph_element(prepend_name_scope(listed[0], import_scope))
            except KeyError:
                added = graph.get_collection(key)  # of a graph that was loaded into a scope, which the caller does not tell
                if len(added) != 1:
                    raise
                return added[0]
    return None


def get_init_op(meta_graph_def: Any, import_scope: Optional[str] = None) -> Any:
    """What runs first in a graph that was loaded into the default one, or None."""
    return _operation(get_default_graph(), meta_graph_def, constants.INIT_OP_SIGNATURE_KEY, (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY), import_scope)


def get_train_op(meta_graph_def: Any, import_scope: Optional[str] = None) -> Any:
    """What trains, in a graph that was loaded into the default one, or None."""
    return _operation(get_default_graph(), meta_graph_def, constants.TRAIN_OP_SIGNATURE_KEY, (constants.TRAIN_OP_KEY,), import_scope)


class SavedModelLoader:
    """Loads a SavedModel in one step or several."""

    def __init__(self, export_dir: Any) -> None:
        self._folder = gfile.as_path(export_dir)
        self._model = parse_saved_model(export_dir)

    export_dir = property(lambda self: self._folder, doc="Its folder.")
    saved_model = property(lambda self: self._model, doc="Its message.")

    @property
    def variables_path(self) -> str:
        """Where the files of its variables are, without what their names end with."""
        return os.path.join(self._folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME)

    def get_meta_graph_def_from_tags(self, tags: Any) -> Any:
        """The graph that has these tags and no others. RuntimeError where there is none."""
        wanted = {tags} if isinstance(tags, str) else set(tags)
        for graph in self._model.meta_graphs:
            if set(graph.meta_info_def.tags) == wanted:
                return graph
        there = [sorted(g.meta_info_def.tags) for g in self._model.meta_graphs]
        raise at_user_line(
            RuntimeError("MetaGraphDef associated with tags %s could not be found in SavedModel %s, which has %s" % (sorted(wanted), self._folder, there))
        )

    def load_graph(self, graph: Any, tags: Any, import_scope: Optional[str] = None, **saver_kwargs: Any) -> Tuple[Any, Any]:
        """Adds the graph with these tags to another one: (the saver of its variables or None, the elements that return_elements names)."""
        definition = self.get_meta_graph_def_from_tags(tags)
        with graph.as_default():
            return import_meta_graph_with_return_elements(definition, import_scope=import_scope, **saver_kwargs)

    def restore_variables(self, sess: Any, saver: Any, import_scope: Optional[str] = None) -> None:
        """Gives the variables of a session the values of the model."""
        with sess.graph.as_default():
            if saver is not None:
                saver.restore(sess, self.variables_path)
            elif all_saveable_objects(import_scope):
                raise at_user_line(ValueError("The variables of %s need a saver, and the graph has none" % self._folder))

    def run_init_ops(self, sess: Any, tags: Any, import_scope: Optional[str] = None) -> None:
        """Runs what the graph wants run first, with the files of the model."""
        definition = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            op = get_init_op(definition, import_scope)
            if op is not None:
                sess.run(op, get_asset_tensors(self._folder, definition, import_scope))

    def load(self, sess: Any, tags: Any, import_scope: Optional[str] = None, **saver_kwargs: Any) -> Any:
        """All of it; the MetaGraphDef."""
        saver, _ = self.load_graph(sess.graph, tags, import_scope, **saver_kwargs)
        self.restore_variables(sess, saver, import_scope)
        self.run_init_ops(sess, tags, import_scope)
        return self.get_meta_graph_def_from_tags(tags)


def load(sess: Any, tags: Any, export_dir: Any, import_scope: Optional[str] = None, **saver_kwargs: Any) -> Any:
    """Adds the graph with these tags to the session's, restores its variables and runs what it wants run first; its MetaGraphDef."""
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)
