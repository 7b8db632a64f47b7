# SPDX-License-Identifier: Apache-2.0
"""Assertions about tensors."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework import common_shapes, dtypes, tensor_shape
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph, name_scope
from millrace.framework.static_values import constant_value, told_value
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops

__all__ = [
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_proper_iterable",
    "assert_type",
    "assert_scalar",
    "assert_shapes",
    "is_non_decreasing",
    "is_strictly_increasing",
    "is_numeric_tensor",
]


def _comparison(name: str, op: Any, check: Any, sign: str) -> Any:
    def function(
        x: Any, y: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None, against: str = "y"
    ) -> Any:
        if sign == "==":  # which TensorFlow opens twice
            with name_scope(name, default, [x, y]):
                if x is y and isinstance(x, Tensor):
                    return control_flow_ops.no_op()
        with name_scope(name, default, [x, y]):
            x = convert_to_tensor(x, name="x")
            y = convert_to_tensor(y, x.dtype.base_dtype, "y")
            common_shapes.assert_broadcasts(x.get_shape(), y.get_shape())
            known = told_value(x), told_value(y)
            if known[0] is not None and known[1] is not None and not np.all(check(*known)):
                from millrace.framework import errors

                raise errors.InvalidArgumentError(
                    None, None, "%sCondition x %s %s did not hold: x = %s, y = %s" % (message + ": " if message else "", sign, against, known[0], known[1])
                )
            if data is None:
                data = [message or ""] if message or against != "y" else []
                data += ["Condition x %s %s did not hold element-wise:" % (sign, against), "x (%s) = " % x.name, x]
                data += ["y (%s) = " % y.name, y] if against == "y" else []
            return control_flow_ops.Assert(math_ops.reduce_all(op(x, y)), data, summarize)

    default = name
    function.__name__ = function.__qualname__ = name
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
    return assert_greater(x, 0, data, summarize, message, name or "assert_positive", "0")


def assert_negative(x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless x < 0 everywhere."""
    return assert_less(x, 0, data, summarize, message, name or "assert_negative", "0")


