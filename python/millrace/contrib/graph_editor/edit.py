# SPDX-License-Identifier: Apache-2.0
"""Subgraphs taken out of their graph, put behind each other, and left out."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.contrib.graph_editor import reroute, select, util
from millrace.contrib.graph_editor.subgraph import SubGraphView, make_view
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops


def detach_control_inputs(sgv: Any) -> None:
    """Its operations wait for none outside of it."""
    view = make_view(sgv)
    for op in view.ops:
        reroute.remove_control_inputs(op, [o for o in op.control_inputs if o not in view.ops])


def detach_control_outputs(sgv: Any, control_outputs: util.ControlOutputs) -> None:
    """No operation outside of it waits for its own."""
    if not isinstance(control_outputs, util.ControlOutputs):
        raise at_user_line(TypeError("Expected a util.ControlOutputs, got: %s" % type(control_outputs)))
    view = make_view(sgv)
    for op in view.ops:
        for waiting in control_outputs.update().get(op):
            if waiting not in view.ops:
                reroute.remove_control_inputs(waiting, op)


def detach_inputs(sgv: Any, control_inputs: bool = False) -> Tuple[SubGraphView, List[Tensor]]:
    """It reads placeholders instead of its inputs; the view, and these."""
    view = make_view(sgv)
    with view.graph.as_default():
        stand_ins = [array_ops.placeholder(t.dtype.base_dtype, name=util.placeholder_name(t)) for t in view.inputs]
    reroute.swap_inputs(view, stand_ins)
    if control_inputs:
        detach_control_inputs(view)
    return view, stand_ins


def detach_outputs(sgv: Any, control_outputs: Optional[util.ControlOutputs] = None) -> Tuple[SubGraphView, List[Tensor]]:
    """What read its outputs reads placeholders; the view with the outputs that were read, and these."""
    view = make_view(sgv)
    view = view.remap_outputs([i for i, t in enumerate(view.outputs) if t.consumers()])
    readers = SubGraphView(view.consumers())
    readers = readers.remap_inputs([i for i, t in enumerate(readers.inputs) if t in list(view.outputs)])
    with view.graph.as_default():
        stand_ins = [util.make_placeholder_from_tensor(t) for t in readers.inputs]
    reroute.swap_outputs(view, stand_ins)
    if control_outputs is not None:
        detach_control_outputs(view, control_outputs)
    return view, stand_ins


def detach(sgv: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None) -> Tuple[SubGraphView, List[Tensor], List[Tensor]]:
    """detach_inputs and detach_outputs; the view, and the placeholders of both."""
    waiting, awaited = select.check_cios(control_inputs, control_outputs, control_ios)
    view = make_view(sgv)
    _, inputs = detach_inputs(view, waiting)
    _, outputs = detach_outputs(view, awaited)
    return view, inputs, outputs


def connect(sgv0: Any, sgv1: Any, disconnect_first: bool = False) -> Tuple[SubGraphView, SubGraphView]:
    """The second subgraph reads the outputs of the first; disconnect_first: what read these reads placeholders."""
    view0, view1 = make_view(sgv0), make_view(sgv1)
    util.check_graphs(view0, view1)
    if disconnect_first:
        detach_outputs(view0)
    reroute.reroute_inputs(SubGraphView(passthrough_ts=list(view0.outputs)), view1)
    return view0, view1


def bypass(sgv: Any) -> Tuple[SubGraphView, List[Tensor]]:
    """What read its outputs reads its inputs; the view, and the placeholders that it reads."""
    view = make_view(sgv)
    inputs = list(view.inputs)
    view, stand_ins = detach_inputs(view)
    reroute.reroute_ts(inputs, list(view.outputs))
    return view, stand_ins
