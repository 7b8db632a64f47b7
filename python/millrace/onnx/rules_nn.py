# SPDX-License-Identifier: Apache-2.0
"""How convolutions, pooling, normalisation and resizing become nodes of ONNX, whose images have channels first."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

from millrace.framework.graph import Operation
from millrace.onnx.model import Model, dims, rank, static
from millrace.onnx.rules import rule


def _is_first(op: Operation) -> bool:
    return bytes(op.get_attr("data_format")).startswith(b"NC")


def _spatial(op: Operation, name: str, count: int) -> List[int]:
    """An attribute with an entry a dimension, of the spatial dimensions alone."""
    values = [int(v) for v in op.get_attr(name)]
    if len(values) != count + 2:
        return [1] * count
    return values[2:] if _is_first(op) else values[1:-1]


def _padding(op: Operation, count: int, sizes: Sequence[int] = ()) -> Dict[str, Any]:
    """`sizes` are the filter's where it may be dilated."""
    kind = bytes(op.get_attr("padding"))
    dilations = _spatial(op, "dilations", count) if sizes else [1] * count
    if kind == b"SAME" and dilations != [1] * count:  # which onnxruntime does not take together
        totals = _same_padding(op, [(k - 1) * d + 1 for k, d in zip(sizes, dilations)], _spatial(op, "strides", count))
        return {"pads": [*(t // 2 for t in totals), *(t - t // 2 for t in totals)]}
    if kind == b"SAME":
        return {"auto_pad": "SAME_UPPER"}
    if kind == b"VALID":
        return {}
    pairs = [int(v) for v in op.get_attr("explicit_paddings")]
    pairs = pairs[4:] if _is_first(op) else pairs[2:-2]
    return {"pads": [*pairs[0::2], *pairs[1::2]][: 2 * count]}


def _same_padding(op: Operation, windows: Sequence[int], strides: Sequence[int]) -> List[int]:
    """How much SAME pads each spatial dimension."""
    if all(s == 1 for s in strides):
        return [w - 1 for w in windows]
    whole = op.inputs[0].get_shape().as_list()
    sizes = whole[2:] if _is_first(op) else whole[1:-1]
    if any(s is None for s in sizes):
        raise NotImplementedError("'%s' has strides, dilations and SAME padding: its input's shape %s must be known" % (op.name, op.inputs[0].get_shape()))
    return [max((-(-n // s) - 1) * s + w - n, 0) for n, w, s in zip(sizes, windows, strides)]


def _on_channels_first(model: Model, op: Operation, value: str, count: int, apply: Callable[[str], str]) -> str:
    """Applies a function of a value in NC..., and gives its result in the layout of the op."""
    if _is_first(op):
        return apply(value)
    return model.channels_last(apply(model.channels_first(value, count + 2)), count + 2, op.name)


@rule("Conv2D", "Conv3D", "DepthwiseConv2dNative")
def _conv(model: Model, op: Operation, inputs: List[str]) -> str:
    count = 3 if op.type == "Conv3D" else 2
    sizes = dims(op.inputs[1], "the filter's")
    group = 1
    if op.type == "DepthwiseConv2dNative":
        group = sizes[2]
        swapped = model.transpose(inputs[1], [2, 3, 0, 1])
        filters = str(model.add("Reshape", [swapped, model.ints([sizes[2] * sizes[3], 1, sizes[0], sizes[1]])]))
    else:
        filters = model.transpose(inputs[1], [count + 1, count, *range(count)])
        channels = op.inputs[0].get_shape().as_list()[1 if _is_first(op) else -1]
        if channels is not None and channels != sizes[-2]:
            group = channels // sizes[-2]
    return _on_channels_first(
        model,
        op,
        inputs[0],
        count,
        lambda x: str(
            model.add(
                "Conv",
                [x, filters],
                strides=_spatial(op, "strides", count),
                dilations=_spatial(op, "dilations", count),
                group=group,
                kernel_shape=sizes[:count],
                **_padding(op, count, sizes[:count]),
            )
        ),
    )


@rule("Conv2DBackpropInput", data=0)
def _conv_transpose(model: Model, op: Operation, inputs: List[str]) -> str:
    """A transposed convolution."""
    out = [int(v) for v in static(op, 0, "the shape of the output")]
    sizes, strides = dims(op.inputs[1], "the filter's"), _spatial(op, "strides", 2)
    if _spatial(op, "dilations", 2) != [1, 1] or bytes(op.get_attr("padding")) == b"EXPLICIT":
        raise NotImplementedError("'%s': transposed convolutions with dilations or explicit padding are not written" % op.name)
    first = _is_first(op)
    given = dims(op.inputs[2], "that of what is convolved")
    pads: Tuple[List[int], List[int]] = ([], [])
    more = []
    for i in range(2):
        whole, small, k, s = out[2 + i if first else 1 + i], given[2 + i if first else 1 + i], sizes[i], strides[i]
        total = max((small - 1) * s + k - whole, 0) if bytes(op.get_attr("padding")) == b"SAME" else 0
        pads[0].append(total // 2)
        pads[1].append(total - total // 2)
        more.append(whole - ((small - 1) * s + k - total))
    filters = model.transpose(model.value(op.inputs[1]), [3, 2, 0, 1])
    return _on_channels_first(
        model,
        op,
        model.value(op.inputs[2]),
        2,
        lambda x: str(model.add("ConvTranspose", [x, filters], strides=strides, pads=[*pads[0], *pads[1]], output_padding=more, kernel_shape=sizes[:2])),
    )


@rule("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D")
def _pool(model: Model, op: Operation, inputs: List[str]) -> str:
    count = 3 if op.type.endswith("3D") else 2
    kind = "MaxPool" if op.type.startswith("Max") else "AveragePool"
    window = [int(v) for v in op.get_attr("ksize")]
    if window[0] != 1 or window[1 if _is_first(op) else -1] != 1:
        raise NotImplementedError("'%s' pools over the batch or the channels, which ONNX does not" % op.name)
    return _on_channels_first(
        model,
        op,
        inputs[0],
        count,
        lambda x: str(model.add(kind, [x], kernel_shape=_spatial(op, "ksize", count), strides=_spatial(op, "strides", count), **_padding(op, count))),
    )


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_norm(model: Model, op: Operation, inputs: List[str]) -> List[str]:
    if op.get_attr("is_training"):
        raise NotImplementedError("'%s' normalises by the batch, as in training: export a graph made with training=False" % op.name)
    made = _on_channels_first(
        model, op, inputs[0], rank(op.inputs[0]) - 2, lambda x: str(model.add("BatchNormalization", [x, *inputs[1:5]], epsilon=float(op.get_attr("epsilon"))))
    )
    return [made, *inputs[3:5]]


@rule("LRN")
def _lrn(model: Model, op: Operation, inputs: List[str]) -> str:
    size = 2 * int(op.get_attr("depth_radius")) + 1
    made = model.add(
        "LRN",
        [model.channels_first(inputs[0])],
        size=size,
        alpha=float(op.get_attr("alpha")) * size,
        beta=float(op.get_attr("beta")),
        bias=float(op.get_attr("bias")),
    )
    return model.channels_last(made, 4, op.name)


@rule("SpaceToDepth", "DepthToSpace")
def _depth(model: Model, op: Operation, inputs: List[str]) -> str:
    """ONNX orders as TensorFlow does for channels first; of channels last only DepthToSpace has a mode (DCR)."""
    block = int(op.get_attr("block_size"))
    if bytes(op.get_attr("data_format")) == b"NCHW_VECT_C":
        raise NotImplementedError("'%s' has the layout NCHW_VECT_C" % op.name)
    if op.type == "DepthToSpace":
        return _on_channels_first(model, op, inputs[0], 2, lambda x: str(model.add("DepthToSpace", [x], blocksize=block, mode="DCR")))
    return _on_channels_first(model, op, inputs[0], 2, lambda x: str(model.add("SpaceToDepth", [x], blocksize=block)))


@rule("ResizeBilinear", "ResizeNearestNeighbor", data=1)
def _resize(model: Model, op: Operation, inputs: List[str]) -> str:
    height, width = (int(v) for v in static(op, 1, "the size"))
    aligned, centred = op.get_attr("align_corners"), op.get_attr("half_pixel_centers")
    way = "align_corners" if aligned else "half_pixel" if centred else "asymmetric"
    nearest = op.type == "ResizeNearestNeighbor"
    shape = dims(op.inputs[0], "of what is resized")
    more: Dict[str, Any] = {"mode": "nearest", "nearest_mode": "round_prefer_ceil" if aligned else "floor"} if nearest else {"mode": "linear"}
    if nearest and centred:
        raise NotImplementedError("'%s': nearest neighbours of half-pixel centres have no counterpart in opset 17" % op.name)
    first = model.channels_first(inputs[0])
    made = model.add("Resize", [first, "", "", model.ints([shape[0], shape[3], height, width])], coordinate_transformation_mode=way, **more)
    result = model.channels_last(made, 4, op.name)
    return result if op.outputs[0].dtype == op.inputs[0].dtype else model.cast(result, op.outputs[0].dtype.name)
