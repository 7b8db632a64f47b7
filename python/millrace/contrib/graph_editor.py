# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.graph_editor: operations and tensors of a graph by name, by what leads to them, and copies and changes of what they read."""

from __future__ import annotations

import re
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor, get_default_graph, name_scope
from millrace.ops import raw_ops


def _listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def make_list_of_op(ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False) -> List[Operation]:
    """A list of operations: of a graph all of them."""
    if isinstance(ops, Graph):
        if not allow_graph:
            raise at_user_line(TypeError("allow_graph is False: cannot convert a tf.Graph."))
        return list(ops.get_operations())
    found = [o for o in _listed(ops) if not (ignore_ts and isinstance(o, Tensor))]
    for o in found:
        if not isinstance(o, Operation):
            raise at_user_line(TypeError("Expected a tf.Operation, got %r" % (o,)))
    if check_graph and len({id(o.graph) for o in found}) > 1:
        raise at_user_line(ValueError("operations of several graphs"))
    return found


def make_list_of_t(ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False) -> List[Tensor]:
    """A list of tensors: of a graph all of them."""
    if isinstance(ts, Graph):
        if not allow_graph:
            raise at_user_line(TypeError("allow_graph is False: cannot convert a tf.Graph."))
        return get_tensors(ts)
    found = [t for t in _listed(ts) if not (ignore_ops and isinstance(t, Operation))]
    for t in found:
        if not isinstance(t, Tensor):
            raise at_user_line(TypeError("Expected a tf.Tensor, got %r" % (t,)))
    if check_graph and len({id(t.graph) for t in found}) > 1:
        raise at_user_line(ValueError("tensors of several graphs"))
    return found


def get_tensors(graph: Graph) -> List[Tensor]:
    """All tensors of a graph."""
    return [t for o in graph.get_operations() for t in o.outputs]


# ---- by name ----


def _matcher(pattern: Any) -> Callable[[str], bool]:
    found = re.compile(pattern) if isinstance(pattern, str) else pattern
    return lambda name: found.search(name) is not None


def filter_ops(ops: Any, positive_filter: Any) -> List[Operation]:
    """The operations of which a function says True."""
    found = make_list_of_op(ops)
    return [o for o in found if positive_filter is True or positive_filter(o)]


def filter_ops_from_regex(ops: Any, regex: Any) -> List[Operation]:
    """The operations whose names match."""
    matches = _matcher(regex)
    return filter_ops(ops, lambda o: matches(o.name))


def filter_ts(ops: Any, positive_filter: Any) -> List[Tensor]:
    """The outputs of operations of which a function says True."""
    return [t for o in make_list_of_op(ops) for t in o.outputs if positive_filter is True or positive_filter(t)]


def filter_ts_from_regex(ops: Any, regex: Any) -> List[Tensor]:
    """The outputs of operations whose names match."""
    matches = _matcher(regex)
    return filter_ts(ops, lambda t: matches(t.name))


def select_ops(*args: Any, **kwargs: Any) -> List[Operation]:
    """Operations by themselves, or (with graph=) those whose names match expressions."""
    graph, within = kwargs.pop("graph", None), kwargs.pop("positive_filter", None)
    kwargs.pop("restrict_ops_regex", None)
    if kwargs:
        raise at_user_line(TypeError("select_ops got unknown arguments %s" % sorted(kwargs)))
    found: List[Operation] = []
    for arg in args:
        if isinstance(arg, str) or hasattr(arg, "search"):
            if graph is None:
                raise at_user_line(ValueError("Use the keyword argument 'graph' to select ops by regex."))
            picked = filter_ops_from_regex(graph, re.sub(r"^\(\?#ops\)", "", arg) if isinstance(arg, str) else arg)
        else:
            picked = make_list_of_op(arg, ignore_ts=True)
        found += [o for o in picked if o not in found and (within is None or within(o))]
    return found


