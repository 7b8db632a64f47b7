# SPDX-License-Identifier: Apache-2.0
"""Layers of tf.keras, and how calls of them become models."""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph, init_scope
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, nn_ops
from millrace.ops.variables import Variable
from millrace.keras import backend as K


def listed(value: Any) -> List[Any]:
    """As a list."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def one_or_all(values: List[Any]) -> Any:
    """The value where there is one, else the list."""
    return values[0] if len(values) == 1 else values


# ---- initializers, activations, regularizers by name ----

_INITIALIZERS: Dict[str, Callable[[], Any]] = {
    "zeros": init_ops.zeros_initializer, "ones": init_ops.ones_initializer, "glorot_uniform": init_ops.glorot_uniform_initializer,
    "glorot_normal": init_ops.glorot_normal_initializer, "uniform": lambda: init_ops.RandomUniform(-0.05, 0.05),
    "random_uniform": lambda: init_ops.RandomUniform(-0.05, 0.05), "normal": lambda: init_ops.RandomNormal(0.0, 0.05),
    "random_normal": lambda: init_ops.RandomNormal(0.0, 0.05), "truncated_normal": lambda: init_ops.TruncatedNormal(0.0, 0.05),
    "orthogonal": init_ops.Orthogonal, "identity": init_ops.Identity, "he_normal": lambda: init_ops.VarianceScaling(2.0, "fan_in", "truncated_normal"),
    "he_uniform": lambda: init_ops.VarianceScaling(2.0, "fan_in", "uniform"), "lecun_normal": lambda: init_ops.VarianceScaling(1.0, "fan_in", "truncated_normal"),
    "lecun_uniform": lambda: init_ops.VarianceScaling(1.0, "fan_in", "uniform")}


def initializer(given: Any) -> Any:
    """An initializer by name, class or function."""
    if isinstance(given, str):
        name = re.sub("([a-z])([A-Z])", r"\1_\2", given).lower()
        if name not in _INITIALIZERS:
            raise at_user_line(ValueError("Unknown initializer: %s" % given))
        return _INITIALIZERS[name]()
    return given() if isinstance(given, type) else given


_ACTIVATIONS: Dict[str, Callable[[Any], Any]] = {
    "linear": lambda x: x, "relu": nn_ops.relu, "sigmoid": math_ops.sigmoid, "tanh": math_ops.tanh, "softmax": nn_ops.softmax, "elu": gen_ops.elu,
    "selu": gen_ops.selu, "softplus": gen_ops.softplus, "softsign": gen_ops.softsign, "hard_sigmoid": K.hard_sigmoid, "exponential": gen_ops.exp}


def activation(given: Any) -> Callable[[Any], Any]:
    """An activation by name; none is the number itself."""
    if given is None:
        return _ACTIVATIONS["linear"]
    if isinstance(given, str):
        if given not in _ACTIVATIONS:
            raise at_user_line(ValueError("Unknown activation function: %s" % given))
        return _ACTIVATIONS[given]
    return given  # type: ignore[no-any-return]


class Regularizer:
    """l1 |w| + l2 w^2, summed."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = l1, l2

    def __call__(self, x: Any) -> Any:
        return self.l1 * math_ops.reduce_sum(math_ops.abs(x)) + self.l2 * math_ops.reduce_sum(gen_ops.square(x))


def regularizer(given: Any) -> Any:
    """A regularizer by name."""
    if isinstance(given, str):
        return {"l1": Regularizer(0.01), "l2": Regularizer(0.0, 0.01), "l1_l2": Regularizer(0.01, 0.01)}[given]
    return given


_initializer, _regularizer = initializer, regularizer  # arguments have these names, too


# ---- layers ----

class Node(NamedTuple):
    """A call of a layer."""

    layer: Any
    inputs: List[Any]
    outputs: List[Any]
    arguments: Dict[str, Any]


def history(tensor: Any) -> Optional[Node]:
    """The call that made a tensor, or None."""
    return getattr(tensor, "_keras_history", None)


