# SPDX-License-Identifier: Apache-2.0
"""What layers of tf.layers and of tf.keras have in common: how calls connect them, what they check, their weights and losses."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor, get_default_graph, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.module import Submodules


def listed(value: Any) -> List[Any]:
    """As a list."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def one_or_all(values: Any) -> Any:
    """The value where there is one, else the list."""
    return values[0] if len(values) == 1 else values


def shape_tuple(x: Any) -> Any:
    """The shape of a tensor as a tuple, None for what is not known."""
    shape = x.get_shape()
    return None if shape.ndims is None else tuple(shape.as_list())


class InputSpec:
    """What a layer takes."""

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: Optional[int] = None,
        max_ndim: Optional[int] = None,
        min_ndim: Optional[int] = None,
        axes: Optional[Dict[int, int]] = None,
    ) -> None:
        self.dtype, self.shape, self.max_ndim, self.min_ndim, self.axes = dtype, shape, max_ndim, min_ndim, axes or {}
        self.ndim = len(shape) if shape is not None else ndim

    def check(self, x: Any, place: int, layer: str) -> None:
        """ValueError unless a tensor is what the layer takes."""
        start = "Input %d of layer %s is incompatible with the layer: " % (place, layer)
        shape, rank = x.get_shape(), x.get_shape().ndims
        if rank is None and (self.ndim is not None or self.min_ndim is not None or self.max_ndim is not None):
            raise at_user_line(ValueError(start + "its rank is undefined, but the layer requires a defined rank."))
        for wanted, good, what in (
            (self.ndim, rank == self.ndim, "ndim"),
            (self.max_ndim, (rank or 0) <= (self.max_ndim or 0), "max_ndim"),
            (self.min_ndim, (rank or 0) >= (self.min_ndim or 0), "min_ndim"),
        ):
            if wanted is not None and not good:
                raise at_user_line(ValueError("%sexpected %s=%s, found ndim=%s. Full shape received: %s" % (start, what, wanted, rank, shape)))
        if self.dtype is not None and x.dtype.base_dtype != dtypes.as_dtype(self.dtype):
            raise at_user_line(ValueError("%sexpected dtype=%s, found dtype=%s" % (start, dtypes.as_dtype(self.dtype).name, x.dtype.base_dtype.name)))
        sizes = shape.as_list() if rank is not None else []
        for axis, size in self.axes.items():
            if rank is not None and size is not None and sizes[int(axis)] not in (size, None):
                raise at_user_line(
                    ValueError("%sexpected axis %s of input shape to have value %s but received input with shape %s" % (start, axis, size, sizes))
                )
        if self.shape is not None and rank is not None:
            for wanted, size in zip(self.shape, sizes):
                if wanted is not None and size is not None and wanted != size:
                    raise at_user_line(ValueError("%sexpected shape=%s, found shape=%s" % (start, self.shape, sizes)))


class History(NamedTuple):
    """Where a tensor comes from: a layer, which of its calls, which of the outputs."""

    layer: Any
    node_index: int
    tensor_index: int


class Node:
    """A call of a layer."""

    def __init__(
        self,
        outbound_layer: Any,
        inbound_layers: List[Any],
        node_indices: List[int],
        tensor_indices: List[int],
        input_tensors: List[Any],
        output_tensors: List[Any],
        arguments: Optional[Dict[str, Any]] = None,
        input_masks: Any = None,
        output_masks: Any = None,
        many: bool = False,
    ) -> None:
        self.outbound_layer, self.inbound_layers, self.node_indices, self.tensor_indices = outbound_layer, inbound_layers, node_indices, tensor_indices
        self.input_tensors, self.output_tensors, self.arguments, self.many = input_tensors, output_tensors, dict(arguments or {}), many
        self.input_masks = input_masks or [getattr(x, "_keras_mask", None) for x in input_tensors]
        self.output_masks = output_masks or [getattr(x, "_keras_mask", None) for x in output_tensors]
        self.input_shapes, self.output_shapes = [shape_tuple(x) for x in input_tensors], [shape_tuple(x) for x in output_tensors]
        for layer in inbound_layers:
            if layer is not None:
                layer._outbound_nodes.append(self)
        outbound_layer._inbound_nodes.append(self)

    def get_config(self) -> Dict[str, Any]:
        """The layers that it connects, by name."""
        return {
            "outbound_layer": self.outbound_layer.name if self.outbound_layer else None,
            "inbound_layers": [layer.name if layer else None for layer in self.inbound_layers],
            "node_indices": self.node_indices,
            "tensor_indices": self.tensor_indices,
        }


