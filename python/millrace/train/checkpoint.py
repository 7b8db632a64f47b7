# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of objects: values are named by the way from a root to the object that has them, and the file holds that graph of objects,
so that programs which make variables in another order, or under other names, read it. The files are TensorFlow's, either way."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from millrace import gfile
from millrace.framework import dtypes, errors
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, get_default_graph, init_scope
from millrace.framework.default_session import get_default_session
from millrace.keras import backend
from millrace.layers.base import Layer
from millrace.module import Module
from millrace.ops import array_ops, control_flow_ops
from millrace.ops.template import Template
from millrace.ops.variables import PartitionedVariable, Variable, variables_initializer
from millrace.protos import definitions
from millrace.structures import NotTrackable, TrackableDataStructure, TrackedByName
from millrace.train.checkpoint_management import checkpoint_exists, update_checkpoint_state
from millrace.train.object_names import OBJECT_GRAPH
from millrace.train.optimizer import Optimizer
from millrace.train.saveable import SaveableObject, SaveSpec, parts_saved_by
from millrace.train.saver import CheckpointReader, Saver

_VALUE = "VARIABLE_VALUE"
_restores = itertools.count()


# ---- objects and what is in them ----


def is_trackable(value: Any) -> bool:
    """Whether an object-based checkpoint can keep a value."""
    if isinstance(value, (TrackedByName, Template)):
        return True
    if isinstance(value, (list, tuple)):
        return all(is_trackable(v) for v in value) and bool(value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and is_trackable(v) for k, v in value.items()) and bool(value)
    return isinstance(value, (Variable, Checkpoint, Optimizer, Layer, Module)) or _is_of_keras(value) or bool(parts_saved_by(value))


def _is_of_keras(value: Any) -> bool:
    """Whether it is an optimizer of tf.keras."""
    module = sys.modules.get("millrace.keras.optimizers")
    return module is not None and isinstance(value, module.Optimizer)


_OWN = ("_trainable_weights", "_non_trainable_weights", "_named_weights", "_save_counter")  # attributes of the library that hold what others name


def _is_kept(name: str, value: Any) -> bool:
    """Whether an attribute is kept: private ones too, but for what is the library's own, as lists of layers are."""
    if name in _OWN or name.startswith("_self_") or not is_trackable(value):
        return False
    held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return not name.startswith("_") or not any(isinstance(v, Layer) for v in held)


def _attributes(value: Any) -> Dict[str, Any]:
    untracked = vars(value).get("_self_untracked", ())
    return {name: v for name, v in vars(value).items() if name not in untracked and _is_kept(name, v)}


def children_of(value: Any) -> Dict[str, Any]:
    """What is directly in an object, by local names."""
    if isinstance(value, Variable):
        return {}
    if isinstance(value, NotTrackable):
        raise at_user_line(NotImplementedError("Checkpoints cannot keep %s, a %s, and it is set on an object that is saved" % (value, type(value).__name__)))
    if isinstance(value, (TrackedByName, Template)):
        return value._children()
    if parts_saved_by(value):
        return {}
    if isinstance(value, (list, tuple)):
        return {str(i): v for i, v in enumerate(value)}
    if isinstance(value, dict):
        return dict(value)
    if _is_of_keras(value):
        return value.numbers()
    if isinstance(value, Optimizer):
        return value._non_slots_of(get_default_graph())
    found: Dict[str, Any] = {}
    layers = getattr(value, "layers", None)
    if isinstance(value, Layer) and isinstance(layers, list) and getattr(value, "_has_config", True):  # others are known by their attributes
        with_weights = [layer for layer in layers if layer.weights]
        found.update(("layer_with_weights-%d" % i, layer) for i, layer in enumerate(with_weights))
        found.update(("layer-%d" % i, layer) for i, layer in enumerate(layers))
    found.update(getattr(value, "_named_weights", {}))
    named = value._children_by_name() if hasattr(value, "_children_by_name") else {}
    known = set(map(id, named.values()))
    found.update(named)
    found.update((name, v) for name, v in _attributes(value).items() if name != "layers" and id(v) not in known)
    return found


def slots_of(optimizer: Any, variables: Optional[List[Variable]]) -> Iterator[Tuple[Variable, str, Variable]]:
    """(variable, slot's name, slot) of those that an optimizer has for some variables, or for all."""
    if variables is None:
        graph = get_default_graph()
        variables = [v for v in graph.get_collection("variables") if isinstance(v, Variable)]
    for name in optimizer.get_slot_names():
        for v in variables:
            slot = optimizer._slots.get(v, {}).get(name) if _is_of_keras(optimizer) else optimizer.get_slot(v, name)
            if slot is not None:
                yield v, name, slot


