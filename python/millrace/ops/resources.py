# SPDX-License-Identifier: Apache-2.0
"""Resources of a graph, such as tables and trees: their handles, what makes them, and whether they are made."""

from __future__ import annotations

import collections
from typing import Any, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection, get_collection
from millrace.ops import array_ops, control_flow_ops, gen_ops

_Resource = collections.namedtuple("_Resource", ["handle", "create", "is_initialized"])


def register_resource(handle: Tensor, create_op: Operation, is_initialized_op: Tensor, is_shared: bool = True) -> None:
    """Puts a resource into a collection of the graph: of those that all processes share, or of this one's."""
    add_to_collection(GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES, _Resource(handle, create_op, is_initialized_op))


def shared_resources() -> List[Any]:
    """The resources that all processes share."""
    return get_collection(GraphKeys.RESOURCES)


def local_resources() -> List[Any]:
    """The resources of this process."""
    return get_collection(GraphKeys.LOCAL_RESOURCES)


def report_uninitialized_resources(resource_list: Optional[List[Any]] = None, name: str = "report_uninitialized_resources") -> Tensor:
    """The names of the handles of resources that are not made yet."""
    from millrace.framework.graph import name_scope

    resources = shared_resources() + local_resources() if resource_list is None else resource_list
    with name_scope(name):
        if not resources:
            return constant(np.array([], object), dtypes.string)
        missing = gen_ops.logical_not(array_ops.stack([r.is_initialized for r in resources]))
        return array_ops.boolean_mask(constant([r.handle.name for r in resources]), missing)


def initialize_resources(resource_list: Any, name: str = "init") -> Operation:
    """An operation that makes resources."""
    if resource_list:
        return control_flow_ops.group(*[r.create for r in resource_list], name=name)
    return control_flow_ops.no_op(name=name)
