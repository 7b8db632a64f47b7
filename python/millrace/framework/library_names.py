# SPDX-License-Identifier: Apache-2.0
"""Names of tensorflow.python.framework.ops that libraries and tests use, beyond those of tf."""

from __future__ import annotations

import abc
import itertools
from typing import Any, Callable, Dict, List, Optional

import millrace._core as _core
from millrace.framework import graph as _graph
from millrace.framework import default_session as _default_session
from millrace.framework.device import DeviceSpec
from millrace.framework.statistics import OpStats, RegisterStatistics, get_stats_for_node_def  # noqa: F401
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor

_USE_C_API = True  # graphs are the library's


class EagerTensor:
    """No object is one: there are graphs alone."""


class RegisterShape:
    """Kept for programs: the library knows the shapes of all its ops, and what is registered here is not called."""

    _registered: Dict[str, Any] = {}

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self._op_type in self._registered:
            raise KeyError("Registering two shape functions with name %r!" % self._op_type)
        self._registered[self._op_type] = f
        return f


_numbers = itertools.count()


def uid() -> int:
    """A number that nobody was given before."""
    return next(_numbers)


def _set_call_cpp_shape_fn(call_cpp_shape_fn: Any) -> None:
    """Kept for programs: the library infers shapes itself."""
    del call_cpp_shape_fn  # nothing asks for it


# ---- names of nodes ----


def strip_name_scope(name: str, export_scope: Optional[str]) -> str:
    """The name of an element of a graph, without a scope in front. Colocation groups (loc:@) and control inputs (^) have it inside."""
    if export_scope is None:
        return name
    scope = export_scope.rstrip("/") + "/"
    for mark in ("loc:@", "^", ""):
        if name.startswith(mark + scope):
            return mark + name[len(mark + scope) :].lstrip("/")
    return name


def prepend_name_scope(name: str, import_scope: Optional[str]) -> str:
    """The name of an element of a graph, with a scope in front."""
    if import_scope is None:
        return name
    scope = import_scope.rstrip("/") + "/"
    mark = next(m for m in ("loc:@", "^", "") if name.startswith(m))
    return mark + scope + name[len(mark) :]


# ---- what stands for a tensor ----


class _TensorLike(abc.ABC):  # noqa: B024
    """Base of tensors and of what TensorFlow treats as one."""


for _kind in (_graph.Tensor, IndexedSlices, SparseTensor):
    _TensorLike.register(_kind)


_dense_types: List[type] = [_graph.Tensor]


def is_dense_tensor_like(t: Any) -> bool:
    """Whether it is a tensor, a variable or of a type that was registered."""
    return isinstance(t, tuple(_dense_types))


def register_dense_tensor_like_type(tensor_type: Any) -> None:
    """Makes objects of a type, which has properties name and dtype, count as tensors."""
    for what in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, what, None), property):
            raise TypeError("Type %s does not define a `%s` property" % (getattr(tensor_type, "__name__", tensor_type), what))
    _dense_types.append(tensor_type)


def _get_graph_from_inputs(op_input_list: Any, graph: Any = None) -> Any:
    """The graph that all inputs are of, or the default graph. ValueError where they are of several."""
    if graph is not None and not isinstance(graph, _graph.Graph):
        raise TypeError("Input graph needs to be a Graph: %s" % (graph,))
    return _graph.graph_of_inputs(op_input_list, graph)


def _create_c_op(graph: Any, node_def: Any, inputs: Any, control_inputs: Any) -> _graph.Operation:
    """An operation that scopes do not place yet (Graph._add_new_tf_operations)."""
    made = _graph.Operation(node_def, graph, inputs, control_inputs=control_inputs)
    graph._new_c_ops.append(made)
    return made


def _NodeDef(op_type: str, name: str, device: Any = None, attrs: Optional[Dict[str, Any]] = None) -> Any:
    """A NodeDef."""
    from millrace.protos import definitions

    made = definitions.NodeDef(
        op=str(op_type), name=str(name), device=device.to_string() if isinstance(device, DeviceSpec) else device if isinstance(device, str) else ""
    )
    for key, value in (attrs or {}).items():
        made.attr[key].CopyFrom(value)
    return made


class _GraphStack:
    """The graphs that are default in this thread, as TensorFlow's object for them."""

    def reset(self) -> None:
        """Leaves all contexts of default graphs."""
        while _core.stack_depth():
            _core.pop_graph()

    @property
    def stack(self) -> List[Any]:
        """The graphs, the innermost last."""
        return _graph.default_graphs()

    def get_default(self) -> Any:
        """The default graph."""
        return _graph.get_default_graph()

    def get_controller(self, default: Any) -> Any:
        """A context in which a graph is default."""
        return default.as_default()


class _SessionStack:
    """The sessions that are default in this thread."""

    def reset(self) -> None:
        """Leaves all contexts of default sessions."""
        _default_session.sessions.stack.clear()

    @property
    def stack(self) -> List[Any]:
        """The sessions, the innermost last."""
        return _default_session.sessions.stack

    def get_default(self) -> Any:
        """The default session."""
        return _default_session.get_default_session()


_default_graph_stack, _default_session_stack = _GraphStack(), _SessionStack()
