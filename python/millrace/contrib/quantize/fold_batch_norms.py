# SPDX-License-Identifier: Apache-2.0
"""Batch normalizations that become part of the layers before them: scales of weights, and biases.

What trains normalizes by the statistics of a batch. So that the quantized weights do not change with each batch, they are scaled by the
moving averages, and what comes out is corrected for the difference, until a step from which on the averages stay (Krishnamoorthi,
Quantizing deep convolutional networks for efficient inference, 2018, 3.2.2).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

from millrace.contrib.quantize import common
from millrace.contrib.quantize.graph_matcher import GraphMatcher, MatchResult, OneofPattern, OpTypePattern
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.gradients import RegisterGradient
from millrace.protos import definitions


class _Norm(NamedTuple):
    """What a batch normalization computes with; averages and their rates where it trains."""

    gamma: Any
    mean: Any
    variance: Any
    epsilon: Any
    mean_average: Any = None
    mean_rate: Any = None
    variance_average: Any = None
    variance_rate: Any = None


def FoldBatchNorms(graph: Graph, is_training: bool, freeze_batch_norm_delay: Optional[int] = None) -> None:
    """Makes batch normalizations part of the layers before them; the averages stay from a step on, if one is given."""
    _fold_fused(graph, freeze_batch_norm_delay)
    _fold_unfused(graph, is_training, freeze_batch_norm_delay)


def _average_of(statistic: Tensor) -> Tuple[Any, Any]:
    """(the average that a statistic of batches moves, its rate): average - statistic, by the rate."""
    for difference in statistic.consumers():
        if difference.type == "Sub" and difference.inputs[1] is statistic:
            for product in difference.outputs[0].consumers():
                if product.type == "Mul":
                    return difference.inputs[0], product.inputs[1]
    raise at_user_line(ValueError("%s moves no average: a batch normalization that trains can only be folded with its updates" % statistic.name))


def _corrections(norm: _Norm, context: str, freeze_batch_norm_delay: Optional[int]) -> Tuple[Tensor, Tensor, Tensor]:
    """(by what to scale weights, its inverse for outputs, what to add to outputs), so that outputs are those by the statistics of the batch."""
    with name_scope(context + "batch_norm_correction"):
        by_average = gen_ops.rsqrt(norm.variance_average + norm.epsilon)
        by_batch = gen_ops.rsqrt(norm.variance + norm.epsilon)
        scale = array_ops.identity(math_ops.divide(by_average, by_batch, name="scale_compute"), name="correction_scale")
        inverse = gen_ops.reciprocal(scale, name="reciprocal_compute")
        offset = math_ops.multiply(norm.gamma, norm.mean * by_batch - norm.mean_average * by_average, name="offset_compute")
        frozen: Any = False
        if freeze_batch_norm_delay is not None:
            frozen = gen_ops.greater_equal(common.CreateOrGetQuantizationStep(), freeze_batch_norm_delay, name="use_moving_average")
        for rate, name in ((norm.mean_rate, "freeze_moving_mean"), (norm.variance_rate, "freeze_moving_var")):
            readers = list(rate.consumers())
            still = control_flow_ops.smart_cond(frozen, lambda rate=rate: array_ops.zeros_like(rate), lambda rate=rate: rate, name=name)
            common.RerouteTensor(still, rate, can_modify=readers)
        sizes, places = scale.get_shape().as_list(), offset.get_shape().as_list()
        inverse = control_flow_ops.smart_cond(frozen, lambda: array_ops.ones(sizes), lambda: inverse, name="correction_recip")
        offset = control_flow_ops.smart_cond(frozen, lambda: offset, lambda: array_ops.zeros(places), name="correction_offset")
    return scale, inverse, offset


# ---- normalizations that are one operation ----


class _FusedPatterns:
    def __init__(self) -> None:
        self.input, self.weights = OpTypePattern("*"), OpTypePattern("*")
        self.gamma, self.beta, self.mean, self.variance = (OpTypePattern("*") for _ in range(4))
        self.layer = OpTypePattern("Conv2D|DepthwiseConv2dNative|MatMul", inputs=[self.input, self.weights])
        self.batch_to_space = OpTypePattern("BatchToSpaceND", inputs=[self.layer, "*", "*"])
        handed_on = OpTypePattern("Identity", inputs=[OneofPattern([self.batch_to_space, self.layer])])
        output = OneofPattern([handed_on, self.layer, self.batch_to_space])
        reshaped = OpTypePattern("Reshape", inputs=[output, "*"])
        parameters = [self.gamma, self.beta, self.mean, self.variance]
        kinds = "FusedBatchNorm|FusedBatchNormV2|FusedBatchNormV3"
        self.norm = OpTypePattern(kinds, inputs=[OneofPattern([reshaped, output]), *parameters])
        self.reshaped_back = OpTypePattern("Reshape", inputs=[self.norm, "*"])
        self.whole = OneofPattern([self.reshaped_back, self.norm])


def _fold_fused(graph: Graph, freeze_batch_norm_delay: Optional[int]) -> None:
    p, folded = _FusedPatterns(), set()
    for match in list(GraphMatcher(p.whole).match_graph(graph)):
        layer, norm = match.get_op(p.layer), match.get_op(p.norm)
        assert layer is not None and norm is not None
        end = match.get_op(p.reshaped_back) if layer.type == "MatMul" else norm
        if layer in folded or end is None or not end.outputs[0].consumers():
            continue
        folded.add(layer)
        _fold_fused_layer(graph, p, match, layer, norm, end.outputs[0], freeze_batch_norm_delay)


def _fused_norm(p: _FusedPatterns, match: MatchResult, layer: Operation, norm: Operation) -> Tuple[_Norm, bool]:
    """What a normalization computes with, and whether it trains; what trains gets a gradient by its statistics alone."""
    epsilon, trains = norm.get_attr("epsilon"), norm.get_attr("is_training")
    gamma = match.get_tensor(p.gamma)
    if not trains:
        return _Norm(gamma, match.get_tensor(p.mean), match.get_tensor(p.variance), epsilon), False
    norm._set_attr("_gradient_op_type", definitions.AttrValue(s=b"FoldFusedBatchNormGrad"))
    mean, unbiased = norm.outputs[1], norm.outputs[2]
    averages = _average_of(mean) + _average_of(unbiased)
    scope = norm.name.rpartition("/")[0]
    with name_scope(scope + "/" if scope else None):
        count = math_ops.cast(array_ops.size(layer.outputs[0]) / array_ops.size(mean), dtypes.float32)
        variance = math_ops.multiply(unbiased, (count - 1) / count, name="Undo_Bessel_Correction")
    return _Norm(gamma, mean, variance, epsilon, *averages), True


def _fold_fused_layer(
    graph: Graph, p: _FusedPatterns, match: MatchResult, layer: Operation, norm: Operation, output: Tensor, freeze_batch_norm_delay: Optional[int]
) -> None:
    values, trains = _fused_norm(p, match, layer, norm)
    scope, sep, _ = layer.name.rpartition("/")
    inputs, weights = match.get_tensor(p.input), match.get_tensor(p.weights)
    assert inputs is not None and weights is not None
    correction, inverse, offset = None, None, None
    with graph.name_scope(scope + sep):
        with graph.name_scope(scope + sep + "BatchNorm_Fold" + sep):
            factor = values.gamma * gen_ops.rsqrt(values.variance + values.epsilon)
            bias = math_ops.subtract(match.get_tensor(p.beta), values.mean * factor, name="bias")
            if trains:
                correction, inverse, offset = _corrections(values, "", freeze_batch_norm_delay)
            if layer.type == "DepthwiseConv2dNative":
                sizes = weights.get_shape().as_list()[2:]
                factor = array_ops.reshape(factor, sizes, name="scale_reshape")
                correction = None if correction is None else array_ops.reshape(correction, sizes, name="correction_reshape")
        if correction is not None:
            weights = math_ops.multiply(correction, weights, name="correction_mult")
        scaled = math_ops.multiply(weights, factor, name="mul_fold")
        made = common.cloned(layer, [inputs, scaled], layer.name.rpartition("/")[2] + "_Fold")
        behind = match.get_op(p.batch_to_space)
        if behind is not None:
            made = common.cloned(behind, [made.outputs[0], *list(behind.inputs)[1:]], behind.name.rpartition("/")[2] + "_Fold")
        result = made.outputs[0]
        if inverse is not None:
            result = math_ops.add(math_ops.multiply(inverse, result, name="post_conv_mul"), offset, name="correction_add")
        _put_in_place(math_ops.add(result, bias, name="add_fold"), output)


def _put_in_place(folded: Tensor, output: Tensor) -> None:
    if common.RerouteTensor(folded, output) == 0:
        raise at_user_line(ValueError("Folding batch norms failed, %s had no outputs." % output.name))


@RegisterGradient("FoldFusedBatchNormGrad")
def _gradient_of_statistics(op: Any, *grads: Any) -> Any:
    """That of the mean and the variance by what they are of; what was normalized goes nowhere once it is folded."""
    x, (of_mean, of_variance) = op.inputs[0], grads[1:3]
    count = math_ops.cast(array_ops.size(x) / array_ops.size(op.outputs[1]), dtypes.float32)
    parts = []
    if of_mean is not None:
        parts.append(of_mean / count + array_ops.zeros_like(x))
    if of_variance is not None:
        parts.append(2 * of_variance * (x - op.outputs[1]) / (count - 1))
    return [math_ops.add_n(parts) if parts else None, None, None, None, None]


# ---- normalizations that are several operations ----


def _fold_unfused(graph: Graph, is_training: bool, freeze_batch_norm_delay: Optional[int]) -> None:
    for context in common.BatchNormGroups(graph):
        shifted = graph.get_operation_by_name(context + "BatchNorm/batchnorm_1/add_1")
        if not shifted.outputs[0].consumers():
            continue
        folded = _folded_layer(graph, context, shifted, is_training, freeze_batch_norm_delay)
        _put_in_place(folded, shifted.outputs[0])


def _unfused_norm(graph: Graph, context: str, has_scaling: bool) -> _Norm:
    inside = context + "BatchNorm/batchnorm_1/"
    variance, epsilon = graph.get_operation_by_name(inside + "add").inputs
    mean = graph.get_operation_by_name(inside + ("mul_2" if has_scaling else "mul_1")).inputs[0]
    mean_average, mean_rate = _average_of(mean)
    variance_average, variance_rate = _average_of(variance)
    gamma = graph.get_operation_by_name(inside + "mul").inputs[1] if has_scaling else array_ops.ones(mean_average.get_shape().as_list())
    return _Norm(gamma, mean, variance, epsilon, mean_average, mean_rate, variance_average, variance_rate)


def _folded_layer(graph: Graph, context: str, shifted: Operation, is_training: bool, freeze_batch_norm_delay: Optional[int]) -> Tensor:
    """What takes the place of a normalization: a copy of its layer with scaled weights, and of its shift."""
    inside = context + "BatchNorm/batchnorm_1/"
    root = graph.get_operation_by_name(inside + "Rsqrt")
    has_scaling = sum(op.type == "Mul" for op in common.InputToOps(graph).ConsumerOperations(root)) == 1
    scaled = graph.get_operation_by_name(inside + ("mul_1" if has_scaling else "mul"))
    layer, behind = scaled.inputs[0].op, None
    if layer.type == "BatchToSpaceND":
        layer, behind = layer.inputs[0].op, layer
    if layer.type not in ("Conv2D", "MatMul", "DepthwiseConv2dNative"):
        raise at_user_line(ValueError("Cannot handle operation of type: %s" % layer.type))
    weights, factor = layer.inputs[1], scaled.inputs[1]
    correction, inverse, offset = None, None, None
    if is_training:
        correction, inverse, offset = _corrections(_unfused_norm(graph, context, has_scaling), context, freeze_batch_norm_delay)
    if layer.type == "DepthwiseConv2dNative":
        sizes = weights.get_shape().as_list()[2:]
        factor = array_ops.reshape(factor, sizes, name=context + "scale_reshape")
        correction = None if correction is None else array_ops.reshape(correction, sizes, name=context + "correction_reshape")
    if correction is not None:
        weights = math_ops.multiply(correction, weights, name=context + "correction_mult")
    scaled_weights = common.cloned(scaled, [weights, factor], context + "mul_fold").outputs[0]
    result = common.cloned(layer, [layer.inputs[0], scaled_weights], layer.name + "_Fold").outputs[0]
    if behind is not None:
        result = common.cloned(behind, [result, *list(behind.inputs)[1:]], behind.name + "_Fold").outputs[0]
    if inverse is not None:
        result = math_ops.multiply(inverse, result, name=context + "post_conv_mul")
        result = math_ops.add(result, offset, name=context + "correction_add")
    return common.cloned(shifted, [result, shifted.inputs[1]], context + "add_fold").outputs[0]
