# SPDX-License-Identifier: Apache-2.0
"""Distributions of shares and counts, mixtures, and batches taken as one event."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from millrace.distributions.continuous import renamed
from millrace.distributions.discrete import Categorical, checked_counts
from millrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    RegisterKL,
    checked,
    float_parameters,
    joined,
    kl_divergence,
)
from millrace.distributions.util import assert_close, embed_check_nonnegative_integer_form, gen_new_seed
from millrace.framework import dtypes, numpy_cast
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, random_ops


def _row(matrix: Any) -> Any:
    return array_ops.expand_dims(matrix, -1)


class _Vectors(Distribution):
    """A kind whose parameters have the event in their last dimension."""

    _vectors: Tuple[Tensor, ...] = ()  # parameters of shape batch + event that broadcast

    def _whole_shape(self) -> TensorShape:
        shape = self._vectors[0].get_shape()
        for vector in self._vectors[1:]:
            shape = array_ops.broadcast_static_shape(shape, vector.get_shape())
        return shape

    def _whole_shape_tensor(self) -> Tensor:
        shape = array_ops.shape(self._vectors[0])
        for vector in self._vectors[1:]:
            shape = array_ops.broadcast_dynamic_shape(shape, array_ops.shape(vector))
        return shape

    def _batch_shape(self) -> TensorShape:
        whole = self._whole_shape()
        return whole[:-1] if whole.ndims is not None else TensorShape(None)

    def _event_shape(self) -> TensorShape:
        whole = self._whole_shape()
        return whole[-1:] if whole.ndims is not None else TensorShape([None])

    def _batch_shape_tensor(self) -> Tensor:
        return self._whole_shape_tensor()[:-1]

    def _event_shape_tensor(self) -> Tensor:
        return self._whole_shape_tensor()[-1:]


def _sum(x: Tensor) -> Tensor:
    return math_ops.reduce_sum(x, axis=-1)


def _log_beta(concentration: Tensor) -> Tensor:
    return _sum(gen_ops.lgamma(concentration)) - gen_ops.lgamma(_sum(concentration))


class Dirichlet(_Vectors):
    """Shares with the sum 1."""

    def __init__(self, concentration: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Dirichlet", **old_names: Any) -> None:
        (concentration,) = renamed(old_names, concentration=("alpha", concentration))
        with name_scope(name, values=[concentration]) as scope:
            (tensor,) = float_parameters(concentration)
            self._concentration = checked(tensor, validate_args, check_ops.assert_positive)
        self._vectors = (self._concentration,)
        super().__init__(self._concentration.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=self._vectors, name=scope)

    concentration = alpha = property(lambda self: self._concentration)
    total_concentration = property(lambda self: _sum(self._concentration))

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        drawn = random_ops.random_gamma(array_ops.reshape(n, [1]), self._concentration, dtype=self.dtype, seed=seed)
        return drawn / math_ops.reduce_sum(drawn, axis=-1, keepdims=True)

    def _log_prob(self, x: Tensor) -> Tensor:
        x = checked(
            x,
            self.validate_args,
            lambda v: check_ops.assert_positive(v, message="samples must be positive"),
            lambda v: assert_close(array_ops.ones([], self.dtype), _sum(v), message="sample last-dimension must sum to `1`"),
        )
        return _sum(gen_ops.xlogy(self._concentration - 1.0, x)) - _log_beta(self._concentration)

    def _entropy(self) -> Tensor:
        a, total = self._concentration, self.total_concentration
        size = math_ops.cast(array_ops.shape(a)[-1], self.dtype)
        return _log_beta(a) + (total - size) * gen_ops.digamma(total) - _sum((a - 1.0) * gen_ops.digamma(a))

    def _mean(self) -> Tensor:
        return self._concentration / _row(self.total_concentration)

    def _variance(self) -> Tensor:
        mean = self._mean()
        return mean * (1.0 - mean) / _row(1.0 + self.total_concentration)

    def _covariance(self) -> Tensor:
        mean = self._mean()
        outer = _row(mean) * array_ops.expand_dims(mean, -2) / _row(_row(1.0 + self.total_concentration))
        return gen_ops.matrix_set_diag(-outer, self._variance())

    def _mode(self) -> Tensor:
        size = math_ops.cast(array_ops.shape(self._concentration)[-1], self.dtype)
        mode = (self._concentration - 1.0) / _row(self.total_concentration - size)
        if not self.allow_nan_stats:
            return checked(
                mode,
                True,
                lambda _: check_ops.assert_less(
                    array_ops.ones([], self.dtype), self._concentration, message="mode of Dirichlet is not defined where a concentration is <= 1"
                ),
            )
        inside = math_ops.reduce_all(gen_ops.greater(self._concentration, 1.0), axis=-1, keepdims=True)
        nan = gen_ops.fill(array_ops.shape(mode), numpy_cast.cast(np.nan, self.dtype))
        return array_ops.where(gen_ops.logical_and(inside, gen_ops.equal(mode, mode)), mode, nan)


@RegisterKL(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(a: Dirichlet, b: Dirichlet) -> Tensor:
    shares = gen_ops.digamma(a.concentration) - _row(gen_ops.digamma(a.total_concentration))
    return _sum((a.concentration - b.concentration) * shares) - _log_beta(a.concentration) + _log_beta(b.concentration)


class DirichletMultinomial(_Vectors):
    """How often each class comes in a number of draws whose shares are a Dirichlet's."""

    def __init__(
        self,
        total_count: Any = None,
        concentration: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
        **old_names: Any,
    ) -> None:
        total_count, concentration = renamed(old_names, total_count=("n", total_count), concentration=("alpha", concentration))
        with name_scope(name, values=[total_count, concentration]) as scope:
            (self._concentration,) = float_parameters(concentration)
            (self._total,) = float_parameters(total_count, dtype=self._concentration.dtype.base_dtype)
            if validate_args:
                self._total = embed_check_nonnegative_integer_form(self._total)
                self._concentration = checked(self._concentration, True, check_ops.assert_positive)
        rank = self._total.get_shape().ndims  # a total may have the classes' dimension, of size 1
        self._draws = self._total if rank and rank == self._concentration.get_shape().ndims else _row(self._total)
        self._vectors = (self._draws, self._concentration)
        super().__init__(self._concentration.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=self._vectors, name=scope)

    total_count = property(lambda self: self._total)
    concentration = property(lambda self: self._concentration)
    total_concentration = property(lambda self: _sum(self._concentration))

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        if self._total.get_shape().ndims != 0:
            raise at_user_line(NotImplementedError("Sample only supported for scalar number of draws."))
        classes = array_ops.shape(self._concentration)[-1]
        shares = random_ops.random_gamma(array_ops.reshape(n, [1]), self._concentration, dtype=self.dtype, seed=seed)
        logits = array_ops.reshape(gen_ops.log(shares), array_ops.stack([-1, classes]))
        drawn = random_ops.multinomial(logits, gen_ops.cast(self._total, dtypes.int32), gen_new_seed(seed, "dirichlet_multinomial"))
        counts = math_ops.reduce_sum(array_ops.one_hot(drawn, classes, dtype=self.dtype), axis=-2)
        return array_ops.reshape(counts, joined(n, self.batch_shape_tensor(), classes))

    def _log_prob(self, counts: Tensor) -> Tensor:
        if self.validate_args:
            counts = checked_counts(counts, self._total, "counts last-dimension")
        ways = gen_ops.lgamma(1.0 + self._total) - _sum(gen_ops.lgamma(1.0 + counts))
        return _log_beta(self._concentration + counts) - _log_beta(self._concentration) + ways

    def _mean(self) -> Tensor:
        return self._draws * self._concentration / _row(self.total_concentration)

    def _spread(self) -> Tensor:
        """How many times a multinomial's the variances are."""
        total = _row(self.total_concentration)
        return (self._draws + total) / (1.0 + total)

    def _variance(self) -> Tensor:
        return self._mean() * (1.0 - self._concentration / _row(self.total_concentration)) * self._spread()

    def _covariance(self) -> Tensor:
        shares = self._concentration / _row(self.total_concentration)
        outer = _row(self._mean() * self._spread()) * array_ops.expand_dims(shares, -2)
        return gen_ops.matrix_set_diag(-outer, self._variance())


