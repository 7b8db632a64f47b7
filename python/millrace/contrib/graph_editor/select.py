# SPDX-License-Identifier: Apache-2.0
"""Operations and tensors by name, and by what leads to them or comes of them."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from millrace.contrib.graph_editor.util import ControlOutputs, concatenate_unique, is_iterable, make_list_of_op, make_list_of_t
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor


def can_be_regex(obj: Any) -> bool:
    """Whether it is a regular expression, or the text of one."""
    return isinstance(obj, (str, re.Pattern))


def make_regex(obj: Any) -> Any:
    """A compiled regular expression."""
    if not can_be_regex(obj):
        raise at_user_line(ValueError("Expected a string or a regex, got: %s" % type(obj)))
    return re.compile(obj)


# ---- by name ----


def _get_input_ts(ops: Any) -> List[Tensor]:
    return list(dict.fromkeys(t for o in make_list_of_op(ops) for t in o.inputs))


def _get_output_ts(ops: Any) -> List[Tensor]:
    return [t for o in make_list_of_op(ops) for t in o.outputs]


def filter_ts(ops: Any, positive_filter: Any) -> List[Tensor]:
    """The inputs and outputs of operations of which a function says True; True itself takes all."""
    found = concatenate_unique(_get_input_ts(ops), _get_output_ts(ops))
    return [t for t in found if positive_filter is True or positive_filter(t)]


def filter_ts_from_regex(ops: Any, regex: Any) -> List[Tensor]:
    """The inputs and outputs of operations whose names match."""
    pattern = make_regex(regex)
    return filter_ts(ops, lambda t: pattern.search(t.name))


def filter_ops(ops: Any, positive_filter: Any) -> List[Operation]:
    """The operations of which a function says True; True itself takes all."""
    return [o for o in make_list_of_op(ops) if positive_filter is True or positive_filter(o)]


def filter_ops_from_regex(ops: Any, regex: Any) -> List[Operation]:
    """The operations whose names match."""
    pattern = make_regex(regex)
    return filter_ops(ops, lambda o: pattern.search(o.name))


def get_name_scope_ops(ops: Any, scope: str) -> List[Operation]:
    """The operations of a name scope, and the one of its name."""
    return filter_ops_from_regex(ops, "^%s(/.*)?$" % (scope[:-1] if scope.endswith("/") else scope))


def _select(args: Tuple[Any, ...], kwargs: Dict[str, Any], kind: str, pick: Callable[[Any, Any], Any], as_list: Callable[[Any], List[Any]]) -> List[Any]:
    """The operations or tensors of arguments; kind ("ops", "ts") is what (?#kind) at the start of an expression says that it is for."""
    other = "ts" if kind == "ops" else "ops"
    unknown = set(kwargs) - {"graph", "positive_filter", "restrict_ops_regex", "restrict_ts_regex"}
    if unknown:
        raise at_user_line(ValueError("Wrong keywords argument: %s." % sorted(unknown)[0]))
    graph, within, restricted = kwargs.get("graph"), kwargs.get("positive_filter"), kwargs.get("restrict_%s_regex" % kind, False)
    if graph is not None and not isinstance(graph, Graph):
        raise at_user_line(TypeError("Expected a tf.Graph, got: %s" % type(graph)))
    found: List[Any] = []
    for arg in args:
        if not can_be_regex(arg):
            picked = as_list(arg)
        elif graph is None:
            raise at_user_line(ValueError("Use the keyword argument 'graph' to use regex."))
        else:
            pattern = make_regex(arg)
            meant = not pattern.pattern.startswith("(?#%s)" % other) and (not restricted or pattern.pattern.startswith("(?#%s)" % kind))
            picked = pick(graph, pattern) if meant else []
        concatenate_unique(found, [value for value in picked if within is None or within(value)])
    return found


def select_ops(*args: Any, **kwargs: Any) -> List[Operation]:
    """Operations by themselves, or (with graph=) those whose names match expressions."""
    return _select(args, kwargs, "ops", filter_ops_from_regex, lambda arg: make_list_of_op(arg, ignore_ts=True))


def select_ts(*args: Any, **kwargs: Any) -> List[Tensor]:
    """Tensors by themselves, or (with graph=) those whose names match expressions."""
    return _select(args, kwargs, "ts", filter_ts_from_regex, lambda arg: make_list_of_t(arg, ignore_ops=True))


def select_ops_and_ts(*args: Any, **kwargs: Any) -> Tuple[List[Operation], List[Tensor]]:
    """Operations, and tensors: expressions for tensors start with (?#ts)."""
    return select_ops(*args, restrict_ops_regex=False, **kwargs), select_ts(*args, restrict_ts_regex=True, **kwargs)


# ---- by what leads where ----


def check_cios(control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None) -> Tuple[bool, Optional[ControlOutputs]]:
    """Whether to go by what operations wait for, and by whom they are waited for; control_ios means both."""
    if control_ios is not None and control_outputs is not None:
        raise at_user_line(ValueError("control_outputs should be None when using control_ios."))
    given = control_outputs if control_ios is None else control_ios
    if given is not None and not isinstance(given, ControlOutputs):
        raise at_user_line(TypeError("Expected a util.ControlOutputs, got: %s" % type(given)))
    return control_ios is not None or control_inputs, None if given is None else given.update()


def get_ops_ios(ops: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None) -> List[Operation]:
    """The neighbours of operations, before and behind them."""
    waiting, awaited = check_cios(control_inputs, control_outputs, control_ios)
    found: Dict[Operation, None] = {}
    for op in make_list_of_op(ops):
        found.update(dict.fromkeys(t.op for t in op.inputs))
        found.update(dict.fromkeys(consumer for t in op.outputs for consumer in t.consumers()))
        found.update(dict.fromkeys(awaited.get(op) if awaited else ()))
        found.update(dict.fromkeys(op.control_inputs if waiting else ()))
    return list(found)


def compute_boundary_ts(ops: Any) -> Tuple[List[Tensor], List[Tensor], List[Tensor]]:
    """What enters operations, what leaves them or is read by nobody, and what passes between them."""
    held = make_list_of_op(ops)
    inputs, outputs = _get_input_ts(held), _get_output_ts(held)
    made, within = set(outputs), set(held)
    inside = [t for t in inputs if t in made]
    hidden = {t for t in inside if within.issuperset(t.consumers())}
    return [t for t in inputs if t not in made], [t for t in outputs if t not in hidden], inside


def get_within_boundary_ops(
    ops: Any, seed_ops: Any, boundary_ops: Any = (), inclusive: bool = True, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> List[Operation]:
    """The operations that are reached from some without crossing a boundary; inclusive: with the boundary that was met."""
    waiting, awaited = check_cios(control_inputs, control_outputs, control_ios)
    boundary = set(make_list_of_op(boundary_ops))
    wave = make_list_of_op(seed_ops, allow_graph=False)
    found = set(wave)
    if boundary & found:
        raise at_user_line(ValueError("Boundary is intersecting with the seeds."))
    while wave:
        met = [o for o in get_ops_ios(wave, waiting, awaited) if o not in found]
        wave = [o for o in met if o not in boundary]
        found.update(met if inclusive else wave)
    return [o for o in make_list_of_op(ops) if o in found]


def _walk(
    seeds: List[Operation], following: Callable[[Operation], Iterable[Operation]], inclusive: bool, within_ops: Any, within_ops_fn: Any
) -> List[Operation]:
    allowed = None if within_ops is None else set(make_list_of_op(within_ops, allow_graph=False))
    start = [o for o in dict.fromkeys(seeds) if allowed is None or o in allowed]
    found = dict.fromkeys(start)
    wave = start
    while wave:
        met = dict.fromkeys(n for o in wave for n in following(o) if n not in found)
        wave = [n for n in met if (allowed is None or n in allowed) and (within_ops_fn is None or within_ops_fn(n))]
        found.update(dict.fromkeys(wave))
    return [o for o in found if inclusive or o not in start]


def _seeds(seed_ops: Any, of_tensors: Callable[[List[Tensor]], List[Operation]]) -> List[Operation]:
    values = list(seed_ops) if is_iterable(seed_ops) else [seed_ops]
    if values and isinstance(values[0], Tensor):
        return of_tensors(make_list_of_t(values, allow_graph=False))
    return make_list_of_op(values, allow_graph=False)


def get_forward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None, stop_at_ts: Any = (), control_outputs: Any = None
) -> List[Operation]:
    """The operations that some lead to, nearest first; not beyond the tensors stop_at_ts. Of tensors it starts with who reads them."""
    _, awaited = check_cios(False, control_outputs)
    stops = set(make_list_of_t(stop_at_ts))

    def after(o: Operation) -> Iterable[Operation]:
        yield from (c for t in o.outputs if t not in stops for c in t.consumers())
        yield from awaited.get(o) if awaited else ()

    return _walk(_seeds(seed_ops, lambda ts: [c for t in ts for c in t.consumers()]), after, inclusive, within_ops, within_ops_fn)


def get_backward_walk_ops(
    seed_ops: Any, inclusive: bool = True, within_ops: Any = None, within_ops_fn: Any = None, stop_at_ts: Any = (), control_inputs: bool = False
) -> List[Operation]:
    """The operations that lead to some, nearest first; not beyond the tensors stop_at_ts. Of tensors it starts with who makes them."""
    stops = set(make_list_of_t(stop_at_ts))

    def before(o: Operation) -> Iterable[Operation]:
        yield from (t.op for t in o.inputs if t not in stops)
        yield from o.control_inputs if control_inputs else ()

    return _walk(_seeds(seed_ops, lambda ts: [t.op for t in ts]), before, inclusive, within_ops, within_ops_fn)


def _walks(forward_seeds: Any, backward_seeds: Any, inclusive: Tuple[bool, bool], within: Tuple[Any, Any], control: Tuple[Any, Any, Any]) -> Any:
    waiting, awaited = check_cios(*control)
    forward = get_forward_walk_ops(forward_seeds, inclusive[0], *within, control_outputs=awaited)
    return forward, get_backward_walk_ops(backward_seeds, inclusive[1], *within, control_inputs=waiting)


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
    inclusive, control = (forward_inclusive, backward_inclusive), (control_inputs, control_outputs, control_ios)
    forward, backward = _walks(forward_seed_ops, backward_seed_ops, inclusive, (within_ops, within_ops_fn), control)
    behind = set(backward)
    return [o for o in forward if o in behind]


def get_walks_union_ops(
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
    """The operations that some lead to, and those that lead to others."""
    inclusive, control = (forward_inclusive, backward_inclusive), (control_inputs, control_outputs, control_ios)
    return concatenate_unique(*_walks(forward_seed_ops, backward_seed_ops, inclusive, (within_ops, within_ops_fn), control))
