# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.resampler: values of images between their pixels."""

from __future__ import annotations

from typing import Any

from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import gen_ops


def resampler(data: Any, warp: Any, name: str = "resampler") -> Tensor:
    """The bilinear interpolation of images [batch, height, width, channels] at places (x, y): warp [batch, ..., 2]. What lies outside is 0."""
    with name_scope(name, "resampler", [data, warp]):
        return gen_ops.resampler(convert_to_tensor(data, name="data"), convert_to_tensor(warp, name="warp"))
