# SPDX-License-Identifier: Apache-2.0
"""What lies between the windows of an ARModel and its predictions: models of Keras that are called with an input window [batch, input_window_size,
input features] and an output window [batch, output_window_size, output features], and give a mean and a variance for each value of the latter."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from millrace.contrib.rnn_block_cells import LSTMBlockFusedCell
from millrace.framework.graph import Tensor
from millrace.keras.models import Sequential
from millrace.keras.engine.training import Model
from millrace.layers.core import Dense, Flatten
from millrace.ops import array_ops, gen_ops, nn_ops


class FlatPredictionModel(Model):
    """Linear in all numbers of both windows, or with hidden layers between."""

    def __init__(self, num_features: int, input_window_size: int, output_window_size: int, hidden_layer_sizes: Optional[Sequence[int]] = None) -> None:
        super().__init__()
        del input_window_size  # the window that comes has it
        self._input_flatten, self._output_flatten = Flatten(), Flatten()
        self._hidden_layers = Sequential([Dense(size, activation=nn_ops.relu) for size in hidden_layer_sizes]) if hidden_layer_sizes else None
        self._mean_transform = Dense(num_features * output_window_size, name="predicted_mean")
        self._covariance_transform = Dense(num_features * output_window_size, name="log_sigma_square")
        self._prediction_shape = [-1, output_window_size, num_features]

    def call(self, input_window_features: Any, output_window_features: Any) -> Dict[str, Tensor]:  # type: ignore[override]
        """ "mean" and "covariance", the variances: [batch, output_window_size, num_features]."""
        if input_window_features.get_shape()[1].value == 0:
            activation = self._output_flatten(output_window_features)
        elif output_window_features.get_shape()[2].value == 0:
            activation = self._input_flatten(input_window_features)
        else:
            activation = array_ops.concat([self._input_flatten(input_window_features), self._output_flatten(output_window_features)], 1)
        if self._hidden_layers:
            activation = self._hidden_layers(activation)
        mean, log_variance = self._mean_transform(activation), self._covariance_transform(activation)
        return {"mean": array_ops.reshape(mean, self._prediction_shape), "covariance": array_ops.reshape(gen_ops.exp(log_variance), self._prediction_shape)}


class LSTMPredictionModel(Model):
    """An LSTM over the input window, from whose last state another goes over the output window."""

    def __init__(self, num_features: int, input_window_size: int, output_window_size: int, num_units: int = 128) -> None:
        super().__init__()
        del input_window_size, output_window_size  # the windows that come have them
        self._encoder, self._decoder = LSTMBlockFusedCell(num_units, name="encoder"), LSTMBlockFusedCell(num_units, name="decoder")
        self._mean_transform, self._covariance_transform = Dense(num_features, name="mean_transform"), Dense(num_features, name="covariance_transform")

    def call(self, input_window_features: Any, output_window_features: Any) -> Dict[str, Tensor]:  # type: ignore[override]
        """ "mean" and "covariance", the variances: [batch, output_window_size, num_features]."""
        dtype = input_window_features.dtype
        _, state = self._encoder(array_ops.transpose(input_window_features, [1, 0, 2]), dtype=dtype)
        steps, _ = self._decoder(array_ops.transpose(output_window_features, [1, 0, 2]), dtype=dtype, initial_state=state)
        steps = array_ops.transpose(steps, [1, 0, 2])
        return {"mean": self._mean_transform(steps), "covariance": gen_ops.exp(self._covariance_transform(steps))}
