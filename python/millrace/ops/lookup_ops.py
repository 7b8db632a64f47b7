# SPDX-License-Identifier: Apache-2.0
"""Tables from keys to values, and what fills them."""

from __future__ import annotations

import collections
import contextlib
import os
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection, get_collection, get_default_graph, init_scope, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, string_ops

HasherSpec = collections.namedtuple("HasherSpec", ["hasher", "key"])
FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A hash with a key of two integers, for values that come from strangers."""

    __slots__ = ()

    def __new__(cls, key: Any) -> Any:
        if len(key) != 2:
            raise at_user_line(ValueError("key must be two integers, got %r" % (key,)))
        if not all(isinstance(k, (int, np.integer)) for k in key):
            raise at_user_line(TypeError("key must be two integers, got %r" % (key,)))
        return super().__new__(cls, "stronghash", key)


class TextFileIndex:
    """What stands for a column: the whole line, or its number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class LookupInterface:
    """What all tables have."""

    def __init__(self, key_dtype: Any, value_dtype: Any, name: Optional[str]) -> None:
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        self._name = (name or "").rstrip("/").rsplit("/", 1)[-1]

    def __repr__(self) -> str:
        return "<tf.%s '%s' from %s to %s>" % (type(self).__name__, self._name, self._key_dtype.name, self._value_dtype.name)

    @property
    def key_dtype(self) -> Any:
        """The type of keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        """The type of values."""
        return self._value_dtype

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def init(self) -> Any:
        """What fills the table."""
        raise NotImplementedError

    @property
    def initializer(self) -> Any:
        """What fills the table."""
        return self.init

    def size(self, name: Optional[str] = None) -> Tensor:
        """The number of pairs."""
        raise NotImplementedError

    def lookup(self, keys: Any, name: Optional[str] = None) -> Any:
        """The values of keys."""
        raise NotImplementedError

    def _keys(self, keys: Any) -> Tensor:
        """Keys as a tensor; of a sparse tensor, those that are there."""
        tensor = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys, None if hasattr(keys, "dtype") else self._key_dtype)
        if tensor.dtype.base_dtype != self._key_dtype:
            raise at_user_line(TypeError("Signature mismatch. Keys must be dtype %s, got %s." % (self._key_dtype, tensor.dtype)))
        return tensor


def _like(keys: Any, values: Tensor) -> Any:
    return SparseTensor(keys.indices, values, keys.dense_shape) if isinstance(keys, SparseTensor) else values


def _outside_control_flow() -> Any:
    """Where tables that a branch or a loop makes are made and filled: once, by tables_initializer()."""
    inside = get_default_graph()._get_control_flow_context() is not None
    return init_scope() if inside else contextlib.nullcontext()


class TableInitializerBase:
    """What fills a table."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> Any:
        """The type of keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        """The type of values."""
        return self._value_dtype

    def initialize(self, table: Any) -> Operation:
        """The operation that fills a table."""
        raise NotImplementedError

    _shared_name: Optional[str] = None  # of the tables that it fills, where these may be one

    def _check(self, table: Any) -> None:
        for what, mine, other in (("key", self._key_dtype, table.key_dtype), ("value", self._value_dtype, table.value_dtype)):
            if mine != other:
                raise at_user_line(TypeError("Invalid %s dtype, expected %s but got %s." % (what, mine, other)))


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with given keys and values."""

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: Optional[str] = None) -> None:
        with _outside_control_flow(), name_scope(name, "key_value_init", [keys, values]) as scope:
            self._keys = convert_to_tensor(keys, key_dtype, name="keys")
            self._values = convert_to_tensor(values, value_dtype, name="values")
            self._name = scope
        super().__init__(self._keys.dtype.base_dtype, self._values.dtype.base_dtype)

    def initialize(self, table: Any) -> Operation:
        """The operation that fills a table."""
        self._check(table)
        made: Operation = gen_ops.initialize_table_v2(table.table_ref, self._keys, self._values, name=self._name)
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        return made


