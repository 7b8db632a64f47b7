# SPDX-License-Identifier: Apache-2.0
"""tf.TypeSpec and its kinds: what is known of a value before it is there."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace import names
from millrace.framework import dtypes, numpy_cast
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor, SparseTensorValue
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape


class TypeSpec:
    """What values are like: of which class, with components of which types and shapes. Two are equal when all of that is."""

    _fields: Tuple[str, ...] = ()

    @property
    def value_type(self) -> Any:
        """The class of the values."""
        raise NotImplementedError("%s.value_type" % type(self).__name__)

    def _serialize(self) -> Tuple[Any, ...]:
        return tuple(getattr(self, "_" + name) for name in self._fields)

    def _key(self) -> Any:
        return (
            type(self),
            *[
                tuple(v.as_list()) if isinstance(v, TensorShape) and v.ndims is not None else str(v) if isinstance(v, TensorShape) else v
                for v in self._serialize()
            ],
        )

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or what another says, fits."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        if type(self) is not type(other):
            return False
        for a, b in zip(self._serialize(), other._serialize()):
            fits = a.is_compatible_with(b) if isinstance(a, (TensorShape, dtypes.DType, TypeSpec)) else a == b
            if not fits:
                return False
        return True

    def most_specific_compatible_type(self, other: "TypeSpec") -> "TypeSpec":
        """What both are; ValueError where there is no such thing."""
        if type(self) is not type(other):
            raise at_user_line(ValueError("No TypeSpec is compatible with both %s and %s" % (self, other)))
        merged: List[Any] = []
        for a, b in zip(self._serialize(), other._serialize()):
            if isinstance(a, TensorShape) and isinstance(b, TensorShape):
                same = a.ndims is not None and a.ndims == b.ndims
                merged.append(TensorShape([m if m == n else None for m, n in zip(a.as_list(), b.as_list())]) if same else TensorShape(None))
            elif isinstance(a, TypeSpec) and isinstance(b, TypeSpec):
                merged.append(a.most_specific_compatible_type(b))
            elif a == b:
                merged.append(a)
            else:
                raise at_user_line(ValueError("No TypeSpec is compatible with both %s and %s" % (self, other)))
        return type(self)(*merged)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, TypeSpec) and self._key() == other._key()

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return "%s%s" % (type(self).__name__, self._serialize())

    def __reduce__(self) -> Any:
        return type(self), self._serialize()


class TensorSpec(TypeSpec):
    """Tensors of a shape and a type."""

    _fields: Tuple[str, ...] = ("shape", "dtype", "name")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: Optional[str] = None) -> None:
        self._shape, self._dtype, self._name = TensorShape(shape), dtypes.as_dtype(dtype), name

    shape = property(lambda self: self._shape, doc="What is known of the shape.")
    dtype = property(lambda self: self._dtype, doc="The type of the elements.")
    name = property(lambda self: self._name, doc="A name, or None.")
    value_type = property(lambda self: Tensor, doc="tf.Tensor.")

    @classmethod
    def from_spec(cls, spec: Any, name: Optional[str] = None) -> "TensorSpec":
        """Of what has a shape and a dtype."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: Optional[str] = None) -> "TensorSpec":
        """Of a tensor."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether type and shape fit."""
        if not hasattr(spec_or_tensor, "dtype") or not hasattr(spec_or_tensor, "shape"):
            try:
                spec_or_tensor = convert_to_tensor(spec_or_tensor)
            except (TypeError, ValueError):
                return False
        return bool(self._dtype.is_compatible_with(dtypes.as_dtype(spec_or_tensor.dtype)) and self._shape.is_compatible_with(TensorShape(spec_or_tensor.shape)))

    def __repr__(self) -> str:
        return "TensorSpec(shape=%s, dtype=%r, name=%r)" % (self._shape, self._dtype, self._name)


class BoundedTensorSpec(TensorSpec):
    """Tensors whose elements are within bounds."""

    _fields = ("shape", "dtype", "minimum", "maximum", "name")

    def __init__(self, shape: Any, dtype: Any, minimum: Any, maximum: Any, name: Optional[str] = None) -> None:
        super().__init__(shape, dtype, name)
        if minimum is None or maximum is None:
            raise at_user_line(ValueError("minimum and maximum can not be None. Got minimum: %s, maximum: %s" % (minimum, maximum)))
        self._minimum, self._maximum = (np.array(numpy_cast.cast(v, self._dtype)) for v in (minimum, maximum))
        for bound in (self._minimum, self._maximum):
            if self._shape.is_fully_defined():
                np.broadcast_to(bound, [int(d) for d in self._shape])
            bound.setflags(write=False)

    minimum = property(lambda self: self._minimum, doc="The least that elements may be.")
    maximum = property(lambda self: self._maximum, doc="The most that they may be.")

    def _key(self) -> Any:
        return (*TensorSpec(self._shape, self._dtype, self._name)._key(), self._minimum.tobytes(), self._maximum.tobytes())

    @classmethod
    def from_spec(cls, spec: Any, name: Optional[str] = None) -> "BoundedTensorSpec":
        """Of another's shape, type and bounds; where it has none, those of the type."""
        kind = dtypes.as_dtype(spec.dtype)
        return cls(spec.shape, kind, getattr(spec, "minimum", kind.min), getattr(spec, "maximum", kind.max), name or spec.name)


