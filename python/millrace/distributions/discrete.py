# SPDX-License-Identifier: Apache-2.0
"""Distributions of whole numbers, classes and counts."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.distributions.continuous import _together, renamed
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED, Distribution, RegisterKL, checked, float_parameters, joined
from millrace.distributions.util import embed_check_integer_casting_closed, embed_check_nonnegative_integer_form, get_logits_and_probs
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, nn_ops, random_ops
from millrace.framework.random_seed import op_seeds


def _logits_and_probs(logits: Any, probs: Any, classes: bool, validate: bool) -> Tuple[Tensor, Tensor]:
    """Both forms of the one that was given."""
    if (logits is None) == (probs is None):
        raise at_user_line(ValueError("Must pass probs or logits, but not both." if logits is not None else "Must pass probs or logits."))
    if probs is None:
        (logits,) = float_parameters(logits)
    else:
        (probs,) = float_parameters(probs)
    return get_logits_and_probs(logits, probs, classes, validate)


class _Numbers(Distribution):
    """A kind whose events are numbers and whose batch is that of one tensor."""

    def __init__(self, tensor: Tensor, dtype: Any, scope: str, validate_args: bool, allow_nan_stats: bool, kind: Any = NOT_REPARAMETERIZED) -> None:
        self._tensor = tensor
        super().__init__(dtype, kind, validate_args, allow_nan_stats, graph_parents=[tensor], name=scope)

    def _batch_parameters(self) -> Tuple[Tensor, ...]:
        return (self._tensor,)

    def _drawn(self, n: Any) -> Tensor:
        return joined(n, self.batch_shape_tensor())


class Bernoulli(_Numbers):
    """1 with a probability, else 0."""

    _shape_parameters = ("logits",)

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Bernoulli",
        **old_names: Any,
    ) -> None:
        if "p" in old_names:
            (probs,) = renamed(old_names, probs=("p", probs))
        with name_scope(name, values=[logits, probs]) as scope:
            self._logits, self._probs = _logits_and_probs(logits, probs, False, validate_args)
        super().__init__(self._logits, dtype, scope, validate_args, allow_nan_stats)

    logits = property(lambda self: self._logits)
    probs = p = property(lambda self: self._probs)
    q = property(lambda self: 1.0 - self._probs)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        uniform = random_ops.random_uniform(self._drawn(n), dtype=self._probs.dtype.base_dtype, seed=seed)
        return gen_ops.cast(gen_ops.less(uniform, self._probs), self.dtype)

    def _log_prob(self, event: Tensor) -> Tensor:
        if self.validate_args:
            event = embed_check_integer_casting_closed(event, dtypes.bool_)
        event = gen_ops.cast(event, self._logits.dtype.base_dtype)
        event, logits = event + array_ops.zeros_like(self._logits), self._logits + array_ops.zeros_like(event)
        return -nn_ops.sigmoid_cross_entropy_with_logits(labels=event, logits=logits)

    def _entropy(self) -> Tensor:
        return gen_ops.softplus(-self._logits) + self._logits * gen_ops.sigmoid(-self._logits)

    def _mean(self) -> Tensor:
        return array_ops.identity(self._probs)

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return gen_ops.cast(gen_ops.greater(self._probs, 0.5), self.dtype)


class BernoulliWithSigmoidProbs(Bernoulli):
    """The Bernoulli distribution of logits, which up to 1.0 were called p."""

    def __init__(
        self,
        logits: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "BernoulliWithSigmoidProbs",
        **old_names: Any,
    ) -> None:
        (logits,) = renamed(old_names, logits=("p", logits))
        super().__init__(logits, None, dtype, validate_args, allow_nan_stats, name)


@RegisterKL(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(a: Bernoulli, b: Bernoulli) -> Tensor:
    one, zero = gen_ops.softplus(-b.logits) - gen_ops.softplus(-a.logits), gen_ops.softplus(b.logits) - gen_ops.softplus(a.logits)
    return gen_ops.sigmoid(a.logits) * one + gen_ops.sigmoid(-a.logits) * zero


def _last(shape: TensorShape) -> TensorShape:
    return shape[-1:] if shape.ndims is not None else TensorShape([None])


class _Classes(Distribution):
    """A kind with logits of classes in the last dimension."""

    def __init__(self, logits: Any, probs: Any, dtype: Any, scope: str, validate_args: bool, allow_nan_stats: bool, kind: Any = NOT_REPARAMETERIZED) -> None:
        self._logits, self._probs = _logits_and_probs(logits, probs, True, validate_args)
        super().__init__(dtype or self._logits.dtype.base_dtype, kind, validate_args, allow_nan_stats, graph_parents=[self._logits], name=scope)

    logits = property(lambda self: self._logits)
    probs = p = property(lambda self: self._probs)

    @property
    def event_size(self) -> Any:
        """The number of classes, as a tensor."""
        return convert_to_tensor(_class_count(self._logits), dtypes.int32)

    num_classes = event_size

    def _batch_shape(self) -> TensorShape:
        return self._logits.get_shape()[:-1] if self._logits.get_shape().ndims is not None else TensorShape(None)

    def _batch_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._logits)[:-1]

    def _drawn_classes(self, n: Any, seed: Optional[int]) -> Tensor:
        """Classes of shape [n] + batch."""
        if self._logits.get_shape().ndims == 2:
            flat = self._logits
        else:
            flat = array_ops.reshape(self._logits, array_ops.stack([-1, _class_count(self._logits)]))
        drawn = array_ops.transpose(random_ops.multinomial(flat, n, seed))
        return array_ops.reshape(drawn, joined(n, self.batch_shape_tensor()))

    def _class_entropy(self) -> Tensor:
        return -math_ops.reduce_sum(nn_ops.softmax(self._logits) * nn_ops.log_softmax(self._logits), axis=-1)


def _class_count(logits: Tensor) -> Any:
    static = logits.get_shape()
    known = static[-1].value if static.ndims else None
    return known if known is not None else array_ops.shape(logits)[-1]


class Categorical(_Classes):
    """One of some classes, as a number."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Categorical",
        **old_names: Any,
    ) -> None:
        if "p" in old_names:
            (probs,) = renamed(old_names, probs=("p", probs))
        with name_scope(name, values=[logits, probs]) as scope:
            super().__init__(logits, probs, dtype, scope, validate_args, allow_nan_stats)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return gen_ops.cast(self._drawn_classes(n, seed), self.dtype)

    def _together(self, k: Tensor, of_classes: Tensor) -> Tuple[Tensor, Tensor]:
        """Events as whole numbers, and numbers of each class, both for all of the batch and of the events."""
        if self.validate_args:
            k = embed_check_integer_casting_closed(k, dtypes.int32)
        k = k if k.dtype.base_dtype.is_integer else gen_ops.cast(k, dtypes.int32)
        static = self.batch_shape
        if k.get_shape().is_fully_defined() and static.is_fully_defined() and k.get_shape().as_list() == static.as_list():
            return k, of_classes
        shape = gen_ops.broadcast_args(array_ops.shape(k), self.batch_shape_tensor())
        merged = array_ops.broadcast_static_shape(k.get_shape(), static)
        of_classes = of_classes * array_ops.ones(joined(shape, _class_count(self._logits)), self._logits.dtype.base_dtype)
        k = k * array_ops.ones(shape, k.dtype.base_dtype)
        if merged.ndims is not None:
            k.set_shape(merged)
            of_classes.set_shape(merged.concatenate(_last(self._logits.get_shape())))
        return k, of_classes

    def _log_prob(self, k: Tensor) -> Tensor:
        k, logits = self._together(k, self._logits)
        return -nn_ops.sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _cdf(self, k: Tensor) -> Tensor:
        """The probability of the classes below k, without k itself, as in TensorFlow."""
        k, probs = self._together(k, self._probs)
        below = array_ops.sequence_mask(k, _class_count(self._logits))
        return math_ops.reduce_sum(array_ops.where(below, probs, array_ops.zeros_like(probs)), axis=-1)

    def _entropy(self) -> Tensor:
        return self._class_entropy()

    def _mode(self) -> Tensor:
        return gen_ops.cast(math_ops.argmax(self._logits, axis=-1), self.dtype)


