# SPDX-License-Identifier: Apache-2.0
"""Images, and shapes of images, from one order of dimensions to another."""

from __future__ import annotations

from typing import Any, Dict, List

from millrace.framework.graph import Tensor
from millrace.ops import array_ops

_LAST_TO_FIRST = {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]}
_FIRST_TO_LAST = {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]}
_TO_VECT = {5: [0, 3, 1, 2, 4], 6: [0, 4, 1, 2, 3, 5]}
_FROM_VECT = {5: [0, 2, 3, 1, 4], 6: [0, 2, 3, 4, 1, 5]}


def _permuted(value: Any, orders: Dict[int, List[int]]) -> Any:
    if isinstance(value, Tensor):
        return array_ops.transpose(value, orders[value.get_shape().ndims or 0])
    return [value[axis] for axis in orders[len(value)]]


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A tensor, or the list of its sizes, with channels second instead of last."""
    return _permuted(input_tensor, _LAST_TO_FIRST)


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A tensor, or the list of its sizes, with channels last instead of second."""
    return _permuted(input_tensor, _FIRST_TO_LAST)


def _sizes(value: Any) -> List[Any]:
    return value.get_shape().as_list() if isinstance(value, Tensor) else list(value)


def NHWCToNCHW_VECT_C(input_shape_or_tensor: Any) -> Any:
    """NHWCToNCHW with groups of four channels as a last dimension of their own."""
    sizes = _sizes(input_shape_or_tensor)
    if sizes[-1] % 4 != 0:
        raise ValueError("Last dimension of input must be evenly divisible by 4 to convert to NCHW_VECT_C.")
    sizes[-1:] = [sizes[-1] // 4, 4]
    grouped = array_ops.reshape(input_shape_or_tensor, sizes) if isinstance(input_shape_or_tensor, Tensor) else sizes
    return _permuted(grouped, _TO_VECT)


def NCHW_VECT_CToNHWC(input_shape_or_tensor: Any) -> Any:
    """What NHWCToNCHW_VECT_C was given."""
    sizes = _sizes(input_shape_or_tensor)
    if sizes[-1] != 4:
        raise ValueError("Last dimension of NCHW_VECT_C must be 4.")
    order = _FROM_VECT[len(sizes)]
    made = [sizes[axis] for axis in order[:-1]]
    made[-1] *= sizes[-1]
    if isinstance(input_shape_or_tensor, Tensor):
        return array_ops.reshape(_permuted(input_shape_or_tensor, _FROM_VECT), made)
    return made
