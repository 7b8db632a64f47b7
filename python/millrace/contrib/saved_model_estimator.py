# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator.SavedModelEstimator: trains, evaluates and asks the graphs of a SavedModel."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from millrace import tf_logging
from millrace.estimator.estimator import Estimator
from millrace.estimator.export import EXPORT_TAG_MAP
from millrace.estimator.export_output import _SupervisedOutput
from millrace.train.warm_starting import WarmStartSettings
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_collection, get_collection_ref, get_default_graph
from millrace.framework.tensor_shape import TensorShape
from millrace.saved_model import constants, loader, signature_constants
from millrace.train.global_step import assert_global_step, get_global_step
from millrace.train.monitored_session import Scaffold
from millrace.train.saver import list_variables

_METHODS = {ModeKeys.TRAIN: signature_constants.SUPERVISED_TRAIN_METHOD_NAME, ModeKeys.EVAL: signature_constants.SUPERVISED_EVAL_METHOD_NAME}
_BETWEEN = _SupervisedOutput._SEPARATOR_CHAR


class SavedModelEstimator(Estimator):
    """The models of a SavedModel that tf.contrib.estimator.export_all_saved_models or Estimator.export_savedmodel wrote: what can be done is
    what there is a graph for. Training starts from its variables."""

    def __init__(self, saved_model_dir: Any, model_dir: Optional[str] = None) -> None:
        self.saved_model_dir = saved_model_dir
        self.saved_model_loader = loader.SavedModelLoader(saved_model_dir)
        checkpoint = self.saved_model_loader.variables_path
        started = WarmStartSettings(checkpoint, [name for name, _ in list_variables(checkpoint)])
        super().__init__(self._model_fn_from_saved_model, model_dir, warm_start_from=started)
        self._available_modes = [mode for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if self._has(mode)]
        tf_logging.info("Available modes for Estimator: %s", self._available_modes)

    def _has(self, mode: str) -> bool:
        try:
            return self._get_signature_def_for_mode(mode) is not None
        except RuntimeError:
            return False

    def _get_signature_def_for_mode(self, mode: str) -> Any:
        """The signature of a mode, None where its graph has none. RuntimeError where there is no graph."""
        signatures = self.saved_model_loader.get_meta_graph_def_from_tags(EXPORT_TAG_MAP[mode]).signature_def
        key = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY if mode == ModeKeys.PREDICT else mode
        return dict(signatures).get(key)

    def _global_step(self, graph: Any) -> Any:
        return None  # the SavedModel has it

    def _model_fn_from_saved_model(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        if mode not in self._available_modes:
            message = "%s mode is not available in the SavedModel. Use saved_model_cli to check that the Metagraph for this mode has been exported."
            raise at_user_line(RuntimeError(message % mode))
        graph = get_default_graph()
        if get_global_step(graph) is not None:
            message = "Graph must not contain a global step tensor before the SavedModel is loaded. Please make sure that the input function does not create a global step."
            raise at_user_line(RuntimeError(message))
        signature, tags = self._get_signature_def_for_mode(mode), EXPORT_TAG_MAP[mode]
        names = [info.name for info in signature.outputs.values()]
        _, tensors = self.saved_model_loader.load_graph(graph, tags, input_map=_inputs(signature, features, labels), return_elements=names)
        outputs = dict(zip(signature.outputs, tensors))
        first = loader.get_init_op(self.saved_model_loader.get_meta_graph_def_from_tags(tags))
        assert_global_step(get_global_step(graph))
        loss, predictions, measured = _answers(mode, outputs, signature.method_name)
        train_ops = get_collection(constants.TRAIN_OP_KEY)
        if len(train_ops) > 1:
            raise at_user_line(RuntimeError("Multiple ops found in the train_op collection."))
        for key in (constants.ASSETS_KEY, constants.LEGACY_INIT_OP_KEY, constants.MAIN_OP_KEY, constants.TRAIN_OP_KEY):
            del get_collection_ref(key)[:]  # an export of this fills them anew
        return EstimatorSpec(
            mode,
            predictions=predictions,
            loss=loss,
            train_op=train_ops[0] if train_ops else None,
            eval_metric_ops=measured,
            scaffold=Scaffold(local_init_op=first),
        )


def _inputs(signature: Any, features: Any, labels: Any) -> Dict[str, Any]:
    """{operation of the graph: the tensor in its place}, for those that wait for it, too."""
    given = dict(labels if isinstance(labels, dict) else {"label": labels} if labels is not None else {})
    given.update(features if isinstance(features, dict) else {"feature": features})
    made: Dict[str, Any] = {}
    for key, info in signature.inputs.items():
        if key not in given:
            message = 'Key "%s" not found in features or labels passed in to the model function. All required keys: %s'
            raise at_user_line(ValueError(message % (key, sorted(signature.inputs))))
        _check(given[key], info, key)
        name = info.name.partition(":")[0]
        made[name] = made["^" + name] = given[key]
    return made


def _check(tensor: Any, info: Any, name: str) -> None:
    dtype, shape = dtypes.as_dtype(info.dtype), TensorShape(info.tensor_shape)
    message = ""
    if tensor.dtype != dtype:
        message += "\n\tExpected dtype: %s, Got: %s" % (dtype, tensor.dtype)
    if not tensor.get_shape().is_compatible_with(shape):
        message += "\n\tExpected shape: %s, Got: %s" % (shape, tensor.get_shape())
    if message:
        raise at_user_line(ValueError("Tensor shape and/or dtype validation failed for input %s:%s" % (name, message)))


def _answers(mode: str, outputs: Dict[str, Any], method: str) -> Tuple[Any, Any, Any]:
    """(loss, predictions, metrics) of a signature's outputs."""
    if mode == ModeKeys.PREDICT:
        return None, outputs, None
    if method != _METHODS[mode]:
        message = "Invalid SignatureDef method name for mode %s.\n\tExpected: %s\n\tGot: %s\nPlease ensure that the SavedModel was exported with `tf.contrib.estimator.export_all_saved_models()`."
        raise at_user_line(RuntimeError(message % (mode, _METHODS[mode], method)))
    measured = {}
    for key, value in outputs.items():
        name, _, last = key.rpartition(_BETWEEN)
        update = name + _BETWEEN + _SupervisedOutput.METRIC_UPDATE_SUFFIX
        if key.split(_BETWEEN)[0] == _SupervisedOutput.METRICS_NAME and last == _SupervisedOutput.METRIC_VALUE_SUFFIX and update in outputs:
            measured[name] = value, outputs[update]
    predictions = {key: value for key, value in outputs.items() if key.split(_BETWEEN)[0] == _SupervisedOutput.PREDICTIONS_NAME}
    return outputs[_SupervisedOutput.LOSS_NAME], predictions, measured
