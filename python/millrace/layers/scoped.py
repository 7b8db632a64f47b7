# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.layers: layers that make their own variables, as classes and as functions."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, Tensor, control_dependencies, get_default_graph, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.layers import utils as layers_utils
from millrace.layers.base import BaseLayer, InputSpec, Node  # noqa: F401
from millrace.framework.unique_names import snake as _snake
from millrace.framework.unique_names import unique_name
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, nn_ops
from millrace.ops.control_flow_ops import smart_cond
from millrace.ops.variable_scope import VariableScope, get_variable, get_variable_scope, variable_scope
from millrace.ops.variables import PartitionedVariable, Variable

if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import ParamSpec

    _Parameters = ParamSpec("_Parameters")

    class _Function(Protocol[_Parameters]):
        """A function that makes a layer and calls it: with what the layer takes, and `reuse`."""

        def __call__(self, inputs: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Tensor: ...


class Layer(BaseLayer):
    """Base of layers: build(shape) makes variables by add_variable, call(inputs) computes."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        made.__dict__["_made_with"] = (args, {k: v for k, v in kwargs.items() if k not in ("_scope", "_reuse")})
        return made

    def __init__(
        self,
        trainable: bool = True,
        name: Optional[str] = None,
        dtype: Any = None,
        activity_regularizer: Any = None,
        _scope: Any = None,
        _reuse: Any = None,
        input_shape: Any = None,
        batch_input_shape: Any = None,
        batch_size: Optional[int] = None,
        **unused: Any,
    ) -> None:
        if unused:
            raise at_user_line(TypeError("Keyword argument not understood: %s" % sorted(unused)[0]))
        self._start(trainable)
        self._graph = get_default_graph()
        self._given_name, self._dtype, self._activity_regularizer = name, None if dtype is None else dtypes.as_dtype(dtype), activity_regularizer
        self._reuse, self._scope = _reuse, None
        self._default_name = _snake(type(self).__name__)
        self._name: Any = unique_name(self._default_name, 1) if name is None and _scope is None else None
        if input_shape is not None or batch_input_shape is not None:
            self.batch_input_shape = tuple(batch_input_shape) if batch_input_shape is not None else (batch_size, *input_shape)
        if _scope is not None:
            with variable_scope(_scope) as captured:
                self._scope = captured

    @property
    def name(self) -> str:
        """Its name."""
        return self._given_name or self._name or (self._scope.name.split("/")[-1] if self._scope is not None else self._default_name)

    @property
    def dtype(self) -> Any:
        """The type of its variables."""
        return self._dtype

    activity_regularizer = property(lambda self: self._activity_regularizer, doc="What is added to the loss for each output, or None.")
    graph = property(lambda self: self._graph, doc="The graph that it lies in.")

    @property
    def scope_name(self) -> str:
        """The variable scope of its variables."""
        if self._scope is None:
            raise at_user_line(
                ValueError(
                    'No name available for layer scope because the layer "%s" has not been used yet. The scope name is determined the first '
                    "time the layer instance is called. You must therefore call the layer before querying `scope_name`." % self.name
                )
            )
        return str(self._scope.name)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that are to be run with each training step."""
        for update in self._note(self._updates, updates, inputs):
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses."""
        for loss in self._note(self._losses, losses, inputs):
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_variable(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool = True,
        constraint: Any = None,
        partitioner: Any = None,
        **unused: Any,
    ) -> Any:
        """Makes, or finds, a variable of the layer; one that is there already is not the layer's own."""
        known = set(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES))
        scope = self._open(None)
        inside = get_variable_scope() is self._inside
        with contextlib.ExitStack() as stack:
            if not inside:
                stack.enter_context(variable_scope(scope, reuse=True if self.built or self._reuse else None, auxiliary_name_scope=False))
                stack.enter_context(name_scope(scope.original_name_scope))
            variable = get_variable(
                name,
                shape=shape,
                dtype=dtype or self._dtype or dtypes.float32,
                initializer=initializer,
                constraint=constraint,
                trainable=trainable and self.trainable,
                partitioner=partitioner,
            )
            parts = list(variable) if isinstance(variable, PartitionedVariable) else [variable]
            if all(v in known for v in parts):
                return variable
            for v in parts if regularizer is not None else []:
                with name_scope(name + "/Regularizer"):
                    loss = regularizer(v)
                if loss is not None:
                    self.add_loss(loss)
        (self._trainable_weights if trainable else self._non_trainable_weights).append(variable)
        return variable

    add_weight = add_variable
    _inside: Any = None

    def _open(self, scope: Any) -> VariableScope:
        if self._scope is None:
            stem = self._given_name or self._default_name
            if self._reuse:
                opened = variable_scope(scope if scope is not None else stem)
            else:
                opened = variable_scope(scope, default_name=stem)
            with opened as captured:
                self._scope = captured
        return self._scope

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        captured = self._open(kwargs.pop("scope", None))
        listed = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        for x in listed:
            if isinstance(x, Tensor) and x.graph is not self._graph and self.built:
                raise at_user_line(ValueError("Input graph and Layer graph are not the same: %s is not from the graph of layer %s." % (x, self.name)))
        arguments = dict(kwargs)
        with variable_scope(captured, reuse=True if self.built or self._reuse else None, auxiliary_name_scope=False) as inner:
            outer, self._inside = self._inside, inner
            try:
                with name_scope(captured.original_name_scope):
                    tensors = [convert_to_tensor(i) if not isinstance(i, (tuple, list, dict)) and not hasattr(i, "indices") else i for i in listed]
                    if self._dtype is None and tensors and isinstance(tensors[0], Tensor):
                        self._dtype = tensors[0].dtype.base_dtype
                    value: Any = tensors if isinstance(inputs, (list, tuple)) else tensors[0]
                    if not self.built:
                        self._graph = get_default_graph()
                        self._check(tensors)
                        shapes = [t.get_shape() if isinstance(t, Tensor) else None for t in tensors]
                        self.build(shapes if isinstance(inputs, (list, tuple)) else shapes[0])
                    self._check(tensors)
                    outputs = self.call(value, *args, **kwargs)
                    if outputs is None:
                        raise at_user_line(ValueError("A layer's `call` method should return a Tensor or a list of Tensors, not None."))
                    if self._activity_regularizer is not None:
                        for output in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
                            with name_scope("ActivityRegularizer"):
                                self.add_loss(self._activity_regularizer(output))
                    if tensors and all(hasattr(t, "_keras_history") for t in tensors):
                        outputs = self._kept_track(tensors, outputs, arguments, isinstance(inputs, (list, tuple)))
            finally:
                self._inside = outer
        self.built = True
        return outputs

    def _kept_track(self, tensors: List[Any], outputs: Any, arguments: Dict[str, Any], many: bool) -> Any:
        """The outputs, which know that this layer has made them."""
        made = [array_ops.identity(t) if any(t is x for x in tensors) else t for t in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
        for t in made:
            t._uses_learning_phase = any(getattr(x, "_uses_learning_phase", False) for x in tensors)
            t._keras_mask = None
        self._connect(tensors, made, arguments, many)
        return made if isinstance(outputs, (list, tuple)) else made[0]

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shapes of the outputs for shapes of inputs: a layer made the same way is called in a graph of its own."""
        many = isinstance(input_shape, list) and bool(input_shape) and isinstance(input_shape[0], (tuple, list, TensorShape))
        args, kwargs = self._made_with  # type: ignore[attr-defined]
        with Graph().as_default():
            inputs = [array_ops.placeholder(self._dtype or dtypes.float32, TensorShape(s)) for s in (input_shape if many else [input_shape])]
            outputs = type(self)(*args, **kwargs)(inputs if many else inputs[0])
            shapes = [x.get_shape() for x in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
        return shapes if isinstance(outputs, (list, tuple)) else shapes[0]

    def __deepcopy__(self, memo: Any) -> Any:
        made = object.__new__(type(self))
        memo[id(self)] = made
        for key, value in vars(self).items():
            shared = isinstance(value, (Tensor, Variable, Graph, VariableScope)) or key in ("_inbound_nodes", "_outbound_nodes")
            made.__dict__[key] = value if shared else list(value) if isinstance(value, list) else copy.copy(value) if isinstance(value, dict) else value
        return made


class Dense(Layer):
    """activation(inputs kernel + bias)."""

    def __init__(
        self,
        units: Any,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = init_ops.zeros_initializer(),
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs)
        self.units, self.activation, self.use_bias = int(units), _activation(activation), use_bias
        self.kernel_initializer, self.bias_initializer = init_ops.get(kernel_initializer), init_ops.get(bias_initializer)
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        size = TensorShape(input_shape)[-1].value
        if size is None:
            raise at_user_line(ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`."))
        self.kernel = self.add_variable(
            "kernel", [size, self.units], initializer=self.kernel_initializer, regularizer=self.kernel_regularizer, constraint=self.kernel_constraint
        )
        if self.use_bias:
            self.bias = self.add_variable(
                "bias", [self.units], initializer=self.bias_initializer, regularizer=self.bias_regularizer, constraint=self.bias_constraint
            )
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        shape = inputs.get_shape()
        if (shape.ndims or 2) > 2:
            outputs = matrix_ops.tensordot(inputs, self.kernel, [[shape.ndims - 1], [0]])
        else:
            outputs = matrix_ops.matmul(inputs, self.kernel)
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias)
        return self.activation(outputs) if self.activation is not None else outputs


def _activation(given: Any) -> Optional[Callable[..., Any]]:
    if isinstance(given, str):
        from millrace import nn

        return None if given == "linear" else getattr(nn, given)
    return given


_tuple = layers_utils.normalize_tuple


class _Conv(Layer):
    """What convolutions have in common."""

    def __init__(
        self,
        rank: int,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = init_ops.zeros_initializer(),
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, activity_regularizer=activity_regularizer, **kwargs)
        self.rank, self.filters = rank, int(filters) if filters is not None else None
        self.kernel_size, self.strides = _tuple(kernel_size, rank, "kernel_size"), _tuple(strides, rank, "strides")
        self.dilation_rate = _tuple(dilation_rate, rank, "dilation_rate")
        self.padding, self.data_format = padding.lower(), layers_utils.normalize_data_format(data_format)
        if self.padding not in ("valid", "same", "causal"):
            raise at_user_line(ValueError("The `padding` argument must be one of 'valid', 'same'. Received: %s" % padding))
        self.activation, self.use_bias = _activation(activation), use_bias
        self.kernel_initializer, self.bias_initializer = init_ops.get(kernel_initializer), init_ops.get(bias_initializer)
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(ndim=rank + 2)

    @property
    def _first(self) -> bool:
        return self.data_format == "channels_first"

    def _channels(self, input_shape: Any) -> int:
        size = TensorShape(input_shape)[1 if self._first else -1].value
        if size is None:
            raise at_user_line(ValueError("The channel dimension of the inputs should be defined. Found `None`."))
        return int(size)

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        self.kernel = self.add_variable(
            "kernel",
            self.kernel_size + (self._channels(input_shape), self.filters),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self._make_bias()
        self.built = True

    def _make_bias(self) -> None:
        self.bias = (
            self.add_variable("bias", [self.filters], initializer=self.bias_initializer, regularizer=self.bias_regularizer, constraint=self.bias_constraint)
            if self.use_bias
            else None
        )

    def _finish(self, outputs: Any) -> Any:
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias, data_format="NCHW" if self._first else "NHWC")
        return self.activation(outputs) if self.activation is not None else outputs

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        formats = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[self.rank]
        return self._finish(
            nn_ops.convolution(
                inputs,
                self.kernel,
                self.padding.upper(),
                self.strides,
                self.dilation_rate,
                data_format=formats[1 if self._first else 0],
                name="Conv2D" if self.rank == 2 else None,
            )
        )


def _of_rank(rank: int, name: str) -> Any:
    def __init__(self: _Conv, filters: Any, kernel_size: Any, strides: Any = 1, *args: Any, **kwargs: Any) -> None:
        _Conv.__init__(self, rank, filters, kernel_size, strides, *args, **kwargs)

    return type(name, (_Conv,), {"__init__": __init__, "__doc__": "A %d-D convolution." % rank, "__module__": __name__})


Conv1D, Conv2D, Conv3D = _of_rank(1, "Conv1D"), _of_rank(2, "Conv2D"), _of_rank(3, "Conv3D")
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D


class _ConvTranspose(_Conv):
    """The transpose of a convolution."""

    _op: Callable[..., Any]

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        self.kernel = self.add_variable(
            "kernel",
            self.kernel_size + (self.filters, self._channels(input_shape)),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self._make_bias()
        self.built = True

    def _length(self, size: Any, i: int) -> Any:
        if size is None:
            return None
        size = size * self.strides[i]
        return size + max(self.kernel_size[i] - self.strides[i], 0) if self.padding == "valid" else size

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        static, dynamic = inputs.get_shape().as_list(), array_ops.shape(inputs)
        axes = range(2, self.rank + 2) if self._first else range(1, self.rank + 1)
        sizes = [self._length(static[a] if static[a] is not None else dynamic[a], i) for i, a in enumerate(axes)]
        batch = static[0] if static[0] is not None else dynamic[0]
        shape = [batch, self.filters] + sizes if self._first else [batch] + sizes + [self.filters]
        strides = (1, 1) + self.strides if self._first else (1,) + self.strides + (1,)
        outputs = self._op(
            inputs,
            self.kernel,
            array_ops.stack(shape) if any(isinstance(s, Tensor) for s in shape) else shape,
            strides,
            self.padding.upper(),
            layers_utils.convert_data_format(self.data_format, self.rank + 2),
        )
        known = [static[0]] + [self._length(static[a], i) for i, a in enumerate(axes)]
        outputs.set_shape([known[0], self.filters] + known[1:] if self._first else known + [self.filters])
        return self._finish(outputs)


class Conv2DTranspose(_ConvTranspose):
    """The transpose of a 2-D convolution."""

    _op = staticmethod(nn_ops.conv2d_transpose)

    def __init__(
        self, filters: Any, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid", data_format: str = "channels_last", **kwargs: Any
    ) -> None:
        super().__init__(2, filters, kernel_size, strides, padding, data_format, **kwargs)


class Conv3DTranspose(_ConvTranspose):
    """The transpose of a 3-D convolution."""

    _op = staticmethod(nn_ops.conv3d_transpose)

    def __init__(
        self, filters: Any, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid", data_format: str = "channels_last", **kwargs: Any
    ) -> None:
        super().__init__(3, filters, kernel_size, strides, padding, data_format, **kwargs)


class SeparableConv2D(_Conv):
    """A convolution of each channel alone, then a 1x1 convolution."""

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = (1, 1),
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = init_ops.zeros_initializer(),
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, None, bias_initializer, **kwargs)
        self.depth_multiplier = depth_multiplier
        self.depthwise_constraint, self.pointwise_constraint = depthwise_constraint, pointwise_constraint
        self._initializers, self._regularizers = (depthwise_initializer, pointwise_initializer), (depthwise_regularizer, pointwise_regularizer)

    def build(self, input_shape: Any) -> None:
        """Makes kernels and bias."""
        channels = self._channels(input_shape)
        self.depthwise_kernel = self.add_variable(
            "depthwise_kernel",
            self.kernel_size + (channels, self.depth_multiplier),
            initializer=self._initializers[0],
            regularizer=self._regularizers[0],
            constraint=self.depthwise_constraint,
        )
        self.pointwise_kernel = self.add_variable(
            "pointwise_kernel",
            (1, 1, channels * self.depth_multiplier, self.filters),
            initializer=self._initializers[1],
            regularizer=self._regularizers[1],
            constraint=self.pointwise_constraint,
        )
        self._make_bias()
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        strides = (1, 1) + self.strides if self._first else (1,) + self.strides + (1,)
        return self._finish(
            nn_ops.separable_conv2d(
                inputs,
                self.depthwise_kernel,
                self.pointwise_kernel,
                strides,
                self.padding.upper(),
                list(self.dilation_rate),
                data_format="NCHW" if self._first else "NHWC",
            )
        )


class SeparableConv1D(_Conv):
    """A convolution of each channel of a sequence alone, then one of a single step."""

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = init_ops.zeros_initializer(),
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(1, filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, None, bias_initializer, **kwargs)
        self.depth_multiplier = depth_multiplier
        self._settings = (
            (depthwise_initializer, depthwise_regularizer, depthwise_constraint),
            (pointwise_initializer, pointwise_regularizer, pointwise_constraint),
        )

    def build(self, input_shape: Any) -> None:
        """Makes kernels and bias."""
        channels = self._channels(input_shape)
        shapes = (self.kernel_size + (channels, self.depth_multiplier), (1, channels * self.depth_multiplier, self.filters))
        self.depthwise_kernel, self.pointwise_kernel = (
            self.add_variable(name, shape, initializer=start, regularizer=penalty, constraint=constraint)
            for name, shape, (start, penalty, constraint) in zip(("depthwise_kernel", "pointwise_kernel"), shapes, self._settings)
        )
        self._make_bias()
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output: that of images one pixel high."""
        axis = 2 if self._first else 1
        strides = (1, 1) + self.strides * 2 if self._first else (1,) + self.strides * 2 + (1,)
        made = nn_ops.separable_conv2d(
            array_ops.expand_dims(inputs, axis),
            array_ops.expand_dims(self.depthwise_kernel, 0),
            array_ops.expand_dims(self.pointwise_kernel, 0),
            strides,
            self.padding.upper(),
            [1, *self.dilation_rate],
            data_format="NCHW" if self._first else "NHWC",
        )
        return self._finish(array_ops.squeeze(made, [axis]))


class Dropout(Layer):
    """While training, elements set to zero with probability `rate`, and others scaled up."""

    def __init__(self, rate: Any = 0.5, noise_shape: Any = None, seed: Optional[int] = None, name: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        return smart_cond(training, lambda: nn_ops.dropout(inputs, 1 - self.rate, self.noise_shape, self.seed), lambda: array_ops.identity(inputs))


class Flatten(Layer):
    """[batch, ...] as [batch, elements], channels last."""

    def __init__(self, data_format: str = "channels_last", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = layers_utils.normalize_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=2)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        ndims = inputs.get_shape().ndims
        if self.data_format == "channels_first":
            if ndims is None:
                raise at_user_line(ValueError("Flatten with data_format='channels_first' needs inputs of known rank"))
            inputs = array_ops.transpose(inputs, [0] + list(range(2, ndims)) + [1])
        count = inputs.get_shape()[1:].num_elements() if ndims is not None else None
        outputs = array_ops.reshape(inputs, [-1, count] if count is not None else array_ops.stack([array_ops.shape(inputs)[0], -1]))
        if count is not None:
            outputs.set_shape([inputs.get_shape()[0], count])
        return outputs


class MaxOut(Layer):
    """The largest of each group of features along an axis, so that num_units are left (Goodfellow and others 2013)."""

    def __init__(self, num_units: int, axis: int = -1, name: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.num_units, self.axis = num_units, axis

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        known = inputs.get_shape()
        if known.ndims is None or not -known.ndims <= self.axis < known.ndims:
            raise at_user_line(ValueError("maxout needs inputs of known rank with axis %d, got shape %s" % (self.axis, known)))
        at = self.axis % known.ndims
        features = known[at].value
        if features is None or self.num_units <= 0 or features % self.num_units:
            raise at_user_line(ValueError("number of features (%s) must be a multiple of num_units (%s)" % (features, self.num_units)))
        dynamic = array_ops.shape(inputs)
        sizes = [dim.value if dim.value is not None else dynamic[i] for i, dim in enumerate(known)]
        groups = sizes[:at] + [self.num_units, features // self.num_units] + sizes[at + 1 :]
        outputs = math_ops.reduce_max(array_ops.reshape(inputs, groups), at + 1)
        outputs.set_shape(known[:at].concatenate([self.num_units]).concatenate(known[at + 1 :]))
        return outputs


class BatchNormalization(Layer):
    """Normalisation by the statistics of the batch while training, by their moving averages otherwise.

    The operations that update the averages are in the collection UPDATE_OPS.
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = init_ops.zeros_initializer(),
        gamma_initializer: Any = init_ops.ones_initializer(),
        moving_mean_initializer: Any = init_ops.zeros_initializer(),
        moving_variance_initializer: Any = init_ops.ones_initializer(),
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: Optional[bool] = None,
        trainable: bool = True,
        virtual_batch_size: Any = None,
        adjustment: Any = None,
        name: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        if virtual_batch_size or adjustment:
            raise NotImplementedError("virtual batches are not provided: leave virtual_batch_size and adjustment out")
        self.renorm, self.renorm_momentum, self.renorm_clipping = renorm, renorm_momentum, dict(renorm_clipping or {})
        if set(self.renorm_clipping) - {"rmax", "rmin", "dmax"}:
            raise at_user_line(ValueError("renorm_clipping %s contains keys not in rmax, rmin, dmax" % renorm_clipping))
        self.axis, self.momentum, self.epsilon, self.center, self.scale, self.fused = axis, momentum, epsilon, center, scale, fused
        self._initializers = dict(beta=beta_initializer, gamma=gamma_initializer, mean=moving_mean_initializer, variance=moving_variance_initializer)
        self._regularizers = dict(beta=beta_regularizer, gamma=gamma_regularizer)
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self._bessels_correction_test_only = True  # False: fused layers too keep the variance of the batch itself

    def build(self, input_shape: Any) -> None:
        """Makes scale, offset and averages."""
        shape = TensorShape(input_shape)
        ndims = shape.ndims
        if ndims is None:
            raise at_user_line(ValueError("Input has undefined rank: %s" % shape))
        axis = self.axis[0] if isinstance(self.axis, (list, tuple)) else self.axis
        if ndims == 0:
            raise at_user_line(ValueError("batch_normalization needs inputs with channels, got a scalar"))
        self._axis = axis % ndims
        size = shape[self._axis].value
        if size is None:
            raise at_user_line(
                ValueError("Axis %d of input tensor should have a defined dimension but the layer received an input with shape %s." % (axis, shape))
            )
        wide = dtypes.float32 if self._dtype in (dtypes.float16, dtypes.bfloat16) else self._dtype
        self.gamma = (
            self.add_variable("gamma", [size], wide, self._initializers["gamma"], self._regularizers["gamma"], constraint=self.gamma_constraint)
            if self.scale
            else None
        )
        self.beta = (
            self.add_variable("beta", [size], wide, self._initializers["beta"], self._regularizers["beta"], constraint=self.beta_constraint)
            if self.center
            else None
        )
        scope = get_variable_scope()
        partitioner = scope.partitioner
        scope.set_partitioner(None)  # averages stay whole
        try:
            self._add_averages([size], wide)
        finally:
            scope.set_partitioner(partitioner)
        self.built = True

    def _add_averages(self, shape: Any, dtype: Any) -> None:
        def average(name: str, first: str) -> Any:
            return self.add_variable(name, shape, dtype, self._initializers[first], trainable=False)

        self.moving_mean, self.moving_variance = average("moving_mean", "mean"), average("moving_variance", "variance")
        if self.renorm:
            self.renorm_mean, self.renorm_stddev = average("renorm_mean", "mean"), average("renorm_stddev", "variance")

    def call(self, inputs: Any, training: Any = False, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        ndims = inputs.get_shape().ndims
        last = self._axis == ndims - 1
        if self.fused is not False and not self.renorm and ndims == 4 and self._axis in (1, 3) and inputs.dtype.base_dtype == dtypes.float32:
            return self._fused(inputs, training)
        axes = [i for i in range(ndims) if i != self._axis]
        spread = (lambda v: v) if last else lambda v: None if v is None else array_ops.reshape(v, [1] * self._axis + [-1] + [1] * (ndims - 1 - self._axis))
        if self.renorm:
            outputs = self._renormalised(inputs, training, axes, spread)
            outputs.set_shape(inputs.get_shape())
            return outputs
        mean, variance = smart_cond(
            training, lambda: nn_ops.moments(inputs, axes), lambda: (array_ops.identity(self.moving_mean), array_ops.identity(self.moving_variance))
        )
        self._update_averages(training, mean, variance)
        outputs = nn_ops.batch_normalization(inputs, spread(mean), spread(variance), spread(self.beta), spread(self.gamma), self.epsilon)
        outputs.set_shape(inputs.get_shape())
        return outputs

    def _fused(self, inputs: Any, training: Any) -> Any:
        size = self.moving_mean.get_shape()
        gamma = self.gamma if self.scale else array_ops.ones(size)
        beta = self.beta if self.center else array_ops.zeros(size)
        layout = "NCHW" if self._axis == 1 else "NHWC"
        outputs, mean, variance = smart_cond(
            training,
            lambda: nn_ops.fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon, data_format=layout),
            lambda: nn_ops.fused_batch_norm(inputs, gamma, beta, self.moving_mean, self.moving_variance, self.epsilon, layout, False),
        )
        if not self._bessels_correction_test_only:
            samples = math_ops.cast(array_ops.size(inputs) // array_ops.size(variance), variance.dtype)
            variance = variance * (samples - 1.0) / samples
        self._update_averages(training, mean, variance)
        return outputs

    def _renormalised(self, inputs: Any, training: Any, axes: Any, spread: Any) -> Any:
        """Batch renormalisation (Ioffe 2017): while training, corrected towards the moving averages."""
        mean, variance = nn_ops.moments(inputs, axes)
        stddev = gen_ops.sqrt(variance + self.epsilon)
        base = gen_ops.maximum(self.renorm_stddev, float(np.sqrt(self.epsilon)))
        r, d = stddev / base, (mean - self.renorm_mean) / base
        limits = self.renorm_clipping
        if limits.get("rmin") is not None:
            r = gen_ops.maximum(r, limits["rmin"])
        if limits.get("rmax") is not None:
            r = gen_ops.minimum(r, limits["rmax"])
        if limits.get("dmax") is not None:
            d = gen_ops.maximum(gen_ops.minimum(d, limits["dmax"]), -limits["dmax"])
        r, d = gen_ops.stop_gradient(r, name="renorm_r"), gen_ops.stop_gradient(d, name="renorm_d")
        normal = smart_cond(
            training,
            lambda: (inputs - spread(mean)) / spread(stddev) * spread(r) + spread(d),
            lambda: (inputs - spread(self.moving_mean)) * spread(gen_ops.rsqrt(self.moving_variance + self.epsilon)),
        )
        with control_dependencies([r, d]):  # these want the averages as they were
            self._update_averages(training, mean, variance)
            self._update_averages(training, mean, stddev, (self.renorm_mean, self.renorm_stddev), self.renorm_momentum)
        if self.gamma is not None:
            normal = normal * spread(self.gamma)
        return normal + spread(self.beta) if self.beta is not None else normal

    def _update_averages(self, training: Any, mean: Any, variance: Any, averages: Any = None, momentum: Any = None) -> None:
        if training is False or isinstance(training, int) and not training:
            return
        always = isinstance(training, (bool, int))
        decay: Any = 1.0 - (self.momentum if momentum is None else momentum)
        if not always:
            decay = math_ops.cast(training, dtypes.float32) * decay
        for average, value in zip(averages or (self.moving_mean, self.moving_variance), (mean, variance)):
            with name_scope("AssignMovingAvg"):
                rate = convert_to_tensor(decay, dtypes.float32) if not isinstance(decay, Tensor) else decay
                self.add_update(average.assign_sub((average - math_ops.cast(value, average.dtype.base_dtype)) * math_ops.cast(rate, average.dtype.base_dtype)))


# ---- functions ----


def _function(make: Callable[_Parameters, Layer], doc: str) -> _Function[_Parameters]:
    def call(inputs: Any, *args: Any, name: Optional[str] = None, reuse: Any = None, **kwargs: Any) -> Any:
        layer = make(*args, name=name, _scope=name, _reuse=reuse, **kwargs)  # type: ignore[arg-type]
        return layer(inputs)

    call.__doc__ = doc
    return call  # type: ignore[return-value]


dense = _function(Dense, "activation(inputs kernel + bias).")
conv1d = _function(Conv1D, "A convolution of sequences.")
conv2d = _function(Conv2D, "A convolution of images.")
conv3d = _function(Conv3D, "A convolution of volumes.")
conv2d_transpose = _function(Conv2DTranspose, "The transpose of a convolution of images.")
conv3d_transpose = _function(Conv3DTranspose, "The transpose of a convolution of volumes.")
separable_conv1d = _function(SeparableConv1D, "A convolution of each channel of a sequence alone, then one of a single step.")
separable_conv2d = _function(SeparableConv2D, "A convolution of each channel alone, then a 1x1 convolution.")


def dropout(inputs: Any, rate: Any = 0.5, noise_shape: Any = None, seed: Optional[int] = None, training: Any = False, name: Optional[str] = None) -> Any:
    """While training, elements set to zero with probability `rate`, and others scaled up."""
    return Dropout(rate, noise_shape, seed, name)(inputs, training=training)


def flatten(inputs: Any, name: Optional[str] = None, data_format: str = "channels_last") -> Any:
    """[batch, ...] as [batch, elements]."""
    return Flatten(data_format, name=name)(inputs)


def maxout(inputs: Any, num_units: int, axis: int = -1, name: Optional[str] = None) -> Any:
    """The largest of each group of features along an axis, so that num_units are left."""
    return MaxOut(num_units, axis, name)(inputs)


def batch_normalization(
    inputs: Any,
    axis: Any = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = init_ops.zeros_initializer(),
    gamma_initializer: Any = init_ops.ones_initializer(),
    moving_mean_initializer: Any = init_ops.zeros_initializer(),
    moving_variance_initializer: Any = init_ops.ones_initializer(),
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: Optional[str] = None,
    reuse: Any = None,
    **kwargs: Any,
) -> Any:
    """Normalisation by the statistics of the batch while training, by their moving averages otherwise."""
    layer = BatchNormalization(
        axis,
        momentum,
        epsilon,
        center,
        scale,
        beta_initializer,
        gamma_initializer,
        moving_mean_initializer,
        moving_variance_initializer,
        beta_regularizer,
        gamma_regularizer,
        beta_constraint,
        gamma_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
        **kwargs,
    )
    return layer(inputs, training=training)


BatchNorm, batch_norm = BatchNormalization, batch_normalization

from millrace.layers.scoped_pooling import (  # noqa: E402, F401
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
)


def _later(name: str) -> Any:  # what connects layers is tf.keras's
    if name in ("Input", "InputLayer", "Network"):
        from millrace.keras.engine import topology

        return getattr(topology, name)
    raise AttributeError("module 'millrace.layers' has no attribute %r" % name)


__getattr__ = _later