class OneHotCategorical(_Classes):
    """One of some classes, as a vector with a 1."""

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = dtypes.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "OneHotCategorical",
    ) -> None:
        with name_scope(name, values=[logits, probs]) as scope:
            super().__init__(logits, probs, dtype, scope, validate_args, allow_nan_stats)

    def _event_shape(self) -> TensorShape:
        return _last(self._logits.get_shape())

    def _event_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._logits)[-1:]

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return array_ops.one_hot(self._drawn_classes(n, seed), _class_count(self._logits), dtype=self.dtype)

    def _log_prob(self, x: Tensor) -> Tensor:
        return math_ops.reduce_sum(gen_ops.cast(x, self._logits.dtype.base_dtype) * nn_ops.log_softmax(self._logits), axis=-1)

    def _entropy(self) -> Tensor:
        return self._class_entropy()

    def _mean(self) -> Tensor:
        return array_ops.identity(self._probs)

    def _variance(self) -> Tensor:
        return self._probs * (1.0 - self._probs)

    def _covariance(self) -> Tensor:
        outer = array_ops.expand_dims(self._probs, -1) * array_ops.expand_dims(self._probs, -2)
        return gen_ops.matrix_set_diag(-outer, self._variance())

    def _mode(self) -> Tensor:
        return array_ops.one_hot(math_ops.argmax(self._logits, axis=-1), _class_count(self._logits), dtype=self.dtype)


