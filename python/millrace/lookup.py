# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.lookup: tables from keys to values."""

import types as _types

from millrace.ops.lookup_ops import (  # noqa: F401
    DenseHashTable,
    KeyValueTensorInitializer,
    MutableDenseHashTable,
    MutableHashTable,
    StaticHashTable,
    StaticVocabularyTable,
    TextFileIndex,
    TextFileInitializer,
)

experimental = _types.SimpleNamespace(DenseHashTable=DenseHashTable, MutableHashTable=MutableHashTable)
