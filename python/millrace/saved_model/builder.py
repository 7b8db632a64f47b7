# SPDX-License-Identifier: Apache-2.0
"""Writing SavedModels."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

import numpy as np

from millrace import file_io, gfile
from millrace.framework.tensor_util import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, get_default_graph
from millrace.protos import definitions
from millrace.saved_model import constants
from millrace.saved_model.signature_def_utils import op_signature_def
from millrace.train import meta_graph
from millrace.train.saveable import all_saveable_objects
from millrace.train.saver import Saver


class _SavedModelBuilder:
    """Makes a folder with one set of variables and one or more graphs. What runs first, and what trains, are signatures."""

    def __init__(self, export_dir: Any) -> None:
        self._folder = gfile.as_path(export_dir)
        self._model = definitions.SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._has_saved_variables = False
        self._assets: Dict[str, str] = {}  # {name of an asset in the folder: the file that it is a copy of}
        if gfile.IsDirectory(self._folder) and gfile.ListDirectory(self._folder):
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
        assets_list: Any = None,
        clear_devices: bool = False,
        init_op: Any = None,
        train_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the session's graph, and writes the values that its variables have there."""
        _check_signatures(signature_def_map)
        with sess.graph.as_default():
            saver = self._write_variables(sess, saver)
            self._add(sess.graph, tags, _with_operations(signature_def_map, init_op, train_op), assets_list, clear_devices, saver, strip_default_attrs)

    def add_meta_graph(
        self,
        tags: List[str],
        signature_def_map: Optional[Dict[str, Any]] = None,
        assets_list: Any = None,
        clear_devices: bool = False,
        init_op: Any = None,
        train_op: Any = None,
        saver: Any = None,
    ) -> None:
        """Adds the default graph, which shares the variables that have been written. Attributes that have their default values are left out."""
        self._check_variables()
        _check_signatures(signature_def_map)
        signatures = _with_operations(signature_def_map, init_op, train_op)
        self._add(get_default_graph(), tags, signatures, assets_list, clear_devices, saver or self._saver(), True)

    def save(self, as_text: bool = False) -> bytes:
        """Writes the graphs; the path of the file."""
        path = os.path.join(self._folder, constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB)
        with gfile.Open(path, "wb") as file:
            file.write(str(self._model).encode() if as_text else self._model.SerializeToString())
        return path.encode()

    @staticmethod
    def _saver() -> Saver:
        return Saver(all_saveable_objects(), sharded=True, allow_empty=True)

    def _check_variables(self) -> None:
        if not self._has_saved_variables:
            raise at_user_line(AssertionError("Graphs and variables must be added first: call add_meta_graph_and_variables()."))

    def _write_variables(self, sess: Any, saver: Any) -> Any:
        """Writes the values of a session; the saver that does."""
        if self._has_saved_variables:
            raise at_user_line(AssertionError("Graphs and variables has already been added to the model. Please invoke `add_meta_graph()` instead."))
        saver = saver or self._saver()
        folder = os.path.join(self._folder, constants.VARIABLES_DIRECTORY)
        gfile.MakeDirs(folder)
        saver.save(sess, os.path.join(folder, constants.VARIABLES_FILENAME), write_meta_graph=False, write_state=False)
        self._has_saved_variables = True
        return saver

    def _add(self, graph: Any, tags: Any, signatures: Any, assets: Any, clear_devices: bool, saver: Any, strip_default_attrs: bool) -> Any:
        made = meta_graph.create_meta_graph_def(graph=graph, saver_def=saver.saver_def, strip_default_attrs=strip_default_attrs)
        made.meta_info_def.tags.extend([tags] if isinstance(tags, str) else tags)
        for node in made.graph_def.node if clear_devices else ():
            node.device = ""
        for key, signature in (signatures or {}).items():
            made.signature_def[key].CopyFrom(signature)
        for tensor in assets or ():
            made.asset_file_def.add().CopyFrom(self._copy_asset(tensor))
        for asset in made.asset_file_def if self._assets_in_collection else ():
            made.collection_def[constants.ASSETS_KEY].any_list.value.add().Pack(asset)
        self._model.meta_graphs.add().CopyFrom(made)

    _assets_in_collection = False

    def _copy_asset(self, tensor: Any) -> Any:
        """Copies the file that a tensor names. Of several files of one name each has a name of its own in the folder, unless they are the same."""
        source = np.asarray(constant_value(tensor)).item()
        path = source.decode() if isinstance(source, bytes) else source
        folder = os.path.join(self._folder, constants.ASSETS_DIRECTORY)
        gfile.MakeDirs(folder)
        base = name = os.path.basename(path)
        number = 0
        while name in self._assets and self._assets[name] != path and not file_io.filecmp(path, self._assets[name]):
            number += 1
            name = "%s_%d" % (base, number)
        if name not in self._assets:
            gfile.Copy(path, os.path.join(folder, name))
            self._assets[name] = path
        asset = definitions.AssetFileDef(filename=name)
        asset.tensor_info.name = tensor.name
        return asset


