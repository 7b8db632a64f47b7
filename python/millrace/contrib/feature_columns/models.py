# SPDX-License-Identifier: Apache-2.0
"""What is made of columns: the input of a network, of sequences, of linear models, and how examples are parsed."""

from __future__ import annotations

import collections.abc
from typing import Any, Dict, List, Optional, Tuple

from millrace.contrib.feature_columns.base import _Builder, _Column, parts_of, weights
from millrace.contrib.feature_columns.dense import _EmbeddingColumn, _OneHotColumn, _RealValuedColumn, _RealValuedVarLenColumn, real_valued_column
from millrace.contrib.feature_columns.sparse import as_rows
from millrace.feature_column import models
from millrace.feature_column.base import _FeatureColumn, make_parse_example_spec
from millrace.feature_column.state import of_model
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, nn_ops, parsing_ops
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse
from millrace.ops.sparse_math_ops import sparse_concat
from millrace.ops.variable_scope import variable_scope


def _key(column: Any) -> str:
    return column.key if isinstance(column, _Column) else "%s(%s)" % (type(column).__name__, column.name)


def check_feature_columns(feature_columns: Any) -> List[Any]:
    """The columns in the order of their keys, which is that of what is made of them; ValueError where two have one key."""
    if isinstance(feature_columns, dict):
        raise at_user_line(ValueError("Expected feature_columns to be iterable, found dict."))
    columns = list(feature_columns) if isinstance(feature_columns, collections.abc.Iterable) else [feature_columns]
    keys = set()
    for column in columns:
        if not isinstance(column, _FeatureColumn):
            raise at_user_line(ValueError("All feature_columns must be _FeatureColumn instances. Given: %s" % (column,)))
        if _key(column) in keys:
            raise at_user_line(
                ValueError("Duplicate feature column key found for column: %s. It is almost the same as another column: leave one of them out." % column.name)
            )
        keys.add(_key(column))
    return sorted(columns, key=_key)


def transform_features(features: Dict[Any, Any], feature_columns: Any) -> Dict[Any, Any]:
    """What each column makes of the features."""
    builder = _Builder(features)
    return {column: builder.get(column) for column in check_feature_columns(feature_columns)}


def _dense(column: Any, builder: _Builder, collections: Any, trainable: bool, rank: int) -> Tensor:
    if not isinstance(column, _Column):
        return models.dense_rows(column, builder, of_model(collections), trainable)
    value = builder.get(column)
    try:
        return column._to_dnn_input_layer(value, collections, trainable, output_rank=rank)
    except ValueError as error:
        raise at_user_line(ValueError("Error creating input layer for column: %s. %s" % (column.name, error))) from error


def _input(
    columns_to_tensors: Dict[Any, Any],
    columns: List[Any],
    weight_collections: Any,
    trainable: bool,
    scope: Any,
    default: str,
    rank: int,
    cols_to_outs: Optional[Dict[Any, Any]] = None,
) -> Tensor:
    builder, made, tensors = _Builder(columns_to_tensors), [], list(columns_to_tensors.values())
    with variable_scope(scope, default, tensors):
        for column in columns:
            with variable_scope(None, column._var_scope_name, tensors):
                made.append(_dense(column, builder, weight_collections, trainable, rank))
            if cols_to_outs is not None:
                cols_to_outs[column] = made[-1]
        return array_ops.concat(made, rank - 1)


def input_from_feature_columns(
    columns_to_tensors: Dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: Optional[Dict[Any, Any]] = None,
) -> Tensor:
    """The columns beside each other, one row for each example. `cols_to_outs` is given what each column makes."""
    columns = check_feature_columns(feature_columns)
    return _input(columns_to_tensors, columns, weight_collections, trainable, scope, "input_from_feature_columns", 2, cols_to_outs)


_OF_SEQUENCES = (_OneHotColumn, _EmbeddingColumn, _RealValuedColumn, _RealValuedVarLenColumn)


def check_sequence_columns(columns: Any) -> None:
    """ValueError where a column cannot be of sequences."""
    for column in columns:
        if not isinstance(column, _OF_SEQUENCES):
            raise at_user_line(ValueError("FeatureColumn type %s is not currently supported for sequence data." % type(column).__name__))
        of = getattr(column, "sparse_id_column", None)
        if type(of).__name__ in ("_CrossedColumn", "_BucketizedColumn"):
            raise at_user_line(
                ValueError(
                    "Column %s which %s needs is of type %s, which is not currently supported for sequence data." % (of.name, column.name, type(of).__name__)  # type: ignore[union-attr]
                )
            )


