# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.distribute.input_lib, as strategies that a program derives use it: which devices the inputs of replicas have."""

from __future__ import annotations

from typing import Any, Tuple


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
