# SPDX-License-Identifier: Apache-2.0
"""Columns of classes: hashed, listed, numbered, weighted, and combined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from millrace.contrib.feature_columns.base import _Column, _LinearEmbeddingLookupArguments, checked_combiner, of_rank
from millrace.contrib.layers_sparse import dense_to_sparse_tensor
from millrace.feature_column import categorical
from millrace.feature_column.base import IdsAndWeights, _CategoricalColumn
from millrace.feature_column.features import _LazyBuilder, sparse_of, words_or_numbers
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, parsing_ops
from millrace.ops.sparse_math_ops import sparse_concat, sparse_reshape
from millrace.ops.sparse_ops import sparse_cross_hashed


class _SparseIdLookupConfig(NamedTuple):
    """The words that a column knows."""

    vocabulary_file: Optional[str] = None
    keys: Optional[Tuple[Any, ...]] = None
    num_oov_buckets: int = 0
    vocab_size: Optional[int] = None
    default_value: int = -1


class _Classes(_Column, _CategoricalColumn):
    """A column of numbers of classes."""

    combiner: str

    @property
    def length(self) -> int:
        """How many classes there are."""
        raise NotImplementedError("%s.length" % type(self).__name__)

    @property
    def _num_buckets(self) -> int:
        return self.length

    def id_tensor(self, input_tensor: Any) -> SparseTensor:
        """The classes in what it makes of features."""
        return input_tensor

    def weight_tensor(self, input_tensor: Any) -> Optional[SparseTensor]:
        """How much each counts; None where all count alike."""
        return None

    def _get_sparse_tensors(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Any = None) -> IdsAndWeights:
        made = inputs.get(self)
        return IdsAndWeights(self.id_tensor(made), self.weight_tensor(made))

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> _LinearEmbeddingLookupArguments:
        return _LinearEmbeddingLookupArguments(
            self.id_tensor(input_tensor), self.weight_tensor(input_tensor), self.length, init_ops.zeros_initializer(), self.combiner
        )


@dataclass(frozen=True)
class _SparseColumn(_Classes):
    """Classes of one feature."""

    column_name: str
    is_integerized: bool = False
    bucket_size: Optional[int] = None
    lookup_config: Optional[_SparseIdLookupConfig] = None
    combiner: str = "sum"
    dtype: Any = dtypes.string

    @property
    def name(self) -> str:
        """The feature's name."""
        return self.column_name

    @property
    def length(self) -> int:
        """How many classes there are."""
        if self.lookup_config is None:
            return self.bucket_size  # type: ignore[return-value]
        return self.lookup_config.vocab_size + self.lookup_config.num_oov_buckets  # type: ignore[operator]

    @property
    def config(self) -> Dict[str, Any]:
        """The feature, of any number of values."""
        return {self.column_name: parsing_ops.VarLenFeature(self.dtype)}

    def is_compatible(self, other: "_SparseColumn") -> bool:
        """Whether both can share a table of rows."""
        return self.length == other.length and self.dtype.is_integer == other.dtype.is_integer and type(self) is type(other)

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        return self._as_core()._transform_feature(inputs)

    def _as_core(self) -> Any:
        """The column of tf.feature_column that has the same classes."""
        raise NotImplementedError("%s._as_core" % type(self).__name__)


class _SparseColumnIntegerized(_SparseColumn):
    """Numbers, of which the remainder by bucket_size counts."""

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        given = sparse_of(inputs.get(self.column_name))
        return SparseTensor(given.indices, math_ops.mod(given.values, self.bucket_size, name="mod"), given.dense_shape)


@dataclass(frozen=True)
class _SparseColumnHashed(_SparseColumn):
    hash_keys: Optional[Tuple[Tuple[int, int], ...]] = None

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        if self.hash_keys is None:
            return super()._transform_feature(inputs)
        given = sparse_of(inputs.get(self.column_name))
        texts = gen_ops.as_string(given.values) if self.dtype.is_integer else given.values
        made = [gen_ops.string_to_hash_bucket_strong(texts, self.length, key) for key in self.hash_keys]
        return sparse_concat(1, [SparseTensor(given.indices, ids, given.dense_shape) for ids in made], name="lookup")

    def _as_core(self) -> Any:
        return categorical.HashedCategoricalColumn(self.column_name, self.length, self.dtype)


