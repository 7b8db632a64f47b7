# SPDX-License-Identifier: Apache-2.0
"""Graphs as ONNX models (opset 17), for the ops that have a counterpart there: `millrace convert MODEL out.onnx`."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple, Union

from millrace.framework.graph import Graph, Operation, Tensor
from millrace.framework.importer import import_graph_def
from millrace.framework.static_values import constant_value
from millrace.onnx import messages, rules_nn
from millrace.onnx.model import IR_VERSION, OPSET, Model
from millrace.onnx.rules import LAZY, RULES

__all__ = ["convert"]
_INPUTS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable")
_MOST_NAMED = 12
_MOST_BYTES = (1 << 31) - 1  # of a protobuf message

_Names = Union[Mapping[str, str], Sequence[str]]


def convert(graph_def: Any, outputs: _Names, inputs: _Names = (), name: str = "millrace") -> Any:
    """The ONNX model (a message with SerializeToString) of a graph without variables.

    outputs: tensors ("y:0"), or {name in the model: tensor}. inputs: the same; without any all placeholders that the outputs need.
    NotImplementedError lists the ops that have no counterpart.
    """
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="")
        wanted, given = _named(graph, outputs), _named(graph, inputs)
        if not wanted:
            raise ValueError("a model has at least one output")
        needed = _needed(list(wanted.values()), set(given.values()))
        if not given:
            given = {op.name: op.outputs[0] for op in needed if op.type in _INPUTS[:2]}
        _check(needed, set(given.values()))
        return _write(needed, wanted, given, name)


def _named(graph: Graph, names: _Names) -> Dict[str, Tensor]:
    pairs = dict(names) if isinstance(names, Mapping) else {n[:-2] if n.endswith(":0") else n: n for n in names}
    return {k: graph.get_tensor_by_name(v if ":" in v else v + ":0") for k, v in pairs.items()}


def _needed(outputs: List[Tensor], given: Set[Tensor]) -> List[Operation]:
    """What the outputs need, inputs of ops before them."""
    order: List[Operation] = []
    state: Dict[Operation, bool] = {}  # True: it is in `order`
    stack = [t.op for t in outputs if t not in given][::-1]
    while stack:
        op = stack[-1]
        if op in state:
            stack.pop()
            if not state[op]:
                state[op] = True
                order.append(op)
            continue
        state[op] = False
        stack.extend(t.op for t in reversed(list(op.inputs)) if t not in given and t.op not in state)
    return order


def _is_known(op: Operation) -> bool:
    """A constant, or what can be computed of constants while it is written."""
    return op.type == "Const" or (len(op.outputs) == 1 and op.type not in _INPUTS and constant_value(op.outputs[0]) is not None)


def _check(needed: List[Operation], given: Set[Tensor]) -> None:
    variables = [op.name for op in needed if op.type in _VARIABLES]
    if variables:
        raise ValueError(
            "the graph reads the variables %s: freeze it first (--freeze of a SavedModel, tf.graph_util.convert_variables_to_constants)" % _list(variables)
        )
    missing: Dict[str, List[str]] = {}
    for op in needed:
        if op.type not in RULES and not _is_known(op) and not (op.type in _INPUTS and op.outputs[0] in given):
            missing.setdefault(op.type, []).append(op.name)
    placeholders = missing.pop("Placeholder", []) + missing.pop("PlaceholderV2", [])
    if placeholders:
        raise ValueError("the outputs need %s, which are not among the inputs" % _list(placeholders))
    if missing:
        raise NotImplementedError("no counterpart in ONNX for " + "; ".join("%s (%s)" % (op, _list(names)) for op, names in sorted(missing.items())))


def _list(names: List[str]) -> str:
    shown = ", ".join("'%s'" % n for n in names[:_MOST_NAMED])
    return shown + (" and %d more" % (len(names) - _MOST_NAMED) if len(names) > _MOST_NAMED else "")


def _write(needed: List[Operation], outputs: Mapping[str, Tensor], inputs: Mapping[str, Tensor], name: str) -> Any:
    model = Model()
    for key, tensor in inputs.items():
        model.set(tensor, model.fresh(key))
    for key in outputs:
        model.fresh(key) if key not in inputs else None  # no other value may be called so
    for op in needed:
        if all(model.has(t) for t in op.outputs) or _is_known(op):
            continue
        data = LAZY.get(op.type, len(op.inputs))
        made = RULES[op.type](model, op, [model.value(t) for t in list(op.inputs)[:data]])
        for tensor, value in zip(op.outputs, [made] if isinstance(made, str) else made):
            model.set(tensor, value)
    for key, tensor in outputs.items():
        if not (key in inputs and inputs[key] is tensor):
            model.nodes.append(messages.NodeProto(op_type="Identity", name="output/" + key, input=[model.value(tensor)], output=[key]))
    model.prune(list(outputs))
    graph = messages.GraphProto(
        name=name,
        node=model.nodes,
        initializer=list(model.initializers.values()),
        input=[_info(k, t) for k, t in inputs.items()],
        output=[_info(k, t) for k, t in outputs.items()],
    )
    if sum(len(t.raw_data) for t in graph.initializer) > _MOST_BYTES:
        raise NotImplementedError("the constants are larger than a protobuf message may be (2 GiB); external data are not written")
    written = messages.ModelProto(ir_version=IR_VERSION, producer_name="millrace", graph=graph)
    written.opset_import.add(version=OPSET)
    return written


def _info(name: str, tensor: Tensor) -> Any:
    info = messages.ValueInfoProto(name=name)
    kind = info.type.tensor_type
    kind.elem_type = messages.data_type(tensor.dtype.base_dtype.name)
    shape = tensor.get_shape()
    if shape.ndims is not None:
        kind.shape.SetInParent()
        for i, size in enumerate(shape.as_list()):
            if size is None:
                kind.shape.dim.add(dim_param="%s_%d" % (name, i))
            else:
                kind.shape.dim.add(dim_value=size)
    return info
