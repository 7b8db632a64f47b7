# SPDX-License-Identifier: Apache-2.0
"""Columns of numbers: features as they are, ranges of them, classes as rows, and rows that are learned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from millrace.contrib.feature_columns.base import _Dense, check_both_or_none, checked_combiner, of_rank, parts_of, weights
from millrace.contrib.feature_columns.sparse import _Classes, _SparseColumn, _WeightedSparseColumn, ids_and_weights
from millrace.contrib.layers_scattered import scattered_embedding_lookup_sparse
from millrace.contrib.layers_sparse import dense_to_sparse_tensor
from millrace.feature_column.base import is_count
from millrace.feature_column.dense import classes_of_ranges, default_of, indicators
from millrace.feature_column.features import _LazyBuilder
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import add_to_collection, get_collection
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, parsing_ops
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse


class _Numbers(_Dense):
    """Numbers of one feature."""

    column_name: str
    dtype: Any
    normalizer: Any

    _not_in_key = ("normalizer",)
    name = property(lambda self: self.column_name, doc="The feature's name.")
    normalizer_fn = property(lambda self: self.normalizer, doc="What is applied to the numbers.")

    def _normalized(self, value: Any) -> Any:
        return value if self.normalizer is None else self.normalizer(value)

    def _to_dnn_input_layer(self, input_tensor: Any, weight_collections: Any = None, trainable: bool = True, output_rank: int = 2) -> Any:
        made = of_rank(self._to_dense_tensor(input_tensor), output_rank, self.name)
        return made if made.dtype == dtypes.float32 else math_ops.cast(made, dtypes.float32)

    def _to_dense_tensor(self, input_tensor: Any) -> Any:
        return input_tensor


@dataclass(frozen=True)
class _RealValuedColumn(_Numbers):
    column_name: str
    dimension: int
    default_value: Optional[Tuple[Any, ...]]
    dtype: Any
    normalizer: Any

    @property
    def config(self) -> Dict[str, Any]:
        """The feature, of `dimension` numbers."""
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: parsing_ops.FixedLenFeature([self.dimension], self.dtype, default)}

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def _transform_feature(self, inputs: _LazyBuilder) -> Any:
        return self._normalized(inputs.get(self.column_name))


@dataclass(frozen=True)
class _RealValuedVarLenColumn(_Numbers):
    """Any number of numbers: padded with default_value, or as they are in a SparseTensor."""

    column_name: str
    default_value: Any
    dtype: Any
    normalizer: Any
    is_sparse: bool

    @property
    def config(self) -> Dict[str, Any]:
        """The feature, of any number of numbers."""
        if self.is_sparse:
            return {self.column_name: parsing_ops.VarLenFeature(self.dtype)}
        return {self.column_name: parsing_ops.FixedLenSequenceFeature([], self.dtype, allow_missing=True, default_value=self.default_value)}

    def _transform_feature(self, inputs: _LazyBuilder) -> Any:
        value = inputs.get(self.column_name)
        if isinstance(value, SparseTensor):
            return SparseTensor(value.indices, self._normalized(value.values), value.dense_shape)
        return self._normalized(value)

    def _to_dense_tensor(self, input_tensor: Any) -> Any:
        if self.is_sparse:
            raise at_user_line(
                ValueError(
                    "Set is_sparse to False if you want a dense Tensor for column_name: %s. Otherwise it needs an embedding of its own." % self.column_name
                )
            )
        return input_tensor


@dataclass(frozen=True)
class _BucketizedColumn(_Dense, _Classes):
    source_column: Any
    boundaries: Tuple[float, ...]

    combiner = "sum"

    @property
    def name(self) -> str:
        """The source's, bucketized."""
        return "%s_bucketized" % self.source_column.name

    @property
    def config(self) -> Dict[str, Any]:
        """The source's feature."""
        return self.source_column.config

    @property
    def length(self) -> int:
        """How many ranges there are of all the source's numbers."""
        return (len(self.boundaries) + 1) * int(self.source_column.dimension)

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([self.length])

    def _transform_feature(self, inputs: _LazyBuilder) -> Any:
        return gen_ops.bucketize(inputs.get(self.source_column), list(self.boundaries), name="bucketize")

    def to_sparse_tensor(self, input_tensor: Any) -> SparseTensor:
        """A class for each range of each of the source's numbers."""
        return classes_of_ranges(input_tensor, self.source_column.dimension, len(self.boundaries) + 1)

    id_tensor = to_sparse_tensor

    def _to_dnn_input_layer(self, input_tensor: Any, weight_collections: Any = None, trainable: bool = True, output_rank: int = 2) -> Any:
        if output_rank != 2:
            raise at_user_line(ValueError("BucketizedColumn currently only supports output_rank=2"))
        return array_ops.reshape(array_ops.one_hot(math_ops.cast(input_tensor, dtypes.int64), len(self.boundaries) + 1, 1.0, 0.0), [-1, self.length])


