# SPDX-License-Identifier: Apache-2.0
"""The class that all distributions share, and the divergence between two of them."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.static_values import constant_value, constant_value_as_shape
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops


class ReparameterizationType:
    """Whether samples have a gradient with respect to the parameters."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return "<Reparameterization Type: %s>" % self._rep_type


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


def float_parameters(*values: Any, dtype: Any = None) -> Tuple[Tensor, ...]:
    """Parameters as tensors of one floating type: that of the first tensor or array among them that has one."""
    for value in values:
        if dtype is None and value is not None and hasattr(value, "dtype"):
            candidate = dtypes.as_dtype(value.dtype).base_dtype
            dtype = candidate if candidate.is_floating else None
    dtype = dtype or dtypes.float32
    for value in values:
        if isinstance(value, Tensor) and value.dtype.base_dtype != dtype:
            raise at_user_line(TypeError("parameters must have one dtype: %s and %s" % (dtype.name, value.dtype.base_dtype.name)))
    tensors = tuple(convert_to_tensor(value, dtype) for value in values)
    return tensors


def shape_vector(sizes: Any) -> Tensor:
    """A shape as a constant."""
    return constant(np.array(sizes, np.int32))


def checked(tensor: Tensor, validate: bool, *checks: Callable[[Tensor], Any]) -> Tensor:
    """The tensor, behind checks of its values where the user asked for them."""
    if not validate:
        return tensor
    with control_dependencies([check(tensor) for check in checks]):
        return array_ops.identity(tensor)


def joined(*parts: Any) -> Tensor:
    """Shapes one behind the other, as one vector."""
    return array_ops.concat([array_ops.reshape(convert_to_tensor(p, dtypes.int32), [-1]) for p in parts], 0)


def in_front(sample_shape: Any) -> Tuple[Tensor, Tensor]:
    """(the shape of samples as a vector, how many samples that are)."""
    if isinstance(sample_shape, TensorShape):
        sample_shape = sample_shape.as_list()
    static = constant_value(sample_shape) if isinstance(sample_shape, Tensor) else np.array(sample_shape, np.int32)
    if static is None:
        lead = array_ops.reshape(sample_shape, [-1])
        return lead, gen_ops.prod(lead, [0])
    return shape_vector(static.reshape(-1)), constant(np.int32(np.prod(static)))


def _arguments(init: Callable[..., Any], made: Any, args: Any, kwargs: Any) -> Dict[str, Any]:
    """What a constructor is given, by name."""
    try:
        bound = inspect.signature(init).bind(made, *args, **kwargs)
    except TypeError:
        return {}  # the constructor says what is wrong
    bound.apply_defaults()
    given = dict(list(bound.arguments.items())[1:])
    given.update(given.pop("old_names", {}))
    return given


