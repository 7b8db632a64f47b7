# SPDX-License-Identifier: Apache-2.0
"""Metrics as objects: variables that count over batches, operations that update them, and a result of what was counted."""

from __future__ import annotations

import functools
import itertools
import re
import types
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, get_default_graph, init_scope, name_scope
from millrace.keras import backend as K
from millrace.keras import initializers
from millrace.keras.utils.metrics_utils import ragged_assert_compatible_and_get_flat_values
from millrace.layers.base import Layer
from millrace.layers.nodes import listed
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.confusion_matrix import remove_squeezable_dimensions
from millrace.ops.variables import Variable
from millrace.ops.weights_broadcast import broadcast_weights


def _noted(update_state: Callable[..., Any]) -> Callable[..., Operation]:
    """update_state as one operation, which is an update of the metric. A subclass may give none: then what it added to the graph and changes
    variables is taken together."""

    @functools.wraps(update_state)
    def noted(self: Any, *args: Any, **kwargs: Any) -> Operation:
        graph = get_default_graph()
        before = len(graph.get_operations())
        made = update_state(self, *args, **kwargs)
        if made is None:
            made = [op for op in itertools.islice(graph.get_operations(), before, None) if op.type.startswith(("Assign", "ResourceScatter"))]
        op = control_flow_ops.group(*[getattr(m, "op", m) for m in listed(made)])
        self.add_update(op)
        return op

    return noted


