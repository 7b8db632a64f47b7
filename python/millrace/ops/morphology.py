# SPDX-License-Identifier: Apache-2.0
"""Grey-scale dilation and erosion, and n-th elements."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import gen_ops
from millrace.ops.dialects import given


def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: Optional[str] = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The largest sums of cells of a window and the filter's, whose cells are `rates` apart (dilations is its later name)."""
    filter, rates = given("dilation2d", filter=filter, filters=filters), given("dilation2d", rates=rates, dilations=dilations)
    return gen_ops.dilation2d(input, filter, strides, rates, padding, name=name)


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: Optional[str] = None) -> Tensor:
    """The smallest differences of cells of a window and the kernel's."""
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        kernel = convert_to_tensor(kernel)
        return gen_ops.neg(dilation2d(gen_ops.neg(value), gen_ops.reverse_v2(kernel, [0, 1]), strides, rates, padding), name=scope)


def dilation2d_v2(input: Any, filters: Any, strides: Any, padding: Any, data_format: str, dilations: Any, name: Optional[str] = None) -> Tensor:
    """dilation2d with the arguments of TensorFlow 2. ValueError: data_format is not "NHWC"."""
    _check_format("dilation2d", data_format)
    return gen_ops.dilation2d(input, filters, strides, dilations, padding, name=name)


def erosion2d_v2(value: Any, filters: Any, strides: Any, padding: Any, data_format: str, dilations: Any, name: Optional[str] = None) -> Tensor:
    """erosion2d with the arguments of TensorFlow 2. ValueError: data_format is not "NHWC"."""
    _check_format("erosion2d", data_format)
    return erosion2d(value, filters, strides, dilations, padding, name)


def _check_format(name: str, data_format: Any) -> None:
    if data_format != "NHWC":
        raise at_user_line(ValueError("%s: Data formats other than NHWC are not yet supported, got %r" % (name, data_format)))


def nth_element(input: Any, n: Any, reverse: bool = False, name: Optional[str] = None) -> Tensor:
    """The n-th smallest element of each row, or with reverse the n-th largest."""
    return gen_ops.nth_element(input, n, reverse=reverse, name=name)
