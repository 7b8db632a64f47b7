# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.models: Sequential, and models in files."""

from __future__ import annotations

import copy
import json
from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.keras import losses, metrics, optimizers
from millrace.keras.optimizer_base import Optimizer
from millrace.layers.columns import _BaseFeaturesLayer
from millrace.layers.nodes import arranged, listed, one_or_all, with_leaves
import millrace.keras.layers  # noqa: F401 - the classes that models are read from
from millrace.layers.operations import AddLoss, AddMetric, TensorFlowOpLayer
from millrace.layers.serialization import CLASSES, deserialize
from millrace.keras.engine.inputs import Input, InputLayer, input_like, undeclared
from millrace.keras.engine.saving import load_weights_from_hdf5_group, opened, save_model  # noqa: F401
from millrace.keras.engine.training import Model, _copied
from millrace.keras.utils.generic_utils import custom_object_scope
from millrace.layers.base import Layer
from millrace.ops.variables import Variable


def _input_of(tensor: Any, name: str) -> Any:
    return Input(batch_shape=tensor.get_shape().as_list(), dtype=tensor.dtype.base_dtype.name, name=name)


class Sequential(Model):
    """Layers one after the other."""

    _has_config = True  # _is_graph_network once its input is known

    def __init__(self, layers: Any = None, name: Optional[str] = None) -> None:
        super().__init__(name=name or K.unique_name("sequential"))
        self._late: Any = None
        self._build_input_shape: Any = None
        self._stack: List[Any] = []  # its layers, without the one for the input
        self.inputs, self.outputs = [], []
        for layer in listed(layers):
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Appends a layer, or as the first one an Input."""
        if isinstance(getattr(getattr(layer, "_keras_history", None), "layer", None), InputLayer):
            layer = layer._keras_history.layer
        if not isinstance(layer, Layer):
            raise at_user_line(TypeError("The added layer must be an instance of class Layer. Found: %s" % (layer,)))
        if self.outputs:
            made = layer(self.outputs[0])
            if nest.is_sequence(made):
                raise at_user_line(
                    TypeError("All layers in a Sequential model should have a single output tensor. For multi-output layers, use the functional API.")
                )
            self._become(self.inputs, [made], [*self._stack, layer])
            return
        if self._stack:
            self._stack.append(layer)  # the input is not known yet
            self.layers = list(self._stack)
            return
        if isinstance(layer, InputLayer):
            self._become(list(layer._inbound_nodes[0].made), list(layer._inbound_nodes[0].made), [])
            return
        first = layer
        while isinstance(first, Model) and getattr(first, "layers", None) and not first.inputs:
            first = first.layers[0]
        if isinstance(first, Model) and first.inputs:
            shape, dtype = K.int_shape(first.inputs[0]), first.inputs[0].dtype.base_dtype.name
        else:
            shape, dtype = getattr(first, "batch_input_shape", None), getattr(first, "dtype", None)
        if shape is None:
            self._stack = self.layers = [layer]
            return
        if layer._inbound_nodes and not isinstance(layer, Model):
            if len(layer._inbound_nodes) != 1:
                raise at_user_line(ValueError("A layer added to a Sequential model must not already be connected somewhere else."))
            node = layer._inbound_nodes[0]
            self._become(list(node.taken), list(node.made), [layer])
            return
        start = Input(batch_shape=shape, dtype=dtype, name=layer.name + "_input")
        made = layer(start)
        if nest.is_sequence(made):
            raise at_user_line(
                ValueError("All layers in a Sequential model should have a single output tensor. For multi-output layers, use the functional API.")
            )
        self._become([start], [made], [layer])

    def _become(self, inputs: List[Any], outputs: List[Any], layers: List[Any]) -> None:
        self._inbound_nodes = []
        self._set_graph(inputs, outputs)
        self._stack = layers
        self.layers = list(layers)

    @property
    def _layers(self) -> List[Any]:  # with the one for the input
        return [*(x._keras_history.layer for x in self.inputs or () if isinstance(x._keras_history.layer, InputLayer)), *self._stack]

    @property
    def model(self) -> Any:
        """The model itself, as Keras 2.0 called what is inside."""
        return self

    def pop(self) -> None:
        """Takes the last layer away."""
        if not self._stack:
            raise at_user_line(TypeError("There are no layers in the model."))
        last = self._stack.pop()
        if not self._stack:
            self.inputs, self.outputs = None, None  # type: ignore[assignment]
            self.layers, self._inbound_nodes = [], []
            return
        if self.outputs:
            node = next(n for n in reversed(last._inbound_nodes) if n.made[0] is self.outputs[0])
            last._inbound_nodes.remove(node)
            self._stack[-1]._outbound_nodes = [n for n in self._stack[-1]._outbound_nodes if n is not node]
            self._become(self.inputs, list(node.taken), self._stack)
        else:
            self.layers = list(self._stack)

    def build(self, input_shape: Any = None) -> None:
        """Gives the first layer its input."""
        if not self.outputs:
            if input_shape is None:
                raise at_user_line(TypeError("Sequential model cannot be built: model is empty. Add some layers first."))
            self._begin(input_shape)

    def _begin(self, shape: Any) -> None:
        """The shape of the first data, where no layer has said it; or {name: input} for a first layer that takes a dictionary."""
        waiting, self._stack, self.layers = self._stack, [], []
        if not waiting:
            raise at_user_line(TypeError("Sequential model cannot be built: model is empty. Add some layers first."))
        if isinstance(shape, dict):
            first = waiting.pop(0)
            if not isinstance(first, _BaseFeaturesLayer):
                message = "Passing a dictionary input to a Sequential Model which doesn't have FeatureLayer as the first layer is an error: got %s first."
                raise at_user_line(ValueError(message % type(first).__name__))
            self._become(list(shape.values()), [first(shape)], [first])
        else:
            self._build_input_shape = (None, *TensorShape(shape).as_list()[1:])
            start = Input(batch_shape=self._build_input_shape, name="input_1")
            self._become([start], [start], [])
        for layer in waiting:
            self.add(layer)
        self._restore_new_variables()
        if self._late is not None:
            self.compile(*self._late)

    def _build_for(self, x: Any) -> None:
        if self.outputs:
            return
        with name_scope(self.name):
            self._begin({name: input_like(x[name], name) for name in sorted(x)} if isinstance(x, dict) else np.shape(undeclared(listed(x)[0])))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for other inputs."""
        if not self.outputs:
            self._begin({name: _input_of(x, name) for name, x in sorted(inputs.items())} if isinstance(inputs, dict) else inputs.get_shape().as_list())
        return super().call(inputs, training, mask)

    def compile(
        self,
        optimizer: Any,
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        **kwargs: Any,
    ) -> None:
        """Chooses how it is trained; before its input is known, how it will be."""
        self.optimizer = optimizers.get(optimizer)
        given = (self.optimizer, loss, metrics, loss_weights, sample_weight_mode, weighted_metrics, target_tensors)
        if self.outputs:
            super().compile(*given, **kwargs)
            return
        self.loss, self.loss_weights, self.sample_weight_mode = loss or [], loss_weights, sample_weight_mode
        self._compile_metrics, self._compile_weighted_metrics = metrics, weighted_metrics
        self._late = given

    def get_layer(self, name: Optional[str] = None, index: Optional[int] = None) -> Any:
        """A layer by name or place."""
        if name is None and index is None:
            raise at_user_line(ValueError("Provide either a layer name or layer index."))
        return super().get_layer(name, index)

    def predict_proba(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The probabilities."""
        return self.predict(x, batch_size, verbose)

    def predict_classes(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The most probable classes."""
        p = self.predict(x, batch_size, verbose)
        return p.argmax(-1) if p.shape[-1] > 1 else (p > 0.5).astype("int32")

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the output for one of the input: layer by layer."""
        for layer in self._stack:
            input_shape = layer.compute_output_shape(input_shape)
        return TensorShape(input_shape)

    def get_config(self) -> Dict[str, Any]:
        """Its name and its layers; the shape of its first data where no layer says it."""
        layers = [{"class_name": type(layer).__name__, "config": layer.get_config()} for layer in self._stack]
        if self.inputs and layers and not isinstance(self._stack[0], Model) and self._build_input_shape is None:
            layers[0]["config"].setdefault("batch_input_shape", K.int_shape(self.inputs[0]))  # which an InputLayer may have said
        config = {"name": self.name, "layers": layers}
        if self._build_input_shape is not None:
            config["build_input_shape"] = self._build_input_shape
        return copy.deepcopy(config)

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        """A model of what get_config gave."""
        made = cls(name=config.get("name") if isinstance(config, dict) else None)
        for entry in config["layers"] if isinstance(config, dict) else config:
            made.add(deserialize(entry, custom_objects=custom_objects))
        if isinstance(config, dict) and config.get("build_input_shape") and not made.inputs:
            made.build(config["build_input_shape"])
        return made


CLASSES.update(Model=Model, Network=Model, Sequential=Sequential)
CLASSES.update(TensorFlowOpLayer=TensorFlowOpLayer, AddLoss=AddLoss, AddMetric=AddMetric)


# ---- models in files ----


def load_model(filepath: Any, custom_objects: Any = None, compile: bool = True) -> Any:
    """The model that save_model wrote."""
    with opened(filepath, "r") as file, custom_object_scope(custom_objects or {}):
        if "model_config" not in file.attrs:
            raise at_user_line(ValueError("No model found in config file."))
        config = file.attrs["model_config"]
        model = model_from_config(json.loads(config.decode("utf-8") if isinstance(config, bytes) else config), custom_objects)
        load_weights_from_hdf5_group(file["model_weights"], model.layers)
        if compile and "training_config" in file.attrs:
            found = file.attrs["training_config"]
            training = json.loads(found.decode("utf-8") if isinstance(found, bytes) else found)
            objects = custom_objects or {}

            def real(value: Any, made: Any) -> Any:
                if isinstance(value, dict):
                    return made(value, objects) if set(value) == {"class_name", "config"} else {k: real(v, made) for k, v in value.items()}
                return [real(v, made) for v in value] if isinstance(value, list) else objects.get(value, value) if isinstance(value, str) else value

            model.compile(
                optimizers.deserialize(training["optimizer_config"], custom_objects),
                real(training["loss"], losses.deserialize),
                real(training["metrics"], metrics.deserialize),
                training["loss_weights"],
                training["sample_weight_mode"],
                real(training.get("weighted_metrics"), metrics.deserialize),
            )
            if "optimizer_weights" in file:
                group = file["optimizer_weights"]
                names = [n.decode("utf-8") if isinstance(n, bytes) else n for n in group.attrs["weight_names"]]
                model._operations()
                model.optimizer.set_weights([np.asarray(group[n]) for n in names])
    return model


def model_from_config(config: Any, custom_objects: Any = None) -> Any:
    """A model of its class and settings."""
    if isinstance(config, list):
        raise at_user_line(TypeError("`model_from_config` expects a dictionary, not a list. Maybe you meant to use `Sequential.from_config(config)`?"))
    return deserialize(config, custom_objects=custom_objects)


def model_from_json(json_string: str, custom_objects: Any = None) -> Any:
    """A model of what to_json gave."""
    return model_from_config(json.loads(json_string), custom_objects)


def model_from_yaml(yaml_string: str, custom_objects: Any = None) -> Any:
    """A model of what to_yaml gave."""
    try:
        import yaml
    except ImportError:
        raise at_user_line(ImportError("YAML needs the package yaml: install it, or use to_json.")) from None
    return model_from_config(yaml.safe_load(yaml_string), custom_objects)


def _cloned(layer: Any) -> Any:
    return type(layer).from_config(layer.get_config())


def share_weights(layer: Any) -> Any:
    """The layer itself, as the layer_fn of a copy that has the weights of the model."""
    return layer


def _clone_functional_model(model: Any, input_tensors: Any = None, layer_fn: Any = None) -> Any:
    clone = layer_fn or _cloned
    if not isinstance(model, Model):
        raise at_user_line(ValueError("Expected `model` argument to be a `Model` instance, got %s" % (model,)))
    if isinstance(model, Sequential):
        raise at_user_line(ValueError("Expected `model` argument to be a functional `Model` instance, got a `Sequential` instance instead: %s" % model))
    inputs = []
    for i, old in enumerate(model.inputs):
        given = listed(input_tensors)[i] if input_tensors is not None else None
        if given is None:
            inputs.append(Input(batch_shape=K.int_shape(old), dtype=old.dtype.base_dtype.name, name=old._keras_history.layer.name))
        else:
            inputs.append(given if hasattr(given, "_keras_history") else Input(tensor=given, name="input_wrapper_for_" + old._keras_history.layer.name))
    known = {id(old): new for old, new in zip(model.inputs, inputs)}
    copies: Dict[int, Any] = {}
    for node in model._nodes:
        layer = node.outbound_layer
        if not node.sources:
            continue
        if id(layer) not in copies:
            copies[id(layer)] = clone_model(layer, None, clone) if isinstance(layer, Model) else clone(layer)
        values = [known[id(t)] for t in node.taken]
        made = copies[id(layer)](arranged(values, node.form), **with_leaves(lambda x: known.get(id(x), x), node.arguments))
        known.update((id(t), x) for t, x in zip(node.made, nest.flatten(made)))
    outputs = [known[id(t)] for t in model.outputs]
    return Model(arranged(inputs, model._input_form or True), arranged(outputs, model._output_form or True), name=model.name)


def _own_input(model: Any) -> List[Any]:
    """An input like that of a model that was begun with one: neither by its first layer, nor by data."""
    if not model.inputs or model._build_input_shape is not None or len(model.inputs) != 1 or not isinstance(model._layers[0], InputLayer):
        return []
    if model._stack and (isinstance(model._stack[0], Model) or getattr(model._stack[0], "batch_input_shape", None) is not None):
        return []
    old = model.inputs[0]
    return [Input(batch_shape=K.int_shape(old), dtype=old.dtype.base_dtype.name, name=model._layers[0].name)]


def _clone_sequential_model(model: Any, input_tensors: Any = None, layer_fn: Any = None) -> Any:
    if not isinstance(model, Sequential):
        raise at_user_line(ValueError("Expected `model` argument to be a `Sequential` model instance, but got: %s" % (model,)))
    clone = layer_fn or _cloned
    layers = [clone_model(layer, None, clone) if isinstance(layer, Model) else clone(layer) for layer in model._stack]
    if input_tensors is None:
        return Sequential([*_own_input(model), *layers], name=model.name)
    given = listed(input_tensors)
    if len(given) != 1:
        raise at_user_line(ValueError("To clone a `Sequential` model, we expect  at most one tensor as part of `input_tensors`."))
    if hasattr(given[0], "_keras_history") and not isinstance(given[0]._keras_history.layer, InputLayer):
        raise at_user_line(
            ValueError(
                "Cannot clone a `Sequential` model on top of a tensor that comes from a Keras layer other than an `InputLayer`. Use the functional API instead."
            )
        )
    start = given[0] if hasattr(given[0], "_keras_history") else Input(tensor=given[0], name="input_wrapper_for_" + model.layers[0].name)
    return Sequential([start._keras_history.layer, *layers], name=model.name)


def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None) -> Any:
    """A model of the same layers with weights of its own. clone_function(layer) makes the copies, and may return the layer itself."""
    if clone_function is not None and not callable(clone_function):
        raise at_user_line(ValueError("Expected `clone_function` argument to be a callable."))
    return (_clone_sequential_model if isinstance(model, Sequential) else _clone_functional_model)(model, input_tensors, clone_function or _cloned)


def copy_of_subclass(model: Any) -> Any:
    """A model of the class, unbuilt, with copies of the layers and what else its attributes hold but tensors and variables; its __init__ is not called.

    NotImplementedError for layers in lists and dictionaries."""
    kind: Any = type(model)
    made = kind.__new__(kind)
    Model.__init__(made, name=model.name)
    known = set(vars(made))
    for key, value in list(vars(model).items()):
        if isinstance(value, Model) and not value._has_config:
            setattr(made, key, copy_of_subclass(value))
        elif any(value is layer for layer in model.layers):
            setattr(made, key, _cloned(value))
        elif key not in known and not _holds_parts_of_graph(value):
            setattr(made, key, value)
    if len(made.layers) != len(model.layers):
        raise at_user_line(
            NotImplementedError(
                "layers of %s lie in lists or dictionaries: make each an attribute of its own, so that the model is copied" % type(model).__name__
            )
        )
    return made


def _holds_parts_of_graph(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_parts_of_graph(part) for part in value)
    if isinstance(value, dict):
        return any(_holds_parts_of_graph(part) for part in value.values())
    return isinstance(value, (Layer, Tensor, Operation, Variable, Optimizer))


def clone_and_build_model(
    model: Any,
    input_tensors: Any = None,
    target_tensors: Any = None,
    custom_objects: Any = None,
    compile_clone: bool = True,
    in_place_reset: bool = False,
    optimizer_iterations: Any = None,
    optimizer_config: Any = None,
) -> Any:
    """A copy of a model with weights of its own, compiled as the model is: with its optimizer's settings, or those of optimizer_config, which a model of
    another graph needs. optimizer_iterations counts its steps. A subclass of Model is copied by its attributes where in_place_reset says so, and stays as it
    is, unlike in TensorFlow."""
    old = model.optimizer
    if compile_clone and old is None:
        raise at_user_line(ValueError("Error when cloning model: compile_clone was set to True, but the original model has not been compiled."))
    if not (model._has_config or in_place_reset):
        raise at_user_line(
            ValueError(
                "This model is a subclass of Model, which has no config to be copied by: set in_place_reset, or make another one of its class and compile that."
            )
        )
    with custom_object_scope(custom_objects or {}):
        clone = clone_model(model, input_tensors) if model._has_config else copy_of_subclass(model)
        if not model._has_config and input_tensors is not None:
            clone._set_inputs(one_or_all(listed(input_tensors)))
        if not compile_clone:
            return clone
        if isinstance(old, optimizers.TFOptimizer):
            optimizer: Any = optimizers.TFOptimizer(old.optimizer, optimizer_iterations)
        else:
            optimizer = type(old).from_config(optimizer_config or old.get_config())
            if optimizer_iterations is not None:
                optimizer.iterations = optimizer_iterations
        kept = [with_leaves(_copied, given) for given in (model._compile_metrics, model._compile_weighted_metrics)]
        clone.compile(optimizer, model.loss, kept[0], model.loss_weights, model.sample_weight_mode, kept[1], target_tensors=target_tensors)
    return clone