class _SparseColumnKeys(_SparseColumn):
    def _as_core(self) -> Any:
        known: Any = self.lookup_config
        return categorical.VocabularyListCategoricalColumn(self.column_name, known.keys, self.dtype, known.default_value, known.num_oov_buckets)


class _SparseColumnVocabulary(_SparseColumn):
    def _as_core(self) -> Any:
        known: Any = self.lookup_config
        return categorical.VocabularyFileCategoricalColumn(
            self.column_name, known.vocabulary_file, known.vocab_size, known.num_oov_buckets, self.dtype, known.default_value
        )


@dataclass(frozen=True)
class _WeightedSparseColumn(_Classes):
    """Classes that count as much as another feature says; its values are (classes, weights)."""

    sparse_id_column: Any
    weight_column_name: str
    dtype: Any

    @property
    def name(self) -> str:
        """The column's and the weights'."""
        return "%s_weighted_by_%s" % (self.sparse_id_column.name, self.weight_column_name)

    combiner = property(lambda self: self.sparse_id_column.combiner)
    length = property(lambda self: self.sparse_id_column.length)
    lookup_config = property(lambda self: self.sparse_id_column.lookup_config, doc="The words that its classes are.")
    is_integerized = property(lambda self: self.sparse_id_column.is_integerized, doc="Whether its classes are numbers already.")

    @property
    def config(self) -> Dict[str, Any]:
        """Both features, of any number of values."""
        made = dict(self.sparse_id_column.config)
        if self.weight_column_name in made:
            raise at_user_line(ValueError("Parse config %s already exists for %s." % (made[self.weight_column_name], self.weight_column_name)))
        return {**made, self.weight_column_name: parsing_ops.VarLenFeature(self.dtype)}

    def id_tensor(self, input_tensor: Any) -> SparseTensor:
        """The classes."""
        return input_tensor[0]

    def weight_tensor(self, input_tensor: Any) -> SparseTensor:
        """How much each counts."""
        return input_tensor[1]

    def _transform_feature(self, inputs: _LazyBuilder) -> Tuple[SparseTensor, SparseTensor]:
        weights = convert_to_tensor_or_sparse_tensor(inputs.get(self.weight_column_name))
        if not isinstance(weights, SparseTensor):
            weights = dense_to_sparse_tensor(weights)
        if not weights.dtype.is_floating:
            weights = SparseTensor(weights.indices, math_ops.cast(weights.values, dtypes.float32), weights.dense_shape)
        return inputs.get(self.sparse_id_column), weights


@dataclass(frozen=True)
class _CrossedColumn(_Classes):
    """Combinations of the values of other columns."""

    columns: Tuple[Any, ...]
    hash_bucket_size: int
    hash_key: Optional[int] = None
    combiner: str = "sum"
    ckpt_to_load_from: Optional[str] = None
    tensor_name_in_ckpt: Optional[str] = None

    @property
    def name(self) -> str:
        """The names of the columns, in order."""
        return "_X_".join(sorted(column.name for column in self.columns))

    length = property(lambda self: self.hash_bucket_size)

    @property
    def config(self) -> Dict[str, Any]:
        """The features of all columns."""
        return {key: value for column in self.columns for key, value in column.config.items()}

    def _leaves(self) -> List[Any]:
        """What is crossed, with crossed columns taken apart."""
        return [leaf for column in self.columns for leaf in (column._leaves() if isinstance(column, _CrossedColumn) else [column])]

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        """The hashes of the combinations of the features themselves, not of the classes that columns make of them."""
        crossed = [inputs.get(leaf.column_name) if isinstance(leaf, _SparseColumn) else leaf.to_sparse_tensor(inputs.get(leaf)) for leaf in self._leaves()]
        return sparse_cross_hashed(crossed, self.hash_bucket_size, self.hash_key)


