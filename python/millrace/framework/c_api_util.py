# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.c_api_util: TensorFlow's own wrappers of its C API. Statuses and the map of how ops are shown are here, each other
name says what to use instead."""

from __future__ import annotations

import ctypes
from typing import Any, KeysView

from millrace.framework.errors import ScopedTFStatus  # noqa: F401
from millrace.framework.missing import Missing
from millrace.framework.op_def_registry import Buffer, c_function as _c, checked as _checked, get_registered_ops
from millrace.protos import definitions

_PTR, _TEXT, _SIZE, _BUFFER = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Buffer)
_new_buffer, _delete_buffer = _c("TF_NewBufferFromString", _BUFFER, _TEXT, _SIZE), _c("TF_DeleteBuffer", None, _BUFFER)
_new_map, _delete_map = _c("TF_NewApiDefMap", _PTR, _BUFFER, _PTR), _c("TF_DeleteApiDefMap", None, _PTR)
_put, _get = _c("TF_ApiDefMapPut", None, _PTR, _TEXT, _SIZE, _PTR), _c("TF_ApiDefMapGet", _BUFFER, _PTR, _TEXT, _SIZE, _PTR)


class ApiDefMap:
    """How each registered op is shown to those who write programs: an ApiDef over its OpDef."""

    def __init__(self) -> None:
        self._ops = get_registered_ops()
        encoded = definitions.OpList(op=list(self._ops.values())).SerializeToString()
        buffer = _new_buffer(encoded, len(encoded))
        try:
            self._map = _checked(lambda status: _new_map(buffer, status))
        finally:
            _delete_buffer(buffer)

    def __del__(self) -> None:
        if getattr(self, "_map", None) is not None:
            _delete_map(self._map)

    def put_api_def(self, text: str) -> None:
        """Lays the ApiDefs of a text, a message ApiDefs in which a string may also be "<<END", lines, "END", over those of the map, until the first
        one is read. Ops that are not registered are passed over. ValueError: it cannot be read, or one was read already."""
        encoded = text.encode()
        _checked(lambda status: _put(self._map, encoded, len(encoded), status))

    def get_api_def(self, op_name: str) -> Any:
        """The ApiDef of an op. ValueError: there is no such op."""
        encoded = op_name.encode()
        buffer = _checked(lambda status: _get(self._map, encoded, len(encoded), status))
        if not buffer:
            raise ValueError("No entry found for %s." % op_name)
        try:
            return definitions.ApiDef.FromString(ctypes.string_at(buffer.contents.data, buffer.contents.length))
        finally:
            _delete_buffer(buffer)

    def get_op_def(self, op_name: str) -> Any:
        """The OpDef of an op, without descriptions. ValueError: there is no such op."""
        if op_name not in self._ops:
            raise ValueError("No entry found for %s." % op_name)
        return self._ops[op_name]

    def op_names(self) -> KeysView[str]:
        """The names of all ops."""
        return self._ops.keys()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Missing("python.framework.c_api_util." + name, "the classes of tf, which are made of the C API's objects")
