# SPDX-License-Identifier: Apache-2.0
"""tf.data.Iterator."""

from __future__ import annotations

from typing import Any, Optional

from millrace.data import structure
from millrace.framework.convert import convert_to_tensor
from millrace.framework.dtypes import string
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.framework.type_spec import TensorSpec
from millrace.ops import gen_ops


def shape_lists(shapes: Any) -> Any:
    """The shapes in a structure, in line."""
    return structure.flatten(shapes)


class Iterator:
    """The state of reading a data set: get_next() gives elements until tf.errors.OutOfRangeError."""

    def __init__(self, iterator_resource: Tensor, initializer: Optional[Operation], output_types: Any, output_shapes: Any, output_classes: Any = None) -> None:
        del output_classes  # components are dense
        self._iterator_resource, self._initializer = iterator_resource, initializer
        self._types, self._shapes = output_types, output_shapes

    def __repr__(self) -> str:
        return "<Iterator shapes: %s, types: %s>" % (self._shapes, self._types)

    @property
    def element_spec(self) -> Any:
        """The type spec of each component of an element."""
        return structure.pack(self._types, [TensorSpec(s, t) for t, s in zip(structure.flatten(self._types), shape_lists(self._shapes))])

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, shared_name: Optional[str] = None, output_classes: Any = None) -> "Iterator":
        """An iterator over no data set yet: run what make_initializer(dataset) gives."""
        del output_classes  # components are dense
        types = structure.dtypes_from(output_types)
        shapes = structure.shapes_from(types, output_shapes)
        handle = gen_ops.iterator_v2(shared_name or "", "", structure.flatten(types), shape_lists(shapes))
        return Iterator(handle, None, types, shapes)

    @staticmethod
    def from_string_handle(string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None) -> "Iterator":
        """The iterator whose string_handle() this is, which may be fed."""
        del output_classes  # components are dense
        types = structure.dtypes_from(output_types)
        shapes = structure.shapes_from(types, output_shapes)
        handle = gen_ops.iterator_from_string_handle_v2(convert_to_tensor(string_handle, string), structure.flatten(types), shape_lists(shapes))
        return Iterator(handle, None, types, shapes)

    @property
    def initializer(self) -> Operation:
        """Sets the iterator to the beginning of its data set."""
        if self._initializer is None:
            raise at_user_line(ValueError("Iterator does not have an initializer."))
        return self._initializer

    def make_initializer(self, dataset: Any, name: Optional[str] = None) -> Operation:
        """Sets the iterator to the beginning of a data set with elements of the same types."""
        if structure.mapped(lambda t: None, dataset.output_types) != structure.mapped(lambda t: None, self._types):
            raise at_user_line(ValueError("Expected elements of the structure %r but got a dataset with %r." % (self._types, dataset.output_types)))
        if structure.flatten(dataset.output_types) != structure.flatten(self._types):
            raise at_user_line(TypeError("Expected output types %r but got dataset with output types %r." % (self._types, dataset.output_types)))
        for mine, given in zip(structure.flatten(self._shapes), structure.flatten(dataset.output_shapes)):
            if not mine.is_compatible_with(given):
                raise at_user_line(
                    TypeError("Expected output shapes compatible with %r but got dataset with output shapes %r." % (self._shapes, dataset.output_shapes))
                )
        return gen_ops.make_iterator(dataset._variant, self._iterator_resource, name=name)

    def get_next(self, name: Optional[str] = None) -> Any:
        """The next element: each run gives another one."""
        made = gen_ops.iterator_get_next(self._iterator_resource, structure.flatten(self._types), shape_lists(self._shapes), name=name)
        return structure.pack(self._types, list(made) if isinstance(made, (list, tuple)) else [made])

    def string_handle(self, name: Optional[str] = None) -> Tensor:
        """A string that names it in its session."""
        return gen_ops.iterator_to_string_handle(self._iterator_resource, name=name)

    output_types = property(lambda self: self._types, doc="The types of an element's components.")
    output_shapes = property(lambda self: self._shapes, doc="The shapes of an element's components.")
    output_classes = property(lambda self: structure.mapped(lambda t: Tensor, self._types), doc="tf.Tensor for each component.")
