# SPDX-License-Identifier: Apache-2.0
"""tf.data.experimental.Optional: elements that may be absent."""

from __future__ import annotations

from typing import Any
from typing import Optional as OptionalType

from millrace.data import components, structure
from millrace.data.iterators import Iterator
from millrace.framework.graph import Tensor
from millrace.framework.type_spec import OptionalSpec, TypeSpec
from millrace.ops import gen_ops


class Optional:
    """An element, or none."""

    def __init__(self, variant: Tensor, value_structure: Any) -> None:
        self._variant, self._value_structure = variant, value_structure

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self._value_structure)

    value_structure = property(lambda self: self._value_structure, doc="The type spec of each component of the element.")
    _variant_tensor = property(lambda self: self._variant)

    @staticmethod
    def from_value(value: Any) -> "Optional":
        """An element."""
        made = components.values(value)
        return Optional(gen_ops.optional_from_value([components.encoded(v) for v in structure.flatten(made)]), components.specs_of(made))

    @staticmethod
    def none_from_structure(value_structure: Any, output_shapes: Any = None) -> "Optional":
        """No element, of these types and shapes, or of these type specs."""
        given = all(isinstance(s, TypeSpec) for s in structure.flatten(value_structure))
        return Optional(gen_ops.optional_none(), value_structure if given else components.specs(value_structure, output_shapes))

    def has_value(self, name: OptionalType[str] = None) -> Tensor:
        """Whether there is one."""
        return gen_ops.optional_has_value(self._variant, name=name)

    def get_value(self, name: OptionalType[str] = None) -> Any:
        """The element; running it is an error where there is none."""
        made = gen_ops.optional_get_value(self._variant, *components.flat(self._value_structure), name=name)
        return components.element(made, self._value_structure)

    output_types = property(lambda self: components.types_of(self._value_structure), doc="The types of the element's components.")
    output_shapes = property(lambda self: components.shapes_of(self._value_structure), doc="The shapes of the element's components.")


_OptionalImpl = components.kinds["optional"] = Optional


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element, or none at the end."""
    specs = iterator.element_spec
    return Optional(gen_ops.iterator_get_next_as_optional(iterator._iterator_resource, *components.flat(specs)), specs)
