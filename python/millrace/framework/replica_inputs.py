# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tensorflow.python.distribute.input_lib, as strategies that a program derives use it: which devices the inputs of replicas have."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import device
from millrace.framework.strategy_base import MultiStepContext as MultiStepContext, iterator_of


class InputWorkers:
    """The tasks that read, as pairs of the device where each does and the devices that it feeds."""

    def __init__(self, device_map: Any, worker_device_pairs: Any = None, logical_device: int = 0) -> None:
        self.device_map, self.logical_device = device_map, logical_device
        pairs = worker_device_pairs or [("/device:CPU:0", device_map.logical_to_actual_devices(logical_device))]
        self._reading, self._fed = tuple(reads for reads, _ in pairs), tuple(tuple(fed) for _, fed in pairs)

    num_workers = property(lambda self: len(self._reading), doc="How many they are.")
    worker_devices = property(lambda self: self._reading, doc="Where they read.")

    def compute_devices_for_worker(self, worker_index: int) -> Tuple[str, ...]:
        """The devices that one of them feeds."""
        return self._fed[worker_index]


class InputFunctionIterator:
    """The elements of what a function gives for the pipeline that there is. NotImplementedError for several: a strategy has one replica."""

    def __init__(self, input_fn: Callable[[Any], Any], input_workers: InputWorkers, input_contexts: List[Any], strategy: Any) -> None:
        del strategy  # it has one replica
        if input_workers.num_workers != len(input_contexts):
            raise at_user_line(
                ValueError("Number of input workers (%d) is not same as number of input_contexts (%d)" % (input_workers.num_workers, len(input_contexts)))
            )
        if len(input_contexts) != 1 or len(input_workers.compute_devices_for_worker(0)) != 1:
            raise at_user_line(NotImplementedError("several input pipelines or devices are not provided: a strategy has one replica."))
        with device(input_workers.worker_devices[0] or None):
            self._iterator = iterator_of(input_fn(input_contexts[0]))

    def initialize(self) -> List[Any]:
        """The operations that begin it."""
        return self._iterator.initialize()  # type: ignore[no-any-return]

    initializer = property(initialize, doc="The operations that begin it.")

    def get_next(self) -> Any:
        """The next element."""
        return self._iterator.get_next()
