# SPDX-License-Identifier: Apache-2.0
"""tf.keras.losses: functions of what is and of what was predicted, with one number for each example; and classes of them."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.strategy_base import has_strategy
from millrace.keras import backend as K
from millrace.keras.metric_base import as_settings
from millrace.keras.utils.generic_utils import deserialize_keras_object
from millrace.keras.utils.losses_utils import ReductionV2, compute_weighted_loss
from millrace.ops import gen_ops, math_ops, nn_ops

Reduction = ReductionV2


def _of_one_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loss function that takes arrays too, and casts the labels to the type of the predictions."""

    @functools.wraps(function)
    def call(y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        y_pred = convert_to_tensor(y_pred)
        return function(math_ops.cast(y_true, y_pred.dtype.base_dtype), y_pred, *args, **kwargs)

    return call


@_of_one_type
def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """Squared differences."""
    return math_ops.reduce_mean(gen_ops.square(y_pred - y_true), -1)


@_of_one_type
def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """Absolute differences."""
    return math_ops.reduce_mean(math_ops.abs(y_pred - y_true), -1)


@_of_one_type
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """Absolute differences in percent."""
    return 100.0 * math_ops.reduce_mean(math_ops.abs((y_true - y_pred) / math_ops.maximum(math_ops.abs(y_true), K.epsilon())), -1)


@_of_one_type
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """Squared differences of logarithms."""
    return math_ops.reduce_mean(
        gen_ops.square(gen_ops.log(math_ops.maximum(y_pred, K.epsilon()) + 1.0) - gen_ops.log(math_ops.maximum(y_true, K.epsilon()) + 1.0)), -1
    )


def _signed(y_true: Any) -> Any:
    """Labels of -1 and 1, also where all of them are 0 or 1."""
    both = gen_ops.logical_or(gen_ops.equal(y_true, 0.0), gen_ops.equal(y_true, 1.0))
    return y_true + math_ops.cast(math_ops.reduce_all(both), y_true.dtype.base_dtype) * (y_true - 1.0)


@_of_one_type
def hinge(y_true: Any, y_pred: Any) -> Any:
    """max(1 - y p, 0); labels of 0 and 1 count as -1 and 1."""
    y_true = _signed(y_true)
    return math_ops.reduce_mean(math_ops.maximum(1.0 - y_true * y_pred, 0.0), -1)


@_of_one_type
def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """Its square."""
    y_true = _signed(y_true)
    return math_ops.reduce_mean(gen_ops.square(math_ops.maximum(1.0 - y_true * y_pred, 0.0)), -1)


@_of_one_type
def categorical_hinge(y_true: Any, y_pred: Any) -> Any:
    """max(0, 1 + the largest wrong one - the right one)."""
    right = math_ops.reduce_sum(y_true * y_pred, -1)
    wrong = math_ops.reduce_max((1.0 - y_true) * y_pred, -1)
    return math_ops.maximum(0.0, wrong - right + 1.0)


@_of_one_type
def logcosh(y_true: Any, y_pred: Any) -> Any:
    """The logarithm of the hyperbolic cosine of the difference."""
    x = y_pred - y_true
    return math_ops.reduce_mean(x + gen_ops.softplus(-2.0 * x) - 0.6931471805599453, -1)


@_of_one_type
def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Squared near zero, linear farther away."""
    size = math_ops.abs(y_pred - y_true)
    near = gen_ops.minimum(size, delta)
    return 0.5 * gen_ops.square(near) + delta * (size - near)


@_of_one_type
def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Any:
    """Of probabilities."""
    if isinstance(label_smoothing, Tensor) or label_smoothing:
        classes = math_ops.cast(K.shape(y_true)[-1], y_pred.dtype.base_dtype)
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / classes
    return K.categorical_crossentropy(y_true, y_pred, from_logits)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """Of numbers of classes."""
    return K.sparse_categorical_crossentropy(y_true, y_pred, from_logits, axis)


@_of_one_type
def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0) -> Any:
    """Of probabilities of yes."""
    if isinstance(label_smoothing, Tensor) or label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    return math_ops.reduce_mean(K.binary_crossentropy(y_true, y_pred, from_logits), -1)


@_of_one_type
def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Any:
    """How far distributions are apart."""
    y_true, y_pred = K.clip(y_true, K.epsilon(), 1), K.clip(y_pred, K.epsilon(), 1)
    return math_ops.reduce_sum(y_true * gen_ops.log(y_true / y_pred), -1)


@_of_one_type
def poisson(y_true: Any, y_pred: Any) -> Any:
    """Of counts."""
    return math_ops.reduce_mean(y_pred - y_true * gen_ops.log(y_pred + K.epsilon()), -1)


@_of_one_type
def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The cosine of the angle between."""
    return math_ops.reduce_sum(nn_ops.l2_normalize(y_true, axis) * nn_ops.l2_normalize(y_pred, axis), axis)


def cosine_proximity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Less the cosine of the angle between: the smaller, the nearer."""
    return -cosine_similarity(y_true, y_pred, axis)


mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence
cosine = cosine_proximity


class Loss:
    """Base of losses as objects: call(y_true, y_pred) gives one number for each example."""

    def __init__(self, reduction: str = "auto", name: Any = None) -> None:
        Reduction.validate(reduction)
        self.reduction, self.name = reduction, name

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """One number for each example."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        if has_strategy() and self.reduction in (Reduction.AUTO, Reduction.SUM_OVER_BATCH_SIZE):
            message = "Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE` for losses that a program calls itself within a strategy"
            raise at_user_line(ValueError(message + ": a replica does not know how many examples the others have. Divide the sum by the size of all batches."))
        with name_scope(self.name or type(self).__name__):
            return compute_weighted_loss(self.call(y_true, convert_to_tensor(y_pred)), sample_weight, self.reduction)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> Any:
        """A loss of what get_config gave."""
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A function of labels and predictions, with further arguments, as a loss."""

    def __init__(self, fn: Callable[..., Any], reduction: str = Reduction.AUTO, name: Any = None, **kwargs: Any) -> None:
        super().__init__(reduction, name)
        self.fn, self._fn_kwargs = fn, kwargs

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """One number for each example."""
        return self.fn(y_true, y_pred, **self._fn_kwargs)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {**super().get_config(), **as_settings(self._fn_kwargs)}


def _class(class_name: str, function: Callable[..., Any], leaves_out: str = "") -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        own = given.pop("reduction"), given.pop("name")
        LossFunctionWrapper.__init__(self, function, *own, **given)

    parameters = [p for p in list(inspect.signature(function).parameters.values())[2:] if p.name != leaves_out]
    further = [
        inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=d) for n, d in (("reduction", Reduction.AUTO), ("name", function.__name__))
    ]
    signature = inspect.Signature([*parameters, *further])
    return type(class_name, (LossFunctionWrapper,), {"__init__": __init__, "__doc__": function.__doc__, "__module__": __name__})


MeanSquaredError, MeanAbsoluteError = _class("MeanSquaredError", mean_squared_error), _class("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _class("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _class("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
BinaryCrossentropy, CategoricalCrossentropy = _class("BinaryCrossentropy", binary_crossentropy), _class("CategoricalCrossentropy", categorical_crossentropy)
SparseCategoricalCrossentropy = _class("SparseCategoricalCrossentropy", sparse_categorical_crossentropy, leaves_out="axis")
Hinge, SquaredHinge, CategoricalHinge = _class("Hinge", hinge), _class("SquaredHinge", squared_hinge), _class("CategoricalHinge", categorical_hinge)
Poisson, LogCosh, KLDivergence, Huber = (
    _class("Poisson", poisson),
    _class("LogCosh", logcosh),
    _class("KLDivergence", kullback_leibler_divergence),
    _class("Huber", huber_loss),
)
CosineSimilarity = _class("CosineSimilarity", cosine_similarity)


def serialize(loss: Any) -> Any:
    """The name of a loss."""
    return loss.__name__ if hasattr(loss, "__name__") else {"class_name": type(loss).__name__, "config": loss.get_config()}


def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The loss of a name."""
    return deserialize_keras_object(name, globals(), custom_objects, "loss function")


def get(identifier: Any) -> Any:
    """A loss by name, or what is one already."""
    if identifier is None:
        return None
    if isinstance(identifier, (str, dict)):
        found = deserialize(str(identifier) if isinstance(identifier, str) else identifier)
        return found() if isinstance(found, type) else found
    if callable(identifier):
        return identifier
    raise at_user_line(ValueError("Could not interpret loss function identifier: %s" % (identifier,)))