class _OfClasses(_Dense):
    """Rows of numbers for the classes of a column."""

    sparse_id_column: Any

    @property
    def config(self) -> Dict[str, Any]:
        """The features of the classes."""
        return self.sparse_id_column.config

    def _transform_feature(self, inputs: _LazyBuilder) -> Any:
        return inputs.get(self.sparse_id_column)


@dataclass(frozen=True)
class _OneHotColumn(_OfClasses):
    sparse_id_column: Any

    name = property(lambda self: "%s_one_hot" % self.sparse_id_column.name, doc="That of the classes, as one_hot.")
    length = property(lambda self: self.sparse_id_column.length, doc="How many classes there are.")

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([self.length])

    def _to_dnn_input_layer(self, input_tensor: Any, weight_collections: Any = None, trainable: bool = True, output_rank: int = 2) -> Any:
        return indicators(ids_and_weights(self.sparse_id_column, input_tensor, output_rank), self.length)


@dataclass(frozen=True)
class _EmbeddingColumn(_OfClasses):
    sparse_id_column: Any
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: Optional[str] = None
    tensor_name_in_ckpt: Optional[str] = None
    shared_embedding_name: Optional[str] = None
    shared_vocab_size: Optional[int] = None
    max_norm: Optional[float] = None
    trainable: bool = True

    _not_in_key = ("initializer",)

    @property
    def name(self) -> str:
        """That of the classes, as embedding."""
        return "%s_%s" % (self.sparse_id_column.name, "embedding" if self.shared_embedding_name is None else "shared_embedding")

    @property
    def length(self) -> int:
        """How many classes there are."""
        return self.sparse_id_column.length if self.shared_vocab_size is None else self.shared_vocab_size

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def _rows(self, collections: Any, trainable: bool) -> Any:
        """The variable that has a row for each class; columns of one shared_embedding_name have one, which a collection holds."""

        def make(name: str) -> Any:
            return weights(
                name,
                [self.length, self.dimension],
                self.initializer,
                trainable and self.trainable,
                collections,
                self.ckpt_to_load_from,
                self.tensor_name_in_ckpt,
            )

        if self.shared_embedding_name is None:
            return make("weights")
        shared = "SHARED_EMBEDDING_COLLECTION_" + self.shared_embedding_name.upper()
        if not get_collection(shared):
            add_to_collection(shared, make(self.shared_embedding_name))
        found = get_collection(shared)[0]
        if found.get_shape().as_list() != [self.length, self.dimension]:
            raise at_user_line(
                ValueError(
                    "The embedding variable with name %s has shape %s, and column %s needs %s: use another shared_embedding_name."
                    % (self.shared_embedding_name, found.get_shape(), self.name, [self.length, self.dimension])
                )
            )
        return found

    def _to_dnn_input_layer(self, input_tensor: Any, weight_collections: Any = None, trainable: bool = True, output_rank: int = 2) -> Any:
        pair = ids_and_weights(self.sparse_id_column, input_tensor, output_rank)
        return safe_embedding_lookup_sparse(
            parts_of(self._rows(weight_collections, trainable)),
            pair.id_tensor,
            pair.weight_tensor,
            self.combiner,
            name=self.name + "weights",
            max_norm=self.max_norm,
        )


