# SPDX-License-Identifier: Apache-2.0
"""What checkpoints of objects (checkpoint.py) are made of: the graph of objects below a root, the values to save, and savers whose graph does not change."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.graph import control_dependencies, init_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.structures import TrackableReference
from millrace.train import checkpoint
from millrace.train.object_names import OBJECT_GRAPH
from millrace.train.saveable import SaveableObject, parts_saved_by, saveables_of


class ObjectGraphView:
    """The objects that a root leads to, as they are when it is asked."""

    def __init__(self, root: Any, saveables_cache: Any = None) -> None:
        """With a cache, a dictionary, what variables are saved by is made once."""
        self._root, self._cache = root, saveables_cache

    root = property(lambda self: self._root, doc="The root.")

    def list_objects(self) -> List[Any]:
        """The root and all objects that it leads to, nearest first."""
        return [found.value for found in checkpoint._Tree(self._root).objects]

    def list_dependencies(self, obj: Any) -> List[TrackableReference]:
        """What is directly in an object, with local names."""
        return [TrackableReference(name, child) for name, child in checkpoint.children_of(obj).items()]

    def serialize_object_graph(self) -> Tuple[List[SaveableObject], Any, Dict[Any, Any]]:
        """(what to save, by the names in a checkpoint; the graph of objects as a message; what is fed while it is saved)."""
        tree = checkpoint._Tree(self._root)
        found = []
        for key, variable in tree.variables().items():
            made = {} if self._cache is None else self._cache.setdefault(variable, {})
            if key not in made:
                made[key] = saveables_of({key: variable})
            for saveable in made[key]:
                saveable.full_name = variable.op.name
                found.append(saveable)
        with init_scope():
            found += [parts_saved_by(part.value)[part.attribute](key) for key, part in tree.parts().items()]
        feeds: Dict[Any, Any] = {}
        for saveable in found:
            feeds.update(saveable.feed_dict_additions() if hasattr(saveable, "feed_dict_additions") else {})
        return found, tree.as_proto(), feeds


class FrozenSaver:
    """Saves and restores, by operations, what a root led to when it was made."""

    def __init__(self, saveables: List[SaveableObject], graph_of_objects: Any) -> None:
        self._saveables, self._graph_of_objects = saveables, graph_of_objects

    def save(self, file_prefix: Any) -> Any:
        """A tensor of the path, which is there once the values have been written."""
        prefix = convert_to_tensor(file_prefix, dtypes.string)
        specs = [spec for saveable in self._saveables for spec in saveable.specs]
        values = [spec.tensor() if callable(spec.tensor) else spec.tensor for spec in specs] + [constant(self._graph_of_objects, dtypes.string)]
        names, slices = [spec.name for spec in specs] + [OBJECT_GRAPH], [spec.slice_spec for spec in specs] + [""]
        with control_dependencies([gen_ops.save_v2(prefix, names, slices, values)]):
            return array_ops.identity(prefix)

    def restore(self, file_prefix: Any) -> Any:
        """An operation that restores the values."""
        prefix = convert_to_tensor(file_prefix, dtypes.string)
        made = []
        for saveable in self._saveables:
            kinds = [dtypes.as_dtype(spec.dtype).base_dtype for spec in saveable.specs]
            read = gen_ops.restore_v2(prefix, [spec.name for spec in saveable.specs], [spec.slice_spec for spec in saveable.specs], kinds)
            made.append(saveable.restore(list(read) if isinstance(read, (list, tuple)) else [read], None))
        return control_flow_ops.group(*made)


def frozen_saver(root_trackable: Any) -> FrozenSaver:
    """A saver of what a root leads to now."""
    saveables, graph, _ = ObjectGraphView(root_trackable).serialize_object_graph()
    return FrozenSaver(saveables, graph.SerializeToString())


class _CheckpointOfView(checkpoint.CheckpointOf):
    def __init__(self, view: ObjectGraphView) -> None:
        super().__init__(view.root)
        self._view = view  # keeps the root


class TrackableSaver:
    """Saves and restores the objects of a view, by operations that are made anew where the objects change."""

    def __init__(self, graph_view: ObjectGraphView) -> None:
        self._checkpoint = _CheckpointOfView(graph_view)

    def save(self, file_prefix: Any, checkpoint_number: Optional[int] = None, session: Any = None) -> str:
        """Writes the values to a file of this name, and a number where one is given; its path."""
        return self._checkpoint.write(file_prefix if checkpoint_number is None else "%s-%d" % (file_prefix, checkpoint_number), session)

    def restore(self, save_path: Optional[str]) -> Any:
        """What restores a checkpoint; with None what initializes."""
        return self._checkpoint.restore(save_path)


def saver_of_root(root_checkpointable: Any) -> TrackableSaver:
    """TrackableSaver of a root, as 1.8 to 1.11 make one."""
    return TrackableSaver(ObjectGraphView(root_checkpointable))


def serialize_object_graph(root_checkpointable: Any, saveables_cache: Any = None) -> Tuple[List[SaveableObject], Any, Dict[Any, Any]]:
    """What ObjectGraphView.serialize_object_graph gives for a root."""
    return ObjectGraphView(root_checkpointable, saveables_cache).serialize_object_graph()
