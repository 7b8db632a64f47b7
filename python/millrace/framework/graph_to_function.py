# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.graph_to_function_def: a graph as a function."""

from __future__ import annotations

from typing import Any

import millrace._core as _core
from millrace.protos import definitions


def graph_to_function_def(graph: Any, operations: Any, inputs: Any, outputs: Any, out_names: Any = None) -> Any:
    """The FunctionDef of operations of a graph, between what stands for its arguments and its results."""
    names = [] if out_names is None else list(out_names)
    if names and len(names) != len(outputs):
        raise ValueError(
            "Length of out_names (%d) does not match number of outputs (%d): %s, %s" % (len(names), len(outputs), names, ", ".join(t.name for t in outputs))
        )
    arguments = {t.op for t in inputs}
    body = [op for op in operations if op not in arguments]
    made = definitions.FunctionDef.FromString(_core.to_function(graph, "f", list(inputs), list(outputs), names, body))
    made.signature.name = ""  # the caller gives it one
    return made
