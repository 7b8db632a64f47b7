# SPDX-License-Identifier: Apache-2.0
"""tf.data.Iterator."""

from __future__ import annotations

import warnings
from typing import Any, Optional

from millrace.data import components, structure
from millrace.framework.convert import convert_to_tensor
from millrace.framework.dtypes import string
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.framework.type_spec import DatasetSpec
from millrace.ops import gen_ops


GET_NEXT_CALL_WARNING_THRESHOLD = 32
GET_NEXT_CALL_WARNING_MESSAGE = (
    "`Iterator.get_next()` was called more than %d times: each call adds operations to the graph, so that a training loop with one becomes slower and "
    "slower. Call `next_element = iterator.get_next()` once, before the loop, and run what is made of next_element in it." % GET_NEXT_CALL_WARNING_THRESHOLD
)


class Iterator:
    """The state of reading a data set: get_next() gives elements until tf.errors.OutOfRangeError."""

    def __init__(self, iterator_resource: Tensor, initializer: Optional[Operation], element_spec: Any) -> None:
        self._iterator_resource, self._initializer, self._element_spec = iterator_resource, initializer, element_spec
        self._string_handle = gen_ops.iterator_to_string_handle(iterator_resource)  # made at once: asking for it later adds nothing to the graph
        self._calls = 0

    def __repr__(self) -> str:
        return "<Iterator shapes: %s, types: %s>" % (self.output_shapes, self.output_types)

    element_spec = property(lambda self: self._element_spec, doc="The type spec of each component of an element.")

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, shared_name: Optional[str] = None, output_classes: Any = None) -> "Iterator":
        """An iterator over no data set yet: run what make_initializer(dataset) gives. A list of types stands for a tuple, and so do the lists beside it."""
        if isinstance(output_types, list):
            output_types, output_shapes, output_classes = (
                tuple(given) if isinstance(given, list) else given for given in (output_types, output_shapes, output_classes)
            )
        specs = components.specs(output_types, output_shapes, output_classes)
        return Iterator(gen_ops.iterator_v2(shared_name or "", "", *components.flat(specs)), None, specs)

    @staticmethod
    def from_dataset(dataset: Any, shared_name: Optional[str] = None) -> "Iterator":
        """make_initializable_iterator of a data set, as 1.2 calls it."""
        return dataset.make_initializable_iterator(shared_name)  # type: ignore[no-any-return]

    @staticmethod
    def from_string_handle(string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None) -> "Iterator":
        """The iterator whose string_handle() this is, which may be fed."""
        specs = components.specs(output_types, output_shapes, output_classes)
        return Iterator(gen_ops.iterator_from_string_handle_v2(convert_to_tensor(string_handle, string), *components.flat(specs)), None, specs)

    @property
    def initializer(self) -> Operation:
        """Sets the iterator to the beginning of its data set."""
        if self._initializer is None:
            raise at_user_line(ValueError("Iterator does not have an initializer."))
        return self._initializer

    def make_initializer(self, dataset: Any, name: Optional[str] = None) -> Operation:
        """Sets the iterator to the beginning of a data set with elements of the same types."""
        mine, given = self._element_spec, dataset.element_spec
        if structure.mapped(lambda t: None, given) != structure.mapped(lambda t: None, mine):
            raise at_user_line(ValueError("Expected elements of the structure %r but got a dataset with %r." % (self.output_types, dataset.output_types)))
        if not components.same_types(given, mine):
            if self.output_types == dataset.output_types:
                raise at_user_line(
                    TypeError("Expected output classes %r but got dataset with output classes %r." % (self.output_classes, dataset.output_classes))
                )
            raise at_user_line(TypeError("Expected output types %r but got dataset with output types %r." % (self.output_types, dataset.output_types)))
        for one, other in zip(structure.flatten(mine), structure.flatten(given)):
            if not isinstance(one, DatasetSpec) and not one.shape.is_compatible_with(other.shape):
                raise at_user_line(
                    TypeError("Expected output shapes compatible with %r but got dataset with output shapes %r." % (self.output_shapes, dataset.output_shapes))
                )
        return gen_ops.make_iterator(dataset._variant, self._iterator_resource, name=name)

    def get_next(self, name: Optional[str] = None) -> Any:
        """The next element: each run gives another one. Programs that call it over and over are warned: the graph grows each time."""
        self._calls += 1
        if self._calls > GET_NEXT_CALL_WARNING_THRESHOLD:
            warnings.warn(GET_NEXT_CALL_WARNING_MESSAGE, stacklevel=2)
        made = gen_ops.iterator_get_next(self._iterator_resource, *components.flat(self._element_spec), name=name)
        return components.element(made, self._element_spec)

    def string_handle(self, name: Optional[str] = None) -> Tensor:
        """A string that names it in its session."""
        if name is not None:
            return gen_ops.iterator_to_string_handle(self._iterator_resource, name=name)
        return self._string_handle

    output_types = property(lambda self: components.types_of(self._element_spec), doc="The types of an element's components.")
    output_shapes = property(lambda self: components.shapes_of(self._element_spec), doc="The shapes of an element's components.")
    output_classes = property(lambda self: components.classes_of(self._element_spec), doc="The classes of an element's components.")
