# SPDX-License-Identifier: Apache-2.0
"""tf.feature_column: what columns of a table mean to a model."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from millrace import gfile
from millrace.framework import dtypes
from millrace.framework import missing as _missing
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, nn_ops
from millrace.ops.variable_scope import get_variable, variable_scope


class _Column:
    key: Any
    name: str

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """Numbers, one row for each example."""
        raise at_user_line(ValueError("Items of feature_columns must be dense here. Wrap %s with an embedding_column or indicator_column." % self.name))


class _Categorical(_Column):
    num_buckets: int

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """Numbers of classes [examples, values of each], -1 for none."""
        raise NotImplementedError

    def _values(self, features: Dict[str, Any]) -> Tensor:
        value = _feature(features, self.key)
        if hasattr(value, "dense_shape"):
            from millrace.ops.sparse_ops import sparse_tensor_to_dense
            is_text = value.values.dtype.base_dtype == dtypes.string
            value = sparse_tensor_to_dense(value, "" if is_text else -1, validate_indices=False)
        value = convert_to_tensor(value)
        return array_ops.expand_dims(value, -1) if value.get_shape().ndims == 1 else value


def _feature(features: Dict[str, Any], key: Any) -> Any:
    if key not in features:
        raise at_user_line(ValueError("Feature %s is not in features dictionary." % key))
    return features[key]


class _Numeric(_Column):
    def __init__(self, key: str, shape: Tuple[int, ...], default_value: Any, dtype: Any, normalizer_fn: Any) -> None:
        self.key = self.name = key
        self.shape, self.default_value, self.dtype, self.normalizer_fn = shape, default_value, dtype, normalizer_fn

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """The numbers themselves."""
        value = convert_to_tensor(_feature(features, self.key))
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return array_ops.reshape(math_ops.cast(value, dtypes.float32), [-1, int(np.prod(self.shape))])


class _Bucketized(_Categorical):
    def __init__(self, source: _Numeric, boundaries: Sequence[float]) -> None:
        self.source, self.boundaries, self.key = source, list(boundaries), source.key
        self.name = source.name + "_bucketized"
        self._width = int(np.prod(source.shape))
        self.num_buckets = (len(self.boundaries) + 1) * self._width

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """Which bucket each number is in."""
        at_least = gen_ops.greater_equal(array_ops.expand_dims(self.source.dense(features, True), -1), [[self.boundaries]])
        bucket = math_ops.reduce_sum(math_ops.cast(at_least, dtypes.int64), -1)
        return bucket + np.arange(self._width, dtype=np.int64) * (len(self.boundaries) + 1)

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """The bucket as a row with a one."""
        return _counts(self.ids(features), self.num_buckets)


class _Vocabulary(_Categorical):
    def __init__(self, key: str, vocabulary: Sequence[Any], default_value: int, num_oov_buckets: int) -> None:
        self.key = self.name = key
        self.vocabulary, self.default_value, self.num_oov_buckets = list(vocabulary), default_value, num_oov_buckets
        self.num_buckets = len(self.vocabulary) + num_oov_buckets

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """Where each value is in the vocabulary."""
        values = self._values(features)
        words = convert_to_tensor(self.vocabulary, values.dtype.base_dtype)
        same = math_ops.equal(array_ops.expand_dims(values, -1), array_ops.reshape(words, [1, 1, -1]))
        found, place = math_ops.reduce_any(same, -1), math_ops.argmax(math_ops.cast(same, dtypes.int32), -1)
        nothing = math_ops.equal(values, "" if values.dtype.base_dtype == dtypes.string else -1)
        if self.num_oov_buckets:
            from millrace import string_to_hash_bucket_fast  # type: ignore[attr-defined]
            text = values if values.dtype.base_dtype == dtypes.string else gen_ops.as_string(values)
            other = string_to_hash_bucket_fast(text, self.num_oov_buckets) + len(self.vocabulary)
        else:
            other = array_ops.zeros_like(place) + self.default_value
        return array_ops.where(found, place, array_ops.where(nothing, array_ops.zeros_like(place) - 1, other))


class _Identity(_Categorical):
    def __init__(self, key: str, num_buckets: int, default_value: Optional[int]) -> None:
        self.key = self.name = key
        self.num_buckets, self.default_value = num_buckets, default_value

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """The numbers themselves."""
        values = math_ops.cast(self._values(features), dtypes.int64)
        if self.default_value is None:
            return values
        inside = gen_ops.logical_and(gen_ops.greater_equal(values, 0), gen_ops.less(values, self.num_buckets))
        return array_ops.where(inside, values, array_ops.zeros_like(values) + self.default_value)


class _Hashed(_Categorical):
    def __init__(self, key: str, num_buckets: int, dtype: Any) -> None:
        self.key = self.name = key
        self.num_buckets, self.dtype = num_buckets, dtype

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """A hash of each value."""
        from millrace import string_to_hash_bucket_fast  # type: ignore[attr-defined]
        values = self._values(features)
        is_text = values.dtype.base_dtype == dtypes.string
        hashed = string_to_hash_bucket_fast(values if is_text else gen_ops.as_string(values), self.num_buckets)
        return array_ops.where(math_ops.equal(values, "" if is_text else -1), array_ops.zeros_like(hashed) - 1, hashed)


class _Indicator(_Column):
    def __init__(self, categorical: _Categorical) -> None:
        self.categorical, self.key, self.name = categorical, categorical.key, categorical.name + "_indicator"

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """How often each class is there."""
        return _counts(self.categorical.ids(features), self.categorical.num_buckets)


class _Embedding(_Column):
    def __init__(self, categorical: _Categorical, dimension: int, combiner: str, initializer: Any, max_norm: Any, trainable: bool) -> None:
        self.categorical, self.key, self.name = categorical, categorical.key, categorical.name + "_embedding"
        self.dimension, self.combiner, self.trainable, self.max_norm = dimension, combiner, trainable, max_norm
        self.initializer = initializer or init_ops.truncated_normal_initializer(0.0, 1 / np.sqrt(dimension))

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """A learned row for each class; of several classes their mean, sum, or sum divided by the root of their number."""
        ids = self.categorical.ids(features)
        rows = get_variable("embedding_weights", [self.categorical.num_buckets, self.dimension], dtypes.float32, self.initializer,
                            trainable=trainable and self.trainable)
        there = math_ops.cast(gen_ops.greater_equal(ids, 0), dtypes.float32)
        found = nn_ops.embedding_lookup(rows, math_ops.maximum(ids, array_ops.zeros_like(ids)), max_norm=self.max_norm)
        total = math_ops.reduce_sum(found * array_ops.expand_dims(there, -1), 1)
        count = math_ops.maximum(math_ops.reduce_sum(there, 1, keepdims=True), 1.0)
        return total if self.combiner == "sum" else total / (count if self.combiner == "mean" else gen_ops.sqrt(count))


def _counts(ids: Tensor, depth: int) -> Tensor:
    return math_ops.reduce_sum(array_ops.one_hot(ids, depth), 1)


def numeric_column(key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = dtypes.float32, normalizer_fn: Any = None) -> _Numeric:
    """A column of numbers."""
    return _Numeric(key, (int(shape),) if isinstance(shape, int) else tuple(shape), default_value, dtypes.as_dtype(dtype), normalizer_fn)


def bucketized_column(source_column: _Numeric, boundaries: Sequence[float]) -> _Bucketized:
    """Numbers as ranges between boundaries."""
    if not isinstance(source_column, _Numeric):
        raise at_user_line(ValueError("source_column must be a column generated with numeric_column(). Given: %s" % (source_column,)))
    if list(boundaries) != sorted(set(boundaries)) or not len(boundaries):
        raise at_user_line(ValueError("boundaries must be a sorted list."))
    return _Bucketized(source_column, boundaries)


def categorical_column_with_vocabulary_list(key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1,
                                            num_oov_buckets: int = 0) -> _Vocabulary:
    """A column of classes that are listed."""
    if not len(vocabulary_list):
        raise at_user_line(ValueError("vocabulary_list %s must be non-empty, column_name: %s" % (vocabulary_list, key)))
    return _Vocabulary(key, vocabulary_list, default_value, num_oov_buckets)


def categorical_column_with_vocabulary_file(key: str, vocabulary_file: str, vocabulary_size: Optional[int] = None, num_oov_buckets: int = 0,
                                            default_value: Optional[int] = None, dtype: Any = dtypes.string) -> _Vocabulary:
    """A column of classes that are lines of a file."""
    with gfile.GFile(vocabulary_file) as file:
        words: List[Any] = file.read().splitlines()[:vocabulary_size]
    words = words if dtypes.as_dtype(dtype) == dtypes.string else [int(w) for w in words]
    return _Vocabulary(key, words, -1 if default_value is None else default_value, num_oov_buckets)


def categorical_column_with_identity(key: str, num_buckets: int, default_value: Optional[int] = None) -> _Identity:
    """A column of numbers of classes."""
    return _Identity(key, num_buckets, default_value)


def categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = dtypes.string) -> _Hashed:
    """A column of any values, which share hash_bucket_size classes."""
    return _Hashed(key, hash_bucket_size, dtypes.as_dtype(dtype))


def indicator_column(categorical_column: _Categorical) -> _Indicator:
    """Classes as rows of zeros and ones."""
    return _Indicator(categorical_column)


def embedding_column(categorical_column: _Categorical, dimension: int, combiner: str = "mean", initializer: Any = None, ckpt_to_load_from: Any = None,
                     tensor_name_in_ckpt: Any = None, max_norm: Any = None, trainable: bool = True) -> _Embedding:
    """Classes as learned rows."""
    return _Embedding(categorical_column, dimension, combiner, initializer, max_norm, trainable)


def _sorted(columns: Any) -> List[Any]:
    listed = list(columns) if isinstance(columns, (list, tuple, set)) or hasattr(columns, "__next__") else [columns]
    names = [c.name for c in listed]
    if len(set(names)) != len(names):
        raise at_user_line(ValueError("Duplicate feature column name found for columns: %s" % sorted(names)))
    return sorted(listed, key=lambda c: c.name)  # type: ignore[no-any-return]


def input_layer(features: Dict[str, Any], feature_columns: Any, weight_collections: Any = None, trainable: bool = True, cols_to_vars: Any = None) -> Tensor:
    """The columns beside each other, one row for each example."""
    with variable_scope(None, default_name="input_layer"):
        made = []
        for column in _sorted(feature_columns):
            with variable_scope(None, default_name=column.name):
                made.append(column.dense(features, trainable))
        return array_ops.concat(made, 1)


def linear_model(features: Dict[str, Any], feature_columns: Any, units: int = 1, sparse_combiner: str = "sum", weight_collections: Any = None,
                 trainable: bool = True, cols_to_vars: Any = None) -> Tensor:
    """The columns times weights, and a bias."""
    total: Any = None
    with variable_scope(None, default_name="linear_model"):
        for column in _sorted(feature_columns):
            with variable_scope(None, default_name=column.name):
                value = _counts(column.ids(features), column.num_buckets) if isinstance(column, _Categorical) else column.dense(features, trainable)
                weights = get_variable("weights", [value.get_shape()[1].value, units], dtypes.float32, init_ops.zeros_initializer(), trainable=trainable)
                part = math_ops.matmul(value, weights)
                if isinstance(column, _Categorical) and sparse_combiner != "sum":
                    count = math_ops.maximum(math_ops.reduce_sum(value, 1, keepdims=True), 1.0)
                    part = part / (count if sparse_combiner == "mean" else gen_ops.sqrt(count))
                total = part if total is None else total + part
        bias = get_variable("bias_weights", [units], dtypes.float32, init_ops.zeros_initializer(), trainable=trainable)
    return nn_ops.bias_add(total, bias)


_missing.fill(globals(), "feature_column.", {"crossed_column": "a column of joined strings", "weighted_categorical_column": "indicator_column",
                                             "shared_embedding_columns": "embedding_column", "make_parse_example_spec": "feed_dict"})
