# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.subscribe: operations that run whenever a tensor of a finished graph is used."""

from __future__ import annotations

from typing import Any, Callable, List

from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor
from millrace.ops import array_ops
from millrace.ops.variables import Variable


def subscribe(tensors: Any, side_effects: Any) -> Any:
    """Lets what reads a tensor wait for operations on it, and gives the tensor that is read now; for each tensor of a structure.

    side_effects: functions that get the tensor and give operations or tensors. Resources and variants are given back as they are. What
    waited for the tensor's operation waits for the new one too. TypeError for what is no tensor, variable, or structure of these.
    """
    functions = list(side_effects) if isinstance(side_effects, (list, tuple)) else [side_effects]

    def of(value: Any) -> Tensor:
        if isinstance(value, Variable):
            value = value.value()
        if not isinstance(value, Tensor):
            raise at_user_line(TypeError("subscribe argument %r has invalid type %r" % (value, type(value))))
        return _subscribed(value, functions)

    return nest.map_structure(of, tensors)


def _is_subscribed_identity(tensor: Tensor) -> bool:
    """Whether subscribe has made it."""
    return tensor.op.type == "Identity" and tensor.op.name.startswith(tensor.op.inputs[0].op.name + "/subscription/Identity")


def _subscribed(tensor: Tensor, functions: List[Callable[[Tensor], Any]]) -> Tensor:
    if not tensor.dtype.is_numpy_compatible:
        return tensor
    if _is_subscribed_identity(tensor):
        return _extended(tensor, functions)
    for reader in tensor.consumers():
        if reader.type == "Identity" and _is_subscribed_identity(reader.outputs[0]):
            return _extended(reader.outputs[0], functions)
    return _new(tensor, functions)


def _done(tensor: Tensor, functions: List[Callable[[Tensor], Any]]) -> List[Operation]:
    made = nest.flatten([function(tensor) for function in functions])
    return [value.op if isinstance(value, Tensor) else value for value in made]


def _extended(identity: Tensor, functions: List[Callable[[Tensor], Any]]) -> Tensor:
    source = identity.op.inputs[0]
    with source.graph.as_default(), source.graph.device(source.device), source.graph.control_dependencies(None):
        with source.graph.name_scope(source.op.name + "/subscription/"):
            for operation in _done(source, functions):
                identity.op._add_control_input(operation)
    return identity


def _new(tensor: Tensor, functions: List[Callable[[Tensor], Any]]) -> Tensor:
    graph = tensor.graph
    readers = [(reader, i) for reader in dict.fromkeys(tensor.consumers()) for i, read in enumerate(reader.inputs) if read is tensor]
    waiting = tensor.op._control_outputs
    others = [other for output in tensor.op.outputs for other in output.consumers() if other.type == "Identity" and _is_subscribed_identity(other.outputs[0])]
    waiting_for_others = [operation for other in others for operation in other._control_outputs]
    with graph.as_default(), graph.device(tensor.device), graph.control_dependencies(None):
        with graph.name_scope(tensor.op.name + "/subscription/"):
            with graph.control_dependencies(_done(tensor, functions)):
                made = array_ops.identity(tensor, "Identity")
    made.op._set_control_flow_context(tensor.op._get_control_flow_context())
    for reader, i in readers:
        reader._update_input(i, made)
    for operation in waiting:
        operation._stop_waiting_for([tensor.op])
    for operation in dict.fromkeys(waiting + waiting_for_others):
        operation._add_control_input(made.op)
    return made
