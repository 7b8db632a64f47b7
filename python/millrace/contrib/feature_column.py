# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.feature_column: columns of sequences."""

from millrace.feature_column.models import sequence_input_layer  # noqa: F401
from millrace.feature_column.sequence import (  # noqa: F401
    concatenate_context_input,
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
