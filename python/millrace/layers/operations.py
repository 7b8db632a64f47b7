# SPDX-License-Identifier: Apache-2.0
"""Operations of the graph as layers: what makes `tf.nn.relu(x)` of a layer's output part of a model, and losses and metrics of such tensors."""

from __future__ import annotations

import base64
from typing import Any, Dict, List, Optional, Set

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor, get_default_graph
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.base import Layer, is_keras_tensor
from millrace.layers.nodes import listed, one_or_all, with_leaves
from millrace.ops import array_ops
from millrace.protos import definitions


class TensorFlowOpLayer(Layer):
    """An operation as a layer: called, it makes one like it of other inputs. `constants` are the operands that come from no layer, by their places."""

    def __init__(self, node_def: Any, name: str, constants: Any = None, trainable: bool = True, dtype: Any = None) -> None:
        super().__init__(name="tf_op_layer_" + name, trainable=trainable, dtype=dtype, autocast=False)
        self.node_def = definitions.NodeDef.FromString(base64.b64decode(node_def) if isinstance(node_def, str) else node_def)
        self.constants = {int(place): _read(value) for place, value in (constants or {}).items()}
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Makes the operation."""
        rest, graph = iter(listed(inputs)), get_default_graph()
        count = len(self.constants) + len(listed(inputs))
        operands = [_operand(self.constants[i], graph) if i in self.constants else next(rest) for i in range(count)]
        attributes = {name: value for name, value in self.node_def.attr.items() if not name.startswith("_")}
        return one_or_all(list(graph.create_op(self.node_def.op, operands, name=self.node_def.name.rpartition("/")[2], attrs=attributes).outputs))

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs for shapes of inputs."""
        known = self._inbound_nodes[0].taken
        shapes = input_shape if len(known) > 1 else [input_shape]
        with Graph().as_default():
            made = self.call([array_ops.placeholder(x.dtype.base_dtype, TensorShape(shape)) for x, shape in zip(known, shapes)])
            return one_or_all([x.get_shape() for x in listed(made)])

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer; the constants are those of now."""
        values = {i: K.get_value(c) if isinstance(c, Tensor) else c for i, c in self.constants.items()}
        return {
            "name": self.name[len("tf_op_layer_") :],
            "trainable": self.trainable,
            "node_def": base64.b64encode(self.node_def.SerializeToString()).decode(),
            "constants": {i: {"dtype": np.asarray(v).dtype.name, "value": v} for i, v in values.items()},
        }


def _read(value: Any) -> Any:
    """A constant of a config, which says its type too, or a tensor."""
    return np.asarray(value["value"], dtypes.as_dtype(value["dtype"]).as_numpy_dtype) if isinstance(value, dict) else value


def _operand(constant: Any, graph: Any) -> Any:
    """A constant as a tensor of a graph; where another graph alone can tell its value, a place for it."""
    if not isinstance(constant, Tensor):
        return convert_to_tensor(constant)
    if constant.graph is graph:
        return constant
    value = constant_value(constant)
    return array_ops.placeholder(constant.dtype.base_dtype, constant.get_shape()) if value is None else convert_to_tensor(value, constant.dtype.base_dtype)


class AddLoss(Layer):
    """What goes in; it is added to the loss of the models that this layer is part of."""

    def __init__(self, unconditional: bool = False, **kwargs: Any) -> None:
        super().__init__(**{"autocast": False, **kwargs})
        self.unconditional = unconditional

    def call(self, inputs: Any) -> Any:
        """Adds the loss."""
        self.add_loss(inputs, inputs=None if self.unconditional else inputs)
        return inputs

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "unconditional": self.unconditional}


class AddMetric(Layer):
    """What goes in; models that this layer is part of count it over batches."""

    def __init__(self, aggregation: Optional[str] = None, metric_name: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(**{"autocast": False, **kwargs})
        self.aggregation, self.metric_name = aggregation, metric_name

    def call(self, inputs: Any) -> Any:
        """Adds the metric."""
        self.add_metric(inputs, self.aggregation, self.metric_name)
        return inputs

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "aggregation": self.aggregation, "metric_name": self.metric_name}


def comes_from_layers(tensor: Any) -> bool:
    """Whether a tensor depends on one that a layer has made. Those that do not are marked, and not looked at again."""
    waiting, seen = [tensor], {}  # type: List[Any], Dict[int, Any]
    while waiting:
        x = waiting.pop()
        if is_keras_tensor(x):
            return True
        if id(x) not in seen and not getattr(x, "_keras_history_checked", False):
            seen[id(x)] = x
            waiting.extend(x.op.inputs)
    for x in seen.values():
        x._keras_history_checked = True
    return False


def layers_of_operations(values: Any) -> None:
    """Makes a layer of each operation between layers and the tensors in lists, tuples and dictionaries, which then know where they come from."""
    found: List[Any] = []
    with_leaves(found.append, values)
    waiting = [x for x in found if isinstance(x, Tensor) and not is_keras_tensor(x) and comes_from_layers(x)]
    begun: Set[Operation] = set()
    while waiting:
        op = waiting[-1].op
        if is_keras_tensor(waiting[-1]):
            waiting.pop()
            continue
        operands = [x for x in op.inputs if comes_from_layers(x)]
        before = [x for x in operands if not is_keras_tensor(x)]
        if before:
            if op in begun:
                raise at_user_line(NotImplementedError("Operation %s is part of a loop, which no layer can be made of: use a Lambda layer." % op.name))
            begun.add(op)
            waiting.extend(before)
            continue
        constants = {i: x for i, x in enumerate(op.inputs) if not is_keras_tensor(x)}
        outputs = list(op.outputs)
        for x in outputs:
            x._uses_learning_phase = any(getattr(y, "_uses_learning_phase", False) for y in operands)  # type: ignore[attr-defined]
        TensorFlowOpLayer(op.node_def.SerializeToString(), op.name, constants)._connect(operands, outputs, {}, len(operands) > 1)
        waiting.pop()


Layer._layers_of_operations = staticmethod(layers_of_operations)
