# SPDX-License-Identifier: Apache-2.0
"""Distributions made of another: mixtures of one family, other shapes of batches, whole numbers, one place after the other."""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Optional

import numpy as np

from millrace.distributions.discrete import Categorical
from millrace.distributions.distribution import NOT_REPARAMETERIZED, Distribution, checked, float_parameters, joined
from millrace.distributions.util import gen_new_seed
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.random_seed import op_seeds
from millrace.framework.static_values import constant_value, constant_value_as_shape
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, nn_ops


class MixtureSameFamily(Distribution):
    """One of a batch of distributions, its last dimension, by chance."""

    def __init__(
        self,
        mixture_distribution: Any,
        components_distribution: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        self._mixture, self._components = mixture_distribution, components_distribution
        if not isinstance(mixture_distribution, Categorical) and mixture_distribution.event_shape.ndims != 0:
            raise at_user_line(ValueError("mixture_distribution must be of numbers of classes, got %s" % mixture_distribution))
        batch, self._event_rank = components_distribution.batch_shape, components_distribution.event_shape.ndims
        if self._event_rank is None or batch.ndims == 0:
            raise at_user_line(ValueError("components_distribution must have a batch, whose last dimension is what is mixed, and events of a known rank"))
        known = [getattr(mixture_distribution.logits.get_shape().with_rank_at_least(1)[-1], "value", None), None if batch.ndims is None else batch[-1].value]
        if None not in known and known[0] != known[1]:
            raise at_user_line(ValueError("mixture_distribution has %s classes, components_distribution %s" % (known[0], known[1])))
        if mixture_distribution.batch_shape.ndims != 0 and not mixture_distribution.batch_shape.is_compatible_with(self._batch_shape()):
            raise at_user_line(
                ValueError(
                    "mixture_distribution's batch %s is not that of components_distribution, %s" % (mixture_distribution.batch_shape, self._batch_shape())
                )
            )
        with name_scope(name) as scope:
            pass
        super().__init__(components_distribution.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, name=scope)

    mixture_distribution = property(lambda self: self._mixture)
    components_distribution = property(lambda self: self._components)

    def _batch_shape(self) -> TensorShape:
        batch = self._components.batch_shape
        return batch if batch.ndims is None else batch[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return self._components.batch_shape_tensor()[:-1]

    def _event_shape(self) -> TensorShape:
        return self._components.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._components.event_shape_tensor()

    def _before_event(self, x: Tensor) -> Tensor:
        """x with a dimension for the components before those of the event."""
        return array_ops.expand_dims(x, -1 - self._event_rank)

    def _weighted(self, values: Tensor, weights: Tensor) -> Tensor:
        for _ in range(self._event_rank):
            weights = array_ops.expand_dims(weights, -1)
        return math_ops.reduce_sum(values * weights, [-1 - self._event_rank])

    def _probs(self) -> Tensor:
        return nn_ops.softmax(self._mixture.logits)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        drawn = self._components.sample(array_ops.reshape(n, [1]), seed)
        lead = joined(n, self.batch_shape_tensor()) if self._mixture.batch_shape.ndims == 0 else array_ops.reshape(n, [1])
        chosen = self._mixture.sample(lead, gen_new_seed(seed, "MixtureSameFamily"))
        one = array_ops.one_hot(chosen, self._mixture.logits.get_shape()[-1].value or array_ops.shape(self._mixture.logits)[-1], dtype=drawn.dtype)
        for _ in range(self._event_rank):
            one = array_ops.expand_dims(one, -1)
        chosen_only = array_ops.where(gen_ops.greater(one + array_ops.zeros_like(drawn), 0), drawn, array_ops.zeros_like(drawn))  # others may be infinite
        return math_ops.reduce_sum(chosen_only, [-1 - self._event_rank])

    def _log_prob(self, x: Tensor) -> Tensor:
        logs = self._components.log_prob(self._before_event(x))
        return math_ops.reduce_logsumexp(logs + nn_ops.log_softmax(self._mixture.logits), [-1])

    def _cdf(self, x: Tensor) -> Tensor:
        return math_ops.reduce_sum(self._components.cdf(self._before_event(x)) * self._probs(), [-1])

    def _mean(self) -> Tensor:
        return self._weighted(self._components.mean(), self._probs())

    def _variance(self) -> Tensor:
        means = self._components.mean()
        middle = self._before_event(self._weighted(means, self._probs()))
        return self._weighted(self._components.variance() + gen_ops.squared_difference(means, middle), self._probs())

    def _covariance(self) -> Tensor:
        if self._event_rank != 1:
            raise self._lacks("covariance")
        means, weights = self._components.mean(), self._probs()
        away = array_ops.expand_dims(means - self._before_event(self._weighted(means, weights)), -1)
        within = self._components.covariance() + gen_ops.batch_mat_mul(away, away, adj_y=True)
        return math_ops.reduce_sum(within * array_ops.expand_dims(array_ops.expand_dims(weights, -1), -1), [-3])


class BatchReshape(Distribution):
    """A distribution whose batch has another shape."""

    def __init__(self, distribution: Any, batch_shape: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: Optional[str] = None) -> None:
        self._distribution = distribution
        shape = convert_to_tensor(batch_shape, dtypes.int32, "batch_shape")
        rank = shape.get_shape().ndims
        if rank is not None and rank != 1:
            raise at_user_line(ValueError("`batch_shape` must be a vector (saw rank: %d)." % rank))
        self._static, old = constant_value_as_shape(shape), distribution.batch_shape
        size = self._static.num_elements()
        if size is not None and old.is_fully_defined() and size != old.num_elements():
            raise at_user_line(ValueError("`batch_shape` size (%s) must match `distribution.batch_shape` size (%s)." % (size, old.num_elements())))
        if self._static.ndims is not None and any(d is not None and d < 1 for d in self._static.as_list()):
            raise at_user_line(ValueError("`batch_shape` elements must be >=-1."))
        given = constant_value(shape)
        if given is not None and -1 in given.tolist() and old.is_fully_defined():
            self._static = _without_minus_one(given, old)
        with name_scope(name or "BatchReshape" + distribution.name.rstrip("/").rsplit("/", 1)[-1]) as scope:
            known = self._static.is_fully_defined()
            self._shape = convert_to_tensor(self._static.as_list(), dtypes.int32) if known else _expanded(shape, distribution, validate_args)
        super().__init__(distribution.dtype, distribution.reparameterization_type, validate_args, allow_nan_stats, name=scope)

    distribution = property(lambda self: self._distribution)

    def _batch_shape(self) -> TensorShape:
        return self._static

    def _batch_shape_tensor(self) -> Tensor:
        return self._shape

    def _event_shape(self) -> TensorShape:
        return self._distribution.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        drawn = self._distribution.sample(array_ops.reshape(n, [1]), seed)
        return array_ops.reshape(drawn, joined(n, self._shape, self.event_shape_tensor()))

    def _checked_value(self, x: Tensor) -> Tensor:
        """A value, which must have the batch and the event: nothing is broadcast."""
        few, other = "Broadcasting is not supported; too few batch and event dims", "Broadcasting is not supported; unexpected batch and event shape"
        wanted, given = self._static.concatenate(self.event_shape), x.get_shape()
        if wanted.ndims is not None and given.ndims is not None:
            if given.ndims < wanted.ndims:
                raise at_user_line(NotImplementedError("%s (expected at least %d, saw %d)." % (few, wanted.ndims, given.ndims)))
            last = given[given.ndims - wanted.ndims :]
            if not last.is_compatible_with(wanted):
                raise at_user_line(NotImplementedError("%s (expected %s, saw %s)." % (other, wanted, last)))
            if last.is_fully_defined() and wanted.is_fully_defined():
                return x
        whole = joined(self._shape, self.event_shape_tensor())

        def fits(x: Tensor) -> Any:
            with control_dependencies([check_ops.assert_greater_equal(array_ops.rank(x), array_ops.size(whole), message=few + ".")]):
                return check_ops.assert_equal(whole, array_ops.shape(x)[array_ops.rank(x) - array_ops.size(whole) :], message=other + ".")

        return checked(x, self._validate_args, fits)

    def _of_values(self, function: Callable[..., Tensor], x: Tensor) -> Tensor:
        """A function of values, to which this batch's shape is given: the base sees its own."""
        x = self._checked_value(x)
        events, static = self.event_shape_tensor(), x.get_shape()
        lead = array_ops.shape(x)[: array_ops.rank(x) - array_ops.size(self._shape) - array_ops.size(events)]
        found = function(array_ops.reshape(x, joined(lead, self._distribution.batch_shape_tensor(), events)))
        made = array_ops.reshape(found, joined(lead, self._shape))
        rank, of_batch, of_event = static.ndims, self._static.ndims, self.event_shape.ndims
        if rank is not None and of_batch is not None and of_event is not None:
            made.set_shape(static[: rank - of_batch - of_event].concatenate(self._static))
        return made

    def _of_batch(self, statistic: Tensor, events: Any, static: TensorShape) -> Tensor:
        wide = statistic + array_ops.zeros(joined(self._distribution.batch_shape_tensor(), events), self.dtype)
        made = array_ops.reshape(wide, joined(self._shape, events))
        made.set_shape(self._static.concatenate(static))
        return made

    def _of_event(self, statistic: Tensor) -> Tensor:
        return self._of_batch(statistic, self.event_shape_tensor(), self.event_shape)

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._of_values(self._distribution.log_prob, x)

    def _prob(self, x: Tensor) -> Tensor:
        return self._of_values(self._distribution.prob, x)

    def _cdf(self, x: Tensor) -> Tensor:
        return self._of_values(self._distribution.cdf, x)

    def _log_cdf(self, x: Tensor) -> Tensor:
        return self._of_values(self._distribution.log_cdf, x)

    def _entropy(self) -> Tensor:
        return self._of_batch(self._distribution.entropy(), [], TensorShape([]))

    def _mean(self) -> Tensor:
        return self._of_event(self._distribution.mean())

    def _mode(self) -> Tensor:
        return self._of_event(self._distribution.mode())

    def _variance(self) -> Tensor:
        return self._of_event(self._distribution.variance())

    def _stddev(self) -> Tensor:
        return self._of_event(self._distribution.stddev())

    def _covariance(self) -> Tensor:
        length = self.event_shape_tensor()
        return self._of_batch(self._distribution.covariance(), array_ops.concat([length, length], 0), self.event_shape.concatenate(self.event_shape))


def _without_minus_one(sizes: Any, old: TensorShape) -> TensorShape:
    sizes = [int(s) for s in sizes]
    if sizes.count(-1) > 1:
        raise at_user_line(ValueError("batch_shape must have at most one -1, got %s" % sizes))
    rest, size = int(np.prod([s for s in sizes if s != -1], dtype=np.int64)), old.num_elements() or 0
    if size % rest != 0:
        raise at_user_line(ValueError("batch_shape %s does not fit a batch of %d" % (sizes, size)))
    return TensorShape([size // rest if s == -1 else s for s in sizes])


def _expanded(shape: Tensor, distribution: Any, validate_args: bool) -> Tensor:
    """The sizes of a batch that a step tells, of which one may be -1."""
    size, left_out = math_ops.reduce_prod(distribution.batch_shape_tensor()), gen_ops.equal(shape, -1)
    rest = gen_ops.maximum(1, -math_ops.reduce_prod(shape))  # -1 makes it negative
    made = array_ops.where(left_out, array_ops.fill(array_ops.shape(shape), size // rest), shape)
    checks = [
        lambda _: check_ops.assert_rank(shape, 1, message="New shape must be a vector."),
        lambda _: check_ops.assert_less_equal(math_ops.reduce_sum(math_ops.cast(left_out, dtypes.int32)), 1, message="At most one dimension can be unknown."),
        lambda made: check_ops.assert_positive(made, message="Shape elements must be >=-1."),
        lambda made: check_ops.assert_equal(math_ops.reduce_prod(made), size, message="Shape sizes do not match."),
    ]
    return checked(made, validate_args, *checks)


def _assert_whole(value: Tensor) -> Any:
    return check_ops.assert_equal(value, gen_ops.floor(value), message="has non-integer components.")


def _log_of_difference(large: Tensor, small: Tensor) -> Tensor:
    """log(exp(large) - exp(small)); -inf where both are."""
    nothing = gen_ops.less_equal(large, small)
    down = array_ops.where(nothing, -array_ops.ones_like(large), small - array_ops.where(nothing, array_ops.zeros_like(large), large))
    found = large + gen_ops.log(-gen_ops.expm1(down))
    return array_ops.where(nothing, array_ops.fill(array_ops.shape(found), math_ops.cast(-math.inf, found.dtype)), found)


class QuantizedDistribution(Distribution):
    """The least whole number that is not below a number, kept from low to high: P[Y = j] = P[j - 1 < X <= j]."""

    def __init__(self, distribution: Any, low: Any = None, high: Any = None, validate_args: bool = False, name: str = "QuantizedDistribution") -> None:
        self._distribution = distribution
        with name_scope(name, values=[low, high]) as scope:
            self._low, self._high = (None if v is None else float_parameters(v, dtype=distribution.dtype)[0] for v in (low, high))
            self._low, self._high = (None if v is None else checked(v, validate_args, _assert_whole) for v in (self._low, self._high))
            if validate_args and self._low is not None and self._high is not None:
                self._low = checked(self._low, True, lambda v: check_ops.assert_less(v, self._high, message="low must be strictly less than high."))
        super().__init__(distribution.dtype, NOT_REPARAMETERIZED, validate_args, distribution.allow_nan_stats, name=scope)

    distribution = property(lambda self: self._distribution)
    low = property(lambda self: self._low)
    high = property(lambda self: self._high)

    def _batch_shape(self) -> TensorShape:
        return self._distribution.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._distribution.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._distribution.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        whole = gen_ops.ceil(self._distribution.sample(array_ops.reshape(n, [1]), seed))
        if self._low is not None:
            whole = gen_ops.maximum(whole, self._low)
        return whole if self._high is None else gen_ops.minimum(whole, self._high)

    def _bounded(self, j: Tensor, inner: Tensor, below: float, above: float) -> Tensor:
        """`inner` with other values where j is below low, or where nothing is above j."""
        wide = array_ops.zeros_like(inner)
        if self._low is not None:
            inner = array_ops.where(gen_ops.less(j + wide, self._low + wide), wide + below, inner)
        if self._high is not None:
            inner = array_ops.where(gen_ops.greater_equal(j + wide, self._high + wide), wide + above, inner)
        return inner

    def _cdf(self, y: Tensor) -> Tensor:
        j = gen_ops.floor(y)
        return self._bounded(j, self._distribution.cdf(j), 0.0, 1.0)

    def _survival_function(self, y: Tensor) -> Tensor:
        j = gen_ops.floor(y)
        return self._bounded(j, self._distribution.survival_function(j), 1.0, 0.0)

    def _asked(self, y: Tensor) -> Tensor:
        return checked(y, self._validate_args, _assert_whole)

    def _log_prob(self, y: Tensor) -> Tensor:
        y = self._asked(y)
        j = gen_ops.floor(y)
        try:
            upper, lower = (self._bounded(j + s, self._distribution.log_cdf(j + s), -math.inf, 0.0) for s in (0.0, -1.0))
            left, right = (self._bounded(j + s, self._distribution.log_survival_function(j + s), 0.0, -math.inf) for s in (-1.0, 0.0))
        except NotImplementedError:
            return gen_ops.log(self._prob(y))
        in_right = gen_ops.less(left, lower)  # of the smaller tails, which lose no digits
        return _log_of_difference(array_ops.where(in_right, left, upper), array_ops.where(in_right, right, lower))

    def _prob(self, y: Tensor) -> Tensor:
        y = self._asked(y)
        # The difference of whichever tails are smaller: those of large numbers are near 1.
        upper, lower = self._cdf(y), self._cdf(y - 1.0)
        try:
            left, right = self._survival_function(y - 1.0), self._survival_function(y)
        except NotImplementedError:
            return upper - lower
        return array_ops.where(gen_ops.less(left, lower), left - right, upper - lower)


class Autoregressive(Distribution):
    """Vectors whose places depend on those before: distribution_fn makes, of a vector, the distribution of every place."""

    def __init__(
        self,
        distribution_fn: Callable[..., Distribution],
        sample0: Any = None,
        num_steps: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Autoregressive",
    ) -> None:
        self._function = distribution_fn
        self._sample0 = sample0
        with name_scope(name) as scope:
            self._first = self._function() if sample0 is None else self._function(sample0)
        if num_steps is None:
            num_steps = self._first.event_shape.num_elements()
            if num_steps is None:
                raise at_user_line(NotImplementedError("num_steps must be given where the shape of events is not known"))
        self._steps = int(num_steps)
        if self._steps < 1:
            raise at_user_line(ValueError("num_steps (%d) must be at least 1." % self._steps))
        super().__init__(self._first.dtype, self._first.reparameterization_type, validate_args, allow_nan_stats, name=scope)

    distribution_fn = property(lambda self: self._function)
    sample0 = property(lambda self: self._sample0)
    num_steps = property(lambda self: self._steps)
    distribution0 = property(lambda self: self._first)

    def _batch_shape(self) -> TensorShape:
        return self._first.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._first.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._first.event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._first.event_shape_tensor()

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        if seed is None:
            seed = op_seeds(None)[1] or int.from_bytes(os.urandom(3), "big")  # one for all steps: a place that is settled must draw the same noise again
        drawn = self._first.sample(array_ops.reshape(n, [1]), seed)
        for _ in range(self._steps):
            drawn = self._function(drawn).sample(seed=seed)
        return drawn

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._function(x).log_prob(x)

    def _prob(self, x: Tensor) -> Tensor:
        return self._function(x).prob(x)
