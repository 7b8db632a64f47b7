# SPDX-License-Identifier: Apache-2.0
"""tf.CriticalSection: functions of which one runs at a time."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, List, NamedTuple, Optional, Set

from millrace.framework import nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, add_to_collection, colocate_with, control_dependencies, get_collection, get_default_graph, name_scope
from millrace.ops import array_ops, gen_ops
from millrace.ops.variables import Variable


CRITICAL_SECTIONS, CRITICAL_SECTION_EXECUTIONS = "critical_sections", "critical_section_executions"  # collections


class _Execution(NamedTuple):
    """A function in a section: the operation of its lock, and the resources that it uses."""

    handle: Any
    lock: Operation
    resources: List[Any]
    exclusive: bool

    @property
    def op(self) -> Operation:
        """The operation of the lock."""
        return self.lock


def _named_by(fn: Callable[..., Any]) -> List[Any]:
    """The tensors that a function takes from around it by their Python names, in lists and dictionaries too, and those it is partially called with."""
    if isinstance(fn, functools.partial):
        return _named_by(fn.func) + [v for v in nest.flatten([fn.args, fn.keywords]) if isinstance(v, Tensor)]
    try:
        found = inspect.getclosurevars(fn)
    except TypeError:  # no Python function but an object that can be called
        return []
    values = [v for v in [*found.nonlocals.values(), *found.globals.values()] if isinstance(v, (Tensor, list, tuple, dict))]
    return [v for v in nest.flatten(values) if isinstance(v, Tensor)]


def _depends(starts: List[Operation], on: Operation) -> bool:
    seen: Set[Operation] = set()
    stack = list(starts)
    while stack:
        op = stack.pop()
        if op is on:
            return True
        if op not in seen:
            seen.add(op)
            stack += [x.op for x in op.inputs] + list(op.control_inputs)
    return False


def _is_pivot(op: Operation) -> bool:
    """Whether an operation stands for a branch that is taken, or not: it has a side of the Switch of a predicate by itself."""
    return any(x.op.type == "Switch" and x.op.inputs[0] is x.op.inputs[1] for x in op.inputs)


class CriticalSection:
    """What its execute() adds to the graph runs one after the other, whichever steps and threads run it; sections of one shared_name share that."""

    def __init__(
        self, name: Optional[str] = None, shared_name: Optional[str] = None, critical_section_def: Any = None, import_scope: Optional[str] = None
    ) -> None:
        del import_scope  # it belongs to critical_section_def
        if critical_section_def is not None:
            raise at_user_line(ValueError("critical_section_def is not supported: critical sections are not part of MetaGraphDefs."))
        with name_scope(name, "CriticalSection") as scope:
            self._shared_name = "critical_section_%s" % (shared_name or scope[:-1])
            with control_dependencies(None):
                self._handle = gen_ops.mutex_v2(shared_name=self._shared_name, name="mutex")
        self._name = scope[:-1]
        add_to_collection(CRITICAL_SECTIONS, self)

    name = property(lambda self: self._name, doc="Its name in the graph.")

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: Optional[str] = None) -> Any:
        """What fn returns: tensors of operations that run while nobody else is in the section. Tensors that fn takes from around it by their
        Python names are there before the section is entered. With exclusive_resource_access no other section may use fn's variables."""
        graph = get_default_graph()
        inside = graph.__dict__.setdefault("_critical_sections_entered", [])
        if any(entered._shared_name == self._shared_name for entered in inside):
            message = "Attempting to lock a CriticalSection (%s) in which we are already running: the function attempts to directly access the CriticalSection in which it would be running."
            raise at_user_line(ValueError((message + " This is illegal and may cause deadlocks.") % self._name))
        with name_scope(name, "critical_section_execute", []):
            ready = [t.op for t in _named_by(fn) if t.graph is graph]
            with control_dependencies(ready), colocate_with(self._handle):
                lock = gen_ops.mutex_lock(self._handle)
            before = set(graph.get_operations())
            inside.append(self)
            try:
                with control_dependencies([lock]):
                    made = fn()
            finally:
                inside.pop()
            body = [op for op in graph.get_operations() if op not in before]
            self._check(body, before, lock.op, exclusive_resource_access)
            results = [r for r in nest.flatten(made) if r is not None] if made is not None else []
            flow = graph._get_control_flow_context()
            done = [op for op in body if op._get_control_flow_context() is flow and not _is_pivot(op)]  # branches may not run: what joins them does
            with control_dependencies([*done, lock.op]):  # it is left when all of it is done
                left = gen_ops.consume_mutex_lock(lock)
            with control_dependencies([getattr(left, "op", left)]):
                kept = [
                    r if isinstance(r, Operation) else array_ops.identity(r.read_value() if isinstance(r, Variable) else convert_to_tensor(r)) for r in results
                ]
            if any(isinstance(r, Operation) for r in results):
                kept = [getattr(left, "op", left) if isinstance(r, Operation) else k for r, k in zip(results, kept)]
            if made is None:
                return getattr(left, "op", left)
            rest = iter(kept)
            return nest.pack_sequence_as(made, [None if r is None else next(rest) for r in nest.flatten(made)])

    def _check(self, body: List[Operation], before: Set[Operation], lock: Operation, exclusive: bool) -> None:
        outside = [x for op in body for x in op.inputs if x.op in before]
        for other in get_collection(CRITICAL_SECTION_EXECUTIONS):
            late = [x.op for x in outside if x.op is not lock and not _depends([lock], x.op)]
            if other.handle is self._handle and _depends(late, other.lock):
                raise at_user_line(
                    ValueError(
                        "What is executed in CriticalSection '%s' needs what it executes elsewhere, and would wait for it for ever: let the "
                        "function take that tensor by a name of its own from around it." % self._name
                    )
                )
        resources = [x for x in outside if x.dtype.name == "resource" and x is not self._handle]
        for other in get_collection(CRITICAL_SECTION_EXECUTIONS):
            common = [r for r in resources if any(r is o for o in other.resources)]
            if other.handle is not self._handle and common and (exclusive or other.exclusive):
                raise at_user_line(
                    ValueError(
                        "This execution would access resources: %s. Either this CriticalSection '%s' or the one of lock '%s' requested exclusive "
                        "resource access of them. Did you mean to call execute with keyword argument exclusive_resource_access=False?"
                        % (sorted({r.name for r in common}), self._name, other.lock.name)
                    )
                )
        add_to_collection(CRITICAL_SECTION_EXECUTIONS, _Execution(self._handle, lock, resources, exclusive))
