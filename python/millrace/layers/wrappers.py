# SPDX-License-Identifier: Apache-2.0
"""Layers around layers."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.keras.utils.generic_utils import custom_object_scope
from millrace.layers.base import Layer, arguments_of, is_keras_tensor
from millrace.layers.nodes import listed, one_or_all
from millrace.layers.serialization import deserialize
from millrace.layers.nodes import InputSpec
from millrace.ops import array_ops, math_ops


class Wrapper(Layer):
    """Base of layers around a layer."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise at_user_line(ValueError("Please initialize `%s` layer with a `Layer` instance. You passed: %s" % (type(self).__name__, layer)))
        self.layer = layer
        if hasattr(layer, "batch_input_shape") and "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["batch_input_shape"] = layer.batch_input_shape
        super().__init__(**kwargs)
        self._input_map: Dict[int, Any] = {}

    def _parts(self) -> List[Any]:
        return [self.layer]

    def _call_of(self, part: Layer, x: Any, **offered: Any) -> List[Any]:
        """The outputs of a layer within, which gets those arguments that there are and that it takes, and adds the loss of its outputs."""
        taken = arguments_of(part.call)
        outputs = listed(part.call(x, **{name: value for name, value in offered.items() if value is not None and name in taken}))
        part._regularize(outputs, [x])
        return outputs

    def set_weights(self, weights: Any) -> None:
        """Sets the variables of the layers."""
        rest = list(weights)
        for p in self._parts():
            count = len(p.weights)
            p.set_weights(rest[:count])
            rest = rest[count:]

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "layer": {"class_name": type(self.layer).__name__, "config": self.layer.get_config()}}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave."""
        config = dict(config)
        return cls(deserialize(config.pop("layer"), custom_objects=custom_objects), **config)


class TimeDistributed(Wrapper):
    """A layer at each step."""

    supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Builds the layer."""
        shape = TensorShape(input_shape)
        if shape.ndims is None or shape.ndims < 3:
            raise at_user_line(
                ValueError(
                    "`TimeDistributed` Layer should be passed an `input_shape ` with at least 3 dimensions (batch, steps, and those of the layer), received: %s"
                    % shape
                )
            )
        self.input_spec = InputSpec(shape=[None, None, *shape.as_list()[2:]])
        if not self.layer.built:
            self.layer.build(TensorShape([shape[0].value, *shape.as_list()[2:]]))
            self.layer.built = True
        self.built = True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Computes the outputs."""
        del mask  # the layer within sees one time step
        static, dynamic = inputs.get_shape().as_list(), array_ops.shape(inputs)
        flat = array_ops.reshape(inputs, array_ops.concat([[-1], dynamic[2:]], 0))
        flat.set_shape([None, *static[2:]])
        self._input_map[id(inputs)] = flat
        (made,) = self._call_of(self.layer, flat, training=training)
        inner = made.get_shape().as_list()[1:]
        result = array_ops.reshape(made, array_ops.concat([dynamic[:2], array_ops.shape(made)[1:]], 0))
        result.set_shape([*static[:2], *inner])
        return result

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs: batch and steps as they are, and what the layer makes of the rest."""
        batch, steps, *inner = TensorShape(input_shape).as_list()
        made = TensorShape(self.layer.compute_output_shape((batch, *inner))).as_list()
        return TensorShape([batch, steps, *made[1:]])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """What the layer makes of the mask of each step; where it makes none, whether a step has any part that counts."""
        if inputs.get_shape()[0].value is not None:  # as TensorFlow 1.15 has it
            return mask
        dynamic = array_ops.shape(inputs)
        flat = self._input_map.get(id(inputs))
        if flat is None:
            flat = array_ops.reshape(inputs, array_ops.concat([[-1], dynamic[2:]], 0))
            flat.set_shape([None, *inputs.get_shape().as_list()[2:]])
        deep = mask is not None and (mask.get_shape().ndims or 0) > 2
        of_steps = array_ops.reshape(mask, array_ops.concat([[-1], array_ops.shape(mask)[2:]], 0)) if mask is not None else None
        if of_steps is not None:
            of_steps.set_shape([None, *mask.get_shape().as_list()[2:]])
        made = self.layer.compute_mask(flat, of_steps)
        if made is None:
            return math_ops.reduce_any(mask, list(range(2, mask.get_shape().ndims))) if deep else mask
        result = array_ops.reshape(made, array_ops.concat([dynamic[:2], array_ops.shape(made)[1:]], 0))
        result.set_shape([*inputs.get_shape().as_list()[:2], *made.get_shape().as_list()[1:]])
        return result