def reachable_from(sources: List[Any], wanted: List[Any]) -> List[bool]:
    """Of each tensor or operation whether it depends on one of the sources."""
    ends = {x.op for x in sources}
    known: Dict[Operation, bool] = {}

    def depends(start: Operation) -> bool:
        stack = [start]
        while stack:
            op = stack[-1]
            if op in known:
                stack.pop()
                continue
            if op in ends:
                known[op] = True
                continue
            before = [x.op for x in op.inputs] + list(op.control_inputs)
            waiting = [b for b in before if b not in known and b not in on_path]
            if waiting:
                on_path.add(op)
                stack.extend(waiting)
            else:
                known[op] = any(known.get(b, False) for b in before)
                stack.pop()
        return known[start]

    found = []
    for x in wanted:
        on_path: set[Operation] = set()
        op = x if isinstance(x, Operation) else getattr(x, "op", None)
        found.append(op is not None and depends(op))
    return found


class BaseLayer(Submodules):
    """Calls, weights and losses of a layer; subclasses say how variables are named and what a call does around call()."""

    input_spec: Any = None
    supports_masking = False
    stateful = False
    _name: str = ""
    trainable = True
    built = False
    dynamic = False  # its call makes operations
    activity_regularizer: Any = None

    def _start(self, trainable: bool) -> None:
        self.trainable, self.built = bool(trainable), False
        self._trainable_weights: List[Any] = []
        self._non_trainable_weights: List[Any] = []
        self._losses: List[Any] = []
        self._updates: List[Any] = []
        self._added_metrics: List[Any] = []  # pairs of a metric and what it gives with a batch
        self._conditions: Dict[int, Any] = {}  # by id of a loss or update: the inputs that it is for
        self._inbound_nodes: List[Node] = []
        self._outbound_nodes: List[Node] = []

    def __repr__(self) -> str:
        shapes = ", ".join(str(w.get_shape()) for w in self._trainable_weights + self._non_trainable_weights)
        return "<%s '%s'%s>" % (type(self).__name__, getattr(self, "name", ""), ", weights %s" % shapes if shapes else "" if self.built else ", not built yet")

    # ---- losses and updates ----

    @property
    def losses(self) -> List[Any]:
        """What it adds to the loss."""
        return list(self._losses)

    @property
    def updates(self) -> List[Any]:
        """What is to be run with each training step."""
        return list(self._updates)

    def _all(self, field: str) -> List[Any]:
        """Its losses or updates, of all its calls."""
        return list(getattr(self, field))

    def _note(self, kept: List[Any], values: Any, inputs: Any) -> List[Any]:
        new = [v for v in listed(values) if v is not None]
        kept.extend(new)
        condition = None if inputs is None else tuple(id(x) for x in listed(inputs))
        for v in new:
            self._conditions[id(v)] = condition
        return new

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses; those that depend on inputs are only for the calls with these."""
        self._note(self._losses, losses, inputs)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that are to be run with each training step; with inputs only for the calls with these."""
        self._note(self._updates, updates, inputs)

    def _of(self, kept: List[Any], inputs: Any) -> List[Any]:
        condition = None if inputs is None else tuple(id(x) for x in listed(inputs))
        return [v for v in kept if self._conditions.get(id(v)) == condition]

    def get_losses_for(self, inputs: Any) -> List[Any]:
        """The losses added for some inputs; for None those that depend on none."""
        return self._of(self._losses, inputs)

    def get_updates_for(self, inputs: Any) -> List[Any]:
        """The updates added for some inputs; for None those that depend on none."""
        return self._of(self._updates, inputs)

    # ---- metrics ----

    @property
    def metrics(self) -> List[Any]:
        """The metrics that add_metric was given."""
        return list(dict.fromkeys(metric for metric, _ in self._added_metrics))

    def add_metric(self, value: Any, aggregation: Optional[str] = None, name: Optional[str] = None) -> None:
        """Adds a tensor that models count over batches: its mean, with aggregation "mean"; without, what calling a tf.keras.metrics.Metric gave."""
        from millrace.keras.metric_base import Mean

        if aggregation not in (None, "mean"):
            raise at_user_line(ValueError("We currently support only `mean` sample-wise metric aggregation. You provided aggregation=`%s`" % aggregation))
        metric = getattr(value, "_metric_obj", None)
        if metric is None and aggregation is None:
            raise at_user_line(
                ValueError(
                    "Using the result of calling a `Metric` object when calling `add_metric`, or aggregation='mean', is what add_metric "
                    "takes, got %s" % (value,)
                )
            )
        if metric is None:
            if name is None:
                raise at_user_line(
                    ValueError(
                        "Please provide a name for your metric like `self.add_metric(tf.reduce_sum(inputs), name='mean_activation', aggregation='mean')`"
                    )
                )
            metric = next((m for m in self.metrics if m.name == name), None) or Mean(name)
            value = metric(value)
        self._added_metrics.append((metric, value))

    # ---- weights ----

    @property
    def trainable_weights(self) -> List[Any]:
        """The variables that are trained."""
        return self._trainable_weights if self.trainable else []

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The other variables."""
        return self._non_trainable_weights if self.trainable else self._trainable_weights + self._non_trainable_weights

    @property
    def weights(self) -> List[Any]:
        """All variables, the trained ones first."""
        return self.trainable_weights + self.non_trainable_weights

    variables = property(lambda self: self.weights, doc="All variables, the trained ones first.")
    trainable_variables = property(lambda self: self.trainable_weights, doc="The variables that are trained.")
    non_trainable_variables = property(lambda self: self.non_trainable_weights, doc="The other variables.")

    def get_weights(self) -> List[Any]:
        """The values of its variables."""
        from millrace.keras import backend as K

        return K.batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Sets its variables."""
        from millrace.keras import backend as K

        variables = self.weights
        if len(variables) != len(weights):
            raise at_user_line(
                ValueError(
                    'You called `set_weights(weights)` on layer "%s" with a  weight list of length %d, but the layer was expecting %d '
                    "weights." % (self.name, len(weights), len(variables))
                )
            )
        pairs = []
        for v, value in zip(variables, weights):
            value = np.asarray(value)
            if tuple(v.get_shape().as_list()) != value.shape:
                raise at_user_line(
                    ValueError("Layer weight shape %s not compatible with provided weight shape %s" % (tuple(v.get_shape().as_list()), value.shape))
                )
            pairs.append((v, value))
        K.batch_set_value(pairs)

    def count_params(self) -> int:
        """The number of elements of its variables."""
        if not self.built:
            raise at_user_line(
                ValueError(
                    "You tried to call `count_params` on %s, but the layer isn't built. You can build it manually via: "
                    "`%s.build(batch_input_shape)`." % (self.name, self.name)
                )
            )
        return int(sum(v.get_shape().num_elements() for v in self.weights))

    # ---- what it is ----

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        del input_shape  # it changes nothing
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return inputs

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs where the layer carries masks on."""
        if not self.supports_masking:
            if any(m is not None for m in listed(mask)):
                raise at_user_line(TypeError("Layer %s does not support masking, but was passed an input_mask: %s" % (self.name, mask)))
            return None
        return mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs for shapes of inputs: a copy of the layer is called in a graph of its own."""
        many = isinstance(input_shape, list) and bool(input_shape) and isinstance(input_shape[0], (tuple, list, TensorShape))
        from millrace.ops import array_ops

        kind: Any = type(self)
        with Graph().as_default():
            kinds = getattr(self, "_input_dtypes", None) or []
            inputs = [
                array_ops.placeholder(kinds[i] if i < len(kinds) else self._dtype_of_inputs(), TensorShape(s))
                for i, s in enumerate(input_shape if many else [input_shape])
            ]
            made = kind.from_config(self.get_config())(inputs if many else inputs[0])
            shapes = [x.get_shape() for x in listed(made)]
        return shapes if isinstance(made, (list, tuple)) else shapes[0]

    def compute_output_signature(self, input_signature: Any) -> Any:
        """The TensorSpecs of the outputs for TensorSpecs of inputs."""
        from millrace.framework.type_spec import TensorSpec

        given = listed(input_signature)
        shapes = self.compute_output_shape([s.shape for s in given] if isinstance(input_signature, list) else input_signature.shape)
        kind = dtypes.as_dtype(getattr(self, "dtype", None) or given[0].dtype)
        if isinstance(shapes, list) and (not shapes or isinstance(shapes[0], (tuple, list, TensorShape))):
            return [TensorSpec(TensorShape(s), kind) for s in shapes]
        return TensorSpec(TensorShape(shapes), kind)

    def _dtype_of_inputs(self) -> Any:
        return getattr(self, "dtype", None) or dtypes.float32

    def _compute_output_shape(self, input_shape: Any) -> Any:
        shapes = self.compute_output_shape(input_shape)
        return [TensorShape(s) for s in shapes] if isinstance(shapes, list) else TensorShape(shapes)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {"name": self.name, "trainable": self.trainable}

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> Any:
        """A layer of what get_config gave."""
        return cls(**config)

    def _check(self, tensors: List[Any]) -> None:
        if self.input_spec is None:
            return
        specs = listed(self.input_spec)
        if len(specs) != len(tensors):
            if not isinstance(self.input_spec, (list, tuple)):
                specs = specs * len(tensors)
            else:
                raise at_user_line(
                    ValueError(
                        "Layer %s expects %d inputs, but it received %d input tensors. Inputs received: %s" % (self.name, len(specs), len(tensors), tensors)
                    )
                )
        for i, (x, spec) in enumerate(zip(tensors, specs)):
            if spec is not None and isinstance(x, Tensor):
                spec.check(x, i, self.name)

    # ---- calls ----

    def _connect(self, tensors: List[Any], outputs: List[Any], arguments: Dict[str, Any], many: bool) -> None:
        """Notes a call, and in its outputs where they come from."""
        before = [getattr(x, "_keras_history", None) or History(None, 0, 0) for x in tensors]
        Node(self, [h.layer for h in before], [h.node_index for h in before], [h.tensor_index for h in before], tensors, outputs, arguments, many=many)
        for i, x in enumerate(outputs):
            x._keras_history = History(self, len(self._inbound_nodes) - 1, i)

    def _node(self, index: int, what: str) -> Node:
        if not self._inbound_nodes:
            raise at_user_line(RuntimeError("The layer has never been called and thus has no defined %s." % what))
        if not len(self._inbound_nodes) > index:
            raise at_user_line(ValueError("Asked to get %s at node %d, but the layer has only %d inbound nodes." % (what, index, len(self._inbound_nodes))))
        return self._inbound_nodes[index]

    def get_input_at(self, node_index: int) -> Any:
        """The inputs of a call."""
        return one_or_all(self._node(node_index, "input").input_tensors)

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of a call."""
        return one_or_all(self._node(node_index, "output").output_tensors)

    def get_input_shape_at(self, node_index: int) -> Any:
        """The shapes of the inputs of a call."""
        return one_or_all(self._node(node_index, "input shape").input_shapes)

    def get_output_shape_at(self, node_index: int) -> Any:
        """The shapes of the outputs of a call."""
        return one_or_all(self._node(node_index, "output shape").output_shapes)

    def get_input_mask_at(self, node_index: int) -> Any:
        """The masks of the inputs of a call."""
        return one_or_all(self._node(node_index, "input mask").input_masks)

    def get_output_mask_at(self, node_index: int) -> Any:
        """The masks of the outputs of a call."""
        return one_or_all(self._node(node_index, "output mask").output_masks)

    def _only(self, field: str, what: str) -> Any:
        if not self._inbound_nodes:
            raise at_user_line(AttributeError("Layer %s is not connected, no %s to return: it has never been called" % (self.name, what)))
        found = [getattr(node, field) for node in self._inbound_nodes]
        same = all(f == found[0] for f in found) if field.endswith("shapes") else len(found) == 1
        if not same:
            raise at_user_line(
                AttributeError(
                    'Layer %s has multiple inbound nodes with different %ss. Hence the notion of "layer %s" is ill-defined. '
                    "Use `get_%s_at(node_index)` instead." % (self.name, what, what, what.replace(" ", "_"))
                )
            )
        return one_or_all(found[0])

    input = property(lambda self: self._only("input_tensors", "input"), doc="The inputs of its one call.")
    output = property(lambda self: self._only("output_tensors", "output"), doc="The outputs of its one call.")
    input_shape = property(lambda self: self._only("input_shapes", "input shape"), doc="The shapes of its inputs.")
    output_shape = property(lambda self: self._only("output_shapes", "output shape"), doc="The shapes of its outputs.")
    input_mask = property(lambda self: self._only("input_masks", "input mask"), doc="The masks of its inputs.")
    output_mask = property(lambda self: self._only("output_masks", "output mask"), doc="The masks of its outputs.")
    inbound_nodes = property(lambda self: self._inbound_nodes, doc="Its calls.")
    outbound_nodes = property(lambda self: self._outbound_nodes, doc="The calls of others with its outputs.")

    @property
    def name_scope(self) -> Any:
        """The scope that is named after it, to be entered by `with`."""
        return name_scope(self.name + "/")

    @property
    def graph(self) -> Any:
        """The graph that it lies in."""
        return getattr(self, "_graph", None) or get_default_graph()
