# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.metrics.auc_using_histogram: an area under a curve of as many scores as come, by counts in bins."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, control_dependencies
from millrace.ops import array_ops, check_ops, gen_ops, init_ops, math_ops
from millrace.ops.confusion_matrix import remove_squeezable_dimensions
from millrace.ops.control_flow_ops import group
from millrace.ops.derived_ops import histogram_fixed_width
from millrace.ops.variable_scope import get_variable, variable_scope


def _strict_1d_cumsum(tensor: Any, len_tensor: int) -> Any:
    """The sums of the first 1, 2, ... numbers of a vector of that length."""
    return math_ops.cumsum(array_ops.reshape(tensor, [len_tensor]))


def auc_using_histogram(
    boolean_labels: Any, scores: Any, score_range: Any, nbins: int = 100, collections: Any = None, check_shape: bool = True, name: Optional[str] = None
) -> Tuple[Tensor, Operation]:
    """(the area under the curve of false against true positives of all scores so far, what adds these): scores count in nbins bins of a range,
    and those of one bin as alike."""
    with variable_scope(name, "auc_using_histogram", [boolean_labels, scores, score_range]):
        scores, labels = remove_squeezable_dimensions(convert_to_tensor(scores), convert_to_tensor(boolean_labels))
        if labels.dtype.base_dtype != dtypes.bool:
            raise at_user_line(ValueError("Argument boolean_labels should have dtype bool.  Found: %s" % labels.dtype))
        if check_shape:
            ranks = [check_ops.assert_rank(value, 1, message="boolean_labels and scores should have rank 1.") for value in (labels, scores)]
            with control_dependencies(ranks):
                labels, scores = array_ops.identity(labels), array_ops.identity(scores)
        counts, updates = [], []
        for what, chosen in (("true", labels), ("false", gen_ops.logical_not(labels))):
            bins = histogram_fixed_width(array_ops.boolean_mask(scores, chosen), score_range, nbins, dtypes.int64, name="hist_" + what)
            count = get_variable(
                "hist_%s_acc" % what,
                [nbins],
                dtypes.int64,
                init_ops.zeros_initializer(),
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES] if collections is None else collections,
            )
            counts.append(count)
            updates.append(count.assign_add(bins))
        shares = [math_ops.cast(math_ops.truediv(count, math_ops.reduce_sum(count)), dtypes.float32) for count in counts]
        true, false = (array_ops.reverse(share, [0]) for share in shares)  # from the highest scores on
        height = _strict_1d_cumsum(true, nbins)
        return math_ops.reduce_sum(false * (height - true / 2.0), name="auc"), group(*updates, name="update_op")
