# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.ops.multi_device_iterator_ops: the elements of a data set dealt out to devices."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence

from millrace.data import components, optional
from millrace.data.dataset import Dataset
from millrace.data.iterators import Iterator
from millrace.data.options import Options
from millrace.framework import graph
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import control_flow_ops, gen_ops


class MultiDeviceIterator:
    """Reads a data set for several devices in turn: the first element is for the first of them, the second for the second, and so on.
    max_buffer_size elements may wait for a device that is behind, beside prefetch_buffer_size that are made ahead for each. The elements
    stay where the data set is: CPU devices share their memory."""

    def __init__(
        self, dataset: Dataset, devices: Sequence[Any], max_buffer_size: Any = 1, prefetch_buffer_size: Any = 1, source_device: Any = "/cpu:0"
    ) -> None:
        self._devices, self._element_spec = list(devices), dataset.element_spec
        options = Options()
        options.experimental_distribute.num_devices = dataset.options().experimental_distribute.num_devices or len(self._devices)
        self._dataset = dataset.with_options(options)
        with graph.device(source_device):
            self._resource = gen_ops.multi_device_iterator([str(d) for d in devices], "", "", *components.flat(self._element_spec))
            begun = gen_ops.multi_device_iterator_init(self._dataset._variant, self._resource, max_buffer_size)
            self._iterators = [self._shard(begun, number, prefetch_buffer_size) for number in range(len(self._devices))]
            self._initializer = control_flow_ops.group(*[iterator.initializer for iterator in self._iterators])

    def _shard(self, begun: Tensor, number: int, ahead: Any) -> Iterator:
        """The elements for one device, of the reading that `begun` tells."""

        def element(reading: Tensor) -> Any:
            made = gen_ops.multi_device_iterator_get_next_from_shard(self._resource, number, reading, *components.flat(self._element_spec))
            return components.element(made, self._element_spec)

        elements = Dataset.from_tensors(begun).repeat().map(element)  # which ends where the reading does
        return (elements.prefetch(ahead) if ahead else elements).make_initializable_iterator()

    element_spec = property(lambda self: self._element_spec, doc="The type spec of each component of an element.")
    initializer = property(lambda self: self._initializer, doc="Begins to read the data set.")

    def _of_devices(self, device: Any, ask: Callable[[Iterator], Any]) -> Any:
        if device is None:
            return [ask(iterator) for iterator in self._iterators]
        if device not in self._devices:
            raise at_user_line(ValueError("%r is none of the devices %s" % (device, self._devices)))
        return ask(self._iterators[self._devices.index(device)])

    def get_next(self, device: Optional[Any] = None) -> Any:
        """The next element for a device, or a list of those for all of them."""
        return self._of_devices(device, lambda iterator: iterator.get_next())

    def get_next_as_optional(self) -> List[optional.Optional]:
        """The next elements for all devices, none for those for which there are no more."""
        made: List[optional.Optional] = self._of_devices(None, optional.get_next_as_optional)
        return made
