# SPDX-License-Identifier: Apache-2.0
"""Lists and dictionaries whose contents checkpoints of objects keep: what attributes of modules and models become, so that a change is seen that a
checkpoint cannot follow."""

from __future__ import annotations

import collections
import collections.abc
import copy
import sys
from typing import Any, Dict, Iterable, Iterator, Sequence, Set, SupportsIndex
from typing import List as _List
from typing import Mapping as MappingOf

from millrace.framework.errors import at_user_line
from millrace.ops.variables import Variable

TrackableReference = collections.namedtuple("TrackableReference", ["name", "ref"])


class NoDependency:
    """Around a value that is set as an attribute: checkpoints do not keep it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Container:
    """The base of lists and dictionaries of one's own: `_values` are what they hold, in order."""

    _values: Any = ()


class NotTrackable:
    """The base of objects that checkpoints cannot keep: one that leads to such an object is an error."""


class TrackedByName:
    """The base of objects that tell themselves what they have."""

    _is_trackable = True

    def _children(self) -> Dict[str, Any]:
        raise NotImplementedError("%s._children" % type(self).__name__)

    def _maybe_initialize_trackable(self) -> None:
        """Nothing: what an object has is found out when a checkpoint asks for it."""

    @property
    def _checkpoint_dependencies(self) -> _List[TrackableReference]:
        return [TrackableReference(name, value) for name, value in self._children().items()]

    def _lookup_dependency(self, name: str) -> Any:
        return self._children().get(name)


def is_object(value: Any) -> bool:
    """Whether a value is an object that a checkpoint can keep, other than a plain list or dictionary."""
    kind: Any = type(value)
    saved = hasattr(kind, "_gather_saveables_for_checkpoint") or hasattr(value, "table_ref")
    return isinstance(value, Variable) or getattr(kind, "_is_trackable", False) or saved


def wrapped(value: Any) -> Any:
    """A list or dictionary as one of this module, around the same contents; what NoDependency holds; everything else as it is."""
    if isinstance(value, NoDependency):
        return value.value
    if type(value) is list:
        return ListWrapper(value)
    return DictWrapper(value) if type(value) is dict else value


def has_weights(value: Any) -> bool:
    """Whether it says which variables it has, as layers and templates do."""
    return hasattr(type(value), "trainable_weights") and hasattr(type(value), "non_trainable_weights")


class TrackableDataStructure(TrackedByName, Container):
    """The base of these: variables, updates and losses of the layers in them."""

    def __init__(self) -> None:
        self.trainable = True
        self._untracked: Set[Any] = set()  # numbers or keys of what NoDependency held

    def _taken(self, value: Any, key: Any) -> Any:
        """A value as it is stored under a number or key."""
        (self._untracked.add if isinstance(value, NoDependency) else self._untracked.discard)(key)
        return wrapped(value)

    @property
    def _layers(self) -> _List[Any]:
        return [value for value in self._values if has_weights(value)]

    @property
    def layers(self) -> _List[Any]:
        """The layers in it and in containers in it, each once."""
        layers = [value for value in self._layers if hasattr(type(value), "losses")]  # templates are none
        found = [layer for value in layers for layer in (value.layers if isinstance(value, TrackableDataStructure) else [value])]
        return list({id(layer): layer for layer in found}.values())

    def _own(self, trainable: bool) -> _List[Any]:
        return [v for v in self._values if isinstance(v, Variable) and v.trainable == trainable]

    def _of_layers(self, name: str) -> _List[Any]:
        return [v for layer in self._layers for v in getattr(layer, name)]

    @property
    def trainable_weights(self) -> _List[Any]:
        """The variables that are trained."""
        return self._of_layers("trainable_weights") + self._own(True) if self.trainable else []

    @property
    def non_trainable_weights(self) -> _List[Any]:
        """The other variables."""
        others = self._of_layers("non_trainable_weights") + self._own(False)
        return others if self.trainable else self._of_layers("trainable_weights") + self._own(True) + others

    @property
    def weights(self) -> _List[Any]:
        """All variables, the trained ones first."""
        return self.trainable_weights + self.non_trainable_weights

    trainable_variables = property(lambda self: self.trainable_weights, doc="The variables that are trained.")
    non_trainable_variables = property(lambda self: self.non_trainable_weights, doc="The other variables.")
    variables = property(lambda self: self.weights, doc="All variables, the trained ones first.")

    @property
    def updates(self) -> _List[Any]:
        """Those of its layers."""
        return [update for layer in self.layers for update in getattr(layer, "updates", ())]

    @property
    def losses(self) -> _List[Any]:
        """Those of its layers."""
        return [loss for layer in self.layers for loss in getattr(layer, "losses", ())]

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def _only_objects(value: Any) -> Any:
    if not is_object(value):
        raise at_user_line(
            ValueError("Only trackable objects (such as Layers or Optimizers) may be stored in a List object. Got %s, which is none." % (value,))
        )
    return value


