# SPDX-License-Identifier: Apache-2.0
"""tf.feature_column: what columns of a table mean to a model."""
from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from millrace import gfile
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, add_to_collection, add_to_collections, get_collection
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, nn_ops, parsing_ops
from millrace.ops.variable_scope import get_variable, variable_scope


class _Column:
    key: Any
    name: str

    @property
    def column_name(self) -> Any:
        """The feature's name."""
        return self.key

    def parse_spec(self) -> Dict[str, Any]:
        """How tf.parse_example finds its features."""
        raise NotImplementedError

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """Numbers, one row for each example."""
        raise at_user_line(ValueError("Items of feature_columns must be dense here. Wrap %s with an embedding_column or indicator_column." % self.name))


class _Categorical(_Column):
    num_buckets: int
    dtype: Any = dtypes.string
    combiner = "sum"  # of contrib.layers' linear models

    def weights(self, features: Dict[str, Any]) -> Optional[Tensor]:
        """How much each of ids counts, or None where all count alike."""
        return None

    def parse_spec(self) -> Dict[str, Any]:
        """Any number of values."""
        return {self.key: parsing_ops.VarLenFeature(self.dtype)}

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
        return array_ops.reshape(math_ops.cast(value, dtypes.float32), [-1, self.dimension])

    @property
    def dimension(self) -> int:
        """How many numbers an example has."""
        return int(np.prod(self.shape))

    def parse_spec(self) -> Dict[str, Any]:
        """As many values as the shape says."""
        return {self.key: parsing_ops.FixedLenFeature(self.shape, self.dtype, self.default_value)}


class _Bucketized(_Categorical):
    def __init__(self, source: _Numeric, boundaries: Sequence[float]) -> None:
        self.source, self.boundaries, self.key = source, list(boundaries), source.key
        self.name = source.name + "_bucketized"
        self._width = source.dimension
        self.num_buckets = (len(self.boundaries) + 1) * self._width

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """Which bucket each number is in."""
        at_least = gen_ops.greater_equal(array_ops.expand_dims(self.source.dense(features, True), -1), [[self.boundaries]])
        bucket = math_ops.reduce_sum(math_ops.cast(at_least, dtypes.int64), -1)
        return bucket + np.arange(self._width, dtype=np.int64) * (len(self.boundaries) + 1)

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """The bucket as a row with a one."""
        return _counts(self.ids(features), self.num_buckets)

    def parse_spec(self) -> Dict[str, Any]:
        """Those of the numbers."""
        return self.source.parse_spec()


class _Vocabulary(_Categorical):
    def __init__(self, key: str, vocabulary: Sequence[Any], default_value: int, num_oov_buckets: int) -> None:
        self.key = self.name = key
        self.vocabulary, self.default_value, self.num_oov_buckets = list(vocabulary), default_value, num_oov_buckets
        self.num_buckets = len(self.vocabulary) + num_oov_buckets
        self.dtype = dtypes.string if isinstance(self.vocabulary[0], (str, bytes)) else dtypes.int64

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
        self.num_buckets, self.default_value, self.dtype = num_buckets, default_value, dtypes.int64

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


