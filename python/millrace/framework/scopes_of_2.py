# SPDX-License-Identifier: Apache-2.0
"""Scopes with the arguments of TensorFlow 2: tf.compat.v2.name_scope and tf.compat.v2.device."""

from __future__ import annotations

from typing import Any, List

from millrace.framework import graph
from millrace.framework.errors import at_user_line


class name_scope(graph.name_scope):
    """A context in which names of ops start with a scope. It can be entered again, each time as a scope of its own."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise at_user_line(ValueError("name for name_scope must be a string, got %r" % (name,)))
        super().__init__(name)
        self._entered: List[Any] = []

    def __enter__(self) -> str:
        scope = graph.get_default_graph().name_scope(self._name)
        self._entered.append(scope)
        return scope.__enter__()

    def __exit__(self, *details: Any) -> Any:
        return self._entered.pop().__exit__(*details)


def device(device_name: Any) -> Any:
    """A context whose operations are placed on a device. RuntimeError: it is a function, which tf.compat.v1.device takes."""
    if callable(device_name):
        raise at_user_line(RuntimeError("tf.device does not support functions, got %r: tf.compat.v1.device does" % (device_name,)))
    return graph.device(device_name)
