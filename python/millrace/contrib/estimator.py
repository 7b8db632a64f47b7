# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator: heads, and estimators of them. The loss of a batch is a mean there."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from millrace import losses
from millrace.estimator.canned import BaselineEstimator, DNNEstimator, DNNLinearCombinedEstimator, LinearEstimator  # noqa: F401
from millrace.estimator.extenders import add_metrics  # noqa: F401
from millrace.estimator.export import build_raw_supervised_input_receiver_fn, build_supervised_input_receiver_fn_from_input_fn  # noqa: F401
from millrace.estimator.experimental import (  # noqa: F401
    InMemoryEvaluatorHook,
    call_logit_fn,
    dnn_logit_fn_builder,
    linear_logit_fn_builder,
    make_early_stopping_hook,
    make_stop_at_checkpoint_step_hook,
    read_eval_metrics,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)
from millrace.estimator.head_inputs import in_range
from millrace.estimator.heads import (
    _binary_logistic_head_with_sigmoid_cross_entropy_loss,
    _Head,
    _multi_class_head_with_softmax_cross_entropy_loss,
    _MultiLabelHead,
    _regression_head,
)
from millrace.estimator.multi_head import _MultiHead
from millrace.estimator.spec import ModeKeys
from millrace.contrib.estimator_exporter import StepsExporter  # noqa: F401
from millrace.contrib.estimator_extenders import clip_gradients_by_norm, forward_features  # noqa: F401
from millrace.contrib.estimator_trees import boosted_trees_classifier_train_in_memory, boosted_trees_regressor_train_in_memory  # noqa: F401
from millrace.contrib.estimator_rnn import RNNClassifier, RNNEstimator  # noqa: F401
from millrace.contrib.layer_annotations import DNNClassifierWithLayerAnnotations, DNNRegressorWithLayerAnnotations  # noqa: F401
from millrace.contrib.replication import TowerOptimizer, replicate_model_fn  # noqa: F401
from millrace.contrib.saved_model_estimator import SavedModelEstimator  # noqa: F401
from millrace.ops import gen_ops, math_ops, nn_ops


def export_saved_model_for_mode(
    estimator: Any,
    export_dir_base: Any,
    input_receiver_fn: Callable[[], Any],
    assets_extra: Any = None,
    as_text: bool = False,
    checkpoint_path: Optional[str] = None,
    mode: str = ModeKeys.PREDICT,
) -> bytes:
    """Estimator.export_saved_model with a mode."""
    return estimator.export_saved_model(export_dir_base, input_receiver_fn, assets_extra, as_text, checkpoint_path, experimental_mode=mode)


def export_all_saved_models(
    estimator: Any, export_dir_base: Any, input_receiver_fn_map: Any, assets_extra: Any = None, as_text: bool = False, checkpoint_path: Optional[str] = None
) -> bytes:
    """Estimator.experimental_export_all_saved_models."""
    return estimator.experimental_export_all_saved_models(export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path)


_MEAN = losses.Reduction.SUM_OVER_BATCH_SIZE


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Optional[Sequence[float]] = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Optional[Callable[..., Any]] = None,
    name: Optional[str] = None,
) -> _Head:
    """Two classes."""
    return _binary_logistic_head_with_sigmoid_cross_entropy_loss(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Optional[Callable[..., Any]] = None,
    name: Optional[str] = None,
) -> _Head:
    """More than two classes."""
    return _multi_class_head_with_softmax_cross_entropy_loss(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: Optional[Callable[..., Any]] = None,
    inverse_link_fn: Optional[Callable[[Any], Any]] = None,
    name: Optional[str] = None,
) -> _Head:
    """Numbers; inverse_link_fn makes them of the logits."""
    return _regression_head(weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: Any = None, label_dimension: int = 1, loss_reduction: str = _MEAN, compute_full_loss: bool = True, name: Optional[str] = None
) -> _Head:
    """Counts: the negative logarithm of the Poisson distribution whose mean is the exponential of the logits."""

    def loss(labels: Any, logits: Any) -> Any:
        return nn_ops.log_poisson_loss(labels, logits, compute_full_loss=compute_full_loss)

    return _regression_head(weight_column, label_dimension, loss_reduction, loss, gen_ops.exp, name)


def logistic_regression_head(weight_column: Any = None, loss_reduction: str = _MEAN, name: Optional[str] = None) -> _Head:
    """Probabilities: labels from 0 to 1, the cross entropy with the sigmoid of the logits."""

    def loss(labels: Any, logits: Any) -> Any:
        return nn_ops.sigmoid_cross_entropy_with_logits(labels=in_range(labels, 2, "Labels must be in range [0, 1]"), logits=logits)

    return _regression_head(weight_column, 1, loss_reduction, loss, math_ops.sigmoid, name)


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Optional[Sequence[float]] = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Optional[Callable[..., Any]] = None,
    classes_for_class_based_metrics: Optional[Sequence[Any]] = None,
    name: Optional[str] = None,
) -> _Head:
    """Any number of classes for each example: labels are zeros and ones for all, or sparse numbers or words of those that hold."""
    return _MultiLabelHead(
        n_classes, weight_column, thresholds, label_vocabulary, name, classes_for_class_based_metrics, loss_reduction=loss_reduction, loss_fn=loss_fn
    )


def multi_head(heads: Sequence[_Head], head_weights: Optional[Sequence[float]] = None) -> _Head:
    """Several heads, which all have names: their losses are added up, each with its weight. Logits and labels are dicts by the names."""
    return _MultiHead(heads, head_weights)