class TextFileInitializer(TableInitializerBase):
    """Fills a table with the lines of a file."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: Optional[int] = None,
        delimiter: str = "\t",
        name: Optional[str] = None,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        is_tensor = hasattr(filename, "graph")
        if not is_tensor and not filename:
            raise at_user_line(ValueError("Filename required for table initializer"))
        for what, index, dtype in (("Key", key_index, self._key_dtype), ("Value", value_index, self._value_dtype)):
            if index < -2:
                raise at_user_line(ValueError("Invalid %s index %s." % (what.lower(), index)))
            if index == TextFileIndex.LINE_NUMBER and dtype != dtypes.int64:
                raise at_user_line(ValueError("Signature mismatch. %ss must be dtype %s, got %s." % (what, dtypes.int64, dtype)))
            if index == TextFileIndex.WHOLE_LINE and not dtype.is_integer and dtype != dtypes.string:
                raise at_user_line(ValueError("Signature mismatch. %ss must be integer or string, got %s." % (what, dtype)))
        if vocab_size is not None and vocab_size <= 0:
            raise at_user_line(ValueError("Invalid vocab_size %s." % vocab_size))
        self._filename = filename if is_tensor else os.fspath(filename)
        self._indices, self._vocab_size, self._delimiter, self._name = (key_index, value_index), vocab_size, delimiter, name

    @property
    def _shared_name(self) -> str:  # type: ignore[override]
        file = self._filename.name if hasattr(self._filename, "graph") else self._filename
        return "_".join(["hash_table", file, *(str(n) for n in (self._vocab_size, *self._indices) if n is not None)])

    def initialize(self, table: Any) -> Operation:
        """The operation that fills a table."""
        self._check(table)
        with name_scope(self._name, "text_file_init", [table.table_ref]) as scope:
            filename = convert_to_tensor(self._filename, dtypes.string, name="asset_filepath")
            made: Operation = gen_ops.initialize_table_from_text_file_v2(
                table.table_ref, filename, self._indices[0], self._indices[1], vocab_size=self._vocab_size or -1, delimiter=self._delimiter, name=scope
            )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        if filename.op.type == "Const":
            add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return made


class TextFileStringTableInitializer(TextFileInitializer):
    """From numbers to strings."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: Optional[int] = None,
        delimiter: str = "\t",
        name: Optional[str] = "text_file_string_table_init",
    ) -> None:
        super().__init__(filename, dtypes.int64, key_column_index, dtypes.string, value_column_index, vocab_size, delimiter, name)


