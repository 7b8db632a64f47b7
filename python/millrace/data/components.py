# SPDX-License-Identifier: Apache-2.0
"""Components of elements, each as one dense tensor: that is what the ops of data sets know.

A sparse tensor travels as the variants of SerializeSparse, a ragged one as that of RaggedTensorToVariant, a TensorArray as the list of its
elements, a data set and an Optional as their own. The type spec of a component says how it is read again."""

from __future__ import annotations

from typing import Any, List, Tuple

from millrace.data import structure
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue
from millrace.framework.convert import convert_to_tensor
from millrace.framework.dtypes import DType
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import (
    DatasetSpec,
    OptionalSpec,
    RaggedTensorSpec,
    SparseTensorSpec,
    TensorArraySpec,
    TensorSpec,
    TypeSpec,
    type_spec_from_value,
)
from millrace.ops import array_ops, gen_ops
from millrace.ops.ragged.tensor import RaggedTensor
from millrace.ops.ragged.value import RaggedTensorValue
from millrace.ops.tensor_array_ops import TensorArray

kinds: Any = {"optional": ()}  # "dataset", "optional": the classes Dataset and Optional, which stand on this module and put themselves here
_OWN_KINDS = (DatasetSpec, OptionalSpec)  # in types, shapes and classes of elements they stand for themselves


# ---- values and their specs ----


def values(value: Any) -> Any:
    """A structure of what programs give, with tensors, sparse and ragged ones and data sets as its leaves."""
    return structure.mapped(_value, value)


def returned(value: Any) -> Any:
    """What a function of elements gives: a list is a tuple of tensors."""
    return values(tuple(value) if isinstance(value, list) else value)


def _value(leaf: Any) -> Any:
    if isinstance(leaf, SparseTensorValue):
        return SparseTensor.from_value(leaf)
    if isinstance(leaf, RaggedTensorValue):
        return RaggedTensor.from_nested_row_splits(leaf.flat_values, leaf.nested_row_splits)
    if isinstance(leaf, (SparseTensor, RaggedTensor, TensorArray, kinds["dataset"], kinds["optional"])):
        return leaf
    if isinstance(leaf, list) and leaf and all(isinstance(part, kinds["dataset"]) for part in leaf):
        return kinds["dataset"](array_ops.stack([part._variant for part in leaf]), leaf[0].element_spec)
    return convert_to_tensor(leaf)


def specs_of(made: Any) -> Any:
    """The type specs of a structure of values."""
    return structure.mapped(lambda leaf: TensorSpec(leaf.shape, leaf.dtype.base_dtype) if isinstance(leaf, Tensor) else type_spec_from_value(leaf), made)