class SavedModelBuilder(_SavedModelBuilder):
    """Makes a folder with one set of variables and one or more graphs. What runs first is in a collection, and so are the assets."""

    _assets_in_collection = True

    def add_meta_graph_and_variables(  # type: ignore[override]
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
        _check_signatures(signature_def_map)
        with sess.graph.as_default():
            _add_first_op(sess.graph, main_op, legacy_init_op)
            saver = self._write_variables(sess, saver)
            self._add(sess.graph, tags, signature_def_map, assets_collection, clear_devices, saver, strip_default_attrs)

    def add_meta_graph(  # type: ignore[override]
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
        self._check_variables()
        _check_signatures(signature_def_map)
        graph = get_default_graph()
        _add_first_op(graph, main_op, legacy_init_op)
        self._add(graph, tags, signature_def_map, assets_collection, clear_devices, saver or self._saver(), strip_default_attrs)


def _with_operations(signatures: Optional[Dict[str, Any]], init_op: Any, train_op: Any) -> Dict[str, Any]:
    """The signatures, with those of what runs first and of what trains."""
    made = dict(signatures or {})
    for key, op in ((constants.INIT_OP_SIGNATURE_KEY, init_op), (constants.TRAIN_OP_SIGNATURE_KEY, train_op)):
        if op is not None:
            made[key] = op_signature_def(op, key)
    return made


class _FirstOpsError(ValueError, AssertionError):
    """More than one operation that runs first: AssertionError up to TensorFlow 1.10, ValueError since."""


def _add_first_op(graph: Any, main_op: Any, legacy_init_op: Any) -> None:
    """Notes what runs first when the model has been loaded, in a graph that has no such operation yet."""
    key, op = (constants.LEGACY_INIT_OP_KEY, legacy_init_op) if main_op is None else (constants.MAIN_OP_KEY, main_op)
    if op is None:
        return
    if not isinstance(op, Operation):
        raise at_user_line(TypeError("%s needs to be an Operation: %r" % (key, op)))
    for there in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if graph.get_collection(there):
            raise at_user_line(_FirstOpsError("Graph already contains one or more elements under the collection %s." % there))
    graph.add_to_collection(key, op)


def _check_signatures(signatures: Any) -> None:
    for key in (constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_SIGNATURE_KEY):
        if key in (signatures or {}):
            raise at_user_line(KeyError('SignatureDef map key "%s" is reserved for an operation. Please use a different key.' % key))
    for signature in (signatures or {}).values():
        for infos in (signature.inputs, signature.outputs):
            for key in infos:
                info = infos[key]
                if not info.WhichOneof("encoding") or info.WhichOneof("encoding") == "name" and not info.name:
                    raise at_user_line(AssertionError("All TensorInfo protos used in the SignatureDefs must have the name field set: %s" % info))
                if not info.dtype:
                    raise at_user_line(AssertionError("All TensorInfo protos used in the SignatureDefs must have the dtype field set: %s" % info))