class SparseTensorSpec(TypeSpec):
    """Sparse tensors of a shape and a type."""

    _fields = ("shape", "dtype")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)

    shape = property(lambda self: self._shape, doc="What is known of the dense shape.")
    dtype = property(lambda self: self._dtype, doc="The type of the elements.")
    value_type = property(lambda self: SparseTensor, doc="tf.SparseTensor.")


class IndexedSlicesSpec(TypeSpec):
    """Indexed slices of a shape and a type."""

    _fields = ("shape", "values_dtype", "indices_dtype", "dense_shape_dtype", "indices_shape")

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, indices_dtype: Any = dtypes.int64, dense_shape_dtype: Any = None, indices_shape: Any = None
    ) -> None:
        self._shape, self._values_dtype, self._indices_dtype = TensorShape(shape), dtypes.as_dtype(dtype), dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    value_type = property(lambda self: IndexedSlices, doc="tf.IndexedSlices.")


class RaggedTensorSpec(TypeSpec):
    """Ragged tensors of a shape, a type and a number of ragged dimensions."""

    _fields = ("shape", "dtype", "ragged_rank", "row_splits_dtype")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32, ragged_rank: Optional[int] = None, row_splits_dtype: Any = dtypes.int64) -> None:
        self._shape, self._dtype, self._row_splits_dtype = TensorShape(shape), dtypes.as_dtype(dtype), dtypes.as_dtype(row_splits_dtype)
        if self._row_splits_dtype not in (dtypes.int32, dtypes.int64):
            raise at_user_line(ValueError("row_splits_dtype must be int32 or int64, got %s" % self._row_splits_dtype.name))
        rank = self._shape.ndims
        if ragged_rank is None:
            if rank is None:
                raise at_user_line(ValueError("Must specify ragged_rank or a shape with known rank."))
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise at_user_line(TypeError("ragged_rank must be an int"))
        if rank is not None and ragged_rank >= rank:
            raise at_user_line(ValueError("ragged_rank must be less than rank."))
        self._ragged_rank = ragged_rank

    shape = property(lambda self: self._shape, doc="What is known of the shape.")
    dtype = property(lambda self: self._dtype, doc="The type of the elements.")
    ragged_rank = property(lambda self: self._ragged_rank, doc="The number of ragged dimensions.")
    row_splits_dtype = property(lambda self: self._row_splits_dtype, doc="The type of the row splits.")

    @property
    def value_type(self) -> Any:
        """tf.RaggedTensor."""
        return names.find("RaggedTensor") if self._ragged_rank > 0 else Tensor

    @classmethod
    def from_value(cls, value: Any) -> "RaggedTensorSpec":
        """Of a ragged tensor."""
        return cls(TensorShape(value.shape), value.dtype, value.ragged_rank, value.row_splits.dtype)


class TensorArraySpec(TypeSpec):
    """Tensor arrays with elements of a shape and a type."""

    _fields = ("element_shape", "dtype", "dynamic_size", "infer_shape")

    def __init__(self, element_shape: Any = None, dtype: Any = dtypes.float32, dynamic_size: bool = False, infer_shape: bool = True) -> None:
        self._element_shape, self._dtype, self._dynamic_size, self._infer_shape = TensorShape(element_shape), dtypes.as_dtype(dtype), dynamic_size, infer_shape

    @property
    def value_type(self) -> Any:
        """tf.TensorArray."""
        from millrace.ops.tensor_array_ops import TensorArray

        return TensorArray


class OptionalSpec(TypeSpec):
    """tf.data.experimental.Optional of an element."""

    _fields = ("value_structure",)

    def __init__(self, value_structure: Any) -> None:
        self._value_structure = value_structure

    @property
    def value_type(self) -> Any:
        """tf.data.experimental.Optional."""
        return names.find("data").experimental.Optional


class DatasetSpec(TypeSpec):
    """tf.data.Dataset of elements."""

    _fields = ("element_spec", "dataset_shape")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec, self._dataset_shape = element_spec, TensorShape(dataset_shape)

    element_spec = property(lambda self: self._element_spec, doc="What its elements are.")

    @property
    def value_type(self) -> Any:
        """tf.data.Dataset."""
        return names.find("data").Dataset


def type_spec_from_value(value: Any) -> TypeSpec:
    """What is known of a value; TypeError for one that is none of TensorFlow's."""
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        sparse = SparseTensor(*value) if isinstance(value, SparseTensorValue) else value
        return SparseTensorSpec(sparse.get_shape(), sparse.dtype)
    if isinstance(value, IndexedSlices):
        shape = None
        if value.dense_shape is not None:
            from millrace.framework.static_values import constant_value_as_shape

            shape = constant_value_as_shape(value.dense_shape)
        return IndexedSlicesSpec(shape, value.dtype, value.indices.dtype, None if value.dense_shape is None else value.dense_shape.dtype, value.indices.shape)
    if getattr(value, "dispatches", False):
        return RaggedTensorSpec.from_value(value)
    if hasattr(value, "element_spec"):
        return DatasetSpec(value.element_spec)
    if hasattr(value, "_type_spec"):
        return value._type_spec
    try:
        made = convert_to_tensor(value)
    except (TypeError, ValueError):
        raise at_user_line(TypeError("Could not build a TypeSpec for %r with type %s" % (value, type(value).__name__))) from None
    return TensorSpec(made.shape, made.dtype)