class Layer:
    """Base of layers: build(shape) makes weights by add_weight, call(inputs) computes."""

    def __init__(self, name: Optional[str] = None, trainable: bool = True, dtype: Any = None, input_shape: Any = None, batch_input_shape: Any = None,
                 input_dim: Optional[int] = None, input_length: Optional[int] = None, batch_size: Optional[int] = None, weights: Any = None,
                 **unused: Any) -> None:
        if unused:
            raise at_user_line(TypeError("%s got an unexpected keyword argument: %s" % (type(self).__name__, sorted(unused)[0])))
        stem = re.sub("([a-z0-9])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", type(self).__name__)).lower()
        self.name, self.trainable, self.built, self.dtype = name or K.unique_name(stem), trainable, False, dtype
        if batch_input_shape is None and input_shape is not None:
            batch_input_shape = (batch_size, *input_shape)
        if batch_input_shape is None and input_dim is not None:
            batch_input_shape = (batch_size, input_dim) if input_length is None else (batch_size, input_length, input_dim)
        self.batch_input_shape = batch_input_shape
        self._weights: List[Any] = []
        self._trainable: List[bool] = []
        self._losses: List[Callable[[], Any]] = []
        self.updates: List[Any] = []
        self.nodes: List[Node] = []
        self._first_values = weights

    def add_weight(self, name: str, shape: Any, dtype: Any = None, initializer: Any = "glorot_uniform", regularizer: Any = None, trainable: bool = True,
                   constraint: Any = None, **unused: Any) -> Any:
        """Makes a variable of the layer."""
        start, dims = _initializer(initializer), [int(d) for d in shape]
        kind = dtypes.as_dtype(dtype or self.dtype or K.floatx())
        graph = get_default_graph()
        with init_scope(), graph.name_scope(self.name + "/"):
            made = Variable(lambda: start(dims, dtype=kind), trainable=trainable, name=name, constraint=constraint)
        self._weights.append(made)
        self._trainable.append(trainable)
        penalty = _regularizer(regularizer)
        if penalty is not None:
            self._losses.append(lambda: penalty(made))
        return made

    def build(self, input_shape: Any) -> None:
        """Makes the weights."""
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return inputs

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        """Builds the layer at the first call, then computes."""
        tensors = [convert_to_tensor(x) if not hasattr(x, "get_shape") else x for x in listed(inputs)]
        given = tensors if isinstance(inputs, (list, tuple)) else tensors[0]
        if not self.built:
            shapes = [x.get_shape() for x in tensors]
            self.build(shapes if isinstance(inputs, (list, tuple)) else shapes[0])
            self.built = True
            if self._first_values is not None:
                self.set_weights(self._first_values)
        with get_default_graph().name_scope(self.name):
            made = self.call(given, **kwargs)
            outputs = [array_ops.identity(t) if any(t is x for x in tensors) else t for t in listed(made)]
        node = Node(self, tensors, outputs, {"_many": isinstance(inputs, (list, tuple)), **kwargs})
        self.nodes.append(node)
        for t in outputs:
            t._keras_history = node
        return outputs if isinstance(made, (list, tuple)) else outputs[0]

    @property
    def weights(self) -> List[Any]:
        """Its variables."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def trainable_weights(self) -> List[Any]:
        """Those that are trained."""
        return [w for w, t in zip(self._weights, self._trainable) if t] if self.trainable else []

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The others."""
        return [w for w, t in zip(self._weights, self._trainable) if not (t and self.trainable)]

    variables = weights
    trainable_variables = trainable_weights

    @property
    def losses(self) -> List[Any]:
        """What its regularizers add to the loss."""
        return [make() for make in self._losses]

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Operations of each training step."""
        self.updates.extend(listed(updates))

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds to the loss of models."""
        for value in listed(losses):
            self._losses.append(lambda value=value: value)  # type: ignore[misc]

    input = property(lambda self: one_or_all(self.nodes[0].inputs), doc="The inputs of its first call.")
    output = property(lambda self: one_or_all(self.nodes[0].outputs), doc="The outputs of its first call.")
    input_shape = property(lambda self: K.int_shape(self.input), doc="The shape of its input.")
    output_shape = property(lambda self: K.int_shape(self.output), doc="The shape of its output.")

    def get_weights(self) -> List[Any]:
        """The values of its variables."""
        return K.batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Sets its variables."""
        variables = self.weights
        if len(variables) != len(weights):
            raise at_user_line(ValueError("You called `set_weights(weights)` on layer \"%s\" with a weight list of length %d, but the layer was expecting %d weights."
                                          % (self.name, len(weights), len(variables))))
        for v, value in zip(variables, weights):
            if tuple(v.get_shape().as_list()) != tuple(getattr(value, "shape", ())):
                raise at_user_line(ValueError("Layer weight shape %s not compatible with provided weight shape %s" % (
                    tuple(v.get_shape().as_list()), getattr(value, "shape", ()))))
        K.batch_set_value(zip(variables, weights))

    def count_params(self) -> int:
        """How many numbers it has."""
        return sum(K.count_params(w) for w in self.weights)


class InputLayer(Layer):
    """Where a model begins."""

    def __init__(self, input_shape: Any = None, batch_size: Optional[int] = None, dtype: Any = None, input_tensor: Any = None, name: Optional[str] = None,
                 batch_input_shape: Any = None) -> None:
        super().__init__(name=name or "input_%d" % K.get_uid("input"))
        shape = batch_input_shape if batch_input_shape is not None else (batch_size, *(input_shape or ()))
        tensor: Any = input_tensor if input_tensor is not None else array_ops.placeholder(dtype or K.floatx(), list(shape), name=self.name)
        self.built, self.batch_input_shape = True, tuple(shape)
        node = Node(self, [], [tensor], {})
        self.nodes.append(node)
        tensor._keras_history = node


def Input(shape: Any = None, batch_shape: Any = None, name: Optional[str] = None, dtype: Any = None, sparse: bool = False,  # noqa: N802
          tensor: Any = None, batch_size: Optional[int] = None) -> Any:
    """A tensor that a model is fed."""
    layer = InputLayer(shape, batch_size, dtype, tensor, name, batch_shape)
    return layer.nodes[0].outputs[0]


def nodes_between(inputs: List[Any], outputs: List[Any]) -> List[Node]:
    """The calls that lead from inputs to outputs, in order."""
    order: List[Node] = []
    seen = set()
    ends = {id(t) for t in inputs}

    def visit(tensor: Any) -> None:
        stack = [(tensor, False)]
        while stack:
            t, done = stack.pop()
            node = history(t)
            if node is None or id(t) in ends:
                if node is None:
                    raise at_user_line(ValueError("Output tensors to a Model must be the output of a Keras layer or Input; %s is not. Wrap what "
                                                  "computes it in a Lambda layer." % t))
                continue
            if id(node) in seen:
                continue
            if done:
                seen.add(id(node))
                order.append(node)
                continue
            if not node.inputs:
                raise at_user_line(ValueError("Graph disconnected: cannot obtain value for tensor %s." % t))
            stack.append((t, True))
            stack.extend((x, False) for x in node.inputs)
    for t in outputs:
        visit(t)
    return order
