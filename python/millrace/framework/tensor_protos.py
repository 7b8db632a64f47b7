# SPDX-License-Identifier: Apache-2.0
"""What a TensorProto holds, as an array."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np

from millrace.framework import dtypes

# Fields that hold the elements of a type one by one; those of others are in int_val.
FIELDS: Dict[Any, str] = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.int64: "int64_val",
    dtypes.bool_: "bool_val",
    dtypes.string: "string_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
}


def make_ndarray(tensor: Any) -> np.ndarray:
    """The array of a TensorProto."""
    shape = [d.size for d in tensor.tensor_shape.dim]
    count = int(np.prod(shape, dtype=np.int64))
    dtype = dtypes.from_number(tensor.dtype)
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype=dtype.as_numpy_dtype).copy().reshape(shape)
    field = FIELDS.get(dtype, "int_val")
    if dtype == dtypes.string:
        values: Any = np.array(list(tensor.string_val), dtype=object)
    else:
        values = np.array(list(getattr(tensor, field)))
        if field == "half_val":
            values = values.astype(np.uint16).view(dtype.as_numpy_dtype)
        elif dtype.is_complex:
            values = values[0::2] + 1j * values[1::2]
        values = values.astype(dtype.as_numpy_dtype)
    if len(values) < count:
        values = np.concatenate([values, np.repeat(values[-1:] if len(values) else np.zeros(1, values.dtype), count - len(values))])
    return values.reshape(shape)
