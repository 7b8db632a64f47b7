# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tensorflow.python.distribute.input_lib and values, as strategies that a program derives use them: which devices replicas and their inputs have."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import device
from millrace.framework.strategy_base import MultiStepContext as MultiStepContext, iterator_of


class ReplicaDeviceMap:
    """One device for each replica. ValueError for none, or one that is there twice."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = tuple(devices)
        if not self._devices or len(set(self._devices)) != len(self._devices):
            raise at_user_line(ValueError("Devices must be unique and at least one, got: %s" % (self._devices,)))

    all_devices = property(lambda self: self._devices, doc="The devices.")
    devices_by_replica = property(lambda self: tuple((d,) for d in self._devices), doc="For each replica its devices.")
    num_logical_devices = property(lambda self: 1, doc="How many devices a replica has.")
    num_replicas_in_graph = property(lambda self: len(self._devices), doc="How many replicas there are.")

    def logical_device_from_values(self, values: Any) -> int:
        """Which of a replica's devices values are on: it has one."""
        del values  # wherever they are
        return 0

    def logical_to_actual_devices(self, logical_device_id: int) -> Tuple[str, ...]:
        """The devices of all replicas."""
        if logical_device_id:
            raise at_user_line(ValueError("a replica has the device 0 alone, got %d" % logical_device_id))
        return self._devices

    def replica_for_device(self, device: str) -> int:
        """Which replica is on a device."""
        return self._devices.index(device)

    def select_for_device(self, values: Any, device: str) -> Any:
        """The value on a device."""
        return values[self.replica_for_device(device)]

    def is_device_in_replica(self, device: str, replica_id: int) -> bool:
        """Whether it is that replica's."""
        return device == self._devices[replica_id]


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
