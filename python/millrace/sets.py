# SPDX-License-Identifier: Apache-2.0
"""Sets along the last dimension of tensors, dense or sparse."""

from __future__ import annotations

from typing import Any, Dict

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import gen_ops

__all__ = ["difference", "intersection", "set_difference", "set_intersection", "set_size", "set_union", "size", "union"]

_TYPES = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.string)


def _checked(value: Any) -> Any:
    found = convert_to_tensor_or_sparse_tensor(value)
    if found.dtype.base_dtype not in _TYPES:
        raise at_user_line(TypeError("Invalid dtype `%s`, not in supported dtypes: `%s`." % (found.dtype, list(_TYPES))))
    return found


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different values each row along the last dimension of a sparse tensor has."""
    a = _checked(a)
    if not isinstance(a, SparseTensor):
        raise at_user_line(TypeError("Expected `SparseTensor`, got %s." % a))
    return gen_ops.set_size(a.indices, a.values, a.dense_shape, validate_indices=validate_indices)


def _operation(a: Any, b: Any, operation: str, validate_indices: bool) -> SparseTensor:
    a, b = _checked(a), _checked(b)
    if a.dtype.base_dtype != b.dtype.base_dtype:
        raise at_user_line(TypeError("Types don't match, %s vs %s." % (a.dtype, b.dtype)))
    flipped = isinstance(a, SparseTensor) and not isinstance(b, SparseTensor)
    if flipped:  # the op takes the dense one first
        a, b, operation = b, a, {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
    made: Any
    attrs: Dict[str, Any] = {"set_operation": operation, "validate_indices": validate_indices}
    if isinstance(a, SparseTensor):
        made = gen_ops.sparse_to_sparse_set_operation(a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, **attrs)
    elif isinstance(b, SparseTensor):
        made = gen_ops.dense_to_sparse_set_operation(a, b.indices, b.values, b.dense_shape, **attrs)
    else:
        made = gen_ops.dense_to_dense_set_operation(a, b, **attrs)
    return SparseTensor(*made)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """What both rows have, sorted."""
    return _operation(a, b, "intersection", validate_indices)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """What rows of a have and b's have not, sorted; the other way round without aminusb."""
    return _operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """What either row has, sorted."""
    return _operation(a, b, "union", validate_indices)


size, intersection, difference, union = set_size, set_intersection, set_difference, set_union
