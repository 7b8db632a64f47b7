# SPDX-License-Identifier: Apache-2.0
"""Signatures: which tensors of a SavedModel are inputs and outputs, by what names."""
from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.protos import definitions
from millrace.saved_model import signature_constants as names
from millrace.saved_model.utils import build_tensor_info


def build_signature_def(inputs: Optional[Dict[str, Any]] = None, outputs: Optional[Dict[str, Any]] = None, method_name: Optional[str] = None) -> Any:
    """A SignatureDef of TensorInfos."""
    made = definitions.SignatureDef()
    for into, given in ((made.inputs, inputs), (made.outputs, outputs)):
        for key, info in (given or {}).items():
            into[key].CopyFrom(info)
    if method_name is not None:
        made.method_name = method_name
    return made


def _infos(tensors: Dict[str, Any]) -> Dict[str, Any]:
    return {key: build_tensor_info(convert_to_tensor(tensor)) for key, tensor in tensors.items()}


def _text(tensor: Any, what: str) -> Any:
    tensor = convert_to_tensor(tensor)
    if tensor.dtype.base_dtype != dtypes.string:
        raise at_user_line(ValueError("%s must be strings, not %s" % (what, tensor.dtype.name)))
    return tensor


def predict_signature_def(inputs: Dict[str, Any], outputs: Dict[str, Any]) -> Any:
    """A signature of any inputs and outputs."""
    if not inputs or not outputs:
        raise at_user_line(ValueError("Prediction %s cannot be None or empty." % ("outputs" if inputs else "inputs")))
    return build_signature_def(_infos(inputs), _infos(outputs), names.PREDICT_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """A signature from serialized examples to numbers."""
    if convert_to_tensor(predictions).dtype.base_dtype != dtypes.float32:
        raise at_user_line(ValueError("Regression output tensors must be float32."))
    return build_signature_def(_infos({names.REGRESS_INPUTS: _text(examples, "Regression inputs")}), _infos({names.REGRESS_OUTPUTS: predictions}),
                               names.REGRESS_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """A signature from serialized examples to classes, scores or both."""
    if classes is None and scores is None:
        raise at_user_line(ValueError("Classification classes and scores cannot both be None."))
    outputs = {names.CLASSIFY_OUTPUT_CLASSES: None if classes is None else _text(classes, "Classification classes"),
               names.CLASSIFY_OUTPUT_SCORES: scores}
    return build_signature_def(_infos({names.CLASSIFY_INPUTS: _text(examples, "Classification inputs")}),
                               _infos({key: value for key, value in outputs.items() if value is not None}), names.CLASSIFY_METHOD_NAME)


def is_valid_signature(signature_def: Any) -> bool:
    """Whether it has inputs, outputs and a method that serving knows."""
    methods = (names.CLASSIFY_METHOD_NAME, names.PREDICT_METHOD_NAME, names.REGRESS_METHOD_NAME)
    return bool(signature_def is not None and len(signature_def.inputs) and len(signature_def.outputs) and signature_def.method_name in methods)
