# SPDX-License-Identifier: Apache-2.0
"""Resources that an operation makes, such as trees and quantiles: what all of them have, and how checkpoints keep them."""

from __future__ import annotations

from typing import Any, Callable, Dict

from millrace.framework.graph import GraphKeys, Operation, Tensor, add_to_collection
from millrace.ops.resources import register_resource
from millrace.train.saveable import SaveableObject
from millrace.train.tracking import Trackable


class MadeResource(Trackable):
    """A resource, the operation that makes it, and whether that has run. It is among the graph's resources, shared ones or those of one process."""

    def __init__(self, handle: Tensor, initializer: Operation, is_initialized: Callable[[Tensor], Tensor], is_shared: bool = True) -> None:
        self._resource_handle, self._init_op, self._is_initialized = handle, initializer, is_initialized
        self._kept: Dict[str, Any] = {}
        register_resource(handle, initializer, self.is_initialized(), is_shared)

    resource_handle = property(lambda self: self._resource_handle, doc="Its handle.")
    initializer = property(lambda self: self._init_op, doc="The operation that makes it.")

    def is_initialized(self) -> Tensor:
        """Whether it has been made."""
        return self._is_initialized(self._resource_handle)

    def _keep(self, saveable: SaveableObject, key: str) -> None:
        """Has checkpoints keep it, those of objects by a key."""
        self._kept[key] = lambda name: saveable
        add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)

    def _gather_saveables_for_checkpoint(self) -> Dict[str, Any]:
        return dict(self._kept)
