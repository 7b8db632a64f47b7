# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.receptive_field: how large a part of an image one value of a convolutional network sees, at what steps and with what padding
(Araujo, Norris and Sim, Computing Receptive Fields of Convolutional Neural Networks, 2019).

Sizes of images are (height, width), as shapes are; what is answered is (horizontal, vertical).
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from millrace import tf_logging
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Tensor
from millrace.framework.tensor_util import make_ndarray

_POINTWISE = frozenset(
    "Add AddV2 BiasAdd Cast Ceil ConcatV2 Const Floor FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 GreaterEqual Identity Log LRN Mul Pow RealDiv "
    "Relu Relu6 Round Rsqrt Softplus Sub VariableV2".split()
)


class NodeInfo(NamedTuple):
    """A node, its place in an order in which each comes behind its inputs, and the sizes of images before and behind it."""

    order: int
    node: Any
    input_size: Optional[Sequence[Any]]
    output_size: Optional[Sequence[Any]]


class _Window(NamedTuple):
    """What a layer does along one axis; None where it is not known."""

    size: Optional[int]
    stride: Optional[int]
    padding: Optional[int]  # in front
    total_padding: Optional[int]  # in front and behind


_POINT, _UNKNOWN = _Window(1, 1, 0, 0), _Window(None, None, None, None)

# ---- one layer ----


def _constant(node: Any, index: int, what: str, nodes: Dict[str, Any]) -> Any:
    source = nodes[node.input[index].split(":")[0]]
    if source.op != "Const":
        raise at_user_line(ValueError("the %s of %s are no constant, but %s" % (what, node.name, source.op)))
    return make_ndarray(source.attr["value"].tensor)


def _kernel_of_convolution(node: Any, nodes: Dict[str, Any]) -> List[int]:
    read = nodes[node.input[1].split(":")[0]]
    weights = nodes[read.input[0].split(":")[0]] if read.input else read
    if weights.op not in ("VariableV2", "VarHandleOp", "Const"):
        raise at_user_line(ValueError("Weight layer is not of type VariableV2, but %s" % weights.op))
    shape = weights.attr["value"].tensor.tensor_shape if weights.op == "Const" else weights.attr["shape"].shape
    return [dim.size for dim in shape.dim[:2]]


def _along(node: Any, sizes: Sequence[Any], what: str) -> List[int]:
    if sizes[0] != 1 or sizes[3] != 1:
        raise at_user_line(ValueError("%s: the %s of examples and channels must be 1, not %s" % (node.name, what, list(sizes))))
    return [int(n) for n in sizes[1:3]]


