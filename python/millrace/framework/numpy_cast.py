# SPDX-License-Identifier: Apache-2.0
"""Numbers to NumPy arrays of a tensor's type."""

from __future__ import annotations

from typing import Any

import numpy as np

from millrace.framework.dtypes import DType


def cast(value: Any, dtype: DType) -> np.ndarray:
    """Numbers as an array of a type, contiguous.

    Without the package ml_dtypes NumPy knows of bfloat16 nothing but the bits: these are rounded here, to the nearest number, ties to even.
    """
    array, to = np.asarray(value), np.dtype(dtype.as_numpy_dtype)
    if array.dtype == to:
        return np.asarray(array, order="C")
    if array.dtype.names == ("bfloat16",):
        array = (np.atleast_1d(array["bfloat16"]).astype(np.uint32) << 16).view(np.float32).reshape(array.shape)
    if to.names != ("bfloat16",):
        return array.astype(to, order="C")
    single = np.array(array, np.float32, order="C", ndmin=1)
    bits = single.view(np.uint32)
    rounded = np.where(np.isnan(single), bits | 0x400000, bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    return rounded.astype(np.uint16).view(to).reshape(array.shape)
