# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.estimator: models with their training loops, checkpoints and input functions."""
from millrace.estimator import export, inputs  # noqa: F401
from millrace.estimator.canned import (BaselineClassifier, BaselineEstimator, BaselineRegressor, DNNClassifier, DNNEstimator,  # noqa: F401
                                       DNNLinearCombinedClassifier, DNNLinearCombinedEstimator, DNNLinearCombinedRegressor, DNNRegressor,
                                       LinearClassifier, LinearEstimator, LinearRegressor)
from millrace.estimator.estimator import Estimator  # noqa: F401
from millrace.estimator.exporter import BestExporter, Exporter, FinalExporter, LatestExporter  # noqa: F401
from millrace.estimator.parsing_utils import classifier_parse_example_spec, regressor_parse_example_spec  # noqa: F401
from millrace.estimator.run_config import RunConfig  # noqa: F401
from millrace.estimator.spec import EstimatorSpec, ModeKeys  # noqa: F401
from millrace.estimator.training import EvalSpec, TrainSpec, train_and_evaluate  # noqa: F401
from millrace.train.warm_starting import VocabInfo, WarmStartSettings  # noqa: F401