class _Crossed(_Categorical):
    def __init__(self, keys: Sequence[Any], hash_bucket_size: int, hash_key: Optional[int]) -> None:
        self.keys, self.num_buckets, self._seed = list(keys), hash_bucket_size, 0 if hash_key is None else hash_key
        self.name = "_X_".join(sorted(leaf if isinstance(leaf, str) else leaf.name for leaf in self._leaves()))
        self.key = self.name

    def _leaves(self) -> List[Any]:
        return [leaf for key in self.keys for leaf in (key._leaves() if isinstance(key, _Crossed) else [key])]

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """A hash of each combination of the columns' values."""
        from millrace import string_to_hash_bucket_fast  # type: ignore[attr-defined]
        prime = 2 ** 31 - 1
        total: Any = np.full([1, 1], self._seed % prime, np.int64)
        there: Any = np.full([1, 1], True)
        for leaf in self._leaves():
            ids = (_Hashed(leaf, prime, None) if isinstance(leaf, str) else leaf).ids(features)
            hashed = string_to_hash_bucket_fast(gen_ops.as_string(ids), prime)
            # Each combination of what was so far with what is in this column.
            total = math_ops.floormod(array_ops.expand_dims(total, 2) * 1000003 + array_ops.expand_dims(hashed, 1), prime)
            both = gen_ops.logical_and(array_ops.expand_dims(there, 2), array_ops.expand_dims(gen_ops.greater_equal(ids, np.int64(0)), 1))
            total, there = (array_ops.reshape(t, [array_ops.shape(t)[0], -1]) for t in (total, both))
        made = string_to_hash_bucket_fast(gen_ops.as_string(total), self.num_buckets)
        return array_ops.where(there, made, array_ops.zeros_like(made) - 1)

    def parse_spec(self) -> Dict[str, Any]:
        """Those of its columns."""
        parts = [{leaf: parsing_ops.VarLenFeature(dtypes.string)} if isinstance(leaf, str) else leaf.parse_spec() for leaf in self._leaves()]
        return {key: value for part in parts for key, value in part.items()}


class _Weighted(_Categorical):
    def __init__(self, categorical: _Categorical, weight_key: str, dtype: Any) -> None:
        self.categorical, self.weight_key, self.weight_dtype = categorical, weight_key, dtype
        self.key, self.num_buckets, self.combiner = categorical.key, categorical.num_buckets, categorical.combiner
        self.name = "%s_weighted_by_%s" % (categorical.name, weight_key)

    def ids(self, features: Dict[str, Any]) -> Tensor:
        """Those of the column."""
        return self.categorical.ids(features)

    def weights(self, features: Dict[str, Any]) -> Tensor:
        """The numbers of another feature."""
        value = _feature(features, self.weight_key)
        if hasattr(value, "dense_shape"):
            from millrace.ops.sparse_ops import sparse_tensor_to_dense
            value = sparse_tensor_to_dense(value, validate_indices=False)
        value = math_ops.cast(convert_to_tensor(value), dtypes.float32)
        return array_ops.expand_dims(value, -1) if value.get_shape().ndims == 1 else value

    def parse_spec(self) -> Dict[str, Any]:
        """Those of the column, and the weights."""
        return {**self.categorical.parse_spec(), self.weight_key: parsing_ops.VarLenFeature(self.weight_dtype)}


class _Indicator(_Column):
    def __init__(self, categorical: _Categorical) -> None:
        self.categorical, self.key, self.name = categorical, categorical.key, categorical.name + "_indicator"

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """How often each class is there, or how much it counts."""
        return _counts(self.categorical.ids(features), self.categorical.num_buckets, self.categorical.weights(features))

    def parse_spec(self) -> Dict[str, Any]:
        """Those of the column."""
        return self.categorical.parse_spec()


class _Embedding(_Column):
    variable_name = "embedding_weights"

    def __init__(self, categorical: _Categorical, dimension: int, combiner: str, initializer: Any, max_norm: Any, trainable: bool) -> None:
        if dimension is None or dimension < 1:
            raise at_user_line(ValueError("Invalid dimension %s." % dimension))
        self.categorical, self.key, self.name = categorical, categorical.key, categorical.name + "_embedding"
        self.dimension, self.combiner, self.trainable, self.max_norm = dimension, combiner, trainable, max_norm
        self.initializer = initializer or init_ops.truncated_normal_initializer(0.0, 1 / np.sqrt(dimension))

    def dense(self, features: Dict[str, Any], trainable: bool) -> Tensor:
        """A learned row for each class; of several classes their mean, sum, or sum divided by the root of their number."""
        rows = self._rows(trainable and self.trainable)
        return _combined(rows, self.categorical.ids(features), self.categorical.weights(features), self.combiner, self.max_norm)

    def _rows(self, trainable: bool) -> Any:
        return get_variable(self.variable_name, [self.categorical.num_buckets, self.dimension], dtypes.float32, self.initializer, trainable=trainable)

    def parse_spec(self) -> Dict[str, Any]:
        """Those of the column."""
        return self.categorical.parse_spec()