@dataclass(frozen=True)
class _ScatteredEmbeddingColumn(_Dense):
    """Rows whose elements lie in one vector, where a hash of value and column says."""

    column_name: str
    size: int
    dimension: int
    hash_key: int
    combiner: str
    initializer: Any

    _not_in_key = ("initializer",)
    name = property(lambda self: "%s_scattered_embedding" % self.column_name, doc="The feature's name, as scattered embedding.")

    @property
    def config(self) -> Dict[str, Any]:
        """The feature, of any number of words."""
        return {self.column_name: parsing_ops.VarLenFeature(dtypes.string)}

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        value = inputs.get(self.column_name)
        return value if isinstance(value, SparseTensor) else dense_to_sparse_tensor(value)

    def _to_dnn_input_layer(self, input_tensor: Any, weight_collections: Any = None, trainable: bool = True, output_rank: int = 2) -> Any:
        rows = parts_of(weights("weights", [self.size], self.initializer, trainable, weight_collections))
        return scattered_embedding_lookup_sparse(
            rows, of_rank(input_tensor, output_rank, self.name), self.dimension, self.combiner, hash_key=self.hash_key, name="lookup"
        )


# ---- what makes them ----


def _is_numeric(dtype: Any) -> bool:
    return bool(dtype.is_integer or dtype.is_floating)


def real_valued_column(
    column_name: str, dimension: int = 1, default_value: Any = None, dtype: Any = dtypes.float32, normalizer: Any = None
) -> _RealValuedColumn:
    """A column of numbers, `dimension` of them in each example."""
    about = "dimension: %s, column_name: %s" % (dimension, column_name)
    if not is_count(dimension):
        raise at_user_line(TypeError("dimension must be an integer: where examples differ, pad the feature. %s" % about))
    if dimension < 1:
        raise at_user_line(ValueError("dimension must be greater than 0. %s" % about))
    dtype = dtypes.as_dtype(dtype)
    if not _is_numeric(dtype):
        raise at_user_line(ValueError("dtype must be convertible to float. dtype: %s, column_name: %s" % (dtype, column_name)))
    if isinstance(default_value, (list, tuple)) and len(default_value) != dimension:
        raise at_user_line(ValueError("The length of default_value must be equal to dimension. default_value: %s, %s" % (default_value, about)))
    return _RealValuedColumn(column_name, dimension, default_of(default_value, (dimension,), dtype, column_name), dtype, normalizer)


def _real_valued_var_len_column(
    column_name: str, default_value: Any = None, dtype: Any = dtypes.float32, normalizer: Any = None, is_sparse: bool = False
) -> _RealValuedVarLenColumn:
    """A column of any number of numbers in each example."""
    dtype = dtypes.as_dtype(dtype)
    if not _is_numeric(dtype):
        raise at_user_line(TypeError("dtype must be convertible to float. dtype: %s, column_name: %s" % (dtype, column_name)))
    if isinstance(default_value, (list, tuple)):
        raise at_user_line(ValueError("Only scalar default value is supported in case dimension is not specified."))
    if default_value is None and not is_sparse:
        raise at_user_line(ValueError("default_value must be provided when is_sparse=False to parse a padded Tensor, column_name: %s" % column_name))
    filled = None if default_value is None else default_of(default_value, (), dtype, column_name)
    return _RealValuedVarLenColumn(column_name, filled, dtype, normalizer, is_sparse)


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> _BucketizedColumn:
    """Numbers as ranges between boundaries."""
    if not isinstance(source_column, _RealValuedColumn):
        raise at_user_line(TypeError("source_column must be an instance of _RealValuedColumn. source_column: %s" % (source_column,)))
    if not isinstance(boundaries, (list, tuple)) or not boundaries:
        raise at_user_line(ValueError("boundaries must be a non-empty list or tuple. boundaries: %s" % (boundaries,)))
    if any(a > b for a, b in zip(boundaries, boundaries[1:])):
        raise at_user_line(ValueError("boundaries must be a sorted list. boundaries: %s" % (boundaries,)))
    return _BucketizedColumn(source_column, tuple(dict.fromkeys(boundaries)))


