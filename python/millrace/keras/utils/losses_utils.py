# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.keras.utils.losses_utils: how losses become one number."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.keras.metric_base import spread_weights
from millrace.ops import array_ops, gen_ops, math_ops


class ReductionV2:
    """How losses become one number; none leaves them as they are."""

    AUTO, NONE, SUM, SUM_OVER_BATCH_SIZE = "auto", "none", "sum", "sum_over_batch_size"

    @classmethod
    def all(cls) -> Tuple[str, ...]:
        """All ways."""
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key: Any) -> None:
        """ValueError for what is no way."""
        if key not in cls.all():
            raise at_user_line(ValueError("Invalid Reduction Key %s." % key))


def reduce_weighted_loss(weighted_losses: Any, reduction: str = ReductionV2.SUM_OVER_BATCH_SIZE) -> Any:
    """Losses as one number: 0 where there are none."""
    if reduction == ReductionV2.NONE:
        return weighted_losses
    total = math_ops.reduce_sum(weighted_losses)
    if reduction == ReductionV2.SUM:
        return total
    return gen_ops.div_no_nan(total, math_ops.cast(array_ops.size(weighted_losses), total.dtype.base_dtype), name="value")


def compute_weighted_loss(losses: Any, sample_weight: Any = None, reduction: str = ReductionV2.SUM_OVER_BATCH_SIZE, name: Optional[str] = None) -> Any:
    """Losses times weights, which have their shape or can be spread to it, as one number of the losses' type."""
    ReductionV2.validate(reduction)
    with name_scope(name or "weighted_loss"):
        losses = convert_to_tensor(losses)
        kind = losses.dtype.base_dtype
        if not kind.is_floating:
            losses = math_ops.cast(losses, dtypes.float32)
        if sample_weight is not None:
            losses = losses * spread_weights(sample_weight, losses)
        return math_ops.cast(reduce_weighted_loss(losses, reduction), kind)
