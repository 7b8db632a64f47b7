# SPDX-License-Identifier: Apache-2.0
"""Methods of variables that change or read some of their rows."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops


class ScatteredRows:
    """What tf.Variable has for rows. Each gives an operation whose value is the variable after the change."""

    _variable: Any
    _dtype: Any
    _is_resource: bool

    def _after(self, operation: Any, read: bool) -> Any:
        raise NotImplementedError

    def _scattered(self, kind: str, delta: Any, use_locking: bool, name: Optional[str]) -> Tensor:
        if not isinstance(delta, IndexedSlices):
            raise at_user_line(TypeError("sparse_delta is not IndexedSlices: %s" % (delta,)))
        if self._is_resource:
            return self._after(getattr(gen_ops, "resource_scatter_" + kind)(self._variable, delta.indices, delta.values, name=name), True)
        made: Tensor = getattr(gen_ops, "scatter_" + kind)(self._variable, delta.indices, delta.values, use_locking=use_locking, name=name)
        return made

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Tensor:
        """Adds rows (IndexedSlices) to it."""
        return self._scattered("add", sparse_delta, use_locking, name)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Tensor:
        """Subtracts rows (IndexedSlices) from it."""
        return self._scattered("sub", sparse_delta, use_locking, name)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Tensor:
        """Multiplies some rows by others (IndexedSlices)."""
        return self._scattered("mul", sparse_delta, use_locking, name)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Tensor:
        """Divides some rows by others (IndexedSlices)."""
        return self._scattered("div", sparse_delta, use_locking, name)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Tensor:
        """The larger ones of some rows and others (IndexedSlices)."""
        return self._scattered("max", sparse_delta, use_locking, name)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Tensor:
        """The smaller ones of some rows and others (IndexedSlices)."""
        return self._scattered("min", sparse_delta, use_locking, name)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Tensor:
        """Sets some rows (IndexedSlices)."""
        return self._scattered("update", sparse_delta, use_locking, name)

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: Optional[str] = None) -> Any:
        """Sets rows (IndexedSlices) in each of the batches that the axes of the indices but the last one number."""
        del use_locking  # each row is written whole
        with name_scope(name, "batch_scatter_update"):
            indices = math_ops.cast(convert_to_tensor(sparse_delta.indices), dtypes.int32)
            shape, count = array_ops.shape(indices), indices.get_shape().ndims
            if count is None:
                raise at_user_line(ValueError("indices of batch_scatter_update must have a known rank"))
            places = []
            for axis in range(count - 1):  # where in the batch each index stands
                along = array_ops.reshape(math_ops.range(shape[axis]), [-1 if i == axis else 1 for i in range(count)])
                places.append(gen_ops.broadcast_to(along, shape))
            return self.scatter_nd_update(array_ops.stack([*places, indices], -1), sparse_delta.values)

    def _scattered_nd(self, kind: str, indices: Any, updates: Any, name: Optional[str]) -> Tensor:
        if self._is_resource:
            return self._after(getattr(gen_ops, "resource_scatter_nd_" + kind)(self._variable, indices, updates, name=name), True)
        made: Tensor = getattr(gen_ops, "scatter_nd_" + kind)(self._variable, indices, updates, use_locking=True, name=name)
        return made

    def scatter_nd_add(self, indices: Any, updates: Any, name: Optional[str] = None) -> Tensor:
        """Adds at rows of indices."""
        return self._scattered_nd("add", indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: Optional[str] = None) -> Tensor:
        """Subtracts at rows of indices."""
        return self._scattered_nd("sub", indices, updates, name)

    def scatter_nd_update(self, indices: Any, updates: Any, name: Optional[str] = None) -> Tensor:
        """Sets what lies at rows of indices."""
        return self._scattered_nd("update", indices, updates, name)

    def gather_nd(self, indices: Any, name: Optional[str] = None) -> Tensor:
        """What lies at rows of indices."""
        if self._is_resource:
            return gen_ops.resource_gather_nd(self._variable, indices, self._dtype, name=name)
        return gen_ops.gather_nd(self._variable, indices, name=name)