class Bidirectional(Wrapper):
    """A layer along a sequence in both directions."""

    supports_masking = True
    _num_constants = 0  # how many of the inputs' last ones go to the cells with each step

    def __init__(self, layer: Any, merge_mode: Optional[str] = "concat", weights: Any = None, backward_layer: Any = None, **kwargs: Any) -> None:
        for part in (layer, backward_layer or layer):
            if not isinstance(part, Layer):
                raise at_user_line(ValueError("Please initialize `Bidirectional` layer with a `Layer` instance. You passed: %s" % (part,)))
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise at_user_line(ValueError('Invalid merge mode. Merge mode should be one of {"sum", "mul", "ave", "concat", None}'))
        config = layer.get_config()
        cells = listed(getattr(layer, "cell", None))
        with custom_object_scope({type(c).__name__: type(c) for cell in cells for c in (cell, *getattr(cell, "cells", []))}):
            self.forward_layer = type(layer).from_config(config)
            if backward_layer is None:
                self.backward_layer = type(layer).from_config({**config, "go_backwards": not config["go_backwards"]})
        self._backward_config: Any = None  # of a layer that was given
        if backward_layer is not None:
            self.backward_layer = backward_layer
            self._backward_config = {"class_name": type(backward_layer).__name__, "config": backward_layer.get_config()}
            self._same_settings(layer, backward_layer)
        self.backward_layer.name = "backward_" + self.backward_layer.name
        super().__init__(layer, **kwargs)
        self.forward_layer.name = "forward_" + layer.name
        self.merge_mode, self.stateful, self.return_sequences = merge_mode, layer.stateful, layer.return_sequences
        self.return_state = getattr(layer, "return_state", False)
        for part in self._parts():  # steps that are left out put out zeros, whichever way they are gone along
            part.zero_output_for_mask = layer.return_sequences
        if weights:
            half = len(weights) // 2
            self.forward_layer._first_values, self.backward_layer._first_values = weights[:half], weights[half:]

    @staticmethod
    def _same_settings(forward: Any, backward: Any) -> None:
        if forward.go_backwards == backward.go_backwards:
            raise at_user_line(ValueError("Forward layer and backward layer should have different `go_backwards` value."))
        for name in ("stateful", "return_sequences", "return_state"):
            values = getattr(forward, name, None), getattr(backward, name, None)
            if values[0] != values[1]:
                raise at_user_line(
                    ValueError(
                        "Forward layer and backward layer are expected to have the same value for attribute %s, got %s and %s" % (name, values[0], values[1])
                    )
                )

    def _parts(self) -> List[Any]:
        return [self.forward_layer, self.backward_layer]

    def build(self, input_shape: Any) -> None:
        """Builds both layers."""
        for p in self._parts():
            if not p.built:
                with name_scope(p.name):
                    p.build(input_shape)
                p.built = True
        self.built = True

    def reset_states(self) -> None:
        """Makes both layers forget their states."""
        for p in self._parts():
            p.reset_states()

    def __call__(self, inputs: Any, initial_state: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Builds the layers at the first call, then computes."""
        given = listed(initial_state)
        if kwargs.get("constants") is not None:
            self._num_constants = len(listed(kwargs["constants"]))
        if given and len(given) % 2:
            raise at_user_line(
                ValueError(
                    "When passing `initial_state` to a Bidirectional RNN, the state should be a list containing the states of the underlying "
                    "RNNs. Found: %s" % given
                )
            )
        if given and all(is_keras_tensor(s) for s in given):
            return super().__call__([*listed(inputs), *given], *args, **kwargs)
        if given:
            kwargs["initial_state"] = initial_state
        return super().__call__(inputs, *args, **kwargs)

    def _check(self, tensors: List[Any]) -> None:
        if tensors:
            InputSpec(min_ndim=3).check(tensors[0], 0, self.name)

    def call(self, inputs: Any, training: Any = None, mask: Any = None, initial_state: Any = None, constants: Any = None) -> Any:
        """Computes the outputs."""
        tensors = listed(inputs)
        x, further = tensors[0], tensors[1:]
        if further and constants is None and self._num_constants:
            further, constants = further[: -self._num_constants], further[-self._num_constants :]
        given = further or listed(initial_state)
        half = len(given) // 2
        states = [given[:half] or None, given[half:] or None]
        made = [self._call_of(part, x, mask=mask, training=training, initial_state=state, constants=constants) for part, state in zip(self._parts(), states)]
        there, back = made[0][0], made[1][0]
        if self.return_sequences:
            back = array_ops.reverse(back, [1])
        if self.merge_mode is None:
            outputs: Any = [there, back]
        else:
            outputs = (
                K.concatenate([there, back], -1)
                if self.merge_mode == "concat"
                else {"sum": there + back, "ave": (there + back) / 2.0, "mul": there * back}[self.merge_mode]
            )
        return [*listed(outputs), *made[0][1:], *made[1][1:]] if self.return_state else outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs: what the layer says for one direction, of both."""
        shapes = self.forward_layer.compute_output_shape(input_shape)
        shapes = [TensorShape(s) for s in shapes] if isinstance(shapes, list) and self.return_state else [TensorShape(shapes)]
        out, states = shapes[0], shapes[1:]
        both = [out, out] if self.merge_mode is None else [out[:-1].concatenate(out[-1].value * 2) if self.merge_mode == "concat" else out]
        return one_or_all([*both, *states, *states])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs."""
        mask = listed(mask)[0] if listed(mask) else None
        kept = mask if self.return_sequences else None
        return [kept, kept] if self.merge_mode is None else kept

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        config = {**super().get_config(), "merge_mode": self.merge_mode}
        if self._num_constants:
            config["num_constants"] = self._num_constants
        if self._backward_config is not None:
            config["backward_layer"] = self._backward_config
        return config

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave."""
        config = dict(config)
        constants = config.pop("num_constants", 0)
        if config.get("backward_layer") is not None:
            config["backward_layer"] = deserialize(config["backward_layer"], custom_objects=custom_objects)
        made = super().from_config(config, custom_objects)
        made._num_constants = constants
        return made
