# SPDX-License-Identifier: Apache-2.0
"""A compiled model of tf.keras as an Estimator."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.default_session import get_default_session
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, add_to_collection
from millrace.framework.session import Session
from millrace.keras import backend as K
from millrace.keras import models
from millrace.keras.engine.training import Model
from millrace.keras.optimizers import TFOptimizer
from millrace.layers.nodes import listed
from millrace.ops import control_flow_ops, math_ops
from millrace.ops.variables import global_variables_initializer
from millrace.train.global_step import create_global_step, get_or_create_global_step


class Recipe:
    """How a model is made again in another graph."""

    def __init__(self, model: Any, custom_objects: Any) -> None:
        self.model = model
        self.tf_optimizer: Any = None
        if model.optimizer is not None:
            self.loss, self.metrics, self.weighted = model.loss, model._compile_metrics, model._compile_weighted_metrics
            self.loss_weights, self.modes = model.loss_weights, model.sample_weight_mode
            self.tf_optimizer = model.optimizer.optimizer if isinstance(model.optimizer, TFOptimizer) else None
            self.optimizer = (type(model.optimizer), None if self.tf_optimizer is not None else model.optimizer.get_config())
        self.custom_objects = custom_objects
        self.input_names, self.output_names = list(getattr(model, "input_names", ())), list(getattr(model, "output_names", ()))

    def make(self, features: Any, labels: Any, training: bool) -> Any:
        """A model whose inputs are the features, compiled where there are labels."""
        K.set_learning_phase(int(training))
        with models.custom_object_scope(self.custom_objects or {}):
            if self.model._has_config:
                model = models.clone_model(self.model, self._in_order(features, self.input_names, "input"))
            else:
                model = self._connected(features)
        if labels is not None:
            kind, config = self.optimizer
            if self.tf_optimizer is not None:
                optimizer = TFOptimizer(self.tf_optimizer, get_or_create_global_step())
            else:
                optimizer = kind.from_config(config)
                optimizer.iterations = get_or_create_global_step()
            model.compile(
                optimizer,
                self.loss,
                self.metrics,
                self.loss_weights,
                self.modes,
                self.weighted,
                target_tensors=self._in_order(labels, model.output_names, "output"),
            )
        return model

    def _connected(self, features: Any) -> Any:
        """A copy of a model that is a subclass, called for features: of a dictionary in the order of the names, where they are known."""
        model = models.copy_of_subclass(self.model)
        if isinstance(features, dict) and set(features) != set(self.input_names):
            model._set_inputs({name: self._in_order([value], [name], "input")[0] for name, value in features.items()})
        else:
            given = self._in_order(features, self.input_names or [""] * len(listed(features)), "input")
            model._set_inputs(given if isinstance(features, (list, tuple)) or len(given) > 1 else given[0])
        return model

    @staticmethod
    def _in_order(values: Any, names: List[str], what: str) -> List[Any]:
        if isinstance(values, dict):
            for name in values:
                if name not in names:
                    raise at_user_line(
                        ValueError('Cannot find %s with name "%s" in Keras Model. It needs to match one of the following: %s' % (what, name, ", ".join(names)))
                    )
            values = [values[name] for name in names if name in values]
        tensors = [convert_to_tensor(v) for v in listed(values)]
        if len(tensors) != len(names):
            raise at_user_line(ValueError("The model has %d %ss (%s), got %d tensors" % (len(names), what, ", ".join(names), len(tensors))))
        return [math_ops.cast(t, K.floatx()) if t.dtype.is_floating else t for t in tensors]


def _model_fn(recipe: Recipe) -> Any:
    def model_fn(features: Any, labels: Any, mode: Any) -> Any:
        from millrace import estimator

        training = mode == estimator.ModeKeys.TRAIN
        model = recipe.make(features, labels, training)
        predictions = dict(zip(model.output_names, model.outputs))
        exports = {"serving_default": estimator.export.PredictOutput(predictions)}
        if labels is None:
            return estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=exports)
        train_op = None
        if training:
            train_op = control_flow_ops.group(*[getattr(op, "op", op) for part in model._operations() for op in part])
        measures: Dict[str, Any] = {}
        if mode == estimator.ModeKeys.EVAL:
            for at, (name, value) in enumerate(zip(model.metrics_names, model._measures)):
                counted = model._counting.get(at)
                if counted in model._chosen_metrics:
                    measures[name] = counted.result(), value
                    for variable in counted.variables:
                        add_to_collection(GraphKeys.LOCAL_VARIABLES, variable)
        return estimator.EstimatorSpec(
            mode, predictions=predictions, loss=model.total_loss, train_op=train_op, eval_metric_ops=measures or None, export_outputs=exports
        )

    return model_fn


def _write_first_checkpoint(recipe: Recipe, model: Any, folder: str, weights: List[Any]) -> None:
    """A checkpoint with the model's weights, and first values of what training adds."""
    from millrace.ops import array_ops
    from millrace.train.saver import Saver

    with Graph().as_default() as graph:
        create_global_step()
        fed = [array_ops.placeholder(t.dtype.base_dtype, t.get_shape()) for t in model.inputs]
        targets = [array_ops.placeholder("int64" if t.dtype.is_integer else K.floatx(), t.get_shape()) for t in model.targets]
        made = recipe.make(dict(zip(recipe.input_names, fed)), dict(zip(recipe.output_names, targets)), True)
        made._operations()
        saver = Saver()
        with Session(graph=graph) as session:
            session.run(global_variables_initializer())
            for variable, value in zip(made.weights, weights):
                variable.load(value, session)
            saver.save(session, os.path.join(folder, "model.ckpt"), global_step=0)


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: Optional[str] = None,
    custom_objects: Any = None,
    model_dir: Optional[str] = None,
    config: Any = None,
    checkpoint_format: Optional[str] = "saver",
) -> Any:
    """An Estimator that trains a copy of a compiled model, from its weights on. Its checkpoints hold variables by name ("saver")."""
    if checkpoint_format not in (None, "saver"):
        raise at_user_line(
            NotImplementedError("checkpoint_format=%r is not provided: checkpoints of estimators are those of tf.train.Saver." % checkpoint_format)
        )
    if keras_model is None and keras_model_path is None:
        raise at_user_line(ValueError("Either keras_model or keras_model_path needs to be provided."))
    if keras_model is not None and keras_model_path is not None:
        raise at_user_line(ValueError("Please specity either keras_model or keras_model_path, but not both."))
    if keras_model is None:
        if str(keras_model_path).startswith("gs://") or "storage.googleapis.com" in str(keras_model_path):
            raise at_user_line(ValueError("%s is not a local path. Please copy the model locally first." % keras_model_path))
        keras_model = models.load_model(str(keras_model_path), custom_objects)
    if keras_model.optimizer is None:
        raise at_user_line(ValueError("Given keras model has not been compiled yet. Please compile first before creating the estimator."))
    if not isinstance(keras_model, Model) or not keras_model.outputs and keras_model._has_config:
        raise at_user_line(ValueError("The model needs inputs of known shapes"))
    from millrace import estimator

    recipe = Recipe(keras_model, custom_objects)
    made = estimator.Estimator(_model_fn(recipe), model_dir=model_dir, config=config)
    from millrace.train.saver import latest_checkpoint

    session = K.own_session()
    if get_default_session() is None and not K.has_values(session):
        session = Session(config=made._session_config)  # no variable has a value yet
        K.set_session(session)
    if keras_model.outputs and latest_checkpoint(made.model_dir) is None:
        _write_first_checkpoint(recipe, keras_model, made.model_dir, keras_model.get_weights())
        K.set_session(session)
    return made
