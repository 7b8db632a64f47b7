# SPDX-License-Identifier: Apache-2.0
"""The area under the ROC curve with bounds, of the placements of each class among the other (Pepe and Cai, 2004; Qin and Hotilovac, 2008)."""

from __future__ import annotations

import collections
from typing import Any, Optional, Tuple

from millrace.contrib.streaming_metrics import streaming_concat
from millrace.distributions.special_math import ndtri
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.metrics.parts import done, fitted
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.variable_scope import variable_scope

AucData = collections.namedtuple("AucData", ["auc", "lower", "upper"])
_TINY = 1e-7


def _placements(of: Tensor, among: Tensor, segments: Tensor) -> Tensor:
    """Which share of the weight `among` lies below each prediction, ties by half."""
    at = gen_ops.segment_sum(among, segments)
    below = math_ops.cumsum(at, exclusive=True) + at / 2.0
    return of * array_ops.gather(below / (math_ops.reduce_sum(at) + _TINY), segments)


def _auc(labels: Tensor, predictions: Tensor, weights: Tensor, alpha: float, logit: bool) -> AucData:
    values, order = nn_ops.top_k(-predictions, array_ops.size(predictions))
    _, segments = gen_ops.unique(values)
    true = math_ops.cast(array_ops.gather(labels, order), weights.dtype)
    false, weights = 1.0 - true, array_ops.gather(weights, order)
    of_true, of_false = math_ops.reduce_sum(true * weights), math_ops.reduce_sum(false * weights)
    placed_true, placed_false = _placements(true, false * weights, segments), _placements(false, true * weights, segments)
    auc_true = math_ops.reduce_sum(true * weights * placed_true) / (of_true + _TINY)
    auc_false = math_ops.reduce_sum(false * weights * (1.0 - placed_false)) / (of_false + _TINY)
    auc = array_ops.where(gen_ops.less(of_false, of_true), auc_true, auc_false)
    variance_true = math_ops.reduce_sum(true * weights * gen_ops.square(placed_true - auc_true)) / (of_true - 1.0 + _TINY)
    variance_false = math_ops.reduce_sum(false * weights * gen_ops.square(1.0 - placed_false - auc_false)) / (of_false - 1.0 + _TINY)
    error = gen_ops.sqrt(variance_false / (of_false + _TINY) + variance_true / (of_true + _TINY))
    reach = -ndtri(math_ops.cast((1.0 - alpha) / 2.0, weights.dtype))
    if logit:
        middle, reach = gen_ops.log(auc / (1.0 - auc + _TINY)), reach * error / (auc * (1.0 - auc + _TINY))
        bounds = [1.0 / (1.0 + gen_ops.exp(-end) + _TINY) for end in (middle - reach, middle + reach)]
    else:
        bounds = [auc - reach * error, auc + reach * error]
    sure = gen_ops.logical_or(gen_ops.equal(auc, 0.0), gen_ops.equal(auc, 1.0))
    known = gen_ops.logical_and(gen_ops.logical_and(gen_ops.greater(of_true, 0.0), gen_ops.greater(of_false, 0.0)), of_true + of_false >= 1.0)
    return AucData(*(array_ops.where(known, value, array_ops.zeros_like(auc)) for value in (auc, *(array_ops.where(sure, auc, end) for end in bounds))))


def auc_with_confidence_intervals(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    alpha: float = 0.95,
    logit_transformation: bool = True,
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: Optional[str] = None,
) -> Tuple[Any, Any]:
    """((area, lower and upper bound), update): the area under the ROC curve of all predictions, which it keeps, and the bounds of an interval that
    holds it with the probability alpha, by a logit transformation unless that is false.

    All are 0 while there are labels of one kind only, or weights of less than 1 in all. A batch with weights of less than 1 in all is left out.
    """
    if not 0 < alpha < 1:
        raise at_user_line(ValueError("alpha must be between 0 and 1; currently %.02f" % alpha))
    with variable_scope(name, "auc_with_confidence_intervals", [labels, predictions, weights]):
        predictions = convert_to_tensor(predictions)
        weights = array_ops.ones_like(predictions) if weights is None else weights
        predictions, labels, weights = fitted(predictions, convert_to_tensor(labels), weights)
        labels, predictions = math_ops.cast(labels, dtypes.int64), math_ops.cast(predictions, dtypes.float64)
        labels, predictions, weights = (array_ops.reshape(part, [-1]) for part in (labels, predictions, weights))
        checks = [
            check_ops.assert_greater_equal(labels, array_ops.zeros_like(labels), message="labels must be 0 or 1, at least one is <0"),
            check_ops.assert_less_equal(labels, array_ops.ones_like(labels), message="labels must be 0 or 1, at least one is >1"),
        ]
        with control_dependencies(checks):
            labels = array_ops.identity(labels)
        count = array_ops.where(math_ops.reduce_sum(weights) >= 1.0, array_ops.size(weights), 0)
        kept = [streaming_concat(part[:count], name="concat_" + what) for what, part in (("preds", predictions), ("labels", labels), ("weights", weights))]
        (all_predictions, _), (all_labels, _), (all_weights, _) = kept
        auc = _auc(all_labels, all_predictions, all_weights, alpha, logit_transformation)
        return done(auc, control_flow_ops.group(*(update for _, update in kept)), metrics_collections, updates_collections)