class List(TrackableDataStructure, Sequence[Any]):
    """A list of objects that only grows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._storage: _List[Any] = []
        given: _List[Any] = list(*args, **kwargs)
        for value in given:
            self.append(value)

    def _taken(self, value: Any, key: Any) -> Any:
        return _only_objects(super()._taken(value, key))

    def _children(self) -> Dict[str, Any]:
        return {str(i): v for i, v in enumerate(self._storage) if i not in self._untracked and is_object(v)}

    @property
    def _values(self) -> Any:
        return self._storage

    def append(self, value: Any) -> None:
        """Adds an object."""
        self._storage.append(self._taken(value, len(self._storage)))

    def extend(self, values: Iterable[Any]) -> None:
        """Adds objects."""
        for value in list(values):
            self.append(value)

    def copy(self) -> Any:
        """A list of the same objects."""
        return copy.copy(self)

    def __copy__(self) -> Any:
        return type(self)(list(self._storage))

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(copy.deepcopy(self._storage, memo))

    def __getitem__(self, key: Any) -> Any:
        return self._storage[key]

    def __len__(self) -> int:
        return len(self._storage)

    def __iadd__(self, values: Iterable[Any]) -> Any:  # type: ignore[misc]
        self.extend(values)
        return self

    def __add__(self, other: Any) -> Any:
        return type(self)(self._storage + _contents(other))

    def __radd__(self, other: Any) -> Any:
        return type(self)(_contents(other) + self._storage)

    def __imul__(self, count: int) -> Any:
        if count <= 0:
            raise at_user_line(ValueError("List only supports append, multiplying in place by %d removes elements." % count))
        self.extend(self._storage * (count - 1))
        return self

    def __mul__(self, count: int) -> Any:
        return type(self)(self._storage * count)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "List(%r)" % (self._storage,)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sys.getsizeof(self._storage)


def _contents(other: Any) -> Any:
    return getattr(other, "_storage", other)


def _are_same(contents: Any, others: Any) -> bool:
    """Whether two lists or dictionaries hold the same objects."""
    if len(contents) != len(others):
        return False
    if isinstance(contents, list):
        return all(a is b for a, b in zip(contents, others))
    return all(key in others and others[key] is value for key, value in contents.items())


class _Changes:
    """What a wrapper knows of changes of the list or dictionary that it is around."""

    _what = ""

    def __init__(self) -> None:
        self._replaced = ""  # what was done that checkpoints cannot follow
        self._changed_outside = False
        self._seen: Any = None

    def _contents_now(self) -> Any:
        raise NotImplementedError

    def _look(self) -> None:
        """Notes whether the contents have changed, other than through the wrapper, since it last saw them."""
        self._changed_outside = self._changed_outside or not _are_same(self._contents_now(), self._seen)

    def _note(self) -> None:
        """Notes the contents as they are: they were changed through the wrapper."""
        self._seen = copy.copy(self._contents_now())

    def _take_over(self, other: Any) -> Any:
        self._replaced, self._changed_outside = other._replaced, other._changed_outside
        return self

    def _check_saveable(self) -> None:
        self._look()
        why = self._replaced
        if not why and self._changed_outside:
            why = "The wrapped %s was modified outside the wrapper (now it is %s, when it was last seen it was %s)" % (
                self._what,
                self._contents_now(),
                self._seen,
            )
        if why:
            raise at_user_line(
                ValueError(
                    "Unable to save the object %s (a %s wrapper constructed to track trackable TensorFlow objects). %s, which a checkpoint that is restored "
                    "while objects are made cannot follow. If it need not be in checkpoints, wrap it in tf.contrib.checkpoint.NoDependency."
                    % (self, self._what, why)
                )
            )


_MOVED = "A list element was replaced (__setitem__, __setslice__), deleted (__delitem__, __delslice__), or moved (sort)"


class ListWrapper(_Changes, List, _List[Any]):  # type: ignore[misc]
    """A list around another one, whose contents it shares: what a list becomes that is set as an attribute.

    It is a list of the same contents for whoever looks past its methods, as they were when it last changed them itself."""

    _what = "list"
    _kind = list  # whose structure it is of

    def __init__(self, wrapped_list: _List[Any]) -> None:
        _Changes.__init__(self)
        TrackableDataStructure.__init__(self)
        self._storage = wrapped_list
        for i, value in enumerate(wrapped_list):
            wrapped_list[i] = self._taken(value, i)
        self._note()

    def _taken(self, value: Any, key: Any) -> Any:
        return TrackableDataStructure._taken(self, value, key)

    def _contents_now(self) -> Any:
        return self._storage

    def _note(self) -> None:
        super()._note()
        list.__setitem__(self, slice(None), self._storage)

    def _children(self) -> Dict[str, Any]:
        self._check_saveable()
        return List._children(self)

    def __copy__(self) -> Any:
        return List.__copy__(self)._take_over(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return List.__deepcopy__(self, memo)._take_over(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return type(self), (list(self._storage),)

    def append(self, value: Any) -> None:
        """Adds a value."""
        self._look()
        value = self._taken(value, len(self._storage))
        self._storage.append(value)
        list.append(self, value)
        self._seen.append(value)

    def extend(self, values: Iterable[Any]) -> None:
        """Adds values."""
        for value in list(values):
            self.append(value)

    def _move(self, how: Any) -> Any:
        """Changes the contents in a way that checkpoints cannot follow."""
        self._replaced = _MOVED
        made = how(self._storage)
        self._note()
        return made

    def insert(self, index: SupportsIndex, obj: Any) -> None:
        """Puts a value before the one of a number."""
        self._move(lambda contents: contents.insert(index, wrapped(obj)))

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        """Sorts the values."""
        self._move(lambda contents: contents.sort(key=key, reverse=reverse))

    def reverse(self) -> None:
        """Turns the order round."""
        self._move(lambda contents: contents.reverse())

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Takes a value out."""
        return self._move(lambda contents: contents.pop(index))

    def remove(self, value: Any) -> None:
        """Takes the first of equal values out."""
        self._move(lambda contents: contents.remove(value))

    def clear(self) -> None:
        """Takes all values out."""
        self._move(lambda contents: contents.clear())

    def __delitem__(self, key: Any) -> None:
        self._move(lambda contents: contents.__delitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._look()
        before = list(self._storage)
        if isinstance(key, slice):
            self._storage[key] = [wrapped(v) for v in value]
        else:
            self._storage[key] = self._taken(value, range(len(before))[key])
        if any(is_object(old) for old in (before if isinstance(key, slice) else [before[key]])):
            self._replaced = _MOVED
        self._note()

    def __imul__(self, count: Any) -> Any:  # type: ignore[misc]
        if count > 0:
            return List.__imul__(self, count)
        self._move(lambda contents: contents.__imul__(count))
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._storage)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._storage)

    def __contains__(self, value: object) -> bool:
        return value in self._storage

    def index(self, value: Any, *limits: Any) -> int:
        """The number of the first of equal values."""
        return self._storage.index(value, *limits)

    def count(self, value: Any) -> int:
        """How many values are equal to one."""
        return self._storage.count(value)

    def __eq__(self, other: object) -> bool:
        return bool(self._storage == _contents(other))

    def __ne__(self, other: object) -> bool:
        return bool(self._storage != _contents(other))

    def __lt__(self, other: Any) -> bool:
        return bool(self._storage < _contents(other))

    def __le__(self, other: Any) -> bool:
        return bool(self._storage <= _contents(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self._storage > _contents(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self._storage >= _contents(other))

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError("unhashable type: 'ListWrapper'")

    def __repr__(self) -> str:
        return "ListWrapper(%r)" % (self._storage,)


class Mapping(TrackableDataStructure, MappingOf[str, Any]):
    """A dictionary of objects by names that only grows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._storage: Dict[str, Any] = {}
        self.update(*args, **kwargs)

    def _children(self) -> Dict[str, Any]:
        return {key: v for key, v in self._storage.items() if key not in self._untracked}

    @property
    def _values(self) -> Any:
        return [self._storage[key] for key in sorted(self._storage)]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Adds objects."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise at_user_line(TypeError("Mapping accepts only string keys, but got a key %r." % (key,)))
        if key in self._storage and self._storage[key] is not value:
            raise at_user_line(
                ValueError(
                    "Mappings are an append-only data structure. Tried to overwrite the key '%s' with value %s, but it already contains %s"
                    % (key, value, self._storage[key])
                )
            )
        self._storage[key] = _only_objects(self._taken(value, key))

    def __getitem__(self, key: str) -> Any:
        return self._storage[key]

    def __len__(self) -> int:
        return len(self._storage)

    def __iter__(self) -> Iterator[str]:
        return iter(self._storage)

    def __copy__(self) -> Any:
        return type(self)(self._storage)

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(copy.deepcopy(self._storage, memo))

    def __repr__(self) -> str:
        return "Mapping(%r)" % (self._storage,)


class DictWrapper(_Changes, TrackableDataStructure, Dict[Any, Any]):  # type: ignore[misc]
    """A dictionary around another one, whose contents it shares: what a dictionary becomes that is set as an attribute.

    Keys may be of any kind, but a checkpoint keeps no object of a key that is no name."""

    _what = "dictionary"

    def __init__(self, wrapped_dict: Any = None) -> None:
        _Changes.__init__(self)
        TrackableDataStructure.__init__(self)
        self._storage: Any = wrapped_dict
        if not isinstance(wrapped_dict, collections.abc.Mapping):
            self._storage = dict(wrapped_dict or {})
        for key, value in list(self._storage.items()):
            self._storage[key] = self._taken(value, key)
        self._note()

    def _taken(self, value: Any, key: Any) -> Any:
        made = super()._taken(value, key)
        if not isinstance(key, str) and key not in self._untracked and is_object(made):
            self._replaced = "It contains a non-string key which maps to a trackable object or mutable data structure"
        return made

    def _contents_now(self) -> Any:
        return self._storage

    def _note(self) -> None:
        super()._note()
        dict.clear(self)
        dict.update(self, self._storage)

    def _children(self) -> Dict[str, Any]:
        self._check_saveable()
        return {key: v for key, v in self._storage.items() if isinstance(key, str) and key not in self._untracked and is_object(v)}

    @property
    def _values(self) -> Any:
        return [value for _, value in sorted(self._storage.items(), key=lambda item: str(item[0]))]

    def __copy__(self) -> Any:
        return type(self)(copy.copy(self._storage))._take_over(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return type(self)(copy.deepcopy(self._storage, memo))._take_over(self)

    def copy(self) -> Any:
        """A dictionary of the same values."""
        return copy.copy(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return type(self), (dict(self._storage),)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._look()
        value = self._taken(value, key)
        self._storage[key] = value
        dict.__setitem__(self, key, value)
        self._seen[key] = value

    def _take(self, how: Any) -> Any:
        """Takes something out."""
        self._look()
        made = how(self._storage)
        self._note()
        return made

    def __delitem__(self, key: Any) -> None:
        self._take(lambda contents: contents.__delitem__(key))

    def _pop(self, how: Any) -> Any:
        self._replaced = self._replaced or "An entry was taken out (pop, popitem, clear)"
        return self._take(how)

    def pop(self, key: Any, *default: Any) -> Any:
        """Takes the value of a key out."""
        return self._pop(lambda contents: contents.pop(key, *default))

    def popitem(self) -> Any:
        """Takes the last key and value out."""
        return self._pop(lambda contents: contents.popitem())

    def clear(self) -> None:
        """Takes everything out."""
        self._pop(lambda contents: contents.clear())

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Adds keys and values."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of a key, which is set where there is none."""
        if key not in self._storage:
            self[key] = default
        return self._storage[key]

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc,override]
        self.update(other)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self._storage[key]

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or a default."""
        return self._storage.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._storage

    def __len__(self) -> int:
        return len(self._storage)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._storage)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._storage)

    def keys(self) -> Any:
        """The keys."""
        return self._storage.keys()

    def values(self) -> Any:
        """The values."""
        return self._storage.values()

    def items(self) -> Any:
        """The keys and values."""
        return self._storage.items()

    def __eq__(self, other: object) -> bool:
        return bool(self._storage == _contents(other))

    def __ne__(self, other: object) -> bool:
        return bool(self._storage != _contents(other))

    def __hash__(self) -> int:  # type: ignore[override]
        raise TypeError("unhashable type: 'DictWrapper'")

    def __repr__(self) -> str:
        return "DictWrapper(%r)" % (self._storage,)


_ListWrapper, _DictWrapper = ListWrapper, DictWrapper  # as 1.10 and 1.15 call them
