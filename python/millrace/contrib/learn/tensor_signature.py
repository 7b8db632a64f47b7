# SPDX-License-Identifier: Apache-2.0
"""Types and shapes of tensors, by which later ones are told to be of the same kind: the first axis, of examples, may be any size."""

from __future__ import annotations

from typing import Any, NamedTuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.ops import array_ops, math_ops, parsing_ops

_PARSED = {dtypes.int32: dtypes.int64, dtypes.float64: dtypes.float32}  # Example messages have numbers of two types


class _Fields(NamedTuple):
    dtype: Any
    shape: Any
    is_sparse: bool


class TensorSignature(_Fields):
    """The kind of a tensor; a sparse one has no shape."""

    def __new__(cls, tensor: Any) -> "TensorSignature":
        if isinstance(tensor, SparseTensor):
            return super().__new__(cls, tensor.values.dtype, None, True)
        tensor = convert_to_tensor(tensor)
        return super().__new__(cls, tensor.dtype, tensor.get_shape(), False)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both are of one kind."""
        if self.is_sparse != other.is_sparse or not self.dtype.is_compatible_with(other.dtype):
            return False
        if self.is_sparse or self.shape.ndims is None or other.shape.ndims is None:
            return True
        return self.shape.ndims == other.shape.ndims and bool(self.shape[1:].is_compatible_with(other.shape[1:]))

    def get_placeholder(self) -> Any:
        """A placeholder for any number of examples."""
        if self.is_sparse:
            return array_ops.sparse_placeholder(self.dtype.base_dtype)
        return array_ops.placeholder(self.dtype.base_dtype, [None, *self.shape[1:]] if self.shape.ndims else self.shape)

    def get_feature_spec(self) -> Any:
        """How it is parsed."""
        dtype = _PARSED.get(self.dtype.base_dtype, self.dtype.base_dtype)
        return parsing_ops.VarLenFeature(dtype) if self.is_sparse else parsing_ops.FixedLenFeature(self.shape[1:], dtype)


def tensors_compatible(tensors: Any, signatures: Any) -> bool:
    """Whether a tensor, or each that a dict of signatures names, is of the kind."""
    if tensors is None or signatures is None:
        return tensors is signatures
    if isinstance(tensors, dict) != isinstance(signatures, dict):
        return False
    if isinstance(tensors, dict):
        return all(key in tensors and TensorSignature(tensors[key]).is_compatible_with(kind) for key, kind in signatures.items())
    return TensorSignature(tensors).is_compatible_with(signatures)


def create_signatures(tensors: Any) -> Any:
    """The kinds of a tensor, or of those of a dict."""
    if isinstance(tensors, dict):
        return {key: TensorSignature(tensor) for key, tensor in tensors.items()}
    return None if tensors is None else TensorSignature(tensors)


def create_placeholders_from_signatures(signatures: Any) -> Any:
    """Placeholders of these kinds."""
    if isinstance(signatures, dict):
        return {key: kind.get_placeholder() for key, kind in signatures.items()}
    return None if signatures is None else signatures.get_placeholder()


def create_example_parser_from_signatures(signatures: Any, examples_batch: Any, single_feature_name: str = "feature") -> Any:
    """Serialized Example messages as tensors of these kinds."""
    single = not isinstance(signatures, dict)
    named = {single_feature_name: signatures} if single else signatures
    parsed = parsing_ops.parse_example(examples_batch, {key: kind.get_feature_spec() for key, kind in named.items()})
    for key, kind in named.items():
        if not kind.dtype.is_compatible_with(parsed[key].dtype):
            parsed[key] = math_ops.cast(parsed[key], kind.dtype.base_dtype)
    return parsed[single_feature_name] if single else parsed