def sequence_input_from_feature_columns(
    columns_to_tensors: Dict[Any, Any], feature_columns: Any, weight_collections: Any = None, trainable: bool = True, scope: Any = None
) -> Tensor:
    """The columns beside each other, [examples, steps, numbers]."""
    columns = check_feature_columns(feature_columns)
    check_sequence_columns(columns)
    return _input(columns_to_tensors, columns, weight_collections, trainable, scope, "sequence_input_from_feature_columns", 3)


def _bias(total: Tensor, num_outputs: int, collections: Any, trainable: bool) -> Tuple[Tensor, Any]:
    bias = weights("bias_weight", [num_outputs], init_ops.zeros_initializer(), trainable, collections)
    return nn_ops.bias_add(total, bias), bias


def _looked_up(column: Any, value: Any, num_outputs: int, collections: Any, trainable: bool) -> Tuple[Tensor, Any]:
    """A column times weights that are looked up, and the weights."""
    wanted = column._wide_embedding_lookup_arguments(value)
    variable = weights(
        "weights",
        [wanted.vocab_size, num_outputs],
        wanted.initializer,
        trainable,
        collections,
        getattr(column, "ckpt_to_load_from", None),
        getattr(column, "tensor_name_in_ckpt", None),
    )
    counts = None if wanted.weight_tensor is None else as_rows(wanted.weight_tensor)
    return safe_embedding_lookup_sparse(parts_of(variable), as_rows(wanted.input_tensor), counts, wanted.combiner, name=column.name + "_weights"), variable


def _weighted(column: Any, builder: _Builder, num_outputs: int, collections: Any, trainable: bool) -> Tuple[Tensor, List[Any]]:
    if not isinstance(column, _Column):
        made = models.weighted_sum_in_scope(column, builder, num_outputs, "sum", of_model(collections), trainable)
        return made, models.variables_here()
    value = builder.get(column)
    try:
        made, variable = _looked_up(column, value, num_outputs, collections, trainable)
    except NotImplementedError:
        try:
            dense = column._to_dense_tensor(value)
        except ValueError as error:
            raise at_user_line(ValueError("Error creating weighted sum for column: %s. %s" % (column.name, error))) from error
        dense = dense if dense.dtype == dtypes.float32 else math_ops.cast(dense, dtypes.float32)
        variable = weights("weight", [dense.get_shape()[1], num_outputs], init_ops.zeros_initializer(), trainable, collections)
        made = matrix_ops.matmul(dense, variable, name="matmul")
    return made, parts_of(variable)


def weighted_sum_from_feature_columns(
    columns_to_tensors: Dict[Any, Any], feature_columns: Any, num_outputs: int, weight_collections: Any = None, trainable: bool = True, scope: Any = None
) -> Tuple[Tensor, Dict[Any, Any], Any]:
    """The columns times weights and a bias: (the sum, variables by columns, the bias)."""
    columns = check_feature_columns(feature_columns)
    builder, variables, tensors = _Builder(columns_to_tensors), {}, list(columns_to_tensors.values())
    parts = []
    with variable_scope(scope, "weighted_sum_from_feature_columns", tensors):
        for column in columns:
            with variable_scope(None, column.name, tensors):
                made, variables[column] = _weighted(column, builder, num_outputs, weight_collections, trainable)
                parts.append(made)
        total, bias = _bias(gen_ops.add_n(parts), num_outputs, weight_collections, trainable)
        return total, variables, bias


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: Dict[Any, Any], feature_columns: Any, num_outputs: int, weight_collections: Any = None, trainable: bool = True, scope: Any = None
) -> Tuple[Tensor, List[Any], Any]:
    """weighted_sum_from_feature_columns with one variable for all columns, which must be of classes: (the sum, the variable's parts, the bias)."""
    columns = check_feature_columns(feature_columns)
    builder, tensors = _Builder(columns_to_tensors), list(columns_to_tensors.values())
    with variable_scope(scope, "joint_weighted_sum_from_feature_columns", tensors):
        ids, size = [], 0
        for column in columns:
            wanted = column._wide_embedding_lookup_arguments(builder.get(column))
            if wanted.weight_tensor is not None:
                raise at_user_line(AssertionError("Joint sums for weighted sparse columns are not supported: %s" % column.name))
            rows = as_rows(wanted.input_tensor)
            ids.append(SparseTensor(rows.indices, math_ops.cast(rows.values, dtypes.int64) + size, rows.dense_shape))
            size += wanted.vocab_size
        variable = weights("weights", [size, num_outputs], init_ops.zeros_initializer(), trainable, weight_collections)
        made = safe_embedding_lookup_sparse(parts_of(variable), sparse_concat(1, ids), None, "sum", name="_weights")
        total, bias = _bias(made, num_outputs, weight_collections, trainable)
        return total, parts_of(variable), bias


