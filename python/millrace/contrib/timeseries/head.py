# SPDX-License-Identifier: Apache-2.0
"""From features to the EstimatorSpec of a model of a series."""

from __future__ import annotations

import re
from typing import Any, Dict, Optional, Sequence, Tuple

from millrace import metrics, summary
from millrace.contrib.timeseries.feature_keys import FilteringResults, PredictionFeatures, PredictionResults, SavedModelLabels, State, TrainEvalFeatures
from millrace.contrib.timeseries.model import ModelOutputs
from millrace.estimator.export_output import PredictOutput
from millrace.estimator.heads import _Head
from millrace.estimator.keys import MetricKeys
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, name_scope
from millrace.ops import array_ops, math_ops, state_ops
from millrace.ops.control_flow_ops import group
from millrace.ops.variable_scope import variable_scope
from millrace.ops.variables import Variable
from millrace.train.global_step import get_global_step

TIMES, VALUES = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES
_FLAT_STATE = re.compile("^" + State.STATE_PREFIX + r"_(\d+)$")


def state_to_dictionary(state_tuple: Any) -> Dict[str, Any]:
    """The parts of a nested state by the names that exported models have for them: model_state_00 and so on."""
    return {"%s_%02d" % (State.STATE_PREFIX, i): part for i, part in enumerate(nest.flatten(state_tuple))}


class _NoStatePredictOutput(PredictOutput):
    """The output of a signature that takes no state."""

    def as_signature_def(self, receiver_tensors: Dict[str, Any]) -> Any:
        """The signature from those inputs that are no state."""
        return super().as_signature_def({name: tensor for name, tensor in receiver_tensors.items() if not name.startswith(State.STATE_PREFIX)})


