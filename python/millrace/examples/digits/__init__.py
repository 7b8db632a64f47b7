# SPDX-License-Identifier: Apache-2.0
"""1,797 handwritten digits that come with the package, for first programs; `python -m millrace.examples.digits` trains on them.

Source and licence: data/README.md beside this file.
"""

from __future__ import annotations

import os
from typing import Tuple

import numpy as np

_DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def _read(name: str) -> np.ndarray:
    """The bytes of an IDX file, in its shape."""
    with open(os.path.join(_DATA, name), "rb") as file:
        data = file.read()
    rank = data[3]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(np.frombuffer(data, ">i4", rank, 4))


def load() -> Tuple[np.ndarray, np.ndarray]:
    """Images [1797, 8, 8] of float32 from 0 to 1, and labels [1797] of int32."""
    images = _read("digits-images-idx3-ubyte").astype(np.float32) / 16
    return images, _read("digits-labels-idx1-ubyte").astype(np.int32)
