# SPDX-License-Identifier: Apache-2.0
"""tf.keras.experimental.export_saved_model and load_from_saved_model: models of tf.keras as SavedModels that train, evaluate and predict."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from millrace import gfile
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, add_to_collection
from millrace.framework.session import Session
from millrace.keras import backend as K
from millrace.keras import models
from millrace.keras.estimator import Recipe
from millrace.keras.optimizers import TFOptimizer
from millrace.ops import array_ops, control_flow_ops, variables
from millrace.saved_model import constants, signature_def_utils, tag_constants
from millrace.saved_model.builder import _SavedModelBuilder
from millrace.saved_model.utils import build_tensor_info
from millrace.train.checkpoint import variables_by_key
from millrace.train.saver import Saver

_JSON = "saved_model.json"


def export_saved_model(
    model: Any, saved_model_path: Any, custom_objects: Any = None, as_text: bool = False, input_signature: Any = None, serving_only: bool = False
) -> None:
    """Writes a model of tf.keras as a SavedModel, with its JSON among the assets: a graph that predicts (tag "serve") and, of a compiled model, unless
    serving_only, one that trains ("train") and one that evaluates ("eval"). input_signature: a TensorSpec for each input, where its shape is to be another."""
    if not model._has_config:
        raise at_user_line(
            NotImplementedError("Subclassed models cannot be exported here: they have no config to be built again from. Use tf.saved_model.simple_save.")
        )
    if not model.inputs:
        raise at_user_line(
            ValueError(
                "Weights for sequential model have not yet been created. Weights are created when the Model is first called on inputs or `build()` is called "
                "with an `input_shape`, or the first layer in the model has `input_shape` during construction."
            )
        )
    builder = _SavedModelBuilder(saved_model_path)
    state, recipe = _State(model), Recipe(model, custom_objects)
    modes = ["train", "eval"] if model.optimizer is not None and not serving_only else []
    for mode in [*modes, "predict"]:
        _add_graph(builder, model, recipe, state, mode, input_signature)
    builder.save(as_text)
    folder = os.path.join(gfile.as_path(saved_model_path), constants.ASSETS_DIRECTORY)
    gfile.MakeDirs(folder)
    with gfile.Open(os.path.join(folder, _JSON), "w") as file:
        file.write(model.to_json())


class _State:
    """The values of a model's variables and of its optimizer's."""

    def __init__(self, model: Any) -> None:
        self._weights, optimizer = model.get_weights(), model.optimizer
        self._kept = K.batch_get_value(_kept_by(model))
        self._steps = None if optimizer is None or isinstance(optimizer, TFOptimizer) else K.get_value(optimizer.iterations)

    def give(self, model: Any) -> None:
        """Sets those of a model of the same kind; what its optimizer keeps only where it trains."""
        model.set_weights(self._weights)
        kept = _kept_by(model)
        if len(kept) == len(self._kept):
            K.batch_set_value(list(zip(kept, self._kept)))
        if model.optimizer is not None and self._steps is not None:
            K.set_value(model.optimizer.iterations, self._steps)


def _kept_by(model: Any) -> List[Any]:
    """The variables of a model's optimizer, in an order that the names of its own variables do not change."""
    optimizer = model.optimizer
    if optimizer is None:
        return []
    if not isinstance(optimizer, TFOptimizer):
        return list(optimizer.weights)
    inner = optimizer.optimizer
    slots = [inner.get_slot(v, name) for v in model.weights for name in inner.get_slot_names()]
    found = [slot for slot in slots if slot is not None]
    return found + [v for v in inner.variables() if not any(v is slot for slot in found)]


def _add_graph(builder: Any, model: Any, recipe: Recipe, state: _State, mode: str, input_signature: Any) -> None:
    specs = model.inputs if input_signature is None else input_signature if isinstance(input_signature, (list, tuple)) else [input_signature]
    targets = list(model.targets) if mode != "predict" else []
    with Graph().as_default() as graph, Session(graph=graph).as_default():
        inputs = [array_ops.placeholder(x.dtype.base_dtype, x.shape, name=name) for name, x in zip(model.input_names, specs)]
        labels = [None if t is None else array_ops.placeholder(t.dtype.base_dtype, t.get_shape(), name=t.op.name.rpartition("/")[2]) for t in targets]
        clone = recipe.make(inputs, labels if mode != "predict" else None, mode == "train")
        step: Optional[Any] = None
        if mode == "train":
            step = control_flow_ops.group(*[getattr(op, "op", op) for part in clone._operations() for op in part])
        session = K.get_session()
        state.give(clone)
        saved = variables_by_key(clone._checkpoint())
        if not builder._has_saved_variables:
            clone._checkpoint().write(os.path.join(gfile.as_path(builder._folder), constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME), session)
            builder._has_saved_variables = True
        key, tag, signature = _signature(model, clone, mode, dict(zip(model.input_names, inputs)), [t for t in labels if t is not None])
        builder.add_meta_graph([tag], {key: signature}, init_op=variables.local_variables_initializer(), train_op=step, saver=Saver(saved, allow_empty=True))


def _signature(model: Any, clone: Any, mode: str, inputs: Dict[str, Any], labels: List[Any]) -> Any:
    """(key, tag, SignatureDef) of what a graph does."""
    outputs = dict(zip(model.output_names, clone.outputs))
    if mode == "predict":
        infos = [{name: build_tensor_info(x) for name, x in values.items()} for values in (inputs, outputs)]
        made = signature_def_utils.build_signature_def(infos[0], infos[1], "tensorflow/serving/predict")
        return "serving_default", tag_constants.SERVING, made
    measures: Dict[str, Any] = {}
    for at, (name, value) in list(enumerate(zip(clone.metrics_names, clone._measures)))[1:]:
        metric = clone._counting[at]
        measures.update({"metrics/%s/value" % name: metric.result(), "metrics/%s/update_op" % name: value})
        for variable in metric.variables:
            add_to_collection(GraphKeys.LOCAL_VARIABLES, variable)
    given = {**inputs, **{t.op.name: t for t in labels}}
    supervised = signature_def_utils.supervised_train_signature_def if mode == "train" else signature_def_utils.supervised_eval_signature_def
    made = supervised(given, {"loss": clone.total_loss}, {"predictions/%s" % name: x for name, x in outputs.items()}, measures)
    return mode, tag_constants.TRAINING if mode == "train" else "eval", made


def load_from_saved_model(saved_model_path: Any, custom_objects: Any = None) -> Any:
    """The model that export_saved_model wrote, with its weights, not compiled."""
    folder = gfile.as_path(saved_model_path)
    with gfile.Open(os.path.join(folder, constants.ASSETS_DIRECTORY, _JSON)) as file:
        model = models.model_from_json(file.read(), custom_objects)
    model.load_weights(os.path.join(folder, constants.VARIABLES_DIRECTORY, constants.VARIABLES_FILENAME))
    return model


__all__ = ["export_saved_model", "load_from_saved_model"]
