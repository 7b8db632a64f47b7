# SPDX-License-Identifier: Apache-2.0
"""Values that are several tensors: IndexedSlices and SparseTensor."""

from __future__ import annotations

import collections
from typing import Any, List, Optional, Tuple


from millrace.framework import convert, dtypes, session, static_values, tensor_shape
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.graph_elements import session_for
from millrace.ops import gen_ops


class CompositeTensor:
    """The base of values that are several tensors. A class below it has `_type_spec`, a tf.TypeSpec that takes values apart and together."""

    @property
    def _type_spec(self) -> Any:
        raise NotImplementedError("%s._type_spec" % type(self).__name__)

    def _components(self) -> Any:
        return self._type_spec._to_components(self)

    def _of_components(self, parts: Any) -> Any:
        return self._type_spec._from_components(parts)

    def _to_components(self) -> Any:
        return self._components()

    def _component_metadata(self) -> Any:
        return self._type_spec


class IndexedSlices(CompositeTensor):
    """Rows `values[i]` at `indices[i]` of a tensor: what the gradient of a look-up is."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    values = property(lambda self: self._values, doc="The rows.")
    indices = property(lambda self: self._indices, doc="Where each row belongs.")
    dense_shape = property(lambda self: self._dense_shape, doc="The shape of the whole, or None.")
    name = property(lambda self: self.values.name, doc="The name of its values.")
    device = property(lambda self: self.values.device, doc="The device of its values.")
    op = property(lambda self: self.values.op, doc="The operation that makes its values.")
    dtype = property(lambda self: self.values.dtype, doc="The type of its elements.")

    def consumers(self) -> Any:
        """The operations that read its values."""
        return self.values.consumers()

    def _components(self) -> Any:
        return (self.values, self.indices) if self.dense_shape is None else (self.values, self.indices, self.dense_shape)

    def _of_components(self, parts: Any) -> "IndexedSlices":
        return IndexedSlices(*parts)

    graph = property(lambda self: self.values.graph, doc="Its graph.")

    def __neg__(self) -> "IndexedSlices":
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __str__(self) -> str:
        return "IndexedSlices(indices=%s, values=%s%s)" % (
            self._indices,
            self._values,
            ", dense_shape=%s" % self._dense_shape if self._dense_shape is not None else "",
        )

    __repr__ = __str__


IndexedSlicesValue = collections.namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])


def _dense(value: IndexedSlices, dtype: Any = None, name: Optional[str] = None, as_ref: bool = False) -> Tensor:
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise at_user_line(ValueError("Tensor conversion requested dtype %s for IndexedSlices with dtype %s" % (dtypes.as_dtype(dtype).name, value.dtype.name)))
    if value.dense_shape is None:
        raise at_user_line(ValueError("Tensor conversion requested for IndexedSlices without dense_shape: %s" % value))
    return gen_ops.unsorted_segment_sum(value.values, value.indices, gen_ops.strided_slice(value.dense_shape, [0], [1], [1], shrink_axis_mask=1), name=name)


convert.register_tensor_conversion_function(IndexedSlices, _dense)


class SparseTensorValue(collections.namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])):
    """What a SparseTensor is when it is run or fed."""

    __slots__ = ()
    shape = property(lambda self: self.dense_shape)


class SparseTensor(CompositeTensor):
    """A tensor of which only some elements are stored: indices [n, rank], values [n], dense_shape [rank]."""

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> "SparseTensor":
        """A SparseTensor as it is, or one made of a SparseTensorValue."""
        value = sparse_tensor_value
        return value if isinstance(value, SparseTensor) else cls(value[0], value[1], value[2])

    def consumers(self) -> Any:
        """The operations that read its values."""
        return self.values.consumers()

    def _components(self) -> Any:
        return self.indices, self.values, self.dense_shape

    def _of_components(self, parts: Any) -> Any:
        return SparseTensor(*parts) if all(hasattr(p, "graph") for p in parts) else SparseTensorValue(*parts)

    def __init__(self, indices: Any, values: Any, dense_shape: Any = None, shape: Any = None) -> None:
        given = shape if dense_shape is None else dense_shape
        with name_scope(None, "SparseTensor", [indices, values, given]):
            self._indices = convert.convert_to_tensor(indices, dtypes.int64, "indices")
            self._values = convert.internal_convert_to_tensor(values, None, "values", True)
            self._dense_shape = convert.convert_to_tensor(given, dtypes.int64, "dense_shape")
        places, rank = self._indices.get_shape().with_rank(2), self._dense_shape.get_shape().with_rank(1)
        places[0].merge_with(self._values.get_shape().with_rank(1)[0])
        places[1].merge_with(rank[0])

    indices = property(lambda self: self._indices, doc="Where the stored elements are.")
    values = property(lambda self: self._values, doc="The stored elements.")
    dense_shape = property(lambda self: self._dense_shape, doc="The shape of the whole.")
    op = property(lambda self: self.values.op, doc="The operation that makes its values.")
    dtype = property(lambda self: self.values.dtype, doc="The type of its elements.")
    graph = property(lambda self: self._indices.graph, doc="Its graph.")
    shape = property(lambda self: self.get_shape(), doc="What is known of its shape.")

    def get_shape(self) -> tensor_shape.TensorShape:
        """What is known of its shape."""
        return static_values.constant_value_as_shape(self._dense_shape)

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Its value, by the default session or the one given."""
        return session_for(self.graph, session).run(self, feed_dict)

    def __str__(self) -> str:
        return "SparseTensor(indices=%s, values=%s, dense_shape=%s)" % (self._indices, self._values, self._dense_shape)

    def __repr__(self) -> str:
        stored = self._values.get_shape().as_list()
        return "<tf.SparseTensor '%s' shape=%s dtype=%s, %s stored>" % (
            self._values.op.name,
            self.get_shape(),
            self.dtype.name,
            stored[0] if stored and stored[0] is not None else "?",
        )


