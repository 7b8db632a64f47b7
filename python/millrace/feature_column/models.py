# SPDX-License-Identifier: Apache-2.0
"""What is made of columns in the style before: the input of a network, of a recurrent one, and a linear model."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.feature_column.base import CategoricalColumn, FeatureColumn, _CategoricalColumn, _DenseColumn, _SequenceDenseColumn, buckets_of, checked_columns
from millrace.feature_column.features import FeatureTransformationCache, _LazyBuilder
from millrace.feature_column.sequence import same_lengths
from millrace.feature_column.state import VariablesInScope, of_model
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_collection, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, init_ops, matrix_ops, nn_ops
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse
from millrace.ops.sparse_math_ops import sparse_reshape
from millrace.ops.template import make_template
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


# ---- what layers do too ----


def same_batch(parts: List[Tensor], columns: List[Any]) -> None:
    """ValueError where what is made of columns is known to be of different numbers of examples."""
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


def flat(value: Tensor, shape: TensorShape, steps: bool = False) -> Tensor:
    """Numbers of a shape as one row for each example, or for each step of each example."""
    sizes = array_ops.shape(value)
    kept = [sizes[0], sizes[1]] if steps else [sizes[0]]
    return array_ops.reshape(value, array_ops.stack([*kept, shape.num_elements()]))


def weighted_sum(column: Any, cache: FeatureTransformationCache, state: Any, weights: Callable[[int], Any], combiner: str) -> Tensor:
    """A column times the variable that `weights` gives for a number of rows; what is of classes is taken so."""
    old = isinstance(cache, _LazyBuilder)
    if isinstance(column, _CategoricalColumn if old else CategoricalColumn):
        table = weights(buckets_of(column))
        pair = cache.classes(column, state)
        ids, counts = (t if t is None else sparse_reshape(t, array_ops.stack([t.dense_shape[0], -1])) for t in pair)
        return safe_embedding_lookup_sparse(table, ids, counts, combiner, name="weighted_sum")
    shape = column._variable_shape if old else column.variable_shape
    table = weights(shape.num_elements())
    if old:
        value = column._get_dense_tensor(cache, weight_collections=state.weight_collections, trainable=state.trainable)
    else:
        value = column.get_dense_tensor(cache, state)
    return matrix_ops.matmul(flat(value, shape), table, name="weighted_sum")


def _transformed(cache: FeatureTransformationCache, features: Dict[str, Any], columns: List[Any], state_manager: Any) -> Dict[Any, Any]:
    with name_scope(None, "transform_features", list(features.values())):
        made = {}
        for column in columns:
            with name_scope(None, column.name):
                made[column] = cache.get(column, state_manager)
    return made


def _transform_features(features: Dict[str, Any], feature_columns: Any) -> Dict[Any, Any]:
    """What each column makes of the features."""
    return _transformed(_LazyBuilder(features), features, checked_columns(feature_columns), None)


def _transform_features_v2(features: Dict[str, Any], feature_columns: Any, state_manager: Any) -> Dict[Any, Any]:
    """What each column of today's style makes of the features."""
    return _transformed(FeatureTransformationCache(features), features, checked_columns(feature_columns, FeatureColumn), state_manager)


# ---- models ----


def _in_order(columns: Any, kinds: Any, message: str) -> List[Any]:
    listed = checked_columns(columns)
    for column in listed:
        if not isinstance(column, kinds):
            raise at_user_line(ValueError("%s Given (type %s): %s" % (message, type(column), column)))
    return listed


def variables_here(name: str = "") -> List[Any]:
    """The variables of the variable scope, or those of them whose names begin so."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, get_variable_scope().name + "/" + name)


def dense_rows(column: Any, builder: _LazyBuilder, weight_collections: Any, trainable: bool) -> Tensor:
    """A dense column's numbers, one row for each example."""
    return flat(column._get_dense_tensor(builder, weight_collections=weight_collections, trainable=trainable), column._variable_shape)


def _zeros(name: str, shape: List[int], weight_collections: Any, trainable: bool) -> Any:
    return get_variable(name, shape, dtypes.float32, init_ops.zeros_initializer(), trainable=trainable, collections=weight_collections)


def weighted_sum_in_scope(column: Any, builder: _LazyBuilder, units: int, combiner: str, weight_collections: Any, trainable: bool) -> Tensor:
    """A column times the weights of the variable scope, which begin as zeros."""
    state = VariablesInScope(weight_collections, trainable)
    return weighted_sum(column, builder, state, lambda size: _zeros("weights", [size, units], weight_collections, trainable), combiner)


def _each(columns: List[Any], make: Callable[[Any], Any], cols_to_vars: Optional[Dict[Any, Any]] = None) -> List[Any]:
    """What `make` makes of each column in the scope of its variables."""
    made = []
    for column in columns:
        with variable_scope(None, default_name=column._var_scope_name):
            made.append(make(column))
            if cols_to_vars is not None:
                cols_to_vars[column] = variables_here()
    return made


