# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""TensorProtos and arrays: tf.make_tensor_proto, tf.make_ndarray."""
from __future__ import annotations

from typing import Any

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import _array_of, constant_value, constant_value_as_shape  # noqa: F401
from millrace.framework.tensor_shape import TensorShape
from millrace.protos import definitions


def make_tensor_proto(values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False) -> Any:
    """A TensorProto of values."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    array = _array_of(values, wanted)
    if shape is not None:
        array = array.reshape([int(d) for d in shape])
    made = definitions.TensorProto(dtype=(wanted or dtypes.as_dtype(array.dtype)).as_datatype_enum)
    made.tensor_shape.CopyFrom(TensorShape(array.shape).as_proto())
    if array.dtype.kind in "OSU":
        made.string_val.extend([v.encode() if isinstance(v, str) else bytes(v) for v in array.ravel()])
    else:
        made.tensor_content = np.ascontiguousarray(array).tobytes()
    return made


def make_ndarray(tensor: Any) -> np.ndarray:
    """The array of a TensorProto."""
    shape = [d.size for d in tensor.tensor_shape.dim]
    count = int(np.prod(shape, dtype=np.int64))
    dtype = dtypes.from_number(tensor.dtype)
    if dtype == dtypes.string:
        values: Any = np.array(list(tensor.string_val), dtype=object)
    elif tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype=dtype.as_numpy_dtype).copy().reshape(shape)
    else:
        field = {dtypes.float32: "float_val", dtypes.float64: "double_val", dtypes.int64: "int64_val", dtypes.bool_: "bool_val",
                 dtypes.complex64: "scomplex_val", dtypes.complex128: "dcomplex_val", dtypes.uint32: "uint32_val", dtypes.uint64: "uint64_val",
                 dtypes.float16: "half_val", dtypes.bfloat16: "half_val"}.get(dtype, "int_val")
        values = np.array(list(getattr(tensor, field)))
        if field == "half_val":
            values = values.astype(np.uint16).view(dtype.as_numpy_dtype)
        elif dtype.is_complex:
            values = values[0::2] + 1j * values[1::2]
        values = values.astype(dtype.as_numpy_dtype)
    if len(values) < count:
        values = np.concatenate([values, np.repeat(values[-1:] if len(values) else np.zeros(1, values.dtype), count - len(values))])
    return values.reshape(shape)


MakeNdarray = make_ndarray
