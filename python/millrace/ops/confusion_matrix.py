# SPDX-License-Identifier: Apache-2.0
"""How often each label got each prediction."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops


def _may_end_in_one(shape: Any) -> bool:
    return shape.ndims is None or (shape.ndims > 0 and shape.as_list()[-1] in (None, 1))


def remove_squeezable_dimensions(labels: Any, predictions: Any, expected_rank_diff: int = 0, name: Optional[str] = None) -> Any:
    """(labels, predictions), the one of them that has a rank too many without its last dimension, which is 1."""
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        ranks = predictions.get_shape().ndims, labels.get_shape().ndims
        if ranks[0] is not None and ranks[1] is not None:
            excess = ranks[0] - ranks[1] - expected_rank_diff
            return (array_ops.squeeze(labels, [-1]) if excess == -1 else labels), (array_ops.squeeze(predictions, [-1]) if excess == 1 else predictions)
        difference = array_ops.rank(predictions) - array_ops.rank(labels)

        def squeezed(x: Any, when: int) -> Any:
            if not _may_end_in_one(x.get_shape()):
                return x
            return control_flow_ops.cond(gen_ops.equal(when, difference), lambda: array_ops.squeeze(x, [-1]), lambda: array_ops.identity(x))

        return squeezed(labels, expected_rank_diff - 1), squeezed(predictions, expected_rank_diff + 1)


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None, dtype: Any = dtypes.int32, name: Optional[str] = None, weights: Any = None
) -> Tensor:
    """The matrix whose row is the label and whose column the prediction; both must be below num_classes (one more than the largest unless given)."""
    with name_scope(name, "confusion_matrix", [predictions, labels, num_classes, weights]) as scope:
        labels, predictions = remove_squeezable_dimensions(convert_to_tensor(labels, name="labels"), convert_to_tensor(predictions, name="predictions"))
        checked = []
        for value, what in ((math_ops.cast(labels, dtypes.int64), "labels"), (math_ops.cast(predictions, dtypes.int64), "predictions")):
            checks = [check_ops.assert_non_negative(value, message="`%s` contains negative values" % what)]
            if num_classes is not None:
                checks.append(check_ops.assert_less(value, math_ops.cast(num_classes, dtypes.int64), message="`%s` out of bound" % what))
            checked.append(control_flow_ops.with_dependencies(checks, value))
        labels, predictions = checked
        if num_classes is None:
            num_classes = gen_ops.maximum(math_ops.reduce_max(predictions), math_ops.reduce_max(labels)) + 1
        count = math_ops.cast(num_classes, dtypes.int64)
        if weights is not None:
            weights = convert_to_tensor(weights)
            predictions.get_shape().assert_is_compatible_with(weights.get_shape())
        values = array_ops.ones_like(predictions, dtype) if weights is None else math_ops.cast(weights, dtype)
        # In the order of TensorFlow's sparse sum: entries of the same place are added up.
        return gen_ops.scatter_nd(array_ops.stack([labels, predictions], 1), values, array_ops.stack([count, count]), name=scope)
