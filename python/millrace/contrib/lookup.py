# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.lookup: tables from keys to values."""

from millrace.ops.lookup_ops import index_table_from_file as string_to_index_table_from_file  # noqa: F401 - by its first name
from millrace.ops.lookup_ops import index_table_from_tensor as _index_table_from_tensor
from millrace.ops.lookup_ops import (  # noqa: F401
    FastHashSpec,
    HasherSpec,
    HashTable,
    IdTableWithHashBuckets,
    InitializableLookupTableBase,
    KeyValueTensorInitializer,
    LookupInterface,
    MutableDenseHashTable,
    MutableHashTable,
    StrongHashSpec,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
    index_table_from_file,
    index_table_from_tensor,
    index_to_string,
    index_to_string_table_from_file,
    index_to_string_table_from_tensor,
    initialize_all_tables,
    string_to_index,
    tables_initializer,
)


def string_to_index_table_from_tensor(mapping, num_oov_buckets=0, default_value=-1, hasher_spec=FastHashSpec, name=None):  # type: ignore[no-untyped-def]
    """index_table_from_tensor by its first name."""
    return _index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name)
