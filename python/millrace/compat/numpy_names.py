# SPDX-License-Identifier: Apache-2.0
"""What NumPy took away since programs were written for TensorFlow 1.x: `python -m millrace.compat` puts it back.

Only what is missing is added, with its old meaning: names of types and constants, functions under their old names, rows of
different lengths as an array of objects, integers cut to small types, generators of arrays, methods of arrays, arrays of one
element as numbers, and how numbers print.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import math
import sys
from typing import Any, Callable, Dict

import numpy as np

import millrace._core as _core


def _names() -> Dict[str, Any]:
    names: Dict[str, Any] = {
        "bool": bool,
        "int": int,
        "float": float,
        "complex": complex,
        "object": object,
        "str": str,
        "long": int,
        "unicode": str,
        "float_": np.float64,
        "complex_": np.complex128,
        "string_": np.bytes_,
        "unicode_": np.str_,
        "bool8": np.bool_,
        "int0": np.intp,
        "uint0": np.uintp,
        "object0": np.object_,
        "longfloat": np.longdouble,
        "cfloat": np.complex128,
        "singlecomplex": np.complex64,
        "NaN": np.nan,
        "NAN": np.nan,
        "Inf": np.inf,
        "Infinity": np.inf,
        "infty": np.inf,
        "PINF": np.inf,
        "NINF": -np.inf,
        "PZERO": 0.0,
        "NZERO": -0.0,
        "math": math,
        "product": np.prod,
        "cumproduct": np.cumprod,
        "alltrue": np.all,
        "sometrue": np.any,
        "round_": np.round,
        "row_stack": np.vstack,
        "trapz": getattr(np, "trapezoid", None),
        "mat": np.asmatrix,
        "rank": np.ndim,
        "asscalar": lambda a: a.item(),
        "msort": lambda a: np.sort(a, axis=0),
        "asfarray": lambda a, dtype=np.float64: np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64),
        "in1d": lambda a, b, assume_unique=False, invert=False: np.isin(np.ravel(a), b, assume_unique, invert),
    }
    return {name: value for name, value in names.items() if value is not None}


def _tolerant(make: Callable[..., Any]) -> Callable[..., Any]:
    """Rows of different lengths give an array of objects, as they did before NumPy 1.24."""

    def array(*args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except ValueError as error:
            if "inhomogeneous" not in str(error) or len(args) > 1 or kwargs.get("dtype") is not None:
                raise
            return make(*args, **dict(kwargs, dtype=object))

    array.__name__, array.__doc__, array.__wrapped__ = make.__name__, make.__doc__, make  # type: ignore[attr-defined]
    return array


def _small(make: Callable[..., Any]) -> Callable[..., Any]:
    """Python's integers lose the bits that a small type has not, as they did before NumPy 2."""

    def array(*args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except OverflowError as error:
            dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
            if dtype is None or not args or "out of bounds" not in str(error) or np.dtype(dtype).itemsize == 8 or _called_by_package():
                raise
            return make(make(args[0], np.int64).astype(dtype), *args[1:], **kwargs)

    return functools.wraps(make)(array)


def _called_by_package() -> bool:
    """Whether Millrace itself calls a function of NumPy that this module has wrapped: what does not fit into a tensor is refused there."""
    frame: Any = sys._getframe(1)
    while frame.f_globals is globals():
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).startswith("millrace.")


