# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""The columns of tf.contrib.layers, which know their keys, and what is made of them."""

from millrace.contrib.feature_columns.base import _LinearEmbeddingLookupArguments, _Transformer
from millrace.contrib.feature_columns.crossed import crossed_column
from millrace.contrib.feature_columns.dense import (
    _BucketizedColumn,
    _EmbeddingColumn,
    _OneHotColumn,
    _real_valued_var_len_column,
    _RealValuedColumn,
    _RealValuedVarLenColumn,
    _ScatteredEmbeddingColumn,
    bucketized_column,
    embedding_column,
    one_hot_column,
    real_valued_column,
    scattered_embedding_column,
    shared_embedding_columns,
)
from millrace.contrib.feature_columns.frames import DataFrameColumn
from millrace.contrib.feature_columns.models import (
    _create_sequence_feature_spec_for_parsing,
    check_feature_columns,
    create_feature_spec_for_parsing,
    infer_real_valued_columns,
    input_from_feature_columns,
    joint_weighted_sum_from_feature_columns,
    make_place_holder_tensors_for_base_features,
    parse_feature_columns_from_examples,
    parse_feature_columns_from_sequence_examples,
    sequence_input_from_feature_columns,
    transform_features,
    weighted_sum_from_feature_columns,
)
from millrace.contrib.feature_columns.sparse import (
    _CrossedColumn,
    _SparseColumn,
    _SparseColumnHashed,
    _SparseColumnIntegerized,
    _SparseColumnKeys,
    _SparseColumnVocabulary,
    _SparseIdLookupConfig,
    _WeightedSparseColumn,
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    weighted_sparse_column,
)
