# SPDX-License-Identifier: Apache-2.0
"""OpDefLibrary: operations by the names of their types, as the wrappers of user libraries of 1.x made them. What a definition asks of inputs and
attributes is checked before the operation is made; messages are TensorFlow's, to the letter, with no line of the program behind them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.framework import dtypes, tensor_shape
from millrace.framework.convert import internal_convert_to_tensor
from millrace.framework.errors import NotFoundError
from millrace.framework.graph import Graph, Operation, get_default_graph
from millrace.framework.library_names import _get_graph_from_inputs
from millrace.framework.load_library import op_maker
from millrace.protos import definitions


def _types(values: Any) -> str:
    return ", ".join(dtypes.as_dtype(v).base_dtype.name for v in values)


def _type_or_none(value: Any) -> str:
    """The name of the type of the tensor that the value makes."""
    try:
        return _types([internal_convert_to_tensor(value).dtype])
    except (TypeError, ValueError):
        return "<NOT CONVERTIBLE TO TENSOR>"


def _check_type(dtype: dtypes.DType, attr: Any, parameter: str) -> None:
    allowed = list(attr.allowed_values.list.type)
    if allowed and dtype.base_dtype not in [dtypes.as_dtype(a) for a in allowed]:
        raise TypeError(
            "Value passed to parameter '%s' has DataType %s not in list of allowed values: %s" % (parameter, dtype.base_dtype.name, _types(allowed))
        )


def _plain(value: Any, kind: str, name: str) -> Any:
    """The value of an attribute that is an int, a float, a bool, a string or a type."""
    shown = {"type": "DataType"}.get(kind, kind)
    if kind in ("bool", "string") and isinstance(value, bool if kind == "bool" else (str, bytes)):
        return value
    try:
        if kind == "type" and value is not None:
            return dtypes.as_dtype(value)
        if kind in ("int", "float") and not isinstance(value, str):
            return int(value) if kind == "int" else float(value)
    except (TypeError, ValueError):
        pass
    raise TypeError("Expected %s for argument '%s' not %r." % (shown, name, value))


def _shape(value: Any, name: str) -> Any:
    try:
        return tensor_shape.as_shape(value)
    except (TypeError, ValueError) as error:
        raise type(error)("Error converting %s to a TensorShape: %s" % (name, error)) from None


def _function(value: Any, name: str) -> Any:
    if hasattr(value, "add_to_graph"):  # a function that tf.Defun made
        value.add_to_graph(get_default_graph())
        return value.name
    if not isinstance(value, (str, bytes)):
        raise TypeError("Don't know how to convert %s to a func for argument %s" % (value, name))
    return value


class _Application:
    """One operation in the making."""

    def __init__(self, op_def: Any, keywords: Dict[str, Any]) -> None:
        self.op_def, self.keywords = op_def, keywords
        self.kinds = {a.name: a for a in op_def.attr}
        self.attrs: Dict[str, Any] = {}  # those that inputs have determined, then all
        self.said_by: Dict[str, str] = {}  # which input did

    def _given(self, name: str, what: str) -> Any:
        for key in (name, name + "_"):  # names that Python has are given with an underscore
            if key in self.keywords:
                return self.keywords.pop(key)
        raise TypeError("No argument for %s %s" % (what, name))

    def input(self, arg: Any) -> Any:
        """The tensor, or list of tensors, of an input."""
        value = self._given(arg.name, "input")
        if arg.number_attr or arg.type_list_attr:
            if not isinstance(value, (list, tuple)):
                raise TypeError("Expected list for '%s' argument to '%s' Op, not %s." % (arg.name, self.op_def.name, value))
            tensors = self._converted_list(arg, value)
        else:
            tensors = [self._converted(arg, value)]
        if arg.number_attr:
            self._note_number(arg, len(tensors))
        if arg.type_list_attr:
            self._note_types(arg, [t.dtype.base_dtype for t in tensors])
        elif arg.type_attr:
            self._note_type(arg, tensors)
        if arg.is_ref and not all(t.dtype._is_ref_dtype for t in tensors):
            raise TypeError("'%s' Op requires that input '%s' be a mutable tensor (e.g.: a tf.Variable)" % (self.op_def.name, arg.name))
        return tensors if arg.number_attr or arg.type_list_attr else tensors[0]

    def _wanted(self, arg: Any) -> Tuple[Optional[dtypes.DType], Optional[dtypes.DType]]:
        """The type that an input must have, and the one that it has by choice."""
        if arg.type:
            return dtypes.as_dtype(arg.type), None
        if arg.type_attr in self.attrs:
            return self.attrs[arg.type_attr], None
        attr = self.kinds.get(arg.type_attr)
        return None, dtypes.as_dtype(attr.default_value.type) if attr is not None and attr.HasField("default_value") else None

    def _converted(self, arg: Any, value: Any) -> Any:
        wanted, preferred = self._wanted(arg)
        try:
            return internal_convert_to_tensor(value, wanted, arg.name, arg.is_ref, preferred)
        except (TypeError, ValueError) as error:
            if wanted is None:
                raise
            if isinstance(value, (str, bytes)) or not hasattr(value, "dtype"):
                raise TypeError(
                    "Expected %s passed to parameter '%s' of op '%s', got %r of type '%s' instead. Error: %s"
                    % (wanted.name, arg.name, self.op_def.name, value, type(value).__name__, error)
                ) from None
            by = "expected type of %s." % wanted.name if arg.type else "type %s of argument '%s'." % (wanted.base_dtype.name, self.said_by[arg.type_attr])
            raise TypeError("Input '%s' of '%s' Op has type %s that does not match %s" % (arg.name, self.op_def.name, _types([value.dtype]), by)) from None

    def _converted_list(self, arg: Any, values: Any) -> List[Any]:
        wanted, preferred = self._wanted(arg)
        if wanted is None and arg.number_attr:  # a tensor among them says the type of the others
            wanted = next((dtypes.as_dtype(v.dtype).base_dtype for v in values if hasattr(v, "op") and hasattr(v, "dtype")), None)
        tensors: List[Any] = []
        try:
            for i, value in enumerate(values):
                if value is None:
                    raise TypeError("None values not supported.")
                tensor = internal_convert_to_tensor(value, wanted, "%s_%d" % (arg.name, i), arg.is_ref, preferred)
                if arg.number_attr and wanted is None:
                    wanted = tensor.dtype.base_dtype
                tensors.append(tensor)
            return tensors
        except (TypeError, ValueError):
            begin = "Tensors in list passed to '%s' of '%s' Op have types [%s]" % (arg.name, self.op_def.name, ", ".join(map(_type_or_none, values)))
        if not arg.number_attr:
            raise TypeError("%s that are invalid. Tensors: %s" % (begin, values))
        if arg.type:
            raise TypeError("%s that do not match expected type %s." % (begin, dtypes.as_dtype(arg.type).name))
        if arg.type_attr in self.attrs:
            raise TypeError("%s that do not match type %s inferred from earlier arguments." % (begin, self.attrs[arg.type_attr].name))
        raise TypeError("%s that don't all match." % begin)

    def _note_number(self, arg: Any, length: int) -> None:
        begin = "List argument '%s' to '%s' Op with length %d" % (arg.name, self.op_def.name, length)
        if arg.number_attr in self.attrs:
            if length != self.attrs[arg.number_attr]:
                raise ValueError("%s must match length %d of argument '%s'." % (begin, self.attrs[arg.number_attr], self.said_by[arg.number_attr]))
            return
        attr = self.kinds[arg.number_attr]
        if attr.has_minimum and length < attr.minimum:
            raise ValueError("%s shorter than minimum length %d." % (begin, attr.minimum))
        self._note(arg.number_attr, length, arg)

    def _note_type(self, arg: Any, tensors: List[Any]) -> None:
        if arg.type_attr in self.attrs:
            return  # they were made of that type
        if not tensors:
            attr = self.kinds[arg.type_attr]
            if not attr.HasField("default_value"):
                raise TypeError("Don't know how to infer type variable from empty input list passed to input '%s' of '%s' Op." % (arg.name, self.op_def.name))
            self._note(arg.type_attr, dtypes.as_dtype(attr.default_value.type), arg)
            return
        self._note(arg.type_attr, tensors[0].dtype.base_dtype, arg)
        _check_type(tensors[0].dtype, self.kinds[arg.type_attr], arg.name)

    def _note_types(self, arg: Any, found: List[dtypes.DType]) -> None:
        known = self.attrs.get(arg.type_list_attr)
        if known is not None and known != found:
            raise TypeError(
                "Input '%s' of '%s' Op has type list of %s that does not match type list %s of argument '%s'."
                % (arg.name, self.op_def.name, _types(found), _types(known), self.said_by[arg.type_list_attr])
            )
        for dtype in found:
            _check_type(dtype, self.kinds[arg.type_list_attr], arg.name)
        self._note(arg.type_list_attr, found, arg)

    def _note(self, name: str, value: Any, arg: Any) -> None:
        self.attrs[name] = value
        self.said_by.setdefault(name, arg.name)

    def attribute(self, attr: Any) -> Any:
        """The value of an attribute: None where inputs or the definition say it."""
        if attr.name in self.attrs:
            if attr.name in self.keywords:
                raise TypeError("Should not specify value for inferred attr '%s'." % attr.name)
            return None
        has_default = attr.HasField("default_value")
        value = self.keywords.pop(attr.name) if has_default and attr.name in self.keywords else None if has_default else self._given(attr.name, "attr")
        if value is None and has_default:
            return None
        if not attr.type.startswith("list("):
            made = self._value(attr, attr.type, value)
        else:
            if not isinstance(value, (list, tuple)):
                raise TypeError("Expected list for attr " + attr.name)
            if attr.has_minimum and len(value) < attr.minimum:
                raise ValueError(
                    "Attr '%s' of '%s' Op passed list of length %d less than minimum %d." % (attr.name, self.op_def.name, len(value), attr.minimum)
                )
            made = [self._value(attr, attr.type[5:-1], v) for v in value]
        self.attrs[attr.name] = made
        return made

    def _value(self, attr: Any, kind: str, value: Any) -> Any:
        if kind == "tensor":
            return value
        if kind in ("shape", "func"):
            return (_shape if kind == "shape" else _function)(value, attr.name)
        made = _plain(value, kind, attr.name)
        if kind == "type":
            _check_type(made, attr, attr.name)
        if kind == "string" and attr.HasField("allowed_values"):
            allowed = list(attr.allowed_values.list.s)
            if (made.encode() if isinstance(made, str) else made) not in allowed:
                shown = '", "'.join(a.decode("utf-8", "replace") for a in allowed)
                text = made if isinstance(made, str) else made.decode("utf-8", "replace")
                raise ValueError("Attr '%s' of '%s' Op passed string '%s' not in: \"%s\"." % (attr.name, self.op_def.name, text, shown))
        if kind == "int" and not attr.type.startswith("list(") and attr.has_minimum and made < attr.minimum:
            raise ValueError("Attr '%s' of '%s' Op passed %d less than minimum %d." % (attr.name, self.op_def.name, made, attr.minimum))
        return made

    def outputs(self, op: Operation) -> Any:
        """The outputs of the operation in the form of its definition: a tensor, or a list, for each; one alone stands for itself."""
        rest: List[Any] = list(op.outputs)
        made: List[Any] = []
        for arg in self.op_def.output_arg:
            count = op.get_attr(arg.number_attr) if arg.number_attr else len(op.get_attr(arg.type_list_attr)) if arg.type_list_attr else None
            made.append(rest.pop(0) if count is None else rest[:count])
            rest = rest[count or 0 :]
        given = made[0] if len(made) == 1 else made
        return op if isinstance(given, list) and not given and (self.op_def.is_stateful or not self.op_def.output_arg) else given


class OpDefLibrary:
    """Makes operations of any type that is registered."""

    def add_op(self, op_def: Any) -> None:
        """Checks a definition, a message OpDef: TypeError where an input or output names an attribute that is not there or of another kind, or says
        its type in more than one way. Nothing else changes: types are those that are registered."""
        attrs = {a.name: a.type for a in op_def.attr}
        for arg in [*op_def.input_arg, *op_def.output_arg]:
            count = sum(1 for field in (arg.type, arg.type_attr, arg.type_list_attr) if field)
            if count != 1:
                raise TypeError("Arg '%s' of '%s' must have one type field not %d" % (arg.name, op_def.name, count))
            for field, kind in (("type_attr", "type"), ("type_list_attr", "list(type)"), ("number_attr", "int")):
                name = getattr(arg, field)
                if name and name not in attrs:
                    raise TypeError("Inconsistent OpDef for '%s', missing attr '%s'" % (op_def.name, name))
                if name and attrs[name] != kind:
                    raise TypeError("Attr '%s' of '%s' used as a %s but has type %s" % (name, op_def.name, field, attrs[name]))

    def add_op_list(self, op_list: Any) -> None:
        """add_op of each of a message OpList."""
        for op_def in op_list.op:
            self.add_op(op_def)

    def apply_op(self, op_type_name: str, name: Optional[str] = None, **keywords: Any) -> Any:
        """The outputs of a new operation; inputs and attributes by their names. Attributes that inputs determine are not given; those with a default
        may be None or left out. TypeError and ValueError where the definition wants something else, RuntimeError where there is no such type."""
        try:
            encoded = Graph()._op_def(op_type_name)
        except NotFoundError:
            raise RuntimeError("Unrecognized Op name " + op_type_name) from None
        op_def = definitions.OpDef.FromString(encoded)
        making = _Application(op_def, keywords)
        inputs = [keywords[k] for a in op_def.input_arg for k in (a.name, a.name + "_") if k in keywords]
        flat = [v for value in inputs for v in (value if isinstance(value, (list, tuple)) else [value])]
        with _get_graph_from_inputs(flat).as_default() as graph, graph.name_scope(name or op_type_name) as scope:
            tensors = [making.input(arg) for arg in op_def.input_arg]
            attributes = [making.attribute(attr) for attr in op_def.attr]
            if keywords:
                raise TypeError("apply_op() got unexpected keyword arguments: " + ", ".join(sorted(keywords)))
            made = op_maker(op_def)(tuple(tensors), tuple(attributes), scope)
        return making.outputs(_operation_of(made))


def _operation_of(made: Any) -> Operation:
    """The operation of what making it gave: itself, a tensor, or lists of tensors."""
    while isinstance(made, (list, tuple)):
        made = next(part for part in made if not isinstance(part, (list, tuple)) or len(part))
    return made if isinstance(made, Operation) else made.op


_op_def_lib = OpDefLibrary()
apply_op = _op_def_lib.apply_op
