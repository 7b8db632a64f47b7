# SPDX-License-Identifier: Apache-2.0
"""Densities of normal and Cauchy distributions, and covariance matrices made of numbers that an optimizer may move freely."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from millrace.contrib.layers import fully_connected
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, band_ops, gen_ops, math_ops, nn_ops
from millrace.ops.init_ops import zeros_initializer
from millrace.ops.matrix_ops import eye, matmul
from millrace.ops.variable_scope import get_variable


def normal_log_prob(loc: Any, scale: Any, x: Any) -> Tensor:
    """The log density of normal distributions as models of series reckon with it: of (x - loc) / scale, with log(scale) for log(scale^2)."""
    return -0.5 * (gen_ops.square((x - loc) / scale) + np.log(2.0 * np.pi) + gen_ops.log(scale))


def cauchy_log_prob(loc: Any, scale: Any, x: Any) -> Tensor:
    """The log density of Cauchy distributions."""
    return -np.log(np.pi) - gen_ops.log(scale) - gen_ops.log1p(gen_ops.square((x - loc) / scale))


def mvn_tril_log_prob(loc: Any, scale_tril: Any, x: Any) -> Tensor:
    """The log density [...] of multivariate normal distributions at x [..., n], scale_tril [..., n, n] being the Cholesky factors of covariances."""
    z = gen_ops.matrix_triangular_solve(scale_tril, (x - loc)[..., None])[..., 0]
    log_determinant = 2.0 * math_ops.reduce_sum(gen_ops.log(band_ops.matrix_diag_part(scale_tril)), axis=-1)
    size = math_ops.cast(array_ops.shape(scale_tril)[-1], log_determinant.dtype)
    return -0.5 * (math_ops.reduce_sum(gen_ops.square(z), axis=-1) + size * np.log(2.0 * np.pi) + log_determinant)


def entropy_matched_cauchy_scale(covariance: Any) -> Tensor:
    """The scales [..., n] of the Cauchy distributions whose entropies are those of normal ones with the variances of a covariance [..., n, n]."""
    return gen_ops.sqrt(math.e / (8.0 * math.pi) * band_ops.matrix_diag_part(covariance))


def clip_covariance(covariance_matrix: Any, maximum_variance_ratio: Any, minimum_variance: Any) -> Tensor:
    """Covariances [..., n, n] whose variances are raised to the largest of them divided by maximum_variance_ratio, and to minimum_variance."""
    variances = band_ops.matrix_diag_part(covariance_matrix)
    largest = math_ops.reduce_max(variances, axis=-1, keepdims=True)
    raised = math_ops.maximum(math_ops.maximum(variances, largest / maximum_variance_ratio), minimum_variance)
    return band_ops.matrix_set_diag(covariance_matrix, raised)


def sign_magnitude_positive_definite(raw: Any, off_diagonal_scale: Any = 0.0, overall_scale: Any = 0.0) -> Tensor:
    """A positive definite matrix C^T C [..., n, n] of any numbers `raw` [..., n, n], smooth in them and on a scale of logarithms.

    On the diagonal C is exp((raw + overall_scale) / 2). Above it the magnitude is the same of raw[i, j], with off_diagonal_scale added, and the
    sign is the softsign of raw[j, i]. Below it C is zero. The scales are numbers, or [...].
    """
    raw = convert_to_tensor(raw)

    def beside(scale: Any, like: Tensor) -> Tensor:
        """The scale with dimensions of 1 behind, so that it has the rank of another tensor."""
        scale = convert_to_tensor(scale, raw.dtype.base_dtype)
        ones = array_ops.ones([array_ops.rank(like) - array_ops.rank(scale)], array_ops.rank(like).dtype)
        return array_ops.reshape(scale, array_ops.concat([array_ops.shape(scale), ones], 0))

    variances = band_ops.matrix_diag_part(raw)
    magnitudes = gen_ops.exp((raw + beside(off_diagonal_scale, raw) + beside(overall_scale, raw)) / 2.0)
    factor = magnitudes * nn_ops.softsign(array_ops.matrix_transpose(raw))
    factor.set_shape(raw.get_shape())
    diagonal = gen_ops.exp((variances + beside(overall_scale, variances)) / 2.0)
    factor = band_ops.matrix_set_diag(gen_ops.matrix_band_part(factor, 0, -1), diagonal)
    return matmul(factor, factor, transpose_a=True)


def transform_to_covariance_matrices(input_vectors: Any, matrix_size: int) -> Tensor:
    """Covariances [..., matrix_size, matrix_size] of vectors [..., n], by a linear layer whose weights are trained."""
    made = fully_connected(input_vectors, matrix_size**2 + 2, activation_fn=None)
    raw = array_ops.reshape(made[..., :-2], array_ops.concat([array_ops.shape(made)[:-1], [matrix_size, matrix_size]], 0))
    return sign_magnitude_positive_definite(raw, made[..., -2], made[..., -1])


def variable_covariance_matrix(size: int, name: str, dtype: Any, initial_diagonal_values: Any = None, initial_overall_scale_log: Any = 0.0) -> Tensor:
    """A covariance [size, size] of variables that are trained, called `name`: its variances begin as initial_diagonal_values (or ones), all of it
    times exp(initial_overall_scale_log)."""
    raw = get_variable(name + "_pre_transform", [size, size], dtype, zeros_initializer())
    if initial_diagonal_values is not None:
        raw += band_ops.matrix_diag(gen_ops.log(initial_diagonal_values))
    off_diagonal = get_variable(name + "_off_diagonal_scale", dtype=dtype, initializer=constant(-5.0, dtype))
    overall = get_variable(name + "_overall_scale", [], dtype, zeros_initializer())
    return array_ops.identity(sign_magnitude_positive_definite(raw, off_diagonal, convert_to_tensor(initial_overall_scale_log, dtype) + overall), name=name)


def log_noninformative_covariance_prior(covariance: Any) -> Tensor:
    """The log of Jeffreys' prior of a covariance [n, n] but for a constant: -(n + 1) / 2 log of its determinant, 1e-8 added to its variances."""
    size = array_ops.shape(covariance)[0]
    raised = covariance + 1e-8 * eye(size, dtype=covariance.dtype)
    return -(math_ops.cast(size + 1, covariance.dtype) / 2.0) * gen_ops.log(gen_ops.matrix_determinant(raised))
