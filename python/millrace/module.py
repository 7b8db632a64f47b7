# SPDX-License-Identifier: Apache-2.0
"""tf.Module: an object that has variables, and other such objects."""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, Iterator, List, Optional, Tuple

from millrace import names
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.structures import Container, NoDependency, TrackableReference, wrapped


def inside(value: Any) -> Iterator[Any]:
    """What a value is, or lists and dictionaries hold, in order."""
    return (leaf for _, leaf in _with_paths(value))


def _with_paths(value: Any, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[Tuple[Any, ...], Any]]:
    """(the keys, fields and numbers that lead to it, what lists and dictionaries hold)."""
    if isinstance(value, dict):
        items: Any = ((key, value[key]) for key in sorted(value, key=str))
    elif isinstance(value, (list, tuple)):
        items = zip(getattr(value, "_fields", range(len(value))), value)
    elif isinstance(value, Container):
        items = enumerate(value._values)
    else:
        yield path, value
        return
    for key, item in items:
        yield from _with_paths(item, (*path, key))


def _is_variable(value: Any) -> bool:
    from millrace.ops.variables import Variable

    return isinstance(value, Variable)


def _is_module(value: Any) -> bool:
    return isinstance(value, Submodules)


class Submodules:
    """What modules and layers have in common: whatever they hold of their kind, and methods that run in their scope."""

    _is_trackable = True  # by checkpoints of objects
    # The names of attributes that are not looked into. The calls of layers lead to their neighbours.
    _TF_MODULE_IGNORED_PROPERTIES = frozenset(("_inbound_nodes", "_outbound_nodes", "_named_weights"))

    def _wraps(self, name: str) -> bool:
        """Whether a list or dictionary that becomes an attribute is wrapped for checkpoints: those of classes that are not of this package."""
        return not type(self).__module__.startswith("millrace.")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, NoDependency):
            self.__dict__.setdefault("_self_untracked", set()).add(name)
        elif name in self.__dict__.get("_self_untracked", ()):
            self.__dict__["_self_untracked"].discard(name)
        if isinstance(value, NoDependency) or type(value) in (list, dict) and self.__dict__.get("_self_setattr_tracking", True) and self._wraps(name):
            value = wrapped(value)
        super().__setattr__(name, value)

    def _no_dependency(self, value: Any) -> Any:
        """What an attribute is set to whose value checkpoints are not to keep."""
        return NoDependency(value)

    def _maybe_initialize_trackable(self) -> None:
        """Nothing: what it has is found out when a checkpoint asks for it."""

    @property
    def _checkpoint_dependencies(self) -> List[TrackableReference]:
        """What checkpoints keep of it, and the names that it has there."""
        return [TrackableReference(name, value) for name, value in names.find("python.training.tracking.util").children_of(self).items()]

    def _lookup_dependency(self, name: str) -> Any:
        return dict(self._checkpoint_dependencies).get(name)

    def _held(self) -> Iterator[Any]:
        """Its attributes by name, and what lists among them hold."""
        return self._flatten(recursive=False)  # type: ignore[no-any-return]

    def _flatten(self, recursive: bool = True, predicate: Any = None, attribute_traversal_key: Any = None, with_path: bool = False) -> Any:
        """What it holds, and then what the modules among that hold; each once, and only what `predicate` is true of.

        attribute_traversal_key: what names of attributes are sorted by. with_path: (keys, value) pairs, each as often as keys lead to it.
        """
        seen = {id(self)}

        def walk(module: Submodules, path: Tuple[Any, ...]) -> Iterator[Any]:
            modules = []
            for name in sorted(vars(module), key=attribute_traversal_key):
                for keys, leaf in _with_paths(vars(module)[name], (*path, name)) if name not in self._TF_MODULE_IGNORED_PROPERTIES else ():
                    if id(leaf) in seen and not with_path:
                        continue
                    seen.add(id(leaf))
                    if predicate is None or predicate(leaf):
                        yield (keys, leaf) if with_path else leaf
                    if recursive and _is_module(leaf):
                        modules.append((keys, leaf))
            for keys, leaf in modules:
                yield from walk(leaf, keys)

        return walk(self, ())

    @property
    def submodules(self) -> Tuple[Any, ...]:
        """The modules that it holds, and those that they hold: each once."""
        return tuple(self._flatten(predicate=_is_module))

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator of methods: what they make lies in the scope of the module."""

        @functools.wraps(method)
        def inside(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return inside


class Module(Submodules):
    """Base of objects with variables: those that are its attributes, in lists and dictionaries too, and those of the modules among them."""

    def __init__(self, name: Optional[str] = None) -> None:
        if name is None:
            name = re.sub(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))", r"_\1", type(self).__name__).lower()
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise at_user_line(ValueError("%r is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class name)." % name))
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    name = property(lambda self: self._name, doc="Its name, as it was given or made of the class's.")
    name_scope = property(lambda self: name_scope(self._scope_name), doc="Its scope, to be entered by `with`.")

    @property
    def variables(self) -> Tuple[Any, ...]:
        """The variables that it and its modules hold, each once."""
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> Tuple[Any, ...]:
        """Those that are trained."""
        return tuple(v for v in self.variables if v.trainable)