class TextFileIdTableInitializer(TextFileInitializer):
    """From strings to numbers."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: Optional[int] = None,
        delimiter: str = "\t",
        name: Optional[str] = "text_file_id_table_init",
        key_dtype: Any = dtypes.string,
    ) -> None:
        super().__init__(filename, key_dtype, key_column_index, dtypes.int64, value_column_index, vocab_size, delimiter, name)


class InitializableLookupTableBase(LookupInterface):
    """A table that an initializer fills once."""

    def __init__(self, table_ref: Any, default_value: Any, initializer: TableInitializerBase) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype, table_ref.op.name)
        self._table_ref = table_ref
        self._default_value = convert_to_tensor(default_value, self._value_dtype)
        self._default_value.get_shape().merge_with([])
        self._init = initializer.initialize(self)

    @property
    def table_ref(self) -> Any:
        """The handle."""
        return self._table_ref

    @property
    def resource_handle(self) -> Any:
        """The handle."""
        return self._table_ref

    @property
    def default_value(self) -> Tensor:
        """What keys that are not there have."""
        return self._default_value

    @property
    def init(self) -> Any:
        """What fills the table."""
        return self._init

    def size(self, name: Optional[str] = None) -> Tensor:
        """The number of pairs."""
        return gen_ops.lookup_table_size_v2(self._table_ref, name=name or "%s_Size" % self._name)

    def lookup(self, keys: Any, name: Optional[str] = None) -> Any:
        """The values of keys, dense or sparse."""
        tensor = self._keys(keys)
        values = gen_ops.lookup_table_find_v2(self._table_ref, tensor, self._default_value, name=name or "%s_Lookup" % self._name)
        values.set_shape(tensor.get_shape())
        return _like(keys, values)


class HashTable(InitializableLookupTableBase):
    """A table that is filled once and then only read."""

    def __init__(self, initializer: TableInitializerBase, default_value: Any, shared_name: Optional[str] = None, name: Optional[str] = None) -> None:
        with _outside_control_flow(), name_scope(name, "hash_table", [default_value]) as scope:
            shared = shared_name or initializer._shared_name or ""
            table_ref = gen_ops.hash_table_v2(initializer.key_dtype, initializer.value_dtype, shared_name=shared, name=scope)
            super().__init__(table_ref, default_value, initializer)

    def export(self, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
        """(keys, values) of the whole table."""
        keys, values = gen_ops.lookup_table_export_v2(self._table_ref, self._key_dtype, self._value_dtype, name=name or "%s_Export" % self._name)
        return keys, values


class StaticHashTable(HashTable):
    """A table that is filled once and then only read."""

    def __init__(self, initializer: TableInitializerBase, default_value: Any, name: Optional[str] = None) -> None:
        super().__init__(initializer, default_value, name=name)


class IdTableWithHashBuckets(LookupInterface):
    """Numbers of a table, and for keys that it does not have numbers behind those, by their hash."""

    def __init__(self, table: Any, num_oov_buckets: int, hasher_spec: Any = FastHashSpec, name: Optional[str] = None, key_dtype: Any = None) -> None:
        if table is None and num_oov_buckets <= 0:
            raise at_user_line(ValueError("oov_buckets must be > 0 if no table is supplied."))
        if table is not None and table.value_dtype != dtypes.int64:
            raise at_user_line(TypeError("Invalid value dtype, expected %s but got %s." % (dtypes.int64, table.value_dtype)))
        key_dtype = dtypes.as_dtype(key_dtype or (table.key_dtype if table is not None else dtypes.string))
        if not key_dtype.is_integer and key_dtype != dtypes.string:
            raise at_user_line(TypeError("Invalid key_dtype, expected integer or string, got %s." % key_dtype))
        if not isinstance(hasher_spec, HasherSpec):
            raise at_user_line(TypeError("hasher_spec must be of type HasherSpec, got %s" % type(hasher_spec)))
        self._table, self._num_oov_buckets, self._hasher_spec = table, num_oov_buckets, hasher_spec
        with name_scope(name, "string_to_index") as scope:
            super().__init__(key_dtype, dtypes.int64, scope)

    @property
    def init(self) -> Any:
        """What fills the table."""
        return self._table.init if self._table is not None else control_flow_ops.no_op()

    @property
    def table_ref(self) -> Any:
        """The handle of the inner table."""
        return self._table.table_ref if self._table is not None else None

    resource_handle = table_ref

    def size(self, name: Optional[str] = None) -> Tensor:
        """The number of pairs and buckets."""
        with name_scope(name, "%s_Size" % self._name):
            known = self._table.size() if self._table is not None else convert_to_tensor(0, dtypes.int64)
            return known + convert_to_tensor(self._num_oov_buckets, dtypes.int64)

    def _buckets(self, keys: Tensor) -> Tensor:
        text = keys if keys.dtype.base_dtype == dtypes.string else string_ops.as_string(keys)
        if self._hasher_spec.hasher == "fasthash":
            return gen_ops.string_to_hash_bucket_fast(text, self._num_oov_buckets, name="hash_bucket")
        if self._hasher_spec.hasher != "stronghash":
            raise at_user_line(ValueError("hasher_spec has an unknown hash function: %s." % self._hasher_spec.hasher))
        return gen_ops.string_to_hash_bucket_strong(text, self._num_oov_buckets, list(self._hasher_spec.key), name="hash_bucket")

    def lookup(self, keys: Any, name: Optional[str] = None) -> Any:
        """The numbers of keys, dense or sparse."""
        with name_scope(name, "%s_Lookup" % self._name):
            tensor = self._keys(keys)
            if self._table is not None and self._table.key_dtype == dtypes.int64 and tensor.dtype.base_dtype != dtypes.int64:
                tensor = math_ops.cast(tensor, dtypes.int64)
            if self._num_oov_buckets <= 0:
                ids = self._table.lookup(tensor)
            elif self._table is None:
                ids = self._buckets(tensor)
            else:
                ids = self._table.lookup(tensor)
                behind = self._buckets(tensor) + self._table.size()
                ids = array_ops.where(gen_ops.not_equal(ids, self._table.default_value), ids, behind)
            return _like(keys, ids)


class StaticVocabularyTable(IdTableWithHashBuckets):
    """Numbers of a vocabulary, and of buckets for what is not in it."""

    def __init__(self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: Optional[str] = None) -> None:
        if num_oov_buckets <= 0:
            raise at_user_line(ValueError("oov_buckets must be > 0."))
        table = None if initializer is None else HashTable(initializer, -1)
        super().__init__(table, num_oov_buckets, FastHashSpec, name or "vocabulary_table", lookup_key_dtype)


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: Optional[int] = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: Any = dtypes.string,
    name: Optional[str] = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table of the numbers of a file's lines."""
    if not hasattr(vocabulary_file, "graph") and not vocabulary_file:
        raise at_user_line(ValueError("vocabulary_file must be specified and must not be empty."))
    _check_buckets(num_oov_buckets, vocab_size, vocabulary_file)
    key_dtype = _key_type(key_dtype)
    with name_scope(name, "string_to_index") as scope:
        initializer = TextFileIdTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init", dtypes.int64 if key_dtype.is_integer else key_dtype
        )
        shared = (
            "" if hasattr(vocabulary_file, "graph") else "hash_table_%s_%s_%s_%s" % (vocabulary_file, vocab_size or -1, key_column_index, value_column_index)
        )
        with name_scope(None, "hash_table") as inner:
            table: Any = HashTable(initializer, default_value, shared_name=shared, name=inner)
        return _with_buckets(table, num_oov_buckets, hasher_spec, scope, key_dtype)