class _Object(NamedTuple):
    value: Any
    path: Tuple[str, ...]
    children: Dict[str, int]


class _Part(NamedTuple):
    """What an object is saved as, beside the objects in it."""

    value: Any
    attribute: str

    @property
    def identity(self) -> Tuple[int, str]:
        """What tells it apart."""
        return id(self.value), self.attribute


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _key(path: Tuple[str, ...], attribute: str = _VALUE) -> str:
    return "%s/.ATTRIBUTES/%s" % ("/".join(path), _escaped(attribute))


class _Tree:
    """All objects below a root, nearest first, slots of optimizers last, as they are now."""

    def __init__(self, root: Any) -> None:
        self.objects: List[_Object] = []
        self.slots: List[Tuple[int, int, str, int]] = []  # numbers of the optimizer and the variable, the slot's name and number
        self._numbers: Dict[int, int] = {}
        self._held: List[Any] = []  # keeps what ids are of alive
        waiting: Deque[Tuple[Any, Tuple[str, ...]]] = deque([(root, ())])
        self._number(root, ())
        while waiting:
            value, path = waiting.popleft()
            mine = self.objects[self._numbers[id(value)]]
            for name, child in children_of(value).items():
                if id(child) not in self._numbers:
                    self._number(child, (*path, _escaped(name)))
                    waiting.append((child, (*path, _escaped(name))))
                mine.children[name] = self._numbers[id(child)]
        self._add_slots()

    def _number(self, value: Any, path: Tuple[str, ...]) -> int:
        self._numbers[id(value)] = len(self.objects)
        self._held.append(value)
        self.objects.append(_Object(value, path, {}))
        return len(self.objects) - 1

    def _add_slots(self) -> None:
        variables = [o.value for o in self.objects if isinstance(o.value, Variable)]
        for number, made in enumerate(list(self.objects)):
            if not (isinstance(made.value, Optimizer) or _is_of_keras(made.value)) or not made.value._has_slots:
                continue
            for v, name, slot in slots_of(made.value, variables):
                of = self._numbers[id(v)]
                path = (*self.objects[of].path, ".OPTIMIZER_SLOT", *made.path, _escaped(name))
                self.slots.append((number, of, name, self._number(slot, path)))

    def variables(self) -> Dict[str, Variable]:
        """All variables by their names in a checkpoint."""
        return {_key(o.path): o.value for o in self.objects if isinstance(o.value, Variable)}

    def parts(self) -> Dict[str, "_Part"]:
        """What else is saved, by its names in a checkpoint."""
        return {_key(o.path, name): _Part(o.value, name) for o in self.objects for name in parts_saved_by(o.value)}

    def as_proto(self) -> Any:
        """The message that a checkpoint holds."""
        made = definitions.TrackableObjectGraph()
        for o in self.objects:
            node = made.nodes.add()
            for name, number in o.children.items():
                node.children.add(node_id=number, local_name=name)
            if isinstance(o.value, Variable):
                node.attributes.add(name=_VALUE, full_name=o.value.op.name, checkpoint_key=_key(o.path))
            for name in parts_saved_by(o.value):
                node.attributes.add(name=name, checkpoint_key=_key(o.path, name))
        for optimizer, of, name, number in self.slots:
            made.nodes[optimizer].slot_variables.add(original_variable_node_id=of, slot_name=name, slot_variable_node_id=number)
        return made


def _must_be_met(o: _Object) -> bool:
    """Whether an object must be one of the checkpoint's, though it has no values of its own. Lists and dictionaries of nothing that is kept need not be."""
    return isinstance(o.value, TrackedByName) and not (isinstance(o.value, TrackableDataStructure) and not o.children)


class _Matched(NamedTuple):
    variables: Dict[str, Variable]  # by key in the checkpoint
    parts: Dict[str, _Part]  # by key in the checkpoint
    not_found: List[str]  # what the program has and the checkpoint lacks: values, and objects that are none of its own
    unused: List[str]  # keys of the checkpoint that the program lacks


