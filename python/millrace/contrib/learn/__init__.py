# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn: estimators, data sets and vocabularies."""

from typing import Any as _Any

from millrace.framework import not_provided as _not_provided
from millrace.contrib.learn import datasets, experiment, graph_actions, io, learn_runner, monitors, ops, preprocessing
from millrace.contrib.learn.canned import (
    DNNClassifier,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearRegressor,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
)
from millrace.contrib.learn.estimators import BaseEstimator, Estimator, ModelFnOps, SKCompat
from millrace.contrib.learn.experiment import Experiment
from millrace.contrib.learn.graph_actions import run_feeds, run_n
from millrace.contrib.learn.io import ExportStrategy, InputFnOps, make_export_strategy, read_batch_examples, read_batch_features, utils
from millrace.contrib.learn.metric_spec import MetricSpec, PredictionKey
from millrace.contrib.learn.ops import models
from millrace.contrib.learn.run_config import RunConfig
from millrace.contrib.learn.tensor_flow_estimator import TensorFlowEstimator
from millrace.framework import missing as _missing


class ModeKeys:
    """What a model is built for."""

    TRAIN, EVAL, INFER = "train", "eval", "infer"


class ProblemType:
    """What a model tells."""

    UNSPECIFIED, CLASSIFICATION, LINEAR_REGRESSION, LOGISTIC_REGRESSION = range(4)


class TaskType:
    """What a task of a cluster does."""

    MASTER, PS, WORKER = "master", "ps", "worker"


_missing.fill(
    globals(),
    "contrib.learn.",
    {
        n: "tf.estimator"
        for n in (
            "KMeansClustering",
            "DynamicRnnEstimator",
            "SVM",
            "LogisticRegressor",
            "DNNEstimator",
            "LinearEstimator",
            "DNNLinearCombinedEstimator",
            "multi_class_head",
            "regression_head",
        )
    },
)


def _later(name: str) -> _Any:
    if name == "python":  # the folder that TensorFlow's own modules lay in
        from millrace import names

        return names.find("contrib.learn.python")
    raise AttributeError("tf.contrib.learn.%s is not provided by Millrace" % name)


__getattr__ = _not_provided.getter("contrib.learn", _later)