def _dense_parts(
    features: Dict[str, Any], columns: List[Any], weight_collections: Any, trainable: bool, cols_to_vars: Any = None, cols_to_output_tensors: Any = None
) -> Tensor:
    builder = _LazyBuilder(features)
    parts = _each(columns, lambda column: dense_rows(column, builder, weight_collections, trainable), cols_to_vars)
    same_batch(parts, columns)
    if cols_to_output_tensors is not None:
        cols_to_output_tensors.update(zip(columns, parts))
    return array_ops.concat(parts, 1)


def _dense_columns(columns: Any) -> List[Any]:
    message = "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an embedding_column or indicator_column."
    return _in_order(columns, _DenseColumn, message)


def input_layer(
    features: Dict[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Optional[Dict[Any, Any]] = None,
    cols_to_output_tensors: Optional[Dict[Any, Any]] = None,
) -> Tensor:
    """The columns beside each other, in the order of their names: float32 [examples, numbers of all columns]."""
    columns, collections = _dense_columns(feature_columns), of_model(weight_collections)
    with variable_scope(None, default_name="input_layer", values=list(features.values())):
        return _dense_parts(features, columns, collections, trainable, cols_to_vars, cols_to_output_tensors)


class _MadeOnce:
    """Makes variables when it is called first, and uses them again in each call after that."""

    def __init__(self, name: str, function: Callable[..., Any], create_scope_now: bool) -> None:
        self.name = name
        self._template = make_template(name, function, create_scope_now_=create_scope_now)

    def __call__(self, features: Dict[str, Any]) -> Tensor:
        """What is made of features."""
        return self._template(features)

    variables = weights = property(lambda self: self._template.variables, doc="Its variables.")
    trainable_variables = trainable_weights = property(lambda self: self._template.trainable_variables, doc="Those that optimizers train.")

    @property
    def non_trainable_variables(self) -> List[Any]:
        """Those that optimizers leave alone."""
        trained = self.trainable_variables
        return [v for v in self.variables if not any(v is t for t in trained)]

    non_trainable_weights = non_trainable_variables


class InputLayer(_MadeOnce):
    """What input_layer makes, with the same variables for each dict of features."""

    def __init__(
        self,
        feature_columns: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        cols_to_vars: Any = None,
        name: str = "feature_column_input_layer",
        create_scope_now: bool = True,
    ) -> None:
        collections = of_model(weight_collections)

        def layer(features: Dict[str, Any]) -> Tensor:
            return _dense_parts(features, _dense_columns(feature_columns), collections, trainable, cols_to_vars)

        super().__init__(name, layer, create_scope_now)


class _LinearModel(_MadeOnce):
    """What linear_model makes, with the same variables for each dict of features."""

    def __init__(
        self,
        feature_columns: Any,
        units: int = 1,
        sparse_combiner: str = "sum",
        weight_collections: Any = None,
        trainable: bool = True,
        name: Optional[str] = None,
    ) -> None:
        message = "Items of feature_columns must be either a _DenseColumn or _CategoricalColumn."
        columns = _in_order(feature_columns, (_DenseColumn, _CategoricalColumn), message)
        collections = of_model(weight_collections)
        self._cols_to_vars: Dict[Any, Any] = {}

        def model(features: Dict[str, Any]) -> Tensor:
            builder = _LazyBuilder(features)
            parts = _each(columns, lambda column: weighted_sum_in_scope(column, builder, units, sparse_combiner, collections, trainable), self._cols_to_vars)
            same_batch(parts, columns)
            total = gen_ops.add_n(parts, name="weighted_sum_no_bias")
            bias = _zeros("bias_weights", [units], collections, trainable)
            self._cols_to_vars["bias"] = variables_here("bias_weights")
            return nn_ops.bias_add(total, bias, name="weighted_sum")

        super().__init__(name or "linear_model", model, False)

    def cols_to_vars(self) -> Dict[Any, Any]:
        """The variables of each column, and those of "bias", after the first call."""
        return self._cols_to_vars


def linear_model(
    features: Dict[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Optional[Dict[Any, Any]] = None,
) -> Tensor:
    """The columns times weights, which begin as zeros, and a bias: float32 [examples, units]."""
    model = _LinearModel(feature_columns, units, sparse_combiner, weight_collections, trainable)
    made = model(features)
    if cols_to_vars is not None:
        cols_to_vars.update(model.cols_to_vars())
    return made


def sequence_input_layer(features: Dict[str, Any], feature_columns: Any, weight_collections: Any = None, trainable: bool = True) -> Tuple[Tensor, Tensor]:
    """Columns of sequences beside each other, in the order of their names: (float32 [examples, steps, numbers of all columns], int64 lengths)."""
    message = (
        "All feature_columns must be of type _SequenceDenseColumn. You can wrap a sequence_categorical_column with an embedding_column or indicator_column."
    )
    columns = _in_order(feature_columns, _SequenceDenseColumn, message)
    with variable_scope(None, default_name="sequence_input_layer", values=list(features.values())):
        builder = _LazyBuilder(features)

        def steps(column: Any) -> Tuple[Tensor, Tensor]:
            value, lengths = column._get_sequence_dense_tensor(builder, weight_collections=weight_collections, trainable=trainable)
            return flat(value, column._variable_shape, steps=True), lengths

        parts, lengths = (list(made) for made in zip(*_each(columns, steps)))
        same_batch(parts, columns)
        same_batch(lengths, columns)
        return array_ops.concat(parts, -1), same_lengths(lengths)