def _match(tree: _Tree, saved: Any) -> _Matched:
    """What of a checkpoint belongs to which variable: walks both graphs from their roots by local names. One object of the program may be several of the
    checkpoint; one of the checkpoint is the first that it meets."""
    numbers, waiting = {0: 0}, deque([0])  # by the checkpoint's numbers: ours
    while waiting:
        theirs = waiting.popleft()
        own = tree.objects[numbers[theirs]]
        mine = own.children
        for child in saved.nodes[theirs].children:
            if child.local_name not in mine and hasattr(type(own.value), "_restored_child"):  # which makes what a checkpoint has
                mine[child.local_name] = tree._number(own.value._restored_child(child.local_name), (*own.path, _escaped(child.local_name)))
            if child.local_name in mine and child.node_id not in numbers:
                numbers[child.node_id] = mine[child.local_name]
                waiting.append(child.node_id)
    slots = {(optimizer, of, name): number for optimizer, of, name, number in tree.slots}
    for theirs, mine_number in list(numbers.items()):
        for slot in saved.nodes[theirs].slot_variables:
            ours = slots.get((mine_number, numbers.get(slot.original_variable_node_id, -1), slot.slot_name))
            if ours is not None:
                numbers[slot.slot_variable_node_id] = ours
    found: Dict[str, Variable] = {}
    parts: Dict[str, _Part] = {}
    unused = []
    for theirs, node in enumerate(saved.nodes):
        for attribute in node.attributes:
            value = tree.objects[numbers[theirs]].value if theirs in numbers else None
            if isinstance(value, Variable) and attribute.name == _VALUE:
                found[attribute.checkpoint_key] = value
            elif attribute.name in parts_saved_by(value):
                parts[attribute.checkpoint_key] = _Part(value, attribute.name)
            elif not attribute.optional_restore:
                unused.append(attribute.checkpoint_key)
    there, known = {id(v) for v in found.values()}, {part.identity for part in parts.values()}
    not_found = [k for k, v in tree.variables().items() if id(v) not in there] + [k for k, p in tree.parts().items() if p.identity not in known]
    met = set(numbers.values())
    not_found += ["/".join(o.path) for i, o in enumerate(tree.objects) if i not in met and _must_be_met(o)]
    return _Matched(found, parts, not_found, unused)


# ---- reading and writing ----


def _session(given: Any) -> Any:
    """A session: the one given, the default one, or else that of tf.keras, as in TensorFlow."""
    return given or get_default_session() or backend.get_session()


class _Bytes(SaveableObject):
    """The graph of objects, which is fed."""

    def __init__(self, value: Tensor) -> None:
        super().__init__(value, [SaveSpec(value, "", OBJECT_GRAPH, dtype=dtypes.string)], OBJECT_GRAPH)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        """Nothing: objects are not made of it."""
        return control_flow_ops.no_op()


def _one_value(value: Any) -> Any:
    """A scalar of Python. NumPy would take zeros off the end of bytes."""
    return value if isinstance(value, bytes) else np.asarray(value).item()


