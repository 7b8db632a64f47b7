# SPDX-License-Identifier: Apache-2.0
"""Columns of sequences: of each example any number of steps. `sequence_dense` makes tensors [examples, steps, numbers] and lengths of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from millrace.feature_column import categorical
from millrace.feature_column.base import IdsAndWeights, OfClasses, OfOneFeature, _CategoricalColumn, _FeatureColumn, _LazyBuilder, sparse_of
from millrace.feature_column.dense import _EmbeddingColumn, _IndicatorColumn, _shape_of
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.parsing_ops import VarLenFeature
from millrace.ops.sparse_math_ops import sparse_reshape


def sequence_lengths(steps: SparseTensor, numbers: int = 1) -> Tensor:
    """How many steps each example has, of `numbers` values each: int64."""
    last = gen_ops.unsorted_segment_max(steps.indices[:, 1], steps.indices[:, 0], steps.dense_shape[0])
    return math_ops.maximum(gen_ops.floor_div(last, numbers) + 1, math_ops.cast(0, dtypes.int64))


@dataclass(unsafe_hash=True)
class _SequenceCategoricalColumn(OfClasses, _CategoricalColumn):
    """A class for each step; an embedding_column or indicator_column makes numbers of it."""

    categorical_column: Any

    @property
    def name(self) -> str:
        """The feature's."""
        return self.categorical_column.name

    @property
    def _num_buckets(self) -> int:
        return self.categorical_column._num_buckets

    def _transform_feature(self, inputs: _LazyBuilder) -> Any:
        return self.categorical_column._transform_feature(inputs)

    def _get_sparse_tensors(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> IdsAndWeights:
        """[examples, steps, 1]: the last dimension is that of classes at a step."""
        pair = self.categorical_column._get_sparse_tensors(inputs, weight_collections=weight_collections, trainable=trainable)
        wide = array_ops.concat([pair.id_tensor.dense_shape, [1]], 0)
        return IdsAndWeights(sparse_reshape(pair.id_tensor, wide), None if pair.weight_tensor is None else sparse_reshape(pair.weight_tensor, wide))

    def _lengths(self, inputs: _LazyBuilder) -> Tensor:
        return sequence_lengths(self.categorical_column._get_sparse_tensors(inputs).id_tensor)


@dataclass(unsafe_hash=True)
class _SequenceNumericColumn(OfOneFeature, _FeatureColumn):
    """Numbers for each step."""

    key: str
    shape: Tuple[int, ...]
    default_value: float
    dtype: Any
    normalizer_fn: Optional[Callable[[Tensor], Tensor]]

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        made = inputs.get(self.key)
        if self.normalizer_fn is not None:
            made = self.normalizer_fn(made)
        return sparse_of(made)

    def _get_sequence_dense_tensor(self, inputs: _LazyBuilder) -> Tuple[Tensor, Tensor]:
        steps = inputs.get(self)
        dense = gen_ops.sparse_to_dense(steps.indices, steps.dense_shape, steps.values, math_ops.cast(self.default_value, steps.values.dtype.base_dtype))
        numbers = TensorShape(self.shape).num_elements()
        made = array_ops.reshape(dense, array_ops.concat([[array_ops.shape(dense)[0], -1], list(self.shape)], 0))
        return math_ops.cast(made, dtypes.float32), sequence_lengths(steps, numbers)  # type: ignore[arg-type]


def sequence_dense(column: Any, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> Tuple[Tensor, Tensor]:
    """A column's numbers [examples, steps, all numbers of a step], and the lengths."""
    if isinstance(column, _SequenceNumericColumn):
        made, lengths = column._get_sequence_dense_tensor(inputs)
    else:
        classes = getattr(column, "categorical_column", None)
        if not isinstance(classes, _SequenceCategoricalColumn) or not isinstance(column, (_EmbeddingColumn, _IndicatorColumn)):
            raise at_user_line(
                ValueError(
                    "All feature_columns must be of sequences: sequence_numeric_column, or embedding_column or indicator_column of "
                    "sequence_categorical_column_with_*. Given (type %s): %s" % (type(column), column)
                )
            )
        made = column._get_dense_tensor(inputs, weight_collections=weight_collections, trainable=trainable)
        lengths = classes._lengths(inputs)
    shape = array_ops.shape(made)
    flat = array_ops.reshape(made, array_ops.stack([shape[0], shape[1], column._variable_shape.num_elements()]))
    return flat, lengths


# ---- what makes them ----


def sequence_categorical_column_with_identity(key: str, num_buckets: int, default_value: Optional[int] = None) -> _SequenceCategoricalColumn:
    """Steps that are numbers of classes."""
    return _SequenceCategoricalColumn(categorical.categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = dtypes.string) -> _SequenceCategoricalColumn:
    """Steps that are words or numbers, by hashes of them."""
    return _SequenceCategoricalColumn(categorical.categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: Optional[int] = None,
    num_oov_buckets: int = 0,
    default_value: Optional[int] = None,
    dtype: Any = dtypes.string,
) -> _SequenceCategoricalColumn:
    """Steps that are words of a file, a line each."""
    return _SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype)
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> _SequenceCategoricalColumn:
    """Steps that are words of a list."""
    return _SequenceCategoricalColumn(categorical.categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets))


def sequence_numeric_column(
    key: str, shape: Any = (1,), default_value: float = 0.0, dtype: Any = dtypes.float32, normalizer_fn: Optional[Callable[[Tensor], Tensor]] = None
) -> _SequenceNumericColumn:
    """Steps of numbers of a shape; default_value stands where an example has fewer steps."""
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise at_user_line(ValueError("dtype must be convertible to float. dtype: %s, key: %s" % (dtype, key)))
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise at_user_line(TypeError("normalizer_fn must be a callable. Given: %s" % (normalizer_fn,)))
    return _SequenceNumericColumn(key, _shape_of(shape, key), default_value, dtype, normalizer_fn)
