# SPDX-License-Identifier: Apache-2.0
"""Columns of classes: words, numbers, hashes and combinations of them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from millrace import tf_logging
from millrace.feature_column.base import CategoricalColumn, IdsAndWeights, _CategoricalColumn, buckets_of, is_count, spec_of
from millrace.feature_column.features import same_kind, sparse_of, words_or_numbers
from millrace.feature_column.serialization import by_name
from millrace.feature_column.styles import Categorical, checked_key
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, check_ops, gen_ops, lookup_ops, math_ops, parsing_ops
from millrace.ops.sparse_ops import sparse_cross_hashed


class _OfOneFeature(Categorical):
    dtype: Any

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """Any number of values in an example."""
        return {self.name: parsing_ops.VarLenFeature(self.dtype)}


@by_name
class HashedCategoricalColumn(_OfOneFeature, namedtuple("HashedCategoricalColumn", ("key", "hash_bucket_size", "dtype"))):  # type: ignore[misc]
    """Any words or integers, which share the classes."""

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        return self.hash_bucket_size

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        """The classes."""
        values = sparse_of(transformation_cache.get(self.key, state_manager))
        same_kind(self.key, self.dtype, values)
        texts = values.values if self.dtype == dtypes.string else gen_ops.as_string(values.values)
        return SparseTensor(values.indices, gen_ops.string_to_hash_bucket_fast(texts, self.hash_bucket_size, name="lookup"), values.dense_shape)


class _Vocabulary(_OfOneFeature):
    """Classes that a table knows."""

    def _table(self, key_dtype: Any, name: str) -> Any:
        raise NotImplementedError

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        """The classes."""
        values = sparse_of(transformation_cache.get(self.name, state_manager))
        same_kind(self.name, self.dtype, values)
        if values.dtype.is_integer:
            values = SparseTensor(values.indices, math_ops.cast(values.values, dtypes.int64), values.dense_shape)
        name = "%s_lookup" % self.name
        table = self._table(dtypes.int64 if values.dtype.is_integer else self.dtype, name)
        if state_manager is not None:
            state_manager.add_resource(self, name, table)
        return table.lookup(values)


@by_name
class VocabularyFileCategoricalColumn(  # type: ignore[misc]
    _Vocabulary, namedtuple("VocabularyFileCategoricalColumn", ("key", "vocabulary_file", "vocabulary_size", "num_oov_buckets", "dtype", "default_value"))
):
    """Classes that are lines of a file."""

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, key_dtype: Any, name: str) -> Any:
        return lookup_ops.index_table_from_file(
            self.vocabulary_file, self.num_oov_buckets, self.vocabulary_size, self.default_value, key_dtype=key_dtype, name=name
        )


@by_name
class VocabularyListCategoricalColumn(  # type: ignore[misc]
    _Vocabulary, namedtuple("VocabularyListCategoricalColumn", ("key", "vocabulary_list", "dtype", "default_value", "num_oov_buckets"))
):
    """Classes that are listed."""

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, key_dtype: Any, name: str) -> Any:
        return lookup_ops.index_table_from_tensor(self.vocabulary_list, self.num_oov_buckets, self.default_value, dtype=key_dtype, name=name)


@by_name
class IdentityCategoricalColumn(_OfOneFeature, namedtuple("IdentityCategoricalColumn", ("key", "number_buckets", "default_value"))):  # type: ignore[misc]
    """Numbers of classes."""

    dtype = dtypes.int64

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        return self.number_buckets

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        """The classes."""
        given = sparse_of(transformation_cache.get(self.key, state_manager))
        if not given.dtype.is_integer:
            raise at_user_line(ValueError("Invalid input, not integer. key: %s dtype: %s" % (self.key, given.dtype)))
        values, size, zero = (math_ops.cast(v, dtypes.int64) for v in (given.values, self.num_buckets, 0))
        if self.default_value is None:
            checks = [
                check_ops.assert_less(
                    values,
                    size,
                    data=(values, size),
                    message='Bucket index for categorical column "%s" exceeds number of buckets' % self.name,
                    name="assert_less_than_num_buckets",
                ),
                check_ops.assert_greater_equal(
                    values, zero, data=(values,), message='Negative bucket index for categorical column "%s"' % self.name, name="assert_greater_or_equal_0"
                ),
            ]
            with control_dependencies(checks):
                values = array_ops.identity(values)
        else:
            outside = gen_ops.logical_or(gen_ops.less(values, zero), gen_ops.greater_equal(values, size), name="out_of_range")
            values = array_ops.where(outside, array_ops.zeros_like(values) + self.default_value, values)
        return SparseTensor(given.indices, values, given.dense_shape)


@by_name
class WeightedCategoricalColumn(  # type: ignore[misc]
    Categorical, namedtuple("WeightedCategoricalColumn", ("categorical_column", "weight_feature_key", "dtype"))
):
    """Classes that count as much as another feature says."""

    @property
    def name(self) -> str:
        """The column's and the weights'."""
        return "%s_weighted_by_%s" % (self.categorical_column.name, self.weight_feature_key)

    @property
    def parents(self) -> List[Any]:
        """The column and the feature."""
        return [self.categorical_column, self.weight_feature_key]

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """The column's, and any number of weights in an example."""
        spec = dict(spec_of(self.categorical_column))
        if self.weight_feature_key in spec:
            raise at_user_line(ValueError("Parse config %s already exists for %s." % (spec[self.weight_feature_key], self.weight_feature_key)))
        spec[self.weight_feature_key] = parsing_ops.VarLenFeature(self.dtype)
        return spec

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        return buckets_of(self.categorical_column)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Tuple[SparseTensor, SparseTensor]:
        """The classes and the weights."""
        weights = transformation_cache.get(self.weight_feature_key, state_manager)
        if weights is None:
            raise at_user_line(ValueError("Missing weights %s." % self.weight_feature_key))
        weights = convert_to_tensor_or_sparse_tensor(weights)
        if self.dtype != weights.dtype.base_dtype:
            raise at_user_line(ValueError("Bad dtype, expected %s, but got %s." % (self.dtype, weights.dtype)))
        weights = sparse_of(weights, 0)
        if not weights.dtype.is_floating:
            weights = SparseTensor(weights.indices, math_ops.cast(weights.values, dtypes.float32), weights.dense_shape)
        return transformation_cache.get(self.categorical_column, state_manager), weights

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """The classes and the weights."""
        return IdsAndWeights(*transformation_cache.get(self, state_manager))


