# SPDX-License-Identifier: Apache-2.0
"""Where bad values come from; and of tensorflow.python.debug the filter for them: the debugger itself is not provided."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from millrace.debug.numerics import BadValue, check_values, find_bad_value
from millrace.framework import missing as _missing


def has_inf_or_nan(datum: Any, tensor: Any) -> bool:
    """Whether an array of numbers has one that is infinite or none."""
    del datum  # where the array was dumped: what filters of the debugger are handed
    if tensor is None or not isinstance(tensor, (np.ndarray, np.generic)):
        return False
    if not (np.issubdtype(tensor.dtype, np.floating) or np.issubdtype(tensor.dtype, np.complexfloating)):
        return False
    return not bool(np.all(np.isfinite(tensor)))


_missing.fill(
    globals(),
    "python.debug.",
    {
        n: "millrace.debug.find_bad_value, tf.Print or sess.run of the tensors themselves"
        for n in (
            "LocalCLIDebugWrapperSession",
            "LocalCLIDebugHook",
            "DumpingDebugWrapperSession",
            "DumpingDebugHook",
            "TensorBoardDebugWrapperSession",
            "TensorBoardDebugHook",
            "GrpcDebugHook",
            "DebugDumpDir",
            "DebugTensorDatum",
            "watch_graph",
            "watch_graph_with_blacklists",
            "add_debug_tensor_watch",
        )
    },
)


def __getattr__(name: str) -> Any:
    if name in ("wrappers", "lib", "cli", "local_cli_wrapper", "hooks", "debug_data"):  # folders of TensorFlow that hold the names above
        return importlib.import_module("millrace.debug")
    raise AttributeError("tf.python.debug.%s is not provided by Millrace" % name)
