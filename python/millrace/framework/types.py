# SPDX-License-Identifier: Apache-2.0
"""Names for what functions take, for annotations."""

from typing import Any, Sequence, Union

from millrace.framework.dtypes import DType
from millrace.framework.tensor_shape import TensorShape

TensorLike = Any  # a tensor, a variable, or a value that converts to one
DTypeLike = Union[DType, str, int, type, Any]
ShapeLike = Union[TensorShape, Sequence[Any], int, None]
