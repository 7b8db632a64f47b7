# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tfprof: tf.profiler.profile under its first names."""

from __future__ import annotations

import types
from typing import Any, Dict, Optional

from millrace.profiler.model_analyzer import ProfileOptionBuilder, Profiler, advise, profile, write_op_log

TRAINABLE_VARS_PARAMS_STAT_OPTIONS = ProfileOptionBuilder.trainable_variables_parameter()
FLOAT_OPS_OPTIONS = ProfileOptionBuilder.float_operation()
PRINT_ALL_TIMING_MEMORY = ProfileOptionBuilder.time_and_memory()


def print_model_analysis(
    graph: Any, run_meta: Any = None, op_log: Any = None, tfprof_cmd: str = "scope", tfprof_options: Optional[Dict[str, Any]] = None
) -> Any:
    """profile with the trained variables' parameters unless other options are given."""
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options or TRAINABLE_VARS_PARAMS_STAT_OPTIONS)


model_analyzer = types.SimpleNamespace(
    **{k: v for k, v in globals().items() if k.isupper()}, print_model_analysis=print_model_analysis, profile=profile, advise=advise, Profiler=Profiler
)
tfprof_logger = types.SimpleNamespace(write_op_log=write_op_log)