def index_table_from_tensor(
    vocabulary_list: Any = None,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = dtypes.string,
    name: Optional[str] = None,
    mapping: Any = None,
) -> Any:
    """A table of the places of strings or integers in a list."""
    vocabulary_list = mapping if vocabulary_list is None else vocabulary_list
    if vocabulary_list is None:
        raise at_user_line(ValueError("vocabulary_list must be specified."))
    _check_buckets(num_oov_buckets, None)
    with name_scope(name, "string_to_index") as scope:
        keys = convert_to_tensor(vocabulary_list, None if hasattr(vocabulary_list, "graph") else _key_type(dtype))
        key_dtype = _key_type(keys.dtype.base_dtype)
        if key_dtype.is_integer and key_dtype != dtypes.int64:
            keys = math_ops.cast(keys, dtypes.int64)
        count = keys.get_shape().num_elements()
        values = math_ops.cast(math_ops.range(array_ops.size(keys)), dtypes.int64) if count is None else list(range(count))
        initializer = KeyValueTensorInitializer(keys, values, keys.dtype, dtypes.int64, name="table_init")
        with name_scope(None, "hash_table") as inner:
            table = HashTable(initializer, default_value, name=inner)
        return _with_buckets(table, num_oov_buckets, hasher_spec, scope, key_dtype)


def _check_buckets(num_oov_buckets: int, vocab_size: Optional[int], vocabulary_file: Any = "") -> None:
    if num_oov_buckets < 0:
        raise at_user_line(ValueError("num_oov_buckets must be greater or equal than 0, got %d." % num_oov_buckets))
    if vocab_size is not None and vocab_size < 1:
        known = constant_value(vocabulary_file) if isinstance(vocabulary_file, Tensor) else None
        path = vocabulary_file if known is None else np.ravel(known)[0].decode(errors="replace")
        raise at_user_line(ValueError("vocab_size must be greater than 0, got %s. vocabulary_file: %s" % (vocab_size, path)))


def _key_type(dtype: Any) -> Any:
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer and dtype != dtypes.string:
        raise at_user_line(TypeError("Only integer and string keys are supported."))
    return dtype


