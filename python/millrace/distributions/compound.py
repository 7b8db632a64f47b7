# SPDX-License-Identifier: Apache-2.0
"""Counts whose logarithm of the rate is itself drawn, approximated by a mixture of a few rates."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np

from millrace.distributions.discrete import Categorical, Poisson
from millrace.distributions.distribution import float_parameters, joined
from millrace.distributions.of_others import MixtureSameFamily
from millrace.distributions.special_math import ndtri
from millrace.distributions.util import gen_new_seed
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.random_seed import op_seeds
from millrace.ops import array_ops, gen_ops, math_ops


def quadrature_scheme_lognormal_gauss_hermite(
    loc: Any, scale: Any, quadrature_size: int, validate_args: bool = False, name: Optional[str] = None
) -> Tuple[Tensor, Tensor]:
    """(points, their weights) of Gauss and Hermite for a normal variable: loc and scale are those of the logarithm."""
    del validate_args  # nothing of the arguments can be checked
    with name_scope(name, "quadrature_scheme_lognormal_gauss_hermite", [loc, scale]):
        loc, scale = float_parameters(loc, scale)
        points, weights = np.polynomial.hermite.hermgauss(quadrature_size)
        at = np.sqrt(2.0) * points
        grid = array_ops.expand_dims(loc, -1) + array_ops.expand_dims(scale, -1) * convert_to_tensor(at, loc.dtype.base_dtype)
        return grid, convert_to_tensor(weights / weights.sum(), loc.dtype.base_dtype)


def quadrature_scheme_lognormal_quantiles(
    loc: Any, scale: Any, quadrature_size: int, validate_args: bool = False, name: Optional[str] = None
) -> Tuple[Tensor, Tensor]:
    """(points, their equal weights): the middles between quantiles of a log-normal variable, of which the outermost are left out."""
    del validate_args  # nothing of the arguments can be checked
    with name_scope(name, "quadrature_scheme_lognormal_quantiles", [loc, scale]):
        loc, scale = float_parameters(loc, scale)
        edges = convert_to_tensor(np.linspace(0.0, 1.0, quadrature_size + 3)[1:-1], loc.dtype.base_dtype)
        quantiles = gen_ops.exp(array_ops.expand_dims(loc, -1) + array_ops.expand_dims(scale, -1) * ndtri(edges))
        grid = (quantiles[..., :-1] + quantiles[..., 1:]) / 2.0
        return grid, convert_to_tensor(np.full(quadrature_size, 1.0 / quadrature_size), loc.dtype.base_dtype)


class PoissonLogNormalQuadratureCompound(MixtureSameFamily):
    """A mixture of Poisson distributions; quadrature_fn says the logarithms of their rates, and how likely each is, from loc and scale."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        quadrature_size: int = 8,
        quadrature_fn: Callable[..., Any] = quadrature_scheme_lognormal_quantiles,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "PoissonLogNormalQuadratureCompound",
    ) -> None:
        with name_scope(name, values=[loc, scale]) as scope:
            self._loc, self._scale = float_parameters(loc, scale)
            self._quadrature_size = quadrature_size
            grid, probs = quadrature_fn(self._loc, self._scale, quadrature_size, validate_args)
            if grid.dtype.base_dtype != probs.dtype.base_dtype:
                raise at_user_line(TypeError("Quadrature grid dtype (%s) does not match quadrature probs dtype (%s)." % (grid.dtype.name, probs.dtype.name)))
            rates = Poisson(log_rate=grid, validate_args=validate_args, allow_nan_stats=allow_nan_stats)
            chosen = Categorical(logits=gen_ops.log(probs), validate_args=validate_args, allow_nan_stats=allow_nan_stats)
        super().__init__(chosen, rates, validate_args, allow_nan_stats, scope)

    def _sample_n(self, n: Any, seed: Optional[int] = None) -> Tensor:
        lead = joined(n, self.batch_shape_tensor()) if self._mixture.batch_shape.ndims == 0 else array_ops.reshape(n, [1])
        chosen = self._mixture.sample(lead, gen_new_seed(seed, "poisson_lognormal_quadrature_compound"))
        one = array_ops.one_hot(chosen, self._quadrature_size, dtype=self.dtype)
        seed1, seed2 = op_seeds(seed)
        rates = math_ops.reduce_sum(one * self._components.rate, -1)
        return gen_ops.random_poisson_v2(array_ops.zeros([0], "int32"), rates, seed=seed1, seed2=seed2, dtype=self.dtype)

    distribution = property(lambda self: self.components_distribution, doc="The Poisson distributions.")
    loc = property(lambda self: self._loc, doc="Of the logarithm of the rate.")
    scale = property(lambda self: self._scale, doc="Of the logarithm of the rate.")
    quadrature_size = property(lambda self: self._quadrature_size, doc="How many rates are mixed.")