def assert_non_negative(x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless x >= 0 everywhere."""
    return assert_greater_equal(x, 0, data, summarize, message, name or "assert_non_negative", "0")


def assert_non_positive(x: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless x <= 0 everywhere."""
    return assert_less_equal(x, 0, data, summarize, message, name or "assert_non_positive", "0")


def _wanted_ranks(ranks: Any) -> Any:
    """(numbers where they are all known, tensors). ValueError and TypeError unless they are integer scalars."""
    tensors = [convert_to_tensor(r, name="rank") for r in ranks]
    for rank in tensors:
        if not rank.dtype.base_dtype == dtypes.int32:
            raise at_user_line(TypeError("Rank %s must be of type %s, got %s" % (rank.name, dtypes.int32, rank.dtype)))
    known = [constant_value(r) for r in tensors]
    for rank, value in zip(tensors, known):
        if (rank.get_shape().ndims not in (None, 0)) or value is not None and value.ndim != 0:
            raise at_user_line(ValueError("Rank must be a scalar."))
    return (None if any(v is None for v in known) else [int(v) for v in known]), tensors


def _rank_check(
    x: Any, ranks: Any, holds: Any, compare: Any, what: str, data: Any, summarize: Optional[int], message: Optional[str], default: str, name: Optional[str]
) -> Any:
    with name_scope(name, default, [x]):
        x = convert_to_tensor(x, name="x")
        known, tensors = _wanted_ranks(ranks)
        ndims = x.get_shape().ndims
        if ndims is not None and known is not None:
            if not any(holds(ndims, r) for r in known):
                raise at_user_line(
                    ValueError(
                        "%s. Tensor %s must have rank %s%s. Received rank %d, shape %s"
                        % (message or "", x.name, what.strip() and what.strip() + " ", known[0] if len(known) == 1 else tuple(known), ndims, x.get_shape())
                    )
                )
            return control_flow_ops.no_op(name="static_checks_determined_all_ok")
        if data is None:
            data = [message or "", ("Tensor %s must have rank %s" % (x.name, what)).rstrip(), *tensors, "Received shape: ", array_ops.shape(x)]
        scalars = [control_flow_ops.Assert(gen_ops.equal(array_ops.rank(r), 0), ["Rank must be a scalar: ", r]) for r in tensors if r.get_shape().ndims is None]
        with get_default_graph().control_dependencies(scalars):
            good = [compare(array_ops.rank(x), r) for r in tensors]
        return control_flow_ops.Assert(math_ops.reduce_any(array_ops.stack(good)), data, summarize)


def assert_rank(x: Any, rank: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """ValueError unless x has a rank; where that is not known yet, an operation that fails."""
    return _rank_check(x, [rank], lambda n, r: n == r, gen_ops.equal, "", data, summarize, message, "assert_rank", name)


def assert_rank_at_least(
    x: Any, rank: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None
) -> Any:
    """ValueError unless x has at least a rank; where that is not known yet, an operation that fails."""
    return _rank_check(x, [rank], lambda n, r: n >= r, gen_ops.greater_equal, "at least", data, summarize, message, "assert_rank_at_least", name)


def assert_rank_in(x: Any, ranks: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """ValueError unless x has one of several ranks; where that is not known yet, an operation that fails."""
    return _rank_check(x, list(ranks), lambda n, r: n == r, gen_ops.equal, "in", data, summarize, message, "assert_rank_in", name)


def assert_proper_iterable(values: Any) -> None:
    """TypeError unless it is an iterable of several values, which tensors, arrays and texts are not."""
    if isinstance(values, (Tensor, SparseTensor, np.ndarray, str, bytes)):
        raise at_user_line(TypeError('Expected argument "values" to be a "proper" iterable.  Found: %s' % type(values)))
    if not hasattr(values, "__iter__"):
        raise at_user_line(TypeError('Expected argument "values" to be iterable.  Found: %s' % type(values)))


def assert_scalar(tensor: Any, name: Optional[str] = None, message: Optional[str] = None) -> Any:
    """The tensor; ValueError unless it is a scalar."""
    with name_scope(name, "assert_scalar", [tensor]):
        tensor = convert_to_tensor(tensor)
    if tensor.get_shape().ndims not in (None, 0):
        raise at_user_line(ValueError("%sExpected scalar shape for %s, saw shape: %s." % (message or "", tensor.name, tensor.get_shape())))
    return tensor


def assert_type(tensor: Any, tf_type: Any, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """TypeError unless the tensor has a type."""
    with name_scope(name, "assert_type", [tensor]):
        tensor = convert_to_tensor(tensor)
        if tensor.dtype.base_dtype != tf_type:
            raise at_user_line(TypeError("%s  %s must be of type %s" % (message or "", tensor.name, tf_type)))
        return control_flow_ops.no_op(name="statically_determined_correct_type")


def assert_integer(x: Any, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """TypeError unless x is of integers."""
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise at_user_line(TypeError('%s  Expected "x" to be integer type.  Found: %s of dtype %s' % (message or "", x.name, x.dtype)))
        return control_flow_ops.no_op(name="statically_determined_was_integer")


def _steps(x: Any) -> Any:
    flat = gen_ops.reshape(convert_to_tensor(x), [-1])
    return flat[1:] - flat[:-1]


def is_non_decreasing(x: Any, name: Optional[str] = None) -> Any:
    """Whether no element is smaller than the one before."""
    with name_scope(name, "is_non_decreasing", [x]):
        d = _steps(x)
        return math_ops.reduce_all(gen_ops.greater_equal(d, math_ops.cast(0, d.dtype)))


def is_strictly_increasing(x: Any, name: Optional[str] = None) -> Any:
    """Whether each element is greater than the one before."""
    with name_scope(name, "is_strictly_increasing", [x]):
        d = _steps(x)
        return math_ops.reduce_all(gen_ops.greater(d, math_ops.cast(0, d.dtype)))


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    return hasattr(tensor, "dtype") and (tensor.dtype.is_floating or tensor.dtype.is_integer or tensor.dtype.is_complex)


def _size_of(symbol: Any) -> Optional[int]:
    """The size that an entry of a shape says; None for one that stands for any, or for one that others share."""
    try:
        return int(symbol)
    except (TypeError, ValueError):
        return None


def assert_shapes(shapes: Any, data: Any = None, summarize: Optional[int] = None, message: Optional[str] = None, name: Optional[str] = None) -> Any:
    """An operation that fails unless tensors have the shapes of (tensor, shape) pairs. Entries are sizes, names of sizes that are the same
    wherever they stand, or None and "." for any; a shape that begins with ... or "*" is of the last dimensions. A scalar has the shape (1,) too."""
    start = message + ".  " if message else ""

    def refuse(text: str, *values: Any) -> Exception:
        return at_user_line(ValueError(start + text % values))

    with name_scope(name, "assert_shapes"):
        pairs = [(convert_to_tensor(x), s) for x, s in (shapes.items() if isinstance(shapes, dict) else shapes) if s is not None]
        checks: List[Any] = []
        known: Dict[Any, Any] = {}  # of a symbol: its size, and where it was found
        for x, given_shape in pairs:
            if not hasattr(given_shape, "__iter__") and not hasattr(given_shape, "__getitem__"):
                iterable = "Specified shape must be an iterable.  An iterable has the attribute `__iter__` or `__getitem__`."
                raise refuse("Tensor %s.  %s  Received specified shape: %s", x.name, iterable, given_shape)
            symbols = list(given_shape)
            rest = bool(symbols) and (symbols[0] is Ellipsis or symbols[0] == "*")
            symbols = symbols[1:] if rest else symbols or [1]
            for i, symbol in enumerate(symbols):
                if symbol is Ellipsis or symbol == "*":
                    first = "Symbol `...` or `*` for a variable number of unspecified dimensions is only allowed as the first entry"
                    raise refuse("Tensor %s specified shape index %d.  %s", x.name, i + rest, first)
            shape, rank = x.get_shape(), x.get_shape().ndims
            if rank == 0:
                shape, rank = tensor_shape.TensorShape([1]), 1
            if rank is not None and (rank < len(symbols) if rest else rank != len(symbols)):
                least = "at least " if rest else ""
                raise refuse("Tensor %s must have rank %s%d.  Received rank %d, shape %s", x.name, least, len(symbols), x.get_shape().ndims, x.get_shape())
            if rank is None:
                wanted = array_ops.rank(x) >= len(symbols) if rest else gen_ops.equal(gen_ops.maximum(array_ops.rank(x), 1), len(symbols))
                told = [start + "Tensor %s must have rank" % x.name, len(symbols), "Received shape:", array_ops.shape(x)]
                checks.append(control_flow_ops.Assert(wanted, told if data is None else data, summarize))
            for i, symbol in enumerate(symbols):
                if symbol is None or symbol == ".":
                    continue
                at = i - len(symbols)
                label = at if rest else i
                size = _size_of(symbol)
                found = shape.as_list()[at] if rank is not None else None
                with get_default_graph().control_dependencies(list(checks)):
                    dynamic = array_ops.concat([array_ops.ones([len(symbols)], dtypes.int32), array_ops.shape(x)], 0)[at] if found is None else found
                here = "Specified by tensor %s dimension %d" % (x.name, label)
                want, source = known.setdefault(symbol, (dynamic, here)) if size is None else (size, "Specified explicitly")
                if isinstance(want, int) and isinstance(dynamic, int):
                    if want != dynamic:
                        text = "%s.  Tensor %s dimension %s must have size %d.  Received size %d, shape %s"
                        raise refuse(text, source, x.name, label, want, dynamic, x.get_shape())
                elif want is not dynamic:
                    told = [start + source, "Tensor %s dimension" % x.name, label, "must have size", want, "Received shape:", array_ops.shape(x)]
                    checks.append(control_flow_ops.Assert(gen_ops.equal(dynamic, want), told if data is None else data, summarize))
                    if isinstance(dynamic, int):
                        known[symbol] = dynamic, here
        return control_flow_ops.group(*checks) if checks else control_flow_ops.no_op(name="static_checks_determined_all_ok")
