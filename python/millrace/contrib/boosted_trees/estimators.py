# SPDX-License-Identifier: Apache-2.0
"""Estimators of tf.contrib.boosted_trees (estimator_batch): trees that are boosted by the gradients of a head's loss."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.contrib.boosted_trees import gbdt, model
from millrace.contrib.learn import head as learn_heads
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.head_classes import multi_class_head
from millrace.framework import missing
from millrace.framework.errors import at_user_line
from millrace.ops import control_flow_ops, gen_ops, state_ops
from millrace.protos.contrib_trees import LearnerConfig
from millrace.train.global_step import get_global_step
from millrace.train.hooks import SessionRunArgs, SessionRunHook

_ATTEMPTS = 2  # for each tree that is wanted
_HEADS = "GradientBoostedDecisionTreeEstimator with a head of its own"
_CORE = "GradientBoostedDecisionTreeEstimator with a head of tf.contrib.learn, or tf.estimator.BoostedTreesEstimator"
missing.fill(
    globals(),
    "contrib.boosted_trees.estimator_batch.estimator.",
    {
        "GradientBoostedDecisionTreeRanker": _HEADS,
        "GradientBoostedDecisionTreeQuantileRegressor": _HEADS,
        "CoreGradientBoostedDecisionTreeEstimator": _CORE,
        "CoreGradientBoostedDecisionTreeRanker": _CORE,
        "CoreGradientBoostedDecisionTreeQuantileRegressor": _CORE,
    },
)


class StopAfterNTrees(SessionRunHook):
    """Stops training when n trees are finished, or twice as many were tried. The global step is override_global_step_value then, if there is one."""

    def __init__(self, n: int, num_attempted_trees_tensor: Any, num_finalized_trees_tensor: Any, override_global_step_value: Any = None) -> None:
        self._num_trees, self._counts = n, [num_attempted_trees_tensor, num_finalized_trees_tensor]
        self._override_global_step_value, self._override = override_global_step_value, None  # type: Any, Any

    def begin(self) -> None:
        """Makes what sets the step."""
        if self._override_global_step_value is not None:
            self._override = state_ops.assign(get_global_step(), self._override_global_step_value)

    def before_run(self, run_context: Any) -> Any:
        """Asks how many there are."""
        return SessionRunArgs(self._counts)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops where there are enough."""
        attempted, finished = run_values.results
        if finished >= self._num_trees or attempted > _ATTEMPTS * self._num_trees:
            if self._override is not None:
                run_context.session.run(self._override)
            run_context.request_stop()


def model_builder(features: Any, labels: Any, mode: str, params: Dict[str, Any], config: Any) -> Any:
    """The model function: params are what the estimators below take."""
    head, learner = params["head"], LearnerConfig.FromString(params["learner_config"].SerializeToString())
    if learner.num_classes < 2:
        learner.num_classes = max(2, head.logits_dimension)
    features = dict(features) if isinstance(features, dict) else {"features": features}
    seen = {key: value for key, value in features.items() if key != params["weight_column_name"]}
    handle = model.tree_ensemble_variable(0, b"", "ensemble_model")
    trees = gbdt.GradientBoostedDecisionTreeModel(
        is_chief=getattr(config, "is_chief", True),
        num_ps_replicas=0,
        ensemble_handle=handle,
        center_bias=params["center_bias"],
        examples_per_layer=params["examples_per_layer"],
        learner_config=learner,
        features=seen,
        logits_dimension=head.logits_dimension,
        feature_columns=params["feature_columns"],
        output_leaf_index=params["output_leaf_index"],
        num_quantiles=params["num_quantiles"],
    )
    said = trees.predict(mode)
    logits = said[gbdt.PREDICTIONS]
    if params["logits_modifier_function"]:
        logits = params["logits_modifier_function"](logits, features, mode)

    def train(loss: Any) -> Any:
        return control_flow_ops.group(trees.train(loss, said, labels), state_ops.assign_add(get_global_step(), 1))

    made = head.create_model_fn_ops(features=features, mode=mode, labels=labels, train_op_fn=train, logits=logits)
    if gbdt.LEAF_INDEX in said:
        made = made._replace(predictions={**made.predictions, gbdt.LEAF_INDEX: said[gbdt.LEAF_INDEX]})
    if not params["num_trees"] or mode != "train":
        return made
    counts = gen_ops.tree_ensemble_stats(handle, gen_ops.tree_ensemble_stamp_token(handle))
    wanted = params["num_trees"] + (1 if params["center_bias"] else 0)
    hook = StopAfterNTrees(wanted, counts.attempted_trees, counts.num_trees, params["override_global_step_value"])
    return made._replace(training_hooks=list(made.training_hooks) + [hook])