@RegisterKL(OneHotCategorical, OneHotCategorical)
@RegisterKL(Categorical, Categorical)
def _classes_classes(a: Any, b: Any) -> Tensor:
    difference = nn_ops.log_softmax(a.logits) - nn_ops.log_softmax(b.logits)
    return math_ops.reduce_sum(nn_ops.softmax(a.logits) * difference, axis=-1)


def checked_counts(counts: Tensor, total: Tensor, what: str) -> Tensor:
    """Numbers of draws of each class, behind checks that they are such and that there are `total` in all."""
    counts = embed_check_nonnegative_integer_form(counts)
    return checked(counts, True, lambda c: check_ops.assert_equal(total, math_ops.reduce_sum(c, -1), message="%s must sum to `self.total_count`" % what))


class Multinomial(_Classes):
    """How often each class comes in a number of draws."""

    def __init__(
        self,
        total_count: Any = None,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Multinomial",
        **old_names: Any,
    ) -> None:
        (total_count,) = renamed({k: old_names.pop(k) for k in list(old_names) if k == "n"}, total_count=("n", total_count))
        if old_names:
            (probs,) = renamed(old_names, probs=("p", probs))
        with name_scope(name, values=[total_count, logits, probs]) as scope:
            super().__init__(logits, probs, None, scope, validate_args, allow_nan_stats)
            (self._total,) = float_parameters(total_count, dtype=self.dtype)
            if validate_args:
                self._total = embed_check_nonnegative_integer_form(self._total)

    total_count = n = property(lambda self: self._total)

    def _batch_shape(self) -> TensorShape:
        return array_ops.broadcast_static_shape(super()._batch_shape(), self._total.get_shape())

    def _batch_shape_tensor(self) -> Tensor:
        return array_ops.broadcast_dynamic_shape(super()._batch_shape_tensor(), array_ops.shape(self._total))

    def _event_shape(self) -> TensorShape:
        return _last(self._logits.get_shape())

    def _event_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._logits)[-1:]

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        totals = gen_ops.cast(self._total, dtypes.int32)
        most = math_ops.reduce_max(totals)
        batch = self.batch_shape_tensor()
        logits = self._logits + array_ops.zeros(joined(batch, [1]), self.dtype)
        drawn = array_ops.reshape(Categorical(logits)._drawn_classes(n * most, seed), joined(n, most, batch))
        if self._total.get_shape().ndims != 0:  # some take fewer draws than others: what is too much is of no class
            number = array_ops.reshape(math_ops.range(most), joined(most, array_ops.ones_like(batch)))
            fits = gen_ops.less(math_ops.cast(number, drawn.dtype) + array_ops.zeros_like(drawn), math_ops.cast(totals, drawn.dtype))
            drawn = array_ops.where(fits, drawn, -array_ops.ones_like(drawn))
        return math_ops.reduce_sum(array_ops.one_hot(drawn, _class_count(self._logits), dtype=self.dtype), axis=1)

    def _log_prob(self, counts: Tensor) -> Tensor:
        if self.validate_args:
            counts = checked_counts(counts, self._total, "counts")
        ways = gen_ops.lgamma(1.0 + self._total) - math_ops.reduce_sum(gen_ops.lgamma(1.0 + counts), axis=-1)
        return math_ops.reduce_sum(counts * nn_ops.log_softmax(self._logits), axis=-1) + ways

    def _mean(self) -> Tensor:
        return array_ops.expand_dims(self._total, -1) * self._probs

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._probs)

    def _covariance(self) -> Tensor:
        mean = self._mean()
        outer = gen_ops.mul(array_ops.expand_dims(mean, -1), array_ops.expand_dims(self._probs, -2))
        return gen_ops.matrix_set_diag(-outer, self._variance())