class Metric(Layer):
    """Base of metrics: __init__ makes variables by add_weight, update_state counts a batch, result says what was counted."""

    stateful = True
    _is_metric = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        vars(made)["update_state"] = types.MethodType(_noted(cls.update_state), made)
        return made

    def __init__(self, name: Optional[str] = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype or K.floatx(), trainable=False, **kwargs)
        self.built = True

    def add_weight(  # type: ignore[override]
        self, name: str, shape: Any = (), aggregation: Any = None, synchronization: Any = None, initializer: Any = None, dtype: Any = None
    ) -> Any:
        """Makes a variable, which is in no collection of the graph: reset_states starts it again."""
        del aggregation, synchronization  # there is one replica
        kind = dtypes.as_dtype(dtype or self.dtype)
        start = initializers.get(initializer or "zeros")
        with init_scope():
            made = Variable(lambda: start([int(d) for d in shape], dtype=kind), trainable=False, name=name, collections=[], use_resource=True)
        made.graph.__dict__.setdefault("_keras_metric_variables", []).append(made)
        self._non_trainable_weights.append(made)
        return made

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """An operation that counts a batch."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def result(self) -> Any:
        """What was counted, as a tensor."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """What was counted with this batch."""
        with name_scope(re.sub(r"[^A-Za-z0-9_.\-/]", "", self.name)):  # of a lambda too
            with control_dependencies([self.update_state(*args, **kwargs)]):
                counted = self.result()
                made = array_ops.identity(counted.read_value() if isinstance(counted, Variable) else counted)
        made._metric_obj = self
        return made

    def reset_states(self) -> None:
        """Starts to count again."""
        K.batch_set_value([(v, np.zeros(v.get_shape().as_list(), v.dtype.base_dtype.as_numpy_dtype)) for v in self.weights])

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {"name": self.name, "dtype": self.dtype}


def value_of(variable: Any) -> Tensor:
    """The value of a variable where the graph stands, after what it waits for."""
    return variable.read_value()


def as_settings(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """Arguments with the values of tensors and variables among them."""
    return {k: K.get_value(v) if isinstance(v, (Tensor, Variable)) else v for k, v in arguments.items()}


def fitted(y_true: Any, y_pred: Any, dtype: Any = None) -> Any:
    """Truth and prediction as tensors of one rank."""
    y_pred = convert_to_tensor(y_pred)
    y_true = convert_to_tensor(y_true)
    if dtype is not None:
        y_pred, y_true = math_ops.cast(y_pred, dtype), math_ops.cast(y_true, dtype)
    shape, rank = y_pred.get_shape(), y_true.get_shape().ndims
    if shape.ndims and shape.as_list()[-1] not in (1, None) and rank is None:
        return y_true, y_pred
    if shape.ndims is None or rank is None:  # steps tell
        one = gen_ops.equal(array_ops.shape(y_pred)[-1:], 1)  # of a number there is no last dimension
        alone = gen_ops.logical_and(math_ops.reduce_all(one), gen_ops.equal(array_ops.rank(y_pred) - array_ops.rank(y_true), 1))
        return y_true, control_flow_ops.cond(alone, lambda: array_ops.reshape(y_pred, array_ops.shape(y_pred)[:-1]), lambda: array_ops.identity(y_pred))
    if rank == shape.ndims - 1 and shape.as_list()[-1] != 1:
        return y_true, y_pred  # numbers of classes, and what is said of each class
    return remove_squeezable_dimensions(y_true, y_pred)


def flat(y_true: Any, y_pred: Any, sample_weight: Any) -> Any:
    """Truth, prediction and weights: of ragged ones the flat values, whose rows must be the same."""
    (y_true, y_pred), sample_weight = ragged_assert_compatible_and_get_flat_values([y_true, y_pred], sample_weight)
    return y_true, y_pred, sample_weight


def spread_weights(weights: Any, values: Tensor) -> Tensor:
    """Weights in the shape of values: a last dimension of 1 is taken off or added where the ranks are one apart."""
    weights = math_ops.cast(weights, values.dtype.base_dtype)
    have, want = weights.get_shape().ndims, values.get_shape().ndims
    if have is None or want is None:  # steps tell
        sizes, more = array_ops.shape(weights), array_ops.rank(weights) - array_ops.rank(values)
        longer = array_ops.concat([sizes, [1]], 0)[: array_ops.size(sizes) - gen_ops.maximum(more, -1)]
        weights = array_ops.reshape(weights, control_flow_ops.cond(gen_ops.equal(math_ops.abs(more), 1), lambda: longer, lambda: array_ops.identity(sizes)))
    elif have and want is not None and have - want == 1:
        weights = array_ops.squeeze(weights, [-1])
    elif have and want is not None and want - have == 1:
        weights = array_ops.expand_dims(weights, -1)
    return broadcast_weights(weights, values)


class _Total(Metric):
    """A weighted sum of what it is given."""

    _mean = False

    def __init__(self, name: Optional[str] = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight("total")
        if self._mean:
            self.count = self.add_weight("count")

    def update_state(self, values: Any, sample_weight: Any = None) -> Operation:
        """Counts values; weights have their shape, or fewer dimensions."""
        (values,), sample_weight = ragged_assert_compatible_and_get_flat_values([values], sample_weight)
        values = math_ops.cast(values, self.dtype)
        if sample_weight is not None:
            weights = math_ops.cast(sample_weight, self.dtype)
            have, want = weights.get_shape().ndims, values.get_shape().ndims
            if have is not None and want is not None and have > 1 and have - want == 1:
                weights = array_ops.squeeze(weights, [-1])
                have -= 1
            if have and want is not None and want > have:  # one weight for many values: their mean, or their sum
                join = math_ops.reduce_mean if self._mean else math_ops.reduce_sum
                values = join(values, list(range(have, want)))
            weights = weights if want == 0 else spread_weights(weights, values)  # one value counts for all
            values = values * weights
            number = math_ops.reduce_sum(weights)
        else:
            number = math_ops.cast(array_ops.size(values), self.dtype)
        done = self.total.assign_add(math_ops.reduce_sum(values))
        if self._mean:
            with control_dependencies([done]):  # a step that finds no more input counts nothing
                done = self.count.assign_add(number)
        return control_flow_ops.group(getattr(done, "op", done))

    def result(self) -> Tensor:
        """The sum, or the mean."""
        total = value_of(self.total)
        return gen_ops.div_no_nan(total, value_of(self.count)) if self._mean else total


class Sum(_Total):
    """The weighted sum of the values."""

    def __init__(self, name: str = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype)


class Mean(_Total):
    """The weighted mean of the values."""

    _mean = True

    def __init__(self, name: Optional[str] = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)


Layer._mean_of_batches = Mean


class MeanRelativeError(Mean):
    """The mean of |truth - prediction| / normalizer; 0 where the normalizer is 0."""

    def __init__(self, normalizer: Any, name: Optional[str] = None, dtype: Any = None) -> None:
        super().__init__(name, dtype)
        self.normalizer = math_ops.cast(normalizer, self.dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:  # type: ignore[override]
        """Counts a batch."""
        y_true, y_pred, sample_weight = flat(y_true, y_pred, sample_weight)
        y_true, y_pred = fitted(y_true, y_pred, self.dtype)
        normalizer, y_pred = remove_squeezable_dimensions(self.normalizer, y_pred)
        return super().update_state(gen_ops.div_no_nan(math_ops.abs(y_true - y_pred), normalizer), sample_weight)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {"normalizer": K.eval(self.normalizer), **super().get_config()}


class RootMeanSquaredError(Mean):
    """The square root of the mean of squared differences."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:  # type: ignore[override]
        """Counts a batch."""
        y_true, y_pred, sample_weight = flat(y_true, y_pred, sample_weight)
        y_true, y_pred = fitted(y_true, y_pred, self.dtype)
        return super().update_state(gen_ops.squared_difference(y_pred, y_true), sample_weight)

    def result(self) -> Tensor:
        """The root."""
        return gen_ops.sqrt(super().result())


