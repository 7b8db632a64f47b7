# SPDX-License-Identifier: Apache-2.0
"""Libraries that add ops, kernels and file systems: `load_op_library` and the functions of such ops, made when the library is loaded."""

from __future__ import annotations

import inspect
import keyword
import os
import types
from typing import Any, Callable, Dict, List, Sequence, Union

from millrace import _core
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape

_KINDS = {"string": "s", "int": "i", "float": "f", "bool": "b", "type": "t", "shape": "h", "tensor": "n", "func": "u"}
_modules: Dict[bytes, types.ModuleType] = {}


def snake_case(op_name: str) -> str:
    """MatMul: mat_mul; TopKV2: top_kv2; Mine>ZeroOut: mine_zero_out."""
    out = ""
    for i, c in enumerate(op_name):
        if c == ">":
            out += "_"
            continue
        before, after = op_name[i - 1 : i], op_name[i + 1 : i + 2]
        if c.isupper() and i > 0 and before != ">" and (before.islower() or after.islower()):
            out += "_"
        out += c.lower()
    return out


def _identifier(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) or name in ("name", "print", "exec") else name


def _arg_code(arg: Any) -> str:
    if arg.type_list_attr:
        return "%s:[%s]" % (arg.name, arg.type_list_attr)
    code = arg.type_attr or str(arg.type % 100)
    if arg.is_ref or arg.type > 100:
        code = "&" + code
    return "%s:%s%s" % (arg.name, arg.number_attr + "*" if arg.number_attr else "", code)


def _attr_code(attr: Any) -> str:
    is_list = attr.type.startswith("list(")
    kind = attr.type[5:-1] if is_list else attr.type
    code = "%s:%s%s" % (attr.name, _KINDS[kind], "*" if is_list else "")
    if kind == "type" and not is_list and attr.HasField("default_value"):
        code += "=%d" % attr.default_value.type
    return code


def _default(attr: Any) -> Any:
    """The default for people to read: None where Python has no short form; a None that is passed means the default too."""
    from millrace.protos import attr_values

    value = attr_values.to_python(attr.default_value.SerializeToString())
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list):
        return tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value)
    return value if isinstance(value, (int, float, bool)) or attr.type == "type" else None


def op_maker(op: Any) -> Any:
    """What makes operations of an op, by its OpDef, of three things: tuples of inputs and of attributes, each in the order of the definition (None
    for what inputs or defaults say), and a name."""
    made = _core.Op(op.name, " ".join(map(_arg_code, op.input_arg)), " ".join(map(_arg_code, op.output_arg)), " ".join(map(_attr_code, op.attr)))
    # No shape is one that is not known, so that is said.
    shapes = {i: TensorShape(a.default_value.shape) for i, a in enumerate(op.attr) if a.type == "shape" and a.HasField("default_value")}

    def make(inputs: Sequence[Any], attrs: Sequence[Any], name: Any) -> Any:
        return made(tuple(inputs), tuple(shapes.get(i) if value is None else value for i, value in enumerate(attrs)), name)

    return make


def op_function(op: Any) -> Callable[..., Any]:
    """The function that makes operations of an op, by its OpDef."""
    make = op_maker(op)
    inferred = {n for a in op.input_arg for n in (a.type_attr, a.number_attr, a.type_list_attr) if n}
    inputs = [_identifier(a.name) for a in op.input_arg]
    attrs = [None if a.name in inferred or a.name.startswith("_") else _identifier(a.name) for a in op.attr]
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    required = [inspect.Parameter(n, either) for n in inputs]
    optional: List[inspect.Parameter] = []
    for attr, name in zip(op.attr, attrs):
        if name is None:
            continue
        if attr.HasField("default_value"):
            optional.append(inspect.Parameter(name, either, default=_default(attr)))
        else:
            required.append(inspect.Parameter(name, either))
    signature = inspect.Signature(required + optional + [inspect.Parameter("name", either, default=None)])
    # What a caller leaves out is left to the op, whose defaults are exact.
    function_name = snake_case(op.name)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise at_user_line(TypeError("%s() %s" % (function_name, error))) from None
        return make([given[n] for n in inputs], [None if n is None else given.get(n) for n in attrs], given.get("name"))

    function.__name__ = function.__qualname__ = function_name
    function.__doc__ = op.summary or "The op %s." % op.name
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def load_op_library(library_filename: Union[str, bytes, "os.PathLike[Any]"]) -> types.ModuleType:
    """Loads a shared library that adds ops; a module with a function for each of them, named in snake_case. Loading it again gives the
    same module. NotFoundError when it cannot be opened; the message of every error names the file and says why."""
    encoded = _core.load_library(os.fsdecode(library_filename))
    key = os.fsencode(os.path.realpath(library_filename)) + b"\0" + encoded
    module = _modules.get(key)
    if module is not None:
        return module
    module = types.ModuleType(
        "millrace.op_library.%s" % os.path.basename(os.fsdecode(library_filename)).split(".")[0], "Ops of the library %s." % os.fsdecode(library_filename)
    )
    from millrace.protos import definitions

    op_list = definitions.OpList.FromString(encoded)
    for op in op_list.op:
        setattr(module, snake_case(op.name), op_function(op))
    module.OP_LIST = op_list  # type: ignore[attr-defined]
    _modules[key] = module
    return module


def load_file_system_library(library_filename: Union[str, bytes, "os.PathLike[Any]"]) -> None:
    """Loads a shared library that adds file systems by TensorFlow 2's interface (its function TF_InitPlugin), for the paths that begin
    with their schemes. NotFoundError when it cannot be opened, AlreadyExistsError when a scheme is taken; the message of every error
    names the library and says why."""
    _core.load_file_system_library(os.fsdecode(library_filename))


def load_library(library_location: Union[str, bytes, "os.PathLike[Any]"]) -> None:
    """Loads a library, or every .so file of a folder, for its kernels; of its ops nothing is returned."""
    location = os.fsdecode(library_location)
    if not os.path.exists(location):
        raise at_user_line(OSError("The file or folder to load kernel libraries from does not exist.: %s" % location))
    files = [location]
    if os.path.isdir(location):
        files = sorted(os.path.join(location, f) for f in os.listdir(location) if f.endswith(".so"))
    for file in files:
        _core.load_library(file)
