# SPDX-License-Identifier: Apache-2.0
"""How variables are cut into parts."""

from __future__ import annotations

import math
from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape


class PartitionInfo:
    """What an initializer is told of the part that it initializes: where it lies in the whole."""

    def __init__(self, full_shape: Any, var_offset: Any) -> None:
        for value, what in ((full_shape, "full_shape"), (var_offset, "var_offset")):
            if not isinstance(value, (list, tuple)):
                raise at_user_line(TypeError("`%s` must be a sequence (like tuple or list) instead of %s" % (what, type(value).__name__)))
        if len(full_shape) != len(var_offset):
            raise at_user_line(
                ValueError("Expected equal length, but `var_offset` is of length %d while full_shape is of length %d." % (len(var_offset), len(full_shape)))
            )
        for i, (offset, size) in enumerate(zip(var_offset, full_shape)):
            if offset < 0 or offset >= size:
                raise at_user_line(ValueError("Expected 0 <= offset < shape but found offset=%d, shape=%d for dimension %d" % (offset, size, i)))
        self._full_shape, self._var_offset = list(full_shape), list(var_offset)

    full_shape = property(lambda self: self._full_shape, doc="The shape of the whole.")
    var_offset = property(lambda self: self._var_offset, doc="Where the part begins.")

    def single_slice_dim(self, shape: Any) -> Optional[int]:
        """The dimension along which parts of this shape are cut; None where they are not."""
        if not isinstance(shape, (list, tuple)):
            raise at_user_line(TypeError("`shape` must be a sequence (like tuple or list) instead of %s" % type(shape).__name__))
        if len(shape) != len(self._full_shape):
            raise at_user_line(
                ValueError(
                    "Expected equal length, but received shape=%s of length %d while self.full_shape=%s is of length %d."
                    % (shape, len(shape), self._full_shape, len(self._full_shape))
                )
            )
        for i, (offset, part, size) in enumerate(zip(self._var_offset, shape, self._full_shape)):
            if offset + part > size:
                raise at_user_line(
                    ValueError(
                        "With self.var_offset=%s, a partition of shape=%s would exceed self.full_shape=%s in dimension %d."
                        % (self._var_offset, shape, self._full_shape, i)
                    )
                )
        cut = [i for i, (part, size) in enumerate(zip(shape, self._full_shape)) if part != size]
        if len(cut) > 1:
            raise at_user_line(
                ValueError(
                    "Cannot use single_slice_dim() with shape=%s and self.full_shape=%s since slice dim could be either "
                    "dimension %d or %d." % (shape, self._full_shape, cut[1], cut[0])
                )
            )
        return cut[0] if cut else None

    def single_offset(self, shape: Any) -> int:
        """Where the part begins in that dimension."""
        cut = self.single_slice_dim(shape)
        return 0 if cut is None else int(self._var_offset[cut])


def partitions_of(partitioner: Any, shape: TensorShape, dtype: Any) -> List[int]:
    """What a partitioner says: into how many parts each dimension is cut."""
    partitions = partitioner(shape=shape, dtype=dtype)
    if not isinstance(partitions, (list, tuple)):
        raise at_user_line(ValueError("Partitioner must return a sequence, but saw: %s" % (partitions,)))
    if len(partitions) != shape.ndims:
        raise at_user_line(ValueError("Partitioner returned a partition list that does not match the Variable's rank: %s vs. %s" % (partitions, shape)))
    if any(p < 1 for p in partitions):
        raise at_user_line(ValueError("Partitioner returned zero partitions for some axes: %s" % (partitions,)))
    if sum(p > 1 for p in partitions) > 1:
        raise at_user_line(ValueError("Can only slice a variable along one dimension: shape: %s, partitioning: %s" % (shape, partitions)))
    for size, p in zip(shape.as_list(), partitions):
        if p > 1 and p > (size or 0):
            raise at_user_line(ValueError("Cannot create %d slices for size %d. shape: %s, slicing: %s" % (p, size or 0, shape, partitions)))
    return [int(p) for p in partitions]


# ---- partitioners ----


def _checked(shape: Any, dtype: Any, bytes_per_string_element: int) -> int:
    """The bytes of an element, after a look at what the partitioner was given."""
    if not isinstance(shape, TensorShape):
        raise at_user_line(ValueError("shape is not a TensorShape: %s" % (shape,)))
    if not shape.is_fully_defined():
        raise at_user_line(ValueError("shape is not fully defined: %s" % shape))
    if not isinstance(dtype, dtypes.DType):
        raise at_user_line(ValueError("dtype is not a DType: %s" % (dtype,)))
    return bytes_per_string_element if dtype.base_dtype == dtypes.string else int(dtype.size)


def _along(shape: TensorShape, axis: int, count: int) -> List[int]:
    parts = [1] * len(shape)
    parts[axis] = max(1, count)
    return parts


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Any:
    """A partitioner that splits an axis into a number of parts."""

    def partitioner(shape: Any, **unused: Any) -> List[int]:
        return _along(shape, axis, min(num_shards, shape[axis].value))

    return partitioner


def min_max_variable_partitioner(max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16) -> Any:
    """A partitioner that makes parts of at least min_slice_size bytes: one part where max_partitions is 0."""
    if max_partitions < 0:
        raise at_user_line(ValueError("max_partitions must not be negative: %s" % max_partitions))
    for value, what in ((min_slice_size, "min_slice_size"), (bytes_per_string_element, "bytes_per_string_element")):
        if value < 1:
            raise at_user_line(ValueError("%s must be positive: %s" % (what, value)))

    def partitioner(shape: Any, dtype: Any) -> List[int]:
        total = (shape.num_elements() or 0) * _checked(shape, dtype, bytes_per_string_element)
        return _along(shape, axis, max(1, min(shape[axis].value, max_partitions, -(-total // min_slice_size))))

    return partitioner


def variable_axis_size_partitioner(max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: Optional[int] = None) -> Any:
    """A partitioner that makes parts of at most max_shard_bytes, where one row is not more."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise at_user_line(ValueError("Both max_shard_bytes and bytes_per_string_element must be positive."))
    if max_shards is not None and max_shards < 1:
        raise at_user_line(ValueError("max_shards must be positive."))

    def partitioner(shape: Any, dtype: Any) -> List[int]:
        size = _checked(shape, dtype, bytes_per_string_element)
        row = size * (shape.num_elements() or 0) / max(1, shape[axis].value)
        rows = max(1, math.floor(max_shard_bytes / row)) if row else max(1, shape[axis].value)
        count = -(-shape[axis].value // rows)
        return _along(shape, axis, min(count, max_shards) if max_shards else count)

    return partitioner
