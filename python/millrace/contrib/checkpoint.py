# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.checkpoint: what object-based checkpoints keep, and pictures of it. Attributes that hold lists and dicts are kept too."""

from __future__ import annotations

import io
from typing import Any, Dict, Set
from typing import List as _List

import numpy as np

from millrace.framework import not_provided
from millrace.framework.errors import at_user_line
from millrace.layers.base import Layer
from millrace.protos.definitions import TrackableObjectGraph as CheckpointableObjectGraph  # type: ignore[attr-defined]  # noqa: F401
from millrace.structures import List, Mapping, NoDependency  # noqa: F401
from millrace.train.checkpoint import is_trackable
from millrace.train.checkpoint_manager import CheckpointManager  # noqa: F401
from millrace.train.object_names import object_metadata
from millrace.train.saver import NewCheckpointReader
from millrace.train.tracking import AutoTrackable as Checkpointable  # noqa: F401
from millrace.train.tracking import capture_dependencies, list_objects  # noqa: F401
from millrace.train.tracking import PythonState as PythonStateWrapper
from millrace.train.tracking import Trackable
from millrace.train.tracking import Trackable as CheckpointableBase  # noqa: F401

_VALUE = "VARIABLE_VALUE"


class UniqueNameTracker(Trackable):
    """Keeps objects under the names that they are given, with a number where a name comes again."""

    def __init__(self) -> None:
        self._counts: Dict[str, int] = {}

    def track(self, trackable: Any, base_name: str) -> Any:
        """Keeps an object, which it answers."""
        if not is_trackable(trackable):
            raise at_user_line(ValueError("Expected a trackable value, got %s, which checkpoints cannot keep." % (trackable,)))
        count = self._counts.get(base_name, 0)
        while self._lookup_dependency(_numbered(base_name, count)) is not None:
            count += 1
        self._counts[base_name] = count + 1
        return self._track_trackable(trackable, _numbered(base_name, count))

    @property
    def _values(self) -> _List[Any]:
        return list(self._children().values())

    @property
    def layers(self) -> _List[Any]:
        """The layers that it keeps, in the order of coming."""
        return [value for value in self._values if isinstance(value, Layer)]

    @property
    def trainable_weights(self) -> _List[Any]:
        """Those of its layers."""
        return [weight for layer in self.layers for weight in layer.trainable_weights]


class _Array(PythonStateWrapper):
    """An array as a string of the file's form of NumPy."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def serialize(self) -> bytes:
        """The file."""
        file = io.BytesIO()
        np.save(file, self.array, allow_pickle=False)
        return file.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        """Reads it."""
        self.array = np.load(io.BytesIO(string_value), allow_pickle=False)


class NumpyState(Trackable):
    """Keeps the arrays that its attributes are set to. Those of a checkpoint are there as soon as it is restored, without an operation of the graph."""

    def __getattr__(self, name: str) -> Any:
        if name in self._dependencies():
            return self._dependencies()[name].array
        raise AttributeError("%s has no array %r" % (type(self).__name__, name))

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, (np.ndarray, np.generic)):
            message = "Assigned %s to the %s property of %s, which is not a NumPy array: it keeps arrays alone"
            raise at_user_line(NotImplementedError(message % (value, name, type(self).__name__)))
        if name in self._dependencies():
            self._dependencies()[name].array = value
        else:
            self._track_trackable(_Array(value), name)

    def _restored_child(self, name: str) -> Any:
        return self._track_trackable(_Array(np.array([])), name)


def _numbered(name: str, count: int) -> str:
    return "%s_%d" % (name, count) if count else name


def dot_graph_from_checkpoint(save_path: str) -> str:
    """The objects of a checkpoint for Graphviz: variables blue, slots orange, optimizers red."""
    reader = NewCheckpointReader(save_path)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    nodes = object_metadata(save_path).nodes
    slots: Set[int] = {slot.slot_variable_node_id for node in nodes for slot in node.slot_variables}
    lines = []
    for number, node in enumerate(nodes):
        look = 'shape=point label="" width=.25'
        if [attribute.name for attribute in node.attributes] == [_VALUE]:
            value = node.attributes[0]
            kind, colour = ("Slot variable", "orange") if number in slots else ("Variable", "blue")
            told = "%s %s shape=%s %s" % (kind, value.full_name, shapes[value.checkpoint_key], types[value.checkpoint_key].name)
            look += ' color=%s tooltip="%s"' % (colour, _quoted(told))
        elif node.slot_variables:
            look += ' color=red tooltip="Optimizer"'
        lines.append("N_%d [%s]" % (number, look))
        lines += ['N_%d -> N_%d [label="%s"]' % (number, child.node_id, _quoted(child.local_name)) for child in node.children]
        for slot in node.slot_variables:
            lines.append('N_%d -> N_%d [label="%s" style=dotted]' % (number, slot.slot_variable_node_id, _quoted(slot.slot_name)))
            lines.append("N_%d -> N_%d [style=dotted]" % (slot.original_variable_node_id, slot.slot_variable_node_id))
    return "digraph {\n%s\n}\n" % "\n".join(lines)


def _quoted(text: str) -> str:
    return text.replace('"', '\\"')


__getattr__ = not_provided.getter("contrib.checkpoint")