def ids_and_weights(column: Any, input_tensor: Any, rank: int) -> IdsAndWeights:
    """The classes in a column's values and how much each counts, in tensors of this rank."""
    made, counts = column.id_tensor(input_tensor), column.weight_tensor(input_tensor)
    return IdsAndWeights(of_rank(made, rank, column.name), None if counts is None else of_rank(counts, rank, column.name))


def as_rows(value: SparseTensor) -> SparseTensor:
    """One row for each example."""
    return sparse_reshape(value, array_ops.stack([value.dense_shape[0], -1]))


# ---- what makes them ----


def _checked_type(column_name: str, dtype: Any) -> Any:
    dtype = dtypes.as_dtype(dtype)
    words_or_numbers(dtype, "column_name: %s" % column_name)
    return dtype


def sparse_column_with_integerized_feature(column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.int64) -> _SparseColumn:
    """A column of numbers of classes; larger numbers begin again."""
    if bucket_size < 1:
        raise at_user_line(ValueError("bucket_size must be at least 1. bucket_size: %s, column_name: %s" % (bucket_size, column_name)))
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer:
        raise at_user_line(ValueError("dtype must be an integer. dtype: %s, column_name: %s" % (dtype, column_name)))
    return _SparseColumnIntegerized(column_name, True, bucket_size, None, checked_combiner(combiner), dtype)


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.string, hash_keys: Any = None
) -> _SparseColumn:
    """A column of any values, which share hash_bucket_size classes.

    hash_keys: a list of pairs of integers. Each value is then of several classes, one by the strong hash of each key, so that two values seldom share them all.
    """
    if hash_keys is not None:
        if not isinstance(hash_keys, list) or not hash_keys:
            raise at_user_line(ValueError("hash_keys must be a non-empty list."))
        if not all(isinstance(pair, list) and len(pair) == 2 and all(isinstance(key, int) for key in pair) for pair in hash_keys):
            raise at_user_line(ValueError("Each element of hash_keys must be a pair of integers."))
    if hash_bucket_size < 1:
        raise at_user_line(ValueError("bucket_size must be at least 1. bucket_size: %s, column_name: %s" % (hash_bucket_size, column_name)))
    keys = None if hash_keys is None else tuple((first, second) for first, second in hash_keys)
    return _SparseColumnHashed(column_name, False, hash_bucket_size, None, checked_combiner(combiner), _checked_type(column_name, dtype), keys)


def sparse_column_with_keys(column_name: str, keys: Sequence[Any], default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string) -> _SparseColumn:
    """A column of classes that are listed."""
    keys = tuple(keys)
    known = _SparseIdLookupConfig(keys=keys, vocab_size=len(keys), default_value=default_value)
    return _SparseColumnKeys(column_name, False, None, known, checked_combiner(combiner), _checked_type(column_name, dtype))


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: Optional[int] = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = dtypes.string,
) -> _SparseColumn:
    """A column of classes that are the first vocab_size lines of a file."""
    if vocab_size is None:
        raise at_user_line(ValueError("vocab_size should be defined. column_name: %s" % column_name))
    known = _SparseIdLookupConfig(vocabulary_file, None, num_oov_buckets, vocab_size, default_value)
    return _SparseColumnVocabulary(column_name, False, None, known, checked_combiner(combiner), _checked_type(column_name, dtype))


def weighted_sparse_column(sparse_id_column: Any, weight_column_name: str, dtype: Any = dtypes.float32) -> _WeightedSparseColumn:
    """A column whose values count as much as the numbers of another feature say."""
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise at_user_line(ValueError("dtype is not convertible to float. Given %s" % dtype))
    return _WeightedSparseColumn(sparse_id_column, weight_column_name, dtype)
