# SPDX-License-Identifier: Apache-2.0
"""Columns of numbers: those of the features themselves, ranges of them, and classes as rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from millrace.feature_column.base import IdsAndWeights, OfClasses, OfOneFeature, _CategoricalColumn, _DenseColumn, _LazyBuilder, is_count
from millrace.feature_column.categorical import _WeightedCategoricalColumn
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, add_to_collection, get_collection
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, init_ops, math_ops
from millrace.ops.sparse_math_ops import sparse_slice
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse
from millrace.ops.sparse_ops import sparse_merge, sparse_tensor_to_dense
from millrace.ops.variable_scope import get_variable


@dataclass(unsafe_hash=True)
class _NumericColumn(OfOneFeature, _DenseColumn):
    key: str
    shape: Tuple[int, ...]
    default_value: Any
    dtype: Any
    normalizer_fn: Any

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        from millrace.ops import parsing_ops

        return {self.key: parsing_ops.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def _transform_feature(self, inputs: _LazyBuilder) -> Tensor:
        value = inputs.get(self.key)
        if isinstance(value, SparseTensor):
            raise at_user_line(ValueError("The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. key: %s" % self.key))
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return math_ops.cast(value, dtypes.float32)

    def _get_dense_tensor(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> Tensor:
        return inputs.get(self)


def classes_of_ranges(buckets: Tensor, width: int, ranges: int) -> SparseTensor:
    """Numbers of ranges [examples, width] as classes: those of the first number, then those of the second, and so on."""
    batch = array_ops.shape(buckets)[0]
    row = array_ops.reshape(array_ops.tile(array_ops.expand_dims(math_ops.range(0, batch), 1), [1, width]), [-1])
    column = array_ops.tile(math_ops.range(0, width), array_ops.expand_dims(batch, 0))
    classes = array_ops.reshape(buckets, [-1]) + ranges * column
    places = math_ops.cast(array_ops.stack([row, column], 1), dtypes.int64)
    return SparseTensor(places, classes, math_ops.cast(array_ops.stack([batch, width]), dtypes.int64))


def indicators(pair: IdsAndWeights, depth: int) -> Tensor:
    """How often each class is there, or how much it counts, along a new last dimension in place of the ids' last."""
    if pair.weight_tensor is not None:
        merged = sparse_merge(pair.id_tensor, pair.weight_tensor, depth)
        return sparse_tensor_to_dense(sparse_slice(merged, [0, 0], merged.dense_shape))  # without ids of no class, which are -1
    dense = sparse_tensor_to_dense(pair.id_tensor, default_value=-1)
    return math_ops.reduce_sum(array_ops.one_hot(dense, depth, 1.0, 0.0), -2)


