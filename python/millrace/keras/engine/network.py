# SPDX-License-Identifier: Apache-2.0
"""Layers that lead from inputs to outputs, as one layer."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace import tf_logging
from millrace.framework import errors, nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.base import Layer, arguments_of, is_keras_tensor, needed_arguments
from millrace.layers.nodes import Places, arranged, is_deep, listed, one_or_all, shape_tuple, with_leaves
from millrace.layers.merge import _Merge
from millrace.layers.parts import calls
from millrace.layers.operations import AddLoss, AddMetric, comes_from_layers, layers_of_operations
from millrace.layers.serialization import deserialize
from millrace.keras.engine.composites import is_composite
from millrace.keras.engine.inputs import Input, InputLayer
from millrace.layers.nodes import Node
from millrace.module import inside
from millrace.ops.variables import Variable


def get_source_inputs(tensor: Any, layer: Any = None, node_index: Optional[int] = None) -> List[Any]:
    """The Inputs that a tensor comes from."""
    if not hasattr(tensor, "_keras_history"):
        return [tensor]
    if layer is None or node_index:
        layer, node_index, _ = tensor._keras_history
    if not layer._inbound_nodes:
        return [tensor]
    node = layer._inbound_nodes[node_index or 0]
    if not node.sources:
        return list(node.taken)
    found: List[Any] = []
    for x in node.taken:
        found += [s for s in get_source_inputs(x) if not any(s is f for f in found)]
    return found


def _each_its_own(names: List[str]) -> List[str]:
    """Names with numbers behind those that came before: a, a_1."""
    made: List[str] = []
    for name in names:
        numbered = ("%s_%d" % (name, i) for i in itertools.count(1))
        made.append(name if name not in made else next(n for n in numbered if n not in made))
    return made


def _own_nodes(layer: Any) -> int:
    """How many of a layer's calls are none: of a network the first, from its own inputs to its outputs; configs begin behind it."""
    return int(isinstance(layer, Network) and bool(layer._inbound_nodes) and not layer._inbound_nodes[0].sources)


_ITS_OWN = frozenset(  # attributes that a model sets itself
    "inputs outputs input_names output_names layers history optimizer loss loss_weights loss_functions metrics_names sample_weight_mode sample_weight_modes "
    "sample_weights targets input_spec batch_input_shape".split()
)


