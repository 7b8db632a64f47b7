# SPDX-License-Identifier: Apache-2.0
"""Half of the normal distribution, Kumaraswamy's, those that sinh(arcsinh) skews, and counts before failures."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import numpy as np

from millrace.distributions import special_math
from millrace.distributions.basic_bijectors import Affine, AffineScalar, Chain
from millrace.distributions.bijector import TransformedDistribution
from millrace.distributions.continuous import Gamma, Normal, _Scalar, log_beta
from millrace.distributions.discrete import _logits_and_probs, _Numbers
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, RegisterKL, checked, float_parameters
from millrace.distributions.elementwise_bijectors import Kumaraswamy as KumaraswamyBijector
from millrace.distributions.elementwise_bijectors import SinhArcsinh as SinhArcsinhBijector
from millrace.distributions.scaled_vectors import MultivariateNormalDiag, diagonal_of
from millrace.distributions.util import embed_check_nonnegative_integer_form, gen_new_seed
from millrace.framework import numpy_cast
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.random_seed import op_seeds
from millrace.ops import array_ops, check_ops, gen_ops, random_ops


class HalfNormal(_Scalar):
    """The magnitude of normal numbers around 0."""

    _shape_parameters = ("scale",)

    def __init__(self, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "HalfNormal") -> None:
        with name_scope(name, values=[scale]) as scope:
            self._scale = checked(float_parameters(scale)[0], validate_args, check_ops.assert_positive)
        super().__init__(scope, (self._scale,), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)

    scale = property(lambda self: self._scale)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return gen_ops.abs(random_ops.random_normal(self._drawn(n), dtype=self.dtype, seed=seed) * self._scale)

    def _log_prob(self, x: Tensor) -> Tensor:
        logs = 0.5 * math.log(2.0 / math.pi) - gen_ops.log(self._scale) - 0.5 * gen_ops.square(x / self._scale)
        x = x + array_ops.zeros_like(logs)
        return array_ops.where(gen_ops.less(x, 0.0), gen_ops.fill(array_ops.shape(x), numpy_cast.cast(-np.inf, self.dtype)), logs)

    def _cdf(self, x: Tensor) -> Tensor:
        return gen_ops.erf(gen_ops.maximum(x, 0.0) / (self._scale * math.sqrt(2.0)))

    def _quantile(self, value: Tensor) -> Tensor:
        return special_math.ndtri(0.5 * (1.0 + value)) * self._scale

    def _entropy(self) -> Tensor:
        return 0.5 * math.log(math.pi / 2.0) + gen_ops.log(self._scale) + 0.5

    def _mean(self) -> Tensor:
        return self._scale * math.sqrt(2.0) / math.sqrt(math.pi)

    def _mode(self) -> Tensor:
        return array_ops.zeros_like(self._scale)

    def _variance(self) -> Tensor:
        return gen_ops.square(self._scale) * (1.0 - 2.0 / math.pi)


@RegisterKL(HalfNormal, HalfNormal)
def _half_half(a: HalfNormal, b: HalfNormal) -> Tensor:
    ratio = gen_ops.square(a.scale / b.scale)
    return 0.5 * (ratio - 1.0 - gen_ops.log(ratio))


class Kumaraswamy(_Scalar):
    """Numbers from 0 to 1 whose distribution function is 1 - (1 - x^concentration1)^concentration0."""

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Kumaraswamy"
    ) -> None:
        with name_scope(name, values=[concentration1, concentration0]) as scope:
            given = float_parameters(1.0 if concentration1 is None else concentration1, 1.0 if concentration0 is None else concentration0)
            self._a, self._b = (checked(t, validate_args, check_ops.assert_positive) for t in given)
        super().__init__(scope, (self._a, self._b), FULLY_REPARAMETERIZED, validate_args, allow_nan_stats)
        self._bijector = KumaraswamyBijector(self._a, self._b)

    concentration1 = property(lambda self: self._a)
    concentration0 = property(lambda self: self._b)
    bijector = property(lambda self: self._bijector)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return self._bijector.forward(random_ops.random_uniform(self._drawn(n), dtype=self.dtype, seed=seed))

    def _log_prob(self, x: Tensor) -> Tensor:
        x = checked(
            x,
            self.validate_args,
            lambda x: check_ops.assert_non_negative(x, message="sample must be non-negative"),
            lambda x: check_ops.assert_less_equal(x, array_ops.ones_like(x), message="sample must be no larger than `1`."),
        )
        power = gen_ops.pow(x, self._a)
        beyond = (self._b - 1.0) * gen_ops.log1p(-power)
        no_power = gen_ops.equal(self._b + array_ops.zeros_like(beyond), 1.0)  # nothing to the power of nothing is 1
        beyond = array_ops.where(no_power, array_ops.zeros_like(beyond), beyond)
        return gen_ops.log(self._a) + gen_ops.log(self._b) + gen_ops.xlogy(self._a - 1.0, x) + beyond

    def _cdf(self, x: Tensor) -> Tensor:
        inside = gen_ops.minimum(gen_ops.maximum(x, array_ops.zeros_like(x)), array_ops.ones_like(x))
        return -gen_ops.expm1(self._b * gen_ops.log1p(-gen_ops.pow(inside, self._a)))

    def _quantile(self, value: Tensor) -> Tensor:
        return self._bijector.forward(value)

    def _moment(self, n: int) -> Tensor:
        return self._b * gen_ops.exp(log_beta(1.0 + n / self._a, self._b))

    def _entropy(self) -> Tensor:
        harmonic = gen_ops.digamma(self._b + 1.0) + np.euler_gamma
        return (1.0 - 1.0 / self._b) + (1.0 - 1.0 / self._a) * harmonic - gen_ops.log(self._a) - gen_ops.log(self._b)

    def _mean(self) -> Tensor:
        return self._moment(1)

    def _variance(self) -> Tensor:
        return self._moment(2) - gen_ops.square(self._moment(1))

    def _mode(self) -> Tensor:
        a, b = self._wide(self._a), self._wide(self._b)
        top = gen_ops.pow((a - 1.0) / (a * b - 1.0), 1.0 / a)
        return self._or_nan(1.0, gen_ops.minimum(a, b), top, "mode of Kumaraswamy")


def _skewing(skewness: Any, tailweight: Any, dtype: Any, event_ndims: int) -> Tuple[Any, Any]:
    """The bijector, and what a scale is multiplied by so that 2 goes to 2 without skewness."""
    skewness, tailweight = (float_parameters(v, dtype=dtype)[0] for v in (0.0 if skewness is None else skewness, 1.0 if tailweight is None else tailweight))
    return SinhArcsinhBijector(skewness, tailweight, event_ndims), 2.0 / gen_ops.sinh(math.asinh(2.0) * tailweight)


class SinhArcsinh(TransformedDistribution):
    """loc + scale sinh((arcsinh(z) + skewness) tailweight) of normal z, scaled so that tailweight changes the tails only."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        skewness: Any = None,
        tailweight: Any = None,
        distribution: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "SinhArcsinh",
    ) -> None:
        with name_scope(name, values=[loc, scale, skewness, tailweight]) as scope:
            loc, scale = float_parameters(loc, scale)
            bend, factor = _skewing(skewness, tailweight, scale.dtype.base_dtype, 0)
            self._loc, self._scale, self._bend = loc, scale, bend
            dtype = scale.dtype.base_dtype
            base = distribution if distribution is not None else Normal(array_ops.zeros([], dtype), array_ops.ones([], dtype), allow_nan_stats=allow_nan_stats)
            batch = array_ops.shape(loc + scale + bend.skewness + bend.tailweight) if base.batch_shape.ndims == 0 else None  # as many as parameters
            chain = Chain([AffineScalar(shift=loc, scale=scale * factor, validate_args=validate_args), bend])
        super().__init__(base, chain, batch, validate_args=validate_args, name=scope)

    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._scale)
    skewness = property(lambda self: self._bend.skewness)
    tailweight = property(lambda self: self._bend.tailweight)


