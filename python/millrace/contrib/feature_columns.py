# SPDX-License-Identifier: Apache-2.0
"""The columns of tf.contrib.layers: as those of tf.feature_column, with the arguments and the variables' names of contrib."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from millrace import feature_column as _columns
from millrace.feature_column import models
from millrace.feature_column.base import _LazyBuilder, different_names
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, init_ops, nn_ops
from millrace.ops.variable_scope import get_variable, variable_scope


def _combining(column: Any, combiner: str) -> Any:
    if combiner not in ("sum", "mean", "sqrtn"):
        raise at_user_line(ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum', got %s" % combiner))
    column.combiner = combiner
    return column


class _RealValuedColumn(_columns._NumericColumn):
    column_name = property(lambda self: self.key, doc="The feature's name.")
    dimension = property(lambda self: self.shape[0], doc="How many numbers an example has.")


def real_valued_column(column_name: str, dimension: Optional[int] = 1, default_value: Any = None, dtype: Any = dtypes.float32, normalizer: Any = None) -> Any:
    """A column of numbers."""
    if dimension is None:
        raise at_user_line(NotImplementedError("real_valued_column needs a dimension: give as many values as each example has."))
    if not isinstance(dimension, int) or dimension < 1:
        raise at_user_line(ValueError("dimension must be greater than 0. dimension: %s, column_name: %s" % (dimension, column_name)))
    if not dtypes.as_dtype(dtype).is_integer and not dtypes.as_dtype(dtype).is_floating:
        raise at_user_line(ValueError("dtype must be convertible to float. dtype: %s, column_name: %s" % (dtype, column_name)))
    return _RealValuedColumn(**vars(_columns.numeric_column(column_name, (dimension,), default_value, dtype, normalizer)))


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> Any:
    """Numbers as ranges between boundaries."""
    return _columns.bucketized_column(source_column, boundaries)


def sparse_column_with_keys(column_name: str, keys: Sequence[Any], default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string) -> Any:
    """A column of classes that are listed."""
    return _combining(_columns.categorical_column_with_vocabulary_list(column_name, keys, dtype, default_value), combiner)


def sparse_column_with_vocabulary_file(column_name: str, vocabulary_file: str, num_oov_buckets: int = 0, vocab_size: Optional[int] = None,
                                       default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string) -> Any:
    """A column of classes that are lines of a file."""
    made = _columns.categorical_column_with_vocabulary_file(column_name, vocabulary_file, vocab_size, num_oov_buckets, default_value, dtype)
    return _combining(made, combiner)


def sparse_column_with_hash_bucket(column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.string, hash_keys: Any = None) -> Any:
    """A column of any values, which share hash_bucket_size classes."""
    if hash_keys is not None:
        raise at_user_line(NotImplementedError("hash_keys are not provided: leave them out."))
    return _combining(_columns.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype), combiner)


def sparse_column_with_integerized_feature(column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.int64) -> Any:
    """A column of numbers of classes."""
    return _combining(_columns.categorical_column_with_identity(column_name, bucket_size), combiner)


def weighted_sparse_column(sparse_id_column: Any, weight_column_name: str, dtype: Any = dtypes.float32) -> Any:
    """A column whose values count as much as the numbers of another feature say."""
    return _columns.weighted_categorical_column(sparse_id_column, weight_column_name, dtype)


def crossed_column(columns: Sequence[Any], hash_bucket_size: int, combiner: str = "sum", ckpt_to_load_from: Any = None,
                   tensor_name_in_ckpt: Any = None, hash_key: Optional[int] = None) -> Any:
    """A column of the combinations of others' values, which share hash_bucket_size classes."""
    if ckpt_to_load_from is not None or tensor_name_in_ckpt is not None:
        raise at_user_line(NotImplementedError("weights of crossed columns out of checkpoints are not provided: use tf.train.init_from_checkpoint."))
    if any(not isinstance(c, _columns._CategoricalColumn) for c in columns):
        raise at_user_line(TypeError("columns must be a set of _SparseColumn, _CrossedColumn, or _BucketizedColumn instances."))
    return _combining(_columns._CrossedColumn(tuple(columns), hash_bucket_size, hash_key), combiner)


def one_hot_column(sparse_id_column: Any) -> Any:
    """Classes as rows of zeros and ones."""
    return _columns.indicator_column(sparse_id_column)


class _Embedding(_columns._EmbeddingColumn):
    _variable_name = "weights"


class _SharedEmbedding(_columns._SharedEmbeddingColumn):
    _variable_name = "weights"


def embedding_column(sparse_id_column: Any, dimension: int, combiner: str = "mean", initializer: Any = None, ckpt_to_load_from: Any = None,
                     tensor_name_in_ckpt: Any = None, max_norm: Any = None, trainable: bool = True) -> Any:
    """Classes as learned rows, which may begin as those of a checkpoint."""
    made = _columns.embedding_column(sparse_id_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)
    return _Embedding(**vars(made))


