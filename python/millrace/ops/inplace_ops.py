# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.ops.inplace_ops: rows of a tensor replaced, added to or subtracted from, by their numbers."""

from __future__ import annotations

from typing import Any, Callable

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, math_ops


def _changed(x: Any, i: Any, v: Any, op: Callable[..., Tensor]) -> Tensor:
    """The op at rows i, at one row i, or at all of x where i is None."""
    x = convert_to_tensor(x)
    v = convert_to_tensor(v, x.dtype.base_dtype)
    if i is None:
        return array_ops.reshape(op(array_ops.reshape(x, [1, -1]), [0], array_ops.reshape(v, [1, -1])), array_ops.shape(x))
    i = math_ops.cast(convert_to_tensor(i), dtypes.int32)
    if i.get_shape().ndims == 0:
        return op(x, array_ops.reshape(i, [1]), array_ops.expand_dims(v, 0))
    return op(x, i, v)


def alias_inplace_update(x: Any, i: Any, v: Any) -> Tensor:
    """x with v in rows i. x may be changed, too: use the result alone."""
    return _changed(x, i, v, gen_ops.inplace_update)


def alias_inplace_add(x: Any, i: Any, v: Any) -> Tensor:
    """x with v added to rows i. x may be changed, too: use the result alone."""
    return _changed(x, i, v, gen_ops.inplace_add)


def alias_inplace_sub(x: Any, i: Any, v: Any) -> Tensor:
    """x with v subtracted from rows i. x may be changed, too: use the result alone."""
    return _changed(x, i, v, gen_ops.inplace_sub)


def empty_like(x: Any, init: bool = False) -> Tensor:
    """A tensor of the type and shape of x: zeros with `init`, else of any values."""
    x = convert_to_tensor(x)
    return gen_ops.empty(array_ops.shape(x), x.dtype.base_dtype, init=bool(init))


def inplace_update(x: Any, i: Any, v: Any) -> Tensor:
    """A copy of x with v in rows i."""
    return alias_inplace_update(gen_ops.deep_copy(x), i, v)


def inplace_add(x: Any, i: Any, v: Any) -> Tensor:
    """A copy of x with v added to rows i."""
    return alias_inplace_add(gen_ops.deep_copy(x), i, v)


def inplace_sub(x: Any, i: Any, v: Any) -> Tensor:
    """A copy of x with v subtracted from rows i."""
    return alias_inplace_sub(gen_ops.deep_copy(x), i, v)