class Poisson(_Numbers):
    """How often something comes that comes at a rate."""

    def __init__(
        self, rate: Any = None, log_rate: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Poisson", **old_names: Any
    ) -> None:
        if "lam" in old_names:
            (rate,) = renamed(old_names, rate=("lam", rate))
        if (rate is None) == (log_rate is None):
            raise at_user_line(ValueError("Must specify exactly one of `rate` and `log_rate`."))
        with name_scope(name, values=[rate, log_rate]) as scope:
            (given,) = float_parameters(log_rate if rate is None else rate)
            self._rate = gen_ops.exp(given) if rate is None else checked(given, validate_args, check_ops.assert_positive)
            self._log_rate = given if rate is None else gen_ops.log(given)
        super().__init__(self._rate, self._rate.dtype, scope, validate_args, allow_nan_stats)

    rate = lam = property(lambda self: self._rate)
    log_rate = property(lambda self: self._log_rate)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        seed1, seed2 = op_seeds(seed)
        return gen_ops.random_poisson_v2(array_ops.reshape(n, [1]), self._rate, seed=seed1, seed2=seed2, dtype=self.dtype)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = checked(x, self.validate_args, embed_check_nonnegative_integer_form)
        return x * self._log_rate - gen_ops.lgamma(1.0 + x) - self._rate

    def _cdf(self, x: Tensor) -> Tensor:
        x, rate = _together(checked(x, self.validate_args, embed_check_nonnegative_integer_form), self._rate)
        return array_ops.where(x < 0, array_ops.zeros_like(x), gen_ops.igammac(gen_ops.maximum(x, array_ops.zeros_like(x)) + 1.0, rate))

    def _mean(self) -> Tensor:
        return array_ops.identity(self._rate)

    _variance = _mean

    def _mode(self) -> Tensor:
        return gen_ops.floor(self._rate)


class Binomial(_Numbers):
    """How often of a number of times something comes that has a probability."""

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Binomial"
    ) -> None:
        with name_scope(name, values=[total_count, logits, probs]) as scope:
            self._logits, self._probs = _logits_and_probs(logits, probs, False, validate_args)
            (self._total,) = float_parameters(total_count, dtype=self._logits.dtype.base_dtype)
        super().__init__(self._logits, self._logits.dtype, scope, validate_args, allow_nan_stats)

    total_count = property(lambda self: self._total)
    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    def _batch_parameters(self) -> Tuple[Tensor, ...]:
        return (self._total, self._probs)

    def _whole(self, k: Tensor) -> Tensor:
        most = "Argument k must be no larger than total_count."
        return checked(k, self.validate_args, embed_check_nonnegative_integer_form, lambda k: check_ops.assert_less_equal(k, self._total, message=most))

    def _cdf(self, k: Tensor) -> Tensor:
        k, total = _together(self._whole(k), self._total)
        k, probs = _together(k, self._probs)
        zero, one = array_ops.zeros_like(k), array_ops.ones_like(k)
        rest = total + zero - k
        inside = gen_ops.logical_and(k >= 0, rest > 0)
        found = gen_ops.betainc(array_ops.where(inside, rest, one), array_ops.where(inside, k + 1.0, one), 1.0 - probs)
        return array_ops.where(inside, found, array_ops.where(k < 0, zero, array_ops.where(rest <= 0, one, k)))  # of NaN, NaN

    def _log_prob(self, k: Tensor) -> Tensor:
        k = self._whole(k)
        rest = self._total - k
        ways = gen_ops.lgamma(1.0 + self._total) - gen_ops.lgamma(1.0 + k) - gen_ops.lgamma(1.0 + rest)
        return ways + gen_ops.xlogy(k, self._probs) + gen_ops.xlogy(rest, 1.0 - self._probs)

    def _mean(self) -> Tensor:
        return self._total * self._probs

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._probs)

    def _mode(self) -> Tensor:
        return gen_ops.floor((1.0 + self._total) * self._probs)


