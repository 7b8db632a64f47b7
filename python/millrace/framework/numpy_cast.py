# SPDX-License-Identifier: Apache-2.0
"""Numbers to NumPy arrays of a tensor's type."""

from __future__ import annotations

from typing import Any

import numpy as np

from millrace.framework.dtypes import DType


def widened(array: np.ndarray) -> np.ndarray:
    """An array that NumPy can compute with: bfloat16 as float32, everything else as it is."""
    if array.dtype.names == ("bfloat16",):
        return (np.atleast_1d(array["bfloat16"]).astype(np.uint32) << 16).view(np.float32).reshape(array.shape)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def cast(value: Any, dtype: DType) -> np.ndarray:
    """Numbers as an array of a type, contiguous. An OverflowError if a Python integer does not fit.

    Without the package ml_dtypes NumPy knows of bfloat16 nothing but the bits: these are rounded here, to the nearest number, ties to even.
    """
    array, to = np.asarray(value), np.dtype(dtype.as_numpy_dtype)
    if array.dtype == to:
        return np.asarray(array, order="C")
    if array.dtype.names == ("bfloat16",):
        value = array = widened(array)
    if to.names != ("bfloat16",):
        return np.asarray(value, to, order="C")
    single = np.array(array, np.float32, order="C", ndmin=1)
    bits = single.view(np.uint32)
    rounded = np.where(np.isnan(single), bits | 0x400000, bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    return rounded.astype(np.uint16).view(to).reshape(array.shape)
