# SPDX-License-Identifier: Apache-2.0
"""Staging areas: values that one step leaves for another, without a queue's handle and elements of any shapes."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from millrace.framework import dtypes as dtypes_module
from millrace.framework import tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, colocate_with, get_default_graph, name_scope
from millrace.ops import gen_ops

__all__ = ["StagingArea"]


class StagingArea:
    """An area that gives its elements in the order of coming. An element is a list of tensors, or a dict where the area has names."""

    def __init__(self, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: Optional[str] = None, capacity: int = 0, memory_limit: int = 0) -> None:
        if capacity < 0 or memory_limit < 0:
            raise at_user_line(ValueError("Specified %s is negative" % ("'capacity'" if capacity < 0 else "'memory_limit'")))
        self._name = shared_name if shared_name is not None else get_default_graph().unique_name("StagingArea")
        self._dtypes = [dtypes_module.as_dtype(t) for t in (dtypes if isinstance(dtypes, (list, tuple)) else [dtypes])]
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise at_user_line(ValueError("StagingArea shapes must be the same length as dtypes"))
        self._shapes = [tensor_shape.unknown_shape() for _ in self._dtypes] if shapes is None else [tensor_shape.as_shape(s) for s in shapes]
        self._names = None if names is None else list(names) if isinstance(names, (list, tuple)) else [names]
        if self._names is not None and len(self._names) != len(self._dtypes):
            raise at_user_line(ValueError("StagingArea names must be the same length as dtypes"))
        self._capacity, self._memory_limit = capacity, memory_limit
        with name_scope(self._name + "_root"):
            self._root = gen_ops.no_op()  # where the area is

    name = property(lambda self: self._name, doc="The name by which the operations find the area.")
    dtypes = property(lambda self: self._dtypes, doc="The types of the components.")
    shapes = property(lambda self: self._shapes, doc="The shapes of the components.")
    names = property(lambda self: self._names, doc="The names of the components, or None.")
    capacity = property(lambda self: self._capacity, doc="How many elements may be inside; 0: any number.")
    memory_limit = property(lambda self: self._memory_limit, doc="How many bytes they may take; 0: any number.")

    def _attributes(self, scope: str) -> Dict[str, Any]:
        return {"shared_name": self._name, "capacity": self._capacity, "memory_limit": self._memory_limit, "name": scope}

    def _listed(self, values: Any) -> List[Any]:
        if isinstance(values, dict):
            if not self._names:
                raise at_user_line(ValueError("Staging areas must have names to put a dictionary"))
            if sorted(self._names, key=str) != sorted(values, key=str):
                raise at_user_line(
                    ValueError(
                        "Keys in dictionary to put do not match names of staging area. Dictionary: %s, Queue: %s"
                        % (sorted(values, key=str), sorted(self._names, key=str))
                    )
                )
            return [values[n] for n in self._names]
        if self._names:
            raise at_user_line(ValueError("You must enqueue a dictionary in a staging area with names"))
        return list(values) if isinstance(values, (list, tuple)) else [values]

    def put(self, values: Any, name: Optional[str] = None) -> Operation:
        """An operation that puts one element in; it waits while the area is full."""
        listed = self._listed(values)
        if len(listed) != len(self._dtypes):
            raise at_user_line(ValueError("Unexpected number of inputs %d vs %d" % (len(listed), len(self._dtypes))))
        with name_scope(name, "%s_put" % self._name, listed) as scope:
            tensors = [convert_to_tensor(v, dtype=t, name="component_%d" % i) for i, (v, t) in enumerate(zip(listed, self._dtypes))]
            for tensor, shape in zip(tensors, self._shapes):
                tensor.get_shape().assert_is_compatible_with(shape)
            with colocate_with(self._root):
                return gen_ops.stage(tensors, **self._attributes(scope))

    def _element(self, made: Any) -> Any:
        outputs: Sequence[Tensor] = [made] if isinstance(made, Tensor) else list(made)
        graph = get_default_graph()
        if graph._has_device_functions or graph._device != self._root.device:  # the area is elsewhere: its element comes here
            outputs = [gen_ops.identity(output) for output in outputs]
        for output, shape in zip(outputs, self._shapes):
            output.set_shape(shape)
        return dict(zip(self._names, outputs)) if self._names else list(outputs)

    def get(self, name: Optional[str] = None) -> Any:
        """The oldest element; waits for one while there is none."""
        with name_scope(name, "%s_get" % self._name, []) as scope:
            with colocate_with(self._root):
                made = gen_ops.unstage(dtypes=self._dtypes, **self._attributes(scope))
            return self._element(made)

    def peek(self, index: Any, name: Optional[str] = None) -> Any:
        """The element in that place, counted from the oldest, which stays there; waits for it."""
        with name_scope(name, "%s_peek" % self._name, []) as scope:
            index = convert_to_tensor(index, dtype=dtypes_module.int32, name="index")
            with colocate_with(self._root):
                made = gen_ops.stage_peek(index, dtypes=self._dtypes, **self._attributes(scope))
            return self._element(made)

    def size(self, name: Optional[str] = None) -> Tensor:
        """How many elements there are."""
        with colocate_with(self._root):
            return gen_ops.stage_size(dtypes=self._dtypes, **self._attributes(name or "%s_size" % self._name))

    def clear(self, name: Optional[str] = None) -> Operation:
        """An operation that drops all elements."""
        with colocate_with(self._root):
            return gen_ops.stage_clear(dtypes=self._dtypes, **self._attributes(name or "%s_clear" % self._name))
