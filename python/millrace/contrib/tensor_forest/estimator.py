# SPDX-License-Identifier: Apache-2.0
"""Estimators of random forests: one of tf.contrib.learn, and one of tf.estimator."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from millrace import tf_logging
from millrace.contrib import estimator as core_heads
from millrace.contrib import layers
from millrace.contrib.learn import head as learn_heads
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.head_classes import multi_class_head
from millrace.contrib.tensor_forest.forest import RandomForestGraphs
from millrace.estimator import Estimator as CoreEstimator
from millrace.estimator.export_output import PredictOutput
from millrace.framework import missing
from millrace.framework.graph import Tensor
from millrace.ops import control_flow_ops, gen_ops, math_ops, state_ops
from millrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from millrace.summary import scalar
from millrace.train.global_step import get_global_step
from millrace.train.hooks import SessionRunArgs, SessionRunHook

LOSS_NAME = "rf_training_loss"
TREE_PATHS_PREDICTION_KEY = "tree_paths"
VARIANCE_PREDICTION_KEY = "prediction_variance"
ALL_SERVING_KEY = "tensorforest_all"
EPSILON = 0.000001
missing.fill(globals(), "contrib.tensor_forest.", {"MultiForestMultiHeadEstimator": "one TensorForestEstimator for each label"})


class ModelBuilderOutputType:
    """What a model function answers: ModelFnOps of tf.contrib.learn, or an EstimatorSpec."""

    MODEL_FN_OPS, ESTIMATOR_SPEC = 0, 1


class TensorForestRunOpAtEndHook(SessionRunHook):
    """Runs and logs operations when training ends."""

    def __init__(self, op_dict: Dict[str, Any]) -> None:
        self._ops = op_dict

    def end(self, session: Any) -> None:
        """Runs them."""
        for name, op in self._ops.items():
            tf_logging.info("%s: %s", name, session.run(op))


class TensorForestLossHook(SessionRunHook):
    """Stops training when early_stopping_rounds steps have not made the loss less by the part early_stopping_loss_threshold of the least one. It begins
    anew where the global step goes back. The first step's loss does not count."""

    def __init__(self, early_stopping_rounds: int, early_stopping_loss_threshold: Optional[float] = None, loss_op: Any = None) -> None:
        self.early_stopping_rounds, self.loss_op = early_stopping_rounds, loss_op
        self.early_stopping_loss_threshold = early_stopping_loss_threshold
        self.min_loss, self.last_step = None, -1  # type: Optional[float], int
        self.steps = 0  # since the loss last fell

    def before_run(self, run_context: Any) -> Any:
        """Asks for the step and the loss."""
        loss = self.loss_op if self.loss_op is not None else run_context.session.graph.get_operation_by_name(LOSS_NAME).outputs[0]
        return SessionRunArgs({"global_step": get_global_step(), "current_loss": loss})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops where there was no progress."""
        step, loss = int(run_values.results["global_step"]), float(run_values.results["current_loss"])
        last, self.last_step = self.last_step, step
        if last == -1 or step < last:
            self.min_loss, self.steps = None, 0
            return
        self.steps += step - last
        if self.min_loss is None or loss < self.min_loss - self.min_loss * (self.early_stopping_loss_threshold or 0):
            self.min_loss, self.steps = loss, 0
        if self.steps > self.early_stopping_rounds:
            tf_logging.info("TensorForestLossHook requesting stop.")
            run_context.request_stop()


def _get_default_head(params: Any, weights_name: Optional[str], output_type: int, name: Optional[str] = None) -> Any:
    """The head that suits the settings."""
    is_core = output_type == ModelBuilderOutputType.ESTIMATOR_SPEC
    if params.regression:
        if is_core:
            return core_heads.regression_head(weight_column=weights_name, label_dimension=params.num_outputs, name=name)
        return learn_heads.regression_head(weight_column_name=weights_name, label_dimension=params.num_outputs, head_name=name)
    if not is_core:
        return multi_class_head(params.num_classes, weight_column_name=weights_name, enable_centered_bias=False, head_name=name)
    if params.num_classes == 2:
        return core_heads.binary_classification_head(weight_column=weights_name, name=name)
    return core_heads.multi_class_head(n_classes=params.num_classes, weight_column=weights_name, name=name)


def _logits(params: Any, said: Tensor) -> Tensor:
    """Those of two classes are one number; those of more are the probabilities themselves."""
    if params.regression or params.num_classes != 2:
        return said
    least = math_ops.maximum(said, EPSILON)
    return gen_ops.log(gen_ops.div(least[:, 1:], least[:, :1]))


def get_model_fn(
    params: Any,
    graph_builder_class: Callable[..., Any],
    device_assigner: Any,
    feature_columns: Any = None,
    weights_name: Optional[str] = None,
    model_head: Any = None,
    keys_name: Optional[str] = None,
    early_stopping_rounds: Optional[int] = 100,
    early_stopping_loss_threshold: Optional[float] = 0.001,
    num_trainers: int = 1,
    trainer_id: int = 0,
    report_feature_importances: bool = False,
    local_eval: bool = False,
    head_scope: Any = None,
    include_all_in_serving: bool = False,
    output_type: int = ModelBuilderOutputType.MODEL_FN_OPS,
) -> Callable[..., Any]:
    """model_fn(features, labels, mode) of a forest."""
    is_core = output_type == ModelBuilderOutputType.ESTIMATOR_SPEC
    if model_head is None:
        model_head = _get_default_head(params, weights_name, output_type)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        features = dict(features) if isinstance(features, dict) else {"features": features}
        seen = {key: value for key, value in features.items() if key not in (weights_name, keys_name)}
        if feature_columns:
            seen = {str(key.name): value for key, value in layers.transform_features(seen, list(feature_columns)).items()}
        weights, keys = features.get(weights_name), features.get(keys_name)
        is_local = mode == "infer" or (mode == "eval" and local_eval)
        builder = graph_builder_class(params, device_assigner=None if is_local else device_assigner)
        said, paths, variance = builder.inference_graph(seen)
        scalar("average_tree_size", builder.average_size())

        def train(loss: Any) -> Any:
            del loss  # trees grow by counting
            given = {} if weights is None else {"input_weights": weights}
            grow = builder.training_graph(seen, labels, num_trainers=num_trainers, trainer_id=trainer_id, **given)
            return control_flow_ops.group(grow, state_ops.assign_add(get_global_step(), 1))

        def hooks(given: Any, loss: Any) -> List[SessionRunHook]:
            made = list(given or [])
            if mode == "train" and report_feature_importances:
                made.append(TensorForestRunOpAtEndHook({"feature_importances": builder.feature_importances()}))
            if mode == "train" and early_stopping_rounds:
                made.append(TensorForestLossHook(early_stopping_rounds, early_stopping_loss_threshold, loss))
            return made

        extra = {TREE_PATHS_PREDICTION_KEY: paths} if params.inference_tree_paths else {}
        extra[VARIANCE_PREDICTION_KEY] = variance
        if keys_name is not None and keys is not None:
            extra[keys_name] = keys
        given_logits = _logits(params, said)
        if is_core:
            spec = model_head.create_estimator_spec(features, mode, given_logits, labels=labels, train_op_fn=train)
            predictions = {**(spec.predictions or {}), **extra}
            if include_all_in_serving and mode == "infer":  # instead of what the head exports
                everything = PredictOutput(predictions)
                spec = spec._replace(export_outputs={DEFAULT_SERVING_SIGNATURE_DEF_KEY: everything, ALL_SERVING_KEY: everything})
            return spec._replace(predictions=predictions, training_hooks=hooks(spec.training_hooks, spec.loss))
        made = model_head.create_model_fn_ops(features=features, labels=labels, mode=mode, train_op_fn=train, logits=given_logits, scope=head_scope)
        predictions = {**made.predictions, **extra}
        alternatives = dict(made.output_alternatives or {})
        if include_all_in_serving:
            alternatives[ALL_SERVING_KEY] = (0, predictions)
        return made._replace(predictions=predictions, output_alternatives=alternatives, training_hooks=hooks(made.training_hooks, made.loss))

    return model_fn


class _OfForest:
    """The arguments of both estimators, before the estimator among their bases. The settings params are filled in."""

    _output_type: int

    def __init__(
        self,
        params: Any,
        device_assigner: Any = None,
        model_dir: Optional[str] = None,
        feature_columns: Any = None,
        graph_builder_class: Callable[..., Any] = RandomForestGraphs,
        config: Any = None,
        weight_column: Optional[str] = None,
        keys_column: Optional[str] = None,
        feature_engineering_fn: Any = None,
        early_stopping_rounds: Optional[int] = 100,
        early_stopping_loss_threshold: Optional[float] = 0.001,
        num_trainers: int = 1,
        trainer_id: int = 0,
        report_feature_importances: bool = False,
        local_eval: bool = False,
        version: Any = None,
        head: Any = None,
        include_all_in_serving: bool = False,
    ) -> None:
        model_fn = get_model_fn(
            params.fill(),
            graph_builder_class,
            device_assigner,
            feature_columns=feature_columns,
            model_head=head,
            weights_name=weight_column,
            keys_name=keys_column,
            early_stopping_rounds=early_stopping_rounds,
            early_stopping_loss_threshold=early_stopping_loss_threshold,
            num_trainers=num_trainers,
            trainer_id=trainer_id,
            report_feature_importances=report_feature_importances,
            local_eval=local_eval,
            include_all_in_serving=include_all_in_serving,
            output_type=self._output_type,
        )
        of_learn = {"feature_engineering_fn": feature_engineering_fn} if self._output_type == ModelBuilderOutputType.MODEL_FN_OPS else {}
        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config, **of_learn)  # type: ignore[call-arg]


class TensorForestEstimator(_OfForest, Estimator):
    """Trains, evaluates and asks a forest by tf.contrib.learn."""

    _output_type = ModelBuilderOutputType.MODEL_FN_OPS


class CoreTensorForestEstimator(_OfForest, CoreEstimator):
    """The same by tf.estimator, which has no feature_engineering_fn."""

    _output_type = ModelBuilderOutputType.ESTIMATOR_SPEC
