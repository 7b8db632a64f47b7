# SPDX-License-Identifier: Apache-2.0
"""Vectors of Student's numbers, scaled and moved."""

from __future__ import annotations

import functools
import operator
from typing import Any

from millrace.distributions.basic_bijectors import Affine
from millrace.distributions.bijector import TransformedDistribution
from millrace.distributions.continuous import StudentT
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, gen_ops


class VectorStudentT(TransformedDistribution):
    """loc + scale z, where the numbers of the vectors z are independent and have Student's t distribution with df degrees of freedom.

    The density at x is |scale|^-1 times the product of those of the numbers of z = scale^-1 (x - loc): not that of the multivariate t
    distribution, whose numbers hang together. The scale is that of bijectors.Affine. df is one number, or one for each vector of the batch."""

    def __init__(
        self,
        df: Any,
        loc: Any = None,
        scale_identity_multiplier: Any = None,
        scale_diag: Any = None,
        scale_tril: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorStudentT",
    ) -> None:
        scale = (scale_identity_multiplier, scale_diag, scale_tril, scale_perturb_factor, scale_perturb_diag)
        with name_scope(name, values=[df, loc, *scale]) as scope:
            affine = Affine(loc, *scale, validate_args=validate_args)
            matrix = affine.scale
            vectors = [v for v in (affine.shift, affine._diagonal, None if matrix is None else gen_ops.matrix_diag_part(matrix)) if v is not None]
            if not vectors:
                raise at_user_line(ValueError("The length of the vectors is not known: give loc or a scale."))
            whole = functools.reduce(operator.add, vectors)
            dtype = whole.dtype.base_dtype
            numbers = StudentT(df, array_ops.zeros([], dtype), array_ops.ones([], dtype), validate_args, allow_nan_stats)
            shape = array_ops.shape(whole)
            batch = shape[:-1] if numbers.batch_shape.ndims == 0 else None
        super().__init__(numbers, affine, batch, shape[-1:], validate_args, scope)

    df = property(lambda self: self._distribution.df)
    loc = property(lambda self: self._bijector.shift)
    scale = property(lambda self: self._bijector.scale)
