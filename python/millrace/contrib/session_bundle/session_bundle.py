# SPDX-License-Identifier: Apache-2.0
"""Reads session bundles."""

from __future__ import annotations

import os
from typing import Any, Optional, Tuple

from millrace import gfile
from millrace.contrib.session_bundle import constants
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_collection, reset_default_graph
from millrace.framework.session import Session
from millrace.protos import definitions, manifest
from millrace.train import meta_graph
from millrace.train.saver import import_meta_graph


def maybe_session_bundle_dir(export_dir: str) -> bool:
    """Whether a folder has the file that a session bundle has."""
    return bool(gfile.Exists(os.path.join(export_dir, constants.META_GRAPH_DEF_FILENAME)))


def _variables(export_dir: str) -> Optional[str]:
    """What of a bundle is restored; None where it has no variables."""
    if gfile.Exists(os.path.join(export_dir, constants.VARIABLES_INDEX_FILENAME_V2)):
        pattern, restored = constants.VARIABLES_FILENAME_PATTERN_V2, constants.VARIABLES_FILENAME
    elif gfile.Exists(os.path.join(export_dir, constants.VARIABLES_FILENAME)):
        pattern = restored = constants.VARIABLES_FILENAME
    else:
        pattern = restored = constants.VARIABLES_FILENAME_PATTERN
    return os.path.join(export_dir, restored) if gfile.Glob(os.path.join(export_dir, pattern)) else None


def _only(values: Any, what: str, meta: Any) -> Any:
    if len(values) != 1:
        raise at_user_line(RuntimeError("Expected exactly one serving %s in : %s" % (what, meta)))
    return values[0]


def load_session_bundle_from_path(export_dir: str, target: str = "", config: Any = None, meta_graph_def: Any = None) -> Tuple[Session, Any]:
    """(a session of a new default graph with the variables' values, the MetaGraphDef). Its operation for that has run, with the paths of files."""
    if not meta_graph_def:
        path = os.path.join(export_dir, constants.META_GRAPH_DEF_FILENAME)
        if not gfile.Exists(path):
            raise at_user_line(RuntimeError("Expected meta graph file missing %s" % path))
        meta_graph_def = meta_graph.read_meta_graph_file(path)
    collections = meta_graph_def.collection_def
    if constants.GRAPH_KEY in collections:
        served = definitions.GraphDef()
        _only(collections[constants.GRAPH_KEY].any_list.value, "GraphDef", meta_graph_def).Unpack(served)
        meta_graph_def.graph_def.CopyFrom(served)
    reset_default_graph()
    session = Session(target, graph=None, config=config)
    saver = import_meta_graph(meta_graph_def)
    variables = _variables(export_dir)
    if variables is not None and saver is not None:
        saver.restore(session, variables)
    paths = {}
    for packed in collections[constants.ASSETS_KEY].any_list.value if constants.ASSETS_KEY in collections else ():
        asset = manifest.AssetFile()
        packed.Unpack(asset)
        paths[asset.tensor_binding.tensor_name] = os.path.join(export_dir, constants.ASSETS_DIRECTORY, asset.filename)
    if constants.INIT_OP_KEY in collections:
        _only(collections[constants.INIT_OP_KEY].node_list.value, "init op", meta_graph_def)
        session.run(get_collection(constants.INIT_OP_KEY)[0], feed_dict=paths)
    return session, meta_graph_def
