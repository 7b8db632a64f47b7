# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn: estimators, data sets and vocabularies."""

from typing import Any as _Any

from millrace import names as _names
from millrace.framework import not_provided as _not_provided
from millrace.contrib.learn import datasets, experiment, graph_actions, io, learn_runner, monitors, ops, preprocessing
from millrace.contrib.learn.canned import (
    DNNClassifier,
    DNNEstimator,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearEstimator,
    LinearRegressor,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
)
from millrace.contrib.learn.dataframe import (
    BooleanMask,
    DataFrame,
    Difference,
    HashFast,
    NumpySource,
    PandasSource,
    PredefinedSeries,
    ReaderSource,
    Series,
    Sum,
    TensorFlowDataFrame,
    TensorFlowTransform,
    Transform,
    TransformedSeries,
    parameter,
)
from millrace.contrib.learn.dynamic_rnn import DynamicRnnEstimator
from millrace.contrib.learn.estimators import BaseEstimator, Estimator, SKCompat
from millrace.contrib.learn.experiment import Experiment
from millrace.contrib.learn.first_estimators import (
    TensorFlowClassifier,
    TensorFlowDNNClassifier,
    TensorFlowDNNRegressor,
    TensorFlowLinearClassifier,
    TensorFlowLinearRegressor,
    TensorFlowRegressor,
    TensorFlowRNNClassifier,
    TensorFlowRNNRegressor,
)
from millrace.contrib.learn.graph_actions import evaluate, infer, run_feeds, run_n, train
from millrace.contrib.learn.contracts import Evaluable, Trainable
from millrace.contrib.learn.export_strategy import ExportStrategy
from millrace.contrib.learn.export_utils import make_export_strategy, utils
from millrace.contrib.learn.graph_io import (
    read_batch_examples,
    read_batch_features,
    read_batch_record_features,
    read_keyed_batch_examples,
    read_keyed_batch_examples_shared_queue,
    read_keyed_batch_features,
    read_keyed_batch_features_shared_queue,
)
from millrace.contrib.learn.io import InputFnOps, build_parsing_serving_input_fn
from millrace.contrib.learn.learn_io import extract_dask_data, extract_dask_labels, extract_pandas_data, extract_pandas_labels, extract_pandas_matrix
from millrace.contrib.learn.sklearn_like import NotFittedError
from millrace.train.hooks import NanLossDuringTrainingError
from millrace.contrib.learn.head import Head, loss_only_head, multi_head, no_op_train_fn, poisson_regression_head, regression_head
from millrace.contrib.learn.head_classes import binary_svm_head, multi_class_head, multi_label_head
from millrace.contrib.learn.keys import MetricKey, ModeKeys, PredictionKey, ProblemType, TaskType
from millrace.contrib.learn.logistic_regressor import LogisticRegressor
from millrace.contrib.learn.metric_spec import MetricSpec
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.contrib.learn.ops import models
from millrace.contrib.learn.rnn_common import PredictionType
from millrace.contrib.learn.run_config import Environment, RunConfig
from millrace.contrib.learn.sdca import SVM
from millrace.contrib.learn.tensor_flow_estimator import TensorFlowEstimator


def _later(name: str) -> _Any:
    if name == "python":  # the folder that TensorFlow's own modules lay in
        return _names.find("contrib.learn.python")
    if name == "KMeansClustering":
        from millrace.contrib.learn.clustering import KMeansClustering

        return KMeansClustering
    raise AttributeError("tf.contrib.learn.%s is not provided by Millrace" % name)


__getattr__ = _not_provided.getter("contrib.learn", _later)
globals().update(
    (_name, _names.find("contrib.learn." + _name)) for _name in ("estimators", "head", "preprocessing")
)  # what tf has there is more than these modules
