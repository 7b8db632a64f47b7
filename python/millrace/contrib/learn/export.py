# SPDX-License-Identifier: Apache-2.0
"""How estimators of tf.contrib.learn were exported before SavedModels: session bundles, whose signatures functions make of
(examples, features, predictions)."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

from millrace.contrib.session_bundle import exporter, gc
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, get_collection
from millrace.framework.session import Session
from millrace.ops import array_ops, control_flow_ops, lookup_ops, variables
from millrace.train.global_step import create_global_step, get_global_step
from millrace.train.saver import Saver

Signatures = Tuple[Any, Any]


def _checked(examples: Any) -> Any:
    if examples is None:
        raise at_user_line(ValueError("examples cannot be None when using this signature fn."))
    return examples


def generic_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """All predictions by their names."""
    del unused_features  # they are made of the examples
    named = predictions if isinstance(predictions, dict) else {"outputs": predictions}
    return exporter.generic_signature({"inputs": _checked(examples), **named}), {}


def classification_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """Classes."""
    del unused_features  # they are made of the examples
    classes = predictions["classes"] if isinstance(predictions, dict) else predictions
    return exporter.classification_signature(_checked(examples), classes_tensor=classes), {}


def classification_signature_fn_with_prob(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """The probabilities of classes."""
    del unused_features  # they are made of the examples
    scores = predictions["probabilities"] if isinstance(predictions, dict) else predictions
    return exporter.classification_signature(_checked(examples), scores_tensor=scores), {}


def regression_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """Numbers."""
    del unused_features  # they are made of the examples
    return exporter.regression_signature(_checked(examples), predictions), {}


def logistic_regression_signature_fn(examples: Any, unused_features: Any, predictions: Any) -> Signatures:
    """The probability that something holds, of [batch, 2] probabilities."""
    del unused_features  # they are made of the examples
    both = predictions["probabilities"] if isinstance(predictions, dict) else predictions
    if both.get_shape().ndims != 2 or both.get_shape()[1].value != 2:
        raise at_user_line(ValueError("probabilities of two classes must have the shape [batch, 2], got %s" % both.get_shape()))
    return exporter.regression_signature(_checked(examples), both[:, 1]), {}


def default_input_fn(estimator: Any, examples: Any) -> Any:
    """Examples as features of the kinds that the estimator was trained with."""
    return estimator._get_feature_ops_from_example(examples)


def export_estimator(
    estimator: Any,
    export_dir: Any,
    signature_fn: Optional[Callable[..., Signatures]] = None,
    input_fn: Optional[Callable[..., Any]] = default_input_fn,
    default_batch_size: Optional[int] = 1,
    exports_to_keep: Optional[int] = None,
) -> None:
    """Writes a session bundle of an estimator's newest checkpoint."""
    written(estimator, export_dir, signature_fn, input_fn, default_batch_size, exports_to_keep)


def written(
    estimator: Any,
    export_dir: Any,
    signature_fn: Optional[Callable[..., Signatures]],
    input_fn: Optional[Callable[..., Any]],
    default_batch_size: Optional[int],
    exports_to_keep: Optional[int],
    input_feature_key: Any = None,
    use_deprecated_input_fn: bool = True,
    prediction_key: Optional[str] = None,
    checkpoint_path: Optional[str] = None,
) -> bytes:
    """BaseEstimator.export."""
    if not use_deprecated_input_fn and input_fn is None:
        raise at_user_line(ValueError("input_fn must be defined."))
    checkpoint_path = checkpoint_path or estimator.latest_checkpoint()
    examples: Any = None
    with Graph().as_default() as graph:
        create_global_step(graph)
        if use_deprecated_input_fn:
            examples = array_ops.placeholder(dtypes.string, [default_batch_size], "input_example_tensor")
            features = (input_fn or default_input_fn)(estimator, examples)
        else:
            features, _ = input_fn()  # type: ignore[misc]
            if input_feature_key is not None:
                examples = features.pop(input_feature_key)
        if _empty(features) and examples is None:
            raise at_user_line(ValueError("Either features or examples must be defined."))
        predictions = estimator._get_predict_ops(features).predictions
        if prediction_key is not None:
            predictions = predictions[prediction_key]
        made = signature_fn or getattr(estimator, "_create_signature_fn", lambda: generic_signature_fn)()
        default_signature, named_signatures = made(examples, features, predictions)
        keep = None if exports_to_keep is None else gc.largest_export_versions(exports_to_keep)
        with Session("") as session:
            saver = (get_collection(GraphKeys.SAVERS) or [None])[0] or Saver()
            saver.restore(session, checkpoint_path)
            bundle = exporter.Exporter(saver)
            bundle.init(
                init_op=control_flow_ops.group(variables.local_variables_initializer(), lookup_ops.tables_initializer()),
                default_graph_signature=default_signature,
                named_graph_signatures=named_signatures,
                assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS),
            )
            return bundle.export(export_dir, get_global_step(), session, exports_to_keep=keep)


def _empty(features: Any) -> bool:
    return features is None or isinstance(features, (dict, list, tuple)) and not features
