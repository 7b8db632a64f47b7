# SPDX-License-Identifier: Apache-2.0
"""Finds where a step's first NaN or infinity comes from, inside of loops, branches and their gradients too."""

from __future__ import annotations

import re
from typing import Any, List, Optional, Set

from millrace import _core
from millrace.framework import dtypes
from millrace.framework.errors import InvalidArgumentError
from millrace.framework.graph import get_default_graph
from millrace.ops import gen_ops

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
# They hand on what another op has made.
_PASS_ON = frozenset(
    ["Switch", "Merge", "Enter", "Exit", "NextIteration", "Identity", "IdentityN", "StopGradient", "PreventGradient", "Reshape", "ExpandDims", "Squeeze"]
)
_FOUND = re.compile(r"(\S+) : Tensor had (.*) values")


def check_values(graph: Any = None, leave_out: Optional[str] = None) -> int:
    """Puts a check behind each float tensor of a graph: from now on a step fails at the first value that is not finite.

    Whoever reads a tensor reads it through its check, so that no op runs on a bad value: the error names the op that has made one out of good ones. Loops,
    branches and gradients have their checks inside; the bodies of functions (Defun, data sets) have none.

    The graph stays as it is then, and its steps are slower. Tensors that are checked already are not checked again.

    Args:
      graph: that of this thread when it is None. It must not be finalized.
      leave_out: a regular expression for names of ops that may give infinities, masks for instance.

    Returns: how many checks are new.
    """
    graph = get_default_graph() if graph is None else graph
    left_out = re.compile(leave_out) if leave_out else None
    checks = 0
    for op in graph.get_operations():
        if op.type in _PASS_ON or op.type == "CheckNumerics" or (left_out and left_out.search(op.name)):
            continue
        for output in op.outputs:
            readers = [r for r in output.consumers() if r.type != "CheckNumerics"]
            if output.dtype in _FLOATS and readers:
                checked = _check(graph, output)
                checked.op._set_control_flow_context(op._get_control_flow_context())
                checks += 1
                for reader in readers:
                    for index, given in enumerate(reader.inputs):
                        if given is output:
                            reader._update_input(index, checked)
    return checks


def _check(graph: Any, tensor: Any) -> Any:
    with graph.as_default(), graph.control_dependencies(None), graph.device(tensor.op.device):
        return gen_ops.check_numerics(tensor, tensor.name, name="check_values/" + tensor.op.name)


class BadValue:
    """Where a step has its first NaN or infinity: `tensor` by name, `kind` ("Inf", "NaN" or both), `op`, and `inputs`, names of what it was made from."""

    def __init__(self, graph: Any, name: str, kind: str, error: InvalidArgumentError) -> None:  # type: ignore[valid-type]
        self.tensor, self.kind, self.error = name, kind, error
        self.op = graph.get_tensor_by_name(name).op
        self.inputs = [_unchecked(t).name for t in self.op.inputs]

    def __repr__(self) -> str:
        return "<BadValue %s has %s: %s(%s)>" % (self.tensor, self.kind, self.op.type, ", ".join(self.inputs))


def _unchecked(tensor: Any) -> Any:
    return tensor.op.inputs[0] if tensor.op.type == "CheckNumerics" else tensor


def _fetched(fetches: Any, found: List[Any], seen: Set[int]) -> List[Any]:
    """The float tensors among what is fetched."""
    if isinstance(fetches, _core.Tensor):
        if fetches.dtype in _FLOATS and id(fetches) not in seen:
            seen.add(id(fetches))
            found.append(fetches)
    elif isinstance(fetches, dict):
        _fetched(list(fetches.values()), found, seen)
    elif isinstance(fetches, (list, tuple)):
        for one in fetches:
            _fetched(one, found, seen)
    return found


def find_bad_value(session: Any, fetches: Any, feed_dict: Any = None, leave_out: Optional[str] = None) -> Optional[BadValue]:
    """Runs a step of a session with checks (see `check_values`, which it calls for the session's graph): its first NaN or infinity, or None.

    The step stops there: variables that it would have updated later keep their values.
    """
    check_values(session.graph, leave_out)
    left_out = re.compile(leave_out) if leave_out else None
    ends = [t for t in _fetched(fetches, [], set()) if not (left_out and left_out.search(t.op.name))]
    checks = [_check(session.graph, t) for t in ends]
    try:
        session.run([fetches, checks], feed_dict)
    except InvalidArgumentError as error:
        found = _FOUND.search(error.message or "")
        if found is None or error.op is None or error.op.type != "CheckNumerics":
            raise
        return BadValue(session.graph, found[1], found[2], error)
    return None
