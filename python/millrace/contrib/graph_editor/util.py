# SPDX-License-Identifier: Apache-2.0
"""Lists of operations and tensors, nested ones too, what leads out of operations besides tensors, and names by scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, Operation, Tensor
from millrace.ops import array_ops

_PREFIX = "geph"  # of placeholders that stand for tensors


def concatenate_unique(la: List[Any], lb: Any) -> List[Any]:
    """The first list, behind which what it lacks of the second is put."""
    there = set(la)
    for value in lb:
        if value not in there:
            la.append(value)
            there.add(value)
    return la


class ListView:
    """A list that cannot be changed through it."""

    def __init__(self, list_: List[Any]) -> None:
        if not isinstance(list_, list):
            raise at_user_line(TypeError("Expected a list, got: %s." % type(list_)))
        self._list = list_

    def __iter__(self) -> Iterator[Any]:
        return iter(self._list)

    def __len__(self) -> int:
        return len(self._list)

    def __bool__(self) -> bool:
        return bool(self._list)

    def __getitem__(self, i: Any) -> Any:
        return self._list[i]

    def __add__(self, other: Any) -> List[Any]:
        return self._list + list(other)


def is_iterable(obj: Any) -> bool:
    """Whether it can be gone through; a tensor is one thing."""
    if isinstance(obj, Tensor):
        return False
    try:
        iter(obj)
    except Exception:
        return False
    return True


def flatten_tree(tree: Any, leaves: Optional[List[Any]] = None) -> List[Any]:
    """The leaves of nested dictionaries and iterables, put behind `leaves`."""
    found = [] if leaves is None else leaves
    if isinstance(tree, dict):
        tree = tree.values()
    if is_iterable(tree):
        for child in tree:
            flatten_tree(child, found)
    else:
        found.append(tree)
    return found


def transform_tree(tree: Any, fn: Callable[[Any], Any], iterable_type: type = tuple) -> Any:
    """A like structure of what a function makes of the leaves; iterables without a length become an iterable_type."""
    if not is_iterable(tree):
        return fn(tree)
    if isinstance(tree, Mapping):
        kind: Callable[[Any], Any] = type(tree)
        return kind((key, transform_tree(child, fn)) for key, child in tree.items())
    made = [transform_tree(child, fn) for child in tree]
    if hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(*made)
    return (type(tree) if isinstance(tree, Sequence) else iterable_type)(made)


def check_graphs(*args: Any) -> None:
    """ValueError unless all things that have a graph have the same one."""
    graph = None
    for i, thing in enumerate(args):
        graph = thing.graph if graph is None else graph
        if thing.graph is not None and thing.graph is not graph:
            raise at_user_line(ValueError("Argument[%d]: Wrong graph!" % i))


def get_unique_graph(tops: Any, check_types: Any = None, none_if_empty: bool = False) -> Optional[Graph]:
    """The one graph of operations and tensors."""
    if isinstance(tops, Graph):
        return tops
    if not is_iterable(tops):
        raise at_user_line(TypeError("%s is not iterable" % type(tops)))
    types = (Operation, Tensor) if check_types is None else tuple(check_types) if is_iterable(check_types) else (check_types,)
    graph = None
    for top in tops:
        if not isinstance(top, types):
            raise at_user_line(TypeError("Expected a type in (%s), got: %s" % (", ".join(str(t) for t in types), type(top))))
        graph = top.graph if graph is None else graph
        if top.graph is not graph:
            raise at_user_line(ValueError("Operation %s does not belong to given graph" % (top.name,)))
    if graph is None and not none_if_empty:
        raise at_user_line(ValueError("Can't find the unique graph of an empty list"))
    return graph


def _made_list(values: Any, kind: type, of_graph: Callable[[Graph], List[Any]], check_graph: bool, allow_graph: bool, both: bool) -> List[Any]:
    if isinstance(values, Graph):
        if not allow_graph:
            raise at_user_line(TypeError("allow_graph is False: cannot convert a tf.Graph."))
        return of_graph(values)
    found = list(values) if is_iterable(values) else [values]
    if check_graph and found:
        get_unique_graph(found, check_types=None if both else kind)
    return [value for value in found if isinstance(value, kind)]


def make_list_of_op(ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False) -> List[Operation]:
    """A list of operations: of a graph all of them."""
    return _made_list(ops, Operation, lambda graph: list(graph.get_operations()), check_graph, allow_graph, ignore_ts)


def make_list_of_t(ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False) -> List[Tensor]:
    """A list of tensors: of a graph all of them."""
    return _made_list(ts, Tensor, get_tensors, check_graph, allow_graph, ignore_ops)


def get_tensors(graph: Graph) -> List[Tensor]:
    """All tensors of a graph."""
    if not isinstance(graph, Graph):
        raise at_user_line(TypeError("Expected a graph, got: %s" % type(graph)))
    return [t for o in graph.get_operations() for t in o.outputs]


def get_generating_ops(ts: Any) -> List[Operation]:
    """The operations that make tensors, one for each of them."""
    return [t.op for t in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> List[Operation]:
    """The operations that read tensors."""
    return list(dict.fromkeys(o for t in make_list_of_t(ts, allow_graph=False) for o in t.consumers()))


class ControlOutputs:
    """Who waits for the operations of a graph."""

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise at_user_line(TypeError("Expected a tf.Graph, got: %s" % type(graph)))
        self._graph = graph
        self._control_outputs: Dict[Operation, List[Operation]] = {}
        self._version: Optional[int] = None
        self.update()

    def update(self) -> "ControlOutputs":
        """Looks again, if the graph has grown."""
        if self._version != self._graph.version:
            self._control_outputs.clear()
            for op in self._graph.get_operations():
                for awaited in dict.fromkeys(op.control_inputs):
                    self._control_outputs.setdefault(awaited, []).append(op)
            self._version = self._graph.version
        return self

    def get_all(self) -> Dict[Operation, List[Operation]]:
        """{operation: who waits for it}, of those that somebody waits for."""
        return self._control_outputs

    def get(self, op: Operation) -> Any:
        """Who waits for an operation."""
        return self._control_outputs.get(op, ())

    graph = property(lambda self: self._graph, doc="The graph.")


# ---- names ----


def scope_finalize(scope: str) -> str:
    """A scope with a slash behind it."""
    return scope + "/" if scope and scope[-1] != "/" else scope


def scope_dirname(scope: str) -> str:
    """What is before the last part of a name, with its slash."""
    return scope[: scope.rfind("/") + 1]


def scope_basename(scope: str) -> str:
    """The last part of a name."""
    return scope[scope.rfind("/") + 1 :]


def placeholder_name(t: Optional[Tensor] = None, scope: Optional[str] = None, prefix: str = _PREFIX) -> str:
    """A name for a placeholder that stands for a tensor: in the scope of the tensor, or in the one given."""
    within = None if scope is None else scope_finalize(scope)
    if t is None:
        return (within or "") + prefix
    if not isinstance(t, Tensor):
        raise at_user_line(TypeError("Expected a tf.Tensor, got: %s" % type(t)))
    last = scope_basename(t.op.name)
    stands_already = last.startswith(prefix + "__")
    return (scope_dirname(t.op.name) if within is None else within) + (last if stands_already else "%s__%s_%d" % (prefix, last, t.value_index))


def make_placeholder_from_tensor(t: Tensor, scope: Optional[str] = None, prefix: str = _PREFIX) -> Tensor:
    """A placeholder of a tensor's type and shape."""
    return array_ops.placeholder(t.dtype.base_dtype, t.get_shape(), name=placeholder_name(t, scope, prefix))


