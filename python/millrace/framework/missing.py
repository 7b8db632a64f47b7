# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow that are not provided yet: they say so, and what to use instead, when they are called."""

from __future__ import annotations

from typing import Any, Dict, List

from millrace.framework.errors import at_user_line


class Missing:
    """Stands where a function or class would be."""

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead
        self._message = "tf.%s is not provided yet: use %s." % (name, instead)
        self.__name__ = name.rsplit(".", 1)[-1]
        self.__doc__ = self._message

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise at_user_line(NotImplementedError(self._message))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Missing("%s.%s" % (self._name, name), self._instead)

    def __mro_entries__(self, bases: Any) -> Any:
        raise at_user_line(NotImplementedError(self._message))


def fill(namespace: Dict[str, Any], prefix: str, table: Dict[str, str]) -> None:
    """Puts a Missing into a module for each name that it does not have. dir leaves them out."""
    for name, instead in table.items():
        if name not in namespace:
            namespace[name] = Missing(prefix + name, instead)
    namespace.setdefault("__dir__", lambda: there(namespace))


def there(namespace: Dict[str, Any]) -> List[str]:
    """The names of a module that are not Missing."""
    return sorted(name for name, value in namespace.items() if not isinstance(value, Missing))
