# SPDX-License-Identifier: Apache-2.0
"""Changes of what operations read and wait for."""

from __future__ import annotations

from typing import Any, List, Optional, Set, Tuple

from millrace.contrib.graph_editor import util
from millrace.contrib.graph_editor.subgraph import SubGraphView, make_view
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor


def _check_ts_compatibility(ts0: List[Tensor], ts1: List[Tensor]) -> None:
    if len(ts0) != len(ts1):
        raise at_user_line(ValueError("ts0 and ts1 have different sizes: %d != %d" % (len(ts0), len(ts1))))
    for t0, t1 in zip(ts0, ts1):
        if not t0.dtype.is_compatible_with(t1.dtype):
            raise at_user_line(ValueError("Dtypes %s and %s are not compatible." % (t0.dtype, t1.dtype)))
        if not t0.get_shape().is_compatible_with(t1.get_shape()):
            raise at_user_line(ValueError("Shapes %s and %s are not compatible." % (t0.get_shape(), t1.get_shape())))


def _set_of_ops(ops: Any) -> Optional[Set[Operation]]:
    return None if ops is None else set(util.make_list_of_op(ops))


def _reroute_ts(ts0: Any, ts1: Any, both: bool, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Lets what reads ts1 read ts0, and with `both` the other way round too; who reads what is seen before the first change."""
    sources, targets = util.make_list_of_t(ts0), util.make_list_of_t(ts1)
    _check_ts_compatibility(sources, targets)
    may, may_not = _set_of_ops(can_modify), _set_of_ops(cannot_modify) or set()
    pairs = [(t0, t1) for t0, t1 in zip(sources, targets) if t0 is not t1]
    changes = {
        (reader, index): new
        for a, b in pairs
        for new, old in ([(a, b), (b, a)] if both else [(a, b)])
        for reader in dict.fromkeys(old.consumers())
        if (may is None or reader in may) and reader not in may_not
        for index, t in enumerate(reader.inputs)
        if t is old
    }
    for (reader, index), new in changes.items():
        reader._update_input(index, new)
    return len(changes)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """What reads ts0 reads ts1 and the other way round; how many inputs were changed."""
    return _reroute_ts(ts0, ts1, True, can_modify, cannot_modify)


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """What reads ts1 reads ts0 instead, one for one; how many inputs were changed."""
    return _reroute_ts(ts0, ts1, False, can_modify, cannot_modify)


def _views(sgv0: Any, sgv1: Any) -> Tuple[SubGraphView, SubGraphView]:
    views = make_view(sgv0), make_view(sgv1)
    util.check_graphs(*views)
    return views


def _reroute_inputs(sgv0: Any, sgv1: Any, both: bool) -> Tuple[SubGraphView, SubGraphView]:
    view0, view1 = _views(sgv0, sgv1)
    readers = [o for view in (view0, view1) for o in [*view.ops, *util.get_consuming_ops(list(view.passthroughs))]]
    _reroute_ts(list(view0.inputs), list(view1.inputs), both, can_modify=readers)
    old0, old1 = view0.copy(), view1.copy()
    for view, old, given in ((view1, old1, old0), (view0, old0, old1)) if both else ((view1, old1, old0),):
        view._input_ts, view._passthrough_ts = list(given._input_ts), list(given._passthrough_ts)
        passed = {t: given._input_ts[i] for i, t in enumerate(old._input_ts) if t in old._passthrough_ts and i < len(given._input_ts)}
        view._output_ts = [passed.get(t, t) for t in old._output_ts]
    return view0, view1


def _reroute_outputs(sgv0: Any, sgv1: Any, both: bool) -> Tuple[SubGraphView, SubGraphView]:
    view0, view1 = _views(sgv0, sgv1)
    _reroute_ts(list(view0.outputs), list(view1.outputs), both, cannot_modify=[*view0.ops, *view1.ops])
    return view0, view1


def swap_inputs(sgv0: Any, sgv1: Any) -> Tuple[SubGraphView, SubGraphView]:
    """Each of two subgraphs reads what the other read."""
    return _reroute_inputs(sgv0, sgv1, True)


def reroute_inputs(sgv0: Any, sgv1: Any) -> Tuple[SubGraphView, SubGraphView]:
    """The second of two subgraphs reads what the first one reads."""
    return _reroute_inputs(sgv0, sgv1, False)


def swap_outputs(sgv0: Any, sgv1: Any) -> Tuple[SubGraphView, SubGraphView]:
    """What read the outputs of one of two subgraphs reads those of the other."""
    return _reroute_outputs(sgv0, sgv1, True)


def reroute_outputs(sgv0: Any, sgv1: Any) -> Tuple[SubGraphView, SubGraphView]:
    """What read the outputs of the second of two subgraphs reads those of the first."""
    return _reroute_outputs(sgv0, sgv1, False)


def swap_ios(sgv0: Any, sgv1: Any) -> Tuple[SubGraphView, SubGraphView]:
    """swap_outputs and swap_inputs."""
    return _reroute_inputs(*_reroute_outputs(sgv0, sgv1, True), True)


def reroute_ios(sgv0: Any, sgv1: Any) -> Tuple[SubGraphView, SubGraphView]:
    """reroute_outputs and reroute_inputs."""
    return _reroute_inputs(*_reroute_outputs(sgv0, sgv1, False), False)


def _check_is_operation(op: Any) -> None:
    if not isinstance(op, Operation):
        raise at_user_line(TypeError("Expected a tf.Operation, got: %s" % type(op)))


def add_control_inputs(op: Operation, cops: Any) -> None:
    """Makes an operation wait for others."""
    _check_is_operation(op)
    others = util.make_list_of_op(cops, allow_graph=False)
    for other in others:
        if other in op.control_inputs:
            raise at_user_line(ValueError("%s is already a control_input of %s" % (other.name, op.name)))
    for other in others:
        op._add_control_input(other)


def remove_control_inputs(op: Operation, cops: Any) -> None:
    """Makes an operation no longer wait for others."""
    _check_is_operation(op)
    others = util.make_list_of_op(cops, allow_graph=False)
    for other in others:
        if other not in op.control_inputs:
            raise at_user_line(ValueError("%s is not a control_input of %s" % (op.name, other.name)))
    op._stop_waiting_for(others)