@dataclass(unsafe_hash=True)
class _BucketizedColumn(_DenseColumn, _CategoricalColumn):
    source_column: _NumericColumn
    boundaries: Tuple[float, ...]

    @property
    def name(self) -> str:
        """That of its source, bucketized."""
        return "%s_bucketized" % self.source_column.name

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        return self.source_column._parse_example_spec

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape((*self.source_column.shape, len(self.boundaries) + 1))

    @property
    def _num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def _transform_feature(self, inputs: _LazyBuilder) -> Tensor:
        return gen_ops.bucketize(inputs.get(self.source_column), list(self.boundaries))

    def _get_dense_tensor(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> Tensor:
        return array_ops.one_hot(math_ops.cast(inputs.get(self), dtypes.int64), len(self.boundaries) + 1, 1.0, 0.0)

    def _get_sparse_tensors(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> IdsAndWeights:
        return IdsAndWeights(classes_of_ranges(inputs.get(self), self.source_column.shape[0], len(self.boundaries) + 1), None)


@dataclass(unsafe_hash=True)
class _IndicatorColumn(OfClasses, _DenseColumn):
    categorical_column: Any

    @property
    def name(self) -> str:
        """That of the classes, as indicator."""
        return "%s_indicator" % self.categorical_column.name

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([1, self.categorical_column._num_buckets])

    def _transform_feature(self, inputs: _LazyBuilder) -> Tensor:
        return indicators(self.categorical_column._get_sparse_tensors(inputs), self.categorical_column._num_buckets)

    def _get_dense_tensor(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> Tensor:
        return inputs.get(self)


@dataclass(unsafe_hash=True)
class _EmbeddingColumn(OfClasses, _DenseColumn):
    categorical_column: Any
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: Optional[str]
    tensor_name_in_ckpt: Optional[str]
    max_norm: Optional[float]
    trainable: bool

    @property
    def name(self) -> str:
        """That of the classes, as embedding."""
        return "%s_embedding" % self.categorical_column.name

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def _transform_feature(self, inputs: _LazyBuilder) -> Any:
        return inputs.get(self.categorical_column)

    def _rows(self, weight_collections: Any, trainable: Optional[bool]) -> Any:
        """The variable that has a row for each class."""
        made = get_variable(
            "embedding_weights",
            [self.categorical_column._num_buckets, self.dimension],
            dtypes.float32,
            self.initializer,
            trainable=self.trainable and trainable is not False,
            collections=weight_collections,
        )
        if self.ckpt_to_load_from is not None:
            from millrace.train import checkpoint_utils

            checkpoint_utils.init_from_checkpoint(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: made})
        return made

    def _get_dense_tensor(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> Tensor:
        """A learned row for each class; of several classes their mean, sum, or sum divided by the root of their number."""
        pair = self.categorical_column._get_sparse_tensors(inputs, weight_collections=weight_collections, trainable=trainable)
        return safe_embedding_lookup_sparse(
            self._rows(weight_collections, trainable), pair.id_tensor, pair.weight_tensor, self.combiner, name="%s_weights" % self.name, max_norm=self.max_norm
        )


@dataclass(unsafe_hash=True)
class _SharedEmbeddingColumn(_EmbeddingColumn):
    """One of several columns with one table, which a collection of the graph holds."""

    shared_embedding_collection_name: str

    @property
    def name(self) -> str:
        """That of the classes, as shared embedding."""
        return "%s_shared_embedding" % self.categorical_column.name

    @property
    def _var_scope_name(self) -> str:
        return self.shared_embedding_collection_name

    def _rows(self, weight_collections: Any, trainable: Optional[bool]) -> Any:
        there = get_collection(self.shared_embedding_collection_name)
        if len(there) > 1:
            raise at_user_line(
                ValueError(
                    "Collection %s can only contain one variable. Suggested fix A: Choose a unique name for this collection. "
                    "Suggested fix B: Do not add any variables to this collection. The feature_column library already adds a "
                    "variable under the hood." % (there,)
                )
            )
        wanted = [self.categorical_column._num_buckets, self.dimension]
        if there and there[0].get_shape().as_list() != wanted:
            raise at_user_line(
                ValueError(
                    "Shared embedding collection %s contains variable %s of unexpected shape %s. Expected shape is %s. Suggested fix A: "
                    "Choose a unique name for this collection. Suggested fix B: Do not add any variables to this collection. The "
                    "feature_column library already adds a variable under the hood."
                    % (self.shared_embedding_collection_name, there[0].name, there[0].get_shape(), wanted)
                )
            )
        if not there:
            add_to_collection(self.shared_embedding_collection_name, super()._rows(weight_collections, trainable))
        return get_collection(self.shared_embedding_collection_name)[0]


# ---- what makes them ----


def _shape_of(shape: Any, key: str) -> Tuple[int, ...]:
    if shape is None:
        raise at_user_line(AssertionError("shape cannot be None, key: %s" % key))
    shape = tuple(shape) if nest.is_sequence(shape) else (shape,)
    for size in shape:
        if not is_count(size):
            raise at_user_line(TypeError("shape dimensions must be integer. shape: %s, key: %s" % (shape, key)))
        if size < 1:
            raise at_user_line(ValueError("shape dimensions must be greater than 0. shape: %s, key: %s" % (shape, key)))
    return shape


def _filled(shape: Sequence[int], value: Any) -> Any:
    return tuple(_filled(shape[1:], value) for _ in range(shape[0])) if shape else value


def _has_shape(value: Any, shape: Sequence[int]) -> bool:
    if nest.is_sequence(value) != bool(shape):
        return False
    return not shape or len(value) == shape[0] and all(_has_shape(v, shape[1:]) for v in value)


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(v) for v in value) if nest.is_sequence(value) else value


def default_of(value: Any, shape: Tuple[int, ...], dtype: Any, key: str) -> Any:
    """A default as nested tuples of the column's shape; a number stands for all places."""
    if value is None:
        return None
    value = value.tolist() if hasattr(value, "tolist") else value
    numbers = nest.flatten(value) if nest.is_sequence(value) else [value]
    if nest.is_sequence(value) and not _has_shape(value, shape):
        raise at_user_line(ValueError("The shape of default_value must be equal to given shape. default_value: %s, shape: %s, key: %s" % (value, shape, key)))
    if all(isinstance(v, (int, float) if dtype.is_floating else int) for v in numbers):
        return _as_tuples(value) if nest.is_sequence(value) else _filled(shape, value)
    raise at_user_line(TypeError("default_value must be compatible with dtype. default_value: %s, dtype: %s, key: %s" % (value, dtype, key)))


def numeric_column(
    key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = dtypes.float32, normalizer_fn: Optional[Callable[[Any], Any]] = None
) -> _NumericColumn:
    """A column of numbers, of this shape in each example."""
    shape, dtype = _shape_of(shape, key), dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise at_user_line(ValueError("dtype must be convertible to float. dtype: %s, key: %s" % (dtype, key)))
    default_value = default_of(default_value, shape, dtype, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise at_user_line(TypeError("normalizer_fn must be a callable. Given: %s" % (normalizer_fn,)))
    return _NumericColumn(key, shape, default_value, dtype, normalizer_fn)


def bucketized_column(source_column: _NumericColumn, boundaries: Sequence[float]) -> _BucketizedColumn:
    """Numbers as ranges between boundaries."""
    if not isinstance(source_column, _NumericColumn):
        raise at_user_line(ValueError("source_column must be a column generated with numeric_column(). Given: %s" % (source_column,)))
    if len(source_column.shape) > 1:
        raise at_user_line(ValueError("source_column must be one-dimensional column. Given: %s" % (source_column,)))
    if not isinstance(boundaries, (list, tuple)) or not boundaries or any(a >= b for a, b in zip(boundaries, boundaries[1:])):
        raise at_user_line(ValueError("boundaries must be a sorted list."))
    return _BucketizedColumn(source_column, tuple(boundaries))


def indicator_column(categorical_column: Any) -> _IndicatorColumn:
    """Classes as rows of zeros and ones."""
    return _IndicatorColumn(categorical_column)


def _check_rows(dimension: Optional[int], ckpt_to_load_from: Any, tensor_name_in_ckpt: Any, initializer: Any, of: str) -> None:
    if dimension is None or dimension < 1:
        raise at_user_line(ValueError("Invalid dimension %s." % dimension))
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise at_user_line(ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."))
    if initializer is not None and not callable(initializer):
        raise at_user_line(ValueError("initializer must be callable if specified. %s" % of))


def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
) -> _EmbeddingColumn:
    """Classes as learned rows, which may begin as those of a checkpoint."""
    _check_rows(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer, "Embedding of column_name: %s" % getattr(categorical_column, "name", None))
    initializer = initializer or init_ops.truncated_normal_initializer(0.0, 1 / math.sqrt(dimension))
    return _EmbeddingColumn(categorical_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)


def shared_embedding_columns(
    categorical_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: Optional[str] = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
) -> List[_SharedEmbeddingColumn]:
    """Classes of several columns as learned rows of one table."""
    ordered = sorted(categorical_columns, key=lambda c: c.name)
    _check_rows(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer, "")
    for column in ordered:
        if column._num_buckets != ordered[0]._num_buckets:
            raise at_user_line(
                ValueError(
                    "To use shared_embedding_column, all categorical_columns must have the same number of buckets. Given column: %s "
                    "with buckets: %s does not match column: %s with buckets: %s" % (ordered[0], ordered[0]._num_buckets, column, column._num_buckets)
                )
            )
    kinds = [type(c.categorical_column if isinstance(c, _WeightedCategoricalColumn) else c) for c in ordered]
    for kind, column in zip(kinds, ordered):
        if not issubclass(kind, kinds[0]):
            raise at_user_line(
                ValueError(
                    "To use shared_embedding_column, all categorical_columns must have the same type, or be weighted_categorical_column "
                    "of the same type. Given column: %s of type: %s does not match given column: %s of type: %s" % (ordered[0], kinds[0], column, kind)
                )
            )
    collection = shared_embedding_collection_name or "_".join(c.name for c in ordered) + "_shared_embedding"
    initializer = initializer or init_ops.truncated_normal_initializer(0.0, 1 / math.sqrt(dimension))
    return [
        _SharedEmbeddingColumn(c, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, collection)
        for c in categorical_columns
    ]