class VectorSinhArcsinhDiag(TransformedDistribution):
    """Vectors of SinhArcsinh's numbers, with a diagonal as scale."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        skewness: Any = None,
        tailweight: Any = None,
        distribution: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorSinhArcsinhDiag",
    ) -> None:
        with name_scope(name, values=[loc, scale_diag, skewness, tailweight]) as scope:
            loc, diagonal = diagonal_of(loc, scale_diag, scale_identity_multiplier)
            bend, factor = _skewing(skewness, tailweight, diagonal.dtype.base_dtype, 1)
            self._loc, self._bend = loc, bend
            whole = loc * 0.0 + diagonal * 0.0 + bend.skewness * 0.0 + bend.tailweight * 0.0
            if distribution is None:
                base: Any = MultivariateNormalDiag(whole, array_ops.ones_like(whole), allow_nan_stats=allow_nan_stats)
            else:
                base = distribution
            sizes = whole.get_shape().as_list()
            event = sizes[-1:] if base.event_shape.ndims == 0 else None
            batch = sizes[:-1] if event is not None and base.batch_shape.ndims == 0 else None
            chain = Chain([Affine(shift=loc, scale_diag=diagonal * factor, validate_args=validate_args), bend])
        super().__init__(base, chain, batch, event, validate_args=validate_args, name=scope)

    loc = property(lambda self: self._loc)
    skewness = property(lambda self: self._bend.skewness)
    tailweight = property(lambda self: self._bend.tailweight)


class NegativeBinomial(_Numbers):
    """How many successes come before a number of failures."""

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "NegativeBinomial"
    ) -> None:
        with name_scope(name, values=[total_count, logits, probs]) as scope:
            self._logits, self._probs = _logits_and_probs(logits, probs, False, validate_args)
            (self._total,) = float_parameters(total_count, dtype=self._logits.dtype.base_dtype)
            self._total = checked(self._total, validate_args, check_ops.assert_positive)
        super().__init__(self._logits, self._logits.dtype, scope, validate_args, allow_nan_stats)

    total_count = property(lambda self: self._total)
    logits = property(lambda self: self._logits)
    probs = property(lambda self: self._probs)

    def _batch_parameters(self) -> Tuple[Tensor, ...]:
        return (self._total, self._logits)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        rates = Gamma(self._total, gen_ops.exp(-self._logits)).sample(array_ops.reshape(n, [1]), seed)
        seed1, seed2 = op_seeds(gen_new_seed(seed, "negative_binom"))
        return gen_ops.random_poisson_v2(array_ops.zeros([0], "int32"), rates, seed=seed1, seed2=seed2, dtype=self.dtype)

    def _log_prob(self, k: Tensor) -> Tensor:
        k = checked(k, self.validate_args, embed_check_nonnegative_integer_form)
        ways = gen_ops.lgamma(self._total + k) - gen_ops.lgamma(1.0 + k) - gen_ops.lgamma(self._total)
        return ways - self._total * gen_ops.softplus(self._logits) - k * gen_ops.softplus(-self._logits)

    def _cdf(self, k: Tensor) -> Tensor:
        whole = gen_ops.floor(checked(k, self.validate_args, embed_check_nonnegative_integer_form)) + array_ops.zeros(self.batch_shape_tensor(), self.dtype)
        zero = array_ops.zeros_like(whole)
        below = gen_ops.less(whole, zero)
        inside = array_ops.where(below, zero, whole)
        found = gen_ops.betainc(self._total + zero, 1.0 + inside, gen_ops.sigmoid(-self._logits) + zero)
        return array_ops.where(below, zero, found)

    def _mean(self) -> Tensor:
        return self._total * gen_ops.exp(self._logits)

    def _variance(self) -> Tensor:
        return self._mean() / gen_ops.sigmoid(-self._logits)

    def _mode(self) -> Tensor:
        least = gen_ops.floor((self._total - 1.0) * gen_ops.exp(self._logits))
        return gen_ops.maximum(least, 0.0)
