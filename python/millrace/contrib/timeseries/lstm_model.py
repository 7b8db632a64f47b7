# SPDX-License-Identifier: Apache-2.0
"""A series whose next values an LSTM predicts from those before, and a model to learn from how others are written."""

from __future__ import annotations

import functools
from typing import Any, Dict, Tuple

from millrace import layers
from millrace.contrib.timeseries.sequential_model import SequentialTimeSeriesModel
from millrace.framework import dtypes
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.rnn_cells import LSTMCell
from millrace.ops.template import make_template
from millrace.ops.variable_scope import variable_scope


class LSTMModel(SequentialTimeSeriesModel):
    """Predicts means by one LSTM, and learns by their squared errors on scaled values. The state: the time of the last step, what was seen or predicted
    then, the exogenous numbers for the next, and the cell's own. What is predicted goes in where nothing is observed."""

    def __init__(self, num_units: int, num_features: int, exogenous_feature_columns: Any = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(["mean"], ["mean"], num_features, dtype=dtype, exogenous_feature_columns=exogenous_feature_columns)
        self._num_units = num_units

    def initialize_graph(self, input_statistics: Any = None) -> None:
        """Makes the cell and the layer behind it, which all steps share."""
        super().initialize_graph(input_statistics=input_statistics)
        with variable_scope("", use_resource=True):
            self._cell = LSTMCell(self._num_units)
            self._run_cell = make_template("lstm_cell", self._cell, create_scope_now_=True)
            output = functools.partial(layers.dense, units=self.num_features)
            self._predicted = make_template("predict_from_lstm_output", output, create_scope_now_=True)

    def get_start_state(self) -> Any:
        """Zeros, at time 0."""
        cell = [array_ops.squeeze(part, [0]) for part in self._cell.zero_state(1, self.dtype)]
        values, exogenous = array_ops.zeros([self.num_features], self.dtype), array_ops.zeros(self._get_exogenous_embedding_shape(), self.dtype)
        return array_ops.zeros([], dtypes.int64), values, exogenous, cell

    def _filtering_step(self, current_times: Any, current_values: Any, state: Any, predictions: Dict[str, Any]) -> Tuple[Any, Dict[str, Any]]:
        """What was seen takes the place of what was predicted for these times."""
        predicted_for, predicted, exogenous, cell = state
        with control_dependencies([check_ops.assert_equal(current_times, predicted_for)]):
            seen = self._scale_data(current_values)
            loss = math_ops.reduce_mean(gen_ops.squared_difference(predicted, seen), axis=-1)
        return (current_times, seen, exogenous, cell), {**predictions, "loss": loss}

    def _prediction_step(self, current_times: Any, state: Any) -> Tuple[Any, Dict[str, Any]]:
        """One step of the cell."""
        _, last, exogenous, cell = state
        output, cell = self._run_cell(array_ops.concat([last, exogenous], -1), cell)
        predicted = self._predicted(output)
        return (current_times, predicted, exogenous, cell), {"mean": self._scale_back_data(predicted)}

    def _imputation_step(self, current_times: Any, state: Any) -> Any:
        """The state as it is: the cell does not see gaps."""
        del current_times  # of the next step
        return state

    def _exogenous_input_step(self, current_times: Any, current_exogenous_regressors: Any, state: Any) -> Any:
        """The state with these numbers for the next step."""
        del current_times  # of the next step
        time, values, _, cell = state
        return time, values, current_exogenous_regressors, cell
