# SPDX-License-Identifier: Apache-2.0
"""Calls of functions of tensors with ragged tensors: these go to ops/ragged, all others straight on. Those of matrices take LinearOperators too.

A function takes part when `install` has wrapped it. Classes whose objects are handed on say `dispatches = True`; ops/ragged is loaded by the
first such call.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, Dict, Iterable


def _concerns(value: Any) -> bool:
    if getattr(value, "dispatches", False) is True:
        return True
    return type(value) in (list, tuple) and any(getattr(v, "dispatches", False) is True for v in value)


def _handlers() -> Any:
    return importlib.import_module("millrace.ops.ragged.handlers")


def operator(name: str) -> Callable[..., Any]:
    """The operator of ragged tensors that Python calls by this name."""

    def call(self: Any, *others: Any) -> Any:
        return _handlers().OPERATORS[name](self, *others)

    call.__name__ = name
    return call


def wrapped(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function, which hands calls with ragged arguments to the one of its name in ops/ragged/handlers.py."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if _concerns(value):
                break
        else:
            for value in kwargs.values():
                if _concerns(value):
                    break
            else:
                return function(*args, **kwargs)
        return _handlers().find(name, function)(*args, **kwargs)

    return call


def for_operators(function: Callable[..., Any], method: str) -> Callable[..., Any]:
    """The function, which hands calls with a LinearOperator first or second to the operator's method."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(getattr(type(value), "acts_as_a_matrix", False) for value in args[:2]):
            return importlib.import_module("millrace.ops.linalg_algebra").called(method, *args, **kwargs)
        return function(*args, **kwargs)

    return call


def _put(namespace: Dict[str, Any], name: str, function: Callable[..., Any]) -> None:
    """Puts a function into a module, which pickle looks for it in."""
    function.__module__, function.__qualname__ = namespace["__name__"], name
    namespace[name] = function


def install_for_operators(namespace: Dict[str, Any], names: Iterable[str]) -> None:
    """Wraps the functions of these names in a module: they take operators for matrices."""
    for name in names:
        _put(namespace, name, for_operators(namespace[name], OPERATORS[name]))


def install(namespace: Dict[str, Any], names: Iterable[str]) -> None:
    """Wraps the functions of these names in a module."""
    for name in names:
        if name in namespace:
            _put(namespace, name, wrapped(namespace[name], name))


UNARY = """string_lower string_upper regex_full_match abs acos acosh asin asinh atan atanh as_string cast ceil check_numerics clip_by_value conj cos cosh decode_base64 decode_compressed decode_raw digamma encode_base64
erf erfc exp expm1 floor identity imag invert is_finite is_inf is_nan lgamma log log1p log_sigmoid logical_not negative ones_like real reciprocal regex_replace
rint round rsqrt saturate_cast sigmoid sign sin sinh sqrt square string_length string_strip string_to_hash_bucket string_to_hash_bucket_fast
string_to_hash_bucket_strong string_to_number substr tan tanh to_float to_double to_int32 to_int64 unicode_script zeros_like angle""".split()
BINARY = """add atan2 bitwise_and bitwise_or bitwise_xor complex div div_no_nan divide equal floordiv floormod greater greater_equal left_shift less less_equal
logical_and logical_or logical_xor maximum minimum mod multiply not_equal pow realdiv right_shift squared_difference subtract truediv truncatediv truncatemod""".split()
NARY = ["add_n", "string_join"]
REDUCTIONS = ["reduce_all", "reduce_any", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum"]
SEGMENTS = ["unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum"]
ARRAYS = [
    "batch_gather",
    "boolean_mask",
    "concat",
    "dynamic_partition",
    "expand_dims",
    "gather",
    "gather_nd",
    "map_fn",
    "one_hot",
    "rank",
    "reduce_join",
    "reverse",
    "size",
    "squeeze",
    "stack",
    "tile",
    "where",
]
NAMES = UNARY + BINARY + NARY + REDUCTIONS + SEGMENTS + ARRAYS
OPERATORS = {  # by the names of tf.linalg and of tf: the method
    "adjoint": "adjoint",
    "cholesky": "cholesky",
    "det": "determinant",
    "diag_part": "diag_part",
    "inv": "inverse",
    "logdet": "log_abs_determinant",
    "matmul": "matmul",
    "matrix_determinant": "determinant",
    "matrix_inverse": "inverse",
    "matrix_solve": "solve",
    "solve": "solve",
    "trace": "trace",
}
