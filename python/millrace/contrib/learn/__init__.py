# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn: estimators, data sets and vocabularies."""
from typing import Any as _Any

from millrace.contrib.learn import datasets, experiment, graph_actions, learn_runner, monitors, preprocessing
from millrace.contrib.learn.canned import (DNNClassifier, DNNLinearCombinedClassifier, DNNLinearCombinedRegressor, DNNRegressor,
                                           LinearClassifier, LinearRegressor, infer_real_valued_columns_from_input,
                                           infer_real_valued_columns_from_input_fn)
from millrace.contrib.learn.estimators import BaseEstimator, Estimator, ModelFnOps, SKCompat
from millrace.contrib.learn.experiment import Experiment
from millrace.contrib.learn.graph_actions import run_feeds, run_n
from millrace.contrib.learn.metric_spec import MetricSpec, PredictionKey
from millrace.contrib.learn.run_config import RunConfig
from millrace.framework import missing as _missing


class ModeKeys:
    """What a model is built for."""

    TRAIN, EVAL, INFER = "train", "eval", "infer"


_missing.fill(globals(), "contrib.learn.", {n: "tf.estimator" for n in (
    "KMeansClustering", "DynamicRnnEstimator", "SVM", "LogisticRegressor", "DNNEstimator", "LinearEstimator", "DNNLinearCombinedEstimator",
    "multi_class_head", "regression_head", "read_batch_features")})


def __getattr__(name: str) -> _Any:
    if name == "python":  # the folder that TensorFlow's own modules lay in
        from millrace import names
        return names.find("contrib.learn.python")
    raise AttributeError("tf.contrib.learn.%s is not provided by Millrace" % name)
