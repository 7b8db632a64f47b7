# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tensor_forest: forests of soft decisions before neural networks (hybrid), the settings of forests, their metrics.

Forests that grow by themselves are not provided: tf.estimator.BoostedTreesClassifier grows trees."""

from __future__ import annotations

from millrace.contrib.tensor_forest.metrics import get_metric, get_prediction_key
from millrace.contrib.tensor_forest.params import ForestHParams
from millrace.framework import missing

_INSTEAD = "tf.estimator.BoostedTreesClassifier or BoostedTreesRegressor, which grow trees too"
missing.fill(
    globals(),
    "contrib.tensor_forest.",
    dict.fromkeys(
        (
            "ForestTrainingVariables",
            "MultiForestMultiHeadEstimator",
            "RandomForestGraphs",
            "RandomTreeGraphs",
            "TensorForestEstimator",
            "TensorForestLossHook",
            "TreeTrainingVariables",
        ),
        _INSTEAD,
    ),
)
