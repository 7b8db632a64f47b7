# SPDX-License-Identifier: Apache-2.0
"""What the operations of a function do beside their results (assertions, prints, assignments): it is done in each call, and what uses one
resource uses it in the order in which the program says so."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Dict, Iterator, List, Set, Tuple

from millrace.framework import dtypes
from millrace.framework.graph import Graph, GraphKeys, control_dependencies, get_default_graph
from millrace.framework.graph_elements import Operation, Tensor

# Stateful ops that do nothing that anyone could see later: numbers are drawn, values read and handles made where they are needed.
_WITHOUT_EFFECT = re.compile(
    "Random|Multinomial|ParameterizedTruncatedNormal|TruncatedNormal|Placeholder|ReadVariableOp|ResourceGather|VariableShape|VarIsInitializedOp"
    "|LookupTableFind|LookupTableSize|LookupTableExport|TensorArray|Stack|.*Handle(Op)?$|(Mutable)?(Dense)?HashTable|Variable|Iterator"
    r"|(?!Reduce).*Dataset(V\d+)?$|DatasetToGraph|DatasetFromGraph|(Experimental)?DatasetCardinality"
)
_GATES = ("Switch", "RefSwitch", "Enter", "RefEnter")  # the ways into branches and loops
_EXITS = ("Exit", "RefExit")  # the ways out of loops
_EXPANDED = "/expanded"  # what stands for a call whose gradient was taken is named so behind it
_stateful: Dict[str, bool] = {}  # by type


def has_effect(operation: Operation) -> bool:
    """Whether someone could see later that it has run."""
    kind = operation.type
    if kind not in _stateful:
        changes = not kind.startswith("Ref") and any(argument.is_ref for argument in operation.op_def.input_arg)  # a variable that is no resource
        _stateful[kind] = not _WITHOUT_EFFECT.match(kind) and (operation.op_def.is_stateful or changes)
    return _stateful[kind]


class _Derived:
    """A branch or a loop that gradients made."""

    def __init__(self, outer: Any) -> None:
        self.outer_context = outer


def _context(operation: Operation) -> Any:
    """The branch or loop that an operation lies in."""
    context = operation._get_control_flow_context()
    return operation.graph.__dict__.get("_derived_contexts", {}).get(operation) if context is None else context


def _depth(context: Any) -> int:
    depth = 0
    while context is not None:
        depth, context = depth + 1, context.outer_context
    return depth


def _place_derived(made: List[Operation]) -> Dict[Operation, Any]:
    """The branches and loops of operations that gradients made, which tell of none: they lie where the innermost of their inputs does."""
    if not made or not made[0].graph._flow_marks:
        return {}
    placed = made[0].graph.__dict__.setdefault("_derived_contexts", {})
    entered: Dict[Any, _Derived] = {}  # by a loop's name, or the condition, the side and what is around

    def side(tensor: Tensor) -> Any:
        source = tensor.op
        if source.type not in ("Switch", "RefSwitch") or source._get_control_flow_context() is not None or source.inputs[1].op.type == "LoopCond":
            return _level(source)
        around = placed.get(source)
        return entered.setdefault((source.inputs[1], tensor.value_index, around), _Derived(around))

    for operation in made:
        if operation._get_control_flow_context() is not None or operation in placed:
            continue
        inputs = list(operation.inputs)[: 1 if operation.type in ("Merge", "RefMerge") else None]
        context = max([*map(side, inputs), *map(_level, operation.control_inputs)], key=_depth, default=None)
        if operation.type in ("Enter", "RefEnter"):
            context = entered.setdefault(operation.get_attr("frame_name"), _Derived(context))
        elif operation.type in ("Merge", "RefMerge") and inputs[0].op.type not in ("Enter", "RefEnter"):
            context = context.outer_context if context is not None else None
        if context is not None:
            placed[operation] = context
    return placed


def _without_expanded(made: List[Operation]) -> List[Operation]:
    """The operations but for those that calls were expanded to: a call does all that they do."""
    if not any(_EXPANDED in operation.name for operation in made):
        return made
    functions = made[0].graph.__dict__.get("_defined_functions", ())
    calls = {op.name for op in made if op.type in functions or any(attr.type == "func" for attr in op.op_def.attr)}
    return [op for op in made if not any(op.name[: at.start()] in calls for at in re.finditer(_EXPANDED, op.name))]


def _level(operation: Operation) -> Any:
    """The branch or loop that an operation's results belong to."""
    context = _context(operation)
    return context.outer_context if context is not None and operation.type in _EXITS else context


def _contexts(operation: Operation) -> List[Any]:
    """The branches and loops that an operation lies in, the innermost one first."""
    found = []
    context = _context(operation)
    while context is not None:
        found.append(context)
        context = context.outer_context
    return found


def _is_within(inner: Any, outer: Any) -> bool:
    """Whether a branch or loop lies in another one, or in none."""
    while inner is not None:
        inner = inner.outer_context
        if inner is outer:
            return True
    return False


def _before(operation: Operation) -> List[Operation]:
    return [tensor.op for tensor in operation.inputs] + list(operation.control_inputs)


