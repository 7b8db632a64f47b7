# SPDX-License-Identifier: Apache-2.0
"""Estimators that add, multiply and subtract two numbers, to try predictors and servers with: nothing needs to be trained."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.contrib.learn.estimators import Estimator as LearnEstimator
from millrace.contrib.learn.io import InputFnOps
from millrace.contrib.learn.keys import ProblemType
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.estimator.estimator import Estimator
from millrace.estimator.export import ServingInputReceiver
from millrace.estimator.export_output import PredictOutput
from millrace.estimator.spec import EstimatorSpec
from millrace.framework.convert import constant
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY


def _results(x: Tensor, y: Tensor) -> Dict[str, Tensor]:
    with name_scope("outputs"):
        return {"sum": gen_ops.add(x, y, name="sum"), "product": gen_ops.mul(x, y, name="product"), "difference": gen_ops.sub(x, y, name="difference")}


def get_arithmetic_estimator(core: bool = True, model_dir: Optional[str] = None) -> Any:
    """An estimator of tf.estimator, or else of tf.contrib.learn, that answers "sum" (the default), "product" and "difference" of the features x and y."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = _results(features["x"], features["y"])
        loss, train_op = constant(0), control_flow_ops.no_op()
        if core:
            outputs = {key: PredictOutput({key: value}) for key, value in made.items()}
            outputs[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = outputs["sum"]
            return EstimatorSpec(mode, made, loss, train_op, export_outputs=outputs)
        alternatives = {key: (ProblemType.UNSPECIFIED, {key: value}) for key, value in made.items()}
        return ModelFnOps(mode, made, loss, train_op, output_alternatives=alternatives)

    return Estimator(model_fn, model_dir) if core else LearnEstimator(model_fn, model_dir=model_dir)


def get_arithmetic_input_fn(core: bool = True, train: bool = False) -> Callable[[], Any]:
    """An input function: of training, or one that serves x and y, which are 0 where they are not fed."""

    def input_fn() -> Any:
        with name_scope("inputs"):
            features = {name: array_ops.placeholder_with_default(0.0, [], name) for name in ("x", "y")}
        if train:
            return features, constant(0.0)
        return ServingInputReceiver(features, features) if core else InputFnOps(features, {}, features)

    return input_fn
