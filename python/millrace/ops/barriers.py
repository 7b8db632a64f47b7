# SPDX-License-Identifier: Apache-2.0
"""Barrier: elements whose components come one by one, under a key, and leave when they are whole."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.ops import gen_ops


class Barrier:
    """Elements by key, each of several components."""

    def __init__(self, types: Any, shapes: Any = None, shared_name: Optional[str] = None, name: str = "barrier") -> None:
        self._types = [dtypes.as_dtype(t) for t in (types if isinstance(types, (list, tuple)) else [types])]
        if shapes is not None:
            if isinstance(shapes, tensor_shape.TensorShape) or all(d is None or isinstance(d, int) for d in shapes):
                shapes = [shapes]  # of the only component
            self._shapes = [tensor_shape.as_shape(s) for s in shapes]
            if len(self._shapes) != len(self._types):
                raise at_user_line(ValueError("Barrier shapes must be the same length as types: %d and %d" % (len(self._shapes), len(self._types))))
            for i, shape in enumerate(self._shapes):
                if not shape.is_fully_defined() or (shape.num_elements() or 0) == 0:
                    raise at_user_line(ValueError("Empty tensors are not supported, but received shape '%s' at index %d" % (shape, i)))
        else:
            self._shapes = [tensor_shape.unknown_shape() for _ in self._types]
        self._barrier_ref: Tensor = gen_ops.barrier(self._types, shapes=self._shapes if shapes is not None else [], shared_name=shared_name or "", name=name)

    barrier_ref = property(lambda self: self._barrier_ref, doc="The tensor of its handle.")
    name = property(lambda self: self._barrier_ref.op.name, doc="The name of its operation.")

    def insert_many(self, component_index: int, keys: Any, values: Any, name: Optional[str] = None) -> Operation:
        """An operation that gives one component of several elements."""
        return gen_ops.barrier_insert_many(self._barrier_ref, keys, values, component_index, name=name or "%s_BarrierInsertMany" % self.name)

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, timeout: Any = None, name: Optional[str] = None
    ) -> Tuple[Tensor, Tensor, List[Tensor]]:
        """(indices, keys, values of each component) of elements that are whole; waits until there are as many.

        allow_small_batch: takes what is left of a closed barrier. timeout: milliseconds.
        """
        indices, keys, values = gen_ops.barrier_take_many(
            self._barrier_ref,
            num_elements,
            self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=-1 if timeout is None else int(timeout),
            name=name or "%s_BarrierTakeMany" % self.name,
        )
        known = convert_to_tensor(num_elements)._constant_value()
        rows = None if known is None or allow_small_batch else int(known)
        for tensor in (indices, keys):
            tensor.set_shape([rows])
        for value, shape in zip(values, self._shapes):
            value.set_shape(tensor_shape.TensorShape([rows]).concatenate(shape))
        return indices, keys, list(values)

    def close(self, cancel_pending_enqueues: bool = False, name: Optional[str] = None) -> Operation:
        """An operation that lets no new keys in; with cancel_pending_enqueues, no components of the others either."""
        return gen_ops.barrier_close(self._barrier_ref, cancel_pending_enqueues=cancel_pending_enqueues, name=name or "%s_BarrierClose" % self.name)

    def ready_size(self, name: Optional[str] = None) -> Tensor:
        """How many elements are whole."""
        return gen_ops.barrier_ready_size(self._barrier_ref, name=name or "%s_BarrierReadySize" % self.name)

    def incomplete_size(self, name: Optional[str] = None) -> Tensor:
        """How many elements are not whole yet."""
        return gen_ops.barrier_incomplete_size(self._barrier_ref, name=name or "%s_BarrierIncompleteSize" % self.name)
