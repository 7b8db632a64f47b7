# SPDX-License-Identifier: Apache-2.0
"""What an exported model answers."""

from __future__ import annotations

from typing import Any, Dict

from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.graph import Operation, Tensor, control_dependencies
from millrace.framework.tensor_util import is_tensor
from millrace.saved_model import signature_def_utils


class ExportOutput:
    """Base of outputs."""

    def as_signature_def(self, receiver_tensors: Dict[str, Any]) -> Any:
        """The signature from these inputs to the output."""
        raise NotImplementedError("as_signature_def of %s" % type(self).__name__)


def _examples(receiver_tensors: Dict[str, Any], what: str) -> Any:
    """The only input, which has to be text."""
    if len(receiver_tensors) == 1:
        tensor = next(iter(receiver_tensors.values()))
        if tensor.dtype.base_dtype == dtypes.string:
            return tensor
    raise ValueError("%s input must be a single string Tensor; got %s" % (what, receiver_tensors))


class ClassificationOutput(ExportOutput):
    """Classes, scores or both."""

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError("Classification scores must be a float32 Tensor; got %s" % (scores,))
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype.base_dtype == dtypes.string):
            raise ValueError("Classification classes must be a string Tensor; got %s" % (classes,))
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self._scores, self._classes = scores, classes

    scores = property(lambda self: self._scores, doc="How much speaks for each class.")
    classes = property(lambda self: self._classes, doc="The names of the classes.")

    def as_signature_def(self, receiver_tensors: Dict[str, Any]) -> Any:
        """The signature from serialized examples."""
        return signature_def_utils.classification_signature_def(_examples(receiver_tensors, "Classification"), self._classes, self._scores)


class RegressionOutput(ExportOutput):
    """Numbers."""

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError("Regression output value must be a float32 Tensor; got %s" % (value,))
        self._value = value

    value = property(lambda self: self._value, doc="The numbers.")

    def as_signature_def(self, receiver_tensors: Dict[str, Any]) -> Any:
        """The signature from serialized examples."""
        return signature_def_utils.regression_signature_def(_examples(receiver_tensors, "Regression"), self._value)


class PredictOutput(ExportOutput):
    """Any tensors by name; a single one is called output."""

    def __init__(self, outputs: Any) -> None:
        outputs = outputs if isinstance(outputs, dict) else {"output": outputs}
        for key, value in outputs.items():
            if not isinstance(key, str):
                raise ValueError("Prediction output key must be a string; got %s." % (key,))
            if not isinstance(value, Tensor):
                raise ValueError("Prediction output value must be a Tensor; got %s." % (value,))
        self._outputs = outputs

    outputs = property(lambda self: self._outputs, doc="The tensors.")

    def as_signature_def(self, receiver_tensors: Dict[str, Any]) -> Any:
        """The signature from these inputs."""
        return signature_def_utils.predict_signature_def(receiver_tensors, self._outputs)


class _SupervisedOutput(ExportOutput):
    """What a step of training or evaluation gives: losses, predictions and metrics, each under its prefix."""

    LOSS_NAME, PREDICTIONS_NAME, METRICS_NAME = "loss", "predictions", "metrics"
    METRIC_VALUE_SUFFIX, METRIC_UPDATE_SUFFIX = "value", "update_op"
    _SEPARATOR_CHAR = "/"
    _signature: Any = None

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self._loss = None if loss is None else self._named(loss, self.LOSS_NAME)
        self._predictions = None if predictions is None else self._named(predictions, self.PREDICTIONS_NAME)
        self._metrics = None if metrics is None else self._wrap_and_check_metrics(metrics)

    loss = property(lambda self: self._loss, doc="The losses by name.")
    predictions = property(lambda self: self._predictions, doc="The predictions by name.")
    metrics = property(lambda self: self._metrics, doc="Value and update of each metric by name.")

    def _key(self, key: Any, prefix: str) -> str:
        key = self._SEPARATOR_CHAR.join(key) if isinstance(key, tuple) else key
        if not isinstance(key, str):
            raise ValueError("%s output key must be a string; got %s." % (prefix, key))
        return key if key.startswith(prefix) else prefix + self._SEPARATOR_CHAR + key

    def _named(self, outputs: Any, prefix: str) -> Dict[str, Any]:
        made = {}
        for key, value in (outputs if isinstance(outputs, dict) else {prefix: outputs}).items():
            name = self._key(key, prefix)
            if not is_tensor(value):
                raise ValueError("%s output value must be a Tensor; got %s." % (prefix, value))
            made[name] = value
        return made

    def _wrap_and_check_metrics(self, metrics: Any) -> Dict[str, Any]:
        made: Dict[str, Any] = {}
        for key, given in (metrics if isinstance(metrics, dict) else {self.METRICS_NAME: metrics}).items():
            value, update = given if isinstance(given, tuple) else (given.result(), given.updates[0])
            key = self._key(key, self.METRICS_NAME)
            if not is_tensor(value):
                raise ValueError("%s output value must be a Tensor; got %s." % (key, value))
            if not is_tensor(update) and not isinstance(update, Operation):
                raise ValueError("%s update_op must be a Tensor or Operation; got %s." % (key, update))
            if isinstance(update, Operation):  # signatures have tensors alone
                with control_dependencies([update]):
                    update = constant([], name="metric_op_wrapper")
            made[key + self._SEPARATOR_CHAR + self.METRIC_VALUE_SUFFIX] = value
            made[key + self._SEPARATOR_CHAR + self.METRIC_UPDATE_SUFFIX] = update
        return made

    def as_signature_def(self, receiver_tensors: Dict[str, Any]) -> Any:
        """The signature from these inputs."""
        return type(self)._signature(receiver_tensors, self._loss, self._predictions, self._metrics)


class TrainOutput(_SupervisedOutput):
    """What a step of training gives."""

    _signature = staticmethod(signature_def_utils.supervised_train_signature_def)


class EvalOutput(_SupervisedOutput):
    """What a step of evaluation gives."""

    _signature = staticmethod(signature_def_utils.supervised_eval_signature_def)
