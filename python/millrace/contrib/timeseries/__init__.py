# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.timeseries: autoregressive and state space models of time series, and estimators that fit them."""

from millrace.contrib.timeseries import saved_model_utils
from millrace.contrib.timeseries.ar_model import ARModel
from millrace.contrib.timeseries.estimators import ARRegressor, TimeSeriesRegressor
from millrace.contrib.timeseries.feature_keys import FilteringResults, TrainEvalFeatures
from millrace.contrib.timeseries.head import OneShotPredictionHead
from millrace.contrib.timeseries.input_functions import RandomWindowInputFn, WholeDatasetInputFn, predict_continuation_input_fn
from millrace.contrib.timeseries.readers import CSVReader, NumpyReader
from millrace.contrib.timeseries.state_space.estimators import StructuralEnsembleRegressor