class _SharedEmbedding(_Embedding):
    def __init__(self, collection: str, *args: Any) -> None:
        super().__init__(*args)
        self.collection, self.name = collection, self.categorical.name + "_shared_embedding"

    def _rows(self, trainable: bool) -> Any:
        made = get_collection(self.collection)
        if not made:
            add_to_collection(self.collection, super()._rows(trainable))
        return get_collection(self.collection)[0]


def _combined(rows: Any, ids: Tensor, weights: Optional[Tensor], combiner: str, max_norm: Any = None) -> Tensor:
    """The rows at ids of each example in one: their sum, their mean, or their sum divided by the root of their squared weights."""
    there = math_ops.cast(gen_ops.greater_equal(ids, np.int64(0)), dtypes.float32)
    share = there if weights is None else there * weights
    found = nn_ops.embedding_lookup(rows, math_ops.maximum(ids, array_ops.zeros_like(ids)), max_norm=max_norm)
    total = math_ops.reduce_sum(found * array_ops.expand_dims(share, -1), 1)
    if combiner == "sum":
        return total
    size = math_ops.reduce_sum(share if combiner == "mean" else gen_ops.square(share), 1, keepdims=True)
    size = size if combiner == "mean" else gen_ops.sqrt(size)
    return total / array_ops.where(gen_ops.equal(size, 0.0), array_ops.ones_like(size), size)


def _counts(ids: Tensor, depth: int, weights: Optional[Tensor] = None) -> Tensor:
    rows = array_ops.one_hot(ids, depth)
    return math_ops.reduce_sum(rows if weights is None else rows * array_ops.expand_dims(weights, -1), 1)


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
    _no_checkpoint(ckpt_to_load_from, tensor_name_in_ckpt)
    return _Embedding(categorical_column, dimension, combiner, initializer, max_norm, trainable)


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: Optional[int] = None) -> _Crossed:
    """A column of the combinations of others' values, which share hash_bucket_size classes. Which class one falls into is Millrace's own."""
    if not hash_bucket_size or hash_bucket_size < 1:
        raise at_user_line(ValueError("hash_bucket_size must be > 1. hash_bucket_size: %s" % hash_bucket_size))
    if not keys or len(keys) < 2:
        raise at_user_line(ValueError("keys must be a list with length > 1. Given: %s" % (keys,)))
    for key in keys:
        if not isinstance(key, (str, _Categorical)) or isinstance(key, _Weighted):
            raise at_user_line(ValueError("Unsupported key type. All keys must be either string, or categorical column. Given: %s" % (key,)))
    return _Crossed(keys, hash_bucket_size, hash_key)


def weighted_categorical_column(categorical_column: _Categorical, weight_feature_key: str, dtype: Any = dtypes.float32) -> _Weighted:
    """A column whose values count as much as the numbers of another feature say."""
    return _Weighted(categorical_column, weight_feature_key, dtypes.as_dtype(dtype))


def shared_embedding_columns(categorical_columns: Sequence[_Categorical], dimension: int, combiner: str = "mean", initializer: Any = None,
                             shared_embedding_collection_name: Optional[str] = None, ckpt_to_load_from: Any = None, tensor_name_in_ckpt: Any = None,
                             max_norm: Any = None, trainable: bool = True) -> List[_SharedEmbedding]:
    """Classes of several columns as learned rows of one table."""
    columns = sorted(categorical_columns, key=lambda c: c.name)
    if len({c.num_buckets for c in columns}) != 1:
        raise at_user_line(ValueError("To use shared_embedding_column, all categorical_columns must have the same number of buckets. Given: %s"
                                      % [(c.name, c.num_buckets) for c in columns]))
    _no_checkpoint(ckpt_to_load_from, tensor_name_in_ckpt)
    name = shared_embedding_collection_name or "_".join(c.name for c in columns) + "_shared_embedding"
    start = initializer or init_ops.truncated_normal_initializer(0.0, 1 / np.sqrt(dimension))
    return [_SharedEmbedding(name, c, dimension, combiner, start, max_norm, trainable) for c in categorical_columns]


