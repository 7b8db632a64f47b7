# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors on their way through a queue: a table of the session keeps them, and the queue has their numbers."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, colocate_with
from millrace.ops import array_ops, control_flow_ops, gen_ops, sparse_ops


class _Table:
    """The operation that put in a sparse tensor, by which it is found again."""

    def __init__(self, op: Operation, dtype: Any, rank: Optional[int]) -> None:
        self.op, self.dtype, self.rank = op, dtype, rank

    def take(self, handles: Tensor) -> SparseTensor:
        """The sparse tensors of a batch, as one with one more dimension."""
        with colocate_with(self.op):
            found = gen_ops.take_many_sparse_from_tensors_map(handles, dtype=self.dtype, shared_name=self.op.get_attr("shared_name") or self.op.name)
        rank = None if self.rank is None else self.rank + 1
        found[0].set_shape([None, rank])
        found[2].set_shape([rank])
        return SparseTensor(found[0], found[1], found[2])


def _put(sparse: SparseTensor, table: Optional[_Table], many: bool) -> Tensor:
    add = gen_ops.add_many_sparse_to_tensors_map if many else gen_ops.add_sparse_to_tensors_map
    return add(sparse.indices, sparse.values, sparse.dense_shape, shared_name=table.op.name if table else "")


def _handles(sparse: SparseTensor, table: Optional[_Table], enqueue_many: bool, keep: Tensor) -> Tensor:
    """The number of a sparse tensor, or of each of its rows; -1 for what is not kept."""
    if keep.get_shape().ndims == 1:
        return _put(sparse_ops.sparse_retain(sparse, array_ops.gather(keep, sparse.indices[:, 0])), table, True)
    if not enqueue_many:
        return control_flow_ops.smart_cond(keep, lambda: _put(sparse, table, False), lambda: constant(-1, dtypes.int64))
    handles = control_flow_ops.smart_cond(keep, lambda: _put(sparse, table, True), lambda: -1 * array_ops.ones(array_ops.shape(sparse)[0:1], dtypes.int64))
    handles.set_shape([None])
    return handles


def _table_of(handles: Tensor, sparse: SparseTensor, enqueue_many: bool) -> _Table:
    op = handles.op
    for source in op.inputs:  # of a conditional
        if source.op.type in ("AddSparseToTensorsMap", "AddManySparseToTensorsMap"):
            op = source.op
    rank = sparse.dense_shape.get_shape().with_rank(1)[0].value
    return _Table(op, sparse.values.dtype.base_dtype, rank if rank is None or not enqueue_many else rank - 1)


def _store_one(tensor: Any, table: Optional[_Table], enqueue_many: bool, keep: Tensor) -> Tuple[Tensor, Optional[_Table]]:
    if not isinstance(tensor, SparseTensor):
        return tensor, None
    if not hasattr(gen_ops, "add_sparse_to_tensors_map"):
        raise at_user_line(NotImplementedError("Sparse tensors in batches are not provided yet: use dense tensors, or tf.serialize_sparse."))
    handles = _handles(tensor, table, enqueue_many, keep)
    found = table or _table_of(handles, tensor, enqueue_many)
    return array_ops.expand_dims(handles, -1), found


def store(lists: Sequence[List[Any]], enqueue_many: bool, keep: Tensor) -> Tuple[List[List[Tensor]], List[Optional[_Table]]]:
    """The lists with numbers in place of sparse tensors, and for each place the table, or None where the tensor is dense."""
    stored: List[List[Tensor]] = []
    tables: List[Optional[_Table]] = [None] * len(lists[0])
    for number, tensors in enumerate(lists):
        if number and [isinstance(t, SparseTensor) for t in tensors] != [table is not None for table in tables]:
            raise at_user_line(ValueError("Inconsistent SparseTensors list: %s vs. %s" % (lists[0], tensors)))
        pairs = [_store_one(tensor, table, enqueue_many, keep) for tensor, table in zip(tensors, tables)]
        stored.append([handles for handles, _ in pairs])
        tables = [table for _, table in pairs]
    return stored, tables


def restore(batch: Sequence[Tensor], tables: Sequence[Optional[_Table]]) -> List[Any]:
    """A batch with the sparse tensors again. Whatever is asked for of it, all are taken out of their tables."""
    made = [tensor if table is None else table.take(array_ops.squeeze(tensor, [1])) for tensor, table in zip(batch, tables)]
    if not any(isinstance(m, SparseTensor) for m in made):
        return made
    all_values = [m.values if isinstance(m, SparseTensor) else m for m in made]

    def after(tensor: Tensor) -> Any:
        return control_flow_ops.with_dependencies(all_values, tensor)

    return [SparseTensor(after(m.indices), after(m.values), after(m.dense_shape)) if isinstance(m, SparseTensor) else after(m) for m in made]
