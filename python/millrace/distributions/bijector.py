# SPDX-License-Identifier: Apache-2.0
"""Functions that have an inverse and a Jacobian, and distributions that they make of others."""

from __future__ import annotations

import abc
import contextlib
from typing import Any, Dict, Iterator, Optional, Tuple

import numpy as np

from millrace.distributions.distribution import Distribution, in_front, joined
from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.static_values import constant_value, constant_value_as_shape
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.unique_names import snake
from millrace.ops import array_ops, check_ops, math_ops

_MOST_DIMENSIONS = 254  # of a tensor


class Bijector(metaclass=abc.ABCMeta):
    """Base: a subclass has _forward, _inverse, and one of the two logarithms of the determinant of the Jacobian."""

    @abc.abstractmethod
    def __init__(
        self,
        event_ndims: Any = None,
        graph_parents: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        name: Optional[str] = None,
        forward_min_event_ndims: Optional[int] = None,
        inverse_min_event_ndims: Optional[int] = None,
    ) -> None:
        if event_ndims is None and forward_min_event_ndims is None:
            forward_min_event_ndims = inverse_min_event_ndims
        if forward_min_event_ndims is not None:
            event_ndims = forward_min_event_ndims
            self._gain = 0 if inverse_min_event_ndims is None else inverse_min_event_ndims - forward_min_event_ndims
        if event_ndims is not None:
            event_ndims = convert_to_tensor(event_ndims, dtypes.int32, "event_ndims")
        self._event_ndims, self._graph_parents = event_ndims, list(graph_parents or [])
        for parent in self._graph_parents:
            if not isinstance(parent, Tensor):
                raise at_user_line(ValueError("Graph parent item is not a Tensor; %s." % (parent,)))
        self._is_constant_jacobian, self._validate_args, self._dtype = is_constant_jacobian, validate_args, dtype
        self._name = name or snake(type(self).__name__.lstrip("_"))
        # By what was asked of which tensor under which conditions: the answer, and what must live so that its id stays its own.
        self._known: Dict[Any, Tuple[Any, Any]] = {}

    graph_parents = property(lambda self: self._graph_parents, doc="The tensors that it was made of.")
    event_ndims = property(lambda self: self._event_ndims, doc="How many dimensions an event has.")
    is_constant_jacobian = property(lambda self: self._is_constant_jacobian, doc="Whether the Jacobian is the same everywhere.")
    validate_args = property(lambda self: self._validate_args, doc="Whether values are checked.")
    dtype = property(lambda self: self._dtype, doc="The type that it takes, or None.")
    name = property(lambda self: self._name, doc="Its name.")

    is_injective = True
    _gain = 0  # how many more dimensions an event has after it

    @property
    def forward_min_event_ndims(self) -> int:
        """How many dimensions of its argument it needs together."""
        known = constant_value(self._event_ndims) if isinstance(self._event_ndims, Tensor) else self._event_ndims
        return 0 if known is None else int(known)

    @property
    def inverse_min_event_ndims(self) -> int:
        """How many dimensions of its value the inverse needs together."""
        return self.forward_min_event_ndims + self._gain

    @contextlib.contextmanager
    def _name_scope(self, name: Optional[str] = None, values: Any = None) -> Iterator[str]:
        """The scope of a method, for subclasses."""
        with name_scope(self._name), name_scope(name, values=list(values or []) + self._graph_parents) as scope:
            yield scope

    # ---- shapes ----

    def forward_event_shape_tensor(self, input_shape: Any, name: str = "forward_event_shape_tensor") -> Tensor:
        """The shape of an event after it."""
        with name_scope(self._name + "/" + name):
            return self._forward_event_shape_tensor(convert_to_tensor(input_shape, dtypes.int32, "input_shape"))

    def inverse_event_shape_tensor(self, output_shape: Any, name: str = "inverse_event_shape_tensor") -> Tensor:
        """The shape of an event before it."""
        with name_scope(self._name + "/" + name):
            return self._inverse_event_shape_tensor(convert_to_tensor(output_shape, dtypes.int32, "output_shape"))

    def forward_event_shape(self, input_shape: Any) -> TensorShape:
        """The shape of an event after it, where that is known."""
        return self._forward_event_shape(TensorShape(input_shape))

    def inverse_event_shape(self, output_shape: Any) -> TensorShape:
        """The shape of an event before it, where that is known."""
        return self._inverse_event_shape(TensorShape(output_shape))

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return output_shape

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return output_shape

    # ---- values ----

    def _missing(self, what: str) -> Exception:
        return at_user_line(NotImplementedError("%s not implemented." % what))

    def _forward(self, x: Any) -> Any:
        raise self._missing("forward")

    def _inverse(self, y: Any) -> Any:
        raise self._missing("inverse")

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        raise self._missing("forward_log_det_jacobian")

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        raise self._missing("inverse_log_det_jacobian")

    def _has(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Bijector, name)

    def _taken(self, value: Any, what: str) -> Tensor:
        value = convert_to_tensor(value, name=what)
        if self._dtype is not None and value.dtype.base_dtype != dtypes.as_dtype(self._dtype):
            raise at_user_line(TypeError("Input had dtype %s but expected %s." % (value.dtype.name, dtypes.as_dtype(self._dtype).name)))
        return value

    def _key(self, what: str, value: Any, conditions: Dict[str, Any]) -> Any:
        return (what, id(value), tuple(sorted((k, id(v)) for k, v in conditions.items())))

    def _remember(self, what: str, value: Any, conditions: Dict[str, Any], answer: Any) -> None:
        self._known[self._key(what, value, conditions)] = (answer, (value, conditions))

    def _recall(self, what: str, value: Any, conditions: Dict[str, Any]) -> Any:
        found = self._known.get(self._key(what, value, conditions))
        return None if found is None else found[0]

    def forward(self, x: Any, name: str = "forward", **condition_kwargs: Any) -> Tensor:
        """The value of the function; what inverse was asked for is remembered."""
        with name_scope(self._name + "/" + name):
            x = self._taken(x, "x")
            found = self._recall("y", x, condition_kwargs)
            if found is None:
                found = self._forward(x, **condition_kwargs)
                self._remember("y", x, condition_kwargs, found)
                self._remember("x", found, condition_kwargs, x)
            return found

    def inverse(self, y: Any, name: str = "inverse", **condition_kwargs: Any) -> Tensor:
        """The value of the inverse; what forward was asked for is remembered."""
        with name_scope(self._name + "/" + name):
            y = self._taken(y, "y")
            found = self._recall("x", y, condition_kwargs)
            if found is None:
                found = self._inverse(y, **condition_kwargs)
                self._remember("x", y, condition_kwargs, found)
                self._remember("y", found, condition_kwargs, y)
            return found

    def _jacobian(self, given: Any, forward: bool, conditions: Dict[str, Any]) -> Any:
        """The logarithm of the determinant at x (forward) or y, by what the subclass has and what is known already."""
        other = self._recall("y" if forward else "x", given, conditions)
        for value, key, sign in ((given, "fldj" if forward else "ildj", 1), (other, "ildj" if forward else "fldj", -1)):
            found = None if value is None else self._recall(key, value, conditions)
            if found is not None:
                return found if sign == 1 else -found
        own, opposite = ("_forward_log_det_jacobian", "_inverse_log_det_jacobian") if forward else ("_inverse_log_det_jacobian", "_forward_log_det_jacobian")
        made = None
        if self._has(own) or not self._has(opposite):
            try:
                made = getattr(self, own)(given, **conditions)
            except NotImplementedError:  # a subclass may say so of one of them
                if not self._has(opposite):
                    raise
        if made is None:
            value = self.forward(given, **conditions) if forward else self.inverse(given, **conditions)
            made = -getattr(self, opposite)(value, **conditions)
        self._remember("fldj" if forward else "ildj", given, conditions, made)
        return made

    def forward_log_det_jacobian(self, x: Any, event_ndims: Any = None, name: str = "forward_log_det_jacobian", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the determinant of the Jacobian at x, of events of `event_ndims` dimensions (1.4: those that it was made for)."""
        if isinstance(event_ndims, str):
            event_ndims, name = None, event_ndims
        with name_scope(self._name + "/" + name):
            x = self._taken(x, "x")
            return self._over_events(self._jacobian(x, True, condition_kwargs), x, event_ndims, self.forward_min_event_ndims)

    def inverse_log_det_jacobian(self, y: Any, event_ndims: Any = None, name: str = "inverse_log_det_jacobian", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the determinant of the inverse's Jacobian at y, of events of `event_ndims` dimensions (1.4: those that it was made for)."""
        if isinstance(event_ndims, str):
            event_ndims, name = None, event_ndims
        with name_scope(self._name + "/" + name):
            y = self._taken(y, "y")
            return self._over_events(self._jacobian(y, False, condition_kwargs), y, event_ndims, self.inverse_min_event_ndims)

    def _over_events(self, logarithm: Any, value: Tensor, event_ndims: Any, least: int) -> Any:
        """The sum over the dimensions of events beyond the `least` that `logarithm` is of already; those of the batch stay as `logarithm` has them."""
        if event_ndims is None:
            return logarithm
        known = constant_value(event_ndims) if isinstance(event_ndims, Tensor) else event_ndims
        if known is None:
            with control_dependencies([check_ops.assert_rank(event_ndims, 0, message="Expected scalar event_ndims.")]):
                extra = array_ops.identity(event_ndims) - least
            fits = [
                check_ops.assert_non_negative(extra, message="event_ndims must be at least %d." % least),
                check_ops.assert_less_equal(extra, array_ops.rank(value) - least, message="event_ndims must be at most the rank of the value."),
            ]
            with control_dependencies(fits):
                extra = array_ops.identity(extra)
        else:
            if np.ndim(known):
                raise at_user_line(ValueError("Expected scalar event_ndims for %s, got %s" % (self._name, known)))
            if known != int(known):
                raise at_user_line(ValueError("Expected integer event_ndims for %s, got %s" % (self._name, known)))
            if known < least:
                raise at_user_line(
                    ValueError("event_ndims (%d) must be larger than or equal to min_event_ndims: at least %d for %s" % (known, least, self._name))
                )
            most = value.get_shape().ndims
            most = _MOST_DIMENSIONS if most is None else most
            if known > most:
                raise at_user_line(ValueError("event_ndims must be at most %d, the rank of the value, for %s, got %d" % (most, self._name, known)))
            extra = int(known) - least
            if not extra:
                return logarithm
        rank: Any = value.get_shape().ndims
        rank = array_ops.rank(value) if rank is None else rank
        parts = array_ops.shape(value)[rank - least - extra : rank - least]
        axes = list(range(-extra, 0)) if isinstance(extra, int) else math_ops.range(-extra, 0)
        return math_ops.reduce_sum(logarithm + array_ops.zeros(parts, value.dtype.base_dtype), axes)

    def _event_sum(self, x: Any) -> Any:
        """The sum over the dimensions of an event."""
        count = constant_value(self._event_ndims) if isinstance(self._event_ndims, Tensor) else self._event_ndims
        if count is None:
            rank = array_ops.rank(x)
            return math_ops.reduce_sum(x, math_ops.range(rank - self._event_ndims, rank))
        return math_ops.reduce_sum(x, list(range(-int(count), 0))) if int(count) else x


class Identity(Bijector):
    """y = x."""

    def __init__(self, validate_args: bool = False, event_ndims: Any = 0, name: str = "identity") -> None:
        super().__init__(event_ndims, is_constant_jacobian=True, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return x

    _inverse = _forward  # type: ignore[assignment]

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return convert_to_tensor(0.0, x.dtype.base_dtype)

    _inverse_log_det_jacobian = _forward_log_det_jacobian  # type: ignore[assignment]


def least_dimensions(bijectors: Any) -> int:
    """How many dimensions of its argument a chain needs together, the last bijector first."""
    least = gained = 0
    for b in reversed(bijectors):
        least = max(least, b.forward_min_event_ndims - gained)
        gained += b._gain
    return least


class ConditionalBijector(Bijector):
    """A bijector whose methods take more arguments."""


def _moved(x: Tensor, first: Any, count: Any, behind: Any) -> Tensor:
    """With `count` dimensions from `first` on behind the next ones, of which there are so many."""
    r = math_ops.range
    ends = first, first + count, first + count + behind, array_ops.rank(x)
    return array_ops.transpose(x, array_ops.concat([r(0, ends[0]), r(ends[1], ends[2]), r(ends[0], ends[1]), r(ends[2], ends[3])], 0))


class TransformedDistribution(Distribution):
    """What a bijector makes of the samples of a distribution."""

    def __init__(
        self, distribution: Any, bijector: Any = None, batch_shape: Any = None, event_shape: Any = None, validate_args: bool = False, name: Optional[str] = None
    ) -> None:
        self._more, self._more_static = [], []  # shapes in place of those of the distribution, which must be scalar there; empty ones are none
        for shape, what, own in ((batch_shape, "batch", distribution.batch_shape), (event_shape, "event", distribution.event_shape)):
            given = convert_to_tensor([] if shape is None else shape, dtypes.int32, what + "_shape")
            static = constant_value_as_shape(given)
            if static.ndims and own.ndims != 0:
                raise at_user_line(ValueError("%s_shape is given, but the base distribution not scalar in its %s: %s of %s" % (what, what, distribution, own)))
            self._more.append(given)
            self._more_static.append(static)
        self._bijector = bijector if bijector is not None else Identity(validate_args=validate_args)
        self._distribution = distribution
        with name_scope(name or self._bijector.name + distribution.name.rstrip("/").split("/")[-1]) as scope:
            pass
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            graph_parents=[*getattr(distribution, "_graph_parents", []), *self._bijector.graph_parents],
            name=scope,
        )

    bijector = property(lambda self: self._bijector, doc="What is done to the samples.")
    distribution = property(lambda self: self._distribution, doc="Where the samples come from.")

    def _batch_shape(self) -> TensorShape:
        return self._more_static[0].concatenate(self._distribution.batch_shape)

    def _batch_shape_tensor(self) -> Tensor:
        return joined(self._more[0], self._distribution.batch_shape_tensor())

    def _base_event_shape(self) -> TensorShape:
        return self._more_static[1].concatenate(self._distribution.event_shape)

    def _base_event_shape_tensor(self) -> Tensor:
        return joined(self._more[1], self._distribution.event_shape_tensor())

    def _event_shape(self) -> TensorShape:
        return self._bijector.forward_event_shape(self._base_event_shape())

    def _event_shape_tensor(self) -> Tensor:
        return self._bijector.forward_event_shape_tensor(self._base_event_shape_tensor())

    def _call_sample_n(  # type: ignore[override]
        self, sample_shape: Any, seed: Optional[int], name: str, bijector_kwargs: Any = None, distribution_kwargs: Any = None
    ) -> Tensor:
        with self._scope(name):  # the bijector sees the samples as they are handed out: it remembers where they came from
            lead, count = in_front(sample_shape)
            drawn = self._distribution.sample(joined(count, *self._more), seed, **distribution_kwargs or {})
            if self._moves():  # numbers of the event were drawn in front of the batch
                drawn = _moved(drawn, 1, array_ops.size(self._more[1]), array_ops.size(self._distribution.batch_shape_tensor()))
            x = array_ops.reshape(drawn, joined(lead, array_ops.shape(drawn)[1:]))
            static = constant_value_as_shape(lead).concatenate(self.batch_shape)
            x.set_shape(static.concatenate(self._base_event_shape()))
            made = self._bijector.forward(x, **bijector_kwargs or {})
            made.set_shape(static.concatenate(self.event_shape))
            return made

    def _moves(self) -> bool:
        """Whether an event of several numbers stands for one of a distribution with a batch, or may do so."""
        return self._more_static[1].ndims != 0 and self._distribution.batch_shape.ndims != 0

    def _log_prob(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        x = self._bijector.inverse(value, **bijector_kwargs or {})
        rank = self._base_event_shape().ndims
        # An event has the dimensions that the distribution says; a vector of the batch is one where the bijector takes vectors.
        wanted = None if rank is None else max(rank + self._bijector._gain, self._bijector.inverse_min_event_ndims)
        change = self._bijector.inverse_log_det_jacobian(value, wanted, **bijector_kwargs or {})
        if rank is None and self._more_static[1].ndims is None:  # that of the least events: sums of those in this one
            least = self._bijector.inverse_min_event_ndims
            value = convert_to_tensor(value)
            several = math_ops.range(-(array_ops.size(self.event_shape_tensor()) - least), 0)
            zero = array_ops.zeros(array_ops.shape(value)[: array_ops.rank(value) - least], value.dtype.base_dtype)
            change = nest.map_structure(lambda each: math_ops.reduce_sum(each + zero, several), change)
        if isinstance(x, tuple):  # several values have this image
            parts = [self._log_prob_of_base(part, distribution_kwargs) + each for part, each in zip(x, change)]
            return math_ops.reduce_logsumexp(array_ops.stack(parts), 0)
        logs = self._log_prob_of_base(x, distribution_kwargs)
        return logs + math_ops.cast(change, logs.dtype.base_dtype)

    def _log_prob_of_base(self, x: Any, conditions: Any) -> Any:
        if self._more_static[1].ndims == 0:
            return self._distribution.log_prob(x, **conditions or {})
        more = array_ops.size(self._more[1])
        if not self._moves():
            return math_ops.reduce_sum(self._distribution.log_prob(x, **conditions or {}), math_ops.range(-more, 0))
        own = array_ops.size(self._distribution.event_shape_tensor())  # not 0 only where there is no event of several numbers
        front = _moved(x, 0, array_ops.rank(x) - more - own, more)
        return math_ops.reduce_sum(self._distribution.log_prob(front, **conditions or {}), math_ops.range(0, more))

    def _at_inverse(self, what: str, value: Any, bijector_kwargs: Any, distribution_kwargs: Any) -> Any:
        """A function of the distribution where an increasing bijector has the value."""
        self._refuse_overridden_event(what)
        if self._base_event_shape().ndims != 0 or not self._bijector.is_injective:
            raise self._lacks(what)
        return getattr(self._distribution, what)(self._bijector.inverse(value, **bijector_kwargs or {}), **distribution_kwargs or {})

    def _refuse_overridden_event(self, what: str) -> None:
        if self._more_static[1].ndims != 0:
            raise at_user_line(NotImplementedError("%s is not implemented when overriding event_shape" % what))

    def _cdf(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._at_inverse("cdf", value, bijector_kwargs, distribution_kwargs)

    def _log_cdf(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._at_inverse("log_cdf", value, bijector_kwargs, distribution_kwargs)

    def _survival_function(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._at_inverse("survival_function", value, bijector_kwargs, distribution_kwargs)

    def _log_survival_function(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        return self._at_inverse("log_survival_function", value, bijector_kwargs, distribution_kwargs)

    def _quantile(self, value: Any, bijector_kwargs: Any = None, distribution_kwargs: Any = None) -> Any:
        self._refuse_overridden_event("quantile")
        if self._base_event_shape().ndims != 0 or not self._bijector.is_injective:
            raise self._lacks("quantile")
        return self._bijector.forward(self._distribution.quantile(value, **distribution_kwargs or {}), **bijector_kwargs or {})

    def _entropy(self) -> Any:
        if not self._bijector.is_constant_jacobian or not self._bijector.is_injective:
            raise at_user_line(NotImplementedError("entropy is not implemented: the Jacobian is not constant, or several values have one image"))
        base = self._base_event_shape()
        zero = array_ops.zeros(base.as_list() if base.is_fully_defined() else self._base_event_shape_tensor(), self.dtype)
        own = self._distribution.entropy() * math_ops.cast(math_ops.reduce_prod(self._more[1]), self.dtype)
        if self._more_static[0].ndims != 0:
            own = own + array_ops.zeros(self.batch_shape_tensor(), self.dtype)
        change = self._bijector.forward_log_det_jacobian(zero, None if base.ndims is None else max(base.ndims, self._bijector.forward_min_event_ndims))
        return own + math_ops.cast(change, own.dtype.base_dtype)

    def _mean(self) -> Any:
        if not self._bijector.is_constant_jacobian or not self._bijector.is_injective:
            raise at_user_line(NotImplementedError("mean is not implemented for non-linear bijectors"))
        mean = self._distribution.mean()
        if any(static.ndims != 0 for static in self._more_static):
            ones, own = array_ops.ones_like(self._more[1]), self._distribution
            mean = array_ops.reshape(mean, joined(own.batch_shape_tensor(), ones, own.event_shape_tensor()))
            mean = mean + array_ops.zeros(joined(self._batch_shape_tensor(), self._base_event_shape_tensor()), self.dtype)
        return self._bijector.forward(mean)