class Mixture(Distribution):
    """One of some distributions, drawn by a Categorical."""

    def __init__(
        self,
        cat: Any,
        components: Sequence[Any],
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        del use_static_graph  # every part is always sampled
        if not isinstance(cat, Categorical):
            raise at_user_line(TypeError("cat must be a Categorical distribution, but saw: %s" % cat))
        if not components:
            raise at_user_line(ValueError("components must be a non-empty list or tuple"))
        if not all(isinstance(component, Distribution) for component in components):
            raise at_user_line(TypeError("all entries in components must be Distribution instances but saw: %s" % (components,)))
        if len({component.dtype for component in components}) > 1:
            raise at_user_line(TypeError("All components must have the same dtype, but saw: %s" % [component.dtype for component in components]))
        classes = cat.logits.get_shape()[-1].value
        if classes is not None and classes != len(components):
            raise at_user_line(ValueError("cat.num_classes != len(components): %d vs. %d" % (classes, len(components))))
        batch, event = cat.batch_shape, components[0].event_shape
        for component in components:
            batch, event = batch.merge_with(component.batch_shape), event.merge_with(component.event_shape)
        self._cat, self._components = cat, list(components)
        super().__init__(components[0].dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, name=name)

    cat = property(lambda self: self._cat)
    components = property(lambda self: self._components)
    num_components = property(lambda self: len(self._components))

    def _batch_shape(self) -> TensorShape:
        return self._cat.batch_shape

    def _batch_shape_tensor(self) -> Tensor:
        return self._cat.batch_shape_tensor()

    def _event_shape(self) -> TensorShape:
        return self._components[0].event_shape

    def _event_shape_tensor(self) -> Tensor:
        return self._components[0].event_shape_tensor()

    def _weights(self, values: Tensor) -> Any:
        """The parts' weights, one more dimension for each of an event."""
        logits = gen_ops.log_softmax(self._cat.logits)
        return array_ops.unstack(logits, num=len(self._components), axis=-1)

    def _log_prob(self, x: Tensor) -> Tensor:
        parts = [component.log_prob(x) for component in self._components]
        weighed = [part + weight for part, weight in zip(parts, self._weights(x))]
        return math_ops.reduce_logsumexp(array_ops.stack(weighed, axis=0), axis=0)

    def _cdf(self, x: Tensor) -> Tensor:
        return math_ops.add_n([component.cdf(x) * gen_ops.exp(weight) for component, weight in zip(self._components, self._weights(x))])

    def _chosen(self, parts: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
        for _ in range(self.event_shape.ndims or 0):
            weights = [_row(weight) for weight in weights]
        return math_ops.add_n([part * weight for part, weight in zip(parts, weights)])

    def _mean(self) -> Tensor:
        return self._chosen([component.mean() for component in self._components], [gen_ops.exp(w) for w in self._weights(self._cat.logits)])

    def _variance(self) -> Tensor:
        weights = [gen_ops.exp(w) for w in self._weights(self._cat.logits)]
        squares = self._chosen([component.variance() + gen_ops.square(component.mean()) for component in self._components], weights)
        return squares - gen_ops.square(self._mean())

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        count = array_ops.reshape(n, [1])
        picked = array_ops.reshape(self._cat.sample(count, seed), [-1])
        batch, event = math_ops.reduce_prod(self.batch_shape_tensor()), self.event_shape_tensor()
        places, parts = [], []
        for i, component in enumerate(self._components):  # as many of each as are drawn of it
            seed = gen_new_seed(seed, "mixture")
            place = gen_ops.cast(array_ops.reshape(array_ops.where(gen_ops.equal(picked, i)), [-1]), dtypes.int32)
            drawn = component.sample(array_ops.shape(place), seed)
            rows = array_ops.reshape(drawn, array_ops.concat([[-1], event], 0))
            parts.append(array_ops.gather(rows, math_ops.range(array_ops.size(place)) * batch + place % batch))
            places.append(place)
        made = gen_ops.dynamic_stitch(places, parts)
        return array_ops.reshape(made, array_ops.concat([count, self.batch_shape_tensor(), event], 0))

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Tensor:
        """The mean of the entropies of the parts."""
        with self._scope(name):
            weights = [gen_ops.exp(w) for w in self._weights(self._cat.logits)]
            return math_ops.add_n([component.entropy() * weight for component, weight in zip(self._components, weights)])


class Independent(Distribution):
    """A distribution some of whose batch dimensions, the last ones, count as dimensions of the event."""

    def __init__(self, distribution: Any, reinterpreted_batch_ndims: Optional[int] = None, validate_args: bool = False, name: Optional[str] = None) -> None:
        self._distribution = distribution
        ndims = distribution.batch_shape.ndims
        if reinterpreted_batch_ndims is not None:
            self._count: Any = int(reinterpreted_batch_ndims)
        elif ndims is None:
            self._count = gen_ops.maximum(0, array_ops.size(distribution.batch_shape_tensor()) - 1)
        else:
            self._count = max(0, ndims - 1)
        super().__init__(
            distribution.dtype,
            distribution.reparameterization_type,
            validate_args,
            distribution.allow_nan_stats,
            name=name or "Independent" + distribution.name.rstrip("/").rsplit("/", 1)[-1],
        )

    distribution = property(lambda self: self._distribution)
    reinterpreted_batch_ndims = property(lambda self: self._count)

    def _split(self) -> Tuple[TensorShape, TensorShape]:
        shape = self._distribution.batch_shape
        if shape.ndims is None:
            return TensorShape(None), TensorShape(None)
        return shape[: shape.ndims - self._count], shape[shape.ndims - self._count :]

    def _batch_shape(self) -> TensorShape:
        return self._split()[0]

    def _event_shape(self) -> TensorShape:
        return self._split()[1].concatenate(self._distribution.event_shape)

    def _batch_shape_tensor(self) -> Tensor:
        shape = self._distribution.batch_shape_tensor()
        return shape[: array_ops.size(shape) - self._count]

    def _event_shape_tensor(self) -> Tensor:
        shape = self._distribution.batch_shape_tensor()
        return joined(shape[array_ops.size(shape) - self._count :], self._distribution.event_shape_tensor())

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return self._distribution.sample(array_ops.reshape(n, [1]), seed)

    def _summed(self, values: Tensor) -> Tensor:
        return math_ops.reduce_sum(values, axis=math_ops.range(-self._count, 0))

    def _log_prob(self, x: Tensor) -> Tensor:
        return self._summed(self._distribution.log_prob(x))

    def _entropy(self) -> Tensor:
        return self._summed(self._distribution.entropy())

    def _mean(self) -> Tensor:
        return self._distribution.mean()

    def _mode(self) -> Tensor:
        return self._distribution.mode()

    def _variance(self) -> Tensor:
        return self._distribution.variance()

    def _stddev(self) -> Tensor:
        return self._distribution.stddev()


@RegisterKL(Independent, Independent)
def _independent_independent(a: Independent, b: Independent) -> Tensor:
    if not a.event_shape.is_compatible_with(b.event_shape):
        raise at_user_line(ValueError("Event shapes do not match: %s and %s" % (a.event_shape, b.event_shape)))
    if a.distribution.event_shape.ndims != b.distribution.event_shape.ndims:
        raise at_user_line(NotImplementedError("KL between Independents whose distributions have different event shapes is not provided"))
    return a._summed(kl_divergence(a.distribution, b.distribution))