def specs(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """Type specs of the types, shapes and classes of elements."""
    types = structure.mapped(lambda t: t if isinstance(t, TypeSpec) else dtypes.as_dtype(t), types)
    found = []
    for dtype, shape, cls in zip(*(structure.up_to(types, x) for x in (types, structure.shapes_from(types, shapes), classes))):
        found.append(dtype if isinstance(dtype, TypeSpec) else cls if isinstance(cls, TypeSpec) else _spec_of(cls, shape, dtype))
    return structure.pack(types, found)


def _spec_of(cls: Any, shape: TensorShape, dtype: DType) -> Any:
    """The spec of components of a class. The shape of a TensorArray begins with dynamic_size and infer_shape, as dimensions."""
    if isinstance(cls, type) and issubclass(cls, TensorArray):
        dynamic_size, infer_shape = (None if size is None else bool(size) for size in shape[:2].as_list())
        return TensorArraySpec(shape[2:], dtype, dynamic_size, infer_shape)
    return (SparseTensorSpec if isinstance(cls, type) and issubclass(cls, SparseTensor) else TensorSpec)(shape, dtype)


def types_of(element_spec: Any) -> Any:
    """The types of components; that of a data set or an Optional is its spec."""
    return structure.mapped(lambda s: s if isinstance(s, _OWN_KINDS) else s.dtype, element_spec)


def shapes_of(element_spec: Any) -> Any:
    """The shapes of components; that of a data set or an Optional is its spec, that of a TensorArray tells its flags first."""
    return structure.mapped(_shape_of, element_spec)


def _shape_of(spec: Any) -> Any:
    if isinstance(spec, TensorArraySpec):
        return TensorShape([spec._dynamic_size, spec._infer_shape]).concatenate(spec._element_shape)
    return spec if isinstance(spec, _OWN_KINDS) else spec.shape


def classes_of(element_spec: Any) -> Any:
    """The classes of components; that of a data set or an Optional is its spec."""
    return structure.mapped(lambda s: s if isinstance(s, _OWN_KINDS) else s.value_type, element_spec)


def same_types(one: Any, other: Any) -> bool:
    """Whether two elements have components of the same classes and types."""
    return [(type(s), _type(s)) for s in structure.flatten(one)] == [(type(s), _type(s)) for s in structure.flatten(other)]


def _type(spec: Any) -> Any:
    if isinstance(spec, _OWN_KINDS):
        within = spec.element_spec if isinstance(spec, DatasetSpec) else spec._value_structure
        return [(type(s), _type(s)) for s in structure.flatten(within)]
    return spec.dtype


def reshaped(spec: Any, shape: Any) -> Any:
    """The spec with another shape."""
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return type(spec)(shape, spec.dtype) if isinstance(spec, (TensorSpec, SparseTensorSpec)) else spec


def free(spec: Any) -> Any:
    """The spec with the rank alone of its shape."""
    return reshaped(spec, None if not is_of_shape(spec) or spec.shape.ndims is None else [None] * spec.shape.ndims)


def is_of_shape(spec: Any) -> bool:
    """Whether components have a shape, and rows: tensors, sparse and ragged ones."""
    return not isinstance(spec, (*_OWN_KINDS, TensorArraySpec))


def common(one: Any, other: Any) -> Any:
    """What is known of components of either spec; of shapes of different ranks nothing."""
    if not is_of_shape(one):
        return one
    a, b = one.shape, other.shape
    same_rank = a.ndims is not None and a.ndims == b.ndims
    return reshaped(one, [m if m == n else None for m, n in zip(a.as_list(), b.as_list())] if same_rank else None)


def batched(spec: Any, size: Any) -> Any:
    """Of `size` components in a row."""
    if isinstance(spec, DatasetSpec):
        return DatasetSpec(spec.element_spec, TensorShape([size]).concatenate(spec._dataset_shape))
    if not is_of_shape(spec):
        raise at_user_line(TypeError("Batching of elements that are %s is not supported." % spec.value_type.__name__))
    shape = TensorShape([size]).concatenate(spec.shape)
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    return reshaped(spec, shape)


def row_of(spec: Any) -> Any:
    """Of a row of the component."""
    if isinstance(spec, DatasetSpec):
        return DatasetSpec(spec.element_spec, spec._dataset_shape[1:])
    if not is_of_shape(spec):
        raise at_user_line(TypeError("Elements that are %s have no rows." % spec.value_type.__name__))
    shape = spec.shape[1:] if spec.shape.ndims is not None else TensorShape(None)
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank - 1, spec.row_splits_dtype)
    return reshaped(spec, shape)


# ---- as tensors ----


def flat(element_spec: Any) -> Tuple[List[DType], List[TensorShape]]:
    """The types and shapes of the tensors that components travel as."""
    kinds_of = [_as_tensor(s) for s in structure.flatten(element_spec)]
    return [dtype for dtype, _ in kinds_of], [shape for _, shape in kinds_of]


def _as_tensor(spec: Any) -> Tuple[DType, TensorShape]:
    if isinstance(spec, (SparseTensorSpec, RaggedTensorSpec)):
        return dtypes.variant, TensorShape(None)
    if isinstance(spec, DatasetSpec):
        return dtypes.variant, spec._dataset_shape
    return (spec.dtype, spec.shape) if is_of_shape(spec) else (dtypes.variant, TensorShape([]))