def to_be_done(made: List[Operation], context: Any) -> Set[Operation]:
    """Which of the operations that were made in a branch or loop (None: in none) are to be done in each call: those that have an effect, and
    those that give on what others within do."""
    made = _without_expanded(made)
    effects = {operation for operation in made if has_effect(operation)}
    if effects:
        effects.difference_update(_initializers(get_default_graph()))
    below, found = set(effects), {operation for operation in effects if _level(operation) is context}
    busy = {around for operation in effects for around in _contexts(operation)}
    for operation in made if len(found) < len(effects) else ():  # none comes before what it needs, but for what comes from the round before
        level = _level(operation)
        earlier = [other for other in _before(operation) if other in below]
        ends = operation.type in _EXITS and _context(operation) in busy
        if ends or any(_level(other) is level and level is not context or _is_within(_level(other), level) for other in earlier):
            below.add(operation)
            if level is context:
                found.add(operation)
    return found


def _initializers(graph: Graph) -> List[Operation]:
    """What gives variables and tables of the graph their first values: that is for a step of its own."""
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES) + graph.get_collection(GraphKeys.LOCAL_VARIABLES)
    return [variable.initializer for variable in variables] + graph.get_collection(GraphKeys.TABLE_INITIALIZERS)


def put_in_order(made: List[Operation]) -> None:
    """Lets the operations that use a resource which some of them change wait for each other, as they were made; a branch or loop counts as one."""
    made = _without_expanded(made)
    derived = _place_derived(made)
    roots: Dict[Tensor, Tensor] = {}  # resources by the tensors that pass them on

    def resources(operation: Operation) -> Set[Tensor]:
        return {roots.get(t, t) for t in operation.inputs if t.dtype.base_dtype == dtypes.resource}

    for operation in made:
        if operation.type in (*_GATES, "Identity") and resources(operation):
            (root,) = resources(operation)
            roots.update((t, root) for t in operation.outputs)
    outside = set(_initializers(get_default_graph()))
    changed = {resource for operation in made if has_effect(operation) and operation not in outside for resource in resources(operation)}
    latest: Dict[Tuple[Any, Tensor], Set[Operation]] = {}
    used: Dict[Operation, Set[Tensor]] = {}  # by operations in branches and loops: what they, and those before them there, have used
    used_within: Dict[Any, Set[Tensor]] = {}  # by branches and loops
    for operation in made if changed else ():
        if operation in outside:
            continue
        level = _level(operation)
        for other in _before(operation):
            theirs = _level(other) if other in used else level
            if theirs is not level and _is_within(theirs, level):
                for resource in used[other]:
                    latest.setdefault((level, resource), set()).add(operation)
            if other in used and (theirs is level or _is_within(theirs, level)):
                used.setdefault(operation, set()).update(used[other])
        left = used_within.get(_context(operation), ()) if operation.type in _EXITS else ()
        for resource in left:
            latest.setdefault((level, resource), set()).add(operation)
        if left and level is not None:
            used.setdefault(operation, set()).update(left)
        uses = resources(operation) & changed
        reads = operation in derived and not has_effect(operation)  # what a gradient's loop reads may enter it after others have left it
        for around in _contexts(operation) if uses and not reads else ():
            used_within.setdefault(around, set()).update(uses)
        gate = operation.type in _GATES and _is_within(level, _level(operation.inputs[0].op))
        for resource in uses:
            place = (_level(operation.inputs[0].op) if gate else level, resource)
            missing = latest.get(place, set()) - {operation, *operation.control_inputs}
            operation._add_control_inputs(sorted(missing, key=lambda other: other._id))
            if not gate and not reads:
                latest[place] = {operation}
        if uses and not reads and level is not None:
            used.setdefault(operation, set()).update(uses)


@contextlib.contextmanager
def kept(graph: Graph) -> Iterator[None]:
    """A context in which what branches and loops do is done although nobody reads their results."""
    before = graph.__dict__.get("_keeps_effects")
    graph.__dict__["_keeps_effects"] = graph.version
    try:
        yield
    finally:
        graph.__dict__["_keeps_effects"] = before


def settle(graph: Graph) -> None:
    """Puts what was made in kept() in order now: what calls are expanded to takes over what they wait for."""
    since = graph.__dict__.get("_keeps_effects")
    if since is not None:
        put_in_order(graph.get_operations()[since:])


def waiting(results: List[Any], graph: Graph, since: int) -> List[Any]:
    """The results of a branch or a loop's body, which wait for what it does where that is kept. `since`: Graph.version before it."""
    if graph.__dict__.get("_keeps_effects") is None:
        return results
    return behind(results, list(to_be_done(graph.get_operations()[since:], graph._get_control_flow_context())))


def behind(results: List[Any], operations: List[Operation]) -> List[Any]:
    """The results of a branch or a loop's body, which wait for operations in it."""
    from millrace.ops import gen_ops

    def after(result: Any) -> Any:
        with control_dependencies([*operations, result] if isinstance(result, Operation) else operations):
            return gen_ops.no_op() if isinstance(result, Operation) else gen_ops.identity(result)

    return [after(result) for result in results] if operations else results
