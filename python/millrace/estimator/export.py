# SPDX-License-Identifier: Apache-2.0
"""What an estimator that is exported gives, and takes."""
from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional

from millrace.framework.graph import Tensor
from millrace.saved_model import signature_def_utils


class ExportOutput:
    """Base of outputs."""

    def signature(self, receivers: Dict[str, Any]) -> Any:
        """The signature from these inputs."""
        raise NotImplementedError


class PredictOutput(ExportOutput):
    """Any tensors."""

    def __init__(self, outputs: Any) -> None:
        self.outputs = outputs if isinstance(outputs, dict) else {"output": outputs}

    def signature(self, receivers: Dict[str, Any]) -> Any:
        """The signature from these inputs."""
        return signature_def_utils.predict_signature_def(receivers, self.outputs)


class ClassificationOutput(PredictOutput):
    """Classes, scores or both."""

    def __init__(self, scores: Optional[Tensor] = None, classes: Optional[Tensor] = None) -> None:
        super().__init__({key: value for key, value in (("scores", scores), ("classes", classes)) if value is not None})
        self.scores, self.classes = scores, classes


class RegressionOutput(PredictOutput):
    """Numbers."""

    def __init__(self, value: Tensor) -> None:
        super().__init__({"outputs": value})
        self.value = value


class ServingInputReceiver(NamedTuple):
    """The features of a served model, and the tensors that they are made of."""

    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any = None


def build_raw_serving_input_receiver_fn(features: Dict[str, Any], default_batch_size: Optional[int] = None) -> Callable[[], ServingInputReceiver]:
    """A function that makes placeholders like these features."""
    def receive() -> ServingInputReceiver:
        from millrace.ops.array_ops import placeholder
        made = {key: placeholder(t.dtype.base_dtype, [default_batch_size, *t.get_shape().as_list()[1:]], name=key) for key, t in features.items()}
        return ServingInputReceiver(made, made)
    return receive