class Geometric(_Numbers):
    """How many failures come before the first success."""

    def __init__(self, logits: Any = None, probs: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Geometric") -> None:
        with name_scope(name, values=[logits, probs]) as scope:
            self._logits, self._probs = _logits_and_probs(logits, probs, False, validate_args)
        super().__init__(self._probs, self._probs.dtype, scope, validate_args, allow_nan_stats)

    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        above_zero = np.finfo(self.dtype.as_numpy_dtype).tiny
        uniform = random_ops.random_uniform(self._drawn(n), above_zero, 1.0, self.dtype, seed)
        return gen_ops.floor(gen_ops.log(uniform) / gen_ops.log1p(-self._probs))

    def _log_prob(self, k: Tensor) -> Tensor:
        k = checked(k, self.validate_args, embed_check_nonnegative_integer_form)
        k, probs = _together(k, self._probs)
        failing = array_ops.where(gen_ops.equal(k, 0.0), array_ops.zeros_like(probs), probs)  # without failures nothing is log(0)
        return k * gen_ops.log1p(-failing) + gen_ops.log(probs)

    def _cdf(self, k: Tensor) -> Tensor:
        k, probs = _together(gen_ops.floor(checked(k, self.validate_args, embed_check_nonnegative_integer_form)), self._probs)
        return array_ops.where(k < 0, array_ops.zeros_like(k), -gen_ops.expm1((k + 1.0) * gen_ops.log1p(-probs)))

    def _entropy(self) -> Tensor:
        return (gen_ops.softplus(-self._logits) + self._logits * gen_ops.sigmoid(-self._logits)) / self._probs

    def _mean(self) -> Tensor:
        return gen_ops.exp(-self._logits)

    def _variance(self) -> Tensor:
        return self._mean() / self._probs

    def _mode(self) -> Tensor:
        return array_ops.zeros_like(self._probs)


class RelaxedBernoulli(_Numbers):
    """A number between 0 and 1 that is the nearer to one of them the lower the temperature is."""

    def __init__(
        self, temperature: Any, logits: Any = None, probs: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "RelaxedBernoulli"
    ) -> None:
        with name_scope(name, values=[temperature, logits, probs]) as scope:
            self._logits, self._probs = _logits_and_probs(logits, probs, False, validate_args)
            (given,) = float_parameters(temperature, dtype=self._logits.dtype.base_dtype)
            self._temperature = checked(given, validate_args, check_ops.assert_positive)
        super().__init__(self._logits, self._logits.dtype, scope, validate_args, allow_nan_stats, FULLY_REPARAMETERIZED)

    temperature = property(lambda self: self._temperature)
    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    def _batch_parameters(self) -> Tuple[Tensor, ...]:
        return (self._temperature, self._logits)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        uniform = random_ops.random_uniform(self._drawn(n), self.dtype.min * 0 + 1e-7, 1.0, self.dtype, seed)
        noise = gen_ops.log(uniform) - gen_ops.log1p(-uniform)
        return gen_ops.sigmoid((noise + self._logits) / self._temperature)

    def _log_prob(self, y: Tensor) -> Tensor:
        logit = gen_ops.log(y) - gen_ops.log1p(-y)
        z = logit * self._temperature - self._logits
        return gen_ops.log(self._temperature) - z - 2.0 * gen_ops.softplus(-z) - gen_ops.log(y) - gen_ops.log1p(-y)


class ExpRelaxedOneHotCategorical(_Classes):
    """The logarithm of a RelaxedOneHotCategorical."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        with name_scope(name, values=[temperature, logits, probs]) as scope:
            super().__init__(logits, probs, dtype, scope, validate_args, allow_nan_stats, FULLY_REPARAMETERIZED)
            (self._temperature,) = float_parameters(temperature, dtype=self.dtype)

    temperature = property(lambda self: self._temperature)

    def _event_shape(self) -> TensorShape:
        return _last(self._logits.get_shape())

    def _event_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._logits)[-1:]

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        uniform = random_ops.random_uniform(joined(n, array_ops.shape(self._logits)), 1e-37, 1.0, self.dtype, seed)
        return nn_ops.log_softmax((self._logits - gen_ops.log(-gen_ops.log(uniform))) / array_ops.expand_dims(self._temperature, -1))

    def _log_prob(self, x: Tensor) -> Tensor:
        count = math_ops.cast(_class_count(self._logits), self.dtype)
        scale = gen_ops.lgamma(count) + (count - 1.0) * gen_ops.log(self._temperature)
        inner = nn_ops.log_softmax(self._logits - x * array_ops.expand_dims(self._temperature, -1))
        return math_ops.reduce_sum(inner, axis=-1) + scale


class RelaxedOneHotCategorical(ExpRelaxedOneHotCategorical):
    """A vector of classes with the sum 1 that is the nearer to one-hot the lower the temperature is."""

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        super().__init__(temperature, logits, probs, dtype, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return gen_ops.exp(super()._sample_n(n, seed))

    def _log_prob(self, x: Tensor) -> Tensor:
        logs = gen_ops.log(x)
        return super()._log_prob(logs) - math_ops.reduce_sum(logs, axis=-1)
