# SPDX-License-Identifier: Apache-2.0
"""What the changes of a graph share: its parts by name, the count of steps, and copies of operations."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence, Set

from millrace.contrib.graph_editor.reroute import reroute_ts
from millrace.framework import dtypes
from millrace.framework.graph import Graph, GraphKeys, Operation, Tensor, get_default_graph
from millrace.framework.replication import VariableAggregation
from millrace.ops import array_ops, init_ops
from millrace.ops.variable_scope import get_variable
from millrace.ops.variables import assign_add

SKIPPED_PREFIXES = ("gradients/", "RMSProp/", "Adagrad/", "Const_", "HistogramSummary", "ScalarSummary")
_BATCH_NORM = re.compile("^(.*)BatchNorm/batchnorm")
_STEP = "fake_quantization_step"


def BatchNormGroups(graph: Graph) -> List[str]:
    """What is before `BatchNorm/batchnorm` in names of operations: the scopes of normalizations that are not one operation."""
    found = (_BATCH_NORM.search(op.name) for op in graph.get_operations())
    return list(dict.fromkeys(m.group(1) for m in found if m is not None and not m.group(1).startswith(SKIPPED_PREFIXES)))


def operation_or_none(graph: Graph, name: str) -> Optional[Operation]:
    """An operation by its name."""
    try:
        return graph.get_operation_by_name(name)
    except KeyError:
        return None


def CreateOrGetQuantizationStep() -> Tensor:
    """The number of this step, counted by a variable."""
    graph = get_default_graph()
    known = operation_or_none(graph, _STEP + "/Identity")
    if known is not None:
        return known.outputs[0]
    with graph.name_scope(None):
        step = get_variable(
            _STEP,
            [],
            dtypes.int64,
            init_ops.zeros_initializer(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES],
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
        )
        with graph.name_scope(_STEP + "/"):
            return array_ops.identity(assign_add(step, 1))


def DropStringPrefix(s: str, prefix: str) -> str:
    """A text without what it may start with."""
    return s[len(prefix) :] if s.startswith(prefix) else s


def RerouteTensor(t0: Tensor, t1: Tensor, can_modify: Optional[Sequence[Operation]] = None) -> int:
    """Lets what reads t1 read t0; how many inputs were changed."""
    return reroute_ts([t0], [t1], can_modify)


def cloned(op: Operation, inputs: Sequence[Tensor], name: str) -> Operation:
    """The same operation of other inputs, under a name in the current scope."""
    graph = op.graph
    attributes = {key: value for key, value in op.node_def.attr.items() if key not in ("_class", "_output_shapes")}
    with graph.device(op.device):
        return graph.create_op(op.type, list(inputs), name=name, attrs=attributes)


class InputToOps:
    """Who reads the tensors of a graph as it was, without what computes gradients."""

    def __init__(self, graph: Graph) -> None:
        self.mapping: Dict[Tensor, Set[Operation]] = {}
        for op in graph.get_operations():
            for t in () if op.name.startswith(SKIPPED_PREFIXES) else op.inputs:
                self.mapping.setdefault(t, set()).add(op)

    def ConsumerOperations(self, producer_op: Any) -> Set[Operation]:
        """The operations that read outputs of one."""
        return {op for t in producer_op.outputs for op in self.mapping.get(t, ())}
