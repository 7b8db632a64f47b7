# SPDX-License-Identifier: Apache-2.0
"""States of models: one for each series of a batch, and tables of them by chunks of time."""

from __future__ import annotations

from typing import Any

from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Operation, Tensor, control_dependencies
from millrace.ops import array_ops
from millrace.ops.control_flow_ops import group
from millrace.ops.lookup_ops import LookupInterface, MutableDenseHashTable


def replicate_state(start_state: Any, batch_size: Any) -> Any:
    """A nested state of tensors [...], each repeated to [batch_size, ...]."""

    def repeated(part: Any) -> Tensor:
        times = array_ops.concat([[batch_size], array_ops.ones([array_ops.rank(part)], dtypes.int32)], 0)
        return array_ops.tile(array_ops.expand_dims(part, 0), times)

    return nest.map_structure(repeated, start_state)


def batch_start_time(times: Any) -> Any:
    """The first times [batch] of windows [batch, window]."""
    return times[:, 0]


def batch_end_time(times: Any) -> Any:
    """The last times [batch] of windows [batch, window]."""
    return times[:, -1]


class TensorValuedMutableDenseHashTable(MutableDenseHashTable):
    """A table whose values are tensors of any one shape, that of default_value; keys may have any shape too."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, *args: Any, **kwargs: Any) -> None:
        self._shape_of_value = array_ops.shape(default_value)
        super().__init__(key_dtype, value_dtype, array_ops.reshape(default_value, [-1]), *args, **kwargs)

    def insert(self, keys: Any, values: Any, name: Any = None) -> Operation:
        """Puts values [..., value] in at keys [...]."""
        keys = array_ops.reshape(convert_to_tensor(keys, self.key_dtype), [-1])
        return super().insert(keys, array_ops.reshape(values, [array_ops.size(keys), -1]), name)

    def lookup(self, keys: Any, name: Any = None) -> Tensor:  # type: ignore[override]
        """The values [..., value] of keys [...]."""
        keys = convert_to_tensor(keys, self.key_dtype)
        found = super().lookup(array_ops.reshape(keys, [-1]), name)
        return array_ops.reshape(found, array_ops.concat([array_ops.shape(keys), self._shape_of_value], 0))


class TupleOfTensorsLookup(LookupInterface):
    """A table whose values are nested tuples of tensors, like default_values: one table for each tensor, called name_0, name_1 and so on."""

    def __init__(self, key_dtype: Any, default_values: Any, empty_key: Any, deleted_key: Any, name: str, checkpoint: bool = True) -> None:
        tables = [
            TensorValuedMutableDenseHashTable(
                key_dtype, part.dtype.base_dtype, part, empty_key=empty_key, deleted_key=deleted_key, name="%s_%d" % (name, i), checkpoint=checkpoint
            )
            for i, part in enumerate(nest.flatten(default_values))
        ]
        self._tables = nest.pack_sequence_as(default_values, tables)
        self._name = name

    def lookup(self, keys: Any) -> Any:  # type: ignore[override]
        """The values of keys, each tensor [keys, ...]."""
        return nest.map_structure(lambda table: table.lookup(keys), self._tables)

    def insert(self, keys: Any, values: Any) -> Operation:
        """Puts values in at keys: into every table, when all values are there."""
        nest.assert_same_structure(self._tables, values)
        there = [array_ops.identity(value) for value in nest.flatten(values)]
        with control_dependencies(there):
            return group(*[table.insert(keys, value) for table, value in zip(nest.flatten(self._tables), there)])

    def check_table_dtypes(self, key_dtype: Any, value_dtype: Any) -> None:
        """Nothing: each table checks its own."""
