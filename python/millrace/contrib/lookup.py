# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.lookup: tables from keys to values."""
from millrace.ops.lookup_ops import (FastHashSpec, HasherSpec, HashTable, IdTableWithHashBuckets, InitializableLookupTableBase,  # noqa: F401
                                     KeyValueTensorInitializer, LookupInterface, MutableDenseHashTable, MutableHashTable, StrongHashSpec,
                                     TableInitializerBase, TextFileIdTableInitializer, TextFileIndex, TextFileInitializer,
                                     TextFileStringTableInitializer, index_table_from_file, index_table_from_tensor, index_to_string,
                                     index_to_string_table_from_file, index_to_string_table_from_tensor, initialize_all_tables, string_to_index,
                                     tables_initializer)
