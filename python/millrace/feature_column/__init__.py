# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.feature_column: what columns of a table mean to a model."""

from millrace.feature_column.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    SequenceDenseColumn,
    _CategoricalColumn,
    _DenseColumn,
    _FeatureColumn,
    _SequenceDenseColumn,
    is_feature_column_v2,
    make_parse_example_spec,
    make_parse_example_spec_v2,
)
from millrace.feature_column.categorical import (
    CrossedColumn,
    HashedCategoricalColumn,
    IdentityCategoricalColumn,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_file_v2,
    categorical_column_with_vocabulary_list,
    crossed_column,
    weighted_categorical_column,
)
from millrace.feature_column.dense import BucketizedColumn, IndicatorColumn, NumericColumn, bucketized_column, indicator_column, numeric_column
from millrace.feature_column.embedding import (
    EmbeddingColumn,
    SharedEmbeddingColumn,
    SharedEmbeddingColumnCreator,
    _SharedEmbeddingColumn,
    embedding_column,
    shared_embedding_columns,
    shared_embedding_columns_v2,
)
from millrace.feature_column.features import FeatureTransformationCache, _LazyBuilder
from millrace.feature_column.models import InputLayer, _LinearModel, _transform_features, _transform_features_v2, input_layer, linear_model
from millrace.feature_column.sequence import (
    SequenceCategoricalColumn,
    SequenceNumericColumn,
    concatenate_context_input,
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
from millrace.feature_column.state import StateManager, _StateManagerImpl, _StateManagerImplV2

# What TensorFlow's columns of the style before are called, and what makes them.
_BucketizedColumn, _bucketized_column = BucketizedColumn, bucketized_column
_CrossedColumn, _crossed_column = CrossedColumn, crossed_column
_EmbeddingColumn, _embedding_column = EmbeddingColumn, embedding_column
_HashedCategoricalColumn, _categorical_column_with_hash_bucket = HashedCategoricalColumn, categorical_column_with_hash_bucket
_IdentityCategoricalColumn, _categorical_column_with_identity = IdentityCategoricalColumn, categorical_column_with_identity
_IndicatorColumn, _indicator_column = IndicatorColumn, indicator_column
_NumericColumn, _numeric_column = NumericColumn, numeric_column
_SequenceCategoricalColumn = SequenceCategoricalColumn
_VocabularyFileCategoricalColumn, _categorical_column_with_vocabulary_file = VocabularyFileCategoricalColumn, categorical_column_with_vocabulary_file
_VocabularyListCategoricalColumn, _categorical_column_with_vocabulary_list = VocabularyListCategoricalColumn, categorical_column_with_vocabulary_list
_WeightedCategoricalColumn, _weighted_categorical_column = WeightedCategoricalColumn, weighted_categorical_column