def _with_buckets(table: Any, num_oov_buckets: int, hasher_spec: Any, scope: str, key_dtype: Any) -> Any:
    if not num_oov_buckets and key_dtype == table.key_dtype:
        return table
    return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, scope, key_dtype)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: Optional[int] = None,
    default_value: str = "UNK",
    name: Optional[str] = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> Any:
    """A table of a file's lines by their numbers."""
    if not hasattr(vocabulary_file, "graph") and not vocabulary_file:
        raise at_user_line(ValueError("vocabulary_file must be specified."))
    _check_buckets(0, vocab_size, vocabulary_file)
    with name_scope(name, "index_to_string") as scope:
        shared = (
            "" if hasattr(vocabulary_file, "graph") else "hash_table_%s_%s_%s_%s" % (vocabulary_file, vocab_size or -1, key_column_index, value_column_index)
        )
        initializer = TextFileStringTableInitializer(vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init")
        return HashTable(initializer, default_value, shared_name=shared, name=scope)


def index_to_string_table_from_tensor(vocabulary_list: Any = None, default_value: str = "UNK", name: Optional[str] = None, mapping: Any = None) -> Any:
    """A table of strings by their places in a list."""
    vocabulary_list = mapping if vocabulary_list is None else vocabulary_list
    if vocabulary_list is None:
        raise at_user_line(ValueError("vocabulary_list must be specified."))
    with name_scope(name, "index_to_string") as scope:
        values = convert_to_tensor(vocabulary_list, dtypes.string)
        count = values.get_shape().num_elements()
        keys = math_ops.cast(math_ops.range(array_ops.size(values)), dtypes.int64) if count is None else list(range(count))
        initializer = KeyValueTensorInitializer(keys, values, dtypes.int64, dtypes.string, name="table_init")
        return HashTable(initializer, default_value, name=scope)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: Optional[str] = None) -> Any:
    """The places of strings in a list."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: Optional[str] = None) -> Any:
    """The strings at places of a list."""
    return index_to_string_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


class _ChangingTable(LookupInterface):
    """A table to which pairs are added as the program goes. With `checkpoint`, savers keep its pairs."""

    _table_ref: Any
    _default_value: Tensor
    _key_shape = TensorShape([])

    def _start(self, default_value: Any, checkpoint: bool) -> None:
        self._default_value = convert_to_tensor(default_value, self._value_dtype)
        if checkpoint:
            add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self)

    @property
    def table_ref(self) -> Any:
        """The handle."""
        return self._table_ref

    resource_handle = table_ref

    @property
    def default_value(self) -> Tensor:
        """What keys that are not there have."""
        return self._default_value

    @property
    def init(self) -> Any:
        """Nothing: the table is empty at first."""
        return control_flow_ops.no_op()

    def _op(self, what: str) -> Any:
        return getattr(gen_ops, "lookup_table_" + what + ("" if self._table_ref.dtype.base_dtype == dtypes.string else "_v2"))

    def size(self, name: Optional[str] = None) -> Tensor:
        """The number of pairs."""
        return self._op("size")(self._table_ref, name=name or "%s_Size" % self._name)

    def lookup(self, keys: Any, name: Optional[str] = None, dynamic_default_values: Any = None) -> Any:
        """The values of keys."""
        tensor = self._keys(keys)
        default = self._default_value if dynamic_default_values is None else convert_to_tensor(dynamic_default_values, self._value_dtype)
        values = self._op("find")(self._table_ref, tensor, default, name=name or "%s_lookup_table_find" % self._name)
        self._shape(values, tensor)
        return _like(keys, values)

    def _shape(self, values: Tensor, keys: Tensor) -> None:
        values.set_shape(keys.get_shape().concatenate(self._default_value.get_shape()))

    def insert(self, keys: Any, values: Any, name: Optional[str] = None) -> Operation:
        """Adds pairs."""
        values = convert_to_tensor(values, self._value_dtype)
        return self._op("insert")(self._table_ref, self._keys(keys), values, name=name or "%s_lookup_table_insert" % self._name)

    def remove(self, keys: Any, name: Optional[str] = None) -> Operation:
        """Takes pairs out."""
        return gen_ops.lookup_table_remove_v2(self._table_ref, self._keys(keys), name=name or "%s_lookup_table_remove" % self._name)

    erase = remove

    def export(self, name: Optional[str] = None) -> Tuple[Tensor, Tensor]:
        """All keys and all values."""
        keys, values = self._op("export")(self._table_ref, self._key_dtype, self._value_dtype, name=name or "%s_lookup_table_export_values" % self._name)
        keys.set_shape(TensorShape([None]).concatenate(self._key_shape))
        values.set_shape(TensorShape([None]).concatenate(self._default_value.get_shape()))
        return keys, values

    def _import(self, keys: Any, values: Any) -> Operation:
        return self._op("import")(self._table_ref, keys, values)  # type: ignore[no-any-return]


class MutableHashTable(_ChangingTable):
    """A table of scalar keys that changes."""

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, shared_name: Optional[str] = None, name: str = "MutableHashTable", checkpoint: bool = True
    ) -> None:
        default = convert_to_tensor(default_value, dtypes.as_dtype(value_dtype))
        share: Dict[str, Any] = {"shared_name": shared_name or "", "use_node_name_sharing": checkpoint and not shared_name}
        if default.get_shape().ndims == 0:
            self._table_ref = gen_ops.mutable_hash_table_v2(key_dtype, value_dtype, name=name, **share)
        else:
            self._table_ref = gen_ops.mutable_hash_table_of_tensors_v2(key_dtype, value_dtype, value_shape=default.get_shape(), name=name, **share)
        super().__init__(key_dtype, value_dtype, self._table_ref.op.name)
        self._start(default, checkpoint)


class MutableDenseHashTable(_ChangingTable):
    """A table in one array of buckets, that changes. Without a deleted_key nothing can be removed from it."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any = None,
        initial_num_buckets: Optional[int] = None,
        shared_name: Optional[str] = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        default = convert_to_tensor(default_value, dtypes.as_dtype(value_dtype), name="default_value")
        empty = convert_to_tensor(empty_key, dtypes.as_dtype(key_dtype), name="empty_key")
        options: Dict[str, Any] = {
            "shared_name": shared_name or "",
            "use_node_name_sharing": checkpoint and not shared_name,
            "value_shape": default.get_shape(),
            "initial_num_buckets": initial_num_buckets or 2**17,
            "name": name,
        }
        if deleted_key is None:
            self._table_ref = gen_ops.mutable_dense_hash_table(empty, value_dtype, **options)
        else:
            deleted = convert_to_tensor(deleted_key, dtypes.as_dtype(key_dtype), name="deleted_key")
            self._table_ref = gen_ops.mutable_dense_hash_table_v2(empty, deleted, value_dtype, **options)
        self._key_shape = empty.get_shape()
        super().__init__(key_dtype, value_dtype, self._table_ref.op.name)
        self._start(default, checkpoint)

    def insert_or_assign(self, keys: Any, values: Any, name: Optional[str] = None) -> Operation:
        """Adds pairs, or replaces the values of keys that are there: what `insert` does."""
        return self.insert(keys, values, name)

    def _shape(self, values: Tensor, keys: Tensor) -> None:
        rank = keys.get_shape().ndims
        if self._key_shape.ndims is not None and rank is not None:
            front = keys.get_shape()[: rank - self._key_shape.ndims]
            values.set_shape(front.concatenate(self._default_value.get_shape()))


class DenseHashTable(MutableDenseHashTable):
    """MutableDenseHashTable as tf.lookup.experimental has it: always with a deleted_key, shared under no other name."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: Optional[int] = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, empty_key, deleted_key, initial_num_buckets, None, name, checkpoint)


def tables_initializer(name: str = "init_all_tables") -> Any:
    """An operation that fills the tables."""
    found: List[Any] = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return control_flow_ops.group(*found, name=name) if found else control_flow_ops.no_op(name)


def initialize_all_tables(name: str = "init_all_tables") -> Any:
    """An operation that fills the tables."""
    return tables_initializer(name)
