# SPDX-License-Identifier: Apache-2.0
"""tf.TypeSpec and its kinds: what is known of a value before it is there."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace import names
from millrace.framework import dtypes, nest, numpy_cast
from millrace.framework.composite_tensors import IndexedSlices, IndexedSlicesValue, SparseTensor, SparseTensorValue
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import gen_ops


class TypeSpec:
    """What values are like: of which class, with components of which types and shapes. Two are equal when all of that is."""

    _fields: Tuple[str, ...] = ()

    @property
    def value_type(self) -> Any:
        """The class of the values."""
        raise NotImplementedError("%s.value_type" % type(self).__name__)

    def _serialize(self) -> Tuple[Any, ...]:
        return tuple(getattr(self, "_" + name) for name in self._fields)

    @classmethod
    def _deserialize(cls, serialization: Any) -> "TypeSpec":
        return cls(*serialization)

    def _key(self) -> Any:
        return type(self), _comparable(self._serialize(), type(self))

    # ---- values as their components: a structure (of tensors or of further values), and as a list of tensors ----

    @property
    def _component_specs(self) -> Any:
        raise NotImplementedError("%s._component_specs()" % type(self).__name__)

    def _to_components(self, value: Any) -> Any:
        raise NotImplementedError("%s._to_components()" % type(self).__name__)

    def _from_components(self, components: Any) -> Any:
        raise NotImplementedError("%s._from_components()" % type(self).__name__)

    @property
    def _flat_tensor_specs(self) -> List[Any]:
        return nest.flatten(self._component_specs, expand_composites=True)

    def _to_tensor_list(self, value: Any) -> List[Any]:
        return nest.flatten(self._to_components(value), expand_composites=True)

    def _checked_tensors(self, tensor_list: Any) -> None:
        expected, found = self._flat_tensor_specs, [type_spec_from_value(t) for t in tensor_list]
        if len(found) != len(expected):
            raise at_user_line(ValueError("Incompatible input: wrong number of tensors"))
        for i, (have, wanted) in enumerate(zip(found, expected)):
            if not have.is_compatible_with(wanted):
                raise at_user_line(ValueError("Incompatible input: tensor %d (%s) is incompatible with %s" % (i, tensor_list[i], wanted)))

    def _from_tensor_list(self, tensor_list: Any) -> Any:
        self._checked_tensors(tensor_list)
        return self._from_components(nest.pack_sequence_as(self._component_specs, list(tensor_list), expand_composites=True))

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or what another says, fits."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else type_spec_from_value(spec_or_value)
        if type(self) is not type(other):
            return False
        return _compatible(self._serialize(), other._serialize())

    def most_specific_compatible_type(self, other: "TypeSpec") -> "TypeSpec":
        """What both are; ValueError where there is no such thing."""
        if type(self) is not type(other):
            raise at_user_line(ValueError("No TypeSpec is compatible with both %s and %s" % (self, other)))
        return self._deserialize(_merged(self._serialize(), other._serialize()))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, TypeSpec) and type(self) is type(other) and self._key() == other._key()

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return "%s%s" % (type(self).__name__, self._serialize())

    def __reduce__(self) -> Any:
        return type(self), self._serialize()


def _comparable(value: Any, owner: type) -> Any:
    """What a spec is made of, as something that can be a key; ValueError for what is none."""
    if value is None or isinstance(value, (int, float, bool, str, bytes, dtypes.DType, TypeSpec)):
        return value
    if isinstance(value, TensorShape):
        return TensorShape, None if value.ndims is None else tuple(value.as_list())
    if isinstance(value, dict):
        return tuple((_comparable(key, owner), _comparable(value[key], owner)) for key in sorted(value))
    if isinstance(value, tuple):
        return tuple(_comparable(v, owner) for v in value)
    if isinstance(value, np.ndarray):
        return np.ndarray, value.shape, value.dtype.str, value.tobytes()
    raise ValueError("Unsupported value type %s returned by %s._serialize" % (type(value).__name__, owner.__name__))


def _compatible(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_compatible, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_compatible(a[key], b[key]) for key in a)
    if isinstance(a, (TypeSpec, TensorShape, dtypes.DType)):
        return bool(a.is_compatible_with(b))
    return bool(np.all(a == b))


def _merged(a: Any, b: Any) -> Any:
    """What is known of both, of parts that specs are made of."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(map(_merged, a, b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {key: _merged(a[key], b[key]) for key in a}
    if isinstance(a, TensorShape) and isinstance(b, TensorShape):
        same = a.ndims is not None and a.ndims == b.ndims
        return TensorShape([m if m == n else None for m, n in zip(a.as_list(), b.as_list())]) if same else TensorShape(None)
    if isinstance(a, TypeSpec) and isinstance(b, TypeSpec):
        return a.most_specific_compatible_type(b)
    if type(a) is not type(b) or not np.all(a == b):
        raise at_user_line(ValueError("Types are not compatible: %r vs %r" % (a, b)))
    return a


