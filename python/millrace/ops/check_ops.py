# SPDX-License-Identifier: Apache-2.0
"""Assertions about tensors."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework.convert import constant_value, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import control_flow_ops, gen_ops, math_ops

__all__ = ["assert_equal", "assert_greater", "assert_greater_equal", "assert_integer", "assert_less", "assert_less_equal", "assert_negative",
           "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive", "assert_rank", "assert_rank_at_least",
           "assert_rank_in", "assert_type", "assert_scalar", "is_non_decreasing", "is_strictly_increasing", "is_numeric_tensor"]


def _comparison(name: str, op: Any, check: Any, sign: str) -> Any:
    def function(x: Any, y: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
        with name_scope(name, default, [x, y]):
            x = convert_to_tensor(x, name="x")
            y = convert_to_tensor(y, x.dtype.base_dtype, "y")
            known = constant_value(x), constant_value(y)
            if known[0] is not None and known[1] is not None and not np.all(check(*known)):
                from millrace.framework import errors
                raise errors.InvalidArgumentError(None, None, "%sCondition x %s y did not hold: x = %s, y = %s"  # type: ignore[call-arg, arg-type]
                                                  % (message + ": " if message else "", sign, known[0], known[1]))
            if data is None:
                data = [message or "", "Condition x %s y did not hold element-wise:" % sign, "x (%s) = " % x.name, x, "y (%s) = " % y.name, y]
            return control_flow_ops.Assert(math_ops.reduce_all(op(x, y)), data, summarize)

    default = name
    function.__name__ = name
    function.__doc__ = "An operation that fails unless x %s y everywhere." % sign
    return function


assert_equal = _comparison("assert_equal", gen_ops.equal, np.equal, "==")
assert_none_equal = _comparison("assert_none_equal", gen_ops.not_equal, np.not_equal, "!=")
assert_less = _comparison("assert_less", gen_ops.less, np.less, "<")
assert_less_equal = _comparison("assert_less_equal", gen_ops.less_equal, np.less_equal, "<=")
assert_greater = _comparison("assert_greater", gen_ops.greater, np.greater, ">")
assert_greater_equal = _comparison("assert_greater_equal", gen_ops.greater_equal, np.greater_equal, ">=")


def assert_positive(x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless x > 0 everywhere."""
    return assert_greater(x, 0, data, summarize, message, name or "assert_positive")


def assert_negative(x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless x < 0 everywhere."""
    return assert_less(x, 0, data, summarize, message, name or "assert_negative")


def assert_non_negative(x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless x >= 0 everywhere."""
    return assert_greater_equal(x, 0, data, summarize, message, name or "assert_non_negative")


def assert_non_positive(x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless x <= 0 everywhere."""
    return assert_less_equal(x, 0, data, summarize, message, name or "assert_non_positive")


def _rank_check(x: Any, good: Any, what: str, message: Optional[str], name: Optional[str]) -> Any:
    x = convert_to_tensor(x)
    ndims = x.get_shape().ndims
    if ndims is not None:
        if not good(ndims):
            raise at_user_line(ValueError("%sTensor %s must have %s. Received rank %d, shape %s" % ((message or "") + " ", x.name, what, ndims, x.get_shape())))
        return control_flow_ops.no_op(name="static_checks_determined_all_ok")
    return control_flow_ops.no_op(name="rank_is_not_known")


def assert_rank(x: Any, rank: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """ValueError unless x has a rank."""
    return _rank_check(x, lambda n: n == int(rank), "rank %s" % rank, message, name)


def assert_rank_at_least(x: Any, rank: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """ValueError unless x has at least a rank."""
    return _rank_check(x, lambda n: n >= int(rank), "rank at least %s" % rank, message, name)


def assert_rank_in(x: Any, ranks: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """ValueError unless x has one of several ranks."""
    return _rank_check(x, lambda n: n in ranks, "a rank in %s" % (ranks,), message, name)


def assert_scalar(tensor: Any, name: Optional[str] = None) -> Any:
    """The tensor; ValueError unless it is a scalar."""
    tensor = convert_to_tensor(tensor)
    if tensor.get_shape().ndims not in (None, 0):
        raise at_user_line(ValueError("Expected scalar shape for %s, saw shape: %s." % (tensor.name, tensor.get_shape())))
    return tensor


def assert_type(tensor: Any, tf_type: Any, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """TypeError unless the tensor has a type."""
    tensor = convert_to_tensor(tensor)
    if tensor.dtype != tf_type:
        raise at_user_line(TypeError("%s  %s must be of type %s" % (message or "", tensor.name, tf_type)))
    return control_flow_ops.no_op()


def assert_integer(x: Any, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """TypeError unless x is of integers."""
    x = convert_to_tensor(x)
    if not x.dtype.is_integer:
        raise at_user_line(TypeError('%s  Expected "x" to be integer type.  Found: %s of dtype %s' % (message or "", x.name, x.dtype)))
    return control_flow_ops.no_op()


def _steps(x: Any) -> Any:
    flat = gen_ops.reshape(convert_to_tensor(x), [-1])
    return flat[1:] - flat[:-1]


def is_non_decreasing(x: Any, name: Optional[str] = None) -> Any:
    """Whether no element is smaller than the one before."""
    d = _steps(x)
    return math_ops.reduce_all(gen_ops.greater_equal(d, math_ops.cast(0, d.dtype)))


def is_strictly_increasing(x: Any, name: Optional[str] = None) -> Any:
    """Whether each element is greater than the one before."""
    d = _steps(x)
    return math_ops.reduce_all(gen_ops.greater(d, math_ops.cast(0, d.dtype)))


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    return hasattr(tensor, "dtype") and (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_complex)
