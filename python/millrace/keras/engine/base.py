# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""The base of the layers of tf.keras."""

from __future__ import annotations

import inspect
from typing import Any, Dict, List, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph, init_scope
from millrace.keras import backend as K
from millrace.keras import constraints, initializers, regularizers
from millrace.framework.unique_names import snake
from millrace.layers.base import BaseLayer, InputSpec, Node, listed, one_or_all, shape_tuple  # noqa: F401
from millrace.ops import array_ops
from millrace.ops.variables import Variable


def is_keras_tensor(x: Any) -> bool:
    """Whether a layer or Input has made it."""
    return getattr(x, "_keras_history", None) is not None


def arguments_of(function: Any) -> List[str]:
    """The names of a function's arguments."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


class Layer(BaseLayer):
    """Base of layers: build(shape) makes weights by add_weight, call(inputs) computes."""

    uses_learning_phase = False
    dtype: Any = None

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
        **unused: Any,
    ) -> None:
        if unused:
            raise at_user_line(TypeError("Keyword argument not understood: %s" % sorted(unused)[0]))
        self._start(trainable)
        self._name = name or K.unique_name(snake(type(self).__name__))
        self._graph = get_default_graph()
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype).name
        self.activity_regularizer = regularizers.get(activity_regularizer)
        if batch_input_shape is None and input_shape is not None:
            batch_input_shape = (batch_size, *input_shape)
        if batch_input_shape is None and input_dim is not None:
            batch_input_shape = (batch_size, input_dim) if input_length is None else (batch_size, input_length, input_dim)
        if batch_input_shape is not None:
            self.batch_input_shape: Any = tuple(batch_input_shape)
        self._first_values = weights
        self._input_dtypes: List[Any] = []

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._name = value

    def _init_set_name(self, name: Optional[str]) -> None:
        self._name = name or K.unique_name(snake(type(self).__name__))

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool = True,
        constraint: Any = None,
        **unused: Any,
    ) -> Any:
        """Makes a variable of the layer."""
        start, sizes = initializers.get(initializer or "glorot_uniform"), [int(d) for d in shape]
        kind = dtypes.as_dtype(dtype or K.floatx() if self.dtype is None or not dtypes.as_dtype(self.dtype).is_floating else dtype or self.dtype)
        graph = get_default_graph()
        with init_scope(), graph.name_scope(self.name + "/"):
            made = Variable(lambda: _started(start, sizes, kind), trainable=trainable, name=name, constraint=constraints.get(constraint))
        (self._trainable_weights if trainable else self._non_trainable_weights).append(made)
        penalty = regularizers.get(regularizer)
        if penalty is not None:
            with graph.name_scope(self.name + "/" + name + "/Regularizer/"):
                self.add_loss(penalty(made))
        return made

    add_variable = add_weight

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Builds the layer at the first call, then computes."""
        many = isinstance(inputs, (list, tuple))
        tensors = [x if isinstance(x, (Tensor, SparseTensor)) else convert_to_tensor(x) for x in listed(inputs)]
        given = tensors if many else tensors[0]
        taken = arguments_of(self.call)
        arguments = dict(kwargs)
        masks = [getattr(x, "_keras_mask", None) for x in tensors]
        mask = masks if many else masks[0]
        if "mask" in taken and "mask" not in kwargs and any(m is not None for m in masks):
            kwargs = dict(kwargs, mask=mask)
        self._check(tensors)
        with get_default_graph().name_scope(self.name):
            if not self.built:
                self._input_dtypes = [x.dtype.base_dtype for x in tensors]
                if self.dtype is None and tensors:
                    self.dtype = tensors[0].dtype.base_dtype.name
                shapes = [x.get_shape() for x in tensors]
                self.build(shapes if many else shapes[0])
                self.built = True
                if self._first_values is not None:
                    self.set_weights(self._first_values)
                    self._first_values = None
            asked = K.phase_requests()
            made = self.call(given, *args, **kwargs)
            outputs = [array_ops.identity(t) if any(t is x for x in tensors) else t for t in listed(made)]
            while_training = K.phase_requests() > asked or any(getattr(x, "_uses_learning_phase", False) for x in tensors) or self.uses_learning_phase
            new_masks = listed(self.compute_mask(given, mask if mask is not None and any(m is not None for m in masks) else None))
            for i, t in enumerate(outputs):
                if not getattr(t, "_uses_learning_phase", False) or any(t is x for x in tensors):
                    t._uses_learning_phase = while_training
                t._keras_mask = new_masks[i] if i < len(new_masks) else None
            if self.activity_regularizer is not None:
                for t in outputs:
                    self.add_loss(self.activity_regularizer(t), inputs=tensors)
        if isinstance(tensors[0], (Tensor, SparseTensor)) if tensors else False:
            self._connect(tensors, outputs, arguments, many)
        return outputs if isinstance(made, (list, tuple)) else outputs[0]

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        config: Dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if hasattr(self, "batch_input_shape"):
            config["batch_input_shape"] = self.batch_input_shape
        if self.dtype is not None:
            config["dtype"] = self.dtype
        return config

    def __deepcopy__(self, memo: Any) -> Any:
        import copy

        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for key, value in vars(self).items():
            try:
                setattr(made, key, copy.deepcopy(value, memo)) if not isinstance(value, (Tensor, Variable)) else setattr(made, key, value)
            except (TypeError, AttributeError):
                made.__dict__[key] = value
        return made


def _started(start: Any, sizes: List[int], kind: Any) -> Any:
    try:
        return start(sizes, dtype=kind)
    except TypeError as error:
        if "dtype" not in str(error):
            raise
        return start(sizes)
