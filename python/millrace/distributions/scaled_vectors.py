# SPDX-License-Identifier: Apache-2.0
"""Vectors loc + scale z: z of independent normal, Laplace or exponential numbers, the scale a LinearOperator or a diagonal."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from millrace.distributions.continuous import slack_of
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED, checked, float_parameters, joined
from millrace.distributions.multivariate import _Vectors
from millrace.framework import numpy_cast
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, linalg_operators, math_ops, random_ops


def _sum(x: Any) -> Any:
    return math_ops.reduce_sum(x, [-1])


def diagonal_of(loc: Any, scale_diag: Any, multiple: Any) -> Any:
    """(loc, the diagonal of the scale), of the parts that were given."""
    if loc is None and scale_diag is None and multiple is None:
        raise at_user_line(ValueError("Must specify at least one of `loc`, `scale_diag` and `scale_identity_multiplier`."))
    given = dict(zip(("loc", "scale_diag", "multiple"), (loc, scale_diag, multiple)))
    made = dict(zip([k for k, v in given.items() if v is not None], float_parameters(*(v for v in given.values() if v is not None))))
    base = made.get("loc", made.get("scale_diag"))
    if base is None:
        raise at_user_line(ValueError("`loc` or `scale_diag` must say how long vectors are."))
    diagonal = made.get("scale_diag")
    if "multiple" in made:
        wide = array_ops.expand_dims(made["multiple"], -1)
        diagonal = wide * array_ops.ones_like(base) if diagonal is None else diagonal + wide
    if diagonal is None:
        diagonal = array_ops.ones_like(base)
    return made.get("loc", array_ops.zeros_like(diagonal)), diagonal


class ScaledVectors(_Vectors):
    """loc + scale z of numbers z that a subclass draws."""

    _unit_variance = 1.0

    def __init__(self, loc: Any, scale: Any, validate_args: bool, allow_nan_stats: bool, name: str) -> None:
        if scale is None:
            raise at_user_line(ValueError("Missing required `scale` parameter."))
        if not scale.dtype.is_floating:
            raise at_user_line(TypeError("`scale` parameter must have floating-point dtype."))
        with name_scope(name) as scope:
            self._operator = scale
            self._diagonal = scale.diag_part()
            self._loc = array_ops.zeros_like(self._diagonal) if loc is None else float_parameters(loc, dtype=scale.dtype)[0]
            self._dense: Any = None if isinstance(scale, linalg_operators.LinearOperatorDiag) else scale.to_dense()
            self._log_det = scale.log_abs_determinant()
        self._vectors = (self._loc, self._diagonal)
        super().__init__(scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=[self._loc, *scale.graph_parents], name=scope)

    loc = property(lambda self: self._loc)
    scale = property(lambda self: self._operator)

    def _times(self, z: Tensor) -> Tensor:
        return z * self._diagonal if self._dense is None else _sum(self._dense * array_ops.expand_dims(z, -2))

    def _solved(self, x: Tensor) -> Tensor:
        if self._dense is None:
            return x / self._diagonal
        matrices = self._dense + array_ops.expand_dims(array_ops.zeros_like(x), -1)
        return array_ops.squeeze(gen_ops.matrix_solve(matrices, array_ops.expand_dims(x + array_ops.zeros_like(self._diagonal), -1)), [-1])

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
        return self._times(self._unit_mean() * self._ones()) + self._loc

    def _mode(self) -> Tensor:
        return self._loc * self._ones()

    def _variance(self) -> Tensor:
        square = gen_ops.square(self._diagonal) if self._dense is None else _sum(gen_ops.square(self._dense))
        return self._unit_variance * square * self._ones()

    def _covariance(self) -> Tensor:
        if self._dense is None:
            return gen_ops.matrix_diag(self._variance())
        whole = self._unit_variance * gen_ops.batch_mat_mul(self._dense, self._dense, adj_y=True)
        return whole + array_ops.expand_dims(array_ops.zeros_like(self._loc), -1)


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
    ) -> None:
        loc, diagonal = diagonal_of(loc, scale_diag, scale_identity_multiplier)
        zero = array_ops.zeros([], diagonal.dtype.base_dtype)
        diagonal = checked(diagonal, validate_args, lambda d: check_ops.assert_none_equal(d, zero))
        kind.__init__(self, loc, linalg_operators.LinearOperatorDiag(diagonal, is_non_singular=True), validate_args, allow_nan_stats, name)

    return type(label, (kind,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


VectorLaplaceDiag = _diagonal_kind(VectorLaplaceLinearOperator, "A vector of Laplace's numbers with a diagonal as scale.", "VectorLaplaceDiag")
VectorExponentialDiag = _diagonal_kind(VectorExponentialLinearOperator, "A vector of exponential numbers with a diagonal as scale.", "VectorExponentialDiag")


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
