# SPDX-License-Identifier: Apache-2.0
"""How many floating point operations ops make, as profiles count them: of the types that framework/statistics.py does not know by itself."""

from __future__ import annotations

import math
from typing import Any

from millrace.framework.statistics import OpStats, RegisterStatistics, _shape

# Operations for each element: of the input, and of the result.
_OF_INPUT = {"Reciprocal": 1, "Square": 1, "Rsqrt": 2, "Log": 1, "Neg": 1, "AssignSub": 1, "AssignAdd": 1, "Softmax": 5}
_OF_RESULT = {
    "RsqrtGrad": 4,
    "SquaredDifference": 2,
    **dict.fromkeys(
        ("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Pow", "GreaterEqual", "Greater", "LessEqual", "Less", "Equal", "NotEqual"), 1
    ),
}


def _elements(graph: Any, name: str) -> int:
    return int(_shape(graph, name).num_elements())


def _area(node: Any) -> int:
    return math.prod(node.attr["ksize"].list.i)


def _register(op: str, count: Any) -> None:
    RegisterStatistics(op, "flops")(lambda graph, node: OpStats("flops", count(graph, node)))


for _op, _each in _OF_INPUT.items():
    _register(_op, lambda graph, node, each=_each: each * _elements(graph, node.input[0]))
for _op, _each in _OF_RESULT.items():
    _register(_op, lambda graph, node, each=_each: each * _elements(graph, node.name))
for _op in ("Sum", "ArgMax", "ArgMin", "BiasAddGrad"):
    _register(_op, lambda graph, node: _elements(graph, node.input[0]) - _elements(graph, node.name))
for _op in ("AvgPool", "MaxPool"):
    _register(_op, lambda graph, node: _area(node) * _elements(graph, node.name))


def _of_convolution_gradient(graph: Any, node: Any, image: str, kernel: str) -> int:
    steps = math.prod(node.attr["strides"].list.i)
    return 2 * _elements(graph, image) * _elements(graph, kernel) // (steps * (_shape(graph, kernel).as_list()[2] or 1))


_register("L2Loss", lambda graph, node: 3 * _elements(graph, node.input[0]) - 1)
_register("Mean", lambda graph, node: _elements(graph, node.input[0]))
_register("AvgPoolGrad", lambda graph, node: 2 * _area(node) * _elements(graph, node.input[1]))
_register("MaxPoolGrad", lambda graph, node: (_area(node) + 1) * _elements(graph, node.input[1]))
_register("AddN", lambda graph, node: _elements(graph, node.input[0]) * (len([n for n in node.input if not n.startswith("^")]) - 1))
_register("Conv2DBackpropInput", lambda graph, node: _of_convolution_gradient(graph, node, node.name, node.input[1]))
_register("Conv2DBackpropFilter", lambda graph, node: _of_convolution_gradient(graph, node, node.input[0], node.name))
