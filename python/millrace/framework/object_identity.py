# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.object_identity: dictionaries and sets of objects as such, whatever they are equal to."""

from __future__ import annotations

import collections.abc
import weakref
from typing import Any, Dict, Iterable, Iterator, Set


class _ObjectIdentityWrapper:
    """An object that is equal to itself alone."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped
        self._id = id(wrapped)

    unwrapped = property(lambda self: self._wrapped, doc="The object.")

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, _ObjectIdentityWrapper):
            raise TypeError("Cannot compare wrapped object with unwrapped object")
        return self._id == other._id and self.unwrapped is other.unwrapped

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._id

    def __repr__(self) -> str:
        return "<%s wrapping %r>" % (type(self).__name__, self.unwrapped)


class _WeakObjectIdentityWrapper(_ObjectIdentityWrapper):
    """One that does not keep it alive; of one that is gone only this very wrapper is equal."""

    def __init__(self, wrapped: Any) -> None:
        super().__init__(wrapped)
        self._wrapped = weakref.ref(wrapped)

    unwrapped = property(lambda self: self._wrapped(), doc="The object, or None where it is gone.")

    def __eq__(self, other: Any) -> bool:
        return self is other or super().__eq__(other) and self.unwrapped is not None

    __hash__ = _ObjectIdentityWrapper.__hash__


class Reference(_ObjectIdentityWrapper):
    """An object as a key."""

    unwrapped = property(lambda self: self._wrapped, doc="The object.")

    def deref(self) -> Any:
        """The object."""
        return self._wrapped


class ObjectIdentityDictionary(collections.abc.MutableMapping):  # type: ignore[type-arg]
    """A dictionary whose keys are objects as such."""

    _wrapper: Any = _ObjectIdentityWrapper

    def __init__(self) -> None:
        self._storage: Dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        return self._storage[self._wrapper(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._storage[self._wrapper(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self._storage[self._wrapper(key)]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Any]:
        for key in list(self._storage):
            alive = key.unwrapped
            if alive is None and self._wrapper is not _ObjectIdentityWrapper:
                del self._storage[key]
            else:
                yield alive

    def __repr__(self) -> str:
        return "%s(%r)" % (type(self).__name__, self._storage)


class ObjectIdentityWeakKeyDictionary(ObjectIdentityDictionary):
    """One that does not keep its keys alive."""

    _wrapper = _WeakObjectIdentityWrapper


class ObjectIdentitySet(collections.abc.MutableSet):  # type: ignore[type-arg]
    """A set of objects as such."""

    _wrapper: Any = _ObjectIdentityWrapper

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._storage: Set[Any] = {self._wrapper(item) for item in items}

    def __contains__(self, key: Any) -> bool:
        return self._wrapper(key) in self._storage

    def discard(self, key: Any) -> None:
        """Takes it out, where it is in."""
        self._storage.discard(self._wrapper(key))

    def add(self, key: Any) -> None:
        """Puts it in."""
        self._storage.add(self._wrapper(key))

    def update(self, items: Iterable[Any]) -> None:
        """Puts all of them in."""
        for item in items:
            self.add(item)

    def intersection(self, items: Iterable[Any]) -> Any:
        """Those that are in both."""
        return type(self)(item for item in items if item in self)

    def difference(self, items: Iterable[Any]) -> Any:
        """Those that are not among the items."""
        others = type(self)(items)
        return type(self)(item for item in self if item not in others)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Any]:
        for key in list(self._storage):
            alive = key.unwrapped
            if alive is None and self._wrapper is not _ObjectIdentityWrapper:
                self._storage.discard(key)
            else:
                yield alive


class ObjectIdentityWeakSet(ObjectIdentitySet):
    """One that does not keep them alive."""

    _wrapper = _WeakObjectIdentityWrapper
