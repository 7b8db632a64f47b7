# SPDX-License-Identifier: Apache-2.0
"""The class that all layers stand on: its calls, weights, losses and metrics."""

from __future__ import annotations

import contextlib
import copy
import inspect
from typing import Any, Dict, List, Optional

import numpy as np

from millrace.autograph.conversion import tried
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import OperatorNotAllowedInGraphError, at_user_line
from millrace.framework.graph import Graph, Tensor, get_default_graph, init_scope, name_scope
from millrace.framework.replication import trainable_of_layer
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import TensorSpec
from millrace.framework.unique_names import snake, unique_name
from millrace.keras import backend as K
from millrace.keras import constraints, initializers, regularizers
from millrace.keras.utils.generic_utils import custom_object_scope
from millrace.layers import casting, policies
from millrace.layers.nodes import History, Node, Places, arranged, each_shape, is_deep, listed, one_or_all
from millrace.layers.parts import Parts, calls
from millrace.ops import array_ops, math_ops
from millrace.ops.variables import Variable


def arguments_of(function: Any) -> List[str]:
    """The names of a function's arguments."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _takes(function: Any, name: str) -> bool:
    """Whether a function can be called with a keyword."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _must_be_given(function: Any, name: str) -> bool:
    """Whether a function has an argument of this name, and no default for it."""
    parameter = inspect.signature(function).parameters.get(name)
    return parameter is not None and parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL


def needed_arguments(function: Any) -> List[str]:
    """The arguments that a call must be given, beside the inputs and `training`."""
    plain = [p for p in inspect.signature(function).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [p.name for p in plain[1:] if p.default is p.empty and p.name != "training"]


def is_keras_tensor(x: Any) -> bool:
    """Whether a layer or Input has made it."""
    return getattr(x, "_keras_history", None) is not None


def _is_tensor(x: Any) -> bool:
    """Whether it is a tensor of the graph, or made of some."""
    return isinstance(x, (Tensor, CompositeTensor))


def as_tensor(x: Any) -> Any:
    """An input of a layer: a tensor; what has parts, and what cannot be one, stays as it is."""
    if isinstance(x, (Tensor, CompositeTensor, tuple, list, dict)):
        return x
    try:
        return convert_to_tensor(x)
    except TypeError:
        return x


class Layer(Parts):
    """Base of layers: build(shape) makes weights by add_weight, call(inputs) computes. Weights are named after the layer."""

    input_spec: Any = None
    supports_masking = False
    uses_learning_phase = False
    _layers_of_operations: Any = staticmethod(lambda values: None)  # makes layers of operations: operations.py, which has these, sets it
    _mean_of_batches: Any = None  # the metric that add_metric makes: metric_base.py, whose metrics are layers themselves, sets it
    _name: Any = ""
    _dtype: Any = None
    _dtype_policy = policies.Policy("infer")
    built = False
    _keeps_tuples = False  # inputs in a tuple are one structure, not several inputs
    _casts = False  # inputs of other floating types to its own
    _reads_in_its_type = True  # variables, where they have another one
    dynamic = False  # its call makes operations
    activity_regularizer: Any = None

    def __init__(
        self,
        trainable: bool = True,
        name: Optional[str] = None,
        dtype: Any = None,
        activity_regularizer: Any = None,
        input_shape: Any = None,
        batch_input_shape: Any = None,
        batch_size: Optional[int] = None,
        input_dim: Optional[int] = None,
        input_length: Optional[int] = None,
        weights: Any = None,
        autocast: bool = True,
        dynamic: bool = False,
        **unused: Any,
    ) -> None:
        if dynamic:
            raise at_user_line(
                NotImplementedError(
                    "dynamic=True: layers that can only be run by eager execution are not provided. Let call make operations, with tf.cond and tf.while_loop."
                )
            )
        if unused:
            raise at_user_line(TypeError("Keyword argument not understood: %s" % sorted(unused)[0]))
        self._trainable, self.built = trainable, False
        self._init_parts()
        self._added_metrics: List[Any] = []  # pairs of a metric and what it gives with a batch
        self._inbound_nodes: List[Node] = []
        self._outbound_nodes: List[Node] = []
        self._init_set_name(name)
        self._graph = get_default_graph()
        self._set_policy(policies.policy_of(dtype))
        self._casts = autocast and (casting.v2_dtype_behavior_enabled() or self._dtype_policy.should_cast_variables)
        self._warns_of_casts = dtype is None and policies.policy_defaults_to_floatx()
        self.activity_regularizer = regularizers.get(activity_regularizer)
        if batch_input_shape is None and input_shape is not None:
            batch_input_shape = (batch_size, *input_shape)
        if batch_input_shape is None and input_dim is not None:
            batch_input_shape = (batch_size, input_dim) if input_length is None else (batch_size, input_length, input_dim)
        if batch_input_shape is not None:
            self.batch_input_shape: Any = tuple(batch_input_shape)
        self._first_values = weights
        self._input_dtypes: List[Any] = []

    def __repr__(self) -> str:
        shapes = ", ".join(str(w.get_shape()) for w in self._trainable_weights + self._non_trainable_weights)
        return "<%s '%s'%s>" % (type(self).__name__, getattr(self, "name", ""), ", weights %s" % shapes if shapes else "" if self.built else ", not built yet")

    @property
    def _batch_input_shape(self) -> Any:
        """The shape of inputs that it was told, as programs name it that change it before they copy a model."""
        return self.batch_input_shape

    @_batch_input_shape.setter
    def _batch_input_shape(self, shape: Any) -> None:
        self.batch_input_shape = tuple(shape)

    # ---- metrics ----

    @property
    def metrics(self) -> List[Any]:
        """The metrics that add_metric was given, and those of its parts."""
        return list(dict.fromkeys([*(metric for metric, _ in self._added_metrics), *self._of_parts("metrics")]))

    def add_metric(self, value: Any, aggregation: Optional[str] = None, name: Optional[str] = None) -> None:
        """Adds a tensor that models count over batches: its mean, with aggregation "mean"; without, what calling a tf.keras.metrics.Metric gave."""
        if aggregation not in (None, "mean"):
            raise at_user_line(ValueError("We currently support only `mean` sample-wise metric aggregation. You provided aggregation=`%s`" % aggregation))
        metric = getattr(value, "_metric_obj", None)
        if metric is None and name is None:
            raise at_user_line(
                ValueError("Please provide a name for your metric like `self.add_metric(tf.reduce_sum(inputs), name='mean_activation', aggregation='mean')`")
            )
        if metric is None and aggregation is None:
            raise at_user_line(
                ValueError(
                    "We do not support adding an aggregated metric result tensor that is not the output of a `tf.keras.metrics.Metric` metric instance: "
                    "its state could not be reset after each epoch. Pass what calling a metric gave, or aggregation='mean', got %s" % (value,)
                )
            )
        called = metric.name if metric is not None else name
        held = sum(part._is_metric and part.name == called for part in self._attributes(Parts))
        if held > 1:
            raise at_user_line(
                ValueError('Please provide different names for the metrics you have added. We found %d metrics with the name: "%s"' % (held, called))
            )
        if metric is None:
            metric = next((m for m in self.metrics if m.name == name), None) or self._mean_of_batches(name)
            value = metric(value)
        self._added_metrics.append((metric, value))

    # ---- weights ----

    def add_weight(
        self,
        name: Optional[str] = None,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: Optional[bool] = None,
        constraint: Any = None,
        *,
        use_resource: Optional[bool] = None,
        experimental_autocast: bool = True,
        synchronization: Any = None,
        aggregation: Any = None,
        **unused: Any,
    ) -> Any:
        """Makes a variable of the layer, named in the scope around: in build, that of the layer's first call. It is a resource variable unless
        use_resource=False. In a layer that computes in another type than its variables have it is read in that one, unless experimental_autocast=False."""
        trainable = trainable_of_layer(trainable, synchronization, aggregation)
        shape = () if shape is None else shape
        for size in listed(shape):
            if isinstance(size, (int, np.integer)) and size < 0:
                raise at_user_line(ValueError("Dimension %d must be >= 0" % size))
        sizes = [int(d) for d in TensorShape(shape)]
        kind = dtypes.as_dtype(dtype or K.floatx() if self.dtype is None or not dtypes.as_dtype(self.dtype).is_floating else dtype or self.dtype)
        if initializer is None:
            initializer = "glorot_uniform" if kind.is_floating else "zeros" if kind.is_integer or kind == dtypes.bool_ else None
        if initializer is None:
            raise at_user_line(ValueError("An initializer for variable %s of type %s is required for layer %s" % (name, kind, self.name)))
        start = initializers.get(initializer)
        with init_scope():
            made = Variable(
                lambda: _started(start, sizes, kind), trainable, name=name, constraint=constraints.get(constraint), use_resource=use_resource is not False
            )
        if experimental_autocast and self._reads_in_its_type and self._dtype_policy.should_cast_variables and kind.is_floating and made._is_resource:
            made = policies.AutoCastVariable(made)
        (self._trainable_weights if trainable else self._non_trainable_weights).append(made)
        self._named_weights[made.op.name if name is None else name] = made
        penalty = regularizers.get(regularizer)
        if penalty is not None:

            def loss() -> Any:
                with made.graph.as_default(), init_scope(), name_scope(made.op.name + "/Regularizer"):
                    with get_default_graph()._enable_auto_casting_variables(None):
                        return penalty(made)

            self._penalties.append(loss)
        return made

    add_variable = add_weight

    def get_weights(self) -> List[Any]:
        """The values of its variables."""
        return K.batch_get_value(self.weights)

    def set_weights(self, weights: Any) -> None:
        """Sets its variables."""
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
        return str(self._name)

    @name.setter
    def name(self, value: str) -> None:
        self._name = value

    def _init_set_name(self, name: Optional[str]) -> None:
        self._name = name or unique_name(snake(type(self).__name__))

    @property
    def dtype(self) -> Any:
        """The type of its variables, by name; None before it is known."""
        return None if self._dtype is None else self._dtype.name

    def _set_policy(self, policy: policies.Policy) -> None:
        self._dtype_policy = policy
        self._dtype = None if policy.variable_dtype is None else dtypes.as_dtype(policy.variable_dtype)

    @property
    def _compute_type(self) -> Any:
        name = self._dtype_policy.compute_dtype
        return self._dtype if name is None else dtypes.as_dtype(name)

    @property
    def _compute_dtype(self) -> Any:
        """The name of the type that it computes in; None before it is known."""
        kind = self._compute_type
        return None if kind is None else kind.name

    def _reading_variables(self) -> Any:
        """A context in which variables that are cast have the type that the layer computes in."""
        graph, kind = get_default_graph(), self._compute_type
        casts = self._dtype_policy.should_cast_variables or graph._auto_cast_variable_read_dtype is not None
        return graph._enable_auto_casting_variables(kind) if casts and kind is not None and kind.is_floating else contextlib.nullcontext()

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        del input_shape  # it changes nothing
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return inputs

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer at the first call, then computes."""
        outermost, calls.inside, around = not calls.inside, True, (calls.training, calls.inputs)
        try:
            if outermost:
                self._layers_of_operations([inputs, args, kwargs])
            return self._build_and_call(inputs, *args, **kwargs)
        finally:
            calls.inside, (calls.training, calls.inputs) = not outermost, around

    def _build_and_call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        form: Any = isinstance(inputs, (list, tuple))
        if is_deep(inputs) or self._keeps_tuples and isinstance(inputs, tuple):
            form, inputs = Places(inputs), nest.flatten(inputs)
        elif isinstance(inputs, dict) and any(is_keras_tensor(x) for x in inputs.values()):
            form, inputs = list(inputs), list(inputs.values())
        taken = arguments_of(self.call)
        arguments = {**dict(zip(taken[1:], args)), **kwargs}
        if "training" in arguments:
            calls.training = arguments["training"]
        elif "training" in taken:
            kwargs.update(self._training_of_parent())
        if "training" in kwargs and not _takes(self.call, "training"):
            del kwargs["training"]  # the layers that it calls are told
        with self._around_call():
            calls.inputs = tensors = [as_tensor(x) for x in listed(inputs)]
            given = arranged(tensors, form)
            masks = [getattr(x, "_keras_mask", None) for x in tensors]
            masked = any(m is not None for m in masks)
            mask = arranged(masks, form)
            if "mask" in arguments:
                mask = arguments["mask"]
            elif not masked:
                mask = None
            elif "mask" in taken:
                kwargs["mask"] = mask
            self._check(tensors)
            if not self.built:
                self._build_once(tensors, form)
            asked = K.phase_requests()
            made = self._computed_from(tensors, form, *args, **kwargs)
            if made is None:
                raise at_user_line(ValueError("A layer's `call` method should return a Tensor or a list of Tensors, not None (layer: %s)." % self.name))
            outputs = nest.flatten(made)
            self._regularize(outputs, tensors)
            if self._tracks(tensors):
                of_model = any(is_keras_tensor(x) for x in tensors)
                outputs = [
                    convert_to_tensor(t) if isinstance(t, Variable) else array_ops.identity(t) if of_model and any(t is x for x in tensors) else t
                    for t in outputs
                ]
                while_training = K.phase_requests() > asked or any(getattr(x, "_uses_learning_phase", False) for x in tensors) or self.uses_learning_phase
                told = [getattr(t, "_keras_mask", None) for t in outputs]  # by layers that call has called
                new_masks = told if all(m is not None for m in told) else self._masks_behind(given, mask)
                for i, t in enumerate(outputs):
                    if not getattr(t, "_uses_learning_phase", False):
                        t._uses_learning_phase = while_training
                    t._keras_mask = new_masks[i] if i < len(new_masks) else None
                if of_model:
                    self._connect(tensors, outputs, arguments, form)
                return nest.pack_sequence_as(made, outputs)
        return made

    def _computed_from(self, tensors: List[Any], form: Any, *args: Any, **kwargs: Any) -> Any:
        """What call makes of inputs, of the types that the layer computes in."""
        given = casting.cast_inputs(self, tensors) if self._casts else tensors
        try:
            with self._reading_variables():
                return tried(self.call, arranged(given, form), *args, **kwargs)
        except OperatorNotAllowedInGraphError as error:
            raise at_user_line(
                TypeError(
                    "You are attempting to use Python control flow in a layer that was not declared to be dynamic. Let call make operations, with tf.cond and "
                    "tf.while_loop. Encountered error: %s" % error
                )
            ) from error

    def _training_of_parent(self) -> Dict[str, Any]:
        """The argument `training` of a call that was not given one: what a layer around was told; if nothing and call must have it, the phase."""
        if calls.training is not None:
            return {"training": calls.training}
        return {"training": K.learning_phase()} if _must_be_given(self.call, "training") else {}

    def _regularize(self, outputs: List[Any], inputs: List[Any]) -> None:
        """Adds the activity regularizer's loss for outputs, for each example of the batch."""
        if self.activity_regularizer is not None:
            with get_default_graph().name_scope("ActivityRegularizer"):
                for t in outputs:
                    loss = self.activity_regularizer(t)
                    self.add_loss(loss / math_ops.cast(array_ops.shape(t)[0], loss.dtype.base_dtype), inputs=inputs)

    def _around_call(self) -> Any:
        """The scope of a call."""
        return get_default_graph().name_scope(self.name)

    def _tracks(self, tensors: List[Any]) -> bool:
        """Whether outputs are to know the masks of this layer, and where they come from if a model's tensor goes in."""
        return bool(tensors) and _is_tensor(tensors[0])

    def _build_once(self, tensors: List[Any], form: Any) -> None:
        self._input_dtypes = [x.dtype.base_dtype for x in tensors if _is_tensor(x)]
        if self._dtype_policy.compute_dtype is None and self._input_dtypes:
            if self._dtype is None or self._dtype_policy.variable_dtype is not None:
                self._set_policy(policies.with_input_dtype(self._dtype_policy, self._input_dtypes[0]))
        shapes = [x.get_shape() if _is_tensor(x) else None for x in tensors]
        self.build(arranged(shapes, form))
        self.built = True
        if self._first_values is not None:
            self.set_weights(self._first_values)
            self._first_values = None

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def _masks_behind(self, inputs: Any, mask: Any) -> List[Any]:
        """The masks of the outputs of a call: none where the layer neither carries masks on nor says itself what becomes of them."""
        says = self.supports_masking or type(self).compute_mask is not Layer.compute_mask
        return listed(self.compute_mask(inputs, mask)) if says else []

    @property
    def _call_fn_args(self) -> List[str]:
        """The names of the arguments of its call."""
        return [name for name in arguments_of(self.call) if name != "self"]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the outputs: that of the inputs where the layer carries masks on."""
        if not self.supports_masking:
            if any(m is not None for m in listed(mask)):
                raise at_user_line(TypeError("Layer %s does not support masking, but was passed an input_mask: %s" % (self.name, mask)))
            return None
        return mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs for shapes of inputs: a copy of the layer is called in a graph of its own."""
        with Graph().as_default():
            kinds = iter(getattr(self, "_input_dtypes", None) or [])
            inputs = each_shape(lambda shape: array_ops.placeholder(next(kinds, self._dtype_of_inputs()), shape), input_shape)
            made = self._twin()(inputs)
        if isinstance(made, dict) or is_deep(made):
            return nest.map_structure(lambda x: x.get_shape(), made)
        shapes = [x.get_shape() for x in listed(made)]
        return shapes if isinstance(made, (list, tuple)) else shapes[0]

    def _twin(self) -> Any:
        """A layer that was made in the same way, of classes that need not be known by name."""
        kind: Any = type(self)
        with custom_object_scope({type(part).__name__: type(part) for part in self.submodules}):
            return kind.from_config(self.get_config())

    def compute_output_signature(self, input_signature: Any) -> Any:
        """The TensorSpecs of the outputs for TensorSpecs of inputs."""
        given = listed(input_signature)
        shapes = self.compute_output_shape([s.shape for s in given] if isinstance(input_signature, list) else input_signature.shape)
        kind = self._compute_type or dtypes.as_dtype(given[0].dtype)
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
        taken = set(arguments_of(type(self).__init__)) - {"self", "kwargs", "args", "name", "trainable", "dtype", "batch_input_shape"}
        if type(self).get_config is Layer.get_config and type(self).__init__ is not Layer.__init__ and taken:
            raise at_user_line(NotImplementedError("Layers with arguments in `__init__` must override `get_config`."))
        config: Dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if hasattr(self, "batch_input_shape"):
            config["batch_input_shape"] = self.batch_input_shape
        config["dtype"] = self.dtype
        return config

    def __deepcopy__(self, memo: Any) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for key, value in vars(self).items():
            if key in ("_graph", "_scope") or isinstance(value, (Tensor, Variable)):
                made.__dict__[key] = value
                continue
            try:
                made.__dict__[key] = copy.deepcopy(value, memo)
            except (TypeError, AttributeError):
                made.__dict__[key] = value
        return made

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

    def _connect(self, tensors: List[Any], outputs: List[Any], arguments: Dict[str, Any], form: Any) -> None:
        """Notes a call, and in its outputs where they come from."""
        before = [getattr(x, "_keras_history", None) or History(None, 0, 0) for x in tensors]
        Node(self, [h.layer for h in before], [h.node_index for h in before], [h.tensor_index for h in before], tensors, outputs, arguments, form=form)
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
        return one_or_all(self._node(node_index, "input").taken)

    def get_output_at(self, node_index: int) -> Any:
        """The outputs of a call."""
        return one_or_all(self._node(node_index, "output").made)

    def get_input_shape_at(self, node_index: int) -> Any:
        """The shapes of the inputs of a call."""
        return one_or_all(self._node(node_index, "input shape").taken_shapes)

    def get_output_shape_at(self, node_index: int) -> Any:
        """The shapes of the outputs of a call."""
        return one_or_all(self._node(node_index, "output shape").made_shapes)

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

    input = property(lambda self: self._only("taken", "input"), doc="The inputs of its one call.")
    output = property(lambda self: self._only("made", "output"), doc="The outputs of its one call.")
    input_shape = property(lambda self: self._only("taken_shapes", "input shape"), doc="The shapes of its inputs.")
    output_shape = property(lambda self: self._only("made_shapes", "output shape"), doc="The shapes of its outputs.")
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


def _started(start: Any, sizes: List[int], kind: Any) -> Any:
    try:
        return start(sizes, dtype=kind)
    except TypeError as error:
        if "dtype" not in str(error):
            raise
        return start(sizes)
