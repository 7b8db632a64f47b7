# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.regularizers: penalties of weights."""

from __future__ import annotations

import numbers
from typing import Any, Callable, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, add_to_collection, get_collection, name_scope
from millrace.ops import gen_ops, math_ops, nn_ops


def _checked(scale: Any) -> Any:
    """A scale that is a tensor, or a float of at least 0."""
    if isinstance(scale, numbers.Integral):
        raise at_user_line(ValueError("scale cannot be an integer: %s" % scale))
    if isinstance(scale, numbers.Real) and scale < 0.0:
        raise at_user_line(ValueError("Setting a scale less than 0 on a regularizer: %g." % scale))
    return scale


def _scaled(penalty: Callable[[Any], Any], scale: Any, scope: Optional[str], default: str) -> Callable[..., Any]:
    if isinstance(_checked(scale), numbers.Real) and scale == 0.0:
        return lambda _: None

    def regularizer(weights: Any, name: Optional[str] = None) -> Tensor:
        with name_scope(scope or name, default, [weights]) as inside:
            return gen_ops.mul(convert_to_tensor(scale, weights.dtype.base_dtype, "scale"), penalty(weights), name=inside)

    return regularizer


def l1_regularizer(scale: Any, scope: Optional[str] = None) -> Callable[..., Any]:
    """scale sum |w|."""
    return _scaled(lambda weights: math_ops.reduce_sum(math_ops.abs(weights)), scale, scope, "l1_regularizer")


def l2_regularizer(scale: Any, scope: Optional[str] = None) -> Callable[..., Any]:
    """scale / 2 sum w^2."""
    return _scaled(nn_ops.l2_loss, scale, scope, "l2_regularizer")


def l1_l2_regularizer(scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: Optional[str] = None) -> Any:
    """`l1_regularizer` and `l2_regularizer` together."""
    scope = scope or "l1_l2_regularizer"
    first, second = (isinstance(_checked(scale), numbers.Real) and scale == 0.0 for scale in (scale_l1, scale_l2))
    if first or second:
        return l2_regularizer(scale_l2, scope) if first else l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Any, scope: Optional[str] = None) -> Any:
    """The sum of several regularizers; None when there is none."""
    regularizers = [r for r in regularizer_list if r is not None]
    if not regularizers:
        return None

    def total(weights: Any) -> Any:
        with name_scope(scope, "sum_regularizer", [weights]) as inside:
            parts = [part for part in (r(weights) for r in regularizers) if part is not None]
            return gen_ops.add_n(parts, name=inside) if parts else None

    return total


def apply_regularization(regularizer: Any, weights_list: Any = None) -> Tensor:
    """The regularizer of all weights, summed; it is among the losses of regularization."""
    weights = weights_list or get_collection(GraphKeys.WEIGHTS)
    if not weights:
        raise at_user_line(ValueError("No weights to regularize."))
    with name_scope("get_regularization_penalty") as scope:
        penalties = [regularizer(w) for w in weights]
        penalties = [p if p is not None else convert_to_tensor(0.0) for p in penalties]
        for penalty in penalties:
            if penalty.get_shape().ndims != 0:
                raise at_user_line(ValueError("regularizer must return a scalar Tensor instead of a Tensor with rank %s." % penalty.get_shape().ndims))
        total = gen_ops.add_n(penalties, name=scope)
    add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total