def make_placeholder_from_dtype_and_shape(dtype: Any, shape: Any = None, scope: Optional[str] = None, prefix: str = _PREFIX) -> Tensor:
    """A placeholder of a type and a shape."""
    return array_ops.placeholder(dtypes.as_dtype(dtype), shape, name=placeholder_name(scope=scope, prefix=prefix))


def get_predefined_collection_names() -> List[str]:
    """The names of the collections that all graphs have."""
    return [value for key, value in vars(GraphKeys).items() if not key.startswith("_") and isinstance(value, str)]


def find_corresponding_elem(target: Any, dst_graph: Graph, dst_scope: str = "", src_scope: str = "") -> Any:
    """The operation or tensor of another graph that has its name, with another scope before it."""
    if not isinstance(target, (Operation, Tensor)):
        raise at_user_line(TypeError("Expected tf.Tensor or tf.Operation, got: %s" % type(target)))
    before = scope_finalize(src_scope)
    if not target.name.startswith(before):
        raise at_user_line(ValueError("%s does not start with %s" % (target.name, before)))
    name = scope_finalize(dst_scope) + target.name[len(before) :]
    return dst_graph.get_tensor_by_name(name) if isinstance(target, Tensor) else dst_graph.get_operation_by_name(name)


def find_corresponding(targets: Any, dst_graph: Graph, dst_scope: str = "", src_scope: str = "") -> Any:
    """find_corresponding_elem of all leaves of a structure."""
    return transform_tree(targets, lambda top: find_corresponding_elem(top, dst_graph, dst_scope, src_scope))