class GradientBoostedDecisionTreeEstimator(Estimator):
    """Trees for a head."""

    def __init__(
        self,
        learner_config: Any,
        examples_per_layer: Any,
        head: Any,
        num_trees: Optional[int] = None,
        feature_columns: Any = None,
        weight_column_name: Optional[str] = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        logits_modifier_function: Optional[Callable[..., Any]] = None,
        center_bias: bool = True,
        use_core_libs: bool = False,
        output_leaf_index: bool = False,
        override_global_step_value: Optional[int] = None,
        num_quantiles: int = 100,
    ) -> None:
        if use_core_libs:
            raise at_user_line(NotImplementedError("heads and columns of tf.estimator: use those of tf.contrib.learn and tf.contrib.layers"))
        params = {
            "head": head,
            "learner_config": learner_config,
            "examples_per_layer": examples_per_layer,
            "num_trees": num_trees,
            "feature_columns": feature_columns,
            "weight_column_name": weight_column_name,
            "logits_modifier_function": logits_modifier_function,
            "center_bias": center_bias,
            "output_leaf_index": output_leaf_index,
            "override_global_step_value": override_global_step_value,
            "num_quantiles": num_quantiles,
        }
        super().__init__(model_fn=model_builder, params=params, model_dir=model_dir, config=config, feature_engineering_fn=feature_engineering_fn)


class GradientBoostedDecisionTreeClassifier(GradientBoostedDecisionTreeEstimator):
    """Trees that tell classes."""

    def __init__(
        self,
        learner_config: Any,
        examples_per_layer: Any,
        n_classes: int = 2,
        num_trees: Optional[int] = None,
        feature_columns: Any = None,
        weight_column_name: Optional[str] = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        label_keys: Any = None,
        feature_engineering_fn: Any = None,
        logits_modifier_function: Optional[Callable[..., Any]] = None,
        center_bias: bool = True,
        use_core_libs: bool = False,
        output_leaf_index: bool = False,
        override_global_step_value: Optional[int] = None,
        num_quantiles: int = 100,
    ) -> None:
        head = multi_class_head(n_classes=n_classes, weight_column_name=weight_column_name, enable_centered_bias=False, label_keys=label_keys)
        if not learner_config.num_classes:
            learner_config.num_classes = n_classes
        elif learner_config.num_classes != n_classes:
            raise at_user_line(ValueError("n_classes is %d, and learner_config.num_classes %d" % (n_classes, learner_config.num_classes)))
        options = (feature_engineering_fn, logits_modifier_function, center_bias, use_core_libs, output_leaf_index, override_global_step_value, num_quantiles)
        super().__init__(learner_config, examples_per_layer, head, num_trees, feature_columns, weight_column_name, model_dir, config, *options)


class GradientBoostedDecisionTreeRegressor(GradientBoostedDecisionTreeEstimator):
    """Trees that tell numbers."""

    def __init__(
        self,
        learner_config: Any,
        examples_per_layer: Any,
        label_dimension: int = 1,
        num_trees: Optional[int] = None,
        feature_columns: Any = None,
        label_name: Optional[str] = None,
        weight_column_name: Optional[str] = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        feature_engineering_fn: Any = None,
        logits_modifier_function: Optional[Callable[..., Any]] = None,
        center_bias: bool = True,
        use_core_libs: bool = False,
        output_leaf_index: bool = False,
        override_global_step_value: Optional[int] = None,
        num_quantiles: int = 100,
    ) -> None:
        head = learn_heads.regression_head(label_name=label_name, label_dimension=label_dimension, weight_column_name=weight_column_name)
        learner_config.num_classes = 2 if label_dimension == 1 else label_dimension
        options = (feature_engineering_fn, logits_modifier_function, center_bias, use_core_libs, output_leaf_index, override_global_step_value, num_quantiles)
        super().__init__(learner_config, examples_per_layer, head, num_trees, feature_columns, weight_column_name, model_dir, config, *options)