def _fetch_sparse(sparse: SparseTensor) -> Tuple[List[Tensor], Any]:
    return [sparse.indices, sparse.values, sparse.dense_shape], lambda v: SparseTensorValue(*v)


def _fetch_slices(slices: IndexedSlices) -> Tuple[List[Tensor], Any]:
    if slices.dense_shape is None:
        return [slices.values, slices.indices], lambda v: IndexedSlicesValue(v[0], v[1], None)
    return [slices.values, slices.indices, slices.dense_shape], lambda v: IndexedSlicesValue(*v)


session.register_session_run_conversion_functions(SparseTensor, _fetch_sparse, lambda key, value: list(zip((key.indices, key.values, key.dense_shape), value)))
session.register_session_run_conversion_functions(
    IndexedSlices, _fetch_slices, lambda key, value: list(zip([key.values, key.indices] + ([key.dense_shape] if key.dense_shape is not None else []), value))
)


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """IndexedSlices and SparseTensors as they are; else convert_to_tensor."""
    return value if isinstance(value, (IndexedSlices, SparseTensor)) else convert.convert_to_tensor(value, dtype, name)


def convert_to_tensor_or_composite(value: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """Composite tensors as they are, a SparseTensor of a SparseTensorValue; else convert_to_tensor. RuntimeError where a composite one is of another type."""
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, CompositeTensor):
        return convert.convert_to_tensor(value, dtype, name)
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):  # type: ignore[attr-defined]
        raise at_user_line(RuntimeError("Tensor conversion requested dtype %s for Tensor with dtype %s: %r" % (dtype, value.dtype, value)))  # type: ignore[attr-defined]
    return value


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """SparseTensors as they are; else convert_to_tensor."""
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return value if isinstance(value, SparseTensor) else convert.convert_to_tensor(value, dtype, name)


def is_sparse(x: Any) -> bool:
    """Whether x is a SparseTensor or the value of one."""
    return isinstance(x, (SparseTensor, SparseTensorValue))