class _Status:
    """What restore gives: checks of what was found, and the operations that restore.

    Variables that are made after `restore`, and before this runs, take part."""

    def __init__(self, checkpoint: "Checkpoint", path: str, saved: Any) -> None:
        self._checkpoint, self._path, self._saved = checkpoint, path, saved
        self._counter = checkpoint.save_counter  # takes part
        self._number = next(_restores)
        self._handed_over: Set[Tuple[int, str]] = set()
        self._met: Dict[int, Tuple[Variable, bool]] = {}  # by their ids: variables, and whether this restores them

    def _matched(self) -> _Matched:
        return _match(_Tree(self._checkpoint), self._saved)

    def _restored(self) -> Dict[str, Variable]:
        """The variables that this restores by their keys: those that no later `restore` had met when this one did."""
        found = self._matched().variables
        for v in found.values():
            if id(v) not in self._met:
                newest = getattr(v, "_restore_met", -1)
                self._met[id(v)] = v, newest <= self._number
                v._restore_met = max(newest, self._number)  # type: ignore[attr-defined]
        return {key: v for key, v in found.items() if self._met[id(v)][1]}

    def assert_consumed(self) -> "_Status":
        """AssertionError unless the checkpoint's values and the program's variables are the same ones."""
        made = self._matched()
        self._restored()
        if made.unused:
            raise at_user_line(AssertionError("Unresolved object in checkpoint %s: %s" % (self._path, made.unused[0])))
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> "_Status":
        """AssertionError where a variable of the program is not in the checkpoint."""
        made = self._matched()
        self._restored()
        missing = [key for key in made.not_found if key != _key(("save_counter",))]  # which files of `write` may lack
        if missing:
            raise at_user_line(AssertionError("Object not assigned a value from checkpoint %s: %s" % (self._path, missing[0])))
        return self

    def assert_nontrivial_match(self) -> "_Status":
        """AssertionError where nothing but the number of savings is in both."""
        made = self._matched()
        if not made.parts and not [v for v in made.variables.values() if v is not self._counter]:
            raise at_user_line(AssertionError("Nothing except the root object matched a checkpointed value in %s." % self._path))
        return self

    def expect_partial(self) -> "_Status":
        """Says that parts may be left out, which is not warned of here."""
        return self

    def _restore_python(self) -> "_Status":
        """Hands over what no operation restores, once."""
        for key, part in self._matched().parts.items():
            saveable = self._checkpoint._saveable(part, key)
            if hasattr(saveable, "python_restore") and part.identity not in self._handed_over:
                self._handed_over.add(part.identity)
                saveable.python_restore([_one_value(CheckpointReader(self._path).get_tensor(key))])
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Gives the variables their values."""
        made = self._restore_python()._matched()
        parts = {key: part for key, part in made.parts.items() if part.identity not in self._handed_over}
        self._restore(self._restored(), parts, session)

    def restore_new(self, session: Any = None) -> None:
        """Gives values to the variables that were made since this was last done."""
        self._restore({key: v for key, v in self._restored().items() if getattr(v, "_restored_by", -1) < self._number}, {}, session)

    def _restore(self, variables: Dict[str, Variable], parts: Dict[str, _Part], session: Any) -> None:
        if variables or parts:
            self._checkpoint._saver(variables, parts, False).restore(_session(session), self._path)
        for variable in variables.values():
            variable._restored_by = self._number  # type: ignore[attr-defined]

    def initialize_or_restore(self, session: Any = None) -> None:
        """Gives the variables their values, and first ones to those that the checkpoint lacks, unless a later `restore` has given them theirs."""
        session = _session(session)
        there = {id(v) for v in self._matched().variables.values()}
        self._initialize(session, lambda v: id(v) not in there)
        self.run_restore_ops(session)

    def _initialize(self, session: Any, wanted: Callable[[Variable], bool]) -> None:
        variables = [v for v in _Tree(self._checkpoint).variables().values() if wanted(v) and getattr(v, "_restored_by", -1) < self._number]
        session.run(variables_initializer(variables))


class _NameBased(_Status):
    """A checkpoint of a Saver: variables take the values of their names."""

    def _matched(self) -> _Matched:
        shapes = CheckpointReader(self._path).get_variable_to_shape_map()
        variables = [v for v in _Tree(self._checkpoint).variables().values() if v is not self._counter]
        found = {v.op.name: v for v in variables if v.op.name in shapes}
        return _Matched(found, {}, [v.op.name for v in variables if v.op.name not in found], [k for k in shapes if k not in found])


class _Initialization(_Status):
    """No checkpoint."""

    def _matched(self) -> _Matched:
        raise at_user_line(AssertionError("No checkpoint specified (save_path=None); nothing is being restored."))

    def run_restore_ops(self, session: Any = None) -> None:
        """AssertionError: there is nothing to restore."""
        self._matched()

    def initialize_or_restore(self, session: Any = None) -> None:
        """Gives the variables their first values."""
        self._initialize(_session(session), lambda v: True)


class Checkpoint:
    """Objects that are saved together: variables, optimizers, layers, models, lists and dicts of them, and other Checkpoints.

    They are given by name, or set as attributes later. Of optimizers of
    tf.keras it keeps rate, decay, steps and slots, once the first training step has been built."""

    _is_trackable = True

    def __init__(self, **kwargs: Any) -> None:
        self._save_counter: Optional[Variable] = None
        self._savers: Dict[Any, Any] = {}
        self._saveables: Dict[Any, Any] = {}
        for name, value in sorted(kwargs.items()):
            if isinstance(value, PartitionedVariable):
                raise at_user_line(NotImplementedError("Checkpoint of the partitioned variable %s is not provided: use tf.train.Saver." % value.name))
            if not is_trackable(value):
                raise at_user_line(
                    ValueError(
                        "`Checkpoint` was expecting a trackable object (a variable, optimizer, layer, list, dict or Checkpoint), "
                        "got %s. If you believe this object should be trackable, use tf.train.Saver." % (value,)
                    )
                )
            setattr(self, name, value)

    @property
    def save_counter(self) -> Variable:
        """How often save was called."""
        if self._save_counter is None:
            with init_scope():
                self._save_counter = Variable(np.int64(0), trainable=False, name="save_counter", collections=[])
                self.__dict__["save_counter"] = self._save_counter
        return self._save_counter

    def _saveable(self, part: _Part, key: str) -> SaveableObject:
        """What a part is saved as under a name; made once."""
        if (part.identity, key) not in self._saveables:
            with init_scope():
                self._saveables[part.identity, key] = part.value, parts_saved_by(part.value)[part.attribute](key)
        return self._saveables[part.identity, key][1]

    def _saver(self, variables: Dict[str, Variable], parts: Dict[str, _Part], writes: bool) -> Any:
        """The Saver of some variables and parts; one that writes has the graph of objects too. Each is made once."""
        key = (writes, frozenset((k, id(v)) for k, v in variables.items()), frozenset((k, p.identity) for k, p in parts.items()))
        if key not in self._savers:
            with init_scope():
                named: Dict[str, Any] = {**variables, **{k: self._saveable(p, k) for k, p in parts.items()}}
                graph_of_objects = None
                if writes:
                    graph_of_objects = array_ops.placeholder_with_default(constant(b"", dtypes.string), [], name="object_graph")
                    named[OBJECT_GRAPH] = _Bytes(graph_of_objects)
                self._savers[key] = Saver(named, max_to_keep=None), graph_of_objects
        return self._savers[key] if writes else self._savers[key][0]

    def write(self, file_prefix: Any, session: Any = None) -> str:
        """Writes the values to a file of this name; its path."""
        session, tree = _session(session), _Tree(self)
        parts = tree.parts()
        saver, graph_of_objects = self._saver(tree.variables(), parts, True)
        folder = gfile.folder_of(gfile.as_path(file_prefix))
        if folder:
            gfile.MakeDirs(folder)
        feeds = {saver.saver_def.filename_tensor_name: gfile.as_path(file_prefix), graph_of_objects: tree.as_proto().SerializeToString()}
        for key, part in parts.items():
            saveable = self._saveable(part, key)
            feeds.update(saveable.feed_dict_additions() if hasattr(saveable, "feed_dict_additions") else {})
        return session.run(saver.saver_def.save_tensor_name, feeds).decode()

    def save(self, file_prefix: Any, session: Any = None) -> str:
        """Counts, writes the values to a file of this name and the count, and notes it as the newest of its folder."""
        session = _session(session)
        path = self.write("%s-%d" % (gfile.as_path(file_prefix), self._count(session)), session)
        update_checkpoint_state(gfile.folder_of(path), path, [path], save_relative_paths=True)
        return path

    def _count(self, session: Any) -> int:
        if self._save_counter is None:
            session.run(self.save_counter.initializer)
        if not hasattr(self, "_counted"):
            with init_scope():
                self._counted = self.save_counter.assign_add(np.int64(1))
        return int(session.run(self._counted))

    def restore(self, save_path: Optional[str]) -> _Status:
        """What restores a checkpoint of objects, or one of a Saver, by names. With None: what initializes."""
        if save_path is None:
            return _Initialization(self, "", None)
        path = gfile.as_path(save_path)
        if not checkpoint_exists(path):
            raise at_user_line(errors.NotFoundError(None, None, "%s: there is no such checkpoint" % path))
        reader = CheckpointReader(path)
        if not reader.has_tensor(OBJECT_GRAPH):
            return _NameBased(self, path, None)
        saved = definitions.TrackableObjectGraph.FromString(_one_value(reader.get_tensor(OBJECT_GRAPH)))
        _check(path, saved)
        status = _Status(self, path, saved)._restore_python()
        status._restored()  # what there is already
        return status

    read = restore


class CheckpointOf(Checkpoint, TrackedByName):
    """A checkpoint whose root is an object itself, without a count: what tf.keras writes weights of models to."""

    def __init__(self, root: Any) -> None:
        super().__init__()
        self._root = weakref.ref(root)

    def _children(self) -> Dict[str, Any]:
        return children_of(self._root())


def variables_by_key(checkpoint: Checkpoint) -> Dict[str, Variable]:
    """The variables of a checkpoint by the names that files have for them."""
    return _Tree(checkpoint).variables()


def _check(path: str, saved: Any) -> None:
    """ValueError where a graph of objects names one that it does not have."""
    count = len(saved.nodes)
    numbers = [c.node_id for n in saved.nodes for c in n.children]
    numbers += [i for n in saved.nodes for s in n.slot_variables for i in (s.original_variable_node_id, s.slot_variable_node_id)]
    if not count or any(not 0 <= i < count for i in numbers):
        raise at_user_line(ValueError("%s: the graph of objects is broken: it has %d objects, and names %s" % (path, count, max(numbers, default=0))))