class BatchableTypeSpec(TypeSpec):
    """Of values that can be put together to one with another dimension, and taken apart."""

    def _batch(self, batch_size: Optional[int]) -> TypeSpec:
        raise NotImplementedError("%s._batch" % type(self).__name__)

    def _unbatch(self) -> TypeSpec:
        raise NotImplementedError("%s._unbatch" % type(self).__name__)

    def _to_batched_tensor_list(self, value: Any) -> List[Any]:
        tensors = self._to_tensor_list(value)
        if any(t.shape.ndims == 0 for t in tensors):
            raise at_user_line(ValueError("Value %s has insufficient rank for batching." % (value,)))
        return tensors


def _of_arrays(parts: Any) -> bool:
    return all(isinstance(p, np.ndarray) for p in parts)


class TensorSpec(BatchableTypeSpec):
    """Tensors of a shape and a type."""

    is_leaf_spec = True  # one tensor, not the components of several

    _fields: Tuple[str, ...] = ("shape", "dtype", "name")

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: Optional[str] = None) -> None:
        self._shape, self._dtype, self._name = TensorShape(shape), dtypes.as_dtype(dtype), name

    shape = property(lambda self: self._shape, doc="What is known of the shape.")
    dtype = property(lambda self: self._dtype, doc="The type of the elements.")
    name = property(lambda self: self._name, doc="A name, or None.")
    value_type = property(lambda self: Tensor, doc="tf.Tensor.")
    is_discrete = property(lambda self: self._dtype.is_integer, doc="Whether the elements are integers.")
    is_continuous = property(lambda self: self._dtype.is_floating, doc="Whether the elements are real numbers of floating point.")

    _component_specs = property(lambda self: self)  # type: ignore[assignment]

    def _to_components(self, value: Any) -> Any:
        return convert_to_tensor(value, self._dtype)

    def _from_components(self, components: Any) -> Any:
        return components

    def most_specific_compatible_type(self, other: Any) -> "TensorSpec":
        """What both are: the dimensions and the name that they share."""
        if type(self) is not type(other) or self._dtype != other.dtype:
            raise at_user_line(ValueError("No TypeSpec is compatible with both %s and %s" % (self, other)))
        return TensorSpec(_merged(self._shape, other.shape), self._dtype, self._name if self._name == other.name else None)

    def _batch(self, batch_size: Optional[int]) -> "TensorSpec":
        return TensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> "TensorSpec":
        if self._shape.ndims == 0:
            raise at_user_line(ValueError("Unbatching a tensor is only supported for rank >= 1"))
        return TensorSpec(self._shape[1:], self._dtype)

    @classmethod
    def is_bounded(cls) -> bool:
        """Whether the elements are within bounds that the specification tells."""
        return False

    @classmethod
    def from_spec(cls, spec: Any, name: Optional[str] = None) -> "TensorSpec":
        """Of what has a shape and a dtype."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: Optional[str] = None) -> "TensorSpec":
        """Of a tensor."""
        return cls(tensor.shape, tensor.dtype, name or tensor.op.name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether type and shape fit. A value of several tensors is none."""
        if nest.is_sequence_or_composite(spec_or_tensor) and not nest.is_sequence(spec_or_tensor):
            return False
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
                try:
                    np.broadcast_to(bound, [int(d) for d in self._shape])
                except ValueError as error:
                    raise at_user_line(ValueError("minimum or maximum is not compatible with shape %s: %s" % (self._shape, error))) from None
            bound.setflags(write=False)

    minimum = property(lambda self: self._minimum, doc="The least that elements may be.")
    maximum = property(lambda self: self._maximum, doc="The most that they may be.")

    def _key(self) -> Any:
        return TensorSpec(self._shape, self._dtype, self._name)._key()

    def __eq__(self, other: Any) -> bool:
        return super().__eq__(other) and np.allclose(self._minimum, other._minimum) and np.allclose(self._maximum, other._maximum)

    __hash__ = TensorSpec.__hash__  # which looks at the key alone, as close bounds are equal

    def __repr__(self) -> str:
        return "Bounded%s, minimum=%r, maximum=%r)" % (super().__repr__()[:-1], self._minimum, self._maximum)

    @classmethod
    def is_bounded(cls) -> bool:
        """True."""
        return True

    @classmethod
    def from_spec(cls, spec: Any, name: Optional[str] = None) -> "BoundedTensorSpec":
        """Of another's shape, type and bounds; where it has none, those of the type."""
        kind = dtypes.as_dtype(spec.dtype)
        return cls(spec.shape, kind, getattr(spec, "minimum", kind.min), getattr(spec, "maximum", kind.max), name or spec.name)