@by_name
class CrossedColumn(Categorical, namedtuple("CrossedColumn", ("keys", "hash_bucket_size", "hash_key"))):  # type: ignore[misc]
    """Combinations of values."""

    @property
    def name(self) -> str:
        """The names of all that is crossed, in order."""
        return "_X_".join(sorted(leaf if isinstance(leaf, str) else leaf.name for leaf in self._leaves()))

    @property
    def parents(self) -> List[Any]:
        """What is crossed."""
        return list(self.keys)

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """Those of all that is crossed; features have any number of words."""
        specs = [{key: parsing_ops.VarLenFeature(dtypes.string)} if isinstance(key, str) else spec_of(key) for key in self.keys]
        return {key: value for spec in specs for key, value in spec.items()}

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        return self.hash_bucket_size

    def _leaves(self) -> List[Any]:
        """What is crossed, with crossed columns taken apart."""
        return [leaf for key in self.keys for leaf in (key._leaves() if isinstance(key, CrossedColumn) else [key])]

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        """The classes."""
        values = [self._values(leaf, transformation_cache, state_manager) for leaf in self._leaves()]
        return sparse_cross_hashed(values, self.hash_bucket_size, self.hash_key)

    @staticmethod
    def _values(leaf: Any, cache: Any, state: Any) -> Any:
        if isinstance(leaf, str):
            return cache.get(leaf, state)
        if not isinstance(leaf, (CategoricalColumn, _CategoricalColumn)):
            raise at_user_line(ValueError("Unsupported column type. Given: %s" % (leaf,)))
        pair = cache.classes(leaf, state)
        if pair.weight_tensor is not None:
            raise at_user_line(
                ValueError("crossed_column does not support weight_tensor, but the given column populates weight_tensor. Given column: %s" % leaf.name)
            )
        return pair.id_tensor


# ---- what makes them ----


