# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator: boosted trees that are trained on the spot, from a data set whose first element is all examples."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.data import Dataset
from millrace.estimator.boosted_trees import (
    _DEFAULT,
    BoostedTreesEstimator,
    _BoostedTreesBase,
    _create_classification_head_and_closed_form,
    _create_regression_head,
    _given,
)
from millrace.estimator.boosted_trees_growing import _TreeHParams

_BoostedTreesEstimator = BoostedTreesEstimator  # its name before 1.14


def _train(model: _BoostedTreesBase, train_input_fn: Callable[[], Any], hooks: Any) -> _BoostedTreesBase:
    def input_fn() -> Any:
        made = train_input_fn()
        return made.repeat() if isinstance(made, Dataset) else made

    model.train(input_fn, hooks=hooks)
    return model


def boosted_trees_classifier_train_in_memory(
    train_input_fn: Callable[[], Any],
    feature_columns: Any,
    model_dir: Optional[str] = None,
    n_classes: Any = _DEFAULT,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    n_trees: int = 100,
    max_depth: int = 6,
    learning_rate: float = 0.1,
    l1_regularization: float = 0.0,
    l2_regularization: float = 0.0,
    tree_complexity: float = 0.0,
    min_node_weight: float = 0.0,
    config: Any = None,
    train_hooks: Any = None,
    center_bias: bool = False,
    pruning_mode: str = "none",
    quantile_sketch_epsilon: float = 0.01,
) -> _BoostedTreesBase:
    """Trains boosted trees that tell two classes apart."""
    head, derivatives = _create_classification_head_and_closed_form(_given(n_classes, 2), weight_column, label_vocabulary)
    hparams = _TreeHParams(
        n_trees,
        max_depth,
        learning_rate,
        l1_regularization,
        l2_regularization,
        tree_complexity,
        min_node_weight,
        center_bias,
        pruning_mode,
        quantile_sketch_epsilon,
    )
    model = _BoostedTreesBase(head, feature_columns, hparams, 1, model_dir, config, train_in_memory=True, derivatives=derivatives)
    return _train(model, train_input_fn, train_hooks)


def boosted_trees_regressor_train_in_memory(
    train_input_fn: Callable[[], Any],
    feature_columns: Any,
    model_dir: Optional[str] = None,
    label_dimension: Any = _DEFAULT,
    weight_column: Any = None,
    n_trees: int = 100,
    max_depth: int = 6,
    learning_rate: float = 0.1,
    l1_regularization: float = 0.0,
    l2_regularization: float = 0.0,
    tree_complexity: float = 0.0,
    min_node_weight: float = 0.0,
    config: Any = None,
    train_hooks: Any = None,
    center_bias: bool = False,
    pruning_mode: str = "none",
    quantile_sketch_epsilon: float = 0.01,
) -> _BoostedTreesBase:
    """Trains boosted trees that tell a number."""
    head = _create_regression_head(_given(label_dimension, 1), weight_column)
    hparams = _TreeHParams(
        n_trees,
        max_depth,
        learning_rate,
        l1_regularization,
        l2_regularization,
        tree_complexity,
        min_node_weight,
        center_bias,
        pruning_mode,
        quantile_sketch_epsilon,
    )
    model = _BoostedTreesBase(head, feature_columns, hparams, 1, model_dir, config, train_in_memory=True)
    return _train(model, train_input_fn, train_hooks)
