# SPDX-License-Identifier: Apache-2.0
"""Distributions of real numbers."""

from __future__ import annotations

import inspect
import math
from typing import Any, Optional, Tuple

import numpy as np

from millrace.distributions import special_math
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED, Distribution, RegisterKL, checked, float_parameters, joined
from millrace.distributions.util import gen_new_seed
from millrace.framework import numpy_cast
from millrace.framework.dtypes import as_dtype
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, random_ops


def renamed(old_names: Any, **values: Any) -> Tuple[Any, ...]:
    """The values of parameters, some of which may come under their names of 0.x: renamed(old, loc=("mu", loc))."""
    found = []
    for new, (old, value) in values.items():
        if old in old_names:
            if value is not None:
                raise at_user_line(TypeError("both '%s' and '%s' are given" % (old, new)))
            value = old_names.pop(old)
        if value is None:
            raise at_user_line(TypeError("missing argument: '%s'" % new))
        found.append(value)
    if old_names:
        raise at_user_line(TypeError("unexpected keyword argument '%s'" % next(iter(old_names))))
    return tuple(found)


def _together(a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    """Both with the shape that they broadcast to."""
    return a + array_ops.zeros_like(b), b + array_ops.zeros_like(a)


class _Scalar(Distribution):
    """A kind whose events are numbers and whose parameters are tensors that broadcast."""

    def __init__(self, scope: str, parameters: Tuple[Tensor, ...], kind: Any, validate_args: bool, allow_nan_stats: bool) -> None:
        self._tensors = parameters
        super().__init__(parameters[0].dtype.base_dtype, kind, validate_args, allow_nan_stats, graph_parents=parameters, name=scope)

    def _batch_parameters(self) -> Tuple[Tensor, ...]:
        return self._tensors

    def _drawn(self, n: Any) -> Tensor:
        return joined(n, self.batch_shape_tensor())

    def _wide(self, value: Tensor) -> Tensor:
        """A statistic of some of the parameters, for the whole batch."""
        static = self.batch_shape
        if static.is_fully_defined() and value.get_shape().is_fully_defined() and static.as_list() == value.get_shape().as_list():
            return value
        return value * array_ops.ones(self.batch_shape_tensor(), self.dtype)

    def _or_nan(self, least: float, parameter: Tensor, value: Tensor, what: str) -> Tensor:
        """A statistic that only parameters above a number have: NaN for the others, or an error in the step where NaN is not allowed."""
        if self.allow_nan_stats:
            return array_ops.where(gen_ops.greater(parameter, least), value, gen_ops.fill(array_ops.shape(value), numpy_cast.cast(np.nan, self.dtype)))
        check = check_ops.assert_less(convert_to_tensor(least, self.dtype), parameter, message="%s is not defined" % what)
        return checked(value, True, lambda _: check)


class Normal(_Scalar):
    """The normal distribution."""

    _shape_parameters = ("loc", "scale")

    def __init__(
        self, loc: Any = None, scale: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal", **old_names: Any
    ) -> None:
        loc, scale = renamed(old_names, loc=("mu", loc), scale=("sigma", scale))
        with name_scope(name, values=[loc, scale]) as scope:
            self._loc, self._scale = float_parameters(loc, scale)
            self._scale = checked(self._scale, validate_args, check_ops.assert_positive)
        super().__init__(scope, (self._loc, self._scale), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)

    loc = mu = property(lambda self: self._loc)
    scale = sigma = property(lambda self: self._scale)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return random_ops.random_normal(self._drawn(n), dtype=self.dtype, seed=seed) * self._scale + self._loc

    def _z(self, x: Tensor) -> Tensor:
        return (x - self._loc) / self._scale

    def _log_prob(self, x: Tensor) -> Tensor:
        return -0.5 * gen_ops.square(self._z(x)) - (0.5 * math.log(2.0 * math.pi) + gen_ops.log(self._scale))

    def _cdf(self, x: Tensor) -> Tensor:
        return special_math.ndtr(self._z(x))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return special_math.log_ndtr(self._z(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return special_math.ndtr(-self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return special_math.log_ndtr(-self._z(x))

    def _quantile(self, value: Tensor) -> Tensor:
        return special_math.ndtri(value) * self._scale + self._loc

    def _entropy(self) -> Tensor:
        return self._wide(0.5 * math.log(2.0 * math.pi * math.e) + gen_ops.log(self._scale))

    def _mean(self) -> Tensor:
        return self._wide(self._loc)

    _mode = _mean

    def _stddev(self) -> Tensor:
        return self._wide(self._scale)


class NormalWithSoftplusScale(Normal):
    """The normal distribution of the softplus of a scale."""

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
        **old_names: Any,
    ) -> None:
        loc, scale = renamed(old_names, loc=("mu", loc), scale=("sigma", scale))
        with name_scope(name, values=[scale]):
            (scale,) = float_parameters(scale)
            super().__init__(loc, gen_ops.softplus(scale), validate_args, allow_nan_stats, name)


@RegisterKL(Normal, Normal)
def _normal_normal(a: Normal, b: Normal) -> Tensor:
    ratio = gen_ops.square(a.scale / b.scale)
    return gen_ops.square(a.loc - b.loc) / (2.0 * gen_ops.square(b.scale)) + 0.5 * (ratio - 1.0 - gen_ops.log(ratio))


class Uniform(_Scalar):
    """Evenly distributed from low to before high."""

    _shape_parameters = ("low", "high")

    def __init__(
        self, low: Any = None, high: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Uniform", **old_names: Any
    ) -> None:
        low, high = renamed(
            old_names, low=("a", 0.0 if low is None and "a" not in old_names else low), high=("b", 1.0 if high is None and "b" not in old_names else high)
        )
        with name_scope(name, values=[low, high]) as scope:
            self._low, self._high = float_parameters(low, high)
            self._high = checked(self._high, validate_args, lambda h: check_ops.assert_less(self._low, h))
        super().__init__(scope, (self._low, self._high), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)

    low = a = property(lambda self: self._low)
    high = b = property(lambda self: self._high)

    def range(self, name: str = "range") -> Tensor:
        """high - low."""
        with name_scope(name):
            return self._high - self._low

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return self._low + self.range() * random_ops.random_uniform(self._drawn(n), dtype=self.dtype, seed=seed)

    def _prob(self, x: Tensor) -> Tensor:
        x = x * array_ops.ones(gen_ops.broadcast_args(array_ops.shape(x), self.batch_shape_tensor()), self.dtype)
        outside = gen_ops.logical_or(gen_ops.less(x, self._low), gen_ops.greater_equal(x, self._high))
        inside = array_ops.ones_like(x) / self.range()
        return array_ops.where(gen_ops.is_nan(x), x, array_ops.where(outside, array_ops.zeros_like(x), inside))

    def _cdf(self, x: Tensor) -> Tensor:
        return gen_ops.minimum(gen_ops.maximum((x - self._low) / self.range(), 0.0), 1.0)

    def _quantile(self, value: Tensor) -> Tensor:
        return (1.0 - value) * self._low + value * self._high

    def _entropy(self) -> Tensor:
        return gen_ops.log(self.range())

    def _mean(self) -> Tensor:
        return (self._low + self._high) / 2.0

    def _stddev(self) -> Tensor:
        return self.range() / math.sqrt(12.0)

    def _variance(self) -> Tensor:
        return gen_ops.square(self.range()) / 12.0


class Gamma(_Scalar):
    """The gamma distribution of a concentration and a rate."""

    _shape_parameters: Tuple[str, ...] = ("concentration", "rate")

    def __init__(
        self, concentration: Any = None, rate: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Gamma", **old_names: Any
    ) -> None:
        concentration, rate = renamed(old_names, concentration=("alpha", concentration), rate=("beta", rate))
        with name_scope(name, values=[concentration, rate]) as scope:
            self._concentration, self._rate = (checked(t, validate_args, check_ops.assert_positive) for t in float_parameters(concentration, rate))
        super().__init__(scope, (self._concentration, self._rate), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)

    concentration = alpha = property(lambda self: self._concentration)
    rate = beta = property(lambda self: self._rate)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return random_ops.random_gamma(array_ops.reshape(n, [1]), self._concentration, self._rate, self.dtype, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        a, b = self._concentration, self._rate
        return gen_ops.xlogy(a - 1.0, x) - b * x - (gen_ops.lgamma(a) - a * gen_ops.log(b))

    def _cdf(self, x: Tensor) -> Tensor:
        return gen_ops.igamma(*_together(self._concentration, self._rate * x))

    def _entropy(self) -> Tensor:
        a = self._concentration
        return a - gen_ops.log(self._rate) + gen_ops.lgamma(a) + (1.0 - a) * gen_ops.digamma(a)

    def _mean(self) -> Tensor:
        return self._concentration / self._rate

    def _variance(self) -> Tensor:
        return self._concentration / gen_ops.square(self._rate)

    def _stddev(self) -> Tensor:
        return gen_ops.sqrt(self._concentration) / self._rate

    def _mode(self) -> Tensor:
        return self._or_nan(1.0, self._wide(self._concentration), (self._concentration - 1.0) / self._rate, "mode of Gamma")


@RegisterKL(Gamma, Gamma)
def _gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    return (
        (p.concentration - q.concentration) * gen_ops.digamma(p.concentration)
        + gen_ops.lgamma(q.concentration)
        - gen_ops.lgamma(p.concentration)
        + q.concentration * gen_ops.log(p.rate)
        - q.concentration * gen_ops.log(q.rate)
        + p.concentration * (q.rate / p.rate - 1.0)
    )


class Chi2(Gamma):
    """The chi square distribution."""

    _shape_parameters = ("df",)

    def __init__(self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2") -> None:
        (self._df,) = float_parameters(df)
        super().__init__(0.5 * self._df, 0.5, validate_args, allow_nan_stats, name)

    df = property(lambda self: self._df)


class Exponential(Gamma):
    """The exponential distribution of a rate."""

    _shape_parameters = ("rate",)

    def __init__(self, rate: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential", **old_names: Any) -> None:
        (rate,) = renamed(old_names, rate=("lam", rate))
        (rate,) = float_parameters(rate)
        super().__init__(array_ops.ones([], rate.dtype.base_dtype), rate, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        return -gen_ops.log(random_ops.random_uniform(self._drawn(n), tiny, 1.0, self.dtype, seed)) / self._rate

    def _log_prob(self, x: Tensor) -> Tensor:
        return gen_ops.log(self._rate) - self._rate * x

    def _cdf(self, x: Tensor) -> Tensor:
        return -gen_ops.expm1(-self._rate * gen_ops.maximum(x, array_ops.zeros_like(x)))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return -self._rate * gen_ops.maximum(x, array_ops.zeros_like(x))

    def _survival_function(self, x: Tensor) -> Tensor:
        return gen_ops.exp(self._log_survival_function(x))

    def _quantile(self, value: Tensor) -> Tensor:
        return -gen_ops.log1p(-value) / self._rate

    def _entropy(self) -> Tensor:
        return 1.0 - gen_ops.log(self._rate)


class InverseGamma(Gamma):
    """One by a gamma distributed number."""

    def __init__(
        self,
        concentration: Any = None,
        rate: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGamma",
        **old_names: Any,
    ) -> None:
        super().__init__(concentration, rate, validate_args, allow_nan_stats, name, **old_names)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return 1.0 / super()._sample_n(n, seed)

    def _log_prob(self, x: Tensor) -> Tensor:
        a, b = self._concentration, self._rate
        return a * gen_ops.log(b) - gen_ops.lgamma(a) - (a + 1.0) * gen_ops.log(x) - b / x

    def _cdf(self, x: Tensor) -> Tensor:
        a, scaled = _together(self._concentration, self._rate / x)
        return gen_ops.igammac(a, scaled)

    def _entropy(self) -> Tensor:
        a = self._concentration
        return a + gen_ops.log(self._rate) + gen_ops.lgamma(a) - (1.0 + a) * gen_ops.digamma(a)

    def _mean(self) -> Tensor:
        a = self._wide(self._concentration)
        return self._or_nan(1.0, a, self._rate / (a - 1.0), "mean of InverseGamma")

    def _variance(self) -> Tensor:
        a = self._wide(self._concentration)
        return self._or_nan(2.0, a, gen_ops.square(self._rate / (a - 1.0)) / (a - 2.0), "variance of InverseGamma")

    def _stddev(self) -> Tensor:
        return gen_ops.sqrt(self._variance())

    def _mode(self) -> Tensor:
        return self._rate / (1.0 + self._concentration)


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function."""
    return gen_ops.lgamma(a) + gen_ops.lgamma(b) - gen_ops.lgamma(a + b)


class Beta(_Scalar):
    """The beta distribution of two concentrations."""

    _shape_parameters = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Beta",
        **old_names: Any,
    ) -> None:
        concentration1, concentration0 = renamed(old_names, concentration1=("a", concentration1), concentration0=("b", concentration0))
        with name_scope(name, values=[concentration1, concentration0]) as scope:
            self._a, self._b = (checked(t, validate_args, check_ops.assert_positive) for t in float_parameters(concentration1, concentration0))
        super().__init__(scope, (self._a, self._b), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)

    concentration1 = a = property(lambda self: self._a)
    concentration0 = b = property(lambda self: self._b)
    total_concentration = property(lambda self: self._a + self._b)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        count = array_ops.reshape(n, [1])
        first = random_ops.random_gamma(count, self._wide(self._a), dtype=self.dtype, seed=seed)
        second = random_ops.random_gamma(count, self._wide(self._b), dtype=self.dtype, seed=gen_new_seed(seed, "beta"))
        return first / (first + second)

    def _cdf(self, x: Tensor) -> Tensor:
        a, b = _together(self._a, self._b)
        a, x = _together(a, self._between(x))
        return gen_ops.betainc(a, b + array_ops.zeros_like(x), x)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = self._between(x)
        return gen_ops.xlogy(self._a - 1.0, x) + (self._b - 1.0) * gen_ops.log1p(-x) - log_beta(self._a, self._b)

    def _between(self, x: Tensor) -> Tensor:
        return checked(
            x,
            self.validate_args,
            lambda x: check_ops.assert_positive(x, message="sample must be positive"),
            lambda x: check_ops.assert_less(x, array_ops.ones_like(x), message="sample must be less than `1`."),
        )

    def _entropy(self) -> Tensor:
        a, b = self._a, self._b
        return log_beta(a, b) - (a - 1.0) * gen_ops.digamma(a) - (b - 1.0) * gen_ops.digamma(b) + (a + b - 2.0) * gen_ops.digamma(a + b)

    def _mean(self) -> Tensor:
        return self._a / (self._a + self._b)

    def _variance(self) -> Tensor:
        total = self._a + self._b
        mean = self._a / total
        return mean * (1.0 - mean) / (1.0 + total)

    def _mode(self) -> Tensor:
        a, b = self._wide(self._a), self._wide(self._b)
        return self._or_nan(1.0, gen_ops.minimum(a, b), (a - 1.0) / (a + b - 2.0), "mode of Beta")


@RegisterKL(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> Tensor:
    total = p.total_concentration
    return (
        log_beta(q.a, q.b)
        - log_beta(p.a, p.b)
        + (p.a - q.a) * gen_ops.digamma(p.a)
        + (p.b - q.b) * gen_ops.digamma(p.b)
        + (q.total_concentration - total) * gen_ops.digamma(total)
    )


class StudentT(_Scalar):
    """Student's t distribution."""

    _shape_parameters = ("df", "loc", "scale")

    def __init__(
        self, df: Any, loc: Any = None, scale: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "StudentT", **old_names: Any
    ) -> None:
        loc, scale = renamed(old_names, loc=("mu", loc), scale=("sigma", scale))
        with name_scope(name, values=[df, loc, scale]) as scope:
            self._df, self._loc, self._scale = float_parameters(df, loc, scale)
            self._df = checked(self._df, validate_args, check_ops.assert_positive)
        super().__init__(scope, (self._df, self._loc, self._scale), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)

    df = property(lambda self: self._df)
    loc = mu = property(lambda self: self._loc)
    scale = sigma = property(lambda self: self._scale)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        normal = random_ops.random_normal(self._drawn(n), dtype=self.dtype, seed=seed)
        gamma = random_ops.random_gamma(array_ops.reshape(n, [1]), self._wide(0.5 * self._df), 0.5, self.dtype, gen_new_seed(seed, "student_t"))
        return normal * gen_ops.rsqrt(gamma / self._df) * self._scale + self._loc

    def _cdf(self, x: Tensor) -> Tensor:
        z, df = _together((x - self._loc) / gen_ops.abs(self._scale), self._df)
        tail = 0.5 * gen_ops.betainc(0.5 * df, 0.5 * array_ops.ones_like(df), df / (gen_ops.square(z) + df))
        return array_ops.where(gen_ops.less(z, 0.0), tail, 1.0 - tail)

    def _log_prob(self, x: Tensor) -> Tensor:
        y, half = (x - self._loc) / self._scale, 0.5 * (self._df + 1.0)
        return (
            -half * gen_ops.log1p(gen_ops.square(y) / self._df)
            - gen_ops.log(gen_ops.abs(self._scale))
            - 0.5 * gen_ops.log(self._df)
            - 0.5 * math.log(math.pi)
            - gen_ops.lgamma(0.5 * self._df)
            + gen_ops.lgamma(half)
        )

    def _entropy(self) -> Tensor:
        df, half = self._wide(self._df), 0.5 * (self._df + 1.0)
        return (
            gen_ops.log(gen_ops.abs(self._scale))
            + 0.5 * gen_ops.log(df)
            + log_beta(0.5 * df, array_ops.ones_like(df) * 0.5)
            + half * (gen_ops.digamma(half) - gen_ops.digamma(0.5 * df))
        )

    def _mean(self) -> Tensor:
        return self._or_nan(1.0, self._wide(self._df), self._wide(self._loc), "mean of StudentT")

    def _variance(self) -> Tensor:
        df = self._wide(self._df)
        square = gen_ops.square(self._scale) * array_ops.ones_like(df)
        infinite = gen_ops.fill(array_ops.shape(df), numpy_cast.cast(np.inf, self.dtype))
        value = array_ops.where(gen_ops.greater(df, 2.0), square * df / array_ops.where(gen_ops.greater(df, 2.0), df - 2.0, array_ops.ones_like(df)), infinite)
        return self._or_nan(1.0, df, value, "variance of StudentT")

    def _mode(self) -> Tensor:
        return array_ops.identity(self._loc)


class _LocScale(_Scalar):
    """A kind with a place and a scale."""

    _shape_parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: Optional[str] = None) -> None:
        with name_scope(name or type(self).__name__, values=[loc, scale]) as scope:
            self._loc, self._scale = float_parameters(loc, scale)
            self._scale = checked(self._scale, validate_args, check_ops.assert_positive)
        super().__init__(scope, (self._loc, self._scale), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)

    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._scale)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self._loc) / self._scale

    def _uniform(self, n: Any, low: Any, seed: Optional[int]) -> Tensor:
        return random_ops.random_uniform(self._drawn(n), low, 1.0, self.dtype, seed)

    def _mode(self) -> Tensor:
        return self._wide(self._loc)


class Laplace(_LocScale):
    """The double exponential distribution."""

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        after = np.nextafter(as_dtype(self.dtype).as_numpy_dtype(-1.0), as_dtype(self.dtype).as_numpy_dtype(0.0))
        u = self._uniform(n, after, seed)
        return self._loc - self._scale * gen_ops.sign(u) * gen_ops.log1p(-gen_ops.abs(u))

    def _log_prob(self, x: Tensor) -> Tensor:
        return -gen_ops.abs(self._z(x)) - math.log(2.0) - gen_ops.log(self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return 0.5 - 0.5 * gen_ops.sign(z) * gen_ops.expm1(-gen_ops.abs(z))

    def _log_cdf(self, x: Tensor) -> Tensor:
        return special_math.log_cdf_laplace(self._z(x))

    def _log_survival_function(self, x: Tensor) -> Tensor:
        return special_math.log_cdf_laplace(-self._z(x))

    def _entropy(self) -> Tensor:
        return self._wide(math.log(2.0) + 1.0 + gen_ops.log(self._scale))

    def _mean(self) -> Tensor:
        return self._wide(self._loc)

    def _stddev(self) -> Tensor:
        return self._wide(math.sqrt(2.0) * self._scale)


class Logistic(_LocScale):
    """The logistic distribution."""

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        u = self._uniform(n, np.finfo(self.dtype.as_numpy_dtype).tiny, seed)
        return self._loc + self._scale * (gen_ops.log(u) - gen_ops.log1p(-u))

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return -z - 2.0 * gen_ops.softplus(-z) - gen_ops.log(self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        return gen_ops.sigmoid(self._z(x))

    def _entropy(self) -> Tensor:
        return self._wide(2.0 + gen_ops.log(self._scale))

    def _mean(self) -> Tensor:
        return self._wide(self._loc)

    def _stddev(self) -> Tensor:
        return self._wide(self._scale * (math.pi / math.sqrt(3.0)))


class Gumbel(_LocScale):
    """The distribution of the largest of many."""

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        u = self._uniform(n, np.finfo(self.dtype.as_numpy_dtype).tiny, seed)
        return self._loc - self._scale * gen_ops.log(-gen_ops.log(u))

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self._z(x)
        return -(z + gen_ops.exp(-z)) - gen_ops.log(self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        return gen_ops.exp(-gen_ops.exp(-self._z(x)))

    def _entropy(self) -> Tensor:
        return self._wide(1.0 + gen_ops.log(self._scale) + np.euler_gamma)

    def _mean(self) -> Tensor:
        return self._loc + self._scale * np.euler_gamma

    def _stddev(self) -> Tensor:
        return self._wide(self._scale * (math.pi / math.sqrt(6.0)))


class Cauchy(_LocScale):
    """The Cauchy distribution."""

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return self._loc + self._scale * gen_ops.tan(math.pi * (self._uniform(n, 0.0, seed) - 0.5))

    def _log_prob(self, x: Tensor) -> Tensor:
        return -gen_ops.log1p(gen_ops.square(self._z(x))) - math.log(math.pi) - gen_ops.log(self._scale)

    def _cdf(self, x: Tensor) -> Tensor:
        return gen_ops.atan(self._z(x)) / math.pi + 0.5

    def _quantile(self, p: Tensor) -> Tensor:
        return self._loc + self._scale * gen_ops.tan(math.pi * (p - 0.5))

    def _entropy(self) -> Tensor:
        return self._wide(math.log(4.0 * math.pi) + gen_ops.log(self._scale))

    def _mean(self) -> Tensor:
        if not self.allow_nan_stats:
            raise at_user_line(ValueError("Cauchy has no moments, and allow_nan_stats is False"))
        return self._wide(gen_ops.fill([], convert_to_tensor(math.nan, self.dtype)))

    _variance = _mean


def slack_of(loc: Tensor, atol: Any, rtol: Any, validate: bool) -> Tensor:
    """How far from loc a value is taken for it."""

    def tolerance(given: Any) -> Tensor:
        made = convert_to_tensor(0 if given is None else given, loc.dtype.base_dtype)
        return checked(made, validate, lambda t: check_ops.assert_non_negative(t, message="Argument 'tol' must be non-negative"))

    return tolerance(atol) + tolerance(rtol) * gen_ops.abs(loc)


class Deterministic(_Scalar):
    """All of the probability at one value."""

    def __init__(
        self, loc: Any, atol: Any = None, rtol: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Deterministic"
    ) -> None:
        with name_scope(name, values=[loc]) as scope:
            self._loc = convert_to_tensor(loc, name="loc")
            self._slack = slack_of(self._loc, atol, rtol, validate_args)
        super().__init__(scope, (self._loc,), NOT_REPARAMETERIZED, validate_args, allow_nan_stats)

    loc = property(lambda self: self._loc)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return self._loc * array_ops.ones(self._drawn(n), self.dtype)

    def _prob(self, x: Tensor) -> Tensor:
        return gen_ops.cast(gen_ops.less_equal(gen_ops.abs(x - self._loc), self._slack), self.dtype)

    def _cdf(self, x: Tensor) -> Tensor:
        return gen_ops.cast(gen_ops.greater_equal(x, self._loc - self._slack), self.dtype)

    def _mean(self) -> Tensor:
        return array_ops.identity(self._loc)

    _mode = _mean

    def _variance(self) -> Tensor:
        return array_ops.zeros_like(self._loc)

    _entropy = _variance


# ---- parameters that go through softplus first ----


def _softened(kind: Any, name: str, names: Tuple[str, ...], doc: str, **old_names: str) -> Any:
    """A kind whose parameters of these names are the softplus of what is given, also under their names of 1.0."""
    first = [p for p in inspect.signature(kind.__init__).parameters if p not in ("self", "old_names")]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(first, args)), **{old_names.get(key, key): value for key, value in kwargs.items()}}
        given.setdefault("name", name)
        with name_scope(given["name"], values=[given[n] for n in names]):
            for n in names:
                given[n] = gen_ops.softplus(float_parameters(given[n])[0])
        kind.__init__(self, **given)

    return type(name, (kind,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


BetaWithSoftplusConcentration = _softened(
    Beta, "BetaWithSoftplusConcentration", ("concentration1", "concentration0"), "Beta of softplus concentrations.", a="concentration1", b="concentration0"
)
ExponentialWithSoftplusRate = _softened(Exponential, "ExponentialWithSoftplusRate", ("rate",), "Exponential of a softplus rate.", lam="rate")
GammaWithSoftplusConcentrationRate = _softened(
    Gamma, "GammaWithSoftplusConcentrationRate", ("concentration", "rate"), "Gamma of a softplus concentration and rate.", alpha="concentration", beta="rate"
)
InverseGammaWithSoftplusConcentrationRate = _softened(
    InverseGamma,
    "InverseGammaWithSoftplusConcentrationRate",
    ("concentration", "rate"),
    "InverseGamma of a softplus concentration and rate.",
    alpha="concentration",
    beta="rate",
)
LaplaceWithSoftplusScale = _softened(Laplace, "LaplaceWithSoftplusScale", ("scale",), "Laplace of a softplus scale.")


class StudentTWithAbsDfSoftplusScale(StudentT):
    """Student's t of the whole part of |df| and a softplus scale."""

    def __init__(
        self,
        df: Any,
        loc: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentTWithAbsDfSoftplusScale",
        **old_names: Any,
    ) -> None:
        loc, scale = renamed(old_names, loc=("mu", loc), scale=("sigma", scale))
        with name_scope(name, values=[df, scale]):
            df, scale = float_parameters(df)[0], float_parameters(scale)[0]
            super().__init__(gen_ops.floor(gen_ops.abs(df)), loc, gen_ops.softplus(scale), validate_args, allow_nan_stats, name)


class Chi2WithAbsDf(Chi2):
    """Chi square of the whole part of |df|."""

    def __init__(self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2WithAbsDf") -> None:
        with name_scope(name, values=[df]):
            super().__init__(gen_ops.floor(gen_ops.abs(float_parameters(df)[0])), validate_args, allow_nan_stats, name)
