# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.feature_column: columns of sequences."""

from typing import Any, Dict, Tuple

from millrace.feature_column.sequence import (  # noqa: F401
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
from millrace.framework.graph import Tensor
from millrace.layers.columns import SequenceFeatures


def sequence_input_layer(features: Dict[str, Any], feature_columns: Any, weight_collections: Any = None, trainable: bool = True) -> Tuple[Tensor, Tensor]:
    """Columns of sequences beside each other, and the lengths; variables are in GLOBAL_VARIABLES and weight_collections."""
    from millrace.framework.graph import add_to_collection

    layer = SequenceFeatures(feature_columns, trainable, "sequence_input_layer")
    made = layer(features)
    for variable in layer.weights:
        for collection in weight_collections or []:
            add_to_collection(collection, variable)
    return made
