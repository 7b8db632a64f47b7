# SPDX-License-Identifier: Apache-2.0
"""Metrics of yes and no: how often each was said at thresholds, and what follows from it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies
from millrace.keras import backend as K
from millrace.layers.nodes import listed
from millrace.keras.metric_base import Metric, fitted, flat, spread_weights, value_of
from millrace.keras.utils.metrics_utils import AUCCurve, AUCSummationMethod, one_of
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, nn_ops
from millrace.ops.confusion_matrix import confusion_matrix

_LOWEST = -1e10  # below all predictions: what top_k leaves out
Thresholds = Union[None, float, Sequence[float]]


def _checked(thresholds: Thresholds, default: float) -> List[float]:
    if thresholds is None:
        return [default]
    given = listed(thresholds)
    wrong = [t for t in given if t is None or not 0 <= t <= 1]
    if wrong:
        raise at_user_line(ValueError("Threshold values must be in [0, 1]. Invalid values: %s" % wrong))
    return [float(t) for t in given]


def _largest(x: Tensor, k: int) -> Tensor:
    """The k largest of the last dimension; the others are very small."""
    classes = array_ops.shape(x)[-1]
    kept = math_ops.reduce_max(array_ops.one_hot(nn_ops.top_k(x, k, sorted=False)[1], classes, dtype=x.dtype.base_dtype), -2)
    return x * kept + _LOWEST * (1 - kept)


class _Counts(Metric):
    """Variables for some of the four counts, at thresholds."""

    def __init__(
        self, which: Sequence[str], thresholds: List[float], name: Optional[str], dtype: Any, top_k: Optional[int] = None, class_id: Optional[int] = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.top_k, self.class_id = top_k, class_id
        self._at, self._which = thresholds, list(which)
        for one in which:
            setattr(self, one, self.add_weight(one, (len(thresholds),)))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:
        """Counts a batch of predictions from 0 to 1."""
        y_true, y_pred, sample_weight = flat(y_true, y_pred, sample_weight)
        y_true, y_pred = fitted(y_true, y_pred, self.dtype)
        with control_dependencies(
            [
                check_ops.assert_greater_equal(y_pred, math_ops.cast(0, self.dtype), message="predictions must be >= 0"),
                check_ops.assert_less_equal(y_pred, math_ops.cast(1, self.dtype), message="predictions must be <= 1"),
            ]
        ):
            y_pred = array_ops.identity(y_pred)
        weights = None if sample_weight is None else spread_weights(sample_weight, y_pred)
        if self.top_k is not None:
            y_pred = _largest(y_pred, self.top_k)
        if self.class_id is not None:
            y_true, y_pred = y_true[..., self.class_id], y_pred[..., self.class_id]
            weights = None if weights is None else weights[..., self.class_id]
        said = array_ops.reshape(y_pred, [1, -1]) > array_ops.reshape(math_ops.cast(self._at, self.dtype), [-1, 1])
        right = array_ops.reshape(math_ops.cast(y_true, dtypes.bool), [1, -1])
        steps = []
        for one in self._which:
            kind, _, of = one.partition("_")
            as_said = said if of == "positives" else gen_ops.logical_not(said)
            as_is = right if (kind == "true") == (of == "positives") else gen_ops.logical_not(right)
            found = math_ops.cast(gen_ops.logical_and(as_said, as_is), self.dtype)
            if weights is not None:
                found = found * array_ops.reshape(weights, [1, -1])
            steps.append(getattr(self, one).assign_add(math_ops.reduce_sum(found, 1)).op)
        return control_flow_ops.group(*steps)

    def _count_of(self, one: str) -> Tensor:
        return value_of(getattr(self, one))

    def _share(self, one: str, other: str) -> Tensor:
        """How large a count is of itself and another."""
        return gen_ops.div_no_nan(self._count_of(one), self._count_of(one) + self._count_of(other))

    def _one_or_all(self, values: Tensor) -> Tensor:
        return values[0] if len(self._at) == 1 else values


class _Count(_Counts):
    _what = ""

    def __init__(self, thresholds: Thresholds = None, name: Optional[str] = None, dtype: Any = None) -> None:
        self.init_thresholds = thresholds
        super().__init__([self._what], _checked(thresholds, 0.5), name, dtype)
        self.thresholds, self.accumulator = self._at, getattr(self, self._what)

    def result(self) -> Tensor:
        """The count, or one for each threshold."""
        return self._one_or_all(self._count_of(self._what))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {"thresholds": self.init_thresholds, **super().get_config()}


class TruePositives(_Count):
    """How often yes was said and right."""

    _what = "true_positives"


class TrueNegatives(_Count):
    """How often no was said and right."""

    _what = "true_negatives"


class FalsePositives(_Count):
    """How often yes was said and wrong."""

    _what = "false_positives"


class FalseNegatives(_Count):
    """How often no was said and wrong."""

    _what = "false_negatives"


class _Share(_Counts):
    _beside = ""

    def __init__(
        self, thresholds: Thresholds = None, top_k: Optional[int] = None, class_id: Optional[int] = None, name: Optional[str] = None, dtype: Any = None
    ) -> None:
        self.init_thresholds = thresholds
        super().__init__(["true_positives", self._beside], _checked(thresholds, 0.5 if top_k is None else _LOWEST), name, dtype, top_k, class_id)
        self.thresholds = self._at

    def result(self) -> Tensor:
        """The share, or one for each threshold."""
        return self._one_or_all(self._share("true_positives", self._beside))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {"thresholds": self.init_thresholds, "top_k": self.top_k, "class_id": self.class_id, **super().get_config()}


class Precision(_Share):
    """How much of what was called yes is; of the top_k classes alone, or of one class, where they are given."""

    _beside = "false_positives"


class Recall(_Share):
    """How much of what is yes was called so; among the top_k classes alone, or of one class, where they are given."""

    _beside = "false_negatives"


_ALL = ("true_positives", "true_negatives", "false_positives", "false_negatives")


class _AtOther(_Counts):
    _measured = ""  # what the value is of

    def __init__(self, value: float, num_thresholds: int, name: Optional[str], dtype: Any) -> None:
        if not 0 <= value <= 1:
            raise at_user_line(ValueError("`%s` must be in the range [0, 1], got %s" % (self._measured, value)))
        if num_thresholds <= 0:
            raise at_user_line(ValueError("`num_thresholds` must be > 0."))
        self.value, self.num_thresholds = value, num_thresholds
        self.thresholds = [0.5] if num_thresholds == 1 else [0.0, *((i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)), 1.0]
        super().__init__(_ALL, self.thresholds, name, dtype)

    def _where(self, wanted: Tensor, other: Tensor) -> Tensor:
        """One rate at the threshold where the other comes nearest to the value."""
        return wanted[math_ops.cast(math_ops.argmin(math_ops.abs(other - self.value), 0), dtypes.int32)]


class SensitivityAtSpecificity(_AtOther):
    """How much of yes is called so, at the threshold where so much of no is called so."""

    _measured = "specificity"

    def __init__(self, specificity: float, num_thresholds: int = 200, name: Optional[str] = None, dtype: Any = None) -> None:
        super().__init__(specificity, num_thresholds, name, dtype)
        self.specificity = specificity

    def result(self) -> Tensor:
        """The sensitivity."""
        return self._where(self._share("true_positives", "false_negatives"), self._share("true_negatives", "false_positives"))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {"num_thresholds": self.num_thresholds, "specificity": self.specificity, **super().get_config()}


class SpecificityAtSensitivity(_AtOther):
    """How much of no is called so, at the threshold where so much of yes is called so."""

    _measured = "sensitivity"

    def __init__(self, sensitivity: float, num_thresholds: int = 200, name: Optional[str] = None, dtype: Any = None) -> None:
        super().__init__(sensitivity, num_thresholds, name, dtype)
        self.sensitivity = sensitivity

    def result(self) -> Tensor:
        """The specificity."""
        return self._where(self._share("true_negatives", "false_positives"), self._share("true_positives", "false_negatives"))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {"num_thresholds": self.num_thresholds, "sensitivity": self.sensitivity, **super().get_config()}


class AUC(_Counts):
    """The area under the curve of hits over false alarms (ROC), or of precision over recall (PR)."""

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: Any = "ROC",
        summation_method: Any = "interpolation",
        name: Optional[str] = None,
        dtype: Any = None,
        thresholds: Optional[Sequence[float]] = None,
    ) -> None:
        if thresholds is None and num_thresholds <= 1:
            raise at_user_line(ValueError("`num_thresholds` must be > 1."))
        inner = sorted(_checked(thresholds, 0)) if thresholds is not None else [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        self.curve, self.summation_method = one_of(AUCCurve, curve, "curve"), one_of(AUCSummationMethod, summation_method, "summation method")
        self.thresholds = [-K.epsilon(), *inner, 1 + K.epsilon()]
        self.num_thresholds = len(self.thresholds)
        super().__init__(_ALL, self.thresholds, name, dtype)

    def result(self) -> Tensor:
        """The area."""
        if self.curve is AUCCurve.PR and self.summation_method is AUCSummationMethod.INTERPOLATION:
            return self.interpolate_pr_auc()
        recall = self._share("true_positives", "false_negatives")
        if self.curve is AUCCurve.ROC:
            x, y = self._share("false_positives", "true_negatives"), recall
        else:
            x, y = recall, self._share("true_positives", "false_positives")
        left, right = y[:-1], y[1:]
        height = {
            AUCSummationMethod.INTERPOLATION: lambda: (left + right) / 2,
            AUCSummationMethod.MINORING: lambda: gen_ops.minimum(left, right),
            AUCSummationMethod.MAJORING: lambda: gen_ops.maximum(left, right),
        }[self.summation_method]()
        return math_ops.reduce_sum((x[:-1] - x[1:]) * height)

    def interpolate_pr_auc(self) -> Tensor:
        """Davis and Goadrich 2006: between thresholds both kinds of positives grow in proportion, and precision is not a straight line."""
        hits, said = self._count_of("true_positives"), self._count_of("true_positives") + self._count_of("false_positives")
        more_hits, more_said = hits[:-1] - hits[1:], said[:-1] - said[1:]
        slope = gen_ops.div_no_nan(more_hits, gen_ops.maximum(more_said, 0.0))
        start = hits[1:] - slope * said[1:]
        both = gen_ops.logical_and(said[:-1] > 0, said[1:] > 0)
        ratio = array_ops.where(both, gen_ops.div_no_nan(said[:-1], said[1:]), array_ops.ones_like(start))
        area = slope * (more_hits + start * gen_ops.log(ratio))
        return math_ops.reduce_sum(gen_ops.div_no_nan(area, (hits + self._count_of("false_negatives"))[1:]))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {
            "num_thresholds": self.num_thresholds,
            "curve": self.curve.value,
            "summation_method": self.summation_method.value,
            "thresholds": self.thresholds[1:-1],
            **super().get_config(),
        }


class MeanIoU(Metric):
    """The mean over classes of what truth and prediction have in common, divided by what either has."""

    def __init__(self, num_classes: int, name: Optional[str] = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight("total_confusion_matrix", (num_classes, num_classes), dtype=dtypes.float64)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Operation:
        """Counts a batch of numbers of classes."""
        truth, said = (array_ops.reshape(math_ops.cast(y, dtypes.int64), [-1]) for y in (y_true, y_pred))
        weights = None if sample_weight is None else array_ops.reshape(math_ops.cast(sample_weight, dtypes.float64), [-1])
        return self.total_cm.assign_add(confusion_matrix(truth, said, self.num_classes, dtype=dtypes.float64, weights=weights)).op

    def result(self) -> Tensor:
        """The mean over the classes that turned up."""
        counts = value_of(self.total_cm)
        both = gen_ops.matrix_diag_part(counts)
        either = math_ops.reduce_sum(counts, 0) + math_ops.reduce_sum(counts, 1) - both
        seen = math_ops.reduce_sum(math_ops.cast(gen_ops.not_equal(either, 0.0), dtypes.float64))
        return math_ops.cast(gen_ops.div_no_nan(math_ops.reduce_sum(gen_ops.div_no_nan(both, either)), seen), self.dtype)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a metric."""
        return {"num_classes": self.num_classes, **super().get_config()}