def select_ts(*args: Any, **kwargs: Any) -> List[Tensor]:
    """Tensors by themselves, or (with graph=) those whose names match expressions."""
    graph, within = kwargs.pop("graph", None), kwargs.pop("positive_filter", None)
    kwargs.pop("restrict_ts_regex", None)
    if kwargs:
        raise at_user_line(TypeError("select_ts got unknown arguments %s" % sorted(kwargs)))
    found: List[Tensor] = []
    for arg in args:
        if isinstance(arg, str) or hasattr(arg, "search"):
            if graph is None:
                raise at_user_line(ValueError("Use the keyword argument 'graph' to select tensors by regex."))
            picked = filter_ts_from_regex(graph, re.sub(r"^\(\?#ts\)", "", arg) if isinstance(arg, str) else arg)
        else:
            picked = make_list_of_t(arg, ignore_ops=True)
        found += [t for t in picked if t not in found and (within is None or within(t))]
    return found


# ---- by what leads where ----


def get_generating_ops(ts: Any) -> List[Operation]:
    """The operations that make tensors."""
    return list(dict.fromkeys(t.op for t in make_list_of_t(ts)))


def get_consuming_ops(ts: Any) -> List[Operation]:
    """The operations that read tensors."""
    return list(dict.fromkeys(o for t in make_list_of_t(ts) for o in t.consumers()))


def _seeds(seed_ops: Any, of_tensors: Callable[[Any], List[Operation]]) -> List[Operation]:
    values = list(get_tensors(seed_ops)) if isinstance(seed_ops, Graph) else _listed(seed_ops)
    return of_tensors(values) if values and isinstance(values[0], Tensor) else make_list_of_op(values)


def _walk(start: List[Operation], following: Callable[[Operation], List[Operation]], inclusive: bool, within: Any, stop_at: Any) -> List[Operation]:
    allowed = None if within is None else set(make_list_of_op(within))
    stops = set() if stop_at is None else set(_listed(stop_at))
    found: Dict[Operation, None] = {}
    wave = [o for o in start if allowed is None or o in allowed]
    while wave:
        found.update(dict.fromkeys(wave))
        wave = list(dict.fromkeys(n for o in wave if o not in stops for n in following(o) if n not in found and (allowed is None or n in allowed)))
    return [o for o in found if inclusive or o not in start]


def get_backward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None, stop_at_ts: Any = (), control_inputs: bool = False
) -> List[Operation]:
    """The operations that lead to some, nearest first; not beyond the tensors stop_at_ts."""
    stops = set(_listed(stop_at_ts))

    def before(o: Operation) -> List[Operation]:
        found = [t.op for t in o.inputs if t not in stops] + (list(o.control_inputs) if control_inputs else [])
        return [n for n in found if within_ops_fn is None or within_ops_fn(n)]

    return _walk(_seeds(seed_ops, lambda ts: [t.op for t in ts if t not in stops]), before, inclusive, within_ops, None)


def get_forward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None, stop_at_ts: Any = (), control_outputs: Any = None
) -> List[Operation]:
    """The operations that some lead to, nearest first; not beyond the tensors stop_at_ts."""
    stops = set(_listed(stop_at_ts))

    def after(o: Operation) -> List[Operation]:
        found = [c for t in o.outputs if t not in stops for c in t.consumers()]
        if control_outputs:
            found += [n for n in o.graph.get_operations() if o in n.control_inputs]
        return [n for n in found if within_ops_fn is None or within_ops_fn(n)]

    return _walk(_seeds(seed_ops, lambda ts: [c for t in ts if t not in stops for c in t.consumers()]), after, inclusive, within_ops, None)


def get_walks_intersection_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Any = None,
    within_ops_fn: Any = None,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> List[Operation]:
    """The operations on the ways from some to others."""
    back = bool(control_inputs or control_ios)
    forward = get_forward_walk_ops(forward_seed_ops, forward_inclusive, within_ops, within_ops_fn, (), bool(control_outputs or control_ios))
    backward = set(get_backward_walk_ops(backward_seed_ops, backward_inclusive, within_ops, within_ops_fn, (), back))
    return [o for o in forward if o in backward]


def get_walks_union_ops(forward_seed_ops: Any, backward_seed_ops: Any, **kwargs: Any) -> List[Operation]:
    """The operations that some lead to, and those that lead to others."""
    return list(dict.fromkeys(get_forward_walk_ops(forward_seed_ops, **kwargs) + get_backward_walk_ops(backward_seed_ops, **kwargs)))


