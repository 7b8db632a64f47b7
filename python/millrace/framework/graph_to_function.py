# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.graph_to_function_def: a graph as a function."""

from __future__ import annotations

import itertools
import re
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
    # Names of results are apart from those of nodes: nodes keep theirs, and results may be called as nodes are.
    taken = {op.name for op in operations}
    apart = next(stem for stem in ("result" + "_" * n for n in itertools.count()) if not any(name.startswith(stem) for name in taken))
    made = definitions.FunctionDef.FromString(
        _core.to_function(graph, "f", list(inputs), list(outputs), ["%s%d" % (apart, i) for i in range(len(outputs))], body)
    )
    made.signature.name = ""  # the caller gives it one
    wanted = names or [re.sub(":0$", "", t.name).replace(":", "_o") for t in outputs]
    given = {arg.name: made.ret[arg.name] for arg in made.signature.output_arg}
    made.ret.clear()
    for arg, name in zip(made.signature.output_arg, wanted):
        made.ret[name], arg.name = given[arg.name], name
    return made
