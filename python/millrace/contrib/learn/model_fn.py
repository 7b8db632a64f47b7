# SPDX-License-Identifier: Apache-2.0
"""What a model function of tf.contrib.learn answers."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional

from millrace.contrib.learn.keys import ModeKeys, PredictionKey, ProblemType
from millrace.estimator import export
from millrace.estimator.spec import EstimatorSpec
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation
from millrace.ops import array_ops
from millrace.saved_model import signature_constants


class _Fields(NamedTuple):
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    output_alternatives: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    mode: Any


class ModelFnOps(_Fields):
    """A model that was built for a mode. output_alternatives are {name: (ProblemType, {name: tensor})}: what is served."""

    def __new__(
        cls,
        mode: Any,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        output_alternatives: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
    ) -> "ModelFnOps":
        ModeKeys.validate(mode)
        if train_op is None:
            if mode == ModeKeys.TRAIN:
                raise at_user_line(ValueError("Missing train_op."))
        elif not isinstance(train_op, Operation):
            train_op = convert_to_tensor(train_op).op
        if loss is None:
            if mode != ModeKeys.INFER:
                raise at_user_line(ValueError("Missing loss."))
        else:
            loss = _scalar(convert_to_tensor(loss))
        predictions = _tensors(predictions, mode)
        if eval_metric_ops is not None and not isinstance(eval_metric_ops, dict):
            raise at_user_line(TypeError("eval_metric_ops must be a dict of pairs, got %s." % (eval_metric_ops,)))
        hooks = list(training_chief_hooks or []), list(training_hooks or [])
        return super().__new__(cls, predictions, loss, train_op, eval_metric_ops or {}, output_alternatives, *hooks, scaffold, mode)

    def estimator_spec(self, default_serving_output_alternative_key: Optional[str] = None) -> EstimatorSpec:
        """The same for tf.estimator; what is served under the name that is given (or the only one) is the default signature, too."""
        mode = "eval" if self.mode == ModeKeys.EVAL else self.mode
        measures = {key: value for key, value in self.eval_metric_ops.items() if key != "loss"}  # tf.estimator has its own
        return EstimatorSpec(
            mode,
            self.predictions,
            self.loss,
            self.train_op,
            measures,
            self.export_outputs(default_serving_output_alternative_key),
            self.training_chief_hooks,
            self.training_hooks,
            self.scaffold,
        )

    def export_outputs(self, default_key: Optional[str] = None) -> Optional[Dict[str, Any]]:
        """The signatures of output_alternatives; of all predictions where there are none."""
        alternatives = dict(self.output_alternatives or {})
        if not alternatives:
            if self.predictions is None or isinstance(self.predictions, dict) and not all(isinstance(key, str) for key in self.predictions):
                return None
            alternatives = {"default_output_alternative": (ProblemType.UNSPECIFIED, self.predictions)}
        made = {name: _output(kind, tensors) for name, (kind, tensors) in alternatives.items() if name is not None}
        if default_key is None and len(alternatives) == 1:
            default_key = next(iter(alternatives))
        if default_key in alternatives:
            made[signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY] = _output(*alternatives[default_key])
        elif default_key is not None:
            raise at_user_line(
                ValueError("Requested default_output_alternative: %s, but available output_alternatives are: %s" % (default_key, list(alternatives)))
            )
        return made


def _scalar(loss: Any) -> Any:
    shape = loss.get_shape()
    if shape.ndims not in (None, 0) and shape.num_elements() not in (None, 1):
        raise at_user_line(ValueError("Loss must be scalar: %s." % loss))
    return loss if shape.ndims == 0 else array_ops.reshape(loss, [])


def _tensors(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.INFER:
            raise at_user_line(ValueError("Missing predictions."))
        return None
    if isinstance(predictions, dict):
        return {key: _tensor(value) for key, value in predictions.items()}
    return _tensor(predictions)


def _tensor(value: Any) -> Any:
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value)


def _output(kind: int, tensors: Any) -> Any:
    """What is served of an answer: numbers, classes with scores, or whatever there is."""
    if not isinstance(tensors, dict):
        tensors = {PredictionKey.GENERIC: tensors}
    if kind == ProblemType.LINEAR_REGRESSION:
        value = tensors.get(PredictionKey.SCORES, tensors.get(PredictionKey.PROBABILITIES))
        value = next(iter(tensors.values())) if value is None and len(tensors) == 1 else value
        if value is not None:
            return export.RegressionOutput(value)
    elif kind in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        scores = tensors.get(PredictionKey.SCORES, tensors.get(PredictionKey.PROBABILITIES))
        classes = tensors.get(PredictionKey.CLASSES)
        if classes is not None and classes.dtype.base_dtype != dtypes.string:
            classes = None  # signatures have names of classes
        if scores is not None or classes is not None:
            return export.ClassificationOutput(scores, classes)
    return export.PredictOutput(tensors)
