# SPDX-License-Identifier: Apache-2.0
"""Deep estimators whose graphs tell where features come in, what each column makes of them, and the columns themselves, for tools that attribute
predictions to features. They are the estimators without annotations otherwise: checkpoints fit both."""

from __future__ import annotations

import pickle
from typing import Any, Dict, Optional, Sequence

from millrace import losses
from millrace.estimator.canned import _columns, _dnn_model_fn
from millrace.estimator.estimator import Estimator
from millrace.estimator.heads import _Head, _regression_head_with_mean_squared_error_loss, class_head
from millrace.estimator.spec import EstimatorSpec
from millrace.feature_column import make_parse_example_spec
from millrace.framework.composite_tensors import convert_to_tensor_or_sparse_tensor
from millrace.framework.graph import add_to_collection
from millrace.ops import nn_ops
from millrace.protos import definitions
from millrace.saved_model.utils import build_tensor_info


class LayerAnnotationsCollectionNames:
    """The collections: pickled columns; features by key, and numbers by the names of columns, each as an Any of a TensorInfo."""

    UNPROCESSED_FEATURES = "layer_annotations/unprocessed_features"
    PROCESSED_FEATURES = "layer_annotatons/processed_features"  # as TensorFlow spells it
    FEATURE_COLUMNS = "layer_annotations/feature_columns"

    @classmethod
    def keys(cls, collection_name: str) -> str:
        """The collection of the names."""
        return collection_name + "/keys"

    @classmethod
    def values(cls, collection_name: str) -> str:
        """The collection of the tensors, in the same order."""
        return collection_name + "/values"


_Names = LayerAnnotationsCollectionNames


def _annotate(collection_name: str, key: str, tensor: Any) -> None:
    packed: Any = definitions.Any()  # type: ignore[attr-defined]
    packed.Pack(build_tensor_info(tensor))
    add_to_collection(_Names.keys(collection_name), key)
    add_to_collection(_Names.values(collection_name), packed)


def _annotated(
    head: _Head,
    hidden_units: Sequence[int],
    feature_columns: Any,
    model_dir: Optional[str],
    optimizer: Any,
    activation_fn: Any,
    dropout: Optional[float],
    input_layer_partitioner: Any,
    config: Any,
    warm_start_from: Any,
) -> Estimator:
    columns = _columns(feature_columns)

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        made: Dict[Any, Any] = {}
        spec = _dnn_model_fn(
            features, labels, mode, head, hidden_units, columns, optimizer, activation_fn, dropout, input_layer_partitioner, config, cols_to_output_tensors=made
        )
        for key in make_parse_example_spec(columns):
            _annotate(_Names.UNPROCESSED_FEATURES, key, convert_to_tensor_or_sparse_tensor(features[key]))
        for column in columns:
            add_to_collection(_Names.FEATURE_COLUMNS, pickle.dumps(column))
        for column, tensor in made.items():
            _annotate(_Names.PROCESSED_FEATURES, column.name, tensor)
        return spec

    return Estimator(model_fn, model_dir, config, warm_start_from=warm_start_from)


def DNNClassifierWithLayerAnnotations(
    hidden_units: Sequence[int],
    feature_columns: Any,
    model_dir: Optional[str] = None,
    n_classes: int = 2,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    optimizer: Any = "Adagrad",
    activation_fn: Any = nn_ops.relu,
    dropout: Optional[float] = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    warm_start_from: Any = None,
    loss_reduction: str = losses.Reduction.SUM,
) -> Estimator:
    """A DNNClassifier with annotations."""
    head = class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
    return _annotated(head, hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout, input_layer_partitioner, config, warm_start_from)


def DNNRegressorWithLayerAnnotations(
    hidden_units: Sequence[int],
    feature_columns: Any,
    model_dir: Optional[str] = None,
    label_dimension: int = 1,
    weight_column: Any = None,
    optimizer: Any = "Adagrad",
    activation_fn: Any = nn_ops.relu,
    dropout: Optional[float] = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    warm_start_from: Any = None,
    loss_reduction: str = losses.Reduction.SUM,
) -> Estimator:
    """A DNNRegressor with annotations."""
    head = _regression_head_with_mean_squared_error_loss(weight_column, label_dimension, loss_reduction)
    return _annotated(head, hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout, input_layer_partitioner, config, warm_start_from)
