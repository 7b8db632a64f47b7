# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors that are values (variants): an op that changes a list gives another one.

An element shape is a shape with or without unknown dimensions, a list that may have tensors in it, a tensor (-1: nothing is known), or None.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import Dimension, TensorShape
from millrace.ops import control_flow_ops, gen_ops


def _build_element_shape(shape: Any) -> Any:
    """The shape as what the ops take: -1 is a dimension, or without brackets a rank, that is not known."""
    if isinstance(shape, Tensor):
        return shape
    if isinstance(shape, TensorShape):
        shape = None if shape.ndims is None else shape.as_list()
    if shape is None or isinstance(shape, int) and shape == -1:
        return -1
    sizes = [size.value if isinstance(size, Dimension) else size for size in shape]
    return [-1 if size is None else size for size in sizes] if sizes else constant([], dtypes.int32)


def empty_tensor_list(element_shape: Any, element_dtype: Any, max_num_elements: Optional[Any] = None, name: Optional[str] = None) -> Tensor:
    """A list without elements, which takes no more than `max_num_elements`."""
    most = -1 if max_num_elements is None else max_num_elements
    return gen_ops.empty_tensor_list(_build_element_shape(element_shape), most, element_dtype, name=name)


def tensor_list_reserve(element_shape: Any, num_elements: Any, element_dtype: Any, name: Optional[str] = None) -> Tensor:
    """A list of elements that are not set yet: they read as zeros."""
    return gen_ops.tensor_list_reserve(_build_element_shape(element_shape), num_elements, element_dtype, name=name)


def tensor_list_from_tensor(tensor: Any, element_shape: Any, name: Optional[str] = None) -> Tensor:
    """The list of a tensor's rows."""
    return gen_ops.tensor_list_from_tensor(tensor, _build_element_shape(element_shape), name=name)


def tensor_list_push_back(input_handle: Any, tensor: Any, name: Optional[str] = None) -> Tensor:
    """The list with one more element."""
    return gen_ops.tensor_list_push_back(input_handle, tensor, name=name)


def tensor_list_pop_back(input_handle: Any, element_dtype: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
    """(the list without its last element, that element)."""
    return gen_ops.tensor_list_pop_back(input_handle, -1, element_dtype, name=name)


def tensor_list_get_item(input_handle: Any, index: Any, element_dtype: Any, element_shape: Any = None, name: Optional[str] = None) -> Tensor:
    """An element."""
    return gen_ops.tensor_list_get_item(input_handle, index, _build_element_shape(element_shape), element_dtype, name=name)


def tensor_list_set_item(input_handle: Any, index: Any, item: Any, resize_if_index_out_of_bounds: bool = False, name: Optional[str] = None) -> Tensor:
    """The list with another element in one place; with `resize_if_index_out_of_bounds` it grows until it has that place."""
    if resize_if_index_out_of_bounds:
        handle = input_handle
        beyond = gen_ops.greater_equal(index, gen_ops.tensor_list_length(handle))
        input_handle = control_flow_ops.cond(beyond, lambda: gen_ops.tensor_list_resize(handle, index + 1), lambda: handle)
    return gen_ops.tensor_list_set_item(input_handle, index, item, name=name)


def tensor_list_gather(input_handle: Any, indices: Any, element_dtype: Any, element_shape: Any = None, name: Optional[str] = None) -> Tensor:
    """Elements as one tensor."""
    return gen_ops.tensor_list_gather(input_handle, indices, _build_element_shape(element_shape), element_dtype, name=name)


def tensor_list_scatter(tensor: Any, indices: Any, element_shape: Any = None, input_handle: Any = None, name: Optional[str] = None) -> Tensor:
    """A tensor's rows in the places that `indices` say, of a list that there is or of a new one."""
    if input_handle is not None:
        return gen_ops.tensor_list_scatter_into_existing_list(input_handle, tensor, indices, name=name)
    return gen_ops.tensor_list_scatter_v2(tensor, indices, _build_element_shape(element_shape), -1, name=name)


def tensor_list_stack(input_handle: Any, element_dtype: Any, num_elements: int = -1, element_shape: Any = None, name: Optional[str] = None) -> Tensor:
    """All elements as one tensor; `num_elements`, if not -1, is how many there must be."""
    return gen_ops.tensor_list_stack(input_handle, _build_element_shape(element_shape), element_dtype, num_elements=num_elements, name=name)


def tensor_list_concat(input_handle: Any, element_dtype: Any, element_shape: Any = None, name: Optional[str] = None) -> Tensor:
    """All elements one behind the other, along their first dimensions."""
    return gen_ops.tensor_list_concat_v2(input_handle, _build_element_shape(element_shape), constant([], dtypes.int64), element_dtype, name=name)[0]


def tensor_list_split(tensor: Any, element_shape: Any, lengths: Any, name: Optional[str] = None) -> Tensor:
    """The list of a tensor's pieces, of these lengths along its first dimension."""
    return gen_ops.tensor_list_split(tensor, _build_element_shape(element_shape), lengths, name=name)