class _EncodedSpec(BatchableTypeSpec):
    """Of values that travel as one variant."""

    _flat_tensor_specs = property(lambda self: [TensorSpec(None, dtypes.variant)])  # type: ignore[assignment]

    def _from_tensor_list(self, tensor_list: Any) -> Any:
        self._checked_tensors(tensor_list)
        return self._decoded(tensor_list[0])

    def _decoded(self, variant: Any) -> Any:
        raise NotImplementedError("%s._decoded" % type(self).__name__)


class SparseTensorSpec(_EncodedSpec):
    """Sparse tensors of a shape and a type."""

    _fields = ("shape", "dtype")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)

    shape = property(lambda self: self._shape, doc="What is known of the dense shape.")
    dtype = property(lambda self: self._dtype, doc="The type of the elements.")
    value_type = property(lambda self: SparseTensor, doc="tf.SparseTensor.")

    @property
    def _component_specs(self) -> Any:
        rank = self._shape.ndims
        return [TensorSpec([None, rank], dtypes.int64), TensorSpec([None], self._dtype), TensorSpec([rank], dtypes.int64)]

    def _to_components(self, value: Any) -> Any:
        value = SparseTensor(*value) if isinstance(value, SparseTensorValue) else value
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components: Any) -> Any:
        return (SparseTensorValue if _of_arrays(components) else SparseTensor)(*components)

    def _to_tensor_list(self, value: Any) -> List[Any]:
        indices, values, shape = self._to_components(value)
        return [gen_ops.serialize_sparse(indices, values, shape, out_type=dtypes.variant)]

    def _to_batched_tensor_list(self, value: Any) -> List[Any]:
        if value.get_shape().ndims == 0:
            raise at_user_line(ValueError("Value %s has insufficient rank for batching." % (value,)))
        indices, values, shape = self._to_components(value)
        return [gen_ops.serialize_many_sparse(indices, values, shape, out_type=dtypes.variant)]

    def _decoded(self, variant: Any) -> Any:
        made, rank = SparseTensor(*gen_ops.deserialize_sparse(variant, self._dtype)), self._shape.ndims
        made.indices.set_shape([None, rank])
        made.dense_shape.set_shape([rank])
        return made

    def _batch(self, batch_size: Optional[int]) -> "SparseTensorSpec":
        return SparseTensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> "SparseTensorSpec":
        if self._shape.ndims == 0:
            raise at_user_line(ValueError("Unbatching a tensor is only supported for rank >= 1"))
        return SparseTensorSpec(self._shape[1:], self._dtype)

    @classmethod
    def from_value(cls, value: Any) -> "SparseTensorSpec":
        """Of a sparse tensor."""
        if isinstance(value, SparseTensorValue):
            value = SparseTensor(*value)
        if not isinstance(value, SparseTensor):
            raise at_user_line(TypeError("Expected SparseTensor or SparseTensorValue"))
        return cls(value.get_shape(), value.dtype)


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

    @property
    def _component_specs(self) -> Any:
        specs = [TensorSpec(self._indices_shape.concatenate(self._shape[1:]), self._values_dtype), TensorSpec(self._indices_shape, self._indices_dtype)]
        return (*specs, TensorSpec([self._shape.ndims], self._dense_shape_dtype)) if self._dense_shape_dtype is not None else tuple(specs)

    def _to_components(self, value: Any) -> Any:
        return value._components()

    def _from_components(self, components: Any) -> Any:
        if _of_arrays(components):
            return IndexedSlicesValue(*components, *[None] * (3 - len(components)))
        return IndexedSlices(*components)


