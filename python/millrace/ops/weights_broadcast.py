# SPDX-License-Identifier: Apache-2.0
"""Weights of losses and metrics: a scalar, or of the rank of the values with each dimension 1 or that of the values."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops

_REFUSED = "weights can not be broadcast to values."


def _mismatch(weights: List[Optional[int]], values: List[Optional[int]]) -> Optional[int]:
    """The first dimension whose sizes are known and do not fit."""
    for i, (w, v) in enumerate(zip(weights, values)):
        if w is not None and v is not None and w not in (1, v):
            return i
    return None


def _fits(weights_shape: Tensor, values_shape: Tensor) -> Tensor:
    """Whether shapes of the same rank fit, found out when it runs."""
    either = gen_ops.logical_or(gen_ops.equal(weights_shape, values_shape), gen_ops.equal(weights_shape, 1))
    return math_ops.reduce_all(either)


def assert_broadcastable(weights: Any, values: Any) -> Operation:
    """An operation that fails unless weights can be broadcast to values; ValueError where the shapes show already that they cannot."""
    with name_scope(None, "assert_broadcastable", [weights, values]) as scope:
        with name_scope(None, "weights", [weights]) as inner:
            weights = convert_to_tensor(weights, name=inner)
        with name_scope(None, "values", [values]) as inner:
            values = convert_to_tensor(values, name=inner)
        given, wanted = weights.get_shape(), values.get_shape()
        if given.ndims == 0:
            return control_flow_ops.no_op(name="static_scalar_check_success")
        if given.ndims is not None and wanted.ndims is not None:
            if given.ndims != wanted.ndims:
                raise at_user_line(
                    ValueError("%s values.rank=%s. weights.rank=%s. values.shape=%s. weights.shape=%s." % (_REFUSED, wanted.ndims, given.ndims, wanted, given))
                )
            if given.is_fully_defined() and wanted.is_fully_defined():
                at = _mismatch(given.as_list(), wanted.as_list())
                if at is not None:
                    raise at_user_line(
                        ValueError("%s Mismatch at dim %s. values.shape=%s weights.shape=%s." % (_REFUSED, at, wanted.as_list(), given.as_list()))
                    )
                return control_flow_ops.no_op(name="static_dims_check_success")
        weights_shape, values_shape = array_ops.shape(weights), array_ops.shape(values)
        weights_rank, values_rank = array_ops.rank(weights), array_ops.rank(values)
        is_scalar = gen_ops.equal(0, weights_rank, name="is_scalar")
        same_rank = gen_ops.equal(values_rank, weights_rank, name="is_same_rank")

        def of_same_rank() -> Any:
            return control_flow_ops.cond(same_rank, lambda: _fits(weights_shape, values_shape), lambda: array_ops.identity(same_rank))

        valid = control_flow_ops.cond(is_scalar, lambda: array_ops.identity(is_scalar), of_same_rank, name="is_valid_shape")
        return control_flow_ops.Assert(
            valid, [_REFUSED, "weights.shape=", weights.name, weights_shape, "values.shape=", values.name, values_shape, "is_scalar=", is_scalar], name=scope
        )


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """Weights with the shape of values."""
    with name_scope(None, "broadcast_weights", [weights, values]) as scope:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, values.dtype.base_dtype, name="weights")
        given, wanted = weights.get_shape(), values.get_shape()
        if given.is_fully_defined() and wanted.is_fully_defined() and given.as_list() == wanted.as_list():
            return weights
        with control_dependencies([assert_broadcastable(weights, values)]):
            return gen_ops.mul(weights, array_ops.ones_like(values), name=scope)
