# SPDX-License-Identifier: Apache-2.0
"""Vectors loc + scale z: z of independent normal, Laplace or exponential numbers, the scale a LinearOperator or a diagonal."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from millrace.distributions.continuous import renamed, slack_of
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED, RegisterKL, checked, float_parameters, joined
from millrace.distributions.multivariate import _Vectors
from millrace.framework import numpy_cast
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, linalg_operators, math_ops, random_ops


def _sum(x: Any) -> Any:
    return math_ops.reduce_sum(x, [-1])


def diagonal_of(loc: Any, scale_diag: Any, multiple: Any) -> Any:
    """(loc, the diagonal of the scale), of the parts that were given. The diagonal has the batch of what it is made of, not that of loc."""
    if loc is None and scale_diag is None and multiple is None:
        raise at_user_line(ValueError("Must specify at least one of `loc`, `scale_diag` and `scale_identity_multiplier`."))
    given = dict(zip(("loc", "scale_diag", "multiple"), (loc, scale_diag, multiple)))
    made = dict(zip([k for k, v in given.items() if v is not None], float_parameters(*(v for v in given.values() if v is not None))))
    if "loc" not in made and "scale_diag" not in made:
        raise at_user_line(ValueError("`loc` or `scale_diag` must say how long vectors are."))
    diagonal = made.get("scale_diag")
    wide = array_ops.expand_dims(made["multiple"], -1) if "multiple" in made else None
    if diagonal is None:
        one = _ones_of_event(made["loc"])
        diagonal = one if wide is None else wide * one
    elif wide is not None:
        diagonal = diagonal + wide
    return made.get("loc", array_ops.zeros_like(diagonal)), diagonal


def _ones_of_event(loc: Tensor) -> Tensor:
    """As many ones as loc's last dimension has places."""
    size = loc.get_shape().with_rank_at_least(1)[-1].value
    return array_ops.ones(array_ops.shape(loc)[-1:] if size is None else [size], loc.dtype.base_dtype)


class ScaledVectors(_Vectors):
    """loc + scale z of numbers z that a subclass draws."""

    _unit_variance = 1.0

    def __init__(self, loc: Any, scale: Any, validate_args: bool, allow_nan_stats: bool, name: str) -> None:
        if scale is None:
            raise at_user_line(ValueError("Missing required `scale` parameter."))
        if not scale.dtype.is_floating:
            raise at_user_line(TypeError("`scale` parameter must have floating-point dtype."))
        with name_scope(name) as scope:
            self._operator, is_diagonal = scale, isinstance(scale, linalg_operators.LinearOperatorDiag)
            self._diagonal = scale.diag if is_diagonal else scale.diag_part()
            self._loc = array_ops.zeros_like(self._diagonal) if loc is None else float_parameters(loc, dtype=scale.dtype)[0]
            self._dense: Any = None if is_diagonal else scale.to_dense()
            self._log_det = _sum(gen_ops.log(gen_ops.abs(self._diagonal))) if is_diagonal else scale.log_abs_determinant()
        self._vectors = (self._loc, self._diagonal)
        super().__init__(scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=[self._loc, *scale.graph_parents], name=scope)

    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._operator)

    def _checked(self, vectors: Tensor) -> Tensor:
        return checked(vectors, self._validate_args, lambda _: self._operator.assert_non_singular())

    def _times(self, z: Tensor) -> Tensor:
        z = self._checked(z)
        return z * self._diagonal if self._dense is None else _sum(self._dense * array_ops.expand_dims(z, -2))

    def _solved(self, x: Tensor) -> Tensor:
        x = self._checked(x)
        return x / self._diagonal if self._dense is None else self._operator.solvevec(x + array_ops.zeros_like(self._diagonal))

    def _noise(self, shape: Tensor, seed: Optional[int]) -> Tensor:
        raise NotImplementedError

    def _log_unit(self, z: Tensor) -> Tensor:
        raise NotImplementedError

    def _unit_mean(self) -> float:
        return 0.0

    _unit_entropy = 0.0

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return self._times(self._noise(joined(n, self._whole_shape_tensor()), seed)) + self._loc

    def _log_prob(self, x: Tensor) -> Tensor:
        return _sum(self._log_unit(self._solved(x - self._loc))) - self._log_det

    def _ones(self) -> Tensor:
        return array_ops.ones(self._whole_shape_tensor(), self.dtype)

    def _entropy(self) -> Tensor:
        return _sum(self._unit_entropy * self._ones()) + self._log_det

    def _mean(self) -> Tensor:
        return self._times(self._unit_mean() * self._ones()) + self._loc if self._unit_mean() else self._mode()

    def _mode(self) -> Tensor:
        return self._loc * self._ones()

    # What follows depends on the scale alone, and has its batch.
    def _variance(self) -> Tensor:
        square = gen_ops.square(self._diagonal) if self._dense is None else _sum(gen_ops.square(self._dense))
        return self._unit_variance * square

    def _stddev(self) -> Tensor:
        return math.sqrt(self._unit_variance) * gen_ops.abs(self._diagonal) if self._dense is None else gen_ops.sqrt(self._variance())

    def _covariance(self) -> Tensor:
        if self._dense is None:
            return gen_ops.matrix_diag(self._variance())
        return self._unit_variance * gen_ops.batch_mat_mul(self._dense, self._dense, adj_y=True)


