# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""The layers of tf.layers, as classes and as functions: those of tf.keras.layers with variables of the variable scope."""

from __future__ import annotations

import contextlib
import inspect
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional

from millrace import names
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, get_default_graph, init_scope, name_scope
from millrace.framework.replication import trainable_of_layer
from millrace.framework.unique_names import snake, unique_name
from millrace.keras import metric_base  # noqa: F401 - what add_metric makes
from millrace.layers import base, convolutional, core, normalization, pooling, serialization
from millrace.layers.nodes import InputSpec, Node  # noqa: F401
from millrace.ops import array_ops, math_ops
from millrace.ops.variable_scope import VariableScope, get_variable, get_variable_scope, variable_scope
from millrace.ops.variables import PartitionedVariable

if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import ParamSpec

    _Parameters = ParamSpec("_Parameters")

    class _Function(Protocol[_Parameters]):
        """A function that makes a layer and calls it: with what the layer takes, and `reuse`."""

        def __call__(self, inputs: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Tensor: ...


class _Style(threading.local):
    keras = False


_style = _Style()


def set_keras_style() -> None:
    """From now on layers of tf.layers name their weights and share them as those of tf.keras.layers: none is found in a variable scope."""
    _style.keras = True


@contextlib.contextmanager
def keras_style_scope() -> Iterator[None]:
    """A context in which layers of tf.layers are made in the style of tf.keras.layers."""
    before, _style.keras = _style.keras, True
    try:
        yield
    finally:
        _style.keras = before


class Layer(base.Layer):
    """Base of the layers of tf.layers: variables are of the variable scope, so that a scope that is reused shares them; losses and updates
    are in the graph's collections too."""

    _inside: Any = None
    _keras_style = False  # whether weights and names are as those of tf.keras.layers

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        made.__dict__["_made_with"] = (args, {k: v for k, v in kwargs.items() if k not in ("_scope", "_reuse")})
        return made

    def __init__(self, trainable: bool = True, name: Optional[str] = None, dtype: Any = None, *, _scope: Any = None, _reuse: Any = None, **kwargs: Any) -> None:
        self._keras_style = _style.keras
        if self._keras_style and (_reuse or _scope is not None and _scope != name):
            raise at_user_line(ValueError("reuse is not provided in keras style: call one layer several times"))
        _scope = None if self._keras_style else _scope
        self._default_name = snake(type(self).__name__)
        self._given_name, self._reuse, self._named_by_scope = name, _reuse, _scope is not None
        self._scope: Any = None
        super().__init__(trainable, name, dtype, **kwargs)
        if _scope is not None:
            with variable_scope(_scope) as captured:
                self._scope = captured

    def _init_set_name(self, name: Optional[str]) -> None:
        if self._keras_style:
            super()._init_set_name(name)
        else:
            self._name = unique_name(self._default_name, 1) if name is None and not self._named_by_scope else None

    @property  # type: ignore[misc]
    def name(self) -> str:
        """Its name."""
        return self._given_name or self._name or (self._scope.name.split("/")[-1] if self._scope is not None else self._default_name)

    @property
    def dtype(self) -> Any:
        """The type of its variables; None before it is known."""
        return self._dtype

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

    @property
    def graph(self) -> Any:
        """The graph that it lies in."""
        return self._graph

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that are to be run with each training step, and are in the collection of these."""
        del inputs  # the graph tells
        for update in self._note_updates(updates) if self.trainable or self.stateful else []:
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses; those that depend on inputs are only for the calls with these."""
        for loss in self._note_losses(losses, inputs):
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_weight(  # type: ignore[override]
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: Optional[bool] = None,
        constraint: Any = None,
        partitioner: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        **unused: Any,
    ) -> Any:
        """Makes, or finds, a variable of the layer; of one that is there already the regularizer's loss is there, too."""
        trainable = trainable_of_layer(trainable, synchronization, aggregation)
        if self._keras_style:
            return super().add_weight(name, shape, dtype, initializer, regularizer, trainable, constraint)
        known = set(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES))
        scope = self._open(None)
        inside = get_variable_scope() is self._inside
        with contextlib.ExitStack() as stack:
            if not inside:
                stack.enter_context(variable_scope(scope, reuse=True if self.built else self._reuse or None, auxiliary_name_scope=False))
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
            for v in parts if regularizer is not None and not all(v in known for v in parts) else []:
                with init_scope(), name_scope(name + "/Regularizer"):
                    loss = regularizer(v)
                if loss is not None:
                    self.add_loss(loss)
        own = self._trainable_weights if trainable else self._non_trainable_weights
        if variable not in own:
            own.append(variable)
        self._named_weights[name] = variable
        return variable

    add_variable = add_weight  # type: ignore[assignment]

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
        """Builds the layer at the first call, then computes."""
        if self._keras_style:
            return super().__call__(inputs, *args, **kwargs)
        captured = self._open(kwargs.pop("scope", None))
        for x in inputs if isinstance(inputs, (list, tuple)) else [inputs]:
            if isinstance(x, Tensor) and x.graph is not self._graph and self.built:
                raise at_user_line(ValueError("Input graph and Layer graph are not the same: %s is not from the graph of layer %s." % (x, self.name)))
        with variable_scope(captured, reuse=True if self.built else self._reuse or None, auxiliary_name_scope=False) as inner:
            outer, self._inside = self._inside, inner
            try:
                return super().__call__(inputs, *args, **kwargs)
            finally:
                self._inside = outer

    def _around_call(self) -> Any:
        return super()._around_call() if self._keras_style else name_scope(self._scope.original_name_scope)

    def _tracks(self, tensors: List[Any]) -> bool:
        return bool(tensors) and all(base.is_keras_tensor(x) for x in tensors)  # other tensors are no model's

    def _build_once(self, tensors: List[Any], form: Any) -> None:
        self._graph = get_default_graph()
        super()._build_once(tensors, form)

    def _twin(self) -> Any:
        args, kwargs = self._made_with  # type: ignore[attr-defined]
        return type(self)(*args, **kwargs)


