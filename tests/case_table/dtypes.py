# SPDX-License-Identifier: Apache-2.0
"""The element types, with NumPy's view of each: `wide` for oracles, `stored` for what a tensor holds."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class DType:
    number: int  # in the wire format
    name: str
    kind: str  # f, c, i, u, b or s; other kinds have no values here
    stored: str = ""  # NumPy's name of what a tensor holds
    wide: str = ""  # what an oracle sees

    def __str__(self) -> str:
        return self.name

    @property
    def is_inexact(self) -> bool:
        return self.kind in "fc"


BFLOAT16 = DType(14, "bfloat16", "f", "uint16", "float64")
ALL = [
    DType(1, "float32", "f", "float32", "float64"),
    DType(2, "float64", "f", "float64", "float64"),
    DType(3, "int32", "i", "int32", "int64"),
    DType(4, "uint8", "u", "uint8", "int64"),
    DType(5, "int16", "i", "int16", "int64"),
    DType(6, "int8", "i", "int8", "int64"),
    DType(7, "string", "s", "object", "object"),
    DType(8, "complex64", "c", "complex64", "complex128"),
    DType(9, "int64", "i", "int64", "int64"),
    DType(10, "bool", "b", "bool", "bool"),
    BFLOAT16,
    DType(17, "uint16", "u", "uint16", "int64"),
    DType(18, "complex128", "c", "complex128", "complex128"),
    DType(19, "float16", "f", "float16", "float64"),
    DType(20, "resource", "r"),
    DType(21, "variant", "v"),
    DType(22, "uint32", "u", "uint32", "int64"),
    DType(23, "uint64", "u", "uint64", "uint64"),
]
BY_NUMBER = {t.number: t for t in ALL}
BY_NAME = {t.name: t for t in ALL}
F32, F64, I32, I64, BOOL, STRING = (BY_NAME[n] for n in "float32 float64 int32 int64 bool string".split())
C64, C128, U8, I16 = (BY_NAME[n] for n in "complex64 complex128 uint8 int16".split())
RESOURCE = BY_NAME["resource"]
WITH_VALUES = [t for t in ALL if t.stored]

# Largest error of one rounding, relative; what a case may differ by is a multiple of it.
RELATIVE = {"float16": 1e-3, "bfloat16": 1.6e-2, "float32": 1.3e-6, "float64": 1e-11, "complex64": 2e-6, "complex128": 1e-11}
ABSOLUTE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 2e-6, "float64": 1e-12, "complex64": 4e-6, "complex128": 2e-12}


def _to_bfloat16(value: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(value, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FC0), rounded).reshape(np.shape(value))


def narrow(value: np.ndarray, dtype: DType) -> np.ndarray:
    """What a tensor of `dtype` holds for these values; integers wrap around."""
    value = np.asarray(value)
    if dtype.kind == "s":
        return np.array([v if isinstance(v, bytes) else str(v).encode() for v in value.ravel()], object).reshape(value.shape)
    with np.errstate(all="ignore"):
        if dtype == BFLOAT16:
            return _to_bfloat16(value.real.astype(np.float64))
        if dtype.kind in "fiu" and value.dtype.kind == "c":
            value = value.real
        return value.astype(dtype.stored)


def widen(stored: np.ndarray, dtype: DType) -> np.ndarray:
    """The same values as an oracle computes with them."""
    if dtype == BFLOAT16:
        bits = np.atleast_1d(stored).astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64).reshape(np.shape(stored))
    return stored.astype(dtype.wide)


def rounded(value: np.ndarray, dtype: DType) -> np.ndarray:
    return widen(narrow(value, dtype), dtype)