class RaggedTensorSpec(_EncodedSpec):
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

    @property
    def _component_specs(self) -> Any:
        if self._ragged_rank == 0:
            return [TensorSpec(self._shape, self._dtype)]
        rows = None if self._shape.ndims is None or self._shape[0].value is None else self._shape[0].value + 1
        inner = TensorShape(None) if self._shape.ndims is None else self._shape[self._ragged_rank + 1 :]
        splits = [TensorSpec([rows], self._row_splits_dtype)] + [TensorSpec([None], self._row_splits_dtype)] * (self._ragged_rank - 1)
        return [TensorSpec(TensorShape([None]).concatenate(inner), self._dtype), *splits]

    def _to_components(self, value: Any) -> Any:
        return [value.flat_values, *value.nested_row_splits] if hasattr(value, "nested_row_splits") else [value]

    def _from_components(self, components: Any) -> Any:
        made = components[0]
        for splits in reversed(components[1:]):
            made = (
                names.find("ragged.RaggedTensorValue")(made, splits)
                if _of_arrays(components)
                else self.value_type.from_row_splits(made, splits, validate=False)
            )
        return made

    def _to_tensor_list(self, value: Any) -> List[Any]:
        return [value._to_variant()]

    def _to_batched_tensor_list(self, value: Any) -> List[Any]:
        return [value._to_variant(batched_input=True)]

    def _decoded(self, variant: Any) -> Any:
        made = names.find("RaggedTensor")._from_variant(variant, self._dtype, self._ragged_rank, row_splits_dtype=self._row_splits_dtype)
        if self._shape.ndims is not None:
            made.flat_values.set_shape(TensorShape([None]).concatenate(self._shape[self._ragged_rank + 1 :]))
        return made

    def _batch(self, batch_size: Optional[int]) -> "RaggedTensorSpec":
        return RaggedTensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype, self._ragged_rank + 1)

    def _unbatch(self) -> "RaggedTensorSpec":
        return RaggedTensorSpec(self._shape[1:], self._dtype, self._ragged_rank - 1)

    @classmethod
    def from_value(cls, value: Any) -> "RaggedTensorSpec":
        """Of a ragged tensor."""
        return cls(TensorShape(value.shape), value.dtype, value.ragged_rank, value.row_splits.dtype)


class TensorArraySpec(TypeSpec):
    """Tensor arrays with elements of a shape and a type."""

    _fields = ("element_shape", "dtype", "dynamic_size", "infer_shape")

    def __init__(
        self, element_shape: Any = None, dtype: Any = dtypes.float32, dynamic_size: Optional[bool] = False, infer_shape: Optional[bool] = True
    ) -> None:
        self._element_shape, self._dtype, self._dynamic_size, self._infer_shape = TensorShape(element_shape), dtypes.as_dtype(dtype), dynamic_size, infer_shape

    dtype = property(lambda self: self._dtype, doc="The type of their elements.")

    @classmethod
    def from_value(cls, value: Any) -> "TensorArraySpec":
        """Of a tensor array."""
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> Any:
        """tf.TensorArray."""
        return names.find("python.ops.tensor_array_ops").TensorArray


