# SPDX-License-Identifier: Apache-2.0
"""Operations of a graph, with what enters and leaves them in an order that can be chosen."""

from __future__ import annotations

import copy
from typing import Any, List, Optional, Sequence

from millrace.contrib.graph_editor import select, util
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor


def _picked(ts: List[Tensor], indices: Sequence[Any], repeated: bool) -> List[Tensor]:
    """The tensors of some places; a place is a number, or the tensor itself."""
    places = [i if isinstance(i, int) else ts.index(i) for i in indices]
    for i in places:
        if not 0 <= i < len(ts):
            raise at_user_line(ValueError("Out of [0, %d[ range: %d" % (len(ts), i)))
    if not repeated and len(set(places)) != len(places):
        raise at_user_line(ValueError("Found repetition in mapping: %s" % places))
    return [ts[i] for i in places]


class SubGraphView:
    """Operations with their inputs and outputs, and tensors that only pass through. Its methods make new views and leave the graph as it is."""

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()) -> None:
        self._ops = util.make_list_of_op(inside_ops)
        passing = util.make_list_of_t(passthrough_ts)
        self._graph = util.get_unique_graph([*self._ops, *passing], none_if_empty=True)
        inputs, outputs, inside = select.compute_boundary_ts(self._ops)
        touched = {*inputs, *outputs, *inside}
        self._passthrough_ts = [t for t in passing if t not in touched]
        self._input_ts = inputs + self._passthrough_ts
        self._output_ts = outputs + self._passthrough_ts

    def __copy__(self) -> "SubGraphView":
        made = type(self).__new__(type(self))
        made._assign_from(self)
        return made

    def _assign_from(self, other: "SubGraphView") -> None:
        if not isinstance(other, SubGraphView):
            raise at_user_line(TypeError("Expected SubGraphView, got: %s" % type(other)))
        self._graph, self._ops, self._passthrough_ts = other._graph, list(other._ops), list(other._passthrough_ts)
        self._input_ts, self._output_ts = list(other._input_ts), list(other._output_ts)

    def copy(self) -> "SubGraphView":
        """A view of the same."""
        return copy.copy(self)

    def _with(self, inputs: Optional[List[Tensor]] = None, outputs: Optional[List[Tensor]] = None) -> "SubGraphView":
        made = self.copy()
        made._input_ts = self._input_ts if inputs is None else inputs
        made._output_ts = self._output_ts if outputs is None else outputs
        return made

    def remap_default(self, remove_input_map: bool = True, remove_output_map: bool = True) -> "SubGraphView":
        """A view with all inputs and outputs, as at first."""
        inputs, outputs, _ = select.compute_boundary_ts(self._ops)
        return self._with(inputs + self._passthrough_ts if remove_input_map else None, outputs + self._passthrough_ts if remove_output_map else None)

    def remap_inputs(self, new_input_indices: Sequence[Any]) -> "SubGraphView":
        """A view with some of the inputs, each once."""
        return self._with(inputs=_picked(self._input_ts, new_input_indices, repeated=False))

    def remap_outputs(self, new_output_indices: Sequence[Any]) -> "SubGraphView":
        """A view with some of the outputs, several times if they are named so."""
        return self._with(outputs=_picked(self._output_ts, new_output_indices, repeated=True))

    def remap(self, new_input_indices: Optional[Sequence[Any]] = None, new_output_indices: Optional[Sequence[Any]] = None) -> "SubGraphView":
        """A view with some of the inputs and outputs."""
        made = self if new_input_indices is None else self.remap_inputs(new_input_indices)
        return made.copy() if new_output_indices is None else made.remap_outputs(new_output_indices)

    def remap_outputs_make_unique(self) -> "SubGraphView":
        """A view with each output once."""
        return self._with(outputs=list(dict.fromkeys(self._output_ts)))

    def remap_outputs_to_consumers(self) -> "SubGraphView":
        """A view with each output as often as there are operations that read it."""
        return self._with(outputs=[t for t in dict.fromkeys(self._output_ts) for _ in t.consumers()])

    def remove_unused_ops(self, control_inputs: bool = True) -> "SubGraphView":
        """A view without the operations that neither come of inputs nor lead to outputs."""
        made = self.copy()
        used = set(select.get_walks_union_ops(self.connected_inputs, self.connected_outputs, within_ops=self._ops, control_inputs=control_inputs))
        made._ops = [o for o in self._ops if o in used]
        return made

    # ---- what is in it ----

    graph = property(lambda self: self._graph, doc="The graph; None where there is nothing in it.")
    ops = property(lambda self: self._ops, doc="The operations.")
    inputs = property(lambda self: util.ListView(self._input_ts), doc="The tensors from outside that they read.")
    outputs = property(lambda self: util.ListView(self._output_ts), doc="Their tensors that others read, or nobody.")
    passthroughs = property(lambda self: util.ListView(self._passthrough_ts), doc="The tensors that only pass through.")

    @property
    def connected_inputs(self) -> List[Tensor]:
        """The inputs without what passes through."""
        return [t for t in self._input_ts if t not in self._passthrough_ts]

    @property
    def connected_outputs(self) -> List[Tensor]:
        """The outputs without what passes through."""
        return [t for t in self._output_ts if t not in self._passthrough_ts]

    def op(self, op_id: int) -> Operation:
        """An operation by its place."""
        return self._ops[op_id]

    def find_op_by_name(self, op_name: str) -> Operation:
        """An operation by its name."""
        for o in self._ops:
            if o.name == op_name:
                return o
        raise at_user_line(ValueError("%s not in subgraph." % op_name))

    def is_passthrough(self, t: Tensor) -> bool:
        """Whether a tensor only passes through."""
        return t in self._passthrough_ts

    def input_index(self, t: Tensor) -> int:
        """The place of an input."""
        if t not in self._input_ts:
            raise at_user_line(ValueError("Can't find %s in inputs of the subgraph." % t.name))
        return self._input_ts.index(t)

    def output_index(self, t: Tensor) -> int:
        """The place of an output."""
        if t not in self._output_ts:
            raise at_user_line(ValueError("Can't find %s in outputs of the subgraph." % t.name))
        return self._output_ts.index(t)

    def consumers(self) -> List[Operation]:
        """The operations outside of it that read its outputs."""
        return list(dict.fromkeys(o for t in self._output_ts for o in t.consumers() if o not in self._ops))

    def __contains__(self, op: Any) -> bool:
        return op in self._ops

    def __len__(self) -> int:
        return len(self._ops)

    def __bool__(self) -> bool:
        return self._graph is not None

    def __enter__(self) -> "SubGraphView":
        return self

    def __exit__(self, *unused: Any) -> None:
        pass

    def __str__(self) -> str:
        if not self:
            return "SubGraphView: empty"

        def part(title: str, things: List[Any]) -> str:
            lines = ["  %s%s" % (thing.name, " *" if thing in self._passthrough_ts else "") for thing in things]
            return "\n".join(["** %s[%d]:" % (title, len(things)), *lines] if things else ["** %s: empty" % title])

        parts = [part("ops", self._ops), part("inputs", self._input_ts), part("outputs", self._output_ts)]
        return "\n".join(["SubGraphView (graphid=%d):" % id(self._graph), *parts, ""])


def _checked(view: SubGraphView, graph: Optional[Graph]) -> SubGraphView:
    if graph is not None and view.graph is not None and view.graph is not graph:
        raise at_user_line(ValueError("Graph mismatch."))
    return view


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """A view of the operations and tensors that select_ops_and_ts finds."""
    graph = kwargs.get("graph")
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return _checked(args[0], graph)
    return _checked(SubGraphView(*select.select_ops_and_ts(*args, **kwargs)), graph)


def make_view_from_scope(scope: str, graph: Graph) -> SubGraphView:
    """A view of the operations within a name scope."""
    return SubGraphView(select.get_name_scope_ops(graph, scope))
