# SPDX-License-Identifier: Apache-2.0
"""Elements of data sets: tuples, named tuples and dicts of tensors, with lists as tensors of their own."""

from __future__ import annotations

from typing import Any, List

from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import SparseTensorValue
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import TypeSpec
from millrace.ops.ragged.value import RaggedTensorValue


def is_nested(value: Any) -> bool:
    """Whether a value is a structure rather than a leaf."""
    return isinstance(value, (tuple, dict)) and not isinstance(value, (TensorShape, SparseTensorValue, RaggedTensorValue))


def flatten(structure: Any) -> List[Any]:
    """The leaves; a list is one."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in flatten(structure[key])]
    return [leaf for part in structure for leaf in flatten(part)] if is_nested(structure) else [structure]


def pack(structure: Any, leaves: List[Any]) -> Any:
    """Leaves in the place of another structure's."""
    return nest.pack_sequence_as(mapped(lambda leaf: None, structure), leaves)


def mapped(function: Any, structure: Any) -> Any:
    """The structure with a function of its leaves."""
    if isinstance(structure, dict):
        made = {key: mapped(function, structure[key]) for key in sorted(structure)}
        return type(structure)((key, made[key]) for key in structure)
    if not is_nested(structure):
        return function(structure)
    parts = [mapped(function, part) for part in structure]
    return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)


def up_to(shallow: Any, deep: Any) -> List[Any]:
    """The parts of `deep` at the leaves of `shallow`; None goes for all of them."""
    if deep is None:
        return [None] * len(flatten(shallow))
    if isinstance(shallow, dict):
        return [leaf for key in sorted(shallow) for leaf in up_to(shallow[key], deep[key])]
    if not is_nested(shallow):
        return [deep]
    if len(shallow) != len(deep):
        raise at_user_line(ValueError("The two structures don't have the same number of elements: %r and %r" % (shallow, deep)))
    return [leaf for s, d in zip(shallow, deep) for leaf in up_to(s, d)]


def dtypes_from(structure: Any) -> Any:
    """What a program gives as types."""
    return mapped(dtypes.as_dtype, structure)


def shapes_from(types: Any, shapes: Any) -> Any:
    """What a program gives as shapes, in the structure of the types."""
    if shapes is not None and is_nested(types) and not is_nested(shapes):
        raise at_user_line(TypeError("output_shapes must have the structure of output_types, %r, got %r" % (types, shapes)))
    return pack(types, [s if isinstance(s, TypeSpec) else TensorShape(s) for s in up_to(types, shapes)])


def are_compatible(spec1: Any, spec2: Any) -> bool:
    """Whether two structures of specs (tf.TensorSpec and its kin) are alike, and each spec fits the other's."""

    def shape_of(spec: Any) -> Any:
        return mapped(lambda leaf: None, spec)

    return shape_of(spec1) == shape_of(spec2) and all(one.is_compatible_with(other) for one, other in zip(flatten(spec1), flatten(spec2)))
