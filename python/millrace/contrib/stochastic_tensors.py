# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.bayesflow's stochastic tensors of 1.0 to 1.3: samples of distributions that losses know of, so that gradients go past what is no function
of its parameters (Schulman and others 2015)."""

from __future__ import annotations

import collections
import contextlib
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Set

import numpy as np

from millrace import tf_logging
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, Distribution
from millrace.framework.convert import convert_to_tensor, register_tensor_conversion_function
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, add_to_collection, control_dependencies, get_collection, name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.variable_scope import variable_scope
from millrace.train.moving_averages import ExponentialMovingAverage

STOCHASTIC_TENSOR_COLLECTION = "_stochastic_tensor_collection_"


def score_function(stochastic_tensor: Any, value: Any, loss: Any, baseline: Any = None, name: str = "ScoreFunction") -> Any:
    """log p(value) (loss - baseline), whose gradient in the parameters is that of the expected loss."""
    with name_scope(name, values=[value, loss, baseline]):
        value, loss = convert_to_tensor(value), convert_to_tensor(loss)
        advantage = loss if baseline is None else loss - convert_to_tensor(baseline)
        return stochastic_tensor.distribution.log_prob(value) * gen_ops.stop_gradient(advantage)


def get_score_function_with_advantage(advantage_fn: Any = None, name: str = "ScoreFunctionWithAdvantage") -> Callable[..., Any]:
    """A loss_fn whose advantage is advantage_fn(stochastic_tensor, loss)."""

    def with_advantage(stochastic_tensor: Any, value: Any, loss: Any) -> Any:
        with name_scope(name, values=[value, loss]):
            return stochastic_tensor.distribution.log_prob(value) * gen_ops.stop_gradient(advantage_fn(stochastic_tensor, loss))

    return with_advantage


def get_score_function_with_constant_baseline(baseline: Any, name: str = "ScoreFunction") -> Callable[..., Any]:
    """A loss_fn with a baseline that is always the same."""
    return lambda stochastic_tensor, value, loss: score_function(stochastic_tensor, value, loss, baseline, name)


def get_score_function_with_baseline(baseline_fn: Any = None, name: str = "ScoreFunction") -> Callable[..., Any]:
    """A loss_fn whose baseline is baseline_fn(stochastic_tensor, loss): unless it is given, the mean so far."""
    baseline_fn = baseline_fn or get_mean_baseline()

    def with_baseline(stochastic_tensor: Any, value: Any, loss: Any) -> Any:
        with name_scope(name):
            return score_function(stochastic_tensor, value, loss, baseline_fn(stochastic_tensor, loss))

    return with_baseline


def get_mean_baseline(ema_decay: float = 0.99, name: Optional[str] = None) -> Callable[..., Any]:
    """A baseline_fn: the moving average of the loss, which variables keep."""

    def mean_baseline(_: Any, loss: Any) -> Any:
        with variable_scope(name, default_name="MeanBaseline"):
            mean = math_ops.reduce_mean(loss)
            average = ExponentialMovingAverage(decay=ema_decay, zero_debias=True)
            with control_dependencies([average.apply([mean])]):
                return array_ops.identity(average.average(mean))

    return mean_baseline


def get_vimco_advantage_fn(have_log_loss: bool = False) -> Callable[..., Any]:
    """An advantage_fn of losses [samples, ...]: each against what the others' would be (Mnih and Rezende 2016)."""

    def advantage_fn(_: Any, loss: Any, name: Optional[str] = None) -> Any:
        with name_scope(name, "VIMCOAdvantage", values=[loss]):
            loss = convert_to_tensor(loss)
            count = math_ops.cast(loss.get_shape()[0].value or array_ops.shape(loss)[0], loss.dtype)
            log_loss = loss if have_log_loss else gen_ops.log(loss)
            mean = math_ops.reduce_logsumexp(log_loss, [0]) - gen_ops.log(count)
            ratios = log_loss - array_ops.expand_dims(log_loss, 1)  # to each of the others
            geometric = log_loss - math_ops.reduce_sum(ratios, [0]) / (count - 1)
            others = _logexpm1(math_ops.reduce_logsumexp(-ratios, [0])) + log_loss
            without = math_ops.reduce_logsumexp(array_ops.stack((others, geometric)), [0]) - gen_ops.log(count)
            return mean - without

    return advantage_fn


def _logexpm1(x: Any) -> Any:
    """log(exp(x) - 1), also for the smallest x."""
    tiny = np.finfo(x.dtype.as_numpy_dtype).eps

    def log(y: Any) -> Any:
        return gen_ops.log(y + tiny / 1e8)

    return array_ops.where(math_ops.abs(x) < tiny, log(x) + x / 2 + x * x / 24, log(gen_ops.exp(x) - 1))