# ---- features ----


def create_feature_spec_for_parsing(feature_columns: Any) -> Dict[str, Any]:
    """What tf.parse_example needs for some columns."""
    return make_parse_example_spec(feature_columns.values() if isinstance(feature_columns, dict) else feature_columns)


def _create_sequence_feature_spec_for_parsing(sequence_feature_columns: Any, allow_missing_by_default: bool = False) -> Dict[str, Any]:
    """What tf.parse_single_sequence_example needs for some columns."""
    made = {}
    for key, feature in create_feature_spec_for_parsing(sequence_feature_columns).items():
        if isinstance(feature, (parsing_ops.FixedLenFeature, parsing_ops.FixedLenSequenceFeature)):
            missing = allow_missing_by_default or feature.default_value is not None
            feature = parsing_ops.FixedLenSequenceFeature(feature.shape, feature.dtype, allow_missing=missing)
        made[key] = feature
    return made


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> Dict[str, Any]:
    """A placeholder for each feature that columns are of."""
    made: Dict[str, Any] = {}
    for key, feature in create_feature_spec_for_parsing(feature_columns).items():
        if isinstance(feature, parsing_ops.FixedLenFeature):
            made[key] = array_ops.placeholder(feature.dtype, [None, *feature.shape], name="Placeholder_%s" % key)
        else:
            made[key] = array_ops.sparse_placeholder(feature.dtype, name="Placeholder_%s" % key)
    return made


def parse_feature_columns_from_examples(serialized: Any, feature_columns: Any, name: Optional[str] = None, example_names: Any = None) -> Dict[Any, Any]:
    """Example messages as tensors, by features' names, and what the columns make of them, by columns."""
    columns = check_feature_columns(feature_columns)
    parsed = parsing_ops.parse_example(serialized, create_feature_spec_for_parsing(columns), name, example_names)
    return {**parsed, **transform_features(parsed, columns)}


def parse_feature_columns_from_sequence_examples(
    serialized: Any, context_feature_columns: Any, sequence_feature_columns: Any, name: Optional[str] = None, example_name: Any = None
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """A SequenceExample message as tensors by features' names: those of the whole and those of its steps."""
    context = create_feature_spec_for_parsing(check_feature_columns(context_feature_columns or []))
    steps = _create_sequence_feature_spec_for_parsing(check_feature_columns(sequence_feature_columns or []))
    return parsing_ops.parse_single_sequence_example(serialized, context, steps, example_name, name)


def infer_real_valued_columns(features: Any) -> List[_RealValuedColumn]:
    """A column of numbers for each feature; of a tensor one column, which has no name."""
    named = features if isinstance(features, dict) else {"": features}
    made = []
    for name in sorted(named):
        if isinstance(named[name], SparseTensor):
            raise at_user_line(
                ValueError(
                    "SparseTensor is not supported for auto detection. Please define corresponding FeatureColumn for tensor %s %s." % (name, named[name])
                )
            )
        tensor = convert_to_tensor(named[name])
        dtype = tensor.dtype.base_dtype
        if not (dtype.is_integer or dtype.is_floating):
            raise at_user_line(
                ValueError(
                    "Auto detection on integer or non floating types are not supported. Please define corresponding FeatureColumn for tensor %s of type %s."
                    % (tensor.name, dtype.name)
                )
            )
        shape: Any = tensor.get_shape().as_list()
        made.append(real_valued_column(name, dimension=shape[1] if len(shape) > 1 else 1, dtype=dtype))
    return made
