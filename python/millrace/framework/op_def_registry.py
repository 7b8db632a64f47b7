# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.op_def_registry: the op types of this process, read and added to. They live in the library, which C++ and C share
(docs/custom_ops.md); a type that Python adds has no kernel, so graphs that hold its operations can be built, imported and written, not run."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Dict, Iterable, Optional

from millrace import _core, settings
from millrace.framework import dtypes
from millrace.framework.errors import NotFoundError, at_user_line
from millrace.framework.graph import Graph
from millrace.protos import definitions

_PTR, _TEXT, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_library = ctypes.CDLL(settings.text("MILLRACE_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(_core.__file__)), "libmillrace.so"))


class Buffer(ctypes.Structure):
    """A TF_Buffer."""

    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("free", ctypes.c_void_p)]


def c_function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of the C API by its name, the ctypes of its result and of its arguments."""
    function = _library[name]
    function.restype, function.argtypes = result, arguments
    return function


new_status, delete_status = c_function("TF_NewStatus", _PTR), c_function("TF_DeleteStatus", None, _PTR)
_code, _message = c_function("TF_GetCode", _INT, _PTR), c_function("TF_Message", _TEXT, _PTR)
_new_op, _register_op = c_function("TF_NewOpDefinitionBuilder", _PTR, _TEXT), c_function("TF_RegisterOpDefinition", None, _PTR, _PTR)
_add = [c_function("TF_OpDefinitionBuilderAdd" + part, None, _PTR, _TEXT) for part in ("Input", "Output", "Attr")]
_set_stateful = c_function("TF_OpDefinitionBuilderSetIsStateful", None, _PTR, ctypes.c_bool)
_all_ops, _delete_buffer = c_function("TF_GetAllOpList", ctypes.POINTER(Buffer)), c_function("TF_DeleteBuffer", None, ctypes.POINTER(Buffer))


def checked(call: Callable[[Any], Any]) -> Any:
    """What call(status) gives; ValueError with the status's message where it was refused."""
    status = new_status()
    try:
        made = call(status)
        if _code(status) != 0:
            raise ValueError(_message(status).decode())
        return made
    finally:
        delete_status(status)


def define(
    name: str, inputs: Iterable[str], outputs: Iterable[str], attrs: Iterable[str], stateful: bool = False, more: Optional[Callable[[int], None]] = None
) -> None:
    """Adds an op type. Its inputs, outputs and attributes are said as REGISTER_OP of C++ says them: "x: N * T", "T: {float, int32} = float";
    more(builder) may say the rest. ValueError: the name is taken, or a text cannot be read."""
    builder = _new_op(name.encode())
    for add, specs in zip(_add, (inputs, outputs, attrs)):
        for spec in specs:
            add(builder, spec.encode())
    _set_stateful(builder, stateful)
    if more is not None:
        more(builder)
    checked(lambda status: _register_op(builder, status))


def _dtype(number: int) -> str:
    name: str = dtypes.as_dtype(number % 100).name
    return {"float32": "float", "float64": "double", "float16": "half"}.get(name, name)


def _arg(arg: Any) -> str:
    kind = arg.type_list_attr or arg.type_attr or _dtype(arg.type)
    if arg.number_attr:
        kind = arg.number_attr + " * " + kind
    return "%s: %s" % (arg.name, "Ref(%s)" % kind if arg.is_ref or arg.type > 100 else kind)


def _quoted(text: bytes) -> str:
    return "'%s'" % "".join(chr(c) if 32 <= c < 127 and c not in b"\\'" else "\\%03o" % c for c in text)


def _value(value: Any, kind: str) -> str:
    if kind.startswith("list("):
        kind = kind[5:-1]
        field = {"string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape", "tensor": "tensor"}[kind]
        return "[%s]" % ", ".join(_scalar(one, kind) for one in getattr(value.list, field))
    return _scalar(getattr(value, {"string": "s", "int": "i", "float": "f", "bool": "b"}.get(kind, kind)), kind)


def _scalar(value: Any, kind: str) -> str:
    if kind == "string":
        return _quoted(value)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "type":
        return _dtype(value)
    return "{ %s }" % str(value) if kind in ("shape", "tensor") else repr(value)


def _attr(attr: Any) -> str:
    kind = attr.type
    if attr.HasField("allowed_values"):
        element = "string" if "string" in kind else "type"
        allowed = "{%s}" % _value(attr.allowed_values, "list(%s)" % element)[1:-1]
        kind = "list(%s)" % allowed if kind.startswith("list(") else allowed
    text = "%s: %s" % (attr.name, kind)
    if attr.has_minimum or attr.type == "list(type)":  # where none is said, REGISTER_OP takes 1 for a list of types
        text += " >= %d" % attr.minimum
    return text + (" = " + _value(attr.default_value, attr.type) if attr.HasField("default_value") else "")


def _registered(name: str) -> Optional[Any]:
    try:
        return definitions.OpDef.FromString(Graph()._op_def(name))
    except NotFoundError:
        return None


def register_op_list(op_list: Any) -> None:
    """Adds the op types of an OpList that the process has not. TypeError: it is no OpList; ValueError: an op stands there with other inputs, outputs
    or attributes, or cannot be read."""
    if not isinstance(op_list, definitions.OpList):
        raise at_user_line(TypeError("%s is %s, not an op_def_pb2.OpList" % (op_list, type(op_list))))
    for op in op_list.op:
        specs = inputs, outputs, attrs = [_arg(a) for a in op.input_arg], [_arg(a) for a in op.output_arg], [_attr(a) for a in op.attr]
        there = _registered(op.name)
        if there is None:
            define(op.name, inputs, outputs, attrs, stateful=op.is_stateful)
        elif specs != ([_arg(a) for a in there.input_arg], [_arg(a) for a in there.output_arg], [_attr(a) for a in there.attr]):
            raise at_user_line(ValueError("op %s is registered already, as another: %s; given: %s" % (op.name, there, op)))


def get_registered_ops() -> Dict[str, Any]:
    """The OpDef of each op type by its name, without descriptions; a new dict each time."""
    buffer = _all_ops()
    try:
        ops = definitions.OpList.FromString(ctypes.string_at(buffer.contents.data, buffer.contents.length))
    finally:
        _delete_buffer(buffer)
    return {op.name: op for op in ops.op}