def _noting(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that notes what it is given, where it is the first of the library's: constructors of programs may be given other things."""

    @functools.wraps(init)
    def noting(self: Any, *args: Any, **kwargs: Any) -> None:
        if not self._is_noted:
            self._given, self._is_noted = _arguments(init, self, args, kwargs), True
        init(self, *args, **kwargs)

    return noting


class Distribution:
    """A distribution over events of one shape, in a batch. Parameters broadcast against each other."""

    _given: Dict[str, Any] = {}
    _is_noted = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and cls.__module__.startswith("millrace."):
            cls.__init__ = _noting(cls.__init__)  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        made._given = _arguments(cls.__init__, made, args, kwargs)
        return made

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: Any = NOT_REPARAMETERIZED,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        parameters: Optional[Dict[str, Any]] = None,
        graph_parents: Any = None,
        name: Optional[str] = None,
    ) -> None:
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._reparameterization_type = reparameterization_type
        self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
        self._parameters = {k: v for k, v in (self._given if parameters is None else parameters).items() if k not in ("self", "__class__")}
        self._graph_parents = list(graph_parents or ())
        if name is None or not name.endswith("/"):
            with name_scope(name or type(self).__name__) as scope:
                name = scope
        self._name = name

    name = property(lambda self: self._name)
    dtype = property(lambda self: self._dtype)
    parameters = property(lambda self: dict(self._parameters))
    reparameterization_type = property(lambda self: self._reparameterization_type)
    allow_nan_stats = property(lambda self: self._allow_nan_stats)
    validate_args = property(lambda self: self._validate_args)
    is_continuous = property(lambda self: self._dtype.is_floating)
    batch_shape = property(lambda self: self._batch_shape())
    event_shape = property(lambda self: self._event_shape())

    def get_batch_shape(self) -> TensorShape:
        """The static shape of the batch, under its name of 0.x."""
        return self.batch_shape

    def get_event_shape(self) -> TensorShape:
        """The static shape of an event, under its name of 0.x."""
        return self.event_shape

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """The same distribution with some parameters replaced."""
        return type(self)(**dict(self._parameters, **override_parameters_kwargs))

    def __repr__(self) -> str:
        if not hasattr(self, "_name"):
            return object.__repr__(self)
        return "<tfp.distributions.%s '%s' batch_shape=%s event_shape=%s dtype=%s>" % (
            type(self).__name__,
            self.name,
            self.batch_shape,
            self.event_shape,
            self.dtype.name,
        )

    def __str__(self) -> str:
        if not hasattr(self, "_name"):
            return object.__str__(self)
        known = [(what, shape) for what, shape in (("batch", self.batch_shape), ("event", self.event_shape)) if shape.ndims is not None]
        shapes = "".join(", %s_shape=%s" % each for each in known)
        return 'tfp.distributions.%s("%s"%s, dtype=%s)' % (type(self).__name__, self.name, shapes, self.dtype.name)

    # What a kind of distribution says of its shapes; parameters that broadcast to the batch are the usual case.
    def _batch_parameters(self) -> Tuple[Tensor, ...]:
        return ()

    def _batch_shape(self) -> TensorShape:
        shape = TensorShape([])
        for parameter in self._batch_parameters():
            shape = array_ops.broadcast_static_shape(shape, parameter.get_shape())
        return shape

    def _batch_shape_tensor(self) -> Tensor:
        shape: Any = shape_vector([])
        for parameter in self._batch_parameters():
            shape = array_ops.broadcast_dynamic_shape(shape, array_ops.shape(parameter))
        return shape

    def _event_shape(self) -> TensorShape:
        return TensorShape([])

    def _event_shape_tensor(self) -> Tensor:
        return shape_vector([])

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch."""
        static = self.batch_shape
        with self._scope(name):
            return shape_vector(static.as_list()) if static.is_fully_defined() else self._batch_shape_tensor()

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The shape of one event."""
        static = self.event_shape
        with self._scope(name):
            return shape_vector(static.as_list()) if static.is_fully_defined() else self._event_shape_tensor()

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether an event is one number."""
        with name_scope(name):
            return convert_to_tensor(self._is_scalar_helper(self.event_shape, self.event_shape_tensor))

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether there is one distribution."""
        with name_scope(name):
            return convert_to_tensor(self._is_scalar_helper(self.batch_shape, self.batch_shape_tensor))

    def _is_scalar_helper(self, static_shape: TensorShape, dynamic_shape_fn: Callable[[], Any]) -> Any:
        """Whether a shape, or else the one that a function gives, has no dimensions: a bool where that is known, or a tensor."""
        if static_shape.ndims is not None:
            return static_shape.ndims == 0
        shape = dynamic_shape_fn()
        if shape.get_shape().is_fully_defined():
            return shape.get_shape().num_elements() == 0
        return gen_ops.equal(array_ops.size(shape), 0)

    _shape_parameters: Tuple[str, ...] = ()  # those that have the shape of a sample

    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> Dict[str, Tensor]:
        """The shapes of parameters for which a sample has a shape, by name."""
        with name_scope(name):
            shape = convert_to_tensor(sample_shape, dtypes.int32)
            if not cls._shape_parameters:
                raise at_user_line(NotImplementedError("param_shapes of %s is not provided" % cls.__name__))
            return {parameter: shape for parameter in cls._shape_parameters}

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> Dict[str, TensorShape]:
        """The shapes of parameters for which a sample has a shape that is known, by name."""
        given = constant_value(sample_shape) if isinstance(sample_shape, Tensor) else sample_shape
        if given is None or isinstance(given, TensorShape) and not given.is_fully_defined():
            raise at_user_line(ValueError("TensorShape sample_shape must be fully defined"))
        shape = TensorShape(given)
        return {parameter: shape for parameter in cls.param_shapes(shape.as_list())}

    @contextlib.contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        with name_scope(self._name), name_scope(name):
            yield

    # Samples. What begins with _call_ passes conditions on to a subclass that has some (ConditionalDistribution).
    def sample(self, sample_shape: Any = (), seed: Optional[int] = None, name: str = "sample") -> Tensor:
        """Samples of a shape, in front of the shapes of the batch and the event."""
        return self._call_sample_n(sample_shape, seed, name)

    def _call_sample_n(self, sample_shape: Any, seed: Optional[int], name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            lead, count = in_front(sample_shape)
            drawn = self._sample_n(count, seed, **conditions)
            made = array_ops.reshape(drawn, joined(lead, array_ops.shape(drawn)[1:]))
            return self._set_sample_static_shape(made, lead)

    def _set_sample_static_shape(self, x: Tensor, sample_shape: Any) -> Tensor:
        """Tells samples what is known of their shape: a vector, the batch's and the event's."""
        x.set_shape(constant_value_as_shape(sample_shape).concatenate(self.batch_shape).concatenate(self.event_shape))
        return x

    def sample_n(self, n: Any, seed: Optional[int] = None, name: str = "sample_n") -> Tensor:
        """n samples, under the name of 0.x."""
        return self.sample(array_ops.reshape(convert_to_tensor(n, dtypes.int32), [1]), seed, name)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Any:
        raise self._lacks("sample")

    # Densities.
    def _as_event(self, value: Any) -> Tensor:
        return convert_to_tensor(value, None, "value", self._dtype)

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the density, or of the probability."""
        return self._call_log_prob(value, name)

    def _call_log_prob(self, value: Any, name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            value = self._as_event(value)
            return self._log_prob(value, **conditions) if self._has("_log_prob") else gen_ops.log(self._prob(value, **conditions))

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density, or the probability."""
        return self._call_prob(value, name)

    def _call_prob(self, value: Any, name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            value = self._as_event(value)
            return self._prob(value, **conditions) if self._has("_prob") else gen_ops.exp(self._log_prob(value, **conditions))

    log_pdf = log_pmf = log_prob
    pdf = pmf = prob

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """The logarithm of the probability of no more than a value."""
        return self._call_log_cdf(value, name)

    def _call_log_cdf(self, value: Any, name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            value = self._as_event(value)
            return self._log_cdf(value, **conditions) if self._has("_log_cdf") else gen_ops.log(self._cdf(value, **conditions))

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """The probability of no more than a value."""
        return self._call_cdf(value, name)

    def _call_cdf(self, value: Any, name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            value = self._as_event(value)
            direct = self._has("_cdf") or not self._has("_log_cdf")
            return self._cdf(value, **conditions) if direct else gen_ops.exp(self._log_cdf(value, **conditions))

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """The probability of more than a value."""
        return self._call_survival_function(value, name)

    def _call_survival_function(self, value: Any, name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            value = self._as_event(value)
            if self._has("_survival_function"):
                return self._survival_function(value, **conditions)
            return 1.0 - self._call_cdf(value, "cdf", **conditions)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """The logarithm of the probability of more than a value."""
        return self._call_log_survival_function(value, name)

    def _call_log_survival_function(self, value: Any, name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            value = self._as_event(value)
            if self._has("_log_survival_function"):
                return self._log_survival_function(value, **conditions)
            return gen_ops.log1p(-self._call_cdf(value, "cdf", **conditions))

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """The value that a share of samples does not exceed."""
        return self._call_quantile(value, name)

    def _call_quantile(self, value: Any, name: str, **conditions: Any) -> Tensor:
        with self._scope(name):
            return self._quantile(self._as_event(value), **conditions)

    # Moments.
    def mean(self, name: str = "mean") -> Tensor:
        """The mean."""
        with self._scope(name):
            return self._mean()

    def mode(self, name: str = "mode") -> Tensor:
        """The most probable value."""
        with self._scope(name):
            return self._mode()

    def entropy(self, name: str = "entropy") -> Tensor:
        """Shannon's entropy in nats."""
        with self._scope(name):
            return self._entropy()

    def variance(self, name: str = "variance") -> Tensor:
        """The variance."""
        with self._scope(name):
            return self._variance() if self._has("_variance") or not self._has("_stddev") else gen_ops.square(self._stddev())

    def stddev(self, name: str = "stddev") -> Tensor:
        """The standard deviation."""
        with self._scope(name):
            return self._stddev() if self._has("_stddev") else gen_ops.sqrt(self._variance())

    std = stddev

    def covariance(self, name: str = "covariance") -> Tensor:
        """The covariances of the parts of an event."""
        with self._scope(name):
            return self._covariance()

    def cross_entropy(self, other: Any, name: str = "cross_entropy") -> Tensor:
        """The cross entropy with another distribution."""
        with self._scope(name):
            return cross_entropy(self, other, self.allow_nan_stats)

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Tensor:
        """The Kullback-Leibler divergence from another distribution."""
        with self._scope(name):
            return kl_divergence(self, other, self.allow_nan_stats)

    def _has(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Distribution, name)

    def _lacks(self, what: str) -> Exception:
        return at_user_line(NotImplementedError("%s of %s is not implemented" % (what, type(self).__name__)))

    def _log_prob(self, value: Any) -> Any:
        raise self._lacks("log_prob")

    def _prob(self, value: Any) -> Any:
        raise self._lacks("prob")

    def _log_cdf(self, value: Any) -> Any:
        raise self._lacks("log_cdf")

    def _cdf(self, value: Any) -> Any:
        raise self._lacks("cdf")

    def _survival_function(self, value: Any) -> Any:
        raise self._lacks("survival_function")

    def _log_survival_function(self, value: Any) -> Any:
        raise self._lacks("log_survival_function")

    def _quantile(self, value: Any) -> Any:
        raise self._lacks("quantile")

    def _mean(self) -> Any:
        raise self._lacks("mean")

    def _mode(self) -> Any:
        raise self._lacks("mode")

    def _entropy(self) -> Any:
        raise self._lacks("entropy")

    def _variance(self) -> Any:
        raise self._lacks("variance")

    def _stddev(self) -> Any:
        raise self._lacks("stddev")

    def _covariance(self) -> Any:
        raise self._lacks("covariance")


_DIVERGENCES: Dict[Tuple[type, type], Callable[..., Any]] = {}


class RegisterKL:
    """Decorates the function that says how far one kind of distribution is from another."""

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(kl_fn):
            raise at_user_line(TypeError("kl_fn must be callable, received: %s" % kl_fn))
        if self._key in _DIVERGENCES:
            raise at_user_line(
                ValueError("KL(%s || %s) has already been registered to: %s" % (self._key[0].__name__, self._key[1].__name__, _DIVERGENCES[self._key]))
            )
        _DIVERGENCES[self._key] = kl_fn
        return kl_fn


def _registered_kl(kind_a: type, kind_b: type) -> Optional[Callable[..., Any]]:
    """The function of the nearest base classes, or None."""
    places = [(i + j, i, a, b) for i, a in enumerate(kind_a.__mro__) for j, b in enumerate(kind_b.__mro__) if (a, b) in _DIVERGENCES]
    if not places:
        return None
    _, _, a, b = min(places, key=lambda place: place[:2])
    return _DIVERGENCES[a, b]


def kl_divergence(distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: Optional[str] = None) -> Tensor:
    """The Kullback-Leibler divergence of a from b; without allow_nan_stats an error of the step where it is NaN."""
    kl_fn = _registered_kl(type(distribution_a), type(distribution_b))
    if kl_fn is None:
        raise at_user_line(
            NotImplementedError(
                "No KL(distribution_a || distribution_b) registered for distribution_a type %s and distribution_b type %s"
                % (type(distribution_a).__name__, type(distribution_b).__name__)
            )
        )
    with name_scope(name or "KullbackLeibler"):
        taken = inspect.signature(kl_fn).parameters
        found = kl_fn(distribution_a, distribution_b, **({"name": name} if "name" in taken else {}))
        if allow_nan_stats:
            return found
        found = convert_to_tensor(found, name="kl")
        from millrace.ops import control_flow_ops, math_ops

        fine = control_flow_ops.Assert(
            gen_ops.logical_not(math_ops.reduce_any(gen_ops.is_nan(found))),
            [
                "KL calculation between %s and %s returned NaN values (and was called with allow_nan_stats=False). Values:"
                % (distribution_a.name, distribution_b.name),
                found,
            ],
        )
        with control_dependencies([fine]):
            return array_ops.identity(found, "checked_kl")


def cross_entropy(ref: Any, other: Any, allow_nan_stats: bool = True, name: Optional[str] = None) -> Tensor:
    """The cross entropy of ref with other; without allow_nan_stats an error of the step where the divergence is NaN."""
    with name_scope(name or "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats)


def kl(a: Any, b: Any, allow_nan_stats: bool = True, allow_nan: bool = True, name: Optional[str] = None) -> Tensor:
    """kl_divergence under its name of 0.x."""
    return kl_divergence(a, b, allow_nan_stats and allow_nan, name)
