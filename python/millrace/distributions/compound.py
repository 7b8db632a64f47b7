# SPDX-License-Identifier: Apache-2.0
"""Counts whose logarithm of the rate is itself drawn, approximated by a mixture of a few rates."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np

from millrace.distributions.discrete import Categorical, Poisson
from millrace.distributions.distribution import float_parameters
from millrace.distributions.of_others import MixtureSameFamily
from millrace.distributions.special_math import ndtri
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops


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

    distribution = property(lambda self: self.components_distribution, doc="The Poisson distributions.")
    loc = property(lambda self: self._loc, doc="Of the logarithm of the rate.")
    scale = property(lambda self: self._scale, doc="Of the logarithm of the rate.")
    quadrature_size = property(lambda self: self._quadrature_size, doc="How many rates are mixed.")
