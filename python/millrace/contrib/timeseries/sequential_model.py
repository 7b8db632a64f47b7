# SPDX-License-Identifier: Apache-2.0
"""Models that go over a window step by step: each step is predicted from the state before it, and what is observed then makes the state behind it."""

from __future__ import annotations

import abc
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from millrace.contrib.timeseries.feature_keys import PredictionFeatures, TrainEvalFeatures
from millrace.contrib.timeseries.model import ModelOutputs, TimeSeriesModel
from millrace.framework import dtypes, nest
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, math_ops
from millrace.ops.control_flow_ops import while_loop
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import variable_scope

TIMES, VALUES = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES
_Step = Callable[..., Tuple[Any, Dict[str, Tensor]]]


def _without(features: Dict[str, Any], *names: str) -> Dict[str, Any]:
    return {name: value for name, value in features.items() if name not in names}


class SequentialTimeSeriesModel(TimeSeriesModel):
    """The base of such models. States are nested tensors [batch, ...]; what a step predicts is tensors [batch, ...] by name."""

    def __init__(
        self,
        train_output_names: Sequence[str],
        predict_output_names: Sequence[str],
        num_features: int,
        normalize_features: bool = False,
        dtype: Any = dtypes.float32,
        exogenous_feature_columns: Any = None,
        exogenous_update_condition: Any = None,
        static_unrolling_window_size_threshold: Optional[int] = None,
    ) -> None:
        """train_output_names are what _filtering_step gives beside "loss", predict_output_names what _prediction_step does. With normalize_features steps
        see scaled values, and _scale_back_predictions scales back what they give. exogenous_update_condition(times, features) says for [batch] times
        which states exogenous features change (all, where there is none). Windows of up to static_unrolling_window_size_threshold steps are laid out step
        by step in the graph, longer ones and those of unknown length go through a loop."""
        super().__init__(num_features, exogenous_feature_columns, dtype)
        self._exogenous_update_condition = exogenous_update_condition
        self._train_output_names, self._predict_output_names = list(train_output_names), list(predict_output_names)
        self._normalize_features = normalize_features
        self._static_unrolling_window_size_threshold = static_unrolling_window_size_threshold

    # ---- what a model defines ----

    def _scale_back_predictions(self, predictions: Dict[str, Any]) -> Dict[str, Any]:
        """Predictions on the scale of the inputs."""
        raise NotImplementedError("%s sees scaled values (normalize_features=True): it needs _scale_back_predictions" % type(self).__name__)

    @abc.abstractmethod
    def _filtering_step(self, current_times: Any, current_values: Any, state: Any, predictions: Dict[str, Any]) -> Tuple[Any, Dict[str, Any]]:
        """The state behind values [batch, features] at times [batch], of the state that _prediction_step gave; and its predictions with a "loss" [batch]."""

    @abc.abstractmethod
    def _prediction_step(self, current_times: Any, state: Any) -> Tuple[Any, Dict[str, Any]]:
        """The state at times [batch], and what it predicts for them."""

    @abc.abstractmethod
    def _imputation_step(self, current_times: Any, state: Any) -> Any:
        """The state, brought forward to times [batch] over those for which there is nothing."""

    @abc.abstractmethod
    def _exogenous_input_step(self, current_times: Any, current_exogenous_regressors: Any, state: Any) -> Any:
        """The state, changed by exogenous numbers [batch, n]."""

    def _loss_additions(self, times: Any, values: Any, mode: str) -> Any:
        """What is added to the mean loss of a window's steps, as for regularization."""
        del times, values, mode  # nothing is added
        return 0.0

    def _window_initializer(self, times: Any, state: Any) -> None:
        """Called with times [batch, window] and the state before the steps of a window are made."""

    # ---- what follows from it ----

    def get_batch_loss(self, features: Any, mode: str, state: Any) -> ModelOutputs:
        """The mean loss of the steps of windows, their predictions, and the state behind the last."""
        loss, states, predictions = self.per_step_batch_loss(features, mode, state)
        predictions["observed"] = features[VALUES]
        return ModelOutputs(loss, nest.map_structure(lambda part: part[:, -1], states), predictions, features[TIMES])

    def per_step_batch_loss(self, features: Any, mode: str, state: Any) -> Tuple[Tensor, Any, Dict[str, Tensor]]:
        """The mean loss of the steps of windows [batch, window], the states behind each step and what was predicted for it, all [batch, window, ...]."""
        self._check_graph_initialized()
        times, values = math_ops.cast(features[TIMES], dtypes.int64), math_ops.cast(features[VALUES], self.dtype)
        values = self._scale_data(values) if self._normalize_features else values
        exogenous = self._exogenous_updates(times, features, _without(features, TIMES, VALUES))

        def step(step_number: Any, current_times: Tensor, state: Any) -> Tuple[Any, Dict[str, Tensor]]:
            observed = values[:, step_number, :]
            state = exogenous(step_number, current_times, state)
            state, predictions = self._prediction_step(current_times=current_times, state=state)
            return self._filtering_step(current_times=current_times, current_values=observed, state=state, predictions=predictions)

        states, outputs = self._state_update_loop(times, state, step, ["loss", *self._train_output_names])
        losses = outputs.pop("loss")
        losses.set_shape(times.get_shape())
        loss = math_ops.reduce_sum(losses) / math_ops.cast(math_ops.reduce_prod(array_ops.shape(times)), self.dtype)
        loss += self._loss_additions(times, values, mode)
        return loss, states, self._scale_back_predictions(outputs) if self._normalize_features else outputs

    def predict(self, features: Any) -> Dict[str, Tensor]:
        """Predictions by name, [batch, times, ...], for times [batch, times] from a state."""
        times = convert_to_tensor(features[TIMES], dtypes.int64)
        exogenous = self._exogenous_updates(times, features, _without(features, TIMES, PredictionFeatures.STATE_TUPLE))

        def step(step_number: Any, current_times: Tensor, state: Any) -> Tuple[Any, Dict[str, Tensor]]:
            return self._prediction_step(current_times=current_times, state=exogenous(step_number, current_times, state))

        _, predictions = self._state_update_loop(times, features[PredictionFeatures.STATE_TUPLE], step, self._predict_output_names)
        return self._scale_back_predictions(predictions) if self._normalize_features else predictions

    def _exogenous_updates(self, times: Any, features: Dict[str, Any], exogenous_features: Dict[str, Any]) -> Callable[..., Any]:
        """A function of a step's number, its times and a state that gives the state changed by the exogenous features of that step."""
        regressors = self._process_exogenous_features(times, exogenous_features)
        raw = _without(features, PredictionFeatures.STATE_TUPLE, TIMES, VALUES)

        def update(step_number: Any, current_times: Tensor, state: Any) -> Any:
            if regressors is None:
                return state
            changed = self._exogenous_input_step(current_times=current_times, current_exogenous_regressors=regressors[:, step_number, :], state=state)
            if self._exogenous_update_condition is None:
                return changed
            chosen = self._exogenous_update_condition(times=current_times, features={name: value[:, step_number] for name, value in raw.items()})
            return nest.map_structure(lambda new, old: array_ops.where(chosen, new, old), changed, state)

        return update

    def _state_update_loop(self, times: Any, state: Any, state_update_fn: _Step, outputs: Sequence[str]) -> Tuple[Any, Dict[str, Tensor]]:
        """The states behind each step of times [batch, window], and the outputs of state_update_fn for it, all [batch, window, ...]."""
        times = convert_to_tensor(times, dtypes.int64)
        window = times.get_shape()[1].value
        threshold = self._static_unrolling_window_size_threshold
        self._window_initializer(times, state)

        def step(number: Any, state: Any, reuse: bool = False) -> Tuple[Any, List[Tensor]]:
            """The state behind a step, and all that is kept of it."""
            with variable_scope("state_update_step", reuse=reuse):
                now = times[:, number]
                brought = self._imputation_step(current_times=now, state=state)
                behind, made = state_update_fn(step_number=number, current_times=now, state=brought)
            if set(made) != set(outputs):
                raise at_user_line(ValueError("A step of %s gave %s, not %s." % (type(self).__name__, sorted(made), sorted(outputs))))
            flat = nest.flatten(behind)
            for new, old in zip(flat, nest.flatten(state)):  # loops need to know that shapes stay as they are
                new.set_shape(old.get_shape())
            return nest.pack_sequence_as(state, flat), [*flat, *(made[name] for name in outputs)]

        parts = nest.flatten(state)
        if threshold is not None and window is not None and window <= threshold:
            rows = []
            for number in range(window):
                state, row = step(constant(number), state, reuse=number > 0)
                rows.append(row)
            kept = [array_ops.stack(column, axis=1) for column in zip(*rows)]
        else:
            size = array_ops.shape(times)[1]
            arrays = [TensorArray(dtype, size=size) for dtype in [*(part.dtype.base_dtype for part in parts), *[self.dtype] * len(outputs)]]

            def body(number: Tensor, state: Any, arrays: List[TensorArray]) -> Any:
                state, row = step(number, state)
                return number + 1, state, [array.write(number, value) for array, value in zip(arrays, row)]

            arrays = while_loop(lambda number, *_: number < size, body, [constant(0), state, arrays])[2]
            kept = [_batch_first(array.stack()) for array in arrays]
        return nest.pack_sequence_as(state, kept[: len(parts)]), dict(zip(outputs, kept[len(parts) :]))


def _batch_first(steps: Tensor) -> Tensor:
    """Steps [window, batch, ...] as [batch, window, ...]."""
    return array_ops.transpose(steps, array_ops.concat([[1, 0], math_ops.range(2, array_ops.rank(steps))], 0))
