# SPDX-License-Identifier: Apache-2.0
"""Components of elements, each as one dense tensor: that is what the ops of data sets know.

A sparse tensor travels as the variants of SerializeSparse, a ragged one as that of RaggedTensorToVariant, a data set as its own. The type
spec of a component says how it is read again."""

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
from millrace.framework.type_spec import DatasetSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec, type_spec_from_value
from millrace.ops import array_ops, gen_ops
from millrace.ops.ragged.tensor import RaggedTensor
from millrace.ops.ragged.value import RaggedTensorValue

kinds: Any = {}  # "dataset": the class Dataset, which stands on this module and puts itself here


# ---- values and their specs ----


def values(value: Any) -> Any:
    """A structure of what programs give, with tensors, sparse and ragged ones and data sets as its leaves."""
    return structure.mapped(_value, value)


def _value(leaf: Any) -> Any:
    if isinstance(leaf, SparseTensorValue):
        return SparseTensor.from_value(leaf)
    if isinstance(leaf, RaggedTensorValue):
        return RaggedTensor.from_nested_row_splits(leaf.flat_values, leaf.nested_row_splits)
    if isinstance(leaf, (SparseTensor, RaggedTensor, kinds["dataset"])):
        return leaf
    return convert_to_tensor(leaf)


def specs_of(made: Any) -> Any:
    """The type specs of a structure of values."""
    return structure.mapped(lambda leaf: TensorSpec(leaf.shape, leaf.dtype.base_dtype) if isinstance(leaf, Tensor) else type_spec_from_value(leaf), made)


def specs(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """Type specs of the types, shapes and classes of elements."""
    types = structure.mapped(lambda t: t if isinstance(t, DatasetSpec) else dtypes.as_dtype(t), types)
    found = []
    for dtype, shape, cls in zip(*(structure.up_to(types, x) for x in (types, structure.shapes_from(types, shapes), classes))):
        sparse = isinstance(cls, type) and issubclass(cls, SparseTensor)
        found.append(dtype if isinstance(dtype, DatasetSpec) else (SparseTensorSpec if sparse else TensorSpec)(shape, dtype))
    return structure.pack(types, found)


def types_of(element_spec: Any) -> Any:
    """The types of components; that of a data set is its spec."""
    return structure.mapped(lambda s: s if isinstance(s, DatasetSpec) else s.dtype, element_spec)


def shapes_of(element_spec: Any) -> Any:
    """The shapes of components; that of a data set is its spec."""
    return structure.mapped(lambda s: s if isinstance(s, DatasetSpec) else s.shape, element_spec)


def classes_of(element_spec: Any) -> Any:
    """The classes of components; that of a data set is its spec."""
    return structure.mapped(lambda s: s if isinstance(s, DatasetSpec) else s.value_type, element_spec)


def same_types(one: Any, other: Any) -> bool:
    """Whether two elements have components of the same classes and types."""
    return [(type(s), _type(s)) for s in structure.flatten(one)] == [(type(s), _type(s)) for s in structure.flatten(other)]


def _type(spec: Any) -> Any:
    return [(type(s), s.dtype) for s in structure.flatten(spec.element_spec)] if isinstance(spec, DatasetSpec) else spec.dtype


def reshaped(spec: Any, shape: Any) -> Any:
    """The spec with another shape."""
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return spec if isinstance(spec, DatasetSpec) else type(spec)(shape, spec.dtype)


def free(spec: Any) -> Any:
    """The spec with the rank alone of its shape."""
    return reshaped(spec, None if isinstance(spec, DatasetSpec) or spec.shape.ndims is None else [None] * spec.shape.ndims)


def common(one: Any, other: Any) -> Any:
    """What is known of components of either spec; of shapes of different ranks nothing."""
    if isinstance(one, DatasetSpec):
        return one
    a, b = one.shape, other.shape
    same_rank = a.ndims is not None and a.ndims == b.ndims
    return reshaped(one, [m if m == n else None for m, n in zip(a.as_list(), b.as_list())] if same_rank else None)


def batched(spec: Any, size: Any) -> Any:
    """Of `size` components in a row."""
    if isinstance(spec, DatasetSpec):
        raise at_user_line(TypeError("Batching of elements that are data sets is not supported."))
    shape = TensorShape([size]).concatenate(spec.shape)
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    return reshaped(spec, shape)


def row_of(spec: Any) -> Any:
    """Of a row of the component."""
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
    return (dtypes.variant, TensorShape([])) if isinstance(spec, DatasetSpec) else (spec.dtype, spec.shape)


def encoded(value: Any) -> Tensor:
    """A component as the tensor that it travels as."""
    if isinstance(value, SparseTensor):
        return gen_ops.serialize_sparse(value.indices, value.values, value.dense_shape, dtypes.variant)
    if isinstance(value, RaggedTensor):
        return gen_ops.ragged_tensor_to_variant(value.nested_row_splits, value.flat_values, batched_input=False)
    return value._variant if isinstance(value, kinds["dataset"]) else value


def encoded_rows(value: Any) -> Tensor:
    """The rows of a component as they travel, each on its own."""
    if isinstance(value, SparseTensor):
        return gen_ops.serialize_many_sparse(value.indices, value.values, value.dense_shape, dtypes.variant)
    if isinstance(value, RaggedTensor):
        return gen_ops.ragged_tensor_to_variant(value.nested_row_splits, value.flat_values, batched_input=True)
    if isinstance(value, kinds["dataset"]):
        raise at_user_line(TypeError("A data set has no rows to slice: use flat_map, or from_tensors."))
    return value


def decoded(tensor: Tensor, spec: Any) -> Any:
    """The component that a tensor is."""
    if isinstance(spec, DatasetSpec):
        return kinds["dataset"](tensor, spec.element_spec)
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


def element(made: Any, element_spec: Any) -> Any:
    """An element of what an op has given for it: a tensor, or several."""
    tensors = list(made) if isinstance(made, (list, tuple)) else [made]
    return structure.pack(element_spec, [decoded(*pair) for pair in zip(tensors, structure.flatten(element_spec))])


def _inner_shape(spec: Any) -> TensorShape:
    """What is known of the values' shape."""
    if spec.shape.ndims is None:
        return TensorShape(None)
    return TensorShape([None, *spec.shape[spec.ragged_rank + 1 :].as_list()]) if spec.ragged_rank else spec.shape
