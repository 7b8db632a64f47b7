# SPDX-License-Identifier: Apache-2.0
"""What operations cost, by the shapes of their tensors: numbers that tools for profiles ask for."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

_functions: Dict[Tuple[str, str], Callable[..., Any]] = {}


class OpStats:
    """One number about an operation."""

    def __init__(self, statistic_type: str, value: Optional[float] = None) -> None:
        self.statistic_type, self.value = statistic_type, value

    @property
    def statistic_type(self) -> str:
        """What the number is of, such as "flops"."""
        return self._statistic_type

    @statistic_type.setter
    def statistic_type(self, statistic_type: str) -> None:
        self._statistic_type = statistic_type

    @property
    def value(self) -> Optional[float]:
        """The number, or None where it is not known."""
        return self._value

    @value.setter
    def value(self, value: Optional[float]) -> None:
        self._value = value

    def __iadd__(self, other: "OpStats") -> "OpStats":
        if other.statistic_type != self.statistic_type:
            raise ValueError("Can't add an OpStat of type %s to one of %s." % (self.statistic_type, other.statistic_type))
        if self.value is None:
            self.value = other.value
        elif other.value is not None:
            self.value += other.value
        return self


class RegisterStatistics:
    """Decorator: function(graph, NodeDef) gives the OpStats of one kind for an op type."""

    def __init__(self, op_type: str, statistic_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string.")
        if "," in op_type:
            raise TypeError("op_type must not contain a comma.")
        if not isinstance(statistic_type, str):
            raise TypeError("statistic_type must be a string.")
        if "," in statistic_type:
            raise TypeError("statistic_type must not contain a comma.")
        self._key = (op_type, statistic_type)

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self._key in _functions:
            raise KeyError(
                "Registering two %s with name %r! (Previous registration was in %s)"
                % ("statistics", "%s,%s" % self._key, getattr(_functions[self._key], "__name__", "?"))
            )
        _functions[self._key] = f
        return f


def get_stats_for_node_def(graph: Any, node: Any, statistic_type: str) -> OpStats:
    """The number of an operation of a graph; its value is None for op types without a function."""
    function = _functions.get((node.op, statistic_type))
    return OpStats(statistic_type) if function is None else function(graph, node)


def _shape(graph: Any, name: str) -> Any:
    made = graph.as_graph_element(name if ":" in name else name + ":0").get_shape()
    made.assert_is_fully_defined()
    return made


@RegisterStatistics("MatMul", "flops")
def _of_product(graph: Any, node: Any) -> OpStats:
    rows, columns = _shape(graph, node.input[0]).as_list()
    summed = rows if node.attr["transpose_a"].b else columns
    return OpStats("flops", 2 * summed * _shape(graph, node.name).num_elements())


@RegisterStatistics("BatchMatMul", "flops")
def _of_products(graph: Any, node: Any) -> OpStats:
    rows, columns = _shape(graph, node.input[0]).as_list()[-2:]
    return OpStats("flops", 2 * (rows if node.attr["adj_x"].b else columns) * _shape(graph, node.name).num_elements())


def _of_convolution(graph: Any, node: Any) -> OpStats:
    height, width, depth = _shape(graph, node.input[1]).as_list()[:3]
    return OpStats("flops", 2 * height * width * (1 if node.op.startswith("Depthwise") else depth) * _shape(graph, node.name).num_elements())


RegisterStatistics("Conv2D", "flops")(_of_convolution)
RegisterStatistics("DepthwiseConv2dNative", "flops")(_of_convolution)


@RegisterStatistics("Dilation2D", "flops")
def _of_dilation(graph: Any, node: Any) -> OpStats:
    height, width = _shape(graph, node.input[1]).as_list()[:2]
    return OpStats("flops", 2 * height * width * _shape(graph, node.name).num_elements())


@RegisterStatistics("BiasAdd", "flops")
def _of_bias(graph: Any, node: Any) -> OpStats:
    return OpStats("flops", _shape(graph, node.input[0]).num_elements())
