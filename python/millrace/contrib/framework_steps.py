# SPDX-License-Identifier: Apache-2.0
"""Variables that programs of tf.contrib.framework begin with: the global step, and zeros in place of an initial value."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.ops.variables import is_variable_initialized
from millrace.train.global_step import assert_global_step, get_global_step


def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    """The global step that is given, which has to be a scalar of integers, or else that of the graph."""
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


def zero_initializer(ref: Any, use_locking: bool = True, name: Optional[str] = None) -> Tensor:
    """Zeros for a variable that has no value yet, without its initializer; the variable's value then. It may have none before."""
    if not ref.get_shape().is_fully_defined():
        raise at_user_line(ValueError("zero_initializer needs a variable of a known shape, got %s" % (ref,)))
    empty = gen_ops.logical_not(is_variable_initialized(ref))
    with control_dependencies([control_flow_ops.Assert(empty, ["input is already initialized: " + ref.op.name])]):
        zeros = array_ops.zeros(ref.get_shape(), ref.dtype.base_dtype)
        return array_ops.identity(ref.assign(zeros, use_locking=use_locking), name=name or "zero_initializer")