# ---- classes ----


def _arguments(signature: inspect.Signature, name: str, args: Any, kwargs: Any) -> Any:
    """What was given, by name."""
    try:
        given = dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise at_user_line(TypeError("%s: %s" % (name, error))) from None
    more = given.pop("kwargs", {})
    return {**given, **more}


def _scoped(kind: Any, needed: Any = (), without: Any = (), last: Any = (("trainable", True), ("name", None)), **defaults: Any) -> Any:
    """A layer of tf.keras.layers as one of tf.layers: weights that nothing is said of are initialised as the variable scope says.
    `needed` has no default here, `without` is not taken; `last` goes by place too, behind what the layer itself takes."""
    by_place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = [p for p in inspect.signature(kind).parameters.values() if p.kind is by_place and p.name not in without]
    taken = [p.replace(default=inspect.Parameter.empty if p.name in needed else defaults.get(p.name, p.default)) for p in own]
    taken += [inspect.Parameter(name, by_place, default=value) for name, value in last]
    taken.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
    signature = inspect.Signature(taken)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = _arguments(signature, kind.__name__, args, kwargs)
        for name in needed:
            if given[name] is None:
                raise at_user_line(ValueError("The `%s` argument must be a number or a tuple of integers. Received: None" % name))
        kind.__init__(self, **{**defaults, **given})

    __init__.__signature__ = inspect.Signature([inspect.Parameter("self", by_place), *taken])  # type: ignore[attr-defined]
    return type(kind.__name__, (kind, Layer), {"__init__": __init__, "__doc__": kind.__doc__, "__module__": "millrace.layers"})


if TYPE_CHECKING:
    from millrace.layers.convolutional import Conv1D, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, SeparableConv1D, SeparableConv2D
    from millrace.layers.core import Dense, Flatten
    from millrace.layers.pooling import AveragePooling1D, AveragePooling2D, AveragePooling3D, MaxPooling1D, MaxPooling2D, MaxPooling3D
else:
    _KERNEL: Any = dict(data_format="channels_last", kernel_initializer=None)
    _KERNELS: Any = dict(data_format="channels_last", depthwise_initializer=None, pointwise_initializer=None)
    _WINDOWS: Any = dict(needed=("pool_size", "strides"), last=(("name", None),), data_format="channels_last")
    Dense = _scoped(core.Dense, kernel_initializer=None)
    Flatten = _scoped(core.Flatten, last=(), data_format="channels_last")
    Conv1D, Conv2D, Conv3D = (_scoped(kind, **_KERNEL) for kind in (convolutional.Conv1D, convolutional.Conv2D, convolutional.Conv3D))
    Conv2DTranspose, Conv3DTranspose = (
        _scoped(kind, without=("output_padding", "dilation_rate"), **_KERNEL) for kind in (convolutional.Conv2DTranspose, convolutional.Conv3DTranspose)
    )
    SeparableConv1D, SeparableConv2D = (_scoped(kind, **_KERNELS) for kind in (convolutional.SeparableConv1D, convolutional.SeparableConv2D))
    MaxPooling1D, MaxPooling2D, MaxPooling3D = (_scoped(kind, **_WINDOWS) for kind in (pooling.MaxPooling1D, pooling.MaxPooling2D, pooling.MaxPooling3D))
    AveragePooling1D, AveragePooling2D, AveragePooling3D = (
        _scoped(kind, **_WINDOWS) for kind in (pooling.AveragePooling1D, pooling.AveragePooling2D, pooling.AveragePooling3D)
    )
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D