class MeanTensor(Metric):
    """The weighted mean of tensors of one shape, element by element."""

    def __init__(self, name: str = "mean_tensor", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._shape: Any = None
        self._total: Any = None
        self._count: Any = None

    total = property(lambda self: self._total, doc="The sum, a variable; None before the first values.")
    count = property(lambda self: self._count, doc="The sum of the weights, a variable; None before the first values.")

    def update_state(self, values: Any, sample_weight: Any = None) -> Operation:
        """Counts values; the first ones say the shape."""
        values = math_ops.cast(values, self.dtype)
        shape = values.get_shape()
        if self._shape is None:
            self._shape = shape
            self._total, self._count = self.add_weight("total", shape.as_list()), self.add_weight("count", shape.as_list())
            K.get_session((self._total,))  # it gives them their first values: no initializer of before knows them
        elif shape != self._shape:
            raise at_user_line(
                ValueError(
                    "MeanTensor input values must always have the same shape. Expected shape (set during the first call): %s. Got: %s" % (self._shape, shape)
                )
            )
        number = array_ops.ones_like(values)
        if sample_weight is not None:
            number = spread_weights(sample_weight, values)
            values = values * number
        with control_dependencies([self._total.assign_add(values)]):
            return control_flow_ops.group(self._count.assign_add(number).op)

    def result(self) -> Tensor:
        """The means."""
        if self._shape is None:
            raise at_user_line(
                ValueError(
                    "MeanTensor does not have any result yet. Please call the MeanTensor instance or use `.update_state(value)` before retrieving the result."
                )
            )
        return gen_ops.div_no_nan(value_of(self._total), value_of(self._count))


class MeanMetricWrapper(Mean):
    """The weighted mean of a function of truth and prediction."""

    def __init__(self, fn: Callable[..., Any], name: Optional[str] = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name, dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:  # type: ignore[override]
        """Counts a batch."""
        y_true, y_pred, sample_weight = flat(y_true, y_pred, sample_weight)
        y_true, y_pred = fitted(y_true, y_pred, self.dtype)
        return super().update_state(self._fn(y_true, y_pred, **self._fn_kwargs), sample_weight)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {**as_settings(self._fn_kwargs), **super().get_config()}


def mean_of(class_name: str, function: Callable[..., Any], name: str, doc: str, **settings: Any) -> Any:
    """A class for the mean of a function; settings are its arguments and their defaults, which come before name and dtype where `k` is one."""
    first = "k" in settings

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        order: List[str] = [*settings, "name", "dtype"] if first else ["name", "dtype", *settings]
        given = dict(zip(order, args), **kwargs)
        unknown = set(given) - set(order)
        if unknown or len(args) > len(order):
            raise at_user_line(TypeError("%s takes %s, got %s" % (class_name, ", ".join(order), ", ".join(sorted(unknown)) or "%d arguments" % len(args))))
        MeanMetricWrapper.__init__(self, function, given.get("name", name), given.get("dtype"), **{k: given.get(k, v) for k, v in settings.items()})

    return type(class_name, (MeanMetricWrapper,), {"__init__": __init__, "__doc__": doc, "__module__": "millrace.keras.metrics"})
