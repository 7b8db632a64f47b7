# SPDX-License-Identifier: Apache-2.0
"""How ops of graphs become nodes of ONNX: element by element, shapes, reductions, products. Images are in rules_nn.

A rule is a function (model, op, values of the inputs) -> value of output 0, or a list of values of all outputs. It raises NotImplementedError for
what has no counterpart. Inputs that a rule reads as constants have a value only when it asks for it.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from millrace.framework.graph import Operation
from millrace.onnx.model import Model, dims, rank, static

RULES: Dict[str, Callable[..., Any]] = {}
# Of these the first input alone is data, or those named; the others are read by `static`.
LAZY: Dict[str, int] = {}


def rule(*ops: str, data: Optional[int] = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a rule; with `data` only so many inputs have values before it runs."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in ops:
            RULES[op] = function
            if data is not None:
                LAZY[op] = data
        return function

    return register


# ---- element by element ----

_SAME = """
Relu Elu Selu Softplus Softsign Sigmoid Tanh Erf Neg Abs Exp Log Sqrt Reciprocal Floor Ceil Sign Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh
Inv=Reciprocal Round Rint=Round IsNan=IsNaN IsInf LogicalNot=Not Softmax LogSoftmax
Add AddV2=Add Sub Mul RealDiv=Div Pow Greater GreaterEqual=GreaterOrEqual Less LessEqual=LessOrEqual Equal LogicalAnd=And LogicalOr=Or
Maximum=Max Minimum=Min AddN=Sum
"""
# An image in NCHW stays one through these.
_LAYOUT_FREE = {"Relu", "Elu", "Selu", "Softplus", "Softsign", "Sigmoid", "Tanh", "Neg", "Abs", "Exp", "Log", "Sqrt", "Add", "Sub", "Mul", "Div", "Max", "Min"}


def _channels_first(model: Model, op: Operation, inputs: List[str]) -> List[str]:
    """The inputs with channels first, when one is known so and the others are too, scalars or a number a channel; else none."""
    found = [model.known_channels_first(value) for value in inputs]
    for i, (value, tensor) in enumerate(zip(inputs, op.inputs)):
        count = tensor.get_shape().ndims
        if found[i] is None and count == 0:
            found[i] = value
        elif found[i] is None and count == 1 and any(found):
            found[i] = str(model.add("Reshape", [value, model.ints([-1] + [1] * (rank(op.outputs[0]) - 2))]))
        elif found[i] is not None and count != op.outputs[0].get_shape().ndims:
            return []
    known = [f for f in found if f is not None]
    return known if len(known) == len(inputs) and any(model.known_channels_first(v) for v in inputs) else []


def _same(onnx: str) -> Callable[..., str]:
    def apply(model: Model, op: Operation, inputs: List[str]) -> str:
        if onnx in _LAYOUT_FREE:
            first = _channels_first(model, op, inputs)
            if first:
                return model.channels_last(model.add(onnx, first), rank(op.outputs[0]), op.name)
        if onnx in ("Softmax", "LogSoftmax"):
            return str(model.add(onnx, inputs, name=op.name, axis=-1))
        if onnx == "Round" and not op.inputs[0].dtype.is_floating:
            return inputs[0]
        return str(model.add(onnx, inputs, name=op.name))

    return apply


for _entry in _SAME.split():
    _ours, _, _theirs = _entry.partition("=")
    RULES[_ours] = _same(_theirs or _ours)


def _number(model: Model, op: Operation, value: Any) -> str:
    return model.constant(value, dtype=op.inputs[0].dtype.base_dtype.as_numpy_dtype)


@rule("Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault")
def _identity(model: Model, op: Operation, inputs: List[str]) -> str:
    return inputs[0]


@rule("Relu6")
def _relu6(model: Model, op: Operation, inputs: List[str]) -> str:
    low, high = _number(model, op, 0), _number(model, op, 6)
    first = model.known_channels_first(inputs[0])
    if first is not None:
        return model.channels_last(model.add("Clip", [first, low, high]), rank(op.inputs[0]), op.name)
    return str(model.add("Clip", [inputs[0], low, high], name=op.name))


@rule("LeakyRelu")
def _leaky_relu(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("LeakyRelu", inputs, name=op.name, alpha=float(op.get_attr("alpha"))))


@rule("Square")
def _square(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Mul", [inputs[0], inputs[0]], name=op.name))


@rule("SquaredDifference")
def _squared_difference(model: Model, op: Operation, inputs: List[str]) -> str:
    difference = model.add("Sub", inputs)
    return str(model.add("Mul", [difference, difference], name=op.name))


@rule("Rsqrt")
def _rsqrt(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Reciprocal", [model.add("Sqrt", inputs)], name=op.name))


@rule("Log1p")
def _log1p(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Log", [model.add("Add", [inputs[0], _number(model, op, 1)])], name=op.name))


@rule("Expm1")
def _expm1(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Sub", [model.add("Exp", inputs), _number(model, op, 1)], name=op.name))


@rule("NotEqual")
def _not_equal(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Not", [model.add("Equal", inputs)], name=op.name))


@rule("Div")
def _div(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Div", inputs, name=op.name))  # both cut towards zero


@rule("FloorDiv")
def _floor_div(model: Model, op: Operation, inputs: List[str]) -> str:
    if op.inputs[0].dtype.is_floating:
        return str(model.add("Floor", [model.add("Div", inputs)], name=op.name))
    remainder = model.add("Mod", inputs)  # with the divisor's sign: what is left is a multiple
    return str(model.add("Div", [model.add("Sub", [inputs[0], remainder]), inputs[1]], name=op.name))


@rule("FloorMod")
def _floor_mod(model: Model, op: Operation, inputs: List[str]) -> str:
    if not op.inputs[0].dtype.is_floating:
        return str(model.add("Mod", inputs, name=op.name))
    times = model.add("Floor", [model.add("Div", inputs)])
    return str(model.add("Sub", [inputs[0], model.add("Mul", [times, inputs[1]])], name=op.name))


@rule("Cast")
def _cast(model: Model, op: Operation, inputs: List[str]) -> str:
    return model.cast(inputs[0], op.outputs[0].dtype.name)


@rule("SelectV2")
def _select_v2(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Where", inputs, name=op.name))


@rule("Select")
def _select(model: Model, op: Operation, inputs: List[str]) -> str:
    """A vector condition chooses rows."""
    extra = rank(op.inputs[1]) - rank(op.inputs[0]) if rank(op.inputs[0]) == 1 else 0
    condition = model.add("Unsqueeze", [inputs[0], model.ints(range(1, 1 + extra))]) if extra > 0 else inputs[0]
    return str(model.add("Where", [condition, *inputs[1:]], name=op.name))


@rule("ZerosLike", "OnesLike")
def _like(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Expand", [_number(model, op, int(op.type == "OnesLike")), model.add("Shape", inputs)], name=op.name))


# ---- products ----


@rule("MatMul", "BatchMatMul", "BatchMatMulV2")
def _matmul(model: Model, op: Operation, inputs: List[str]) -> str:
    swaps = ("transpose_a", "transpose_b") if op.type == "MatMul" else ("adj_x", "adj_y")
    values = []
    for value, tensor, swap in zip(inputs, op.inputs, swaps):
        count = rank(tensor)
        values.append(model.transpose(value, [*range(count - 2), count - 1, count - 2]) if op.get_attr(swap) else value)
    return str(model.add("MatMul", values, name=op.name))


@rule("BiasAdd")
def _bias_add(model: Model, op: Operation, inputs: List[str]) -> str:
    count = rank(op.inputs[0])
    beside = [1] * (count - 2)
    if op.get_attr("data_format") == b"NCHW":
        return str(model.add("Add", [inputs[0], model.add("Reshape", [inputs[1], model.ints([-1, *beside])])], name=op.name))
    first = model.known_channels_first(inputs[0])
    if first is not None:
        return model.channels_last(model.add("Add", [first, model.add("Reshape", [inputs[1], model.ints([-1, *beside])])]), count, op.name)
    return str(model.add("Add", inputs, name=op.name))


# ---- shapes ----


def _int64(model: Model, op: Operation, index: int) -> str:
    value = model.value(op.inputs[index])
    return value if op.inputs[index].dtype.name == "int64" else model.cast(value, "int64")


@rule("Reshape")
def _reshape(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Reshape", [inputs[0], _int64(model, op, 1)], name=op.name, allowzero=1 if _may_be_empty(op) else None))


def _may_be_empty(op: Operation) -> bool:
    shape = op.outputs[0].get_shape()
    return shape.ndims is not None and any(d == 0 for d in shape.as_list())


@rule("Transpose", data=1)
def _transpose(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Transpose", inputs, name=op.name, perm=static(op, 1, "the order").tolist()))


@rule("Squeeze")
def _squeeze(model: Model, op: Operation, inputs: List[str]) -> str:
    axes = list(op.get_attr("squeeze_dims"))
    if not axes:
        axes = [i for i, d in enumerate(dims(op.inputs[0], "so that it is known what to squeeze")) if d == 1]
    return str(model.add("Squeeze", [inputs[0], model.ints(axes)], name=op.name)) if axes else inputs[0]


@rule("ExpandDims", data=1)
def _expand_dims(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Unsqueeze", [inputs[0], model.ints(static(op, 1, "the axis").reshape(-1))], name=op.name))


@rule("ConcatV2", "Concat", data=0)
def _concat(model: Model, op: Operation, inputs: List[str]) -> str:
    at = len(op.inputs) - 1 if op.type == "ConcatV2" else 0
    values, axis = [model.value(t) for i, t in enumerate(op.inputs) if i != at], int(static(op, at, "the axis"))
    first = [f for f in (model.known_channels_first(v) for v in values) if f is not None]
    if len(first) == len(values):
        count = rank(op.outputs[0])
        order = [0, count - 1, *range(1, count - 1)]  # dimension i of channels first is that of channels last
        return model.channels_last(model.add("Concat", first, axis=order.index(axis % count)), count, op.name)
    return str(model.add("Concat", values, name=op.name, axis=axis))


@rule("Pack")
def _pack(model: Model, op: Operation, inputs: List[str]) -> str:
    axis = int(op.get_attr("axis"))
    parts = [model.add("Unsqueeze", [value, model.ints([axis])]) for value in inputs]
    return str(model.add("Concat", parts, name=op.name, axis=axis))


@rule("Unpack")
def _unpack(model: Model, op: Operation, inputs: List[str]) -> List[str]:
    axis = int(op.get_attr("axis"))
    return [str(model.add("Gather", [inputs[0], model.ints(i)], name=op.name, axis=axis)) for i in range(len(op.outputs))]


@rule("Split", data=0)
def _split(model: Model, op: Operation, inputs: List[str]) -> List[str]:
    axis = int(static(op, 0, "the axis"))
    made = model.add("Split", [model.value(op.inputs[1])], len(op.outputs), op.name, axis=axis)
    return [made] if isinstance(made, str) else list(made)


@rule("SplitV", data=1)
def _split_v(model: Model, op: Operation, inputs: List[str]) -> List[str]:
    sizes, axis = static(op, 1, "the sizes"), int(static(op, 2, "the axis"))
    if (sizes < 0).any():
        sizes = np.where(sizes < 0, dims(op.inputs[0])[axis] - sizes[sizes >= 0].sum(), sizes)
    made = model.add("Split", [inputs[0], model.ints(sizes)], len(op.outputs), op.name, axis=axis)
    return [made] if isinstance(made, str) else list(made)


@rule("Slice", data=1)
def _slice(model: Model, op: Operation, inputs: List[str]) -> str:
    begin, size = static(op, 1, "the begin"), static(op, 2, "the size")
    end = np.where(size < 0, np.iinfo(np.int64).max, begin.astype(np.int64) + size)
    return str(model.add("Slice", [inputs[0], model.ints(begin), model.ints(end), model.ints(range(len(begin)))], name=op.name))


@rule("StridedSlice", data=1)
def _strided_slice(model: Model, op: Operation, inputs: List[str]) -> str:
    begin, end, strides = (static(op, i, what).astype(np.int64) for i, what in ((1, "the begin"), (2, "the end"), (3, "the strides")))
    masks = {k: int(op.get_attr(k + "_mask")) for k in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    taken: List[Tuple[int, int, int, int]] = []  # begin, end, axis, stride
    new: List[Tuple[int, int]] = []
    gone: List[int] = []
    axis = 0  # of the input
    for i in range(len(begin)):
        bit = 1 << i
        if masks["ellipsis"] & bit:
            later = [j for j in range(i + 1, len(begin)) if not masks["new_axis"] & 1 << j]
            axis = rank(op.inputs[0]) - len(later)
            continue
        if masks["new_axis"] & bit:
            new.append((axis, len(gone)))
            continue
        top = np.iinfo(np.int64).max
        if masks["shrink_axis"] & bit:
            start, stop, step = begin[i], begin[i] + 1 if begin[i] != -1 else top, 1
            gone.append(axis)
        else:
            step = int(strides[i])
            start = (0 if step > 0 else top) if masks["begin"] & bit else begin[i]
            stop = (top if step > 0 else -top) if masks["end"] & bit else end[i]
        if (start, stop, step) != (0, top, 1):
            taken.append((int(start), int(stop), axis, step))
        axis += 1
    value = inputs[0]
    if taken:
        value = model.add("Slice", [value, *(model.ints(v) for v in zip(*taken))])
    if gone:
        value = model.add("Squeeze", [value, model.ints(gone)])
    if new:
        value = model.add("Unsqueeze", [value, model.ints([a - g + i for i, (a, g) in enumerate(new)])])
    return str(value)


@rule("Pad", "PadV2", "MirrorPad", data=1)
def _pad(model: Model, op: Operation, inputs: List[str]) -> str:
    pads = model.ints(static(op, 1, "the paddings").T.reshape(-1))
    if op.type != "MirrorPad":
        more = [model.value(op.inputs[2])] if op.type == "PadV2" else []
        return str(model.add("Pad", [inputs[0], pads, *more], name=op.name))
    if op.get_attr("mode") != b"REFLECT":
        raise NotImplementedError("MirrorPad with the mode SYMMETRIC ('%s') has no counterpart in opset 17" % op.name)
    return str(model.add("Pad", [inputs[0], pads], name=op.name, mode="reflect"))


@rule("Tile")
def _tile(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Tile", [inputs[0], _int64(model, op, 1)], name=op.name))


@rule("Fill", data=0)
def _fill(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Expand", [model.value(op.inputs[1]), _int64(model, op, 0)], name=op.name))


@rule("BroadcastTo")
def _broadcast_to(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Expand", [inputs[0], _int64(model, op, 1)], name=op.name))


@rule("Shape", "Size")
def _shape(model: Model, op: Operation, inputs: List[str]) -> str:
    value = str(model.add(op.type, inputs, name=op.name))
    return value if op.outputs[0].dtype.name == "int64" else model.cast(value, op.outputs[0].dtype.name)


@rule("Rank")
def _rank(model: Model, op: Operation, inputs: List[str]) -> str:
    return model.constant(rank(op.inputs[0]), dtype=np.int32)


@rule("Range")
def _range(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("Range", inputs, name=op.name))


# ---- looking up ----


@rule("GatherV2", "Gather", data=2)
def _gather(model: Model, op: Operation, inputs: List[str]) -> str:
    axis = int(static(op, 2, "the axis")) if op.type == "GatherV2" else 0
    if op.type == "GatherV2" and op.get_attr("batch_dims"):
        raise NotImplementedError("'%s' gathers with batch_dims, which has no counterpart" % op.name)
    return str(model.add("Gather", inputs, name=op.name, axis=axis))


@rule("GatherNd")
def _gather_nd(model: Model, op: Operation, inputs: List[str]) -> str:
    return str(model.add("GatherND", [inputs[0], _int64(model, op, 1)], name=op.name))


@rule("OneHot", data=1)
def _one_hot(model: Model, op: Operation, inputs: List[str]) -> str:
    depth = model.value(op.inputs[1])
    values = model.add("Concat", [model.add("Unsqueeze", [model.value(op.inputs[i]), model.ints([0])]) for i in (3, 2)], axis=0)
    return str(model.add("OneHot", [inputs[0], depth, values], name=op.name, axis=int(op.get_attr("axis"))))


@rule("TopKV2")
def _top_k(model: Model, op: Operation, inputs: List[str]) -> List[str]:
    count = model.add("Reshape", [_int64(model, op, 1), model.ints([1])])
    values, indices = model.add("TopK", [inputs[0], count], 2, op.name, axis=-1, largest=1, sorted=1)
    return [values, model.cast(indices, op.outputs[1].dtype.name)]


# ---- reductions ----

_REDUCTIONS = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd"}


def _reduce(model: Model, op: Operation, value: str, kind: str, name: str = "") -> str:
    axes = static(op, 1, "the axes").reshape(-1).tolist()
    if not axes and rank(op.inputs[0]):
        return value
    keep = int(op.get_attr("keep_dims"))
    if kind == "ReduceSum":  # the only one whose axes are an input in opset 17
        return str(model.add(kind, [value, *([model.ints(axes)] if axes else [])], name=name, keepdims=keep))
    return str(model.add(kind, [value], name=name, axes=axes or None, keepdims=keep))


@rule(*_REDUCTIONS, data=1)
def _reduction(model: Model, op: Operation, inputs: List[str]) -> str:
    return _reduce(model, op, inputs[0], _REDUCTIONS[op.type], op.name)


@rule("All", "Any", data=1)
def _logical(model: Model, op: Operation, inputs: List[str]) -> str:
    numbers = model.cast(inputs[0], "int32")
    return model.cast(_reduce(model, op, numbers, "ReduceMin" if op.type == "All" else "ReduceMax"), "bool")


@rule("ArgMax", "ArgMin", data=1)
def _arg(model: Model, op: Operation, inputs: List[str]) -> str:
    value = str(model.add(op.type, inputs, name=op.name, axis=int(static(op, 1, "the axis")), keepdims=0))
    return value if op.outputs[0].dtype.name == "int64" else model.cast(value, op.outputs[0].dtype.name)


@rule("L2Loss")
def _l2_loss(model: Model, op: Operation, inputs: List[str]) -> str:
    total = model.add("ReduceSum", [model.add("Mul", [inputs[0], inputs[0]])], keepdims=0)
    return str(model.add("Mul", [total, _number(model, op, 0.5)], name=op.name))


@rule("Cumsum", data=1)
def _cumsum(model: Model, op: Operation, inputs: List[str]) -> str:
    axis = model.ints(int(static(op, 1, "the axis")))
    return str(model.add("CumSum", [inputs[0], axis], name=op.name, exclusive=int(op.get_attr("exclusive")), reverse=int(op.get_attr("reverse"))))