class TimeSeriesRegressionHead(_Head):
    """The head of a TimeSeriesRegressor: trains, evaluates, predicts from a state, and serves signatures that filter and predict."""

    def __init__(self, model: Any, state_manager: Any, optimizer: Any, input_statistics_generator: Any = None, name: Optional[str] = None) -> None:
        super().__init__(logits_dimension=1, name=name)
        self.model, self.state_manager, self.optimizer, self.input_statistics_generator = model, state_manager, optimizer, input_statistics_generator

    def create_loss(self, features: Any, mode: Any, logits: Any = None, labels: Any = None) -> ModelOutputs:  # type: ignore[override]
        """What the model makes of features, whose loss is also a summary."""
        del logits, labels  # features hold what is predicted
        outputs: ModelOutputs = self.state_manager.define_loss(self.model, features, mode)
        summary.scalar(self._key(MetricKeys.LOSS), outputs.loss)
        return outputs

    def create_estimator_spec(self, features: Any, mode: str, labels: Any = None) -> EstimatorSpec:  # type: ignore[override]
        """Trains and evaluates on times [batch, window] and values [batch, window, features]; predicts for times from the state STATE_TUPLE; where the state
        comes flat, makes the outputs of an exported model. ValueError where features are missing or their shapes do not fit, or there are labels."""
        with name_scope(self._name, "head"):
            if labels is not None and labels != {}:
                raise at_user_line(ValueError("The model received a `labels`, which is not supported. Pass '%s' and '%s' as features." % (TIMES, VALUES)))
            features = {name: self._as_tensor(name, value) for name, value in features.items()}
            statistics = None
            if self.input_statistics_generator is not None:
                statistics = self.input_statistics_generator.initialize_graph(features, update_statistics=mode == ModeKeys.TRAIN)
            self.model.initialize_graph(input_statistics=statistics)
            features, serving = self._with_state(features)
            if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
                _check_train_eval_features(features, self.model)
            elif mode == ModeKeys.PREDICT:
                self._check_predict_features(features)
            else:
                raise at_user_line(ValueError("Unknown mode '%s' passed to model_fn." % mode))
            self.state_manager.initialize_graph(model=self.model, input_statistics=statistics)
            if mode == ModeKeys.TRAIN:
                return self._train_ops(features)
            if mode == ModeKeys.EVAL:
                return self._evaluate_ops(features)
            return self._serving_ops(features) if serving else self._predict_ops(features)

    def _as_tensor(self, name: str, value: Any) -> Any:
        if name == TIMES:
            return math_ops.cast(value, dtypes.int64)
        if name == VALUES:
            return math_ops.cast(value, self.model.dtype)
        return value if name == State.STATE_TUPLE else convert_to_tensor_or_sparse_tensor(value)

    def _with_state(self, features: Dict[str, Any]) -> Tuple[Dict[str, Any], bool]:
        """The features, a flat state among them made one nested state; and whether there was one."""
        numbers = {name: int(found.group(1)) for name in features for found in [_FLAT_STATE.search(name)] if found}
        if not numbers:
            return features, False
        parts = [features[name] for name in sorted(numbers, key=numbers.__getitem__)]
        kept = {name: value for name, value in features.items() if name not in numbers}
        return {**kept, State.STATE_TUPLE: nest.pack_sequence_as(self.model.get_start_state(), parts)}, True

    # ---- what is made in each mode ----

    def _train_ops(self, features: Dict[str, Any]) -> EstimatorSpec:
        with variable_scope("model", use_resource=True):
            loss = self.create_loss(features, ModeKeys.TRAIN).loss
        return EstimatorSpec(ModeKeys.TRAIN, loss=loss, train_op=self.optimizer.minimize(loss, global_step=get_global_step()))

    def _evaluate_ops(self, features: Dict[str, Any]) -> EstimatorSpec:
        """Metrics are the predictions, their times and the state behind them, as the last batch gave them, and the mean of losses."""
        with variable_scope("model", use_resource=True):
            outputs = self.create_loss(features, ModeKeys.EVAL)
        shown = {**outputs.predictions, FilteringResults.TIMES: outputs.prediction_times, FilteringResults.STATE_TUPLE: outputs.end_state}
        measures: Dict[str, Any] = {name: _last_value(name, value) for name, value in shown.items()}
        measures[MetricKeys.LOSS_MEAN] = metrics.mean(outputs.loss, name="average_loss")
        return EstimatorSpec(ModeKeys.EVAL, outputs.predictions, outputs.loss, eval_metric_ops=measures)

    def _predict_ops(self, features: Dict[str, Any]) -> EstimatorSpec:
        with variable_scope("model", use_resource=True):
            predictions = self.model.predict(features=features)
        return EstimatorSpec(ModeKeys.PREDICT, {**predictions, PredictionResults.TIMES: features[TIMES]})

    def _serving_ops(self, features: Dict[str, Any]) -> EstimatorSpec:
        """Signatures that predict from a state, that bring a state up to date, and that make one."""
        with variable_scope("model", use_resource=True):
            predictions = self.model.predict(features=features)
        with variable_scope("model", reuse=True):
            filtered = self.create_loss(features, ModeKeys.EVAL)
        with variable_scope("model", reuse=True):
            stateless = {name: value for name, value in features.items() if name != State.STATE_TUPLE}
            begun = self.model.define_loss(features=stateless, mode=ModeKeys.EVAL)
        outputs = {
            SavedModelLabels.PREDICT: PredictOutput(predictions),
            SavedModelLabels.FILTER: PredictOutput(state_to_dictionary(filtered.end_state)),
            SavedModelLabels.COLD_START_FILTER: _NoStatePredictOutput(state_to_dictionary(begun.end_state)),
        }
        return EstimatorSpec(ModeKeys.PREDICT, {}, export_outputs=outputs)

    # ---- what features must be ----

    def _needed_to_predict(self) -> Sequence[str]:
        return (TIMES, State.STATE_TUPLE)

    def _check_predict_features(self, features: Dict[str, Any]) -> None:
        _check_there(features, self._needed_to_predict(), "prediction")
        _check_times(features)
        _check_beside_times(features, but_for=[name for name in self._needed_to_predict() if name != TIMES])