class MultivariateNormalLinearOperator(ScaledVectors):
    """A normal vector with a linear operator as scale."""

    _unit_entropy = 0.5 * math.log(2.0 * math.pi * math.e)

    def __init__(
        self, loc: Any = None, scale: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "MultivariateNormalLinearOperator"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _noise(self, shape: Tensor, seed: Optional[int]) -> Tensor:
        return random_ops.random_normal(shape, dtype=self.dtype, seed=seed)

    def _log_unit(self, z: Tensor) -> Tensor:
        return -0.5 * gen_ops.square(z) - 0.5 * math.log(2.0 * math.pi)

    mu = property(lambda self: self._loc)  # the name of 1.0


class MultivariateNormalTriL(MultivariateNormalLinearOperator):
    """A normal vector whose covariance is L L'."""

    def __init__(
        self,
        loc: Any = None,
        scale_tril: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
        **old_names: Any,
    ) -> None:
        if old_names:
            loc, scale_tril = renamed(old_names, loc=("mu", loc), scale_tril=("chol", scale_tril))
        with name_scope(name, values=[loc, scale_tril]) as scope:
            if scale_tril is None:
                (loc,) = float_parameters(loc)
                scale: Any = linalg_operators.LinearOperatorDiag(_ones_of_event(loc), is_non_singular=True)
            else:
                *given, tril = float_parameters(*([] if loc is None else [loc]), scale_tril)
                loc = given[0] if given else None
                scale = linalg_operators.LinearOperatorLowerTriangular(tril, is_non_singular=True)
        super().__init__(loc, scale, validate_args, allow_nan_stats, scope)


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """A normal vector of a covariance."""

    def __init__(
        self,
        loc: Any = None,
        covariance_matrix: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
        **old_names: Any,
    ) -> None:
        if old_names:
            loc, covariance_matrix = renamed(old_names, loc=("mu", loc), covariance_matrix=("sigma", covariance_matrix))
        tril = None
        if covariance_matrix is not None:
            (tril,) = float_parameters(covariance_matrix)
            tril = gen_ops.cholesky(checked(tril, validate_args, _assert_symmetric))
        super().__init__(loc, tril, validate_args, allow_nan_stats, name)


def _assert_symmetric(matrix: Tensor) -> Any:
    return check_ops.assert_equal(matrix, array_ops.matrix_transpose(matrix), message="Matrix was not symmetric.")


@RegisterKL(MultivariateNormalLinearOperator, MultivariateNormalLinearOperator)
def _normal_normal(a: MultivariateNormalLinearOperator, b: MultivariateNormalLinearOperator) -> Tensor:
    moved = _sum(gen_ops.square(b._solved(b.loc - a.loc)))
    if a._dense is None and b._dense is None:
        ratio = gen_ops.square(a._diagonal / b._diagonal)
        return 0.5 * (moved + _sum(ratio - 1.0 - gen_ops.log(ratio)))
    turned = math_ops.reduce_sum(gen_ops.square(b.scale.solve(a.scale.to_dense())), [-2, -1])
    size = math_ops.cast(array_ops.shape(b._diagonal)[-1], b.dtype)
    return b._log_det - a._log_det + 0.5 * (turned + moved - size)


class MultivariateNormalDiagPlusLowRank(MultivariateNormalLinearOperator):
    """A normal vector whose scale is a diagonal and a product V D V' of few columns."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagPlusLowRank",
    ) -> None:
        if scale_perturb_factor is not None and loc is None and scale_diag is None:  # the factor tells how long vectors are
            (scale_perturb_factor,) = float_parameters(scale_perturb_factor)
            scale_diag = array_ops.zeros_like(scale_perturb_factor[..., 0])
            scale_identity_multiplier = 1.0 if scale_identity_multiplier is None else scale_identity_multiplier
        loc, diagonal = diagonal_of(loc, scale_diag, scale_identity_multiplier)
        dense = gen_ops.matrix_diag(diagonal)
        if scale_perturb_factor is not None:
            (factor,) = float_parameters(scale_perturb_factor, dtype=dense.dtype.base_dtype)
            inner = factor
            if scale_perturb_diag is not None:
                inner = factor * array_ops.expand_dims(float_parameters(scale_perturb_diag, dtype=dense.dtype.base_dtype)[0], -2)
            dense = dense + gen_ops.batch_mat_mul(inner, factor, adj_y=True)
        scale = linalg_operators.LinearOperatorFullMatrix(dense, is_non_singular=True)
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)


class VectorLaplaceLinearOperator(ScaledVectors):
    """A vector of Laplace's numbers with a linear operator as scale."""

    _unit_variance = 2.0
    _unit_entropy = 1.0 + math.log(2.0)

    def __init__(
        self, loc: Any = None, scale: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "VectorLaplaceLinearOperator"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _noise(self, shape: Tensor, seed: Optional[int]) -> Tensor:
        least = np.nextafter(self.dtype.as_numpy_dtype(-1), self.dtype.as_numpy_dtype(0))
        even = random_ops.random_uniform(shape, least, 1.0, self.dtype, seed)
        return -gen_ops.sign(even) * gen_ops.log1p(-gen_ops.abs(even))

    def _log_unit(self, z: Tensor) -> Tensor:
        return -gen_ops.abs(z) - math.log(2.0)


class VectorExponentialLinearOperator(ScaledVectors):
    """A vector of exponential numbers with a linear operator as scale."""

    _unit_entropy = 1.0

    def __init__(
        self, loc: Any = None, scale: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "VectorExponentialLinearOperator"
    ) -> None:
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)

    def _unit_mean(self) -> float:
        return 1.0

    def _noise(self, shape: Tensor, seed: Optional[int]) -> Tensor:
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        return -gen_ops.log(random_ops.random_uniform(shape, tiny, 1.0, self.dtype, seed))

    def _log_unit(self, z: Tensor) -> Tensor:
        never = gen_ops.fill(array_ops.shape(z), numpy_cast.cast(-np.inf, self.dtype))
        return array_ops.where(gen_ops.less(z, 0.0), never, -z)


def _diagonal_kind(kind: Any, doc: str, label: str) -> Any:
    def __init__(
        self: Any,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = label,
        **old_names: Any,
    ) -> None:
        if old_names:
            loc, scale_diag = renamed(old_names, loc=("mu", loc), scale_diag=("diag_stdev", scale_diag))
        loc, diagonal = diagonal_of(loc, scale_diag, scale_identity_multiplier)
        kind.__init__(self, loc, linalg_operators.LinearOperatorDiag(diagonal, is_non_singular=True), validate_args, allow_nan_stats, name)

    return type(label, (kind,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


MultivariateNormalDiag: Any = _diagonal_kind(MultivariateNormalLinearOperator, "Independent normal numbers as one vector.", "MultivariateNormalDiag")
VectorLaplaceDiag = _diagonal_kind(VectorLaplaceLinearOperator, "A vector of Laplace's numbers with a diagonal as scale.", "VectorLaplaceDiag")
VectorExponentialDiag = _diagonal_kind(VectorExponentialLinearOperator, "A vector of exponential numbers with a diagonal as scale.", "VectorExponentialDiag")


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):  # type: ignore[misc]
    """MultivariateNormalDiag of the softplus of a scale."""

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
        **old_names: Any,
    ) -> None:
        loc, scale_diag = renamed(old_names, loc=("mu", loc), scale_diag=("diag_stdev", scale_diag))
        (scale,) = float_parameters(scale_diag)
        super().__init__(loc, gen_ops.softplus(scale), None, validate_args, allow_nan_stats, name)


class VectorDeterministic(_Vectors):
    """All of the probability at one vector."""

    def __init__(
        self, loc: Any, atol: Any = None, rtol: Any = None, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "VectorDeterministic"
    ) -> None:
        with name_scope(name, values=[loc]) as scope:
            self._loc = convert_to_tensor(loc, name="loc")
            if self._loc.get_shape().ndims == 0:
                raise at_user_line(ValueError("`loc` must be a vector or a batch of vectors, got %s" % self._loc))
            self._slack = slack_of(self._loc, atol, rtol, validate_args)
        self._vectors = (self._loc,)
        super().__init__(self._loc.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=[self._loc], name=scope)

    loc = property(lambda self: self._loc)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        return self._loc * array_ops.ones(joined(n, self._whole_shape_tensor()), self.dtype)

    def _prob(self, x: Tensor) -> Tensor:
        x = checked(x, self._validate_args, self._assert_length)
        near = gen_ops.less_equal(gen_ops.abs(x - self._loc), self._slack)
        return gen_ops.cast(math_ops.reduce_all(near, [-1]), self.dtype)

    def _assert_length(self, x: Tensor) -> Any:
        message = "Argument 'x' not defined in the same space R**k as this distribution"
        return check_ops.assert_equal(array_ops.shape(x)[-1:], self.event_shape_tensor(), message=message)

    def _mean(self) -> Tensor:
        return array_ops.identity(self._loc)

    _mode = _mean

    def _variance(self) -> Tensor:
        return array_ops.zeros_like(self._loc)

    def _entropy(self) -> Tensor:
        return array_ops.zeros(self.batch_shape_tensor(), self.dtype)
