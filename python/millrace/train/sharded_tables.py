# SPDX-License-Identifier: Apache-2.0
"""Hash tables in several parts."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import control_flow_ops, gen_ops, math_ops
from millrace.ops.lookup_ops import LookupInterface, MutableDenseHashTable


class ShardedMutableDenseHashTable(LookupInterface):
    """A MutableDenseHashTable in num_shards parts: a key's (first) number, modulo their count, says which. The shape of keys must be known."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any = None,
        num_shards: int = 1,
        checkpoint: bool = True,
        name: str = "ShardedMutableHashTable",
    ) -> None:
        with name_scope(name, "sharded_mutable_hash_table") as scope:
            super().__init__(key_dtype, value_dtype, scope)
            self._table_shards = [
                MutableDenseHashTable(
                    key_dtype, value_dtype, default_value, empty_key, deleted_key, checkpoint=checkpoint, name="%s-%d-of-%d" % (name, i + 1, num_shards)
                )
                for i in range(num_shards)
            ]
        self._value_shape = convert_to_tensor(default_value, dtypes.as_dtype(value_dtype)).get_shape()

    table_shards = property(lambda self: self._table_shards, doc="The parts.")

    def size(self, name: Optional[str] = None) -> Any:
        """How many keys it has."""
        with name_scope(name, "sharded_mutable_hash_table_size"):
            return math_ops.add_n([shard.size() for shard in self._table_shards])

    def _parts(self, keys: Any, values: Any) -> List[Any]:
        """What of `values` belongs to each part."""
        first = keys if keys.get_shape().ndims == 1 else keys[:, 0]
        number = math_ops.cast(math_ops.mod(math_ops.abs(first), len(self._table_shards)), dtypes.int32)
        return list(gen_ops.dynamic_partition(values, number, len(self._table_shards)))

    @staticmethod
    def _check(keys: Any) -> None:
        shape = keys.get_shape()
        if not shape.is_fully_defined():
            raise at_user_line(ValueError("Key shape must be fully defined, got %s." % shape))
        if shape.ndims not in (1, 2):
            raise at_user_line(ValueError("Expected a vector or matrix for keys, got %s." % shape))

    def lookup(self, keys: Any, name: Optional[str] = None) -> Any:
        """The values of keys, the default where there is none."""
        if keys.dtype.base_dtype != self._key_dtype:
            raise at_user_line(TypeError("Signature mismatch. Keys must be dtype %s, got %s." % (self._key_dtype, keys.dtype)))
        self._check(keys)
        count = keys.get_shape()[0].value
        found = [shard.lookup(part, name=name) for shard, part in zip(self._table_shards, self._parts(keys, keys))]
        made = gen_ops.dynamic_stitch(self._parts(keys, math_ops.range(count)), found)
        made.set_shape(keys.get_shape()[:1].concatenate(self._value_shape))
        return made

    def insert(self, keys: Any, values: Any, name: Optional[str] = None) -> Any:
        """An operation that gives keys values."""
        self._check(keys)
        pairs = zip(self._table_shards, self._parts(keys, keys), self._parts(keys, values))
        return control_flow_ops.group(*[shard.insert(part, of_part, name=name) for shard, part, of_part in pairs])

    def export_sharded(self, name: Optional[str] = None) -> Tuple[List[Any], List[Any]]:
        """(the keys of each part, their values), with what stands for none."""
        made = [shard.export(name=name) for shard in self._table_shards]
        return [keys for keys, _ in made], [values for _, values in made]
