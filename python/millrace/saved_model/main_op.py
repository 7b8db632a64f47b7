# SPDX-License-Identifier: Apache-2.0
"""What runs once when a SavedModel has been loaded."""

from __future__ import annotations

from typing import Any

from millrace.ops import control_flow_ops, variables


def main_op() -> Any:
    """An operation that gives variables and tables their first values."""
    from millrace import tables_initializer

    return control_flow_ops.group(variables.global_variables_initializer(), variables.local_variables_initializer(), tables_initializer())


def main_op_with_restore(restore_op_name: Any) -> Any:
    """The same, after the operation that restores."""
    from millrace.framework.graph import get_default_graph

    with get_default_graph().control_dependencies([main_op()]):
        return control_flow_ops.group(restore_op_name)
