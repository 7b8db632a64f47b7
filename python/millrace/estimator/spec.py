# SPDX-License-Identifier: Apache-2.0
"""What a model function is called for, and what it answers."""
from __future__ import annotations

from typing import Any, NamedTuple

from millrace.framework.errors import at_user_line


class ModeKeys:
    """What a model is built for."""

    TRAIN, EVAL, PREDICT = "train", "eval", "infer"


class _Spec(NamedTuple):
    mode: Any
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    export_outputs: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class EstimatorSpec(_Spec):
    """The tensors and operations of a model."""

    def __new__(cls, mode: str, predictions: Any = None, loss: Any = None, train_op: Any = None, eval_metric_ops: Any = None,  # type: ignore[misc]
                export_outputs: Any = None, training_chief_hooks: Any = None, training_hooks: Any = None, scaffold: Any = None,
                evaluation_hooks: Any = None, prediction_hooks: Any = None) -> "EstimatorSpec":
        from millrace.train.monitored_session import Scaffold
        wanted = {ModeKeys.TRAIN: [("train_op", train_op), ("loss", loss)], ModeKeys.EVAL: [("loss", loss)], ModeKeys.PREDICT: [("predictions", predictions)]}
        for name, value in wanted.get(mode, ()):
            if value is None:
                raise at_user_line(ValueError("Missing %s." % name))
        for name, value in (eval_metric_ops or {}).items():
            if not isinstance(value, tuple) or len(value) != 2:
                raise at_user_line(TypeError("Values of eval_metric_ops must be (metric_value, update_op) tuples, given: %s for key: %s" % (value, name)))
        return super().__new__(cls, mode, {} if predictions is None else predictions, loss, train_op, eval_metric_ops or {}, export_outputs,
                               tuple(training_chief_hooks or ()), tuple(training_hooks or ()), scaffold or Scaffold(), tuple(evaluation_hooks or ()),
                               tuple(prediction_hooks or ()))
