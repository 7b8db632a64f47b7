# SPDX-License-Identifier: Apache-2.0
"""Which variables results depend on."""

from __future__ import annotations

from typing import Any, List

import millrace._core as _core
from millrace.framework import nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Graph
from millrace.framework.importer import import_graph_def
from millrace.ops.gradients import _source
from millrace.ops.variables import Variable, trainable_variables

__all__ = ["get_dependent_variables"]


def get_dependent_variables(input_ops: Any, output_ops: Any) -> List[Variable]:
    """The trainable variables by which the outputs have a gradient that does not go through the inputs. Both are structures of tensors.

    The gradients are made in a copy of the graph: the graph itself stays as it is."""
    inputs, outputs = ([convert_to_tensor(x) for x in nest.flatten(given)] for given in (input_ops, output_ops))
    variables = trainable_variables()
    if not variables or not outputs:
        return []
    names = [[t.name for t in tensors] for tensors in (outputs, [_source(v) for v in variables], inputs)]
    with Graph().as_default() as copy:
        import_graph_def(outputs[0].graph.as_graph_def(), name="")
        ys, xs, stops = ([copy.get_tensor_by_name(name) for name in found] for found in names)
        made = _core.add_gradients(copy, "gradients", ys, xs, [], stops, False, False)
    return [variable for variable, gradient in zip(variables, made) if gradient is not None]
