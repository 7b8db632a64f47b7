# SPDX-License-Identifier: Apache-2.0
"""Reading SavedModels."""

from __future__ import annotations

import os
from typing import Any, List, Optional

from millrace import gfile
from millrace.framework.errors import at_user_line
from millrace.protos import definitions, text_format
from millrace.protos.message import DecodeError
from millrace.saved_model import constants
from millrace.train.saver import import_meta_graph


def maybe_saved_model_directory(export_dir: Any) -> bool:
    """Whether a folder holds a SavedModel."""
    names = (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT)
    return any(os.path.exists(os.path.join(gfile.as_path(export_dir), name)) for name in names)


def parse_saved_model(export_dir: Any) -> Any:
    """The SavedModel message of a folder, in binary or text form."""
    folder = gfile.as_path(export_dir)
    binary, text = (os.path.join(folder, name) for name in (constants.SAVED_MODEL_FILENAME_PB, constants.SAVED_MODEL_FILENAME_PBTXT))
    for path, read in ((binary, definitions.SavedModel.FromString), (text, lambda data: text_format.Parse(data.decode(), definitions.SavedModel()))):
        if os.path.exists(path):
            with open(path, "rb") as file:
                data = file.read()
            try:
                return read(data)
            except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
                raise at_user_line(OSError("Cannot parse file %s: %s." % (path, error))) from None
    raise at_user_line(
        OSError("SavedModel file does not exist at: %s/{%s|%s}" % (folder, constants.SAVED_MODEL_FILENAME_PBTXT, constants.SAVED_MODEL_FILENAME_PB))
    )


def _assets(graph: Any) -> List[Any]:
    if constants.ASSETS_KEY not in graph.collection_def:
        return list(graph.asset_file_def)
    found = [definitions.AssetFileDef() for _ in graph.collection_def[constants.ASSETS_KEY].any_list.value]
    for asset, entry in zip(found, graph.collection_def[constants.ASSETS_KEY].any_list.value):
        entry.Unpack(asset)
    return found


def load(sess: Any, tags: Any, export_dir: Any, import_scope: Optional[str] = None, **saver_kwargs: Any) -> Any:
    """Adds the graph with these tags to the session's, restores its variables and runs what it wants run first; its MetaGraphDef."""
    folder = gfile.as_path(export_dir)
    wanted = {tags} if isinstance(tags, str) else set(tags)
    graphs = parse_saved_model(folder).meta_graphs
    found = [g for g in graphs if set(g.meta_info_def.tags) == wanted]
    if not found:
        raise at_user_line(
            RuntimeError(
                "MetaGraphDef associated with tags %s could not be found in SavedModel %s, which has %s"
                % (sorted(wanted), folder, [sorted(g.meta_info_def.tags) for g in graphs])
            )
        )
    prefix = import_scope + "/" if import_scope else ""
    with sess.graph.as_default() as graph:
        first_op = {key: list(graph.get_collection(key)) for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY)}
        saver = import_meta_graph(found[0], import_scope=import_scope, **saver_kwargs)
        if saver is not None:
            saver.restore(sess, os.path.join(folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME))
        assets = {prefix + a.tensor_info.name: os.path.join(folder, constants.ASSETS_DIRECTORY, a.filename) for a in _assets(found[0])}
        for key, before in first_op.items():
            added = [op for op in graph.get_collection(key) if op not in before]
            if added:
                sess.run(added[0], assets)
                break
    return found[0]
