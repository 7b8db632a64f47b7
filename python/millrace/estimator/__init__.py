# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.estimator: models with their training loops, checkpoints and input functions."""
from millrace.estimator import export, inputs  # noqa: F401
from millrace.estimator.canned import (BaselineClassifier, BaselineEstimator, BaselineRegressor, DNNClassifier, DNNEstimator,  # noqa: F401
                                       DNNLinearCombinedClassifier, DNNLinearCombinedEstimator, DNNLinearCombinedRegressor, DNNRegressor,
                                       LinearClassifier, LinearEstimator, LinearRegressor)
from millrace.estimator.estimator import Estimator  # noqa: F401
from millrace.estimator.exporter import BestExporter, Exporter, FinalExporter, LatestExporter  # noqa: F401
from millrace.estimator.extenders import add_metrics  # noqa: F401
from millrace.estimator.parsing_utils import classifier_parse_example_spec, regressor_parse_example_spec  # noqa: F401
from millrace.estimator.run_config import RunConfig  # noqa: F401
from millrace.estimator.spec import EstimatorSpec, ModeKeys  # noqa: F401
from millrace.estimator.training import EvalSpec, TrainSpec, train_and_evaluate  # noqa: F401
from millrace.train.warm_starting import VocabInfo, WarmStartSettings  # noqa: F401
from millrace.framework import missing as _missing
from millrace.train.hooks import (CheckpointSaverHook, CheckpointSaverListener, FeedFnHook, FinalOpsHook, GlobalStepWaiterHook,  # noqa: F401
                                  LoggingTensorHook, NanLossDuringTrainingError, NanTensorHook, ProfilerHook, SecondOrStepTimer, SessionRunArgs,
                                  SessionRunContext, SessionRunHook, SessionRunValues, StepCounterHook, StopAtStepHook, SummarySaverHook)

_missing.fill(globals(), "estimator.", {
    **{name: "tf.contrib.estimator's heads" for name in ("Head", "BinaryClassHead", "MultiClassHead", "RegressionHead")},
    **{name: "tf.contrib.estimator's heads with a loss_fn" for name in ("MultiHead", "MultiLabelHead", "LogisticRegressionHead", "PoissonRegressionHead")},
    **{name: "DNNClassifier, DNNRegressor or another library's trees" for name in ("BoostedTreesClassifier", "BoostedTreesRegressor", "BoostedTreesEstimator")}})
