# SPDX-License-Identifier: Apache-2.0
"""tf.Module: an object that has variables, and other such objects."""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, Iterator, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope


def inside(value: Any) -> Iterator[Any]:
    """What a value is, or lists and dictionaries hold, in order."""
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from inside(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from inside(item)
    else:
        yield value


class Submodules:
    """What modules and layers have in common: whatever they hold of their kind, and methods that run in their scope."""

    def _held(self) -> Iterator[Any]:
        """Its attributes by name, and what lists among them hold."""
        for key in sorted(vars(self)):
            if key not in ("_inbound_nodes", "_outbound_nodes"):  # the calls of layers lead to their neighbours
                yield from inside(vars(self)[key])

    @property
    def submodules(self) -> Tuple[Any, ...]:
        """The modules that it holds, and those that they hold: each once."""
        found: List[Any] = []
        seen = {id(self)}

        def walk(module: Submodules) -> None:
            own = []
            for value in module._held():
                if isinstance(value, Submodules) and id(value) not in seen:
                    seen.add(id(value))
                    own.append(value)
            found.extend(own)
            for value in own:
                walk(value)

        walk(self)
        return tuple(found)

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
        from millrace.ops.variables import Variable

        found = {id(v): v for module in (self, *self.submodules) for v in module._held() if isinstance(v, Variable)}
        return tuple(found.values())

    @property
    def trainable_variables(self) -> Tuple[Any, ...]:
        """Those that are trained."""
        return tuple(v for v in self.variables if v.trainable)
