# SPDX-License-Identifier: Apache-2.0
"""tf.autograph.experimental."""

from __future__ import annotations

import enum
from typing import Any, Optional

from millrace.framework.autograph_status import do_not_convert

__all__ = ["Feature", "do_not_convert", "set_loop_options"]


class Feature(enum.Enum):
    """Parts of AutoGraph that TensorFlow switches one by one. Here all but LISTS and NAME_SCOPES are always on."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def set_loop_options(
    parallel_iterations: Optional[int] = None,
    back_prop: Optional[bool] = None,
    swap_memory: Optional[bool] = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """At the beginning of a loop's body: arguments of the tf.while_loop that the loop becomes. `shape_invariants` are pairs (variable, shape).

    Elsewhere, and where a loop stays Python's, it does nothing."""
    del parallel_iterations, back_prop, swap_memory, maximum_iterations, shape_invariants  # the conversion reads them
