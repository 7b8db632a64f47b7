# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.estimator: models with their training loops, checkpoints and input functions."""
from millrace.estimator import export, inputs  # noqa: F401
from millrace.estimator.canned import (DNNClassifier, DNNLinearCombinedClassifier, DNNLinearCombinedRegressor, DNNRegressor,  # noqa: F401
                                       LinearClassifier, LinearRegressor)
from millrace.estimator.estimator import Estimator  # noqa: F401
from millrace.estimator.run_config import RunConfig  # noqa: F401
from millrace.estimator.spec import EstimatorSpec, ModeKeys  # noqa: F401
from millrace.estimator.training import EvalSpec, TrainSpec, train_and_evaluate  # noqa: F401
