# SPDX-License-Identifier: Apache-2.0
"""What a model of a time series is: windows of values lead from a state to a loss, a later state and predictions."""

from __future__ import annotations

import abc
from typing import Any, Dict, NamedTuple, Optional

from millrace.contrib.timeseries.feature_keys import TrainEvalFeatures
from millrace.contrib.timeseries.state_tables import replicate_state
from millrace.feature_column.base import make_parse_example_spec
from millrace.feature_column.models import input_layer
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.ops import array_ops, gen_ops, math_ops, parsing_ops


class ModelOutputs(NamedTuple):
    """What a model makes of a batch of windows."""

    loss: Any  # a scalar, which training makes smaller
    end_state: Any  # the nested state behind the windows
    predictions: Any  # tensors by name, each [batch, predicted times, ...]
    prediction_times: Any  # the times that they are for, [batch, predicted times]


class TimeSeriesModel(abc.ABC):
    """The base of models. One may be built in several graphs, one after the other: initialize_graph begins anew in the default graph."""

    def __init__(self, num_features: int, exogenous_feature_columns: Any = None, dtype: Any = dtypes.float32) -> None:
        """Of a series of num_features numbers at each time. exogenous_feature_columns are columns of features that tell more and are not predicted."""
        self.num_features, self.dtype = num_features, dtype
        self._exogenous_feature_columns = exogenous_feature_columns or []
        self._input_statistics: Any = None
        self._graph_initialized = False
        self._stats_means: Any = None
        self._stats_sigmas: Any = None

    exogenous_feature_columns = property(lambda self: self._exogenous_feature_columns, doc="Columns of features that are not predicted.")

    def initialize_graph(self, input_statistics: Any = None) -> None:
        """Makes what the model needs in the default graph. InputStatistics say how it scales what it sees; without them it does not."""
        self._graph_initialized, self._input_statistics = True, input_statistics
        if input_statistics:
            self._stats_means, variances = input_statistics.overall_feature_moments
            self._stats_sigmas = gen_ops.sqrt(variances)

    def _check_graph_initialized(self) -> None:
        if not self._graph_initialized:
            raise at_user_line(
                ValueError("initialize_graph() of a TimeSeriesModel must be called before it is used: it makes the variables and operations of the graph.")
            )

    # ---- from the scale of inputs to that of the model, and back ----

    def _scale_data(self, data: Any) -> Any:
        return data if self._input_statistics is None else (data - self._stats_means) / self._stats_sigmas

    def _scale_variance(self, variance: Any) -> Any:
        return variance if self._input_statistics is None else variance / self._input_statistics.overall_feature_moments.variance

    def _scale_back_data(self, data: Any) -> Any:
        return data if self._input_statistics is None else data * self._stats_sigmas + self._stats_means

    def _scale_back_variance(self, variance: Any) -> Any:
        return variance if self._input_statistics is None else variance * self._input_statistics.overall_feature_moments.variance

    # ---- what models do ----

    def define_loss(self, features: Dict[str, Any], mode: str) -> ModelOutputs:
        """What the model makes of times [batch, window] and values [batch, window, features], each series beginning in the start state."""
        self._check_graph_initialized()
        batch_size = array_ops.shape(features[TrainEvalFeatures.TIMES])[0]
        return self.get_batch_loss(features, mode, replicate_state(self.get_start_state(), batch_size))

    @abc.abstractmethod
    def get_start_state(self) -> Any:
        """The nested state, of tensors without a batch, that series begin in."""

    @abc.abstractmethod
    def get_batch_loss(self, features: Any, mode: str, state: Any) -> ModelOutputs:
        """What the model makes of windows, from a state of tensors [batch, ...]."""

    @abc.abstractmethod
    def predict(self, features: Any) -> Dict[str, Any]:
        """Predictions by name, [batch, times, ...], for PredictionFeatures.TIMES [batch, times] from the state STATE_TUPLE."""

    def generate(self, number_of_series: int, series_length: int, model_parameters: Any = None, seed: Optional[int] = None) -> Dict[str, Any]:
        """Series that the model draws, as arrays: times [series, length] and values [series, length, features]."""
        raise NotImplementedError("%s cannot generate series: state space models can" % type(self).__name__)

    # ---- features that are not predicted ----

    def _get_exogenous_embedding_shape(self) -> Any:
        """The shape of what the columns make of one step."""
        if not self._exogenous_feature_columns:
            return (0,)
        with Graph().as_default():
            examples = array_ops.placeholder(dtypes.string, [None])
            parsed = parsing_ops.parse_example(examples, make_parse_example_spec(self._exogenous_feature_columns))
            return input_layer(parsed, self._exogenous_feature_columns).get_shape().as_list()[1:]

    def _process_exogenous_features(self, times: Any, features: Dict[str, Any]) -> Any:
        """What the columns make of features [batch, window, ...]: [batch, window, numbers], or None without columns."""
        if not self._exogenous_feature_columns:
            return None
        steps = {}
        for name, tensor in features.items():
            rank = tensor.get_shape().ndims
            if rank is None:
                raise at_user_line(ValueError("Features with unknown rank are not supported. Got shape %s for feature %s." % (tensor.get_shape(), name)))
            shape = array_ops.shape(tensor)
            flat = array_ops.reshape(tensor, array_ops.concat([[shape[0] * shape[1]], shape[2:]], 0))
            steps[name] = flat[:, None] if rank == 2 and tensor.dtype != dtypes.string else flat
        made = input_layer(steps, self._exogenous_feature_columns, trainable=True)
        regressors = array_ops.reshape(made, array_ops.concat([array_ops.shape(times), array_ops.shape(made)[1:]], 0))
        regressors.set_shape(times.get_shape().concatenate(made.get_shape()[1:]))
        return math_ops.cast(regressors, self.dtype)
