# SPDX-License-Identifier: Apache-2.0
"""Values of several arrays: what sparse and ragged inputs of models are fed with, and what such outputs give."""

from __future__ import annotations

from typing import Any, List

import numpy as np

from millrace.framework.composite_tensors import CompositeTensor, SparseTensor, SparseTensorValue
from millrace.framework.errors import at_user_line
from millrace.ops.ragged.tensor import RaggedTensor
from millrace.ops.ragged.value import RaggedTensorValue


def is_composite(x: Any) -> bool:
    """Whether it is a sparse or ragged tensor, or the value of one."""
    return isinstance(x, (CompositeTensor, SparseTensorValue, RaggedTensorValue))


def fed_as(value: Any, tensor: Any) -> Any:
    """A value as an input takes it: SciPy's matrices as sparse values, or by rows where the input is dense. ValueError where ragged dimensions differ."""
    if hasattr(value, "tocoo"):
        by_rows = value.tocsr()
        return _of_scipy(by_rows) if isinstance(tensor, SparseTensor) else by_rows
    if isinstance(value, RaggedTensorValue) and isinstance(tensor, RaggedTensor) and value.ragged_rank != tensor.ragged_rank:
        raise at_user_line(
            ValueError(
                "Error when checking input: the value and the input don't have the same nested structure: they have %d and %d ragged dimensions"
                % (value.ragged_rank, tensor.ragged_rank)
            )
        )
    return value


def _of_scipy(matrix: Any) -> SparseTensorValue:
    matrix.sort_indices()
    parts = matrix.tocoo()
    return SparseTensorValue(np.stack([parts.row, parts.col], 1).astype(np.int64), parts.data, np.array(parts.shape, np.int64))


def rows_of(value: Any, at: Any) -> Any:
    """The rows of a value at a slice or at places, as such a value."""
    chosen = np.arange(value.shape[0])[at]
    if isinstance(value, RaggedTensorValue):
        begins, ends = value.row_splits[:-1][chosen], value.row_splits[1:][chosen]
        inner = np.concatenate([np.arange(begin, end) for begin, end in zip(begins, ends)] or [np.zeros(0, np.int64)])
        values = rows_of(value.values, inner) if isinstance(value.values, RaggedTensorValue) else value.values[inner]
        return RaggedTensorValue(values, np.concatenate([[0], np.cumsum(ends - begins)]).astype(value.row_splits.dtype))
    place = np.full(value.shape[0], -1)
    place[chosen] = np.arange(len(chosen))
    indices = np.array(value.indices, np.int64).reshape(-1, len(value.dense_shape))
    indices[:, 0] = place[indices[:, 0]]
    order = np.lexsort(indices.T[::-1])
    order = order[indices[order, 0] >= 0]
    return SparseTensorValue(indices[order], np.asarray(value.values)[order], np.array([len(chosen), *value.dense_shape[1:]], np.int64))


def joined(values: List[Any]) -> Any:
    """What batches gave, as one value of all rows. RuntimeError where sparse ones differ in other dimensions than the first."""
    if isinstance(values[0], RaggedTensorValue):
        offsets = np.cumsum([0, *(v.row_splits[-1] for v in values)])
        splits = [v.row_splits[1:] + offset for v, offset in zip(values, offsets)]
        return RaggedTensorValue(joined([v.values for v in values]), np.concatenate([[0], *splits]).astype(values[0].row_splits.dtype))
    if not isinstance(values[0], SparseTensorValue):
        return np.concatenate(values)
    shapes = np.array([v.dense_shape for v in values], np.int64)
    if (shapes[:, 1:] != shapes[0, 1:]).any():
        raise at_user_line(RuntimeError("Unable to concatenate sparse outputs of batches: their shapes are %s" % shapes.tolist()))
    indices = [np.array(v.indices) for v in values]
    for part, offset in zip(indices, np.cumsum([0, *shapes[:, 0]])):
        part[:, 0] += offset
    return SparseTensorValue(np.concatenate(indices), np.concatenate([v.values for v in values]), np.array([shapes[:, 0].sum(), *shapes[0, 1:]], np.int64))
