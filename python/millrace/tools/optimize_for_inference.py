# SPDX-License-Identifier: Apache-2.0
"""A frozen graph made quicker: without what only training needs, batch normalization in the filters before it, padding and resizing in
the convolutions behind them. tensorflow.python.tools.optimize_for_inference_lib."""

from __future__ import annotations

import collections
from typing import Any, Dict, List, Optional

import numpy as np

from millrace import graph_util, tf_logging
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_util import MakeNdarray, make_tensor_proto
from millrace.protos import definitions
from millrace.tools.strip_unused import strip_unused

# Where the inputs of a normalization stand, and how its epsilon is called.
INPUT_ORDER = {
    "BatchNormWithGlobalNormalization": ["conv_op", "mean_op", "var_op", "beta_op", "gamma_op"],
    "FusedBatchNorm": ["conv_op", "gamma_op", "beta_op", "mean_op", "var_op"],
    "FusedBatchNormV2": ["conv_op", "gamma_op", "beta_op", "mean_op", "var_op"],
    "FusedBatchNormV3": ["conv_op", "gamma_op", "beta_op", "mean_op", "var_op"],
}
EPSILON_ATTR = {op: "variance_epsilon" if op == "BatchNormWithGlobalNormalization" else "epsilon" for op in INPUT_ORDER}


def optimize_for_inference(
    input_graph_def: Any, input_node_names: List[str], output_node_names: List[str], placeholder_type_enum: Any, toco_compatible: bool = False
) -> Any:
    """All that is in this module, one after the other. toco_compatible: no op that a converter for phones does not know."""
    ensure_graph_is_valid(input_graph_def)
    made = strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum)
    made = fold_batch_norms(graph_util.remove_training_nodes(made, output_node_names))
    if not toco_compatible:
        made = fuse_resize_and_conv(made, output_node_names)
    ensure_graph_is_valid(made)
    return made


def node_name_from_input(node_name: str) -> str:
    """The node of an input, which may be of another output or of control."""
    name, colon, port = node_name[node_name.startswith("^") :].rpartition(":")
    return name if colon and port.isdigit() else node_name[node_name.startswith("^") :]