class OneShotPredictionHead(TimeSeriesRegressionHead):
    """A head whose exported model has one signature: it takes values, and times and exogenous features of these and of what is to be predicted behind them,
    all at once; it neither takes nor gives a state."""

    def _needed_to_predict(self) -> Sequence[str]:
        return (TIMES, VALUES, State.STATE_TUPLE)

    def _evaluate_ops(self, features: Dict[str, Any]) -> EstimatorSpec:
        spec = super()._evaluate_ops(features)
        return spec._replace(eval_metric_ops={name: value for name, value in spec.eval_metric_ops.items() if name != FilteringResults.STATE_TUPLE})

    def _serving_ops(self, features: Dict[str, Any]) -> EstimatorSpec:
        features = {name: value for name, value in features.items() if name != State.STATE_TUPLE}
        seen = array_ops.shape(features[VALUES])[1]
        with variable_scope("model", use_resource=True):
            past = {name: value if name == VALUES else value[:, :seen] for name, value in features.items()}
            state = self.model.define_loss(features=past, mode=ModeKeys.EVAL).end_state
        with variable_scope("model", reuse=True):
            future = {name: value[:, seen:] for name, value in features.items() if name != VALUES}
            predictions = self.model.predict(features={**future, PredictionFeatures.STATE_TUPLE: state})
        return EstimatorSpec(ModeKeys.PREDICT, {}, export_outputs={SavedModelLabels.PREDICT: _NoStatePredictOutput(predictions)})


def _check_there(features: Dict[str, Any], names: Sequence[str], what_for: str) -> None:
    for name in names:
        if name not in features:
            raise at_user_line(ValueError("Expected a '%s' feature for %s." % (name, what_for)))


def _check_times(features: Dict[str, Any]) -> None:
    shape = features[TIMES].get_shape()
    if not shape.is_compatible_with([None, None]):
        raise at_user_line(ValueError("Expected shape (batch dimension, window size) for feature '%s' (got shape %s)" % (TIMES, shape)))


def _check_beside_times(features: Dict[str, Any], but_for: Sequence[str]) -> None:
    """Shapes, as far as they are known, begin as that of times does."""
    times = features[TIMES].get_shape()
    for name, value in features.items():
        if name in but_for or value.get_shape().ndims is None:
            continue
        shape = value.get_shape()
        if shape.ndims < 2:
            raise at_user_line(ValueError("Features must have shape (batch dimension, window size, ...) (got rank %d for feature '%s')" % (shape.ndims, name)))
        if not shape[:2].is_compatible_with(times):
            raise at_user_line(
                ValueError(
                    "Features must have shape (batch dimension, window size, ...) where batch dimension and window size match the '{0}' feature (got "
                    "shape {1} for feature '{2}' but shape {3} for feature '{0}')".format(TIMES, shape, name, times)
                )
            )


def _check_train_eval_features(features: Dict[str, Any], model: Any) -> None:
    _check_there(features, (TIMES, VALUES), "training/evaluation")
    _check_times(features)
    shape, wanted = features[VALUES].get_shape(), model.num_features
    if not shape.is_compatible_with([None, None, wanted]):
        raise at_user_line(
            ValueError(
                "Expected shape (batch dimension, window size, {0}) for feature '{1}', since the model was configured with num_features={0} (got shape "
                "{2})".format(wanted, VALUES, shape)
            )
        )
    _check_beside_times(features, but_for=[State.STATE_TUPLE])


def _last_value(name: str, value: Any) -> Tuple[Any, Any]:
    """A metric that is what a tensor, or each of nested tensors, was in the last batch: so all that it shows is of the same batch."""
    nested = nest.is_sequence(value)
    shown, updates = [], []
    for i, tensor in enumerate(nest.flatten(value)):
        kept = Variable(
            array_ops.zeros([], tensor.dtype),
            trainable=False,
            name="%s_identity_metric" % ("%s_%d" % (name, i) if nested else name),
            collections=[GraphKeys.LOCAL_VARIABLES],
            validate_shape=False,
        )
        updates.append(state_ops.assign(kept, tensor, validate_shape=False))
        shown.append(array_ops.identity(kept))
        shown[-1].set_shape(tensor.get_shape())
    return nest.pack_sequence_as(value, shown), group(*updates) if nested else updates[0]