def _no_checkpoint(*given: Any) -> None:
    if any(value is not None for value in given):
        raise at_user_line(NotImplementedError("embeddings out of checkpoints are not provided: restore with tf.train.init_from_checkpoint."))


def make_parse_example_spec(feature_columns: Any) -> Dict[str, Any]:
    """What tf.parse_example needs for some columns."""
    made: Dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, _Column):
            raise at_user_line(ValueError("All feature_columns must be _FeatureColumn instances. Given: %s" % (column,)))
        for key, value in column.parse_spec().items():
            if made.setdefault(key, value) != value:
                raise at_user_line(ValueError("feature_columns contain different parse_spec for key %s. Given: %s and %s" % (key, value, made[key])))
    return made


class _Kept:
    """Notes the variables that a column makes, in collections and in a dict by columns."""

    def __init__(self, collections: Any, by_column: Any) -> None:
        self._collections, self._by_column = collections, by_column

    @contextlib.contextmanager
    def of(self, column: Any) -> Iterator[None]:
        """Around what makes the variables of a column."""
        before = set(get_collection(GraphKeys.GLOBAL_VARIABLES))
        yield
        made = [v for v in get_collection(GraphKeys.GLOBAL_VARIABLES) if v not in before]
        for v in made:
            add_to_collections(self._collections or [], v)
        if self._by_column is not None:
            self._by_column[column] = made


def _sorted(columns: Any) -> List[Any]:
    listed = list(columns) if isinstance(columns, (list, tuple, set)) or hasattr(columns, "__next__") else [columns]
    names = [c.name for c in listed]
    if len(set(names)) != len(names):
        raise at_user_line(ValueError("Duplicate feature column name found for columns: %s" % sorted(names)))
    return sorted(listed, key=lambda c: c.name)  # type: ignore[no-any-return]


def input_layer(features: Dict[str, Any], feature_columns: Any, weight_collections: Any = None, trainable: bool = True, cols_to_vars: Any = None) -> Tensor:
    """The columns beside each other, one row for each example."""
    kept = _Kept(weight_collections, cols_to_vars)
    with variable_scope(None, default_name="input_layer"):
        made = []
        for column in _sorted(feature_columns):
            with kept.of(column), variable_scope(None, default_name=getattr(column, "collection", column.name)):
                made.append(column.dense(features, trainable))
        return array_ops.concat(made, 1)


def _linear(column: Any, features: Dict[str, Any], units: int, combiner: str, trainable: bool) -> Tensor:
    """A column times weights."""
    categorical = isinstance(column, _Categorical)
    value = None if categorical else column.dense(features, trainable)
    size = value.get_shape()[1].value if value is not None else column.num_buckets
    weights = get_variable("weights", [size, units], dtypes.float32, init_ops.zeros_initializer(), trainable=trainable)
    return _combined(weights, column.ids(features), column.weights(features), combiner) if categorical else matrix_ops.matmul(value, weights)


def linear_model(features: Dict[str, Any], feature_columns: Any, units: int = 1, sparse_combiner: str = "sum", weight_collections: Any = None,
                 trainable: bool = True, cols_to_vars: Any = None) -> Tensor:
    """The columns times weights, and a bias."""
    kept, parts = _Kept(weight_collections, cols_to_vars), []
    with variable_scope(None, default_name="linear_model"):
        for column in _sorted(feature_columns):
            with kept.of(column), variable_scope(None, default_name=column.name):
                parts.append(_linear(column, features, units, sparse_combiner, trainable))
        with kept.of("bias"):
            bias = get_variable("bias_weights", [units], dtypes.float32, init_ops.zeros_initializer(), trainable=trainable)
    return nn_ops.bias_add(gen_ops.add_n(parts), bias)
