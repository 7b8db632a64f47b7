# SPDX-License-Identifier: Apache-2.0
"""VectorDiffeomixture: vectors that affine maps make of independent numbers, where each map lies between two."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from millrace.distributions.basic_bijectors import SoftmaxCentered
from millrace.distributions.matrix_bijectors import AffineLinearOperator
from millrace.distributions.continuous import Normal
from millrace.distributions.discrete import Categorical
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, Distribution, float_parameters, joined
from millrace.distributions.util import gen_new_seed, pick_vector
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.linalg_operators import LinearOperatorIdentity, LinearOperatorDiag, LinearOperatorLowerTriangular
from millrace.ops.linalg_composed_operators import LinearOperatorScaledIdentity

_IDENTITIES = (LinearOperatorIdentity, LinearOperatorScaledIdentity)


def _of_two(param: Any, name: str, validate_args: bool) -> Tensor:
    """A parameter of mixtures of two: its last dimension is 1."""
    shape = param.get_shape()
    if shape.ndims == 0:
        raise at_user_line(ValueError("Mixing params must be a (batch of) vector; %s.rank=0 is not at least one." % name))
    last = None if shape.ndims is None else shape[-1].value
    if last not in (None, 1):
        raise at_user_line(NotImplementedError("Currently only bimixtures are supported; %s.shape[-1]=%d is not 1." % (name, last)))
    if last == 1 or not validate_args:
        return param
    with control_dependencies([check_ops.assert_rank_at_least(param, 1), check_ops.assert_equal(array_ops.shape(param)[-1], 1)]):
        return array_ops.identity(param)


def _normal_parameters(loc: Any, scale: Any, validate_args: bool) -> Tuple[Tensor, Tensor]:
    loc, scale = float_parameters(loc, scale)
    return loc, _of_two(scale, "normal_scale", validate_args)


def quadrature_scheme_softmaxnormal_gauss_hermite(
    normal_loc: Any, normal_scale: Any, quadrature_size: int, validate_args: bool = False, name: Optional[str] = None
) -> Tuple[Tensor, Tensor]:
    """(points on the simplex [..., 2, quadrature_size], their weights) of Gauss and Hermite for the softmax of a normal variable and 0."""
    with name_scope(name, "quadrature_scheme_softmaxnormal_gauss_hermite", [normal_loc, normal_scale]):
        loc, scale = _normal_parameters(normal_loc, normal_scale, validate_args)
        points, weights = np.polynomial.hermite.hermgauss(quadrature_size)
        at = array_ops.expand_dims(loc, -1) + array_ops.expand_dims(scale, -1) * convert_to_tensor(np.sqrt(2.0) * points, loc.dtype.base_dtype)
        first = gen_ops.sigmoid(at)
        return array_ops.concat([first, 1 - first], -2), convert_to_tensor(weights / weights.sum(), loc.dtype.base_dtype)


def quadrature_scheme_softmaxnormal_quantiles(
    normal_loc: Any, normal_scale: Any, quadrature_size: int, validate_args: bool = False, name: Optional[str] = None
) -> Tuple[Tensor, Tensor]:
    """(points on the simplex [..., 2, quadrature_size], their equal weights): the middles between quantiles of the softmax of a normal variable
    and 0, of which the outermost are left out."""
    with name_scope(name, "softmax_normal_grid_and_probs", [normal_loc, normal_scale]):
        loc, scale = _normal_parameters(normal_loc, normal_scale, validate_args)
        edges = convert_to_tensor(np.linspace(0.0, 1.0, quadrature_size + 3)[1:-1], loc.dtype.base_dtype)
        at = Normal(array_ops.expand_dims(loc, -2), array_ops.expand_dims(scale, -2)).quantile(array_ops.expand_dims(edges, -1))  # [..., edges, 1]
        quantiles = array_ops.matrix_transpose(SoftmaxCentered().forward(at))
        grid = (quantiles[..., :-1] + quantiles[..., 1:]) / 2.0
        return grid, convert_to_tensor(np.full(quadrature_size, 1.0 / quadrature_size), loc.dtype.base_dtype)


def _sum_of_scales(weights: List[Tensor], scales: List[Any]) -> Any:
    """The sum of operators, each times a number that is not negative."""
    positive = True if all(scale.is_positive_definite for scale in scales) else None
    hints: Any = dict(is_non_singular=positive, is_self_adjoint=positive, is_positive_definite=positive)
    kinds = (*_IDENTITIES, LinearOperatorDiag, LinearOperatorLowerTriangular)
    for scale in scales:
        if not isinstance(scale, kinds):
            raise at_user_line(NotImplementedError("Unsupported Linop type (%s)" % type(scale).__name__))

    def added(part: Callable[[Any], Any], dims: int) -> Any:
        total: Any = None
        for weight, scale in zip(weights, scales):
            for _ in range(dims):
                weight = array_ops.expand_dims(weight, -1)
            total = weight * part(scale) if total is None else total + weight * part(scale)
        return total

    if all(isinstance(scale, _IDENTITIES) for scale in scales):
        multiplier = added(lambda scale: getattr(scale, "multiplier", 1), 0)
        return LinearOperatorScaledIdentity(scales[0].range_dimension_tensor(), multiplier, **hints)
    if not any(isinstance(scale, LinearOperatorLowerTriangular) for scale in scales):
        return LinearOperatorDiag(added(lambda scale: scale.diag_part(), 1), **hints)
    del hints["is_self_adjoint"]
    return LinearOperatorLowerTriangular(added(lambda scale: scale.to_dense(), 2), **hints)


class VectorDiffeomixture(Distribution):
    """A mixture of affine maps of independent numbers: each map lies between two given ones, at a point of a quadrature (Dillon and Langmore, 2018).

    The points are those of the softmax of a normal variable with mix_loc / temperature and 1 / temperature. distribution: of the numbers,
    scalar in its batch and event. loc: two vectors, or None for 0. scale: two LinearOperators: identities, diagonals or lower triangles.
    """

    def __init__(
        self,
        mix_loc: Any,
        temperature: Any,
        distribution: Any,
        loc: Any = None,
        scale: Any = None,
        quadrature_size: int = 8,
        quadrature_fn: Callable[..., Any] = quadrature_scheme_softmaxnormal_quantiles,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorDiffeomixture",
    ) -> None:
        if not scale or len(scale) < 2:
            raise at_user_line(ValueError("Must specify list (or list-like object) of scale LinearOperators, one for each component with num_component >= 2."))
        loc = [None] * len(scale) if loc is None else list(loc)
        if len(loc) != len(scale):
            raise at_user_line(ValueError("loc/scale must be same-length lists (or same-length list-like objects)."))
        if len(scale) != 2:
            raise at_user_line(NotImplementedError("Currently only bimixtures are supported; len(scale)=%d is not 2." % len(scale)))
        dtype = scale[0].dtype.base_dtype
        for k, operator in enumerate(scale):
            if validate_args and not operator.is_positive_definite:
                raise at_user_line(ValueError("scale[%d].is_positive_definite = %s != True" % (k, operator.is_positive_definite)))
            if operator.dtype.base_dtype != dtype:
                raise at_user_line(TypeError('dtype mismatch; scale[%d].base_dtype="%s" != "%s"' % (k, operator.dtype.base_dtype.name, dtype.name)))
        with name_scope(name, values=[mix_loc, temperature]) as scope:
            shifts = [None if given is None else convert_to_tensor(given, dtype, "loc%d" % k) for k, given in enumerate(loc)]
            mix_loc, temperature = (convert_to_tensor(given, dtype) for given in (mix_loc, temperature))
            self._endpoints = [AffineLinearOperator(*pair, validate_args=validate_args) for pair in zip(shifts, scale)]
            grid, probs = quadrature_fn(mix_loc / temperature, 1.0 / temperature, quadrature_size, validate_args)
            with control_dependencies(self._checks_of(distribution, dtype, validate_args)):
                self._grid = array_ops.identity(grid)
            self._mixture = Categorical(logits=gen_ops.log(probs), validate_args=validate_args, allow_nan_stats=allow_nan_stats)
            self._numbers = distribution
            self._between = [self._map_at(k, shifts, scale) for k in range(self._points())]
        parents = [*distribution._graph_parents, *(shift for shift in shifts if shift is not None), *(p for operator in scale for p in operator.graph_parents)]
        super().__init__(dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=parents, name=scope)

    mixture_distribution = property(lambda self: self._mixture, doc="Which point of the quadrature it is.")
    distribution = property(lambda self: self._numbers, doc="The distribution of the numbers.")
    grid = property(lambda self: self._grid, doc="The weights of both maps at each point: [..., 2, points].")
    endpoint_affine = property(lambda self: self._endpoints, doc="The two maps.")
    interpolated_affine = property(lambda self: self._between, doc="The map of each point.")

    @staticmethod
    def _checks_of(distribution: Any, dtype: Any, validate_args: bool) -> List[Any]:
        if distribution.dtype != dtype:
            raise at_user_line(TypeError('dtype mismatch; distribution.dtype="%s" is not "%s"' % (distribution.dtype.name, dtype.name)))
        if validate_args and distribution.reparameterization_type != FULLY_REPARAMETERIZED:
            raise at_user_line(ValueError("Base distribution should be reparameterized or be a function of non-trainable variables; it is not."))
        checks = []
        for what, shape, scalar in (
            ("event", distribution.event_shape, distribution.is_scalar_event),
            ("batch", distribution.batch_shape, distribution.is_scalar_batch),
        ):
            if shape.ndims not in (None, 0):
                raise at_user_line(ValueError("distribution must be a scalar-%s distribution" % what))
            if shape.ndims is None and validate_args:
                checks.append(check_ops.assert_equal(scalar(), True, message="distribution must be a scalar-%s distribution" % what))
        return checks

    def _points(self) -> int:
        count = self._grid.get_shape().with_rank_at_least(2)[-1].value
        if count is None:
            raise at_user_line(ValueError("Num quadrature grid points must be known prior to graph execution."))
        return int(count)

    def _map_at(self, k: int, shifts: List[Any], scales: List[Any]) -> Any:
        weights = [self._grid[..., i, k] for i in range(2)]
        parts = [array_ops.expand_dims(weight, -1) * shift for weight, shift in zip(weights, shifts) if shift is not None]
        return AffineLinearOperator(sum(parts[1:], parts[0]) if parts else None, _sum_of_scales(weights, scales), name="interpolated_affine_%d" % k)

    def _shapes(self) -> List[Tuple[TensorShape, Any, TensorShape, Any]]:
        """The batches and events, static and told by the step, of all that is broadcast."""
        grid = self._grid
        found: List[Any] = [(grid.get_shape()[:-2], array_ops.shape(grid)[:-2], TensorShape([1]), convert_to_tensor([1]))]
        for affine in self._endpoints:
            if affine.shift is not None:
                shape, sizes = affine.shift.get_shape(), array_ops.shape(affine.shift)
                found.append((shape[:-1], sizes[:-1], shape[-1:], sizes[-1:]))
            scale = affine.scale
            sizes = array_ops.expand_dims(scale.range_dimension_tensor(), 0)
            found.append((scale.batch_shape, scale.batch_shape_tensor(), TensorShape([scale.range_dimension]), sizes))
        return found

    def _broadcast(self, place: int) -> Any:
        shapes = [row[place] for row in self._shapes()]
        together = array_ops.broadcast_dynamic_shape if place % 2 else array_ops.broadcast_static_shape
        made = shapes[0]
        for shape in shapes[1:]:
            made = together(made, shape)
        return made

    def _batch_shape(self) -> TensorShape:
        return self._broadcast(0)

    def _batch_shape_tensor(self) -> Tensor:
        return self._broadcast(1)

    def _event_shape(self) -> TensorShape:
        return self._broadcast(2)

    def _event_shape_tensor(self) -> Tensor:
        return self._broadcast(3)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        batch = self.batch_shape_tensor()
        numbers = self._numbers.sample(joined(n, joined(batch, self.event_shape_tensor())), seed)
        ends = [affine.forward(numbers) for affine in self._endpoints]
        places = math_ops.reduce_prod(batch) // math_ops.reduce_prod(self._mixture.batch_shape_tensor())
        lead = joined(n, pick_vector(self.is_scalar_batch(), convert_to_tensor(np.zeros(0, np.int32)), array_ops.expand_dims(places, 0)))
        chosen = array_ops.reshape(self._mixture.sample(lead, gen_new_seed(seed, "vector_diffeomixture")), joined(n, batch))
        one = array_ops.one_hot(chosen, self._points(), dtype=self.dtype)
        weight = math_ops.reduce_sum(one * self._grid[..., 0, :], [-1], keepdims=True)
        return weight * (ends[0] - ends[1]) + ends[1]

    def _log_prob(self, x: Tensor) -> Tensor:
        numbers = array_ops.stack([affine.inverse(x) for affine in self._between], -1)
        log_probs = math_ops.reduce_sum(self._numbers.log_prob(numbers), [-2])
        log_dets = array_ops.stack([affine.forward_log_det_jacobian(x, event_ndims=1) for affine in self._between], -1)
        return math_ops.reduce_logsumexp(self._mixture.logits - log_dets + log_probs, [-1])

    def _means(self) -> List[Tensor]:
        """The mean of each map's vectors."""
        numbers = array_ops.fill(joined(self.batch_shape_tensor(), self.event_shape_tensor()), self._numbers.mean())
        return [affine.forward(numbers) for affine in self._between]

    def _weighted(self, values: List[Tensor], dims: int) -> Tensor:
        """The sum of values, each times the probability of its map, which gets so many dimensions behind."""
        total: Any = None
        for k, value in enumerate(values):
            p = self._mixture.probs[..., k]
            for _ in range(dims):
                p = array_ops.expand_dims(p, -1)
            total = p * value if total is None else total + p * value
        return total

    def _mean(self) -> Tensor:
        return self._weighted(self._means(), 1)

    def _deviations(self) -> List[Tensor]:
        means = self._means()
        center = self._weighted(means, 1)
        return [mean - center for mean in means]

    def _covariance(self) -> Tensor:
        def squares(x: Tensor) -> Tensor:
            return array_ops.expand_dims(x, -1) * array_ops.expand_dims(x, -2)

        inside = [self._numbers.variance() * affine.scale.matmul(affine.scale.to_dense(), adjoint_arg=True) for affine in self._between]
        return self._weighted([one + squares(deviation) for one, deviation in zip(inside, self._deviations())], 2)

    def _variance(self) -> Tensor:
        inside = [self._numbers.variance() * math_ops.reduce_sum(gen_ops.square(affine.scale.to_dense()), [-1]) for affine in self._between]
        return self._weighted([one + gen_ops.square(deviation) for one, deviation in zip(inside, self._deviations())], 1)
