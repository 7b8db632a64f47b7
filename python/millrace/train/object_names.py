# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of objects (checkpoint.py), read by the names that variables had in the program that wrote them."""

from __future__ import annotations

from typing import Any, Dict, List


import millrace._core as _core
from millrace.framework import errors
from millrace.framework.errors import at_user_line
from millrace.protos import definitions

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def _objects(reader: Any) -> Any:
    """What the objects of a checkpoint are and hold; None in one of a Saver."""
    if OBJECT_GRAPH not in reader.names():
        return None
    return definitions.TrackableObjectGraph.FromString(reader.read(OBJECT_GRAPH))


def object_metadata(save_path: Any) -> Any:
    """What the objects of a checkpoint are and hold, as a TrackableObjectGraph."""
    found = _objects(_core.CheckpointReader(str(save_path)))
    if found is None:
        raise at_user_line(ValueError('The specified checkpoint "%s" does not appear to be object-based: it lacks %s.' % (save_path, OBJECT_GRAPH)))
    return found


class ByNames:
    """A checkpoint of objects as if a Saver had written it; names of variables that were in no graph are left out."""

    def __init__(self, path: str) -> None:
        self._reader = _core.CheckpointReader(path)
        self.keys: Dict[str, str] = {}
        saved = _objects(self._reader)
        if saved is not None:
            self.keys = {a.full_name: a.checkpoint_key for node in saved.nodes for a in node.attributes if a.full_name}

    def names(self) -> List[str]:
        """Of all variables."""
        return list(self.keys)

    def describe(self, name: str) -> Any:
        """The number of its type, and its shape."""
        return self._reader.describe(self.keys[name])

    def read(self, name: str) -> Any:
        """Its value."""
        return self._reader.read(self.keys[name])


def names_in_checkpoint_of_objects(path: str) -> Dict[str, str]:
    """{variable's name: key in the checkpoint}; empty for a Saver's checkpoint, or where there is none."""
    try:
        return ByNames(path).keys
    except (errors.OpError, ValueError):
        return {}


def object_graph_key_mapping(checkpoint_path: Any) -> Dict[str, str]:
    """{variable's name: key in the checkpoint} of a checkpoint of objects."""
    found = ByNames(str(checkpoint_path)).keys
    if not found:
        raise at_user_line(errors.NotFoundError(None, None, "%s is no checkpoint of objects: it lacks %s" % (checkpoint_path, OBJECT_GRAPH)))
    return found
