# SPDX-License-Identifier: Apache-2.0
"""Accumulators: gradients of several workers that become one, of which those that come too late are dropped."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from millrace.framework import dtypes as dtypes_module
from millrace.framework import tensor_shape
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.ops import gen_ops

__all__ = ["ConditionalAccumulatorBase", "ConditionalAccumulator", "SparseConditionalAccumulator"]


class ConditionalAccumulatorBase:
    """What the accumulators have in common. A gradient says in which step it was computed."""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = dtypes_module.as_dtype(dtype)
        self._shape = tensor_shape.as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.rsplit("/", 1)[-1]

    accumulator_ref = property(lambda self: self._accumulator_ref, doc="The handle.")
    name = property(lambda self: self._name, doc="The name of the operation.")
    dtype = property(lambda self: self._dtype, doc="The type of the gradients.")

    def num_accumulated(self, name: Optional[str] = None) -> Tensor:
        """How many gradients have come since the last were taken."""
        op = gen_ops.resource_accumulator_num_accumulated if self._is_resource() else gen_ops.accumulator_num_accumulated
        return op(self._accumulator_ref, name=name or "%s_NumAccumulated" % self._name)

    def set_global_step(self, new_global_step: Any, name: Optional[str] = None) -> Operation:
        """Drops, from now on, gradients of steps before this one."""
        op = gen_ops.resource_accumulator_set_global_step if self._is_resource() else gen_ops.accumulator_set_global_step
        return op(self._accumulator_ref, _int64(new_global_step), name=name)

    def _is_resource(self) -> bool:
        return self._accumulator_ref.dtype == dtypes_module.resource


def _int64(value: Any) -> Tensor:
    """Steps, indices and shapes as accumulators count them, also of those that count in 32 bits."""
    return gen_ops.cast(value, dtypes_module.int64) if hasattr(value, "dtype") else convert_to_tensor(value, dtypes_module.int64)


def _reduction(reduction_type: str) -> str:
    if reduction_type not in ("MEAN", "SUM"):
        raise at_user_line(ValueError("reduction_type must be MEAN or SUM, got %r" % (reduction_type,)))
    return reduction_type


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of tensors."""

    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: Optional[str] = None, name: Optional[str] = "conditional_accumulator", reduction_type: str = "MEAN"
    ) -> None:
        handle = gen_ops.resource_conditional_accumulator(
            dtype=dtypes_module.as_dtype(dtype),
            shape=tensor_shape.as_shape(shape),
            shared_name=shared_name or "",
            reduction_type=_reduction(reduction_type),
            name=name,
        )
        super().__init__(dtype, shape, handle)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: Optional[str] = None) -> Operation:
        """Adds a gradient, unless its step is over."""
        grad = convert_to_tensor(grad, self._dtype)
        grad.get_shape().assert_is_compatible_with(self._shape)
        return gen_ops.resource_accumulator_apply_gradient(self._accumulator_ref, _int64(local_step), grad, name=name)

    def take_grad(self, num_required: Any, name: Optional[str] = None) -> Tensor:
        """The mean, or sum, of the gradients; waits until there are so many. Begins the next global step."""
        taken = gen_ops.resource_accumulator_take_gradient(self._accumulator_ref, num_required, dtype=self._dtype, name=name)
        taken.set_shape(self._shape)
        return taken


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of slices. The mean of a slice is that of the gradients which had it."""

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: Optional[str] = None,
        name: Optional[str] = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = gen_ops.sparse_conditional_accumulator(
            dtype=dtypes_module.as_dtype(dtype),
            shape=tensor_shape.as_shape(shape),
            shared_name=shared_name or "",
            reduction_type=_reduction(reduction_type),
            name=name,
        )
        super().__init__(dtype, shape, handle)

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0, name: Optional[str] = None) -> Operation:
        """Adds a gradient, unless its step is over."""
        return self.apply_grad(grad_indices=grad.indices, grad_values=grad.values, grad_shape=grad.dense_shape, local_step=local_step, name=name)

    def apply_grad(self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0, name: Optional[str] = None) -> Operation:
        """The same, given its parts."""
        known = grad_shape is not None
        return gen_ops.sparse_accumulator_apply_gradient(
            self._accumulator_ref,
            _int64(local_step),
            _int64(grad_indices),
            convert_to_tensor(grad_values, self._dtype),
            _int64(grad_shape if known else []),
            has_known_shape=known,
            name=name,
        )

    def take_grad(self, num_required: Any, name: Optional[str] = None) -> Sequence[Tensor]:
        """Indices, values and shape of the mean, or sum, of the gradients; waits until there are so many."""
        return gen_ops.sparse_accumulator_take_gradient(self._accumulator_ref, num_required, dtype=self._dtype, name=name)

    def take_indexed_slices_grad(self, num_required: Any, name: Optional[str] = None) -> IndexedSlices:
        """The same, as slices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
