# SPDX-License-Identifier: Apache-2.0
"""Writes session bundles: a folder for each step, with a graph, its variables, its files and its signatures."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace import gfile, tf_logging
from millrace.compat import as_bytes, as_text
from millrace.contrib.session_bundle import constants, gc
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, add_to_collection, get_default_graph
from millrace.protos import definitions, manifest
from millrace.protos.descriptors import registry
from millrace.train.global_step import global_step
from millrace.train.saver import Saver


def gfile_copy_callback(files_to_copy: Dict[Any, Any], export_dir_path: Any) -> None:
    """Copies files, {path: name}, into a folder."""
    gfile.MakeDirs(export_dir_path)
    for source, name in files_to_copy.items():
        target = os.path.join(as_text(export_dir_path), as_text(name))
        tf_logging.info("Copying asset %s to path %s.", source, target)
        gfile.Copy(source, target, overwrite=True)


def regression_signature(input_tensor: Any, output_tensor: Any) -> Any:
    """A Signature: numbers for serialized examples."""
    made = manifest.Signature()
    made.regression_signature.input.tensor_name = input_tensor.name
    made.regression_signature.output.tensor_name = output_tensor.name
    return made


def classification_signature(input_tensor: Any, classes_tensor: Any = None, scores_tensor: Any = None) -> Any:
    """A Signature: classes, their scores, or both, for serialized examples."""
    made = manifest.Signature()
    made.classification_signature.input.tensor_name = input_tensor.name
    if classes_tensor is not None:
        made.classification_signature.classes.tensor_name = classes_tensor.name
    if scores_tensor is not None:
        made.classification_signature.scores.tensor_name = scores_tensor.name
    return made


def generic_signature(name_tensor_map: Dict[str, Any]) -> Any:
    """A Signature: any tensors, by names."""
    made = manifest.Signature()
    made.generic_signature.SetInParent()
    for name, tensor in name_tensor_map.items():
        made.generic_signature.map[name].tensor_name = tensor.name
    return made


def _packed(message: Any) -> Any:
    made = registry["Any"]()
    made.Pack(message)
    return made


def _path_in(tensor: Any) -> bytes:
    """The path that a constant holds."""
    if not isinstance(tensor, Tensor):
        raise at_user_line(TypeError("tensor is not a Tensor"))
    if tensor.op.type != "Const":
        raise at_user_line(TypeError("Only constants tensor are supported"))
    if tensor.dtype != dtypes.string:
        raise at_user_line(TypeError("File paths should be string"))
    values = tensor.op.get_attr("value").string_val
    if len(values) != 1:
        raise at_user_line(TypeError("Only scalar tensors are supported"))
    if not values[0]:
        raise at_user_line(ValueError("invalid asset filepath tensor %s" % tensor))
    return bytes(values[0])


class Exporter:
    """Writes what a saver saves, with the default graph; init says once what else belongs to it."""

    def __init__(self, saver: Any) -> None:
        own = definitions.SaverDef.FromString(saver.as_saver_def().SerializeToString())
        own.ClearField("max_to_keep")  # which exports stay is the exporter's to say
        self._saver = Saver(saver_def=own)
        self._has_init = False
        self._assets_to_copy: Dict[Any, Any] = {}
        self._assets_callback: Optional[Callable[..., Any]] = None

    def init(
        self,
        graph_def: Any = None,
        init_op: Any = None,
        clear_devices: bool = False,
        default_graph_signature: Any = None,
        named_graph_signatures: Optional[Dict[str, Any]] = None,
        assets_collection: Any = None,
        assets_callback: Optional[Callable[..., Any]] = gfile_copy_callback,
    ) -> None:
        """Says what is served: a graph other than the default one, an operation to run when it was loaded, signatures, and files, whose paths
        are constants of the collection."""
        assets: List[Tuple[Any, Any]] = []
        for tensor in assets_collection or ():
            path = _path_in(tensor)
            assets.append((os.path.basename(path), tensor))
            self._assets_to_copy[path] = os.path.basename(path)
        if self._has_init:
            raise at_user_line(RuntimeError("init should be called only once"))
        self._has_init = True
        if graph_def or clear_devices:
            add_to_collection(constants.GRAPH_KEY, _packed(_served_graph(graph_def, clear_devices)))
        if init_op is not None:
            if not isinstance(init_op, Operation):
                raise at_user_line(TypeError("init_op needs to be an Operation: %s" % (init_op,)))
            add_to_collection(constants.INIT_OP_KEY, init_op)
        signatures = manifest.Signatures()
        if default_graph_signature:
            signatures.default_signature.CopyFrom(default_graph_signature)
        for name, signature in (named_graph_signatures or {}).items():
            signatures.named_signatures[name].CopyFrom(signature)
        add_to_collection(constants.SIGNATURES_KEY, _packed(signatures))
        for name, tensor in assets:
            asset = manifest.AssetFile(filename=as_text(name))
            asset.tensor_binding.tensor_name = tensor.name
            add_to_collection(constants.ASSETS_KEY, _packed(asset))
        self._assets_callback = assets_callback

    def export(self, export_dir_base: Any, global_step_tensor: Any, sess: Any = None, exports_to_keep: Optional[gc.Filter] = None) -> bytes:
        """Writes a folder named after the step, which appears when it is whole, and removes those that the filter does not keep."""
        if not self._has_init:
            raise at_user_line(RuntimeError("init must be called first"))
        base = as_text(export_dir_base).rstrip("/")
        folder = os.path.join(base, constants.VERSION_FORMAT_SPECIFIER % global_step(sess, global_step_tensor))
        if gfile.Exists(folder):
            raise at_user_line(RuntimeError("Overwriting exports can cause corruption and are not allowed. Duplicate export dir: %s" % folder))
        unfinished = folder + "-tmp"
        gfile.MakeDirs(unfinished)
        self._saver.save(sess, os.path.join(unfinished, constants.EXPORT_BASE_NAME), meta_graph_suffix=constants.EXPORT_SUFFIX_NAME)
        if self._assets_callback and self._assets_to_copy:
            assets = os.path.join(unfinished, constants.ASSETS_DIRECTORY)
            gfile.MakeDirs(assets)
            self._assets_callback(self._assets_to_copy, as_bytes(assets))
        gfile.Rename(unfinished, folder)
        if exports_to_keep:
            for path in gc.negation(exports_to_keep)(gc.get_paths(base, _version)):
                gfile.DeleteRecursively(path.path)
        return as_bytes(folder)


def _served_graph(graph_def: Any, clear_devices: bool) -> Any:
    made = definitions.GraphDef()
    made.CopyFrom(graph_def or get_default_graph().as_graph_def())
    if clear_devices:
        for node in made.node:
            node.device = ""
    return made


def _version(path: gc.Path) -> Optional[gc.Path]:
    match = re.match(r"^(\d{8})$", os.path.basename(path.path))
    return path._replace(export_version=int(match.group(1))) if match else None
