# SPDX-License-Identifier: Apache-2.0
"""Images in other types."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: Optional[str] = None) -> Tensor:
    """Another type, with values scaled: floats are from 0 to 1, integers use their whole range."""
    image, dtype = convert_to_tensor(image), dtypes.as_dtype(dtype)
    source = image.dtype.base_dtype
    if source == dtype:
        return array_ops.identity(image, name)
    cast = math_ops.saturate_cast if saturate else math_ops.cast
    with name_scope(name, "convert_image", [image]) as scope:
        if source.is_integer and dtype.is_integer:
            if source.max > dtype.max:
                return cast(image // ((source.max + 1) // (dtype.max + 1)), dtype, scope)
            return gen_ops.mul(cast(image, dtype), (dtype.max + 1) // (source.max + 1), name=scope)
        if source.is_floating and dtype.is_floating:
            return math_ops.cast(image, dtype, scope)
        if source.is_integer:
            return gen_ops.mul(math_ops.cast(image, dtype), 1.0 / source.max, name=scope)
        return cast(image * (dtype.max + 0.5), dtype, scope)
