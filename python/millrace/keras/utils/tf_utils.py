# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.keras.utils.tf_utils: what is a tensor of a graph, and what depends on one."""

from __future__ import annotations

from typing import Any, Dict, List, Set

from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
from millrace.framework.graph import Operation, Tensor
from millrace.framework import nest
from millrace.layers.utils import constant_value  # noqa: F401
from millrace.ops.control_flow_ops import smart_cond  # noqa: F401
from millrace.ops.ragged.tensor import RaggedTensor
from millrace.ops.variables import Variable

_symbolic: List[type] = [Tensor, SparseTensor, IndexedSlices, RaggedTensor, Variable]


def register_symbolic_tensor_type(cls: type) -> None:
    """Makes objects of a class count as tensors of graphs."""
    if cls not in _symbolic:
        _symbolic.append(cls)


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of a graph, or a variable, sparse tensor and the like: all are, since there are graphs alone."""
    return isinstance(tensor, tuple(_symbolic))


def is_tensor_or_tensor_list(v: Any) -> bool:
    """Whether it is a tensor, or begins with one."""
    flat = nest.flatten(v)
    return bool(flat) and isinstance(flat[0], Tensor)


def get_reachable_from_inputs(inputs: Any, targets: Any = None) -> Set[Any]:
    """The tensors and operations that depend on inputs, the inputs too; no more are looked for once all targets are found."""
    waiting = [x.op if isinstance(x, Variable) else x for x in nest.flatten(inputs)]
    found = set(nest.flatten(inputs))
    missing = None if targets is None else set(nest.flatten(targets)) - found
    graph = next((x.graph for x in waiting), None)
    behind: Dict[Any, List[Any]] = {}  # of operations, those that wait for them
    for op in graph.get_operations() if graph is not None else []:
        for before in op.control_inputs:
            behind.setdefault(before, []).append(op)
    while waiting and (missing is None or missing):
        x = waiting.pop(0)
        if not isinstance(x, (Tensor, Operation)):
            raise TypeError("Expected Operation, Variable, or Tensor, got %s" % (x,))
        after = x.consumers() if isinstance(x, Tensor) else [*x.outputs, *behind.get(x, [])]
        fresh = [y for y in after if y not in found]
        found.update(fresh)
        waiting.extend(fresh)
        if missing is not None:
            missing.difference_update(fresh)
    return found


class ListWrapper:
    """A list that counts as one value of a structure."""

    def __init__(self, list_to_wrap: List[Any]) -> None:
        self._list = list_to_wrap

    def as_list(self) -> List[Any]:
        """The list."""
        return self._list


def _is_inner_node(value: Any) -> bool:
    """Whether it says where a tensor comes from: a layer's name and two numbers, and perhaps arguments."""
    return isinstance(value, list) and len(value) in (3, 4) and isinstance(value[0], (str, bytes))


def convert_inner_node_data(nested: Any, wrap: bool = False) -> Any:
    """A structure with the lists that say where tensors come from wrapped, or unwrapped."""
    if isinstance(nested, ListWrapper):
        return nested if wrap else nested.as_list()
    if _is_inner_node(nested):
        return ListWrapper(nested) if wrap else nested
    if isinstance(nested, dict):
        return {k: convert_inner_node_data(v, wrap) for k, v in nested.items()}
    if isinstance(nested, (list, tuple)):
        return type(nested)(convert_inner_node_data(v, wrap) for v in nested)
    return nested
