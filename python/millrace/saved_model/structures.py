# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.saved_model.nested_structure_coder: structures of plain values, shapes, types and specs as messages."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, List, Tuple, Type

from millrace.framework import dtypes, type_spec
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.protos import definitions, enums


class NotEncodableError(Exception):
    """A value that no message can hold."""


_SPECS: Dict[Type[type_spec.TypeSpec], str] = {
    type_spec.SparseTensorSpec: "SPARSE_TENSOR_SPEC",
    type_spec.IndexedSlicesSpec: "INDEXED_SLICES_SPEC",
    type_spec.RaggedTensorSpec: "RAGGED_TENSOR_SPEC",
    type_spec.TensorArraySpec: "TENSOR_ARRAY_SPEC",
    type_spec.DatasetSpec: "DATA_DATASET_SPEC",
    type_spec.OptionalSpec: "OPTIONAL_SPEC",
}


def _encode_spec(spec: Any, made: Any) -> None:
    number = enums.TypeSpecClass.Value(_SPECS[type(spec)])
    made.type_spec_class, made.type_spec_class_name = number, type(spec).__name__
    made.type_state.CopyFrom(encode(spec._serialize()))


def _decode_spec(given: Any) -> Any:
    kind = next((k for k, name in _SPECS.items() if enums.TypeSpecClass.Value(name) == given.type_spec_class), None)
    if kind is None:
        raise at_user_line(
            ValueError("The type '%s' is not supported by this version: it is none of %s." % (given.type_spec_class_name, [k.__name__ for k in _SPECS]))
        )
    return kind._deserialize(decode(given.type_state))


def _encode_tensor_spec(spec: Any, made: Any) -> None:
    made.shape.CopyFrom(spec.shape.as_proto())
    made.dtype, made.name = spec.dtype.as_datatype_enum, spec.name or ""


def _encode_named_tuple(value: Any, made: Any) -> None:
    made.name = type(value).__name__
    for key, item in value._asdict().items():
        pair = made.values.add(key=key)
        pair.value.CopyFrom(encode(item))


def _encode_each(values: Any, made: Any) -> None:
    for value in values:
        made.values.add().CopyFrom(encode(value))


def _encode_dict(value: Any, made: Any) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            raise NotEncodableError("a key of a dict must be a text: %r" % (key,))
        made.fields[key].CopyFrom(encode(item))


# Which field holds which values: a test, the field, how it is set where it is a message, and what it gives.
_CODERS: List[Tuple[Callable[[Any], bool], str, Any, Callable[[Any], Any]]] = [
    (lambda v: v is None, "none_value", lambda v, m: None, lambda m: None),
    (lambda v: isinstance(v, bool), "bool_value", None, bool),
    (lambda v: isinstance(v, int), "int64_value", None, int),
    (lambda v: isinstance(v, float), "float64_value", None, float),
    (lambda v: isinstance(v, str), "string_value", None, str),
    (lambda v: isinstance(v, TensorShape), "tensor_shape_value", lambda v, m: m.CopyFrom(v.as_proto()), TensorShape),
    (lambda v: isinstance(v, dtypes.DType), "tensor_dtype_value", None, dtypes.as_dtype),
    (
        lambda v: type(v) is type_spec.TensorSpec,
        "tensor_spec_value",
        _encode_tensor_spec,
        lambda m: type_spec.TensorSpec(TensorShape(m.shape), dtypes.as_dtype(m.dtype), m.name or None),
    ),
    (lambda v: type(v) in _SPECS, "type_spec_value", _encode_spec, _decode_spec),
    (
        lambda v: isinstance(v, tuple) and hasattr(v, "_asdict"),
        "named_tuple_value",
        _encode_named_tuple,
        lambda m: collections.namedtuple(m.name, [p.key for p in m.values])(*[decode(p.value) for p in m.values]),
    ),
    (lambda v: isinstance(v, list), "list_value", _encode_each, lambda m: [decode(v) for v in m.values]),
    (lambda v: isinstance(v, tuple), "tuple_value", _encode_each, lambda m: tuple(decode(v) for v in m.values)),
    (lambda v: isinstance(v, dict), "dict_value", _encode_dict, lambda m: {key: decode(m.fields[key]) for key in m.fields}),
]


def encode(structure: Any) -> Any:
    """A StructuredValue. NotEncodableError where a part of the structure has no place in one."""
    made = definitions.StructuredValue()
    for holds, field, fill, _ in _CODERS:
        if holds(structure):
            if fill is None:
                setattr(made, field, structure.as_datatype_enum if isinstance(structure, dtypes.DType) else structure)
            else:
                getattr(made, field).SetInParent()
                fill(structure, getattr(made, field))
            return made
    raise NotEncodableError("No encoder for object [%s] of type [%s]." % (structure, type(structure)))


def decode(value: Any) -> Any:
    """What a StructuredValue holds."""
    field = value.WhichOneof("kind")
    for _, name, _, read in _CODERS:
        if name == field:
            return read(getattr(value, field))
    raise at_user_line(ValueError("A StructuredValue holds nothing that is known here: %s" % value))


class StructureCoder:
    """Structures as messages, and back."""

    def can_encode(self, nested: Any) -> bool:
        """Whether all of a structure has a place in a message."""
        try:
            encode(nested)
        except NotEncodableError:
            return False
        return True

    def encode_structure(self, nested: Any) -> Any:
        """The message of a structure."""
        return encode(nested)

    def decode_proto(self, proto: Any) -> Any:
        """The structure of a message."""
        return decode(proto)