def encoded(value: Any) -> Tensor:
    """A component as the tensor that it travels as."""
    if isinstance(value, SparseTensor):
        return gen_ops.serialize_sparse(value.indices, value.values, value.dense_shape, dtypes.variant)
    if isinstance(value, RaggedTensor):
        return gen_ops.ragged_tensor_to_variant(value.nested_row_splits, value.flat_values, batched_input=False)
    if isinstance(value, TensorArray):
        known = value.element_shape
        return gen_ops.tensor_list_from_tensor(value.stack(), _sizes(known))
    return value._variant if isinstance(value, (kinds["dataset"], kinds["optional"])) else value


def encoded_rows(value: Any) -> Tensor:
    """The rows of a component as they travel, each on its own."""
    if isinstance(value, SparseTensor):
        return gen_ops.serialize_many_sparse(value.indices, value.values, value.dense_shape, dtypes.variant)
    if isinstance(value, RaggedTensor):
        return gen_ops.ragged_tensor_to_variant(value.nested_row_splits, value.flat_values, batched_input=True)
    if isinstance(value, kinds["dataset"]):
        if value._variant.shape.ndims == 0:
            raise at_user_line(ValueError("Unbatching a dataset is only supported for rank >= 1: use flat_map, or from_tensors."))
        return value._variant
    if isinstance(value, (TensorArray, kinds["optional"])):
        raise at_user_line(TypeError("A %s has no rows to slice: use from_tensors." % type(value).__name__))
    return value


def decoded(tensor: Tensor, spec: Any) -> Any:
    """The component that a tensor is."""
    if isinstance(spec, DatasetSpec):
        tensor.set_shape(spec._dataset_shape)
        return kinds["dataset"](tensor, spec.element_spec)
    if isinstance(spec, OptionalSpec):
        return kinds["optional"](tensor, spec._value_structure)
    if isinstance(spec, TensorArraySpec):
        return _array_of_list(tensor, spec)
    if isinstance(spec, SparseTensorSpec):
        made = SparseTensor(*gen_ops.deserialize_sparse(tensor, spec.dtype))
        rank = spec.shape.ndims
        made.indices.set_shape([None, rank])
        made.dense_shape.set_shape([rank])
        return made
    if not isinstance(spec, RaggedTensorSpec):
        return tensor
    # A row of a ragged tensor may be dense: then it is that of a vector of one.
    rows = tensor if spec.ragged_rank else array_ops.expand_dims(tensor, 0)
    rank, kind = max(spec.ragged_rank, 1), spec.row_splits_dtype
    splits, inner = gen_ops.ragged_tensor_from_variant(rows, -1, rank, spec.dtype, Tsplits=kind)
    inner.set_shape(_inner_shape(spec))
    return RaggedTensor.from_nested_row_splits(inner, splits) if spec.ragged_rank else inner


def _array_of_list(tensor: Tensor, spec: Any) -> TensorArray:
    """A TensorArray with the elements of a list."""
    known, size = spec._element_shape, gen_ops.tensor_list_length(tensor)
    array = TensorArray(spec.dtype, size, dynamic_size=spec._dynamic_size, clear_after_read=False, infer_shape=spec._infer_shape, element_shape=known)
    return array.unstack(gen_ops.tensor_list_stack(tensor, _sizes(known), spec.dtype))


def _sizes(shape: TensorShape) -> Tensor:
    """A shape as ops of lists take it, -1 for what is not known."""
    return convert_to_tensor(-1 if shape.ndims is None else [-1 if n is None else n for n in shape.as_list()], dtypes.int32)


def element(made: Any, element_spec: Any) -> Any:
    """An element of what an op has given for it: a tensor, or several."""
    tensors = list(made) if isinstance(made, (list, tuple)) else [made]
    return structure.pack(element_spec, [decoded(*pair) for pair in zip(tensors, structure.flatten(element_spec))])


def _inner_shape(spec: Any) -> TensorShape:
    """What is known of the values' shape."""
    if spec.shape.ndims is None:
        return TensorShape(None)
    return TensorShape([None, *spec.shape[spec.ragged_rank + 1 :].as_list()]) if spec.ragged_rank else spec.shape