# ---- changes ----


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Makes an operation wait for others."""
    for other in make_list_of_op(cops):
        if other in op.control_inputs:
            raise at_user_line(ValueError("%s is already a control_input of %s" % (other.name, op.name)))
    for other in make_list_of_op(cops):
        op._add_control_input(other)


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """What reads ts1 reads ts0 instead, one for one; how many inputs were changed."""
    sources, targets = make_list_of_t(ts0), make_list_of_t(ts1)
    if len(sources) != len(targets):
        raise at_user_line(ValueError("as many tensors to read as to replace: %d and %d" % (len(sources), len(targets))))
    may = None if can_modify is None else set(make_list_of_op(can_modify))
    may_not = set() if cannot_modify is None else set(make_list_of_op(cannot_modify))
    changes = [
        (o, i, source)
        for source, target in zip(sources, targets)
        for o in dict.fromkeys(target.consumers())
        if (may is None or o in may) and o not in may_not
        for i, t in enumerate(o.inputs)
        if t is target or t == target
    ]
    for operation, index, source in changes:
        operation._update_input(index, source)
    return len(changes)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """What reads ts0 reads ts1 and the other way round; how many inputs were changed."""
    first, second = make_list_of_t(ts0), make_list_of_t(ts1)
    readers = [(o, i, b) for a, b in [*zip(first, second), *zip(second, first)] for o in dict.fromkeys(a.consumers()) for i, t in enumerate(o.inputs) if t == a]
    may = None if can_modify is None else set(make_list_of_op(can_modify))
    may_not = set() if cannot_modify is None else set(make_list_of_op(cannot_modify))
    readers = [r for r in readers if (may is None or r[0] in may) and r[0] not in may_not]
    for operation, index, source in readers:
        operation._update_input(index, source)
    return len(readers)


# ---- copies ----


class SubGraphView:
    """Operations of a graph with what enters and leaves them."""

    def __init__(self, inside_ops: Any = ()) -> None:
        self._ops = make_list_of_op(inside_ops)
        held = set(self._ops)
        self._inputs = list(dict.fromkeys(t for o in self._ops for t in o.inputs if t.op not in held))
        self._outputs = [t for o in self._ops for t in o.outputs if any(c not in held for c in t.consumers()) or not t.consumers()]

    ops = property(lambda self: list(self._ops), doc="The operations.")
    inputs = property(lambda self: list(self._inputs), doc="The tensors from outside that they read.")
    outputs = property(lambda self: list(self._outputs), doc="Their tensors that others read, or nobody.")
    graph = property(lambda self: self._ops[0].graph if self._ops else None, doc="The graph.")

    def __contains__(self, op: Any) -> bool:
        return op in self._ops

    def __len__(self) -> int:
        return len(self._ops)


def make_view(*args: Any, **kwargs: Any) -> SubGraphView:
    """A view of operations that select_ops finds."""
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return args[0]
    return SubGraphView(select_ops(*args, **kwargs))


sgv = make_view


def sgv_scope(scope: str, graph: Graph) -> SubGraphView:
    """A view of the operations within a name scope."""
    return SubGraphView([o for o in graph.get_operations() if o.name.startswith(scope.rstrip("/") + "/")])


class TransformerInfo:
    """Which copy is whose."""

    def __init__(self, ops: Dict[Operation, Operation], tensors: Dict[Tensor, Tensor]) -> None:
        self._transformed_ops, self._transformed_ts = ops, tensors

    def transformed(self, original: Any, missing_fn: Any = None) -> Any:
        """The copy of an operation or a tensor; None, or missing_fn of it, where there is none."""
        if isinstance(original, (list, tuple)):
            return [self.transformed(o, missing_fn) for o in original]
        table: Dict[Any, Any] = self._transformed_ops if isinstance(original, Operation) else self._transformed_ts
        return table[original] if original in table else None if missing_fn is None else missing_fn(original)

    def original(self, transformed: Any, missing_fn: Any = None) -> Any:
        """What an operation or a tensor is a copy of."""
        table: Dict[Any, Any] = self._transformed_ops if isinstance(transformed, Operation) else self._transformed_ts
        found = next((a for a, b in table.items() if b == transformed), None)
        return found if found is not None or missing_fn is None else missing_fn(transformed)


def copy_with_input_replacements(
    sgv: Any, replacement_ts: Dict[Tensor, Tensor], dst_graph: Optional[Graph] = None, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> Tuple[SubGraphView, TransformerInfo]:
    """Copies of operations that read replacements of some tensors; what they read besides they read as it is."""
    view = make_view(sgv)
    if not view.ops:
        raise at_user_line(ValueError("there is nothing to copy"))
    graph = dst_graph or view.graph
    if graph is not view.graph and any(t not in replacement_ts for t in view.inputs):
        raise at_user_line(ValueError("a copy in another graph needs a replacement for each of its inputs"))
    ops: Dict[Operation, Operation] = {}
    tensors: Dict[Tensor, Tensor] = dict(replacement_ts)
    order = [o for o in view.graph.get_operations() if o in set(view.ops)]
    with graph.as_default(), name_scope((dst_scope.rstrip("/") + "/") if reuse_dst_scope and dst_scope else dst_scope.rstrip("/") or "copy"):
        for o in order:
            short = o.name[len(src_scope.rstrip("/")) + 1 :] if src_scope and o.name.startswith(src_scope.rstrip("/") + "/") else o.name
            waits = [ops.get(c, c) for c in o.control_inputs if c in ops or graph is view.graph]
            with graph.control_dependencies(waits), graph.device(o.device):
                made = graph.create_op(o.type, [tensors.get(t, t) for t in o.inputs], [t.dtype for t in o.outputs], name=short, attrs=_attributes_of(o))
            ops[o] = made
            tensors.update(zip(o.outputs, made.outputs))
    return SubGraphView(list(ops.values())), TransformerInfo(ops, {a: b for a, b in tensors.items() if a not in replacement_ts})


def _attributes_of(o: Operation) -> Dict[str, Any]:
    return {key: value for key, value in o.node_def.attr.items() if key not in ("_class", "_output_shapes")}


def copy(
    sgv: Any, dst_graph: Optional[Graph] = None, dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False
) -> Tuple[SubGraphView, TransformerInfo]:
    """Copies of operations, which read what they read."""
    return copy_with_input_replacements(sgv, {}, dst_graph, dst_scope, src_scope, reuse_dst_scope)


def graph_replace(target_ts: Any, replacement_ts: Dict[Tensor, Tensor], dst_scope: str = "", src_scope: str = "", reuse_dst_scope: bool = False) -> Any:
    """Copies of tensors in which some others are replaced: of all operations between these and those."""
    targets = make_list_of_t(target_ts)
    between = get_walks_intersection_ops(list(replacement_ts), targets)
    if not between:
        raise at_user_line(ValueError("Targets and replacements are not connected!"))
    _, info = copy_with_input_replacements(between, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope)
    made = [info.transformed(t) if info.transformed(t) is not None else t for t in targets]
    return made if isinstance(target_ts, (list, tuple)) else made[0]


def placeholder_name(t: Optional[Tensor] = None, scope: Optional[str] = None, prefix: str = "geph") -> str:
    """A name for a placeholder that stands for a tensor."""
    short = "" if t is None else "__" + t.op.name.rsplit("/", 1)[-1] + "_%d" % t.value_index
    return (scope.rstrip("/") + "/" if scope else "") + prefix + short


def make_placeholder_from_tensor(t: Tensor, scope: Optional[str] = None, prefix: str = "geph") -> Tensor:
    """A placeholder of a tensor's type and shape."""
    with get_default_graph().as_default():
        return raw_ops.Placeholder(dtype=t.dtype.base_dtype, shape=t.get_shape(), name=placeholder_name(t, scope, prefix))


reroute_a2b_ts = reroute_ts
reroute = types.SimpleNamespace(add_control_inputs=add_control_inputs, reroute_ts=reroute_ts, swap_ts=swap_ts)
