# SPDX-License-Identifier: Apache-2.0
"""Tells the extension module the classes and helpers that it works with. Imported once, before any op is made."""

from __future__ import annotations

import collections
import os
import sys
from typing import Any, List

import millrace._core as _core
from millrace.framework import convert, dtypes, errors, graph, tensor_shape

PACKAGE_PATH = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _result_type(op_name: str, names: List[str]) -> Any:
    return collections.namedtuple(op_name, names, rename=True)


def _step_waits(session: Any, tensors: List[Any], operations: List[Any]) -> None:
    """Called when a step has waited for some seconds. Without its module, the graph has no queue runners."""
    queue_runner = sys.modules.get("millrace.train.queue_runner")
    if queue_runner is not None:
        queue_runner.warn_of_waiting(session, [*tensors, *operations])


_core.set_registry(
    {
        "graph_type": graph.Graph,
        "operation_type": graph.Operation,
        "tensor_type": graph.Tensor,
        "convert": convert._for_op,
        "dtype_number": dtypes.dtype_number,
        "dtypes": dtypes.ALL_BY_NUMBER,
        "shape_list": tensor_shape.shape_list,
        "error_for": errors.error_for,
        "result_type": _result_type,
        "default_graph": graph._global_default_graph,
        "warn_growth": errors.warn_growth,
        "step_waits": _step_waits,
        "package_path": PACKAGE_PATH,
    }
)
