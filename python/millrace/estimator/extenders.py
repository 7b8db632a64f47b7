# SPDX-License-Identifier: Apache-2.0
"""Estimators with more than they were made with."""

from __future__ import annotations

from typing import Any, Callable

from millrace.estimator.estimator import Estimator
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.estimator.util import fn_args
from millrace.framework.errors import at_user_line

_METRIC_FN_ARGUMENTS = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Any]) -> Estimator:
    """An estimator that evaluates more: metric_fn takes any of features, labels, predictions and config, and answers {name: metric}. It has the
    folder of the one given."""
    wanted = fn_args(metric_fn)
    unknown = sorted(set(wanted) - {*_METRIC_FN_ARGUMENTS, "self"})
    if unknown:
        raise at_user_line(ValueError("metric_fn (%s) has following not expected args: %s" % (metric_fn, unknown)))

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **metric_fn(**{key: given[key] for key in wanted if key in given})})

    return Estimator(model_fn, estimator.model_dir, estimator.config)