def _of_generator(join: Callable[..., Any]) -> Callable[..., Any]:
    """Of arrays that a generator, or a map, gives."""

    def joined(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        return join(arrays if hasattr(arrays, "__len__") else list(arrays), *args, **kwargs)

    return functools.wraps(join)(joined)


def _of_ragged(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Of rows of different lengths, lists are compared, added and counted."""

    def reduced(a: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return reduce(a, *args, **kwargs)
        except ValueError as error:
            if "inhomogeneous" not in str(error):
                raise
            return reduce(np.array(a, dtype=object), *args, **kwargs)

    return functools.wraps(reduce)(reduced)


def _listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """With a list for a tuple."""

    def listed(*args: Any, **kwargs: Any) -> Any:
        return list(function(*args, **kwargs))

    return functools.wraps(function)(listed)


def _fromstring(original: Callable[..., Any]) -> Callable[..., Any]:
    def fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", **kwargs: Any) -> Any:
        if sep != "":
            return original(string, dtype, count, sep=sep, **kwargs)
        return np.frombuffer(string.encode("latin-1") if isinstance(string, str) else string, dtype, count).copy()

    return fromstring


def _reshape(original: Callable[..., Any]) -> Callable[..., Any]:
    def reshape(a: Any, *args: Any, **kwargs: Any) -> Any:
        if "newshape" in kwargs:
            kwargs["shape"] = kwargs.pop("newshape")
        return original(a, *args, **kwargs)

    return reshape


def _by_interpolation(original: Callable[..., Any]) -> Callable[..., Any]:
    """`interpolation` is the older name of `method`."""

    def found(*args: Any, **kwargs: Any) -> Any:
        if "interpolation" in kwargs:
            kwargs["method"] = kwargs.pop("interpolation")
        return original(*args, **kwargs)

    return functools.wraps(original)(found)


def _issubdtype(original: Callable[..., Any]) -> Callable[..., Any]:
    """float, int and complex meant all numbers of their kind, not those of their own size."""
    kinds: Dict[Any, Any] = {float: np.floating, int: np.signedinteger, complex: np.complexfloating}

    def issubdtype(arg1: Any, arg2: Any) -> bool:
        return bool(original(arg1, kinds.get(arg2, arg2) if isinstance(arg2, type) else arg2))

    return functools.wraps(original)(issubdtype)


def _random_integers(low: int, high: Any = None, size: Any = None) -> Any:
    return np.random.randint(1 if high is None else low, (low if high is None else high) + 1, size)


def _itemset(self: Any, *args: Any) -> None:
    if len(args) == 1:
        self.reshape(-1)[0] = args[0]
    elif isinstance(args[0], tuple) or len(args) > 2:
        self[args[0] if len(args) == 2 else args[:-1]] = args[-1]
    else:
        self.flat[args[0]] = args[-1]


def _add_methods() -> None:
    """Into the dictionary of a type that C made, which only the interpreter's own reference leads to."""
    methods = {
        "tostring": np.ndarray.tobytes,
        "itemset": _itemset,
        "ptp": lambda self, *args, **kwargs: np.ptp(self, *args, **kwargs),
        "newbyteorder": lambda self, order="S": self.view(self.dtype.newbyteorder(order)),
    }
    for owner in (np.ndarray, np.generic):
        missing = {name: method for name, method in methods.items() if not hasattr(owner, name) and (owner is np.ndarray or name == "tostring")}
        found = [d for d in gc.get_referents(owner.__dict__) if isinstance(d, dict)]
        if not missing or len(found) != 1:
            continue
        found[0].update({n: owner.tobytes if n == "tostring" else m for n, m in missing.items()})
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def install() -> None:
    """Adds what this NumPy lacks."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in _names().items():
            if not hasattr(np, name):
                setattr(np, name, value)
        for name in np.__all__:  # np.lib had most of the functions
            value = getattr(np, name)
            if callable(value) and not isinstance(value, (np.ufunc, type)) and not hasattr(np.lib, name):
                setattr(np.lib, name, value)
        if not hasattr(np.testing, "utils"):
            np.testing.utils = np.testing  # type: ignore[attr-defined]
        np.random.random_integers = _random_integers  # type: ignore[assignment]
    if not np.issubdtype(np.float32, float):
        np.issubdtype = _issubdtype(np.issubdtype)
    major, minor = (int(part) for part in np.__version__.split(".")[:2])
    if major >= 2:
        np.set_printoptions(legacy="1.25")  # a number in a list prints as 0.5, not np.float32(0.5)
        np.meshgrid = _listed(np.meshgrid)
        np.array, np.asarray, np.asanyarray = _small(np.array), _small(np.asarray), _small(np.asanyarray)
    if (major, minor) >= (1, 24):
        np.array, np.asarray, np.asanyarray = _tolerant(np.array), _tolerant(np.asarray), _tolerant(np.asanyarray)
        for name in ("max", "min", "amax", "amin", "sum", "nan_to_num", "ndim", "shape", "size"):
            setattr(np, name, _of_ragged(getattr(np, name)))
        for name in ("stack", "hstack", "vstack", "dstack", "column_stack"):
            setattr(np, name, _of_generator(getattr(np, name)))
    if (major, minor) >= (1, 22):
        for name in ("percentile", "nanpercentile", "quantile", "nanquantile"):
            setattr(np, name, _by_interpolation(getattr(np, name)))
    if (major, minor) >= (2, 1):
        np.fromstring, np.reshape = _fromstring(np.fromstring), _reshape(np.reshape)
    _core.restore_old_numpy()
    _add_methods()