class OptionalSpec(TypeSpec):
    """tf.data.experimental.Optional of an element."""

    _fields = ("value_structure",)

    def __init__(self, value_structure: Any) -> None:
        self._value_structure = value_structure

    _component_specs = property(lambda self: TensorSpec([], dtypes.variant))  # type: ignore[assignment]

    def _to_components(self, value: Any) -> Any:
        return value._variant_tensor

    def _from_components(self, components: Any) -> Any:
        return self.value_type(components, self._value_structure)

    @classmethod
    def from_value(cls, value: Any) -> "OptionalSpec":
        """Of an Optional."""
        return cls(value.value_structure)

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
    _component_specs = property(lambda self: TensorSpec(self._dataset_shape, dtypes.variant))  # type: ignore[assignment]

    def _to_components(self, value: Any) -> Any:
        return value._variant_tensor

    def _from_components(self, components: Any) -> Any:
        return self.value_type(components, self._element_spec)

    @classmethod
    def from_value(cls, value: Any) -> "DatasetSpec":
        """Of a data set; several in one tensor have a shape."""
        return cls(value.element_spec, value._variant_tensor.shape)

    @property
    def value_type(self) -> Any:
        """tf.data.Dataset."""
        return names.find("data").Dataset


_CONVERTERS: List[Tuple[Any, Any, bool]] = []


def register_type_spec_from_value_converter(type_object: Any, converter_fn: Any, allow_subclass: bool = False) -> None:
    """Says how a TypeSpec is made of a value of a class (and with allow_subclass of those below it)."""
    _CONVERTERS.append((type_object, converter_fn, allow_subclass))


def _known_spec(value: Any) -> Optional[TypeSpec]:
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype)
    for kind, converter, subclass in reversed(_CONVERTERS):
        if type(value) is kind or subclass and isinstance(value, kind):
            return converter(value)
    if isinstance(value, IndexedSlices):
        shape = None
        if value.dense_shape is not None:
            from millrace.framework.static_values import constant_value_as_shape

            shape = constant_value_as_shape(value.dense_shape)
        return IndexedSlicesSpec(shape, value.dtype, value.indices.dtype, None if value.dense_shape is None else value.dense_shape.dtype, value.indices.shape)
    if isinstance(value, (SparseTensor, SparseTensorValue)):
        return SparseTensorSpec.from_value(value)
    if getattr(value, "dispatches", False):
        return RaggedTensorSpec.from_value(value)
    if hasattr(value, "element_spec"):
        return DatasetSpec.from_value(value) if hasattr(value, "_variant_tensor") else DatasetSpec(value.element_spec)
    return value._type_spec if hasattr(value, "_type_spec") else None


def type_spec_from_value(value: Any) -> TypeSpec:
    """What is known of a value; TypeError for one that is none of TensorFlow's. A list of values that fit together is a batch of them."""
    found = _known_spec(value)
    if found is None and isinstance(value, list) and value:
        parts = [_known_spec(v) for v in value]
        if isinstance(parts[0], BatchableTypeSpec):
            try:
                merged: Any = parts[0]
                for part in parts[1:]:
                    merged = merged.most_specific_compatible_type(part)
                return merged._batch(len(parts))
            except (TypeError, ValueError):
                pass  # they do not
    if found is not None:
        return found
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        return TensorSpec(value.shape, dtypes.as_dtype(value.dtype))
    try:
        made = convert_to_tensor(value)
    except (TypeError, ValueError):
        raise at_user_line(TypeError("Could not build a TypeSpec for %r with type %s" % (value, type(value).__name__))) from None
    return TensorSpec(made.shape, made.dtype)
