# SPDX-License-Identifier: Apache-2.0
"""The branches and loops of a graph as objects: which operations lie in which, what crosses their borders, and their messages.

The library builds conditionals and loops (docs/control_flow.md); these objects only tell of them. A graph keeps marks: from
which operation on a context was the innermost one (Graph._set_control_flow_context).
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from millrace.framework.graph import Graph, GraphKeys, Operation, Tensor, get_default_graph
from millrace.framework.library_names import prepend_name_scope, strip_name_scope


class ControlFlowContext:
    """What lies around operations: a branch of a conditional, or a loop.

    `_values` are the names of the tensors that are known inside, `_external_values` says of names outside which tensor stands
    for them inside.
    """

    def __init__(self, values_def: Any = None, import_scope: Optional[str] = None) -> None:
        self._nested_contexts: List[ControlFlowContext] = []
        self._outer_context: Optional[ControlFlowContext] = get_default_graph()._get_control_flow_context()
        self._name = ""
        self._values: Any = set()
        self._external_values: Dict[str, Any] = {}
        if values_def is not None:
            self._init_values(values_def, import_scope)
        elif self._outer_context is not None:
            self._outer_context._nested_contexts.append(self)

    def _init_values(self, values_def: Any, import_scope: Optional[str]) -> None:
        graph = get_default_graph()
        self._values = {prepend_name_scope(name, import_scope) for name in values_def.values}
        self._external_values = {
            prepend_name_scope(name, import_scope): graph.as_graph_element(prepend_name_scope(inside, import_scope))
            for name, inside in values_def.external_values.items()
        }

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def outer_context(self) -> "Optional[ControlFlowContext]":
        """The context around it, or None."""
        return self._outer_context

    @property
    def back_prop(self) -> bool:
        """Whether gradients flow through it."""
        return True

    @property
    def grad_state(self) -> None:
        """None: the library keeps what gradients need."""
        return None

    def Enter(self) -> None:
        """Makes it the innermost context of the default graph."""
        graph = get_default_graph()
        self._before = graph._get_control_flow_context()
        graph._set_control_flow_context(self)

    def Exit(self) -> None:
        """Ends Enter."""
        get_default_graph()._set_control_flow_context(self._before)

    def __enter__(self) -> "ControlFlowContext":
        self.Enter()
        return self

    def __exit__(self, *unused: Any) -> None:
        self.Exit()

    def IsCondContext(self) -> bool:
        """Whether it is a branch."""
        return isinstance(self, CondContext)

    def IsWhileContext(self) -> bool:
        """Whether it is a loop."""
        return isinstance(self, WhileContext)

    def IsXLAContext(self) -> bool:
        """False."""
        return False

    def GetWhileContext(self) -> "Optional[ControlFlowContext]":
        """The innermost loop that it is or lies in."""
        context: Optional[ControlFlowContext] = self
        while context is not None and not context.IsWhileContext():
            context = context._outer_context
        return context

    def GetControlPivot(self) -> Any:
        """What operations inside wait for that wait for nothing else, or None."""
        return None

    def _owner(self, op: Operation) -> "Optional[ControlFlowContext]":
        """The context of an operation that was made while this was the innermost one. What carries a value into a context further
        out is made then, too."""
        context: Optional[ControlFlowContext] = self
        while context is not None and not context._may_own(op):
            context = context._outer_context
        return context if context is not None else self

    def _may_own(self, op: Operation) -> bool:
        return True

    def _is_border(self, op: Operation) -> bool:
        """Whether an operation carries its input in."""
        return False

    def _look(self) -> None:
        """Finds out what is inside, and what comes from outside, of a context that was built here."""
        graph = get_default_graph()
        members = graph._operations_by_context().get(self, [])
        for op in members:
            self._values.update(t.name for t in op.outputs)
            self._values.update(t.name for t in op.inputs)
            if self._is_border(op):
                self._external_values[op.inputs[0].name] = op.outputs[self._side(op)]

    def _side(self, op: Operation) -> int:
        return 0

    def _to_proto(self, export_scope: Optional[str] = None) -> Any:
        from millrace.protos import definitions

        values_def = definitions.ValuesDef()
        values_def.values.extend(strip_name_scope(name, export_scope) for name in sorted(self._values))
        for name, inside in self._external_values.items():
            values_def.external_values[strip_name_scope(name, export_scope)] = strip_name_scope(inside.name, export_scope)
        return values_def

    @staticmethod
    def _from_proto(values_def: Any, import_scope: Optional[str] = None) -> "ControlFlowContext":
        return ControlFlowContext(values_def=values_def, import_scope=import_scope)

    def to_control_flow_context_def(self, context_def: Any, export_scope: Optional[str] = None) -> None:
        """Writes itself into a ControlFlowContextDef."""
        raise NotImplementedError("a ControlFlowContext is a CondContext or a WhileContext")

    def _nested_defs(self, message: Any, export_scope: Optional[str]) -> None:
        for nested in self._nested_contexts:
            nested.to_control_flow_context_def(message.nested_contexts.add(), export_scope)

    def _read_nested(self, message: Any, import_scope: Optional[str]) -> None:
        for nested_def in message.nested_contexts:
            kind = CondContext if nested_def.HasField("cond_ctxt") else WhileContext
            nested = kind.from_proto(nested_def.cond_ctxt if kind is CondContext else nested_def.while_ctxt, import_scope)
            nested._outer_context = self
            self._nested_contexts.append(nested)


class CondContext(ControlFlowContext):
    """A branch of a conditional: `branch` 1 when the predicate is true, else 0."""

    def __init__(
        self,
        pred: Any = None,
        pivot: Any = None,
        branch: Optional[int] = None,
        name: str = "cond_text",
        context_def: Any = None,
        import_scope: Optional[str] = None,
    ) -> None:
        if context_def is not None:
            graph = get_default_graph()
            super().__init__(context_def.values_def, import_scope)
            self._name = prepend_name_scope(context_def.context_name, import_scope)
            self._pred = graph.as_graph_element(prepend_name_scope(context_def.pred_name, import_scope))
            self._pivot = graph.as_graph_element(prepend_name_scope(context_def.pivot_name, import_scope))
            self._branch, self._built = context_def.branch, False
            self._read_nested(context_def, import_scope)
            return
        super().__init__()
        self._name = get_default_graph().unique_name(name)
        self._pred, self._pivot, self._branch, self._built = pred, pivot, branch, True

    @property
    def pred(self) -> Any:
        """The predicate, as the branch has it."""
        return self._pred

    @property
    def pivot(self) -> Any:
        """What operations inside wait for."""
        return self._pivot

    @property
    def branch(self) -> Any:
        """1 of the branch for true, else 0."""
        return self._branch

    def GetControlPivot(self) -> Any:
        """The pivot."""
        return self._pivot

    def _may_own(self, op: Operation) -> bool:
        return op.type not in ("Switch", "RefSwitch", "Enter", "RefEnter") or op.inputs[-1] is self._pred

    def _is_border(self, op: Operation) -> bool:
        return op.type in ("Switch", "RefSwitch") and op.inputs[1] is self._pred

    def _side(self, op: Operation) -> int:
        return int(self._branch or 0)

    def to_proto(self, export_scope: Optional[str] = None) -> Any:
        """Its CondContextDef, or None when it is not below the scope."""
        if export_scope is not None and not self._name.startswith(export_scope):
            return None
        if self._built:
            self._look()
        from millrace.protos import definitions

        message = definitions.CondContextDef(
            context_name=strip_name_scope(self._name, export_scope),
            pred_name=strip_name_scope(self._pred.name, export_scope),
            pivot_name=strip_name_scope(self._pivot.name, export_scope),
            branch=self._branch,
        )
        message.values_def.CopyFrom(self._to_proto(export_scope))
        self._nested_defs(message, export_scope)
        return message

    @staticmethod
    def from_proto(context_def: Any, import_scope: Optional[str] = None) -> "CondContext":
        """The branch that a message tells of; its operations are in the default graph."""
        return CondContext(context_def=context_def, import_scope=import_scope)

    def to_control_flow_context_def(self, context_def: Any, export_scope: Optional[str] = None) -> None:
        """Writes itself into a ControlFlowContextDef."""
        context_def.cond_ctxt.CopyFrom(self.to_proto(export_scope))


class WhileContext(ControlFlowContext):
    """A loop."""

    def __init__(
        self,
        maximum_iterations: Any = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        grad_state: Any = None,
        context_def: Any = None,
        import_scope: Optional[str] = None,
    ) -> None:
        self._maximum_iterations, self._parallel_iterations = maximum_iterations, parallel_iterations
        self._back_prop, self._swap_memory, self._built = back_prop, swap_memory, context_def is None
        self._pivot = self._pivot_for_pred = self._pivot_for_body = None
        self._loop_exits: List[Any] = []
        self._loop_enters: List[Any] = []
        if grad_state is not None:
            raise NotImplementedError("a loop's gradient is built by the library: grad_state is not taken")
        if context_def is None:
            super().__init__()
            self._name = name
            return
        super().__init__(context_def.values_def, import_scope)
        graph = get_default_graph()

        def element(given: str) -> Any:
            return graph.as_graph_element(prepend_name_scope(given, import_scope)) if given else None

        self._name = prepend_name_scope(context_def.context_name, import_scope)
        self._maximum_iterations = element(context_def.maximum_iterations_name)
        self._parallel_iterations, self._back_prop = context_def.parallel_iterations, context_def.back_prop
        self._swap_memory = context_def.swap_memory
        self._pivot, self._pivot_for_pred = element(context_def.pivot_name), element(context_def.pivot_for_pred_name)
        self._pivot_for_body = element(context_def.pivot_for_body_name)
        self._loop_exits = [element(exit_name) for exit_name in context_def.loop_exit_names]
        self._loop_enters = [element(enter_name) for enter_name in context_def.loop_enter_names]
        self._read_nested(context_def, import_scope)

    @property
    def maximum_iterations(self) -> Any:
        """How often it runs at most, or None."""
        return self._maximum_iterations

    @property
    def parallel_iterations(self) -> int:
        """How many iterations may be under way at once."""
        return self._parallel_iterations

    @property
    def back_prop(self) -> bool:
        """Whether gradients flow through it."""
        return self._back_prop

    @property
    def swap_memory(self) -> bool:
        """Whether what its gradient needs may leave the device."""
        return self._swap_memory

    @property
    def pivot(self) -> Any:
        """Its condition."""
        return self._pivot

    @property
    def loop_enters(self) -> List[Any]:
        """What its variables enter by."""
        return self._loop_enters

    @property
    def loop_exits(self) -> List[Any]:
        """What its variables leave by."""
        return self._loop_exits

    def GetControlPivot(self) -> Any:
        """What operations of the body wait for; of the condition, while that is built."""
        return self._pivot_for_pred if self._pivot_for_body is None else self._pivot_for_body

    def _condition_begins(self, values: List[Tensor]) -> None:
        self._loop_enters = [v.op.inputs[0] for v in values]
        if self._loop_enters:
            self._name = self._loop_enters[0].op.get_attr("frame_name").decode()
            self._pivot_for_pred = values[0]

    def _body_begins(self, values: List[Tensor]) -> None:
        if values:
            self._pivot_for_body, self._pivot = values[0], values[0].op.inputs[0].op.inputs[1]

    def _may_own(self, op: Operation) -> bool:
        if op.type in ("Enter", "RefEnter"):
            return bool(op.get_attr("frame_name").decode() == self._name)
        return True

    def _is_border(self, op: Operation) -> bool:
        return op.type in ("Enter", "RefEnter")

    def to_proto(self, export_scope: Optional[str] = None) -> Any:
        """Its WhileContextDef, or None when it is not below the scope."""
        if export_scope is not None and not self._name.startswith(export_scope):
            return None
        if self._built:
            self._look()

        def name_of(element: Any) -> str:
            return "" if element is None else strip_name_scope(element.name, export_scope)

        from millrace.protos import definitions

        message = definitions.WhileContextDef(
            context_name=strip_name_scope(self._name, export_scope),
            parallel_iterations=self._parallel_iterations,
            back_prop=self._back_prop,
            swap_memory=self._swap_memory,
            pivot_name=name_of(self._pivot),
            pivot_for_pred_name=name_of(self._pivot_for_pred),
            pivot_for_body_name=name_of(self._pivot_for_body),
            maximum_iterations_name=name_of(self._maximum_iterations),
            loop_exit_names=[name_of(t) for t in self._loop_exits],
            loop_enter_names=[name_of(t) for t in self._loop_enters],
        )
        message.values_def.CopyFrom(self._to_proto(export_scope))
        self._nested_defs(message, export_scope)
        return message

    @staticmethod
    def from_proto(context_def: Any, import_scope: Optional[str] = None) -> "WhileContext":
        """The loop that a message tells of; its operations are in the default graph."""
        return WhileContext(context_def=context_def, import_scope=import_scope)

    def to_control_flow_context_def(self, context_def: Any, export_scope: Optional[str] = None) -> None:
        """Writes itself into a ControlFlowContextDef."""
        context_def.while_ctxt.CopyFrom(self.to_proto(export_scope))


class BuiltBranches:
    """The contexts of a conditional under construction. What joins the branches comes after both, and belongs to neither."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._around = graph, graph._get_control_flow_context()
        self.contexts: List[CondContext] = []

    def begin(self) -> None:
        """A branch begins: the one for true first."""
        self._graph._set_control_flow_context(self._around)
        scope, side = self._graph.get_name_scope(), 1 - len(self.contexts)
        pred = self._graph._find(scope + "/pred_id").outputs[0]
        pivot = self._graph._find(scope + ("/switch_t" if side else "/switch_f")).outputs[0]
        context = CondContext(pred, pivot, side)
        self.contexts.append(context)
        self._graph._set_control_flow_context(context)

    def end(self, values: Any) -> None:
        """Both are built; `values` join them."""
        self._graph._set_control_flow_context(self._around, values[0].op._id - 1 if values else None)
        if self.contexts:  # on one side only
            pred, (on, off) = self.contexts[0].pred, [c.pivot for c in self.contexts]
            for op in (on.op.inputs[0].op, on.op, off.op, pred.op):
                self._graph.prevent_fetching(op)
        for context in self.contexts if self._around is None else ():
            self._graph.add_to_collection(GraphKeys.COND_CONTEXT, context)

    def undo(self) -> None:
        """The construction failed."""
        self._graph._set_control_flow_context(self._around)
        if self._around is not None:
            self._around._nested_contexts = [c for c in self._around._nested_contexts if c not in self.contexts]
