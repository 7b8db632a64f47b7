# SPDX-License-Identifier: Apache-2.0
"""Writing SavedModels."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

import numpy as np

from millrace import gfile
from millrace.framework.tensor_util import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation
from millrace.protos import definitions
from millrace.saved_model import constants
from millrace.train import meta_graph
from millrace.train.saveable import all_saveable_objects
from millrace.train.saver import Saver


class SavedModelBuilder:
    """Makes a folder with one set of variables and one or more graphs."""

    def __init__(self, export_dir: Any) -> None:
        self._folder = gfile.as_path(export_dir)
        self._model = definitions.SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._has_saved_variables = False
        if os.path.isdir(self._folder) and os.listdir(self._folder):
            raise at_user_line(
                AssertionError(
                    "Export directory %s already exists, and isn't empty. Please choose a different export directory, or "
                    "delete all the contents of the specified directory." % self._folder
                )
            )
        gfile.MakeDirs(self._folder)

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: List[str],
        signature_def_map: Optional[Dict[str, Any]] = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the session's graph, and writes the values that its variables have there."""
        if self._has_saved_variables:
            raise at_user_line(AssertionError("Graphs and variables has already been added to the model. Please invoke `add_meta_graph()` instead."))
        _check_signatures(signature_def_map)
        with sess.graph.as_default():
            saver = saver or self._saver()
            folder = os.path.join(self._folder, constants.VARIABLES_DIRECTORY)
            gfile.MakeDirs(folder)
            saver.save(sess, os.path.join(folder, constants.VARIABLES_FILENAME), write_meta_graph=False, write_state=False)
            self._add(sess.graph, tags, signature_def_map, assets_collection, main_op, legacy_init_op, clear_devices, saver, strip_default_attrs)
        self._has_saved_variables = True

    def add_meta_graph(
        self,
        tags: List[str],
        signature_def_map: Optional[Dict[str, Any]] = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the default graph, which shares the variables that have been written."""
        from millrace.framework.graph import get_default_graph

        if not self._has_saved_variables:
            raise at_user_line(AssertionError("Graphs and variables must be added first: call add_meta_graph_and_variables()."))
        _check_signatures(signature_def_map)
        self._add(
            get_default_graph(), tags, signature_def_map, assets_collection, main_op, legacy_init_op, clear_devices, saver or self._saver(), strip_default_attrs
        )

    def save(self, as_text: bool = False) -> bytes:
        """Writes the graphs; the path of the file."""
        path = os.path.join(self._folder, constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB)
        with open(path, "wb") as file:
            file.write(str(self._model).encode() if as_text else self._model.SerializeToString())
        return path.encode()

    @staticmethod
    def _saver() -> Saver:
        return Saver(all_saveable_objects(), sharded=True, allow_empty=True)

    def _add(
        self, graph: Any, tags: Any, signatures: Any, assets: Any, main_op: Any, legacy_init_op: Any, clear_devices: bool, saver: Any, strip_default_attrs: bool
    ) -> None:
        key, op = (constants.LEGACY_INIT_OP_KEY, legacy_init_op) if main_op is None else (constants.MAIN_OP_KEY, main_op)
        if op is not None:
            _add_first_op(graph, key, op)
        made = meta_graph.create_meta_graph_def(graph=graph, saver_def=saver.saver_def, strip_default_attrs=strip_default_attrs)
        made.meta_info_def.tags.extend([tags] if isinstance(tags, str) else tags)
        for node in made.graph_def.node if clear_devices else ():
            node.device = ""
        for key, signature in (signatures or {}).items():
            made.signature_def[key].CopyFrom(signature)
        self._copy_assets(made, assets)
        self._model.meta_graphs.add().CopyFrom(made)

    def _copy_assets(self, made: Any, assets: Any) -> None:
        for tensor in assets or ():
            source = np.asarray(constant_value(tensor)).item()
            folder = os.path.join(self._folder, constants.ASSETS_DIRECTORY)
            gfile.MakeDirs(folder)
            path = source.decode() if isinstance(source, bytes) else source
            target = os.path.join(folder, os.path.basename(path))
            if not gfile.Exists(target):  # of two assets of one name the first stays, as in TensorFlow
                gfile.Copy(path, target)
            asset = made.asset_file_def.add()
            asset.filename = os.path.basename(path)
            asset.tensor_info.name = tensor.name
            entry = made.collection_def[constants.ASSETS_KEY].any_list.value.add()
            entry.Pack(asset)


def _add_first_op(graph: Any, key: str, op: Any) -> None:
    """Notes what runs first when the model has been loaded, in a graph that has no such operation yet."""
    if not isinstance(op, Operation):
        raise at_user_line(TypeError("%s needs to be an Operation: %r" % (key, op)))
    if graph.get_collection(key):
        raise at_user_line(AssertionError("graph already contains one or more elements under the collection %s." % key))
    graph.add_to_collection(key, op)


def _check_signatures(signatures: Any) -> None:
    for signature in (signatures or {}).values():
        for infos in (signature.inputs, signature.outputs):
            for key in infos:
                info = infos[key]
                if not info.WhichOneof("encoding") or info.WhichOneof("encoding") == "name" and not info.name:
                    raise at_user_line(AssertionError("All TensorInfo protos used in the SignatureDefs must have the name field set: %s" % info))
                if not info.dtype:
                    raise at_user_line(AssertionError("All TensorInfo protos used in the SignatureDefs must have the dtype field set: %s" % info))
