# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as operations."""

from __future__ import annotations

import itertools
import os
import weakref
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

import millrace._core as _core
from millrace.framework import dtypes, errors
from millrace.framework.graph import Tensor
from millrace.ops import gen_ops

__all__ = ["py_func", "numpy_function", "py_function"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_numbers = itertools.count()
_FRAMES = 3  # of the user's program that an error shows
_CODES = (
    (StopIteration, errors.OUT_OF_RANGE),
    (MemoryError, errors.RESOURCE_EXHAUSTED),
    (NotImplementedError, errors.UNIMPLEMENTED),
    ((ValueError, TypeError), errors.INVALID_ARGUMENT),
)


class _Mistake(Exception):
    """A function returned what its operation does not promise, or what is no tensor."""

    def __init__(self, message: str, code: int = errors.INVALID_ARGUMENT) -> None:
        super().__init__(message)
        self.code = code


class _Functions:
    """The functions that operations may call: each goes with the last graph that has such an operation."""

    def __init__(self) -> None:
        self.calls: "weakref.WeakSet[Callable[..., Any]]" = weakref.WeakSet()

    def size(self) -> int:
        """How many there are."""
        return len(self.calls)


_py_funcs = _Functions()


def _headline(error: BaseException) -> str:
    return "%s: %s" % (type(error).__name__, str(error).split("\n\t [[node ")[0])


def _described(error: BaseException) -> Tuple[int, str]:
    """The code and the message of what a function raised."""
    import traceback

    if isinstance(error, _Mistake):
        return error.code, str(error)
    code = next((code for kinds, code in _CODES if isinstance(error, kinds)), errors.UNKNOWN)
    if isinstance(error, errors.OpError):
        # A session within a function that was at the end of its data is no end of the data that call the function.
        code = errors.UNKNOWN if error.error_code == errors.OUT_OF_RANGE else error.error_code
    first = _headline(error)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_PACKAGE)][-_FRAMES:]
    shown = ['  File "%s", line %d, in %s%s' % (f.filename, f.lineno or 0, f.name, ": " + f.line if f.line else "") for f in frames]
    lines = [first, "Traceback (most recent call last):", *shown, first] if shown else [first]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        lines.append("caused by " + _headline(cause))
    return code, "\n".join(lines)


def _array(value: Any, what: str, dtype: dtypes.DType, position: int) -> np.ndarray:
    if isinstance(value, Tensor):
        raise _Mistake("%s returns the tensor '%s', but a function that runs in a step must return arrays" % (what, value.name))
    if dtype == dtypes.string and not isinstance(value, np.ndarray):
        array = np.array(value, object)  # NumPy's own string types drop trailing zero bytes
    else:
        array = np.asarray(value)
    if array.dtype.kind in "SUO":
        others = [e for e in array.flat if not isinstance(e, (str, bytes))] if array.dtype.kind == "O" else []
        if others:
            raise _Mistake("%d-th value returned by %s: Unsupported object type %s" % (position, what, type(others[0]).__name__), errors.INTERNAL)
        got = "string"
    else:
        try:
            got = dtypes.as_dtype(array.dtype).name
        except TypeError:
            raise _Mistake("%d-th value returned by %s: Unsupported numpy data type %s" % (position, what, array.dtype), errors.INTERNAL) from None
    if got != dtype.name:
        raise _Mistake("%d-th value returned by %s is %s, but expects %s" % (position, what, got, dtype.name))
    return array


def _wrapped(function: Callable[..., Any], what: str, types: List[dtypes.DType], inputs: Optional[type]) -> Callable[[List[Any]], List[Any]]:
    def call(values: List[Any]) -> List[Any]:
        if inputs is not None:
            values = [np.asarray(v).view(inputs) for v in values]
        result = function(*values)
        results = list(result) if isinstance(result, (list, tuple)) else [] if result is None else [result]
        if len(results) != len(types):
            raise _Mistake("%s returns %d values, but expects to see %d values." % (what, len(results), len(types)))
        for i, dtype in enumerate(types):
            results[i] = _array(results[i], what, dtype, i)
        return results

    return call


def _name_of(function: Any, token: str) -> str:
    """`pyfunc_0 (resize at program.py:12)`."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return "%s (%s%s)" % (token, name, " at %s:%d" % (code.co_filename, code.co_firstlineno) if code else "")


def _operation(make: Any, function: Any, inputs: Any, types: Any, name: Optional[str], view: Optional[type] = None) -> Any:
    if not callable(function):
        raise ValueError("Expected func to be callable, got func: %r" % (function,))
    listed = isinstance(types, (list, tuple))
    wanted = [dtypes.as_dtype(t) for t in (types if listed else [types])]
    token = "pyfunc_%d" % next(_numbers)
    call = _wrapped(function, _name_of(function, token), wanted, view)
    _py_funcs.calls.add(call)
    made = _core.PyFunction(token, call, _described, [t.as_datatype_enum for t in wanted])
    result = make(input=list(inputs), token=token, Tout=wanted, name=name)
    (result[0] if wanted else result).graph._py_functions.append(made)
    if not wanted:
        return [] if result.type == "PyFuncStateless" else result
    return result if listed else result[0]


def py_func(func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: Optional[str] = None) -> Any:
    """An operation that calls a Python function in each step. The function gets arrays, which are its own to change, and returns
    one array for each type in Tout; it lives as long as the graph, and is in no GraphDef. stateful=False: it depends on its inputs
    alone, so equal calls may become one."""
    return _operation(gen_ops.py_func if stateful else gen_ops.py_func_stateless, func, inp, Tout, name)


def numpy_function(func: Callable[..., Any], inp: Any, Tout: Any, name: Optional[str] = None, stateful: bool = True) -> Any:
    """`py_func`, under the name of later releases."""
    return py_func(func, inp, Tout, stateful, name)


class _EagerArray(np.ndarray):
    """What a function gets from py_function: an array that also has what programs ask of TensorFlow's eager tensors."""

    def numpy(self) -> Any:
        """The array, or the scalar."""
        array = self.view(np.ndarray)
        return array if self.ndim else array[()]


def py_function(func: Callable[..., Any], inp: Any, Tout: Any, name: Optional[str] = None) -> Any:
    """py_func whose function gets arrays that have a method numpy(). It has no gradient."""
    return _operation(gen_ops.eager_py_func, func, inp, Tout, name, _EagerArray)