def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = dtypes.string) -> HashedCategoricalColumn:
    """A column of any words or integers, which share hash_bucket_size classes."""
    if hash_bucket_size is None:
        raise at_user_line(ValueError("hash_bucket_size must be set. key: %s" % key))
    if hash_bucket_size < 1:
        raise at_user_line(ValueError("hash_bucket_size must be at least 1. hash_bucket_size: %s, key: %s" % (hash_bucket_size, key)))
    dtype = dtypes.as_dtype(dtype)
    words_or_numbers(dtype, "column_name: %s" % key)
    return HashedCategoricalColumn(checked_key(key), hash_bucket_size, dtype)


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


def categorical_column_with_vocabulary_file_v2(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: Optional[int] = None,
    dtype: Any = dtypes.string,
    default_value: Optional[int] = None,
    num_oov_buckets: int = 0,
) -> VocabularyFileCategoricalColumn:
    """A column of classes that are lines of a file: of its first vocabulary_size lines, or of all where that is not given."""
    if not vocabulary_file:
        raise at_user_line(ValueError("Missing vocabulary_file in %s." % key))
    if vocabulary_size is None:
        vocabulary_size = _lines(key, vocabulary_file)
        tf_logging.info("vocabulary_size = %d in %s is the number of lines of %s.", vocabulary_size, key, vocabulary_file)
    if vocabulary_size < 1:
        raise at_user_line(ValueError("Invalid vocabulary_size in %s." % key))
    _check_buckets(key, num_oov_buckets, default_value is not None)
    dtype = dtypes.as_dtype(dtype)
    words_or_numbers(dtype, "column_name: %s" % key)
    default_value = -1 if default_value is None else default_value
    return VocabularyFileCategoricalColumn(checked_key(key), vocabulary_file, vocabulary_size, num_oov_buckets or 0, dtype, default_value)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: Optional[int] = None,
    num_oov_buckets: int = 0,
    default_value: Optional[int] = None,
    dtype: Any = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """A column of classes that are lines of a file, with 1.x's order of arguments."""
    return categorical_column_with_vocabulary_file_v2(key, vocabulary_file, vocabulary_size, dtype, default_value, num_oov_buckets)


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> VocabularyListCategoricalColumn:
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
    return VocabularyListCategoricalColumn(checked_key(key), tuple(vocabulary_list), dtype, default_value, num_oov_buckets)


def categorical_column_with_identity(key: str, num_buckets: int, default_value: Optional[int] = None) -> IdentityCategoricalColumn:
    """A column of numbers of classes. Where there is a default_value, numbers of no class mean it."""
    if num_buckets < 1:
        raise at_user_line(ValueError("num_buckets %s < 1, column_name %s" % (num_buckets, key)))
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise at_user_line(ValueError("default_value %s not in range [0, %s), column_name %s" % (default_value, num_buckets, key)))
    return IdentityCategoricalColumn(checked_key(key), num_buckets, default_value)


def weighted_categorical_column(categorical_column: Any, weight_feature_key: str, dtype: Any = dtypes.float32) -> WeightedCategoricalColumn:
    """A column whose values count as much as the numbers of another feature say."""
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise at_user_line(ValueError("dtype %s is not convertible to float." % dtype))
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: Optional[int] = None) -> CrossedColumn:
    """A column of the combinations of features' or columns' values, which share hash_bucket_size classes."""
    if not hash_bucket_size or not is_count(hash_bucket_size) or hash_bucket_size < 1:
        raise at_user_line(ValueError("hash_bucket_size must be > 1. hash_bucket_size: %s" % hash_bucket_size))
    if not keys or len(keys) < 2:
        raise at_user_line(ValueError("keys must be a list with length > 1. Given: %s" % (keys,)))
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn, _CategoricalColumn)):
            raise at_user_line(
                ValueError("Unsupported key type. All keys must be either string, or categorical column except HashedCategoricalColumn. Given: %s" % (key,))
            )
        if isinstance(key, HashedCategoricalColumn):
            raise at_user_line(
                ValueError(
                    "categorical_column_with_hash_bucket is not supported for crossing: two hashes make collisions more probable. "
                    "Give the feature's name instead. Given: %s" % (key,)
                )
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)
