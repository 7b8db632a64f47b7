# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a graph are quantized: weights, and what leaves layers and additions."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Set

from millrace import tf_logging
from millrace.contrib.quantize import common, quant_ops
from millrace.contrib.quantize.graph_matcher import GraphMatcher, MatchResult, OneofPattern, OpTypePattern
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, Operation, Tensor
from millrace.ops import control_flow_ops, gen_ops

_LAYERS = "Conv2D|MatMul|DepthwiseConv2dNative"
_ACTIVATIONS = ("Relu", "Relu6", "Identity")
_BENDING = ("Relu", "Relu6")
_COMBINING = ("Add", "AddV2", "Mul")
_PASSING = ("Reshape", "Identity", "BatchToSpaceND", "SpaceToBatchND", "MaxPool", "Max")
_ADD = "Add|AddV2"


class _LayerMatch(NamedTuple):
    layer_op: Operation
    weight_tensor: Optional[Tensor]
    activation_op: Optional[Operation]
    bypass_op: Optional[Operation] = None
    post_activation_bypass_op: Optional[Operation] = None
    bias_add_op: Optional[Operation] = None


class _Patterns:
    """Layers with biases or folded normalizations, additions beside them, activations, and additions behind these."""

    def __init__(self) -> None:
        variable = OpTypePattern("Variable|VariableV2")
        part = OpTypePattern("Identity", inputs=[variable])
        joined = OpTypePattern("ConcatV2", inputs=[part, "*", "*"])
        self.weights = [
            OpTypePattern("Identity", inputs=[OneofPattern([part, joined, variable])]),
            OpTypePattern("ReadVariableOp"),
            OpTypePattern("Mul"),  # by what a normalization was folded into
        ]
        self.layer = OpTypePattern(_LAYERS, inputs=["*", OneofPattern(self.weights)], ordered_inputs=False)
        output = OneofPattern([OpTypePattern("BatchToSpaceND", inputs=[self.layer, "*", "*"]), self.layer])
        self.separable = OpTypePattern(_LAYERS, inputs=[output, "*"], ordered_inputs=False)
        corrected = OpTypePattern(_ADD, inputs=[OpTypePattern("Mul", inputs=["*", output], ordered_inputs=False), "*"], ordered_inputs=False)
        self.folded_bias = OpTypePattern(_ADD, inputs=[corrected, "*"], ordered_inputs=False)
        self.bias = OpTypePattern(_ADD + "|BiasAdd", inputs=[output, "*"], ordered_inputs=False)
        normalized = [self.bias, self.folded_bias, OpTypePattern("Identity", inputs=[self.folded_bias])]
        self.bypass = OpTypePattern(_ADD, inputs=[OneofPattern(normalized), "*"], ordered_inputs=False)
        self.activation = OpTypePattern("|".join(_ACTIVATIONS), inputs=[OneofPattern([*normalized, self.bypass, self.layer])])
        self.post_bypass = OpTypePattern(_ADD, inputs=["*", self.activation], ordered_inputs=False)

    def weight_of(self, match: MatchResult, folded: bool = True) -> Optional[Tensor]:
        """The weights of a layer."""
        return next((t for t in map(match.get_tensor, self.weights if folded else self.weights[:2]) if t is not None), None)

    def bias_of(self, match: MatchResult) -> Optional[Operation]:
        """The addition of a bias."""
        return match.get_op(self.bias) or match.get_op(self.folded_bias)


def _FindLayersToQuantize(graph: Graph) -> List[_LayerMatch]:
    """The layers of a graph, each as the largest part that is known: with an addition behind its activation, with an activation, with a bias, bare."""
    p = _Patterns()
    found: Dict[Operation, _LayerMatch] = {}

    def note(match: MatchResult, activation: Optional[Operation], weights: Optional[Tensor], *rest: Optional[Operation]) -> None:
        layer = match.get_op(p.layer)
        assert layer is not None
        found.setdefault(layer, _LayerMatch(layer, weights, activation, *rest))

    for match in GraphMatcher(p.post_bypass).match_graph(graph):
        note(match, match.get_op(p.activation), p.weight_of(match), match.get_op(p.bypass), match.get_op(p.post_bypass), p.bias_of(match))
    for match in GraphMatcher(p.activation).match_graph(graph):
        activation = match.get_op(p.activation)
        if not _feeds_normalization(activation):
            note(match, activation, p.weight_of(match), match.get_op(p.bypass), None, p.bias_of(match))
    for match in GraphMatcher(OneofPattern([p.bias, p.folded_bias])).match_graph(graph):
        note(match, p.bias_of(match), p.weight_of(match))
    for match in GraphMatcher(p.separable).match_graph(graph):
        note(match, match.get_op(p.layer), p.weight_of(match, folded=False))
    return list(found.values())


def _feeds_normalization(activation: Any) -> bool:
    """Whether it only hands on what a batch normalization reads, which is what is quantized then."""
    consumers = activation.outputs[0].consumers() if activation.type == "Identity" and len(activation.outputs) == 1 else []
    return len(consumers) == 1 and consumers[0].type in ("FusedBatchNorm", "FusedBatchNormV3")


def _outer(name: str) -> str:
    return name.rpartition("/")[0]


def _followed_by_fake_quant(tensor: Tensor) -> bool:
    waiting = list(tensor.consumers())
    while waiting:
        op = waiting.pop()
        if op.type.startswith("FakeQuantWithMinMax"):
            return True
        if op.type in ("Reshape", "Identity"):
            waiting += [consumer for t in op.outputs for consumer in t.consumers()]
    return False