class Dropout(core.Dropout, Layer):
    """While training, elements set to zero with probability `rate`, and others scaled up."""

    def __init__(self, rate: Any = 0.5, noise_shape: Any = None, seed: Optional[int] = None, name: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(rate, noise_shape, seed, name=name, **kwargs)

    def call(self, inputs: Any, training: Any = False) -> Any:
        """Computes the outputs."""
        return super().call(inputs, training)


class BatchNormalization(normalization.BatchNormalization, Layer):
    """Normalisation by the statistics of the batch while training, by their moving averages otherwise.

    The operations that update the averages are in the collection UPDATE_OPS.
    """

    def _add_averages(self, shape: Any, dtype: Any) -> None:
        scope = get_variable_scope()
        partitioner = scope.partitioner
        scope.set_partitioner(None)  # averages stay whole
        try:
            super()._add_averages(shape, dtype)
        finally:
            scope.set_partitioner(partitioner)

    def call(self, inputs: Any, training: Any = False) -> Any:
        """Computes the outputs."""
        return super().call(inputs, training)


class MaxOut(Layer):
    """The largest of each group of features along an axis, so that num_units are left (Goodfellow and others 2013)."""

    def __init__(self, num_units: int, axis: int = -1, name: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.num_units, self.axis = num_units, axis

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
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


# ---- functions ----


def _function(make: Callable[_Parameters, Any], doc: str, reuses: bool = True) -> _Function[_Parameters]:
    """The function that makes a layer and calls it."""
    inputs, reuse = (inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("inputs", "reuse"))
    own = [p for p in inspect.signature(make).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    signature = inspect.Signature([inputs, *own, *([reuse.replace(default=None)] if reuses else [])])
    kind: Any = make

    def call(*args: Any, **kwargs: Any) -> Any:
        given = _arguments(signature, "the function of " + kind.__name__, args, kwargs)
        taken = given.pop("inputs")
        if reuses:
            given.update(_reuse=given.pop("reuse", None), _scope=given.get("name"))
        return kind(**given)(taken)

    call.__name__ = call.__qualname__ = snake(kind.__name__)
    call.__doc__, call.__signature__ = doc, signature  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


dense = _function(Dense, "activation(inputs kernel + bias).")
conv1d = _function(Conv1D, "A convolution of sequences.")
conv2d = _function(Conv2D, "A convolution of images.")
conv3d = _function(Conv3D, "A convolution of volumes.")
conv2d_transpose = _function(Conv2DTranspose, "The transpose of a convolution of images.")
conv3d_transpose = _function(Conv3DTranspose, "The transpose of a convolution of volumes.")
separable_conv1d = _function(SeparableConv1D, "A convolution of each channel of a sequence alone, then one of a single step.")
separable_conv2d = _function(SeparableConv2D, "A convolution of each channel alone, then a 1x1 convolution.")
_LARGEST, _MEAN = "The largest value of each window.", "The mean of each window."
max_pooling1d, average_pooling1d = _function(MaxPooling1D, _LARGEST, False), _function(AveragePooling1D, _MEAN, False)
max_pooling2d, average_pooling2d = _function(MaxPooling2D, _LARGEST, False), _function(AveragePooling2D, _MEAN, False)
max_pooling3d, average_pooling3d = _function(MaxPooling3D, _LARGEST, False), _function(AveragePooling3D, _MEAN, False)


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
    beta_initializer: Any = "zeros",
    gamma_initializer: Any = "ones",
    moving_mean_initializer: Any = "zeros",
    moving_variance_initializer: Any = "ones",
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: Optional[str] = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: Optional[bool] = None,
    virtual_batch_size: Any = None,
    adjustment: Any = None,
) -> Any:
    """Normalisation by the statistics of the batch while training, by their moving averages otherwise."""
    given = dict(locals())
    inputs, training, reuse = (given.pop(n) for n in ("inputs", "training", "reuse"))
    return BatchNormalization(**given, _scope=name, _reuse=reuse)(inputs, training=training)


BatchNorm, batch_norm = BatchNormalization, batch_normalization
serialization.CLASSES.setdefault("MaxOut", MaxOut)


def __getattr__(name: str) -> Any:  # what connects layers is tf.keras's
    if name in ("Input", "InputLayer", "Network"):
        return getattr(names.find("keras.engine").topology, name)
    raise AttributeError("module 'millrace.layers' has no attribute %r" % name)
