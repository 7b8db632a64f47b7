# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tensor_forest: random forests that grow with each batch, their settings and metrics, and forests of soft decisions before neural
networks (hybrid)."""

from __future__ import annotations

from millrace.contrib.tensor_forest.forest import ForestVariables, RandomForestGraphs, RandomTreeGraphs, TreeVariables, get_epoch_variable
from millrace.contrib.tensor_forest.metrics import get_metric, get_prediction_key
from millrace.contrib.tensor_forest.params import (
    CLASSIFICATION_LEAF_MODEL_TYPES,
    FINISH_TYPES,
    PRUNING_TYPES,
    REGRESSION_MODEL_TYPE,
    SPLIT_TYPES,
    ForestHParams,
    build_params_proto,
    parse_number_or_string_to_proto,
)
