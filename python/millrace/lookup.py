# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.lookup: tables from keys to values."""
import types as _types

from millrace.ops.lookup_ops import (KeyValueTensorInitializer, MutableDenseHashTable, MutableHashTable, StaticHashTable, StaticVocabularyTable,  # noqa: F401
                                     TextFileIndex, TextFileInitializer)

experimental = _types.SimpleNamespace(DenseHashTable=MutableDenseHashTable, MutableHashTable=MutableHashTable)