class Network(Layer):
    """What leads from inputs to outputs, which may lie in lists and dictionaries."""

    inputs: Any = None
    outputs: Any = None
    _input_form: Any = None  # Places, where inputs are neither one nor a list
    _output_form: Any = None
    _is_building = _is_calling = False

    def __init__(self, inputs: Any = None, outputs: Any = None, name: Optional[str] = None, trainable: bool = True, **kwargs: Any) -> None:
        if inputs is not None and kwargs:
            raise at_user_line(
                TypeError(
                    "Models of inputs and outputs take the further arguments `name` and `trainable` alone, and got an unexpected argument: %s"
                    % next(iter(kwargs))
                )
            )
        super().__init__(name=name, trainable=trainable, **kwargs)
        self._is_graph_network = inputs is not None
        if inputs is not None:
            self._input_form, self._output_form = (Places(x) if isinstance(x, dict) or is_deep(x) else None for x in (inputs, outputs))
            self._set_graph(nest.flatten(inputs), nest.flatten(outputs))

    @property
    def _has_config(self) -> bool:
        """Whether it is known what it is made of: no subclass that tells it by `call`."""
        return bool(self._is_graph_network)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for inputs."""
        around, self._is_calling = self._is_calling, True
        try:
            return super().__call__(inputs, *args, **kwargs)
        finally:
            self._is_calling = around

    def build(self, input_shape: Any = None) -> None:
        """Makes the variables of a model that is a subclass by calling it for inputs of a shape, or of a list of shapes."""
        if self._is_graph_network or self.built or self._is_calling:
            super().build(input_shape)
            return
        if input_shape is None:
            raise at_user_line(ValueError("Input shape must be defined when calling build on a model subclass network."))
        if not isinstance(input_shape, (tuple, list, TensorShape)):
            raise at_user_line(
                ValueError(
                    "Specified input shape is not one of the valid types. Please specify a batch input shape of type tuple or list of input shapes. "
                    "User provided input type: %s." % type(input_shape)
                )
            )
        if needed_arguments(self.call):
            raise at_user_line(
                ValueError(
                    "Currently, you cannot build your model if it has positional or keyword arguments that are not inputs to the model, but are required "
                    "for its `call` method. Instead, `call` your model on tensors with all of its arguments."
                )
            )
        many = isinstance(input_shape, list) and len(input_shape) > 0 and not isinstance(input_shape[0], (int, type(None)))
        inputs = [K.placeholder(shape=tuple(TensorShape(shape).as_list())) for shape in (input_shape if many else [input_shape])]
        self._is_building, calls_before = True, len(self._inbound_nodes)
        try:
            self(inputs if many else inputs[0])
        except (errors.OpError, TypeError) as error:
            raise at_user_line(
                ValueError(
                    "You cannot build your model by calling `build` if your layers do not support float type inputs. Instead, `call` your model on "
                    "tensors of the right dtype. %s" % error
                )
            ) from error
        finally:
            self._is_building = False
            del self._inbound_nodes[calls_before:]  # it is no call of the program's

    def _around_call(self) -> Any:
        return contextlib.nullcontext() if self._is_building else super()._around_call()  # build names no scope

    def __setattr__(self, name: str, value: Any) -> None:
        if "_trainable_weights" not in self.__dict__ and any(isinstance(x, (Layer, Variable)) for x in inside(value)):
            raise at_user_line(
                RuntimeError(
                    "It looks like you are subclassing `Model` and you forgot to call `super(YourClass, self).__init__()`. Always start with this line."
                )
            )
        super().__setattr__(name, value)

    def _wraps(self, name: str) -> bool:
        return not name.startswith("_") and name not in _ITS_OWN

    # ---- the graph of layers ----

    def _set_graph(self, inputs: List[Any], outputs: List[Any]) -> None:
        if len({id(x) for x in inputs}) != len(inputs):
            raise at_user_line(ValueError("The list of inputs passed to the model is redundant. All inputs should only appear once. Found: %s" % inputs))
        for x in inputs:
            if not is_keras_tensor(x):
                raise at_user_line(
                    ValueError(
                        "Input tensors to a %s must come from `tf.keras.Input`. Received: %s (missing previous layer metadata)." % (type(self).__name__, x)
                    )
                )
        sizes = sorted({shape[0] for shape in map(shape_tuple, inputs) if shape and shape[0] is not None})
        if len(sizes) > 1:
            raise at_user_line(ValueError("The specified batch sizes of the Input Layers are incompatible. Found batch sizes: %s" % sizes))
        layers_of_operations(outputs)
        for x in outputs:
            if not is_keras_tensor(x):
                raise at_user_line(
                    ValueError(
                        "Output tensors to a %s must be the output of a Keras layer (thus holding past layer metadata); %s depends "
                        "on none." % (type(self).__name__, x)
                    )
                )
        self.inputs, self.outputs, self.built, self._is_graph_network = inputs, outputs, True, True
        self._nodes = self._ordered(inputs, outputs)
        self._network_nodes = {id(node) for node in self._nodes}
        self.layers = self._sorted_layers()
        self._by_name = {layer.name: layer for layer in self.layers}
        if len(self._by_name) != len(self.layers):
            names = [layer.name for layer in self.layers]
            raise at_user_line(
                ValueError(
                    'The name "%s" is used %d times in the model. All layer names should be unique.'
                    % (next(n for n in names if names.count(n) > 1), max(names.count(n) for n in names))
                )
            )
        self._input_layers = [x._keras_history.layer for x in inputs]
        self._output_layers = [x._keras_history.layer for x in outputs]
        self._input_coordinates = [x._keras_history for x in inputs]
        self._output_coordinates = [x._keras_history for x in outputs]
        self.input_names = [layer.name for layer in self._input_layers]
        self.output_names = _each_its_own([layer.name for layer in self._output_layers])
        self._feed_input_names = [layer.name for layer in self._input_layers if getattr(layer, "is_placeholder", True)]
        self._feed_inputs = [x for x, layer in zip(inputs, self._input_layers) if getattr(layer, "is_placeholder", True)]
        self._feed_input_shapes = [tuple(x._keras_history.layer.batch_input_shape) if is_composite(x) else shape_tuple(x) for x in self._feed_inputs]
        masks = [getattr(x, "_keras_mask", None) for x in inputs]
        Node(self, [], [], [], inputs, outputs, input_masks=masks, output_masks=[getattr(x, "_keras_mask", None) for x in outputs])
        self._first_layer_order = {id(layer): i for i, layer in enumerate(self.layers)}

    @staticmethod
    def _ordered(inputs: List[Any], outputs: List[Any]) -> List[Node]:
        """The calls that the outputs need, each after those before it."""
        order: List[Node] = []
        done, on_path = set(), set()
        for output in outputs:
            stack: List[Tuple[Any, bool]] = [(output._keras_history, False)]
            while stack:
                history, finished = stack.pop()
                node = history.layer._inbound_nodes[history.node_index]
                if finished:
                    on_path.discard(id(node))
                    if id(node) not in done:
                        done.add(id(node))
                        order.append(node)
                    continue
                if id(node) in done:
                    continue
                if id(node) in on_path:
                    raise at_user_line(ValueError('The tensors of layer "%s" are part of a cycle.' % history.layer.name))
                on_path.add(id(node))
                stack.append((history, True))
                for x in reversed(node.needed if node.sources else []):
                    if not is_keras_tensor(x):
                        raise at_user_line(ValueError('Graph disconnected: cannot obtain value for tensor %s at layer "%s".' % (x, history.layer.name)))
                    stack.append((x._keras_history, False))
        known = {id(x) for x in inputs}
        fine: List[str] = []
        for node in order:
            for x in node.needed if node.sources else []:
                if id(x) not in known:
                    raise at_user_line(
                        ValueError(
                            'Graph disconnected: cannot obtain value for tensor %s at layer "%s". The following previous layers were '
                            "accessed without issue: %s" % (x, node.outbound_layer.name, fine)
                        )
                    )
            if not node.sources and not all(id(x) in known for x in node.made):
                raise at_user_line(
                    ValueError(
                        'Graph disconnected: cannot obtain value for tensor %s at layer "%s". The following previous layers were '
                        "accessed without issue: %s" % (node.made[0], node.outbound_layer.name, fine)
                    )
                )
            known.update(id(x) for x in node.made)
            fine.append(node.outbound_layer.name)
        return order

    def _sorted_layers(self) -> List[Any]:
        """The layers, those farthest from the outputs first, inputs in the order given."""
        depths: Dict[int, int] = {id(node): 0 for node in self._nodes}
        by_id = {id(node): node for node in self._nodes}
        made_by = {id(x): node for node in self._nodes for x in node.made}
        layer_depths: Dict[int, int] = {}
        for node in reversed(self._nodes):
            depth = max(depths[id(node)], layer_depths.get(id(node.outbound_layer), 0))
            depths[id(node)] = layer_depths[id(node.outbound_layer)] = depth
            for x in node.needed if node.sources else []:
                before = made_by.get(id(x))
                if before is not None:
                    depths[id(before)] = max(depths[id(before)], depth + 1)
        deepest = max(layer_depths.values(), default=0)
        for x in self.inputs:
            if not x._keras_history.layer._inbound_nodes[0].sources:
                layer_depths[id(x._keras_history.layer)] = deepest
        order: List[Any] = [x._keras_history.layer for x in self.inputs if id(x._keras_history.layer) in layer_depths or True]
        order += [by_id[id(node)].outbound_layer for node in self._nodes]
        unique = list({id(layer): layer for layer in order}.values())
        self._layer_depths = layer_depths
        return sorted(unique, key=lambda layer: -layer_depths.get(id(layer), 0))

    def get_layer(self, name: Optional[str] = None, index: Optional[int] = None) -> Any:
        """A layer by name or place."""
        if index is not None:
            if len(self.layers) <= index:
                raise at_user_line(ValueError("Was asked to retrieve layer at index %d but model only has %d layers." % (index, len(self.layers))))
            return self.layers[index]
        if not name:
            raise at_user_line(ValueError("Provide either a layer name or layer index."))
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise at_user_line(ValueError("No such layer: %s" % name))

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for other inputs; `training` goes to the layers that ask for it and were not told."""
        names = self._input_form.structure if self._input_form is not None else ()
        by_layer = isinstance(inputs, dict) and not (isinstance(names, dict) and set(names) == set(inputs)) and set(self.input_names) <= set(inputs)
        values = [inputs[name] for name in self.input_names] if by_layer else nest.flatten(inputs)
        masks = nest.flatten(mask) if mask is not None else [None] * len(values)
        made = self._run(values, masks, training)[0]
        return one_or_all(made) if self._output_form is None else arranged(made, self._output_form)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks of the outputs."""
        if not getattr(self, "_is_graph_network", False):
            return None
        if all(m is None for m in listed(mask)) and not any(
            layer.supports_masking and hasattr(layer, "mask_value") or getattr(layer, "mask_zero", False) for layer in self._deep_layers()
        ):
            return one_or_all([None] * len(self.outputs))
        values = nest.flatten(inputs)
        masks = nest.flatten(mask) if mask is not None else [None] * len(values)
        return one_or_all(self._run(values, masks)[1])

    def _run(self, inputs: List[Any], masks: List[Any], training: Any = None) -> Tuple[List[Any], List[Any]]:
        known: Dict[int, Any] = {id(t): (x, m) for t, x, m in zip(self.inputs, inputs, masks)}
        for node in self._nodes:
            layer = node.outbound_layer
            if not node.sources or all(id(t) in known for t in node.made):
                continue
            values = [known[id(t)] for t in node.taken]
            tensors, before = [v[0] for v in values], [v[1] for v in values]
            arguments = with_leaves(lambda x: known[id(x)][0] if id(x) in known else x, node.arguments)
            mask = arguments["mask"] if "mask" in arguments else arranged(before, node.form) if any(m is not None for m in before) else None
            if mask is not None and "mask" in arguments_of(layer.call):
                arguments["mask"] = mask
            if arguments.get("training") is None and "training" in arguments_of(layer.call):
                arguments.update({"training": training} if training is not None else layer._training_of_parent())
            asked = K.phase_requests()
            with get_default_graph().name_scope(layer.name), calls.with_inputs(tensors):
                made = nest.flatten(layer._computed_from(tensors, node.form, **arguments))
                after = layer._masks_behind(arranged(tensors, node.form), mask)
                layer._regularize(made, tensors)
            by_phase = K.phase_requests() > asked or any(getattr(x, "_uses_learning_phase", False) for x in tensors)
            for i, (t, x) in enumerate(zip(node.made, made)):
                if isinstance(x, Tensor) and not any(x is given for given in tensors):
                    x._uses_learning_phase = by_phase  # type: ignore[attr-defined]
                    x._keras_mask = after[i] if i < len(after) else None  # type: ignore[attr-defined]
                known[id(t)] = (x, after[i] if i < len(after) else None)
        return [known[id(t)][0] for t in self.outputs], [known[id(t)][1] for t in self.outputs]

    # ---- weights, losses, states ----

    def _is_made_of(self, x: Any) -> bool:
        """Whether a tensor was made of this network's tensors, by layers or operations of the graph, and not inside of a call."""
        if not self._is_graph_network or not getattr(self, "outputs", None) or calls.inside or not isinstance(x, Tensor):
            return False
        return not hasattr(x, "_metric_obj") and comes_from_layers(x)

    def _include(self, output: Any) -> None:
        """Makes what leads from its inputs to a tensor part of it."""
        added = [node for node in self._ordered(self.inputs, [output]) if id(node) not in self._network_nodes]
        self._nodes += added
        self._network_nodes.update(id(node) for node in added)
        for layer in (node.outbound_layer for node in added):
            if self._by_name.setdefault(layer.name, layer) is not layer:
                raise at_user_line(ValueError('The name "%s" is used twice in the model. All layer names should be unique.' % layer.name))
            if not any(layer is known for known in self.layers):
                self.layers.append(layer)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses; what leads from its inputs to one becomes part of it."""
        made_here = [loss for loss in listed(losses) if self._is_made_of(loss)]
        for loss in made_here:
            self._include(AddLoss()(loss))
        super().add_loss([loss for loss in listed(losses) if not any(loss is x for x in made_here)], inputs)

    def add_metric(self, value: Any, aggregation: Optional[str] = None, name: Optional[str] = None) -> None:
        """Adds a tensor that is counted over batches; what leads from its inputs to it becomes part of it."""
        if hasattr(value, "_metric_obj") and self._is_graph_network and not calls.inside:
            raise at_user_line(
                ValueError(
                    "Using the result of calling a `Metric` object when calling `add_metric` on a Functional Model is not supported. "
                    "Please pass the Tensor to monitor directly."
                )
            )
        if self._is_made_of(value):
            self._include(AddMetric(aggregation, name)(value))
        else:
            super().add_metric(value, aggregation, name)

    def _deep_layers(self) -> List[Any]:
        found: List[Any] = []
        stack = list(reversed(getattr(self, "layers", [])))
        while stack:
            layer = stack.pop()
            found.append(layer)
            inner = getattr(layer, "layers", None)
            stack.extend(reversed(inner if isinstance(inner, list) else []))
        return found

    @property
    def layers(self) -> List[Any]:
        """Its layers; of a model that is a subclass, in the order in which it got them."""
        found: List[Any] = self.__dict__.setdefault("_layers", [])
        if not self.__dict__.get("_is_graph_network", True):
            found.extend(part for part in super()._parts() if not any(part is layer for layer in found) and not isinstance(part, InputLayer))
        return found

    @layers.setter
    def layers(self, layers: List[Any]) -> None:
        self.__dict__["_layers"] = layers

    def _parts(self) -> List[Any]:
        return self.layers

    @property
    def trainable_weights(self) -> List[Any]:
        """The variables that are trained, layer by layer."""
        self._check_weights()
        return [*self._of_parts("trainable_weights"), *self._own(True)] if self.trainable else []

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The other variables, layer by layer."""
        self._check_weights()
        others = [*self._of_parts("non_trainable_weights"), *self._own(False)]
        return others if self.trainable else [*self._of_parts("trainable_weights"), *self._own(True), *others]

    @property
    def weights(self) -> List[Any]:
        """All, layer by layer."""
        self._check_weights()
        return [*self._of_parts("weights"), *self._own(True), *self._own(False)]

    def _check_weights(self) -> None:
        """ValueError where a class makes its variables in `build`, and that has not been called."""
        if "build" in type(self).__dict__ and not self.built:
            raise at_user_line(
                ValueError(
                    "Weights for model %s have not yet been created. Weights are created when the Model is first called on inputs or `build()` "
                    "is called with an `input_shape`." % self.name
                )
            )

    @property
    def stateful(self) -> bool:  # type: ignore[override]
        """Whether a layer keeps its state from batch to batch."""
        return any(getattr(layer, "stateful", False) for layer in getattr(self, "layers", []))

    @property
    def uses_learning_phase(self) -> bool:  # type: ignore[override]
        """Whether the outputs are other ones while training."""
        return any(getattr(x, "_uses_learning_phase", False) for x in getattr(self, "outputs", None) or [])

    @property
    def state_updates(self) -> List[Any]:
        """The updates of layers that keep their state."""
        return [u for layer in self.layers if getattr(layer, "stateful", False) for u in layer.updates]

    def reset_states(self) -> None:
        """Makes layers forget their states."""
        for layer in self.layers:
            if hasattr(layer, "reset_states") and getattr(layer, "stateful", False):
                layer.reset_states()

    @property
    def input_spec(self) -> Any:
        """What it takes."""
        return None

    def _compute_output_shape(self, input_shape: Any) -> Any:
        many = isinstance(input_shape, list) and len(self.inputs) > 1
        return super()._compute_output_shape(input_shape if many or len(self.inputs) > 1 else input_shape[0] if isinstance(input_shape, list) else input_shape)

    # ---- as settings ----

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs for shapes of inputs: layer by layer."""
        if not self._is_graph_network:
            return super().compute_output_shape(input_shape)
        if isinstance(input_shape, dict):
            given = [input_shape[name] for name in sorted(input_shape)]
        else:
            many = isinstance(input_shape, list) and bool(input_shape) and isinstance(input_shape[0], (tuple, list, TensorShape))
            given = input_shape if many else [input_shape]
        known = {id(x): TensorShape(s) for x, s in zip(self.inputs, given)}
        for node in self._nodes:
            if any(id(x) not in known for x in node.made):
                shapes = [known[id(x)] for x in node.taken]
                made = node.outbound_layer.compute_output_shape(arranged(shapes, node.form))
                made = [made[name] for name in sorted(made)] if isinstance(made, dict) else made
                listed_shapes = made if isinstance(made, list) and isinstance(made[0], (tuple, list, TensorShape)) else [made]
                known.update((id(x), TensorShape(s)) for x, s in zip(node.made, listed_shapes))
        outputs = [known[id(x)] for x in self.outputs]
        return one_or_all(outputs) if self._output_form is None else arranged(outputs, self._output_form)

    def get_config(self) -> Dict[str, Any]:
        """Its layers and how they connect."""
        if not self._is_graph_network:
            raise at_user_line(NotImplementedError("Models that are subclasses have no config: save their weights."))
        numbers: Dict[int, int] = {}
        for layer in self.layers:
            kept = _own_nodes(layer)
            for node in layer._inbound_nodes:
                if id(node) in self._network_nodes:
                    numbers[id(node)] = kept
                    kept += 1

        def place(x: Any) -> Any:
            """Where a tensor of a layer comes from; of other tensors their values; other things as they are."""
            h = getattr(x, "_keras_history", None)
            if h is None and isinstance(x, (Tensor, Variable)):
                x = K.get_value(x)
            return (
                x.tolist()
                if isinstance(x, np.ndarray)
                else x
                if h is None
                else [h.layer.name, numbers.get(id(h.layer._inbound_nodes[h.node_index]), 0), h.tensor_index]
            )

        entries = []
        for layer in self.layers:
            calls = []
            for node in layer._inbound_nodes:
                if id(node) not in numbers or not node.sources:
                    continue
                arguments = with_leaves(place, node.arguments)
                try:
                    json.dumps(arguments)
                except TypeError:
                    tf_logging.warning(
                        "Layer %s was passed non-serializable keyword arguments: %s. They will not be included in the serialized model.", layer.name, arguments
                    )
                    arguments = {}
                form: Any = node.form  # of inputs in a dictionary, or in each other
                keys = [[key] for key in form] if isinstance(form, list) else [[]] * len(node.sources)
                keys = [[{"places": form.structure}]] * len(node.sources) if isinstance(form, Places) else keys
                calls.append(
                    [
                        [before.name, numbers.get(id(before._inbound_nodes[n]), 0), t, arguments, *key]
                        for before, n, t, key in zip(node.sources, node.source_nodes, node.source_places, keys)
                    ]
                )
            entries.append({"name": layer.name, "class_name": type(layer).__name__, "config": layer.get_config(), "inbound_nodes": calls})
        ends = [
            [[h.layer.name, numbers.get(id(h.layer._inbound_nodes[h.node_index]), 0), h.tensor_index] for h in coordinates]
            for coordinates in (self._input_coordinates, self._output_coordinates)
        ]
        forms = (self._input_form, self._output_form)
        ends = [end if form is None else nest.map_structure(lambda i, at=end: at[i], form.structure) for end, form in zip(ends, forms)]
        return copy.deepcopy({"name": self.name, "layers": entries, "input_layers": ends[0], "output_layers": ends[1]})

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A model of what get_config gave."""
        made: Dict[str, Any] = {}
        waiting: List[Any] = []
        for entry in config["layers"]:
            layer = deserialize({"class_name": entry["class_name"], "config": entry["config"]}, custom_objects=custom_objects)
            made[entry["name"]] = layer
            base = _own_nodes(layer)
            waiting += [(layer, base, i, call) for i, call in enumerate(entry["inbound_nodes"])]

        def output(name: str, number: int, tensor: int) -> Any:
            layer = made[name]
            number = max(number, _own_nodes(layer))
            return layer._inbound_nodes[number].made[tensor] if len(layer._inbound_nodes) > number else None

        def real(value: Any, missing: List[Any]) -> Any:
            """An argument with tensors where a config says where they come from."""
            if isinstance(value, list) and [type(v) for v in value] == [str, int, int] and value[0] in made:
                missing += [value] if output(*value) is None else []
                return output(*value)
            if isinstance(value, dict):
                return {k: real(v, missing) for k, v in value.items()}
            return [real(v, missing) for v in value] if isinstance(value, list) else value

        while waiting:
            rest: List[Any] = []
            for layer, base, i, call in waiting:
                inputs = [output(*entry[:3]) for entry in call] if len(layer._inbound_nodes) == base + i else [None]
                missing: List[Any] = []
                arguments = real(call[0][3] if len(call[0]) > 3 else {}, missing)
                if any(x is None for x in inputs) or missing:
                    rest.append((layer, base, i, call))
                    continue
                keys = [entry[4] for entry in call if len(entry) > 4]
                form: Any = keys or len(inputs) > 1 or isinstance(layer, _Merge)
                layer(arranged(inputs, Places(keys[0]["places"]) if keys and isinstance(keys[0], dict) else form), **arguments)
            if len(rest) == len(waiting):
                raise at_user_line(ValueError("The config names inputs that no layer of it makes: %s" % [entry[3] for entry in rest]))
            waiting = rest

        def of(entries: Any) -> Any:
            if isinstance(entries, dict):
                return {key: of(value) for key, value in entries.items()}
            return output(*entries[:3]) if entries and isinstance(entries[0], str) else [of(entry) for entry in entries]

        model = cls(inputs=of(config["input_layers"]), outputs=of(config["output_layers"]), name=config.get("name"))
        for layer in made.values():
            if not any(layer is known for known in model.layers):  # it leads to no output, but to a loss or a metric
                for node in layer._inbound_nodes[1 if isinstance(layer, Network) else 0 :]:
                    model._include(node.made[0])
        return model


__all__ = ["Input", "InputLayer", "Network", "get_source_inputs"]
