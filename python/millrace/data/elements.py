# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.util.structure: elements of data sets as lists of the tensors that they travel as, by their type specs."""

from __future__ import annotations

from typing import Any, Callable, List

from millrace.data import components, structure
from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue
from millrace.framework.convert import convert_to_tensor
from millrace.framework.dtypes import DType
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import SparseTensorSpec, TensorSpec


def type_spec_from_value(element: Any) -> Any:
    """The type specs of an element, in its structure."""
    return components.specs_of(components.values(element))


def convert_legacy_structure(output_types: Any, output_shapes: Any, output_classes: Any) -> Any:
    """The type specs that types, shapes and classes of elements stand for."""
    return components.specs(output_types, output_shapes, output_classes)


# ---- what they travel as ----


def get_flat_tensor_specs(element_spec: Any) -> List[TensorSpec]:
    """The specs of the tensors of an element."""
    return [TensorSpec(shape, dtype) for dtype, shape in zip(*components.flat(element_spec))]


def get_flat_tensor_types(element_spec: Any) -> List[DType]:
    """The types of the tensors of an element."""
    return components.flat(element_spec)[0]


def get_flat_tensor_shapes(element_spec: Any) -> List[TensorShape]:
    """The shapes of the tensors of an element."""
    return components.flat(element_spec)[1]


def _component(value: Any, spec: Any) -> Any:
    """A component of a spec; ValueError or TypeError for one of another kind."""
    if isinstance(spec, SparseTensorSpec):
        if not isinstance(value, (SparseTensor, SparseTensorValue)):
            raise at_user_line(TypeError("Neither a SparseTensor nor SparseTensorValue: %s." % (value,)))
        return components.values(value)
    if not isinstance(spec, TensorSpec):
        return components.values(value)
    try:
        made: Any = convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError):
        made = None
    if made is None or not made.shape.is_compatible_with(spec.shape):
        raise at_user_line(ValueError("Value %s is not convertible to a tensor with dtype %s and shape %s." % (value, spec.dtype, spec.shape)))
    return made


def _as_list(element_spec: Any, element: Any, encode: Callable[[Any], Tensor]) -> List[Tensor]:
    if structure.mapped(lambda leaf: None, element_spec) != structure.mapped(lambda leaf: None, element):
        raise at_user_line(ValueError("The two structures don't have the same nested structure.\n\nFirst: %s\n\nSecond: %s" % (element_spec, element)))
    return [encode(_component(*pair)) for pair in zip(structure.flatten(element), structure.flatten(element_spec))]


def to_tensor_list(element_spec: Any, element: Any) -> List[Tensor]:
    """The tensors that an element travels as. ValueError where it has another structure or shape, or another type."""
    return _as_list(element_spec, element, components.encoded)


def to_batched_tensor_list(element_spec: Any, element: Any) -> List[Tensor]:
    """The tensors that a batch travels as, a row of each for an element. ValueError for scalars."""
    for spec in structure.flatten(element_spec):
        if components.is_of_shape(spec) and spec.shape.ndims == 0:
            raise at_user_line(ValueError("Unbatching a tensor is only supported for rank >= 1"))
    return _as_list(element_spec, element, components.encoded_rows)


def from_compatible_tensor_list(element_spec: Any, tensor_list: List[Tensor]) -> Any:
    """The element that tensors are."""
    return components.element(list(tensor_list), element_spec)


def from_tensor_list(element_spec: Any, tensor_list: List[Tensor]) -> Any:
    """The element that tensors are; ValueError where there are more or fewer, or of other types or shapes."""
    wanted = get_flat_tensor_specs(element_spec)
    if len(wanted) != len(tensor_list):
        raise at_user_line(ValueError("Expected %d tensors but got %d." % (len(wanted), len(tensor_list))))
    for tensor, spec in zip(tensor_list, wanted):
        if not spec.is_compatible_with(tensor):
            raise at_user_line(ValueError("Incompatible input: %s (expected %s)." % (tensor, spec)))
    return from_compatible_tensor_list(element_spec, tensor_list)
