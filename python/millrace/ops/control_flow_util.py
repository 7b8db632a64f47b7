# SPDX-License-Identifier: Apache-2.0
"""What the operations of conditionals and loops are: tensorflow.python.ops.control_flow_util."""

from __future__ import annotations

from typing import Any, Dict

from millrace.framework.graph import Operation

ENABLE_CONTROL_FLOW_V2 = False  # whether tf.cond and tf.while_loop are one operation each
functional: Dict[str, Any] = {}  # these: ops.control_flow_v2 puts them here


def IsSwitch(op: Operation) -> bool:
    """Whether it sends a value one way or the other."""
    return op.type in ("Switch", "RefSwitch")


def IsMerge(op: Operation) -> bool:
    """Whether it takes the one of its inputs that comes."""
    return op.type in ("Merge", "RefMerge")


def IsLoopEnter(op: Operation) -> bool:
    """Whether it brings a value into a loop."""
    return op.type in ("Enter", "RefEnter")


def IsLoopConstantEnter(op: Operation) -> bool:
    """Whether it brings a value into a loop that all rounds see."""
    return IsLoopEnter(op) and bool(op.get_attr("is_constant"))


def IsLoopExit(op: Operation) -> bool:
    """Whether it takes a value out of a loop."""
    return op.type in ("Exit", "RefExit")


def IsLoopMerge(op: Operation) -> bool:
    """Whether it is where a round of a loop begins: the value comes from around the loop, or from the round before."""
    return IsMerge(op) and any(IsLoopEnter(value.op) or value.op.type in ("NextIteration", "RefNextIteration") for value in op.inputs)


def IsCondMerge(op: Operation) -> bool:
    """Whether it is where the branches of a conditional meet."""
    return IsMerge(op) and not IsLoopMerge(op)


def IsLoopSwitch(op: Operation) -> bool:
    """Whether it sends a value into a loop's body or out of the loop."""
    return IsSwitch(op) and IsLoopMerge(op.inputs[0].op)


def IsCondSwitch(op: Operation) -> bool:
    """Whether it sends a value into a branch of a conditional."""
    return IsSwitch(op) and not IsLoopSwitch(op)


def IsInWhileLoop(op: Operation) -> bool:
    """Whether it lies in a loop."""
    return GetContainingWhileContext(op._get_control_flow_context()) is not None


def GetContainingWhileContext(context: Any, stop_ctxt: Any = None) -> Any:
    """The innermost loop that a context is or lies in; None where there is none, or none inside of stop_ctxt."""
    while context is not None and context is not stop_ctxt and not context.IsWhileContext():
        context = context.outer_context
    return None if context is stop_ctxt else context
