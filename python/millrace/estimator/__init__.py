# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.estimator: models with their training loops, checkpoints and input functions."""

from typing import Any as _Any

from millrace.estimator import experimental, export, inputs
from millrace.estimator.boosted_trees import BoostedTreesClassifier, BoostedTreesEstimator, BoostedTreesRegressor
from millrace.estimator.canned import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
    DNNClassifier,
    DNNEstimator,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearEstimator,
    LinearRegressor,
)
from millrace.estimator.estimator import Estimator
from millrace.estimator.exporter import BestExporter, Exporter, FinalExporter, LatestExporter
from millrace.estimator.extenders import add_metrics
from millrace.estimator.parsing_utils import classifier_parse_example_spec, regressor_parse_example_spec
from millrace.estimator.public_heads import (
    BinaryClassHead,
    Head,
    LogisticRegressionHead,
    MultiClassHead,
    MultiHead,
    MultiLabelHead,
    PoissonRegressionHead,
    RegressionHead,
)
from millrace.estimator.run_config import RunConfig
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.estimator.training import EvalSpec, TrainSpec, train_and_evaluate
from millrace.train.warm_starting import VocabInfo, WarmStartSettings
from millrace import names as _names
from millrace.framework import not_provided as _not_provided
from millrace.train.hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    ProfilerHook,
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
)


def _elsewhere(name: str) -> _Any:
    """What the table of names has below tf.estimator and this package does not."""
    if name.startswith("_"):
        raise AttributeError(name)
    return _names.find("estimator." + name)


__getattr__ = _not_provided.getter("estimator", _elsewhere)
