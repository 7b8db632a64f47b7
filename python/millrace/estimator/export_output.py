# SPDX-License-Identifier: Apache-2.0
"""What an exported model answers."""

from __future__ import annotations

from typing import Any, Dict

from millrace.framework import dtypes
from millrace.framework.graph import Tensor
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
            if not is_tensor(value):
                raise ValueError("Prediction output value must be a Tensor; got %s." % (value,))
        self._outputs = outputs

    outputs = property(lambda self: self._outputs, doc="The tensors.")

    def as_signature_def(self, receiver_tensors: Dict[str, Any]) -> Any:
        """The signature from these inputs."""
        return signature_def_utils.predict_signature_def(receiver_tensors, self._outputs)
