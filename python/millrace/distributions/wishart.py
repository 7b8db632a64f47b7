# SPDX-License-Identifier: Apache-2.0
"""Wishart's distributions of matrices."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from millrace.distributions.distribution import FULLY_REPARAMETERIZED, Distribution, checked, float_parameters, joined
from millrace.distributions.util import gen_new_seed
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, random_ops


class WishartCholesky(Distribution):
    """The sum of x x' of df normal vectors whose covariance is L L'; `scale` is L. With cholesky_input_output_matrices, its factor."""

    def __init__(
        self,
        df: Any,
        scale: Any,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartCholesky",
    ) -> None:
        with name_scope(name, values=[df, scale]) as scope:
            _check_floating(scale)
            self._df, tril = float_parameters(df, scale)
            self._tril = gen_ops.matrix_band_part(tril, -1, 0)
            self._tril = checked(self._tril, validate_args, _assert_positive, _assert_square)
            known = self._tril.get_shape().with_rank_at_least(2)[-1].value
            self._rows, self._factors = array_ops.shape(self._tril)[-1] if known is None else known, cholesky_input_output_matrices
            self._size: Any = math_ops.cast(self._rows, self._tril.dtype.base_dtype) if known is None else float(known)
            self._diagonal = gen_ops.matrix_diag_part(self._tril)
            self._check_df(known, validate_args)
        super().__init__(self._tril.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, graph_parents=[self._df, self._tril], name=scope)

    def _check_df(self, known: Optional[int], validate_args: bool) -> None:
        df, too_small = constant_value(self._df), "Degrees of freedom (df = %s) cannot be less than dimension of scale matrix (scale.dimension = %s)"
        if df is not None and known is not None:
            if np.any(df < known):
                raise at_user_line(ValueError(too_small % (df, known)))
        else:
            least, text = self.dimension, too_small % (self._df, self._rows)
            self._df = checked(self._df, validate_args, lambda d: check_ops.assert_less_equal(least, d, message=text))

    df = property(lambda self: self._df)
    dimension = property(lambda self: convert_to_tensor(self._size, self._tril.dtype.base_dtype, "dimension"), doc="How many rows matrices have.")
    cholesky_input_output_matrices = property(lambda self: self._factors)

    def scale(self) -> Tensor:
        """L L', or L where matrices are given and taken as factors."""
        return self._tril if self._factors else self._square(self._tril)

    @property
    def scale_operator(self) -> Any:
        """L as a LinearOperator."""
        from millrace.ops import linalg_operators

        return linalg_operators.LinearOperatorLowerTriangular(self._tril, is_non_singular=True)

    @staticmethod
    def _square(factor: Tensor) -> Tensor:
        return gen_ops.batch_mat_mul(factor, factor, adj_y=True)

    def _factored(self, matrix: Tensor) -> Tensor:
        return gen_ops.cholesky(matrix) if self._factors else matrix

    def _batch_shape(self) -> TensorShape:
        return array_ops.broadcast_static_shape(self._df.get_shape(), self._tril.get_shape()[:-2])

    def _batch_shape_tensor(self) -> Tensor:
        return array_ops.broadcast_dynamic_shape(array_ops.shape(self._df), array_ops.shape(self._tril)[:-2])

    def _event_shape(self) -> TensorShape:
        known = self._rows if isinstance(self._rows, int) else None
        return TensorShape([known, known])

    def _event_shape_tensor(self) -> Tensor:
        return array_ops.shape(self._tril)[-2:]

    def _wide_df(self) -> Tensor:
        return self._df + array_ops.zeros(self.batch_shape_tensor(), self.dtype)

    def _each_df(self) -> Tensor:
        """Half of df, df - 1, ... in a last dimension."""
        return 0.5 * (array_ops.expand_dims(self._wide_df(), -1) - math_ops.cast(math_ops.range(self._rows), self.dtype))

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        shape = joined(n, self.batch_shape_tensor(), self.event_shape_tensor())
        below = gen_ops.matrix_band_part(random_ops.random_normal(shape, dtype=self.dtype, seed=seed), -1, 0)
        squares = random_ops.random_gamma(array_ops.reshape(n, [1]), self._each_df(), 0.5, self.dtype, gen_new_seed(seed, "wishart"))
        factor = gen_ops.matrix_set_diag(below, gen_ops.sqrt(squares))  # Bartlett's
        wide = self._tril + array_ops.zeros_like(factor)
        made = gen_ops.batch_mat_mul(wide, factor)
        return made if self._factors else self._square(made)

    def _log_prob(self, x: Tensor) -> Tensor:
        factor = x if self._factors else gen_ops.cholesky(x)
        wide = self._tril + array_ops.zeros_like(factor)
        solved = gen_ops.matrix_triangular_solve(wide, factor + array_ops.zeros_like(wide))
        logs = 2.0 * math_ops.reduce_sum(gen_ops.log(gen_ops.matrix_diag_part(factor)), [-1])
        exponent = 0.5 * (self._df - self._size - 1.0) * logs - 0.5 * math_ops.reduce_sum(gen_ops.square(solved), [-2, -1])
        return exponent - self.log_normalization()

    def _log_det_scale(self) -> Tensor:
        return 2.0 * math_ops.reduce_sum(gen_ops.log(gen_ops.abs(self._diagonal)), [-1])

    def _multi_lgamma(self) -> Tensor:
        constant = 0.25 * self._size * (self._size - 1.0) * math.log(math.pi)
        return constant + math_ops.reduce_sum(gen_ops.lgamma(self._each_df()), [-1])

    def _multi_digamma(self) -> Tensor:
        return math_ops.reduce_sum(gen_ops.digamma(self._each_df()), [-1])

    def log_normalization(self, name: str = "log_normalization") -> Tensor:
        """What the logarithm of the density is less by."""
        with name_scope(name):
            return 0.5 * self._df * (self._log_det_scale() + self._size * math.log(2.0)) + self._multi_lgamma()

    def mean_log_det(self, name: str = "mean_log_det") -> Tensor:
        """The mean of the logarithm of the determinant."""
        with name_scope(name):
            return self._multi_digamma() + self._size * math.log(2.0) + self._log_det_scale()

    def _entropy(self) -> Tensor:
        half = 0.5 * (self._size + 1.0)
        return (
            half * (self._log_det_scale() + self._size * math.log(2.0))
            + self._multi_lgamma()
            + (half - 0.5 * self._df) * self._multi_digamma()
            + (0.5 * self._df * self._size)
        )

    def _times(self, count: Tensor) -> Tensor:
        return count[..., None, None] * self._square(self._tril)

    def _mean(self) -> Tensor:
        if self._factors:
            return gen_ops.sqrt(self._wide_df())[..., None, None] * self._tril
        return self._times(self._wide_df())

    def _variance(self) -> Tensor:
        square = self._square(self._tril)
        diagonal = gen_ops.matrix_diag_part(square)
        spread = self._wide_df()[..., None, None] * (gen_ops.square(square) + diagonal[..., :, None] * diagonal[..., None, :])
        return self._factored(spread)

    def _stddev(self) -> Tensor:
        if self._factors:
            raise at_user_line(ValueError("Computing std. dev. when is cholesky_input_output_matrices=True does not make sense."))
        return gen_ops.cholesky(self._variance())  # as 1.15: a factor, not the root of each element

    def _mode(self) -> Tensor:
        count = self._wide_df() - self._size - 1.0
        nan = array_ops.zeros_like(count) / array_ops.zeros_like(count)
        return self._factored(self._times(array_ops.where(gen_ops.less(count, 0.0), nan, count)))


def _check_floating(scale: Any) -> None:
    kind = getattr(scale, "dtype", None)
    if kind is not None and not dtypes.as_dtype(kind).base_dtype.is_floating:
        raise at_user_line(TypeError("the scale of a Wishart distribution must have a floating-point type, got %s" % dtypes.as_dtype(kind).name))


def _assert_positive(matrix: Tensor) -> Any:
    return check_ops.assert_positive(gen_ops.matrix_diag_part(matrix), message="scale must be positive definite")


def _assert_square(matrix: Tensor) -> Any:
    return check_ops.assert_equal(array_ops.shape(matrix)[-2], array_ops.shape(matrix)[-1], message="scale must be square")


class WishartFull(WishartCholesky):
    """WishartCholesky of the scale itself, a positive definite matrix."""

    def __init__(
        self,
        df: Any,
        scale: Any,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartFull",
    ) -> None:
        _check_floating(scale)
        df, scale = float_parameters(df, scale)
        scale = checked(scale, validate_args, lambda s: check_ops.assert_equal(s, array_ops.matrix_transpose(s), message="scale must be symmetric"))
        super().__init__(df, gen_ops.cholesky(scale), cholesky_input_output_matrices, validate_args, allow_nan_stats, name)