def one_hot_column(sparse_id_column: Any) -> _OneHotColumn:
    """Classes as rows of zeros and ones."""
    return _OneHotColumn(sparse_id_column)


def _rows_of(length: int) -> Any:
    """How learned rows begin."""
    return init_ops.truncated_normal_initializer(0.0, 1 / math.sqrt(length))


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
) -> _EmbeddingColumn:
    """Classes as learned rows, which may begin as those of a checkpoint."""
    check_both_or_none(ckpt_to_load_from, tensor_name_in_ckpt)
    if initializer is not None and not callable(initializer):
        raise at_user_line(ValueError("initializer must be callable if specified. Embedding of column_name: %s" % sparse_id_column.name))
    return _EmbeddingColumn(
        sparse_id_column,
        dimension,
        checked_combiner(combiner),
        initializer or _rows_of(sparse_id_column.length),
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm=max_norm,
        trainable=trainable,
    )


def shared_embedding_columns(
    sparse_id_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_name: Optional[str] = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
) -> List[_EmbeddingColumn]:
    """Classes of several columns as learned rows of one table."""
    check_both_or_none(ckpt_to_load_from, tensor_name_in_ckpt)
    if initializer is not None and not callable(initializer):
        raise at_user_line(ValueError("initializer must be callable if specified."))
    if not isinstance(sparse_id_columns, (list, tuple)):
        raise at_user_line(TypeError("sparse_id_columns must be a list or tuple, got %s" % (sparse_id_columns,)))
    if not sparse_id_columns:
        raise at_user_line(ValueError("The input sparse_id_columns should have at least one element."))
    for column in sparse_id_columns:
        if not isinstance(column, (_SparseColumn, _WeightedSparseColumn)):
            raise at_user_line(TypeError("Elements of sparse_id_columns must be _SparseColumn or _WeightedSparseColumn, but %s is not." % (column,)))
    of_ids = [c.sparse_id_column if isinstance(c, _WeightedSparseColumn) else c for c in sparse_id_columns]
    for column in of_ids[1:]:
        if not of_ids[0].is_compatible(column):
            raise at_user_line(ValueError("To share a table, columns must have the same kind and number of classes: %s, %s" % (of_ids[0], column)))
    if shared_embedding_name is None:
        names = sorted(c.name for c in sparse_id_columns)
        others = ["plus_%d_others" % (len(names) - 3)] if len(names) > 3 else []
        shared_embedding_name = "_".join(names[:3] + others) + "_shared_embedding"
    length = of_ids[0].length
    initializer = initializer or _rows_of(length)
    return [
        _EmbeddingColumn(
            c, dimension, checked_combiner(combiner), initializer, ckpt_to_load_from, tensor_name_in_ckpt, shared_embedding_name, length, max_norm, trainable
        )
        for c in sparse_id_columns
    ]


def scattered_embedding_column(
    column_name: str, size: int, dimension: int, hash_key: int, combiner: str = "mean", initializer: Any = None
) -> _ScatteredEmbeddingColumn:
    """Words as rows of `dimension` elements of a learned vector, where a hash says."""
    if dimension < 1 or size < 1:
        raise at_user_line(ValueError("Dimension and size must be greater than 0. dimension: %s, size: %s, column_name: %s" % (dimension, size, column_name)))
    if hash_key is None:
        raise at_user_line(ValueError("hash_key must be given. column_name: %s" % column_name))
    if initializer is not None and not callable(initializer):
        raise at_user_line(ValueError("initializer must be callable if specified. column_name: %s" % column_name))
    return _ScatteredEmbeddingColumn(
        column_name, size, dimension, hash_key, checked_combiner(combiner), initializer or init_ops.truncated_normal_initializer(0.0, 0.1)
    )