class BaseStochasticTensor:
    """What losses find in the graph's collection of stochastic tensors."""

    _value: Any

    def __init__(self) -> None:
        add_to_collection(STOCHASTIC_TENSOR_COLLECTION, self)

    @property
    def name(self) -> Any:
        raise NotImplementedError("%s.name" % type(self).__name__)

    @property
    def dtype(self) -> Any:
        raise NotImplementedError("%s.dtype" % type(self).__name__)

    @property
    def graph(self) -> Any:
        raise NotImplementedError("%s.graph" % type(self).__name__)

    def value(self, name: Optional[str] = None) -> Any:
        """The tensor that it stands for."""
        raise NotImplementedError("%s.value" % type(self).__name__)

    def loss(self, sample_loss: Any) -> Any:
        """What it adds to the losses that stand on it."""
        raise NotImplementedError("%s.loss" % type(self).__name__)


def _converted(tensor: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    del name  # the value has its own
    if dtype and not dtype.is_compatible_with(tensor.dtype):
        raise at_user_line(ValueError("Incompatible type conversion requested to type '%s' for variable of type '%s'" % (dtype.name, tensor.dtype.name)))
    if as_ref:
        raise at_user_line(ValueError("%s: Ref type is not supported." % tensor))
    return tensor.value()


register_tensor_conversion_function(BaseStochasticTensor, _converted)


class _StochasticValueType:
    def __init__(self, stop_gradient: bool = False) -> None:
        self._stop_gradient = stop_gradient

    @property
    def stop_gradient(self) -> bool:
        """Whether gradients do not go through the value."""
        return self._stop_gradient


class MeanValue(_StochasticValueType):
    """Stochastic tensors are the means of their distributions."""


class SampleValue(_StochasticValueType):
    """Stochastic tensors are samples of a shape."""

    def __init__(self, shape: Any = (), stop_gradient: bool = False) -> None:
        super().__init__(stop_gradient)
        self._shape = shape

    @property
    def shape(self) -> Any:
        return self._shape


_types = threading.local()


@contextlib.contextmanager
def value_type(dist_value_type: Any) -> Iterator[None]:
    """What stochastic tensors are that are made within."""
    if not isinstance(dist_value_type, _StochasticValueType):
        raise at_user_line(TypeError("dist_value_type must be a Distribution Value Type, not %r." % (dist_value_type,)))
    stack = _types.__dict__.setdefault("stack", [])
    stack.append(dist_value_type)
    try:
        yield
    finally:
        stack.pop()


class NoValueTypeSetError(ValueError):
    """There is no value_type() around."""


def get_current_value_type() -> Any:
    """That of the innermost value_type()."""
    stack = _types.__dict__.get("stack")
    if not stack:
        raise at_user_line(NoValueTypeSetError("No value type currently set for this thread. Did you forget to wrap 'with value_type(...)'?"))
    return stack[-1]


class StochasticTensor(BaseStochasticTensor):
    """A sample (or the mean) of a distribution; loss_fn makes what it adds to losses where gradients do not go through the sample."""

    def __init__(self, dist: Any, name: str = "StochasticTensor", dist_value_type: Any = None, loss_fn: Any = score_function) -> None:
        if not isinstance(dist, Distribution):
            raise at_user_line(TypeError("dist must be an instance of Distribution, not %r." % (dist,)))
        if loss_fn is not None and not callable(loss_fn):
            raise at_user_line(TypeError("loss_fn must be callable, not %r." % (loss_fn,)))
        if dist_value_type is None:
            dist_value_type = get_current_value_type() if _types.__dict__.get("stack") else SampleValue()
        if not isinstance(dist_value_type, (MeanValue, SampleValue)):
            raise at_user_line(TypeError("Unrecognized Distribution Value Type: %r" % (dist_value_type,)))
        self._value_type, self._loss_fn, self._dist = dist_value_type, loss_fn, dist
        with name_scope(name) as scope:
            self._name = scope
            self._value = self._create_value()
        super().__init__()

    @property
    def value_type(self) -> Any:
        """MeanValue or SampleValue."""
        return self._value_type

    @property
    def distribution(self) -> Any:
        """The distribution."""
        return self._dist

    @property
    def _is_function_of_parameters(self) -> bool:
        return self._dist.reparameterization_type == FULLY_REPARAMETERIZED and not self._value_type.stop_gradient

    def _create_value(self) -> Any:
        mean = isinstance(self._value_type, MeanValue)
        value = self._dist.mean() if mean else self._dist.sample(self.value_type.shape)
        through = not self._value_type.stop_gradient if mean else self._is_function_of_parameters
        return value if through else gen_ops.stop_gradient(value)

    @property
    def name(self) -> str:
        return self._name

    @property
    def graph(self) -> Any:
        return self._value.graph

    @property
    def dtype(self) -> Any:
        return self._dist.dtype

    def entropy(self, name: str = "entropy") -> Any:
        """That of the distribution."""
        return self._dist.entropy(name=name)

    def mean(self, name: str = "mean") -> Any:
        """That of the distribution."""
        return self._dist.mean(name=name)

    def value(self, name: Optional[str] = "value") -> Any:
        del name  # it has one
        return self._value

    def loss(self, final_loss: Any, name: str = "Loss") -> Any:  # type: ignore[override]
        """What it adds to a loss; None where gradients go through the value."""
        mean = isinstance(self._value_type, MeanValue) and not self._value_type.stop_gradient
        if self._loss_fn is None or self._is_function_of_parameters or mean:
            return None
        with name_scope(self.name, values=[final_loss]), name_scope(name):
            return self._loss_fn(self, self._value, final_loss)


class ObservedStochasticTensor(StochasticTensor):
    """A value that was seen, of a distribution."""

    def __init__(self, dist: Any, value: Any, name: Optional[str] = None) -> None:
        if not isinstance(dist, Distribution):
            raise at_user_line(TypeError("dist must be an instance of Distribution, not %r." % (dist,)))
        with name_scope(name, "ObservedStochasticTensor", [value]) as scope:
            self._name, self._dist = scope, dist
            value, wanted = convert_to_tensor(value), dist.batch_shape.concatenate(dist.event_shape)
            shape = value.get_shape()
            if not shape.is_compatible_with(wanted) and (shape.ndims < wanted.ndims or not shape[shape.ndims - wanted.ndims :].is_compatible_with(wanted)):
                raise at_user_line(
                    ValueError("Shape of observed value %s is incompatible with the shape of a sample from the distribution %s." % (shape, wanted))
                )
            if value.dtype != dist.dtype:
                raise at_user_line(ValueError("Type of observed value (%s) does not match type of distribution (%s)." % (value.dtype, dist.dtype)))
            self._value = array_ops.identity(value)
        BaseStochasticTensor.__init__(self)

    def loss(self, final_loss: Any, name: Optional[str] = None) -> Any:  # type: ignore[override]
        """Nothing: it was not drawn."""
        del final_loss, name  # nothing is added
        return None


def _stochastic_dependencies_map(fixed_losses: Any, stochastic_tensors: Any = None) -> Dict[Any, Set[Any]]:
    """The losses that stand on each stochastic tensor."""
    known = {node.value(): node for node in stochastic_tensors or get_collection(STOCHASTIC_TENSOR_COLLECTION)}
    found: Dict[Any, Set[Any]] = collections.defaultdict(set)
    for loss in fixed_losses if known else ():
        seen, left = {loss}, [loss]
        while left:
            tensor = left.pop()
            if tensor in known:
                found[known[tensor]].add(loss)
            more = set(tensor.op.inputs) - seen
            seen |= more
            left += more
    return found


def _upstream_stochastic_nodes(tensors: Any) -> Dict[Any, Set[Any]]:
    """The stochastic tensors that each tensor stands on."""
    found: Dict[Any, Set[Any]] = collections.defaultdict(set)
    for node, standing in _stochastic_dependencies_map(tensors).items():
        for tensor in standing:
            found[tensor].add(node)
    return found


def surrogate_loss(sample_losses: Any, stochastic_tensors: Any = None, name: str = "SurrogateLoss") -> Any:
    """A loss whose gradients are those of the expected losses: their sum, and what stochastic tensors add to those that stand on them."""
    if not isinstance(sample_losses, (list, tuple)):
        raise at_user_line(TypeError("sample_losses must be a list or tuple, not %r." % (sample_losses,)))
    with name_scope(name, values=sample_losses):
        for loss in sample_losses:
            if not isinstance(loss, Tensor):
                raise at_user_line(TypeError("loss is not a Tensor: %s" % (loss,)))
            if not loss.get_shape().ndims:
                raise at_user_line(ValueError("loss must have dimensionality 1 or greater: %s" % loss))
        standing = _stochastic_dependencies_map(sample_losses, stochastic_tensors)
        if not standing:
            tf_logging.warn("No collection of Stochastic Tensors found for current graph.")
            return math_ops.add_n(sample_losses)
        terms = list(sample_losses)
        for node, losses in standing.items():
            added = node.loss(gen_ops.stop_gradient(_total([loss for loss in sample_losses if loss in losses])))
            if added is not None:
                terms.append(added)
        return _total(terms)


def _total(terms: List[Any]) -> Any:
    shape, dtype = terms[0].get_shape(), terms[0].dtype
    if all(t.get_shape().is_fully_defined() and t.get_shape() == shape and t.dtype == dtype for t in terms):
        return math_ops.add_n(terms)
    return sum(terms)