def shared_embedding_columns(sparse_id_columns: Sequence[Any], dimension: int, combiner: str = "mean", initializer: Any = None,
                             shared_embedding_name: Optional[str] = None, ckpt_to_load_from: Any = None, tensor_name_in_ckpt: Any = None,
                             max_norm: Any = None, trainable: bool = True) -> List[Any]:
    """Classes of several columns as learned rows of one table."""
    made = _columns.shared_embedding_columns(sparse_id_columns, dimension, combiner, initializer, shared_embedding_name, ckpt_to_load_from,
                                             tensor_name_in_ckpt, max_norm, trainable)
    return [_SharedEmbedding(**vars(column)) for column in made]


def _feature(column: Any) -> Any:
    """The feature that a column is of."""
    for inner in ("source_column", "categorical_column"):
        column = getattr(column, inner, column)
    return getattr(column, "key", getattr(column, "name", column))


def _combiner_of(column: Any) -> str:
    return getattr(column, "combiner", "") or getattr(getattr(column, "categorical_column", None), "combiner", "sum")


def _by_name(columns_to_tensors: Dict[Any, Any]) -> Dict[str, Any]:
    """Features by name; they may be given by columns too."""
    return {_feature(key): value for key, value in columns_to_tensors.items()}


def input_from_feature_columns(columns_to_tensors: Dict[Any, Any], feature_columns: Any, weight_collections: Any = None, trainable: bool = True,
                               scope: Any = None) -> Tensor:
    """The columns beside each other, one row for each example."""
    features, made = _by_name(columns_to_tensors), []
    builder, collections = _LazyBuilder(features), models._with_own(weight_collections)
    with variable_scope(scope, "input_from_feature_columns", list(features.values())):
        for column in check_feature_columns(feature_columns):
            if not isinstance(column, _columns._DenseColumn):
                raise at_user_line(ValueError("Error creating input layer for column: %s. Wrap it in an embedding_column or one_hot_column." % column.name))
            with variable_scope(None, column._var_scope_name):
                made.append(models.dense_rows(column, builder, collections, trainable))
        return array_ops.concat(made, 1)


def weighted_sum_from_feature_columns(columns_to_tensors: Dict[Any, Any], feature_columns: Any, num_outputs: int, weight_collections: Any = None,
                                      trainable: bool = True, scope: Any = None) -> Tuple[Tensor, Dict[Any, Any], Any]:
    """The columns times weights and a bias: (the sum, variables by columns, the bias)."""
    features = _by_name(columns_to_tensors)
    builder, collections = _LazyBuilder(features), models._with_own(weight_collections)
    variables: Dict[Any, Any] = {}
    parts: List[Any] = []
    with variable_scope(scope, "weighted_sum_from_feature_columns", list(features.values())):
        for column in check_feature_columns(feature_columns):
            if isinstance(column, _columns._EmbeddingColumn):
                raise at_user_line(ValueError("Error creating weighted sum for column: %s. It is an embedding_column: use the one it is of." % column.name))
            with variable_scope(None, column.name):
                parts.append(models.weighted_sum(column, builder, num_outputs, _combiner_of(column), collections, trainable))
                variables[column] = models._variables_here()
        bias = get_variable("bias_weight", [num_outputs], dtypes.float32, init_ops.zeros_initializer(), trainable=trainable, collections=collections)
        return nn_ops.bias_add(gen_ops.add_n(parts), bias), variables, bias


def check_feature_columns(feature_columns: Any) -> List[Any]:
    """The columns in order of their names; ValueError where two have one name."""
    columns = list(feature_columns) if isinstance(feature_columns, (list, tuple, set, frozenset)) else [feature_columns]
    for column in columns:
        if not isinstance(column, _columns._FeatureColumn):
            raise at_user_line(ValueError("All feature_columns must be _FeatureColumn instances. Given: %s" % (column,)))
    different_names(columns)
    return sorted(columns, key=lambda c: c.name)


def create_feature_spec_for_parsing(feature_columns: Any) -> Dict[str, Any]:
    """What tf.parse_example needs for some columns."""
    return _columns.make_parse_example_spec(feature_columns)


def parse_feature_columns_from_examples(serialized: Any, feature_columns: Any, name: Optional[str] = None, example_names: Any = None) -> Dict[Any, Any]:
    """Example messages as tensors, by columns and by names."""
    from millrace.ops.parsing_ops import parse_example
    columns = check_feature_columns(feature_columns)
    parsed = parse_example(serialized, create_feature_spec_for_parsing(columns), name, example_names)
    return {**parsed, **{c: parsed[_feature(c)] for c in columns if _feature(c) in parsed}}


def infer_real_valued_columns(features: Any) -> List[Any]:
    """A column of numbers for each feature; of a tensor one column, which has no name."""
    named = features if isinstance(features, dict) else {"": features}
    made = []
    for name in sorted(named):
        tensor = convert_to_tensor(named[name])
        dtype = tensor.dtype.base_dtype
        if not (dtype.is_integer or dtype.is_floating):
            raise at_user_line(ValueError("Features of columns of numbers must be integer or floating. Tensor %s has type %s" % (tensor.name, dtype.name)))
        shape = tensor.get_shape().as_list()
        made.append(real_valued_column(name, dimension=shape[1] if len(shape) > 1 else 1, dtype=dtype))
    return made

