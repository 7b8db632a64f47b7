# SPDX-License-Identifier: Apache-2.0
"""Variables as operations: tensorflow.python.ops.state_ops, beyond what tf has of it."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, get_default_graph
from millrace.framework.tensor_shape import as_shape, unknown_shape
from millrace.ops import gen_ops, variables


def variable_op(shape: Any, dtype: Any, name: str = "Variable", set_shape: bool = True, container: str = "", shared_name: str = "") -> Tensor:
    """A variable's reference, of the older op, which takes a shape of no known size for a scalar's; without set_shape nothing is known of it."""
    known = as_shape(shape) if set_shape else unknown_shape()
    made: Tensor = gen_ops.variable(known if known.ndims is not None else [], dtype, container=container, shared_name=shared_name, name=name)
    return made


def variable_op_v2(shape: Any, dtype: Any, name: str = "Variable", container: str = "", shared_name: str = "") -> Tensor:
    """A variable's reference."""
    return gen_ops.variable_v2(shape, dtype, container=container, shared_name=shared_name, name=name)


def init_variable(v: Any, init: Any, name: str = "init") -> Any:
    """An operation that sets a variable to a value, or to what a function of shape and type makes, on the variable's device."""
    reference = v._ref() if isinstance(v, variables.Variable) else v
    with get_default_graph().colocate_with(reference.op):
        value = init(reference.get_shape(), reference.dtype.base_dtype) if callable(init) else convert_to_tensor(init, reference.dtype.base_dtype)
        return gen_ops.assign(reference, value, name=name)


def is_variable_initialized(ref: Any, name: Optional[str] = None) -> Tensor:
    """Whether a variable has a value."""
    return variables.is_variable_initialized(ref, name)


assign, assign_add, assign_sub = variables.assign, variables.assign_add, variables.assign_sub
