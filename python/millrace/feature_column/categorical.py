# SPDX-License-Identifier: Apache-2.0
"""Columns of classes: words, numbers, hashes and combinations of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from millrace.feature_column.base import (
    IdsAndWeights,
    OfOneFeature,
    _CategoricalColumn,
    _FeatureColumn,
    _LazyBuilder,
    is_count,
    same_kind,
    sparse_of,
    words_or_numbers,
)
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, check_ops, gen_ops, lookup_ops, math_ops, parsing_ops
from millrace.ops.sparse_ops import sparse_cross_hashed


class _OfOneFeature(OfOneFeature, _CategoricalColumn):
    dtype: Any

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        return {self.key: parsing_ops.VarLenFeature(self.dtype)}


@dataclass(unsafe_hash=True)
class _HashedCategoricalColumn(_OfOneFeature):
    key: str
    hash_bucket_size: int
    dtype: Any

    @property
    def _num_buckets(self) -> int:
        return self.hash_bucket_size

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        values = sparse_of(inputs.get(self.key))
        same_kind(self.key, self.dtype, values)
        texts = values.values if self.dtype == dtypes.string else gen_ops.as_string(values.values)
        return SparseTensor(values.indices, gen_ops.string_to_hash_bucket_fast(texts, self.hash_bucket_size, name="lookup"), values.dense_shape)


class _Vocabulary(_OfOneFeature):
    """Classes that a table knows."""

    def _table(self, key_dtype: Any) -> Any:
        raise NotImplementedError

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        values = sparse_of(inputs.get(self.key))
        same_kind(self.key, self.dtype, values)
        if values.dtype.is_integer:
            values = SparseTensor(values.indices, math_ops.cast(values.values, dtypes.int64), values.dense_shape)
        return self._table(dtypes.int64 if values.dtype.is_integer else self.dtype).lookup(values)


@dataclass(unsafe_hash=True)
class _VocabularyFileCategoricalColumn(_Vocabulary):
    key: str
    vocabulary_file: Any
    vocabulary_size: int
    num_oov_buckets: int
    dtype: Any
    default_value: int

    @property
    def _num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, key_dtype: Any) -> Any:
        return lookup_ops.index_table_from_file(
            self.vocabulary_file, self.num_oov_buckets, self.vocabulary_size, self.default_value, key_dtype=key_dtype, name="%s_lookup" % self.key
        )


@dataclass(unsafe_hash=True)
class _VocabularyListCategoricalColumn(_Vocabulary):
    key: str
    vocabulary_list: Tuple[Any, ...]
    dtype: Any
    default_value: int
    num_oov_buckets: int

    @property
    def _num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, key_dtype: Any) -> Any:
        return lookup_ops.index_table_from_tensor(self.vocabulary_list, self.num_oov_buckets, self.default_value, dtype=key_dtype, name="%s_lookup" % self.key)


@dataclass(unsafe_hash=True)
class _IdentityCategoricalColumn(_OfOneFeature):
    key: str
    num_buckets: int
    default_value: Optional[int]

    dtype = dtypes.int64

    @property
    def _num_buckets(self) -> int:
        return self.num_buckets

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        given = sparse_of(inputs.get(self.key))
        if not given.dtype.is_integer:
            raise at_user_line(ValueError("Invalid input, not integer. key: %s dtype: %s" % (self.key, given.dtype)))
        values, size, zero = (math_ops.cast(v, dtypes.int64) for v in (given.values, self.num_buckets, 0))
        if self.default_value is None:
            checks = [
                check_ops.assert_less(values, size, data=(values, size), name="assert_less_than_num_buckets"),
                check_ops.assert_greater_equal(values, zero, data=(values,), name="assert_greater_or_equal_0"),
            ]
            with control_dependencies(checks):
                values = array_ops.identity(values)
        else:
            outside = gen_ops.logical_or(gen_ops.less(values, zero), gen_ops.greater_equal(values, size), name="out_of_range")
            values = array_ops.where(outside, array_ops.zeros_like(values) + self.default_value, values)
        return SparseTensor(given.indices, values, given.dense_shape)


@dataclass(unsafe_hash=True)
class _WeightedCategoricalColumn(_CategoricalColumn):
    categorical_column: Any
    weight_feature_key: str
    dtype: Any

    @property
    def name(self) -> str:
        """The column's and the weights'."""
        return "%s_weighted_by_%s" % (self.categorical_column.name, self.weight_feature_key)

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        spec = dict(self.categorical_column._parse_example_spec)
        if self.weight_feature_key in spec:
            raise at_user_line(ValueError("Parse config %s already exists for %s." % (spec[self.weight_feature_key], self.weight_feature_key)))
        spec[self.weight_feature_key] = parsing_ops.VarLenFeature(self.dtype)
        return spec

    @property
    def _num_buckets(self) -> int:
        return self.categorical_column._num_buckets

    def _transform_feature(self, inputs: _LazyBuilder) -> Tuple[SparseTensor, SparseTensor]:
        weights = inputs.get(self.weight_feature_key)
        if weights is None:
            raise at_user_line(ValueError("Missing weights %s." % self.weight_feature_key))
        weights = convert_to_tensor_or_sparse_tensor(weights)
        if self.dtype != weights.dtype.base_dtype:
            raise at_user_line(ValueError("Bad dtype, expected %s, but got %s." % (self.dtype, weights.dtype)))
        weights = sparse_of(weights, 0.0)
        if not weights.dtype.is_floating:
            weights = SparseTensor(weights.indices, math_ops.cast(weights.values, dtypes.float32), weights.dense_shape)
        return inputs.get(self.categorical_column), weights

    def _get_sparse_tensors(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Optional[bool] = None) -> IdsAndWeights:
        return IdsAndWeights(*inputs.get(self))


@dataclass(unsafe_hash=True)
class _CrossedColumn(_CategoricalColumn):
    keys: Tuple[Any, ...]
    hash_bucket_size: int
    hash_key: Optional[int]

    @property
    def name(self) -> str:
        """The names of all that is crossed, in order."""
        return "_X_".join(sorted(leaf.name if isinstance(leaf, _FeatureColumn) else leaf for leaf in self._leaves()))

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        specs = [key._parse_example_spec if isinstance(key, _FeatureColumn) else {key: parsing_ops.VarLenFeature(dtypes.string)} for key in self.keys]
        return {key: value for spec in specs for key, value in spec.items()}

    @property
    def _num_buckets(self) -> int:
        return self.hash_bucket_size

    def _leaves(self) -> List[Any]:
        """What is crossed, with crossed columns taken apart."""
        return [leaf for key in self.keys for leaf in (key._leaves() if isinstance(key, _CrossedColumn) else [key])]

    def _transform_feature(self, inputs: _LazyBuilder) -> SparseTensor:
        return sparse_cross_hashed([self._values(leaf, inputs) for leaf in self._leaves()], self.hash_bucket_size, self.hash_key)

    @staticmethod
    def _values(leaf: Any, inputs: _LazyBuilder) -> Any:
        if isinstance(leaf, str):
            return inputs.get(leaf)
        if not isinstance(leaf, _CategoricalColumn):
            raise at_user_line(ValueError("Unsupported column type. Given: %s" % (leaf,)))
        pair = leaf._get_sparse_tensors(inputs)
        if pair.weight_tensor is not None:
            raise at_user_line(
                ValueError("crossed_column does not support weight_tensor, but the given column populates weight_tensor. Given column: %s" % leaf.name)
            )
        return pair.id_tensor


# ---- what makes them ----


def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = dtypes.string) -> _HashedCategoricalColumn:
    """A column of any words or integers, which share hash_bucket_size classes."""
    if hash_bucket_size is None:
        raise at_user_line(ValueError("hash_bucket_size must be set. key: %s" % key))
    if hash_bucket_size < 1:
        raise at_user_line(ValueError("hash_bucket_size must be at least 1. hash_bucket_size: %s, key: %s" % (hash_bucket_size, key)))
    dtype = dtypes.as_dtype(dtype)
    words_or_numbers(dtype, "column_name: %s" % key)
    return _HashedCategoricalColumn(key, hash_bucket_size, dtype)


def _check_buckets(key: str, num_oov_buckets: Optional[int], has_default: bool) -> None:
    if num_oov_buckets and has_default:
        raise at_user_line(ValueError("Can't specify both num_oov_buckets and default_value in %s." % key))
    if num_oov_buckets and num_oov_buckets < 0:
        raise at_user_line(ValueError("Invalid num_oov_buckets %s in %s." % (num_oov_buckets, key)))


def _lines(key: str, path: Any) -> int:
    from millrace import gfile

    if not gfile.Exists(path):
        raise at_user_line(ValueError("vocabulary_file in %s does not exist." % key))
    with gfile.GFile(path, "rb") as file:
        return sum(1 for _ in file)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: Optional[int] = None,
    num_oov_buckets: int = 0,
    default_value: Optional[int] = None,
    dtype: Any = dtypes.string,
) -> _VocabularyFileCategoricalColumn:
    """A column of classes that are lines of a file: of its first vocabulary_size lines, or of all where that is not given."""
    if not vocabulary_file:
        raise at_user_line(ValueError("Missing vocabulary_file in %s." % key))
    if vocabulary_size is None:
        vocabulary_size = _lines(key, vocabulary_file)
    if vocabulary_size < 1:
        raise at_user_line(ValueError("Invalid vocabulary_size in %s." % key))
    _check_buckets(key, num_oov_buckets, default_value is not None)
    dtype = dtypes.as_dtype(dtype)
    words_or_numbers(dtype, "column_name: %s" % key)
    return _VocabularyFileCategoricalColumn(key, vocabulary_file, vocabulary_size, num_oov_buckets or 0, dtype, -1 if default_value is None else default_value)


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> _VocabularyListCategoricalColumn:
    """A column of classes that are listed."""
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise at_user_line(ValueError("vocabulary_list %s must be non-empty, column_name: %s" % (vocabulary_list, key)))
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise at_user_line(ValueError("Duplicate keys in vocabulary_list %s, column_name: %s" % (vocabulary_list, key)))
    _check_buckets(key, num_oov_buckets, default_value != -1)
    listed = dtypes.as_dtype(np.array(vocabulary_list).dtype)
    words_or_numbers(listed, "column_name: %s vocabulary" % key)
    dtype = listed if dtype is None else dtypes.as_dtype(dtype)
    if dtype.is_integer != listed.is_integer:
        raise at_user_line(ValueError("dtype %s and vocabulary dtype %s do not match, column_name: %s" % (dtype, listed, key)))
    words_or_numbers(dtype, "column_name: %s" % key)
    return _VocabularyListCategoricalColumn(key, tuple(vocabulary_list), dtype, default_value, num_oov_buckets)


def categorical_column_with_identity(key: str, num_buckets: int, default_value: Optional[int] = None) -> _IdentityCategoricalColumn:
    """A column of numbers of classes. Where there is a default_value, numbers of no class mean it."""
    if num_buckets < 1:
        raise at_user_line(ValueError("num_buckets %s < 1, column_name %s" % (num_buckets, key)))
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise at_user_line(ValueError("default_value %s not in range [0, %s), column_name %s" % (default_value, num_buckets, key)))
    return _IdentityCategoricalColumn(key, num_buckets, default_value)


def weighted_categorical_column(categorical_column: _CategoricalColumn, weight_feature_key: str, dtype: Any = dtypes.float32) -> _WeightedCategoricalColumn:
    """A column whose values count as much as the numbers of another feature say."""
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise at_user_line(ValueError("dtype %s is not convertible to float." % dtype))
    return _WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: Optional[int] = None) -> _CrossedColumn:
    """A column of the combinations of features' or columns' values, which share hash_bucket_size classes."""
    if not hash_bucket_size or not is_count(hash_bucket_size) or hash_bucket_size < 1:
        raise at_user_line(ValueError("hash_bucket_size must be > 1. hash_bucket_size: %s" % hash_bucket_size))
    if not keys or len(keys) < 2:
        raise at_user_line(ValueError("keys must be a list with length > 1. Given: %s" % (keys,)))
    for key in keys:
        if not isinstance(key, (str, _CategoricalColumn)):
            raise at_user_line(
                ValueError("Unsupported key type. All keys must be either string, or categorical column except _HashedCategoricalColumn. Given: %s" % (key,))
            )
        if isinstance(key, _HashedCategoricalColumn):
            raise at_user_line(
                ValueError(
                    "categorical_column_with_hash_bucket is not supported for crossing: two hashes make collisions more probable. "
                    "Give the feature's name instead. Given: %s" % (key,)
                )
            )
    return _CrossedColumn(tuple(keys), hash_bucket_size, hash_key)