class _Quantizer:
    """Quantizes tensors of a graph by the same settings."""

    def __init__(
        self,
        graph: Graph,
        is_training: bool,
        symmetric: bool,
        ema_decay: float,
        quant_delay: Optional[int],
        vars_collection: Optional[str],
        scope: Optional[str],
    ) -> None:
        self.graph, self.is_training, self.symmetric, self.ema_decay = graph, is_training, symmetric, ema_decay
        self.quant_delay, self.vars_collection = quant_delay, vars_collection
        self.scope = scope + "/" if scope and not scope.endswith("/") else scope or ""
        self.readers = common.InputToOps(graph)

    def insert(
        self, context: str, name: str, producer: Operation, bits: int, first: float = -6.0, weights: bool = False, in_scope: str = "both", symmetric: Any = None
    ) -> None:
        """Quantizes what an operation makes, for all that reads it. in_scope: which of them must lie in the scope for it: the
        "producer", the "consumers", or "both"; else nothing is done."""
        readers = self.readers.ConsumerOperations(producer)
        outside = [op.name for op in readers if not op.name.startswith(self.scope)] if in_scope != "producer" else []
        if in_scope != "consumers" and not producer.name.startswith(self.scope):
            outside.append(producer.name)
        tensor = producer.outputs[0]
        if outside:
            tf_logging.info("%s/%s is not quantized, because %s is not in scope %s", context, name, outside[0], self.scope)
        if outside or _followed_by_fake_quant(tensor):
            return
        prefix = context + "/" + name if context else name
        around = self.graph.get_name_scope()
        prefix = common.DropStringPrefix(prefix, around + "/") if around else prefix
        settings: Dict[str, Any] = dict(
            init_min=first,
            init_max=6.0,
            is_training=self.is_training,
            num_bits=bits,
            symmetric=self.symmetric if symmetric is None else symmetric,
            narrow_range=weights,
            vars_collection=self.vars_collection,
            name_prefix=prefix,
        )
        quantized = quant_ops.LastValueQuantize(tensor, **settings) if weights else quant_ops.MovingAvgQuantize(tensor, ema_decay=self.ema_decay, **settings)
        if self.quant_delay:
            active = gen_ops.greater_equal(common.CreateOrGetQuantizationStep(), self.quant_delay, name=prefix + "/activate_quant")
            now = quantized
            quantized = control_flow_ops.cond(active, lambda: now, lambda: tensor, name=prefix + "/delayed_quant")
        if readers and common.RerouteTensor(quantized, tensor, can_modify=list(readers)) < len(readers):
            raise at_user_line(ValueError("No inputs quantized for ops: %s" % sorted(op.name for op in readers)))

    def is_followed_by(self, op: Operation, types: Any) -> bool:
        """Whether one of some activations reads an operation."""
        return any(reader.type in types for reader in self.readers.ConsumerOperations(op))


def Quantize(
    graph: Graph,
    is_training: bool,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    ema_decay: float = 0.999,
    quant_delay: Optional[int] = None,
    vars_collection: Optional[str] = GraphKeys.GLOBAL_VARIABLES,
    scope: Optional[str] = None,
) -> None:
    """Quantizes the weights of layers, and what leaves them and additions; normalizations must have been folded into the layers."""
    q = _Quantizer(graph, is_training, symmetric, ema_decay, quant_delay, vars_collection, scope)
    done: Set[Operation] = set()
    for match in _FindLayersToQuantize(graph):
        context = _outer(match.layer_op.name)
        outer = _outer(context) if match.bypass_op is not None else context
        if match.weight_tensor is not None:
            q.insert(context, "weights_quant", match.weight_tensor.op, weight_bits, weights=True, in_scope="consumers")
        if match.activation_op is not None:
            q.insert(outer, "act_quant", match.activation_op, activation_bits, first=0.0, in_scope="producer")
            done.add(match.activation_op)
        if match.bypass_op is not None:
            assert match.bias_add_op is not None
            q.insert(context, "conv_quant", match.bias_add_op, activation_bits)
            done.add(match.bias_add_op)
            if not q.is_followed_by(match.bypass_op, _ACTIVATIONS):
                q.insert(outer, "add_quant", match.bypass_op, activation_bits)
                done.add(match.bypass_op)
        behind = match.post_activation_bypass_op
        if behind is not None and not q.is_followed_by(behind, _BENDING):
            q.insert(_outer(behind.name), "post_activation_bypass_quant", behind, activation_bits, in_scope="producer")
            done.add(behind)
    q.readers = common.InputToOps(graph)
    for op in graph.get_operations():
        if _combines_quantized(op, done):
            q.insert(op.name, "activation_%s_quant" % op.type, op, activation_bits, in_scope="producer", symmetric=False)


def _combines_quantized(op: Operation, done: Set[Operation]) -> bool:
    """Whether it adds or multiplies what is quantized, is not quantized itself, and no activation alone reads it."""
    if op in done or op.type not in _COMBINING:
        return False
    consumers = op.outputs[0].consumers()
    if len(consumers) == 1 and consumers[0].type in _BENDING:
        return False
    for t in op.inputs:
        source = t.op
        while source.type in _PASSING:
            source = source.inputs[0].op
        if source.type == "FakeQuantWithMinMaxVars" or "delayed_quant/Merge" in source.name:
            return True
        if source.type in _COMBINING and any(_combines_quantized(before.op, done) for before in source.inputs):
            return True
    return False
