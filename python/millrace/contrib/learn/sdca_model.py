# SPDX-License-Identifier: Apache-2.0
"""The linear model of tf.contrib.learn that an SDCAOptimizer trains."""

from __future__ import annotations

from typing import Any, Dict

from millrace.contrib import feature_columns as columns_of_contrib
from millrace.contrib.learn.head import BinaryLogisticHead, Head, RegressionHead
from millrace.contrib.learn.head_classes import BinarySvmHead
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops
from millrace.ops.variable_scope import variable_scope
from millrace.train.global_step import get_global_step
from millrace.train.sdca import UpdateWeightsHook

_BIAS = "tf_virtual_bias_column"
_LOSSES = ((BinarySvmHead, "hinge_loss"), (BinaryLogisticHead, "logistic_loss"), (RegressionHead, "squared_loss"))


def loss_of(head: Head) -> str:
    """What SdcaModel calls the loss of a head."""
    for kind, name in _LOSSES:
        if isinstance(head, kind) and head.logits_dimension == 1:
            return name
    raise at_user_line(ValueError("Unsupported head type: %s. SDCA trains heads of two classes, and of one number." % head))


def sdca_model_fn(features: Any, labels: Any, mode: str, params: Dict[str, Any], config: Any = None) -> ModelFnOps:
    """A linear model. params: head, feature_columns (of tf.contrib.layers), optimizer (an SDCAOptimizer)."""
    del config  # nothing of it is asked
    head, columns, optimizer = params["head"], list(params["feature_columns"]), params["optimizer"]
    loss_type, hooks = loss_of(head), []
    if any(column.name == _BIAS for column in columns):
        raise at_user_line(ValueError("%s is a reserved column name." % _BIAS))
    with variable_scope("linear", values=list(features.values()), partitioner=optimizer.partitioner) as scope:
        transformed = {**features, **columns_of_contrib.transform_features(features, columns)}
        logits, variables, bias = columns_of_contrib.weighted_sum_from_feature_columns(transformed, columns, 1, scope=scope)
    ones = columns_of_contrib.real_valued_column(_BIAS)
    transformed[ones], variables[ones] = array_ops.ones_like(logits), [bias]

    def train_op(loss: Any) -> Any:
        del loss  # the optimizer has its own
        model, step = optimizer.get_train_step(variables, head.weight_column_name, loss_type, transformed, labels, get_global_step())
        hooks.append(UpdateWeightsHook(model, step))
        return step

    made = head.create_model_fn_ops(transformed, mode, labels, train_op, logits)
    return made._replace(training_chief_hooks=[*made.training_chief_hooks, *hooks])
