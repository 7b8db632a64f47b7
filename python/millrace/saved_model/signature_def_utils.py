# SPDX-License-Identifier: Apache-2.0
"""Signatures: which tensors of a SavedModel are inputs and outputs, by what names."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.framework import dtypes, errors
from millrace.framework.composite_tensors import CompositeTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.library_names import prepend_name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops.variables import Variable
from millrace.protos import definitions
from millrace.saved_model import signature_constants as names
from millrace.saved_model.utils import build_tensor_info, build_tensor_info_from_op, get_element_from_tensor_info


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
    return {key: build_tensor_info(_element(tensor)) for key, tensor in tensors.items()}


def _element(value: Any) -> Any:
    """What a signature names: a variable by its own name, unless that is a handle's."""
    if isinstance(value, CompositeTensor) or isinstance(value, Variable) and not value._is_resource:
        return value
    return convert_to_tensor_or_sparse_tensor(value)


def _of_type(tensor: Any, dtype: Any, what: str) -> Any:
    """The TensorInfo of a tensor, which has to be dense and of a type."""
    if not isinstance(tensor, Tensor) or tensor.dtype.base_dtype != dtype:
        raise at_user_line(ValueError("%s must be a %s Tensor." % (what, "string" if dtype == dtypes.string else "float")))
    return build_tensor_info(tensor)


def predict_signature_def(inputs: Dict[str, Any], outputs: Dict[str, Any]) -> Any:
    """A signature of any inputs and outputs."""
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not given:
            raise at_user_line(ValueError("Prediction %s cannot be None or empty." % what))
    return build_signature_def(_infos(inputs), _infos(outputs), names.PREDICT_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """A signature from serialized examples to numbers."""
    for what, given in (("examples", examples), ("predictions", predictions)):
        if given is None:
            raise at_user_line(ValueError("Regression %s cannot be None." % what))
    return build_signature_def(
        {names.REGRESS_INPUTS: _of_type(examples, dtypes.string, "Regression examples")},
        {names.REGRESS_OUTPUTS: _of_type(predictions, dtypes.float32, "Regression output")},
        names.REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """A signature from serialized examples to classes, scores or both."""
    if examples is None:
        raise at_user_line(ValueError("Classification examples cannot be None."))
    if classes is None and scores is None:
        raise at_user_line(ValueError("Classification classes and scores cannot both be None."))
    outputs = {}
    if classes is not None:
        outputs[names.CLASSIFY_OUTPUT_CLASSES] = _of_type(classes, dtypes.string, "Classification classes")
    if scores is not None:
        outputs[names.CLASSIFY_OUTPUT_SCORES] = _of_type(scores, dtypes.float32, "Classification scores")
    return build_signature_def({names.CLASSIFY_INPUTS: _of_type(examples, dtypes.string, "Classification examples")}, outputs, names.CLASSIFY_METHOD_NAME)


def _supervised(method_name: str, inputs: Any, *outputs: Any) -> Any:
    if not inputs:
        raise at_user_line(ValueError("%s inputs cannot be None or empty." % method_name))
    return build_signature_def(_infos(inputs), _infos({key: tensor for named in outputs if named for key, tensor in named.items()}), method_name)


def supervised_train_signature_def(inputs: Dict[str, Any], loss: Any, predictions: Any = None, metrics: Any = None) -> Any:
    """A signature of a step of training: losses, predictions and metrics by name."""
    return _supervised(names.SUPERVISED_TRAIN_METHOD_NAME, inputs, loss, predictions, metrics)


def supervised_eval_signature_def(inputs: Dict[str, Any], loss: Any, predictions: Any = None, metrics: Any = None) -> Any:
    """A signature of a step of evaluation: losses, predictions and metrics by name."""
    return _supervised(names.SUPERVISED_EVAL_METHOD_NAME, inputs, loss, predictions, metrics)


# For methods of serving: the inputs and outputs that there may be, with their types. Other inputs and outputs are for predictions.
_METHODS = {
    names.CLASSIFY_METHOD_NAME: (
        {names.CLASSIFY_INPUTS: dtypes.string},
        {names.CLASSIFY_OUTPUT_CLASSES: dtypes.string, names.CLASSIFY_OUTPUT_SCORES: dtypes.float32},
    ),
    names.REGRESS_METHOD_NAME: ({names.REGRESS_INPUTS: dtypes.string}, {names.REGRESS_OUTPUTS: dtypes.float32}),
}


def is_valid_signature(signature_def: Any) -> bool:
    """Whether it has inputs and outputs as its method of serving wants them."""
    if signature_def is None or not len(signature_def.inputs) or not len(signature_def.outputs):
        return False
    if signature_def.method_name == names.PREDICT_METHOD_NAME:
        return True
    if signature_def.method_name not in _METHODS:
        return False
    return all(
        key in allowed and dtypes.as_dtype(infos[key].dtype) == allowed[key]
        for infos, allowed in zip((signature_def.inputs, signature_def.outputs), _METHODS[signature_def.method_name])
        for key in infos
    )


# ---- operations ----


def op_signature_def(op: Any, key: str) -> Any:
    """A signature whose one output names an operation."""
    return build_signature_def(outputs={key: build_tensor_info_from_op(op)})


def load_op_from_signature_def(signature_def: Any, key: str, import_scope: Optional[str] = None) -> Any:
    """The operation that such a signature names, in the default graph."""
    if key not in signature_def.outputs:
        raise at_user_line(
            errors.NotFoundError(None, None, "The key %s could not be found in SignatureDef %s. Please verify it names an op." % (key, signature_def))
        )
    try:
        return get_element_from_tensor_info(signature_def.outputs[key], import_scope=import_scope)
    except KeyError:
        name = prepend_name_scope(signature_def.outputs[key].name, import_scope)
        raise at_user_line(errors.NotFoundError(None, None, 'The key "%s" names the operation %s, which is not in the graph.' % (key, name))) from None


# ---- what a signature says ----


def get_signature_def_by_key(meta_graph_def: Any, signature_def_key: str) -> Any:
    """A MetaGraphDef's signature of a name."""
    if signature_def_key not in meta_graph_def.signature_def:
        raise at_user_line(ValueError("No SignatureDef with key '%s' found in MetaGraphDef." % signature_def_key))
    return meta_graph_def.signature_def[signature_def_key]


def _shapes(infos: Any) -> Dict[str, TensorShape]:
    return {key: TensorShape(infos[key].tensor_shape) for key in infos}


def _types(infos: Any) -> Dict[str, Any]:
    return {key: dtypes.as_dtype(infos[key].dtype) for key in infos}


def get_signature_def_input_shapes(signature: Any) -> Dict[str, TensorShape]:
    """The shapes of its inputs by name."""
    return _shapes(signature.inputs)


def get_signature_def_output_shapes(signature: Any) -> Dict[str, TensorShape]:
    """The shapes of its outputs by name."""
    return _shapes(signature.outputs)


def get_signature_def_input_types(signature: Any) -> Dict[str, Any]:
    """The types of its inputs by name."""
    return _types(signature.inputs)


def get_signature_def_output_types(signature: Any) -> Dict[str, Any]:
    """The types of its outputs by name."""
    return _types(signature.outputs)