def _padded(node: Any, size: int, stride: int, resolution: Optional[int]) -> _Window:
    """The window of a convolution or a pooling with the padding that it asks for."""
    padding = node.attr["padding"].s
    if padding == b"VALID":
        return _Window(size, stride, 0, 0)
    if padding != b"SAME":
        raise at_user_line(ValueError("Invalid padding operation %s" % padding))
    if resolution is not None:
        total = max(size - (resolution % stride or stride), 0)
        return _Window(size, stride, total // 2, total)
    if size == 1 or stride == 1:
        return _Window(size, stride, (size - 1) // 2, size - 1)
    if stride == 2 and size % 2 == 0:  # the same in front for even and odd images
        return _Window(size, stride, (size - 1) // 2, None)
    tf_logging.warning("The padding of %s depends on the size of the image: paths are not compared behind it. input_resolution= states the size.", node.name)
    return _Window(size, stride, None, None)


def _windows(node: Any, nodes: Dict[str, Any], resolution: Optional[Sequence[Any]], force: bool) -> List[_Window]:
    """What a layer does, vertically and horizontally."""
    sizes = [None, None] if resolution is None else list(resolution)
    if node.op in _POINTWISE:
        return [_POINT, _POINT]
    if node.op == "Pad":
        paddings = _constant(node, 1, "paddings", nodes)
        if paddings[0].any() or paddings[3].any():
            raise at_user_line(ValueError("%s pads examples or channels" % node.name))
        return [_Window(1, 1, int(before), int(before + after)) for before, after in paddings[1:3]]
    if node.op in ("Conv2D", "DepthwiseConv2dNative"):
        kernel, strides = _kernel_of_convolution(node, nodes), list(node.attr["strides"].list.i)[1:3]
    elif node.op == "MaxPoolV2":
        kernel = _along(node, _constant(node, 1, "sizes", nodes), "sizes")
        strides = [int(n) for n in _constant(node, 2, "strides", nodes)[1:3]]
    elif node.op in ("MaxPool", "AvgPool"):
        kernel, strides = _along(node, node.attr["ksize"].list.i, "sizes"), list(node.attr["strides"].list.i)[1:3]
    elif force:
        return [_UNKNOWN, _UNKNOWN]
    else:
        raise at_user_line(ValueError("Unknown layer for operation '%s': %s" % (node.name, node.op)))
    return [_padded(node, *along) for along in zip(kernel, strides, sizes)]


def get_layer_params(node: Any, name_to_node: Dict[str, Any], input_resolution: Optional[Sequence[Any]] = None, force: bool = False) -> Tuple[Any, ...]:
    """(size, stride, padding in front, padding in all) of a layer, each of them horizontally and vertically; force: None for ops that are not known."""
    vertical, horizontal = _windows(node, name_to_node, input_resolution, force)
    return tuple(value for pair in zip(horizontal, vertical) for value in pair)


# ---- the graph ----


def parse_graph_nodes(graph_def: Any) -> Dict[str, Any]:
    """{name: node}."""
    return {node.name: node for node in graph_def.node}


def _inputs(node: Any) -> List[str]:
    return [name.split(":")[0] for name in node.input if not name.startswith("^")]


def _behind(size: Any, window: _Window) -> Optional[int]:
    if size is None or window.size is None or window.stride is None or window.total_padding is None:
        return None
    return -((size + window.total_padding - window.size + 1) // -window.stride)


def get_compute_order(graph_def: Any, input_node_name: str = "", input_node_size: Optional[Sequence[int]] = None) -> Tuple[Dict[str, NodeInfo], Dict[str, Any]]:
    """({name: NodeInfo}, {name: node}) of a graph; sizes are known behind the input, if its size is given."""
    nodes = parse_graph_nodes(graph_def)
    found: Dict[str, NodeInfo] = {}
    for start in nodes:
        waiting = [start]
        while waiting:
            name = waiting[-1]
            node = nodes[name]
            inputs = [] if name == input_node_name else _inputs(node)
            missing = [i for i in inputs if i not in found]
            if name in found or not missing:
                waiting.pop()
            if name not in found and not missing:
                found[name] = _info(node, nodes, [found[i] for i in inputs], input_node_size if name == input_node_name else None)
            elif name not in found:
                if set(missing) & set(waiting):
                    raise at_user_line(ValueError("%s is part of a loop" % name))
                waiting += missing
    return found, nodes


def _info(node: Any, nodes: Dict[str, Any], inputs: List[NodeInfo], own_size: Optional[Sequence[int]]) -> NodeInfo:
    order = max([i.order + 1 for i in inputs], default=0)
    size = inputs[0].output_size if inputs else None
    behind = own_size if size is None else [_behind(n, w) for n, w in zip(size, _windows(node, nodes, size, force=True))]
    return NodeInfo(order, node, size, behind)


class ReceptiveField:
    """The size of what one value sees, its steps and its padding in the image, horizontally and vertically."""

    def __init__(self, size: Any, stride: Any, padding: Any) -> None:
        self.size, self.stride, self.padding = np.asarray(size), np.asarray(stride), np.asarray(padding)

    def _axes(self, points: Any, axis: Any) -> Tuple[np.ndarray, List[int]]:
        axes, given = list(range(self.size.size) if axis is None else axis), np.asarray(points)
        if given.shape[-1] != len(axes):
            raise at_user_line(ValueError("the coordinates have %d dimensions, and `axis` %d" % (given.shape[-1], len(axes))))
        return given, axes

    def compute_input_center_coordinates(self, y: Any, axis: Any = None) -> Any:
        """The middles, in the image, of what values see."""
        given, axes = self._axes(y, axis)
        return -self.padding[axes] + given * self.stride[axes] + (self.size[axes] - 1) / 2

    def compute_feature_coordinates(self, x: Any, axis: Any = None) -> Any:
        """The values that have points of the image in their middles."""
        given, axes = self._axes(x, axis)
        return (given + self.padding[axes] + (1 - self.size[axes]) / 2) / self.stride[axes]

    def __iter__(self) -> Any:
        return iter(np.concatenate([self.size, self.stride, self.padding]))


def _before(window: _Window, behind: _Window, padding_known: bool) -> _Window:
    """What the output sees of the input of a layer, by what it sees of the layer's output."""
    size = window.stride * behind.size + window.size - window.stride  # type: ignore[operator]
    padding = window.stride * behind.padding + window.padding if padding_known else None  # type: ignore[operator]
    return _Window(size, window.stride * behind.stride, padding, None)  # type: ignore[operator]


def _joined(old: _Window, new: _Window, axis: str, padding_known: bool) -> _Window:
    """What is seen by two paths: the larger part. ValueError if the paths go at other steps, or about other middles."""
    if padding_known:
        if old.stride != new.stride:
            raise at_user_line(ValueError("Graph is not aligned since effective stride from different paths is different in %s direction" % axis))
        if old.size - 2 * old.padding != new.size - 2 * new.padding:  # type: ignore[operator]
            raise at_user_line(ValueError("Graph is not aligned since center shift from different paths is different in %s direction" % axis))
    return new if old.size < new.size else old  # type: ignore[operator]


def compute_receptive_field_from_graph_def(
    graph_def: Any, input_node: Any, output_node: Any, stop_propagation: Optional[Sequence[str]] = None, input_resolution: Optional[Sequence[int]] = None
) -> ReceptiveField:
    """What a value of the output sees of the input. Nodes that start with what stop_propagation has are left out; without input_resolution
    the padding is None where it depends on the size of the image. ValueError where paths do not fit together, and for ops that are not known."""
    definition = graph_def.as_graph_def() if isinstance(graph_def, Graph) else graph_def
    source, target = (n.op.name if isinstance(n, Tensor) else n for n in (input_node, output_node))
    infos, nodes = get_compute_order(definition, source, input_resolution)
    if target not in infos:
        raise at_user_line(ValueError("Output node was not found"))
    seen: Dict[str, List[_Window]] = {target: [_POINT, _POINT]}
    padding_known = True
    for name, (_, node, size, _) in sorted(infos.items(), key=lambda item: -item[1].order):
        if name == source:
            break
        if name not in seen:
            continue
        windows = _windows(node, nodes, size, force=False)
        padding_known = padding_known and None not in [w.padding for w in windows]
        new = [_before(w, behind, padding_known) for w, behind in zip(windows, seen[name])]
        for before in _inputs(node):
            if any(before.startswith(stop) for stop in stop_propagation or []):
                continue
            old = seen.get(before)
            seen[before] = new if old is None else [_joined(o, n, axis, padding_known) for o, n, axis in zip(old, new, ("vertical", "horizontal"))]
    if source not in seen:
        raise at_user_line(ValueError("Input node was not found"))
    vertical, horizontal = seen[source]
    return ReceptiveField(*[(h, v) for h, v in zip(horizontal, vertical)][:3])
