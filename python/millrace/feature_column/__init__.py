# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.feature_column: what columns of a table mean to a model."""

from millrace.feature_column.base import _CategoricalColumn, _DenseColumn, _FeatureColumn, _LazyBuilder
from millrace.feature_column.categorical import (
    _CrossedColumn,
    _HashedCategoricalColumn,
    _IdentityCategoricalColumn,
    _VocabularyFileCategoricalColumn,
    _VocabularyListCategoricalColumn,
    _WeightedCategoricalColumn,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
    crossed_column,
    weighted_categorical_column,
)
from millrace.feature_column.dense import (
    _BucketizedColumn,
    _EmbeddingColumn,
    _IndicatorColumn,
    _NumericColumn,
    _SharedEmbeddingColumn,
    bucketized_column,
    embedding_column,
    indicator_column,
    numeric_column,
    shared_embedding_columns,
)
from millrace.feature_column.models import _transform_features, input_layer, linear_model, make_parse_example_spec
from millrace.feature_column.sequence import (
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
