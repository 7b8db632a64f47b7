# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.quantize: graphs that are changed so that a model trains, or is evaluated, as if it computed with few bits (Jacob et al.,
Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, 2018)."""

from __future__ import annotations

import re
from typing import Any, Dict, Optional

from millrace.contrib.quantize.fold_batch_norms import FoldBatchNorms
from millrace.contrib.quantize.layers import Quantize
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, get_default_graph

_TRAINS = re.compile("^(Resource)?(Sparse)?Apply[A-Z]")


def _changed(input_graph: Optional[Graph], is_training: bool, freeze_bn_delay: Optional[int] = None, **settings: Any) -> None:
    graph = get_default_graph() if input_graph is None else input_graph
    training = sorted({op.type for op in graph.get_operations() if _TRAINS.match(op.type)})
    if training:
        raise at_user_line(ValueError("Training op found in graph, exiting %s: change the graph before an optimizer adds to it" % training))
    with graph.as_default():
        FoldBatchNorms(graph, is_training, freeze_bn_delay)
        Quantize(graph, is_training, **settings)


def create_training_graph(input_graph: Optional[Graph] = None, quant_delay: int = 0) -> None:
    """Changes the graph of a model, before its optimizer is made, so that it trains with weights and activations of 8 bits, from a step on."""
    _changed(input_graph, True, quant_delay=quant_delay)


def create_eval_graph(input_graph: Optional[Graph] = None) -> None:
    """Changes the graph of a model so that it is evaluated, and can be exported, with weights and activations of 8 bits."""
    _changed(input_graph, False)


def experimental_create_training_graph(
    input_graph: Optional[Graph] = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: Optional[int] = 0,
    freeze_bn_delay: Optional[int] = None,
    scope: Optional[str] = None,
) -> None:
    """create_training_graph with numbers of bits, ranges about 0, batch normalization that stops to learn, and for one scope."""
    settings: Dict[str, Any] = dict(weight_bits=weight_bits, activation_bits=activation_bits, symmetric=symmetric, quant_delay=quant_delay, scope=scope)
    _changed(input_graph, True, freeze_bn_delay, **settings)


def experimental_create_eval_graph(
    input_graph: Optional[Graph] = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: Optional[int] = None,
    scope: Optional[str] = None,
) -> None:
    """create_eval_graph with numbers of bits, ranges about 0, and for one scope."""
    settings: Dict[str, Any] = dict(weight_bits=weight_bits, activation_bits=activation_bits, symmetric=symmetric, quant_delay=quant_delay, scope=scope)
    _changed(input_graph, False, **settings)
