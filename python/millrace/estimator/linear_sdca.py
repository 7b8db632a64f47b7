# SPDX-License-Identifier: Apache-2.0
"""tf.estimator.experimental.LinearSDCA: dual coordinate ascent in the place of an optimizer of linear estimators."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.estimator.heads import _BinaryLogisticHeadWithSigmoidCrossEntropyLoss, _Head, _RegressionHeadWithMeanSquaredErrorLoss
from millrace.estimator.spec import EstimatorSpec
from millrace.feature_column.base import CategoricalColumn, DenseColumn, is_feature_column_v2
from millrace.feature_column.layers import _LinearModelLayer
from millrace.framework.errors import at_user_line
from millrace.layers.columns import checked_features
from millrace.ops import array_ops, math_ops
from millrace.train.global_step import get_global_step
from millrace.train.sdca import SdcaModel, UpdateWeightsHook, classes_of_examples, model_of_columns


class LinearSDCA:
    """Trains a LinearClassifier of two classes, or a LinearRegressor of one number. The feature `example_id_column` tells an example that comes again."""

    def __init__(
        self,
        example_id_column: Any,
        num_loss_partitions: int = 1,
        num_table_shards: Optional[int] = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = False,
    ) -> None:
        self._example_id_column = example_id_column
        self._options = {
            "num_loss_partitions": num_loss_partitions,
            "num_table_shards": num_table_shards,
            "symmetric_l1_regularization": symmetric_l1_regularization,
            "symmetric_l2_regularization": symmetric_l2_regularization,
            "adaptive": adaptive,
        }

    def get_train_step(
        self,
        state_manager: Any,
        weight_column_name: Optional[str],
        loss_type: str,
        feature_columns: Any,
        features: Dict[str, Any],
        targets: Any,
        bias_var: Any,
        global_step: Any,
    ) -> Tuple[SdcaModel, Any]:
        """The model of columns whose weights a state manager has, and what trains it."""
        cache, labels = checked_features(features), math_ops.to_float(array_ops.reshape(targets, [-1]))
        dense: List[Tuple[Any, Any]] = [(array_ops.expand_dims(array_ops.ones_like(labels), 1), bias_var)]
        sparse: List[Tuple[Any, Any]] = []
        for column in sorted(feature_columns, key=lambda column: column.name):
            if isinstance(column, CategoricalColumn):
                ids, weights = column.get_sparse_tensors(cache, state_manager)
                sparse.append((classes_of_examples(ids, weights), state_manager.get_variable(column, "weights")))
            elif isinstance(column, DenseColumn):
                if column.variable_shape.ndims != 1:
                    raise at_user_line(ValueError("Column %s has rank %d, larger than 1." % (type(column).__name__, column.variable_shape.ndims)))
                dense.append((column.get_dense_tensor(cache, state_manager), state_manager.get_variable(column, "weights")))
            else:
                raise at_user_line(ValueError("LinearSDCA does not support column type %s." % type(column).__name__))
        options = {**self._options, "loss_type": loss_type}
        model = model_of_columns(sparse, dense, features, labels, weight_column_name, self._example_id_column, options)
        return model, model.minimize(global_step=global_step)


def loss_of(head: _Head, feature_columns: Any, sparse_combiner: str) -> str:
    """What SdcaModel calls the loss of a head; ValueError unless LinearSDCA trains such a model."""
    if sparse_combiner != "sum":
        raise at_user_line(ValueError('sparse_combiner must be "sum" when optimizer is a LinearSDCA object.'))
    if not is_feature_column_v2(feature_columns):
        raise at_user_line(ValueError("V2 feature columns required when optimizer is a LinearSDCA object."))
    if head.logits_dimension == 1:
        if isinstance(head, _BinaryLogisticHeadWithSigmoidCrossEntropyLoss):
            return "logistic_loss"
        if isinstance(head, _RegressionHeadWithMeanSquaredErrorLoss):
            return "squared_loss"
    raise at_user_line(ValueError("LinearSDCA trains heads of two classes, and of one number, not %s." % type(head).__name__))


def sdca_model_fn(
    features: Any, labels: Any, mode: str, head: _Head, feature_columns: Any, optimizer: LinearSDCA, sparse_combiner: str, summarize: Callable[[Any], None]
) -> EstimatorSpec:
    """A linear model; summarize(layer) tells what becomes of it."""
    loss_type, hooks = loss_of(head, feature_columns, sparse_combiner), []
    linear = _LinearModelLayer(feature_columns, 1, sparse_combiner, name="linear_model")
    logits = linear(features)
    summarize(linear)

    def train_op(loss: Any) -> Any:
        del loss  # it has its own
        of_model = linear._state_manager, head._weight_column, loss_type, feature_columns, features, labels, linear.bias
        model, step = optimizer.get_train_step(*of_model, get_global_step())
        hooks.append(UpdateWeightsHook(model, step))
        return step

    spec = head.create_estimator_spec(features=features, mode=mode, labels=labels, logits=logits, train_op_fn=train_op)
    return spec._replace(training_chief_hooks=(*spec.training_chief_hooks, *hooks))
