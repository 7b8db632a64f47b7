# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.composite_tensor_utils: sparse and ragged tensors, and their values, one behind the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from millrace.framework.composite_tensors import SparseTensor, SparseTensorValue
from millrace.framework.errors import at_user_line
from millrace.ops import sparse_math_ops
from millrace.ops.ragged.arrays import concat
from millrace.ops.ragged.tensor import RaggedTensor
from millrace.ops.ragged.value import RaggedTensorValue


def is_composite_or_composite_value(tensor: Any) -> bool:
    """Whether it is a sparse or ragged tensor, or the value of one."""
    return isinstance(tensor, (SparseTensor, SparseTensorValue, RaggedTensor, RaggedTensorValue))


def append_composite_tensor(target: Any, to_append: Any) -> Any:
    """The rows of both, those of `target` first. RuntimeError where they are not of one kind, or neither sparse nor ragged."""
    if type(target) is not type(to_append):
        raise at_user_line(RuntimeError("Unable to concatenate %s and %s" % (type(target), type(to_append))))
    if isinstance(target, SparseTensor):
        return sparse_math_ops.sparse_concat(0, [target, to_append])
    if isinstance(target, RaggedTensor):
        return concat([target, to_append], 0)
    if isinstance(target, SparseTensorValue):
        return _sparse_rows(target, to_append)
    if isinstance(target, RaggedTensorValue):
        return _ragged_rows(target, to_append)
    raise at_user_line(RuntimeError("Attempted to concatenate unsupported object %s." % type(target)))


def _sparse_rows(first: SparseTensorValue, second: SparseTensorValue) -> SparseTensorValue:
    shapes = [np.asarray(part.dense_shape) for part in (first, second)]
    if shapes[0].shape != shapes[1].shape or (shapes[0][1:] != shapes[1][1:]).any():
        raise at_user_line(ValueError("Sparse tensors of shapes %s and %s have rows of different shapes" % tuple(shape.tolist() for shape in shapes)))
    further = np.zeros_like(shapes[0])
    further[0] = shapes[0][0]
    indices = np.concatenate([np.asarray(first.indices), np.asarray(second.indices) + further])
    rows = shapes[1].copy()
    rows[0] += shapes[0][0]
    return SparseTensorValue(indices, np.concatenate([np.asarray(first.values), np.asarray(second.values)]), rows)


def _ragged_rows(first: Any, second: Any) -> Any:
    if not isinstance(first, RaggedTensorValue):
        return np.concatenate([np.asarray(first), np.asarray(second)])
    splits = np.concatenate([np.asarray(first.row_splits), np.asarray(second.row_splits)[1:] + np.asarray(first.row_splits)[-1]])
    return RaggedTensorValue(_ragged_rows(first.values, second.values), splits)
