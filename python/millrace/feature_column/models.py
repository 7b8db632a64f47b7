# SPDX-License-Identifier: Apache-2.0
"""What is made of columns: the input of a network, a linear model, and how examples are parsed."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from millrace.feature_column.base import _CategoricalColumn, _DenseColumn, _FeatureColumn, _LazyBuilder, checked_columns
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_collection, name_scope
from millrace.ops import array_ops, gen_ops, init_ops, matrix_ops, nn_ops
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse
from millrace.ops.sparse_math_ops import sparse_reshape
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


def make_parse_example_spec(feature_columns: Any) -> Dict[str, Any]:
    """What tf.parse_example needs for some columns."""
    made: Dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, _FeatureColumn):
            raise at_user_line(ValueError("All feature_columns must be _FeatureColumn instances. Given: %s" % (column,)))
        for key, value in column._parse_example_spec.items():
            if made.setdefault(key, value) != value:
                raise at_user_line(ValueError("feature_columns contain different parse_spec for key %s. Given %s and %s" % (key, value, made[key])))
    return made


def _transform_features(features: Dict[str, Any], feature_columns: Any) -> Dict[Any, Any]:
    """What each column makes of the features."""
    with name_scope(None, "transform_features", list(features.values())):
        builder, made = _LazyBuilder(features), {}
        for column in sorted(checked_columns(feature_columns), key=lambda c: c.name):
            with name_scope(None, column.name):
                made[column] = builder.get(column)
    return made


def _in_order(columns: Any, kinds: Any, message: str) -> List[Any]:
    listed = checked_columns(columns)
    for column in listed:
        if not isinstance(column, kinds):
            raise at_user_line(ValueError("%s Given: %s" % (message, column)))
    return sorted(listed, key=lambda c: c.name)


def _with_own(collections: Any) -> List[str]:
    listed = list(collections or ())
    return listed + [key for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES) if key not in listed]


def _variables_here() -> List[Any]:
    return get_collection(GraphKeys.GLOBAL_VARIABLES, get_variable_scope().name + "/")


def _same_batch(parts: List[Tensor], columns: List[Any]) -> None:
    first = None
    for part, column in zip(parts, columns):
        size = part.get_shape()[0].value if part.get_shape().ndims else None
        if size is None:
            continue
        if first is None:
            first = (size, column)
        elif size != first[0]:
            raise at_user_line(
                ValueError(
                    "Batch size (first dimension) of each feature must be same. Batch size of columns (%s, %s): (%s, %s)"
                    % (first[1].name, column.name, first[0], size)
                )
            )


def dense_rows(column: Any, builder: _LazyBuilder, weight_collections: Any, trainable: bool) -> Tensor:
    """A dense column's numbers, one row for each example."""
    value = column._get_dense_tensor(builder, weight_collections=weight_collections, trainable=trainable)
    return array_ops.reshape(value, array_ops.stack([array_ops.shape(value)[0], column._variable_shape.num_elements()]))


def weighted_sum(column: Any, builder: _LazyBuilder, units: int, combiner: str, weight_collections: Any, trainable: bool) -> Tensor:
    """A column times weights, which begin as zeros."""

    def weights(size: int) -> Any:
        return get_variable("weights", [size, units], dtypes.float32, init_ops.zeros_initializer(), trainable=trainable, collections=weight_collections)

    if not isinstance(column, _CategoricalColumn):
        return matrix_ops.matmul(
            dense_rows(column, builder, weight_collections, trainable), weights(column._variable_shape.num_elements()), name="weighted_sum"
        )
    pair = column._get_sparse_tensors(builder, weight_collections=weight_collections, trainable=trainable)
    ids, counts = (t if t is None else sparse_reshape(t, array_ops.stack([t.dense_shape[0], -1])) for t in pair)
    return safe_embedding_lookup_sparse(weights(column._num_buckets), ids, counts, combiner, name="weighted_sum")


def _each(columns: List[Any], make: Callable[[Any], Tensor], cols_to_vars: Optional[Dict[Any, Any]]) -> List[Tensor]:
    """What `make` makes of each column in the scope of its variables."""
    made = []
    for column in columns:
        with variable_scope(None, default_name=column._var_scope_name):
            made.append(make(column))
            if cols_to_vars is not None:
                cols_to_vars[column] = _variables_here()
    _same_batch(made, columns)
    return made


def input_layer(
    features: Dict[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Optional[Dict[Any, Any]] = None,
    cols_to_output_tensors: Optional[Dict[Any, Any]] = None,
) -> Tensor:
    """The columns beside each other, in the order of their names: float32 [examples, numbers of all columns]."""
    columns = _in_order(
        feature_columns,
        _DenseColumn,
        "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an embedding_column or indicator_column.",
    )
    collections = _with_own(weight_collections)
    with variable_scope(None, default_name="input_layer", values=list(features.values())):
        builder = _LazyBuilder(features)
        parts = _each(columns, lambda column: dense_rows(column, builder, collections, trainable), cols_to_vars)
        if cols_to_output_tensors is not None:
            cols_to_output_tensors.update(zip(columns, parts))
        return array_ops.concat(parts, 1)


def linear_model(
    features: Dict[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Optional[Dict[Any, Any]] = None,
) -> Tensor:
    """The columns times weights, and a bias: float32 [examples, units]."""
    columns = _in_order(feature_columns, (_DenseColumn, _CategoricalColumn), "Items of feature_columns must be either a _DenseColumn or _CategoricalColumn.")
    collections = _with_own(weight_collections)
    with variable_scope(None, default_name="linear_model", values=list(features.values())):
        builder = _LazyBuilder(features)
        parts = _each(columns, lambda column: weighted_sum(column, builder, units, sparse_combiner, collections, trainable), cols_to_vars)
        total = gen_ops.add_n(parts, name="weighted_sum_no_bias")
        bias = get_variable("bias_weights", [units], dtypes.float32, init_ops.zeros_initializer(), trainable=trainable, collections=collections)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = get_collection(GraphKeys.GLOBAL_VARIABLES, get_variable_scope().name + "/bias_weights")
        return nn_ops.bias_add(total, bias, name="weighted_sum")
