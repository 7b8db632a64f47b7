# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""TensorProtos and arrays: tf.make_tensor_proto, tf.make_ndarray; what is a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import _array_of, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework import static_values
from millrace.framework.graph import Tensor
from millrace.framework.static_values import constant_value_as_shape  # noqa: F401
from millrace.framework.tensor_protos import FIELDS, make_ndarray
from millrace.framework.tensor_shape import TensorShape, as_shape
from millrace.protos import definitions

# Types of which more than one element is written as bytes.
_AS_BYTES = (
    dtypes.float32,
    dtypes.float64,
    dtypes.int32,
    dtypes.uint8,
    dtypes.int16,
    dtypes.int8,
    dtypes.int64,
    dtypes.qint8,
    dtypes.quint8,
    dtypes.qint16,
    dtypes.quint16,
    dtypes.qint32,
)


def shape_tensor(shape: Any) -> Tensor:
    """The sizes of a shape as a tensor, int32 where there are none."""
    if isinstance(shape, (tuple, list)):
        return convert_to_tensor([getattr(size, "value", size) for size in shape], None if shape else dtypes.int32, name="shape")
    return convert_to_tensor(shape, name="shape")


def make_tensor_proto(values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False) -> Any:
    """A TensorProto of values. With a shape of more elements the last value stands for the rest; with allow_broadcast only a single one does."""
    if allow_broadcast and verify_shape:
        raise at_user_line(ValueError("allow_broadcast and verify_shape are not both allowed."))
    if isinstance(values, definitions.TensorProto):
        return values
    if values is None:
        raise at_user_line(ValueError("None values not supported."))
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    sizes = None if shape is None else [int(d) for d in as_shape(shape).as_list()]  # type: ignore[arg-type]
    given = isinstance(values, (np.ndarray, np.generic))
    if sizes is not None and 0 in sizes and not given:
        array = np.empty(sizes, (wanted or dtypes.as_dtype(_array_of(values, None).dtype)).as_numpy_dtype)
    elif wanted in dtypes.QUANTIZED_DTYPES and not given:
        array = _quantized(values, wanted)
    else:
        array = _array_of(values, wanted)
    kind = wanted or dtypes.as_dtype(array.dtype)
    if sizes is None:
        sizes = list(array.shape)
    elif verify_shape and sizes != list(array.shape):
        raise at_user_line(TypeError("Expected Tensor's shape: %s, got %s." % (tuple(sizes), array.shape)))
    count = int(np.prod(sizes, dtype=np.int64))
    if allow_broadcast and array.shape not in ((), (1,)) and array.size != count:
        raise at_user_line(TypeError("Expected Tensor's shape: %s, got %s." % (tuple(sizes), array.shape)))
    if array.size > count:
        raise at_user_line(ValueError("Too many elements provided. Needed at most %d, but received %d" % (count, array.size)))
    made = definitions.TensorProto(dtype=kind.as_datatype_enum, tensor_shape=TensorShape(sizes).as_proto())
    if array.size == count > 1 and kind in _AS_BYTES:
        if array.nbytes >= 1 << 31:
            raise at_user_line(ValueError("Cannot create a tensor proto whose content is larger than 2GB."))
        made.tensor_content = np.ascontiguousarray(array).tobytes()
    else:
        getattr(made, FIELDS.get(kind, "int_val")).extend(_elements(array, kind))
    return made


def _quantized(values: Any, dtype: Any) -> np.ndarray:
    """Quantized numbers are given as tuples of one number."""
    record = np.dtype([(dtype.name, dtype.as_numpy_dtype)])

    def check(part: Any) -> None:
        if isinstance(part, list):
            for inner in part:
                check(inner)
        elif not isinstance(part, tuple):
            raise at_user_line(TypeError("Expected %s, got %.60r of type '%s' instead." % (dtype.name, part, type(part).__name__)))

    check(values)
    return np.array(values, record)[dtype.name]


def _elements(array: np.ndarray, dtype: Any) -> Any:
    flat = array.ravel()
    if dtype == dtypes.string:
        return [v.encode() if isinstance(v, str) else bytes(v) for v in flat]
    if dtype.is_complex:
        return np.stack([flat.real, flat.imag], 1).ravel().tolist()
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.ascontiguousarray(flat).view(np.uint16).tolist()
    return flat.tolist()


MakeNdarray = make_ndarray


def ShapeEquals(tensor_proto: Any, shape: Any) -> bool:
    """Whether a TensorProto has a shape: sizes, or a TensorShapeProto."""
    if not isinstance(tensor_proto, definitions.TensorProto):
        raise TypeError("tensor_proto is not a tensor_pb2.TensorProto object")
    wanted = [d.size for d in shape.dim] if hasattr(shape, "dim") else list(shape)
    return [d.size for d in tensor_proto.tensor_shape.dim] == wanted


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor where it follows from constants and shapes; else None. What is no tensor, sparse one or variable comes back as it is.

    partial: of a stack along the first axis, a list in which what is not known is None.
    """
    if isinstance(tensor, Tensor):
        return static_values.constant_value(tensor, partial)
    return None if is_tensor(tensor) else tensor


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor, a sparse one or a variable: something of a graph that has values."""
    from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
    from millrace.ops.variables import Variable

    return isinstance(x, (Tensor, SparseTensor, IndexedSlices, Variable)) or bool(getattr(x, "is_tensor_like", False))