def _by_name(graph_def: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for node in graph_def.node:
        if node.name in found:
            raise at_user_line(ValueError("Duplicate node names detected for %s" % node.name))
        found[node.name] = node
    return found


def ensure_graph_is_valid(graph_def: Any) -> None:
    """ValueError where two nodes have one name, or an input is of no node."""
    nodes = _by_name(graph_def)
    for node in graph_def.node:
        for name in node.input:
            if node_name_from_input(name) not in nodes:
                raise at_user_line(ValueError("Input for %s not found: %s" % (node.name, name)))


def node_from_map(node_map: Dict[str, Any], name: str) -> Any:
    """The node of an input."""
    if node_name_from_input(name) not in node_map:
        raise at_user_line(ValueError("No node named '%s' found in map." % name))
    return node_map[node_name_from_input(name)]


def values_from_const(node_def: Any) -> np.ndarray:
    """The value of a constant."""
    if node_def.op != "Const":
        raise at_user_line(ValueError("Node named '%s' should be a Const op for values_from_const." % node_def.name))
    return MakeNdarray(node_def.attr["value"].tensor)


def scale_after_normalization(node: Any) -> bool:
    """Whether a normalization multiplies by gamma."""
    return bool(node.attr["scale_after_normalization"].b) if node.op == "BatchNormWithGlobalNormalization" else True


def _constant(name: str, value: np.ndarray, kind: Any) -> Any:
    made = definitions.NodeDef(op="Const", name=name)
    made.attr["dtype"].CopyFrom(kind)
    made.attr["value"].tensor.CopyFrom(make_tensor_proto(value, value.dtype, value.shape))
    return made


def _statistics(node: Any, nodes: Dict[str, Any], channels: int) -> Optional[Dict[str, Any]]:
    """The constants of a normalization of so many channels, or None where one is none."""
    found = {}
    for role, name in list(zip(INPUT_ORDER[node.op], node.input))[1:]:
        constant = node_from_map(nodes, name)
        if constant.op != "Const":
            tf_logging.warning(
                "Didn't find expected %s Constant input to '%s', found %s instead. Maybe because freeze_graph wasn't run first?",
                role[:-3],
                node.name,
                constant.op,
            )
            return None
        if values_from_const(constant).shape != (channels,):
            tf_logging.warning(
                "Incorrect shape for %s, found %s, expected %s, for node %s", role[:-3], values_from_const(constant).shape, (channels,), node.name
            )
            return None
        found[role] = constant
    return found


def _folded(node: Any, nodes: Dict[str, Any], uses: Dict[str, int]) -> Optional[Dict[str, Any]]:
    """What stands for a normalization and the convolution before it: {name: node, or None for one that goes}."""
    conv = node_from_map(nodes, node.input[0])
    depthwise = conv.op == "DepthwiseConv2dNative"
    if conv.op not in ("Conv2D", "DepthwiseConv2dNative") or uses[conv.name] > 1:
        tf_logging.warning("Didn't find expected Conv2D or DepthwiseConv2dNative input to '%s'", node.name)
        return None
    filters = node_from_map(nodes, conv.input[1])
    if filters.op != "Const":
        tf_logging.warning(
            "Didn't find expected conv Constant input to '%s', found %s instead. Maybe because freeze_graph wasn't run first?", conv.name, filters.op
        )
        return None
    weights = values_from_const(filters)
    channels = weights.shape[2] * weights.shape[3] if depthwise else weights.shape[3]
    constants = _statistics(node, nodes, channels)
    if constants is None:
        return None
    mean, variance, beta, gamma = (values_from_const(constants[role]) for role in ("mean_op", "var_op", "beta_op", "gamma_op"))
    scale = 1.0 / np.sqrt((variance + node.attr[EPSILON_ATTR[node.op]].f).astype(np.float64)) * (gamma if scale_after_normalization(node) else 1.0)
    scaled = (weights * (scale.reshape(weights.shape[2:]) if depthwise else scale)).astype(weights.dtype)
    offset = _constant(conv.name + "_bn_offset", (beta - mean * scale).astype(mean.dtype), constants["mean_op"].attr["dtype"])
    bias = definitions.NodeDef(op="BiasAdd", name=node.name)
    bias.attr["T"].CopyFrom(conv.attr["T"])
    if "data_format" in conv.attr:
        bias.attr["data_format"].CopyFrom(conv.attr["data_format"])
    bias.input.extend([conv.name, offset.name])
    shared = uses[filters.name] > 1  # the filters of other convolutions stay as they are
    new_filters = _constant(filters.name + "_bn_scaled" if shared else filters.name, scaled, filters.attr["dtype"])
    new_conv = definitions.NodeDef()
    new_conv.CopyFrom(conv)
    new_conv.input[1] = new_filters.name
    gone = {c.name: None for c in constants.values() if uses[c.name] == 1}
    return {**gone, new_filters.name: new_filters, conv.name: new_conv, offset.name: offset, bias.name: bias}


def _uses(graph_def: Any) -> Dict[str, int]:
    return collections.Counter(node_name_from_input(name) for node in graph_def.node for name in node.input)


def fold_batch_norms(input_graph_def: Any) -> Any:
    """Normalizations by constants behind convolutions by constants become a convolution and a bias."""
    nodes, uses, changed = _by_name(input_graph_def), _uses(input_graph_def), {}
    for node in input_graph_def.node:
        if node.op in INPUT_ORDER:
            changed.update(_folded(node, nodes, uses) or {})
    return _replaced(input_graph_def, changed)


def _replaced(graph_def: Any, changed: Dict[str, Any]) -> Any:
    """A graph with other nodes; what is None goes."""
    made = definitions.GraphDef()
    for field in ("library", "versions"):
        if graph_def.HasField(field):
            getattr(made, field).CopyFrom(getattr(graph_def, field))
    made.node.extend([node for node in graph_def.node if node.name not in changed])
    made.node.extend([node for node in changed.values() if node is not None])
    return made


def _fused(conv: Any, pad: Any, resize: Any) -> List[Any]:
    """A convolution that pads and resizes by itself, and the constant that says how it pads where there was none."""
    made, extra = definitions.NodeDef(name=conv.name), []
    if pad is not None:
        paddings, mode = pad.input[1], pad.attr["mode"].s
    else:
        kind = definitions.AttrValue(type=dtypes.int32.as_datatype_enum)
        extra = [_constant(conv.name + "_dummy_paddings", np.zeros([4, 2], np.int32), kind)]
        paddings, mode = extra[0].name, b"REFLECT"
    if resize is not None:
        made.op = "FusedResizeAndPadConv2D"
        made.input.extend([resize.input[0], resize.input[1], paddings, conv.input[1]])
        made.attr["resize_align_corners"].CopyFrom(resize.attr["align_corners"])
    else:
        made.op = "FusedPadConv2D"
        made.input.extend([pad.input[0], paddings, conv.input[1]])
    for key in ("T", "strides", "padding"):
        made.attr[key].CopyFrom(conv.attr[key])
    made.attr["mode"].s = mode
    return [*extra, made]


def fuse_resize_and_conv(input_graph_def: Any, output_node_names: List[str]) -> Any:
    """Convolutions behind mirrored padding, bilinear resizing or both, as one op."""
    nodes, uses, changed = _by_name(input_graph_def), collections.Counter(_uses(input_graph_def)), {}  # type: ignore[var-annotated]
    uses.update(output_node_names)
    for conv in input_graph_def.node:
        if conv.op != "Conv2D" or conv.attr["data_format"].s not in (b"", b"NHWC"):
            continue
        before = node_from_map(nodes, conv.input[0])
        pad = before if before.op == "MirrorPad" else None
        resize = before if pad is None else node_from_map(nodes, pad.input[0])
        if resize.op != "ResizeBilinear" or resize.attr["half_pixel_centers"].b:
            resize = None
        if pad is None and resize is None:
            continue
        changed.update((node.name, node) for node in _fused(conv, pad, resize))
        for node in (pad, resize):
            if node is not None:
                uses[node.name] -= 1
                if uses[node.name] < 1:
                    changed[node.name] = None
                else:
                    break  # others read the padded image: what it is made of stays too
    return _replaced(input_graph_def, changed)
