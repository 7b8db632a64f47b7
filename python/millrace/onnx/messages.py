# SPDX-License-Identifier: Apache-2.0
"""The messages of ONNX files: field numbers, names and types (onnx.proto, IR version 8)."""

from __future__ import annotations

from typing import Any, Dict, Type

import numpy as np

from millrace.protos import message
from millrace.protos.message import Message

_TABLES = """
OperatorSetIdProto: 1 domain string; 2 version int64
Dimension: 1 dim_value int64@value; 2 dim_param string@value
TensorShapeProto: 1 dim *Dimension
TensorType: 1 elem_type int32; 2 shape TensorShapeProto
TypeProto: 1 tensor_type TensorType@value
ValueInfoProto: 1 name string; 2 type TypeProto; 3 doc_string string
TensorProto: 1 dims *int64; 2 data_type int32; 6 string_data *bytes; 8 name string; 9 raw_data bytes
AttributeProto: 1 name string; 2 f float; 3 i int64; 4 s bytes; 5 t TensorProto; 7 floats *float; 8 ints *int64; 9 strings *bytes; 20 type enum
NodeProto: 1 input *string; 2 output *string; 3 name string; 4 op_type string; 5 attribute *AttributeProto; 6 doc_string string; 7 domain string
GraphProto: 1 node *NodeProto; 2 name string; 5 initializer *TensorProto; 10 doc_string string; 11 input *ValueInfoProto; 12 output *ValueInfoProto
ModelProto: 1 ir_version int64; 2 producer_name string; 3 producer_version string; 4 domain string; 5 model_version int64; 6 doc_string string; 7 graph GraphProto; 8 opset_import *OperatorSetIdProto
"""

_registry: Dict[str, Type[Message]] = {}
for _row in _TABLES.strip().splitlines():
    _name, _, _table = _row.partition(": ")
    globals()[_name] = message.define(_name, _table, _registry)
for _class in _registry.values():
    for _field in _class._fields.values():
        _field.message = _registry.get(_field.kind)
        if _field.message is not None:
            _field.wire = 2

# TensorProto.DataType by NumPy's names; bfloat16 and strings are not written.
DATA_TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
}
_FLOAT, _INT, _STRING, _TENSOR, _FLOATS, _INTS = 1, 2, 3, 4, 6, 7  # AttributeProto.AttributeType


def data_type(name: str) -> int:
    """The number of a dtype."""
    if name not in DATA_TYPES:
        raise NotImplementedError("ONNX models of %s are not written" % name)
    return DATA_TYPES[name]


def tensor(value: Any, name: str = "") -> Any:
    """An array as a message."""
    array = np.asarray(value)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return _registry["TensorProto"](name=name, dims=list(array.shape), data_type=data_type(array.dtype.name), raw_data=little.tobytes())


def array(made: Any) -> np.ndarray:
    """What `tensor` made a message of."""
    names = {number: name for name, number in DATA_TYPES.items()}
    return np.frombuffer(made.raw_data, np.dtype(names[made.data_type]).newbyteorder("<")).reshape(list(made.dims))


def attribute(name: str, value: Any) -> Any:
    """An attribute of a node."""
    made = _registry["AttributeProto"](name=name)
    if isinstance(value, float):
        made.type, made.f = _FLOAT, value
    elif isinstance(value, (bool, int, np.integer)):
        made.type, made.i = _INT, int(value)
    elif isinstance(value, str):
        made.type, made.s = _STRING, value.encode()
    elif isinstance(value, np.ndarray):
        made.type = _TENSOR
        made.t.CopyFrom(tensor(value))
    elif value and all(isinstance(v, float) for v in value):
        made.type = _FLOATS
        made.floats.extend(value)
    else:
        made.type = _INTS
        made.ints.extend(int(v) for v in value)
    return made


def __getattr__(name: str) -> Any:
    raise AttributeError("there is no message %r" % name)
