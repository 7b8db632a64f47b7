# SPDX-License-Identifier: Apache-2.0
"""Variables in parts, as they were made before get_variable took partitioners."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops.partitions import fixed_size_partitioner, min_max_variable_partitioner, variable_axis_size_partitioner
from millrace.ops.variable_scope import _true_getter, variable_scope
from millrace.ops.variables import PartitionedVariable, Variable  # noqa: F401

__all__ = ["create_partitioned_variables", "fixed_size_partitioner", "min_max_variable_partitioner", "variable_axis_size_partitioner"]


def create_partitioned_variables(
    shape: Any,
    slicing: Any,
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: Optional[str] = None,
    reuse: Any = None,
) -> List[Variable]:
    """The parts of a variable of a shape, cut into slicing[i] parts along dimension i."""
    sizes = [int(d) for d in TensorShape(shape).as_list()]  # type: ignore[arg-type]
    if len(sizes) != len(slicing):
        raise at_user_line(ValueError("The 'shape' and 'slicing' of a partitioned Variable must have the length: shape: %s, slicing: %s" % (sizes, slicing)))
    if not sizes:
        raise at_user_line(ValueError("A partitioned Variable must have rank at least 1: shape: %s" % (sizes,)))
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        with name_scope(None):
            whole = _true_getter(
                scope.name,
                sizes,
                dtype,
                initializer,
                None,
                scope.reuse,
                trainable,
                collections,
                scope.caching_device,
                lambda **unused: list(slicing),
                True,
                scope.use_resource,
                scope.constraint,
            )
    return list(whole)
