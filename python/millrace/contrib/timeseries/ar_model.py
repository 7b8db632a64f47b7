# SPDX-License-Identifier: Apache-2.0
"""Autoregressive models: the last values of a series, and where in its periods the times are, lead to the values that come next."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from millrace.contrib.timeseries.covariances import normal_log_prob
from millrace.contrib.timeseries.feature_keys import PredictionFeatures, TrainEvalFeatures
from millrace.contrib.timeseries.model import ModelOutputs, TimeSeriesModel
from millrace.contrib.timeseries.prediction_networks import FlatPredictionModel
from millrace.estimator.spec import ModeKeys
from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, block_ops, gen_ops, math_ops, nn_ops
from millrace.ops.check_ops import assert_equal, assert_greater_equal
from millrace.ops.control_flow_ops import while_loop
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import variable_scope

_KNOWN = (TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES, PredictionFeatures.STATE_TUPLE)


def _last(values: Tensor, count: Any) -> Tensor:
    """The last steps of values [batch, window, ...]; none of them where count is 0."""
    return values[:, array_ops.shape(values)[1] - count :]


class ARModel(TimeSeriesModel):
    """Looks at input_window_size steps and predicts the output_window_size that follow; with an input_window_size of 0 by their times alone.

    Each of `periodicities` is cut into num_time_buckets parts, each of which is a feature: how far into that part a time is, between 0 and 1 where
    it is in it, otherwise 0. What is between windows and predictions prediction_model_factory makes, called with num_features, input_window_size and
    output_window_size (prediction_networks.py has two). Its state is what it looks at: the last times, values and exogenous numbers.
    """

    SQUARED_LOSS = "squared_loss"
    NORMAL_LIKELIHOOD_LOSS = "normal_likelihood_loss"

    def __init__(
        self,
        periodicities: Any,
        input_window_size: int,
        output_window_size: int,
        num_features: int,
        prediction_model_factory: Any = FlatPredictionModel,
        num_time_buckets: int = 10,
        loss: str = NORMAL_LIKELIHOOD_LOSS,
        exogenous_feature_columns: Any = None,
    ) -> None:
        """`periodicities` is a length of a period in units of time, or several. SQUARED_LOSS trains no variances, which are then 1; evaluations reckon
        it of values as they are, trainings of scaled ones."""
        self._model_factory, self.loss = prediction_model_factory, loss
        self.input_window_size, self.output_window_size, self.window_size = input_window_size, output_window_size, input_window_size + output_window_size
        super().__init__(num_features, exogenous_feature_columns)
        self.exogenous_size = 0 if exogenous_feature_columns is None else self._get_exogenous_embedding_shape()[-1]
        self._buckets = int(num_time_buckets)
        listed = periodicities if isinstance(periodicities, (list, tuple)) else [periodicities] if periodicities else []
        self._periodicities = [int(period) for period in listed]
        if self._buckets <= 0 or output_window_size <= 0 or any(period <= 0 for period in self._periodicities):
            raise at_user_line(ValueError("num_time_buckets, output_window_size and periodicities of an ARModel must be above 0."))
        if not self._periodicities and not input_window_size:
            raise at_user_line(ValueError("An ARModel without periodicities needs an input_window_size above 0."))
        if loss not in (self.SQUARED_LOSS, self.NORMAL_LIKELIHOOD_LOSS):
            raise at_user_line(ValueError("loss of an ARModel must be ARModel.SQUARED_LOSS or ARModel.NORMAL_LIKELIHOOD_LOSS, got %r." % (loss,)))

    def initialize_graph(self, input_statistics: Any = None) -> None:
        """Makes the network. Its variables are named alike inside and outside of loops."""
        super().initialize_graph(input_statistics)
        self._model_scope = variable_scope("model/", use_resource=True)
        self._model_instance = self._model_factory(
            num_features=self.num_features, input_window_size=self.input_window_size, output_window_size=self.output_window_size
        )

    def get_start_state(self) -> Tuple[Tensor, Tensor, Tensor]:
        """Times, values and exogenous numbers of an input window, all zero: evaluations need a whole window, behind which nothing of this is left."""
        size = self.input_window_size
        return (
            array_ops.zeros([size], dtypes.int64),
            array_ops.zeros([size, self.num_features], self.dtype),
            array_ops.zeros([size, self.exogenous_size], self.dtype),
        )

    # ---- one window ----

    def prediction_ops(self, times: Any, values: Any, exogenous_regressors: Any) -> Dict[str, Tensor]:
        """ "mean" and "covariance" [batch, output_window_size, num_features] for times [batch, window_size], of scaled values [batch, input_window_size,
        num_features] (or None, where that is 0) and exogenous numbers [batch, window_size, exogenous_size]."""
        times.get_shape().assert_is_compatible_with([None, self.window_size])
        parts = [self._time_features(times)] if self._periodicities else []
        widths = [self._buckets * len(self._periodicities)] if self._periodicities else []
        if self.exogenous_size:
            exogenous_regressors.get_shape().assert_is_compatible_with([None, self.window_size, self.exogenous_size])
            parts.append(exogenous_regressors)
            widths.append(self.exogenous_size)
        before, after = [part[:, : self.input_window_size] for part in parts], [part[:, self.input_window_size :] for part in parts]
        if self.input_window_size:
            values.get_shape().assert_is_compatible_with([None, self.input_window_size, self.num_features])
            before.insert(1 if self._periodicities else 0, values)
        batch_size, known = array_ops.shape(times)[0], times.get_shape()[0]
        seen = array_ops.concat(before, 2)
        told = array_ops.concat(after, 2) if after else array_ops.zeros([batch_size, self.output_window_size, 0], self.dtype)
        seen.set_shape([known, self.input_window_size, sum(widths) + (self.num_features if self.input_window_size else 0)])
        told.set_shape([known, self.output_window_size, sum(widths)])
        with self._model_scope:
            predictions = self._model_instance(seen, told)
        for prediction in predictions.values():
            prediction.set_shape([None, self.output_window_size, self.num_features])
        return predictions

    def _time_features(self, times: Any) -> Tensor:
        """How far into each part of each period times [batch, window] are: [batch, window, periods * parts]."""
        periods = constant(self._periodicities, times.dtype)[:, None]
        parts = math_ops.cast(times[..., None, None] % periods, self.dtype) * self._buckets / math_ops.cast(periods, self.dtype)
        into = nn_ops.relu(parts - math_ops.range(self._buckets, dtype=self.dtype))
        into = block_ops.where_v2(into < 1.0, into, array_ops.zeros_like(into))
        shape = array_ops.concat([array_ops.shape(times), [self._buckets * len(self._periodicities)]], 0)
        return array_ops.reshape(into, shape)

    def loss_op(self, targets: Any, prediction_ops: Dict[str, Any]) -> Tensor:
        """The mean loss of predictions for each of the targets [batch, output_window_size, num_features]."""
        if self.loss == self.SQUARED_LOSS:
            losses = gen_ops.squared_difference(prediction_ops["mean"], targets)
        else:
            losses = -normal_log_prob(targets, self._sigma(prediction_ops["covariance"]), prediction_ops["mean"])
        return self._mean_loss(losses, targets)

    @staticmethod
    def _sigma(variance: Any) -> Tensor:
        return gen_ops.sqrt(math_ops.maximum(variance, 1e-5))

    @staticmethod
    def _mean_loss(losses: Any, targets: Any) -> Tensor:
        return math_ops.reduce_sum(losses) / math_ops.cast(math_ops.reduce_prod(array_ops.shape(targets)), losses.dtype)

    def _process_window(self, features: Dict[str, Any], mode: str, exogenous_regressors: Any) -> ModelOutputs:
        """The loss and predictions of one window [batch, window_size]."""
        times = math_ops.cast(features[TrainEvalFeatures.TIMES], dtypes.int64)
        given = math_ops.cast(features[TrainEvalFeatures.VALUES], self.dtype)
        if not times.get_shape().is_compatible_with([None, self.window_size]):
            raise at_user_line(
                ValueError(
                    "ARModel with input_window_size={0} and output_window_size={1} expects feature '{2}' to have shape (batch_size, {3}) (for any "
                    "batch_size), but got shape {4}. If you are using RandomWindowInputFn, set window_size={3} or adjust the input_window_size and "
                    "output_window_size arguments to ARModel.".format(
                        self.input_window_size, self.output_window_size, TrainEvalFeatures.TIMES, self.window_size, times.get_shape()
                    )
                )
            )
        values = self._scale_data(given)
        made = self.prediction_ops(times, values[:, : self.input_window_size] if self.input_window_size else None, exogenous_regressors)
        targets = values[:, self.input_window_size :]
        targets.get_shape().assert_is_compatible_with(made["mean"].get_shape())
        mean = self._scale_back_data(made["mean"])
        unscaled = mode == ModeKeys.EVAL and self.loss == self.SQUARED_LOSS
        return ModelOutputs(
            self.loss_op(self._scale_back_data(targets), {"mean": mean}) if unscaled else self.loss_op(targets, made),
            tuple(_last(part, self.input_window_size) for part in (times, values, exogenous_regressors)),
            {"mean": mean, "covariance": self._scale_back_variance(made["covariance"]), "observed": given[:, -self.output_window_size :]},
            times[:, -self.output_window_size :],
        )

    # ---- windows one after the other ----

    def _regressors(self, times: Any, features: Dict[str, Any]) -> Tensor:
        """The exogenous numbers [batch, window, exogenous_size]."""
        own = self._process_exogenous_features(times, {name: value for name, value in features.items() if name not in _KNOWN})
        return array_ops.zeros(array_ops.concat([array_ops.shape(times), [0]], 0), self.dtype) if own is None else own

    def get_batch_loss(self, features: Any, mode: str, state: Any) -> ModelOutputs:
        """Trains on one window [batch, window_size]; evaluates on as many output windows, one behind the other, as fit at the end of a longer one."""
        features = {name: convert_to_tensor(value) for name, value in features.items()}
        regressors = self._regressors(features[TrainEvalFeatures.TIMES], features)
        if mode == ModeKeys.TRAIN:
            return self._process_window(features, mode, regressors)
        if mode != ModeKeys.EVAL:
            raise at_user_line(ValueError("Unknown mode '%s' passed to get_batch_loss." % mode))
        return self._evaluate(features, regressors, state)

    def _evaluate(self, features: Dict[str, Any], regressors: Any, state: Any) -> ModelOutputs:
        times = features[TrainEvalFeatures.TIMES]
        times.get_shape().assert_has_rank(2)
        known = times.get_shape()[1].value
        if known is not None and known < self.window_size:
            raise at_user_line(
                ValueError(
                    "ARModel requires a window of at least input_window_size + output_window_size to evaluate on (input_window_size=%d, "
                    "output_window_size=%d, and got shape %s for feature '%s' (batch size, window size))."
                    % (self.input_window_size, self.output_window_size, times.get_shape(), TrainEvalFeatures.TIMES)
                )
            )
        count = (array_ops.shape(times)[1] - self.input_window_size) // self.output_window_size
        predicted = count * self.output_window_size
        cropped = {name: _last(value, predicted + self.input_window_size) for name, value in features.items()}
        cropped_regressors = _last(regressors, predicted + self.input_window_size)

        def window(number: Tensor, *arrays: TensorArray) -> Any:
            start = number * self.output_window_size
            part = {name: value[:, start : start + self.window_size] for name, value in cropped.items()}
            made = self._process_window(part, ModeKeys.EVAL, cropped_regressors[:, start : start + self.window_size])
            written = (made.loss, made.predictions["mean"], made.predictions["covariance"])
            return (number + 1, *(array.write(number, value) for array, value in zip(arrays, written)))

        arrays = [TensorArray(self.dtype, size=count) for _ in range(3)]
        _, losses, means, variances = while_loop(lambda number, *_: number < count, window, [constant(0), *arrays])
        values = math_ops.cast(features[TrainEvalFeatures.VALUES], self.dtype)
        seen = (math_ops.cast(times, dtypes.int64), self._scale_data(values), regressors)
        predictions = {"mean": self._in_a_row(means, times, predicted), "covariance": self._in_a_row(variances, times, predicted)}
        predictions["observed"] = _last(values, predicted)
        return ModelOutputs(math_ops.reduce_mean(losses.stack()), self._state_behind(state, seen), predictions, _last(times, predicted))

    def _in_a_row(self, windows: TensorArray, times: Tensor, length: Any) -> Tensor:
        """Windows of predictions one behind the other: [batch, length, num_features]."""
        return array_ops.reshape(array_ops.transpose(windows.stack(), [1, 0, 2, 3]), [array_ops.shape(times)[0], length, self.num_features])

    def _state_behind(self, state: Any, seen: Sequence[Tensor]) -> Tuple[Tensor, ...]:
        """The state behind what has been seen."""
        size = self.input_window_size
        made = []
        for before, now, shape in zip(state, seen, ([None, size], [None, size, self.num_features], [None, size, self.exogenous_size])):
            part = _last(array_ops.concat([before, now], 1), size)
            part.set_shape(shape)
            made.append(part)
        return tuple(made)

    def predict(self, features: Any) -> Dict[str, Tensor]:
        """ "mean" and "covariance" [batch, times, num_features] for the times behind a state, one output window after the other: what is predicted for
        one is what the next looks at."""
        if not self._graph_initialized:
            self.initialize_graph()
        wanted = math_ops.cast(convert_to_tensor(features[PredictionFeatures.TIMES]), dtypes.int32)
        regressors = self._regressors(wanted, features)
        batch_size, length = (array_ops.shape(wanted)[i] for i in (0, 1))
        with control_dependencies([assert_equal(length, array_ops.shape(regressors)[1])]):
            regressors = array_ops.identity(regressors)
        count = (length + self.output_window_size - 1) // self.output_window_size
        missing = count * self.output_window_size - length
        times, regressors = array_ops.pad(wanted, [[0, 0], [0, missing]]), array_ops.pad(regressors, [[0, 0], [0, missing], [0, 0]])
        values = array_ops.zeros([batch_size, 0, self.num_features], self.dtype)
        if self.input_window_size:
            before = self._checked_state(features[PredictionFeatures.STATE_TUPLE])
            times, values, regressors = array_ops.concat([before[0], times], 1), before[1], array_ops.concat([before[2], regressors], 1)
        values.set_shape([None, self.input_window_size, self.num_features])

        def window(number: Tensor, values: Tensor, *arrays: TensorArray) -> Any:
            start = number * self.output_window_size
            now, told = times[:, start : start + self.window_size], regressors[:, start : start + self.window_size]
            now.set_shape([None, self.window_size])
            told.set_shape([None, self.window_size, self.exogenous_size])
            made = self.prediction_ops(now, values, told)
            values = _last(array_ops.concat([values, made["mean"]], 1), self.input_window_size)
            values.set_shape([None, self.input_window_size, self.num_features])
            written: List[Tensor] = [made["mean"], made["covariance"]]
            return (number + 1, values, *(array.write(number, value) for array, value in zip(arrays, written)))

        arrays = [TensorArray(self.dtype, size=count) for _ in range(1 if self.loss == self.SQUARED_LOSS else 2)]
        _, _, *windows = while_loop(lambda number, *_: number < count, window, [constant(0), values, *arrays])
        mean, *variances = (self._in_a_row(part, wanted, count * self.output_window_size)[:, :length] for part in windows)
        variance = variances[0] if variances else array_ops.ones_like(mean)
        return {"mean": self._scale_back_data(mean), "covariance": self._scale_back_variance(variance)}

    def _checked_state(self, state: Any) -> Tuple[Tensor, Tensor, Tensor]:
        """The last times, values and exogenous numbers of a state, which may hold more than an input window, but not less."""
        size, (times, values, regressors) = self.input_window_size, state
        times, values = math_ops.cast(convert_to_tensor(times), dtypes.int32), convert_to_tensor(values, self.dtype)
        held = array_ops.shape(values)[1]
        with control_dependencies([assert_greater_equal(held, size), assert_equal(held, array_ops.shape(times)[1])]):
            return _last(times, size), _last(values, size), _last(convert_to_tensor(regressors, self.dtype), size)
