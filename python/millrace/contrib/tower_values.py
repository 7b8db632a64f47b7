# SPDX-License-Identifier: Apache-2.0
"""tensorflow.contrib.distribute.python.values and .cross_tower_ops of 1.8: values by the devices that they are on, and how those of towers become one."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from millrace.framework import nest
from millrace.framework import replicated_values as replicated
from millrace.framework.cross_device_ops import ReduceOp, aggregate_tensors_or_indexed_slices, divide_by_n_tensors_or_indexed_slices
from millrace.framework.cross_device_ops import copy_tensor_or_indexed_slices_to_device as _copied
from millrace.framework.device_names import canonicalize, resolve
from millrace.framework.errors import at_user_line
from millrace.framework.graph import device
from millrace.framework.replicated_values import ReplicaDeviceMap, select_device_mirrored as select_device_mirrored
from millrace.framework.replication import VariableAggregation
from millrace.framework.strategy_base import get_strategy
from millrace.ops import array_ops
from millrace.train import replicated_variables

# ---- values ----


class _ByDevice:
    """What is made of {device: value}."""

    devices: Any
    values: Any

    def __init__(self, index: Dict[str, Any]) -> None:
        super().__init__(ReplicaDeviceMap(list(index)), list(index.values()))  # type: ignore[call-arg]

    _index = property(lambda self: dict(zip(self.devices, self.values)), doc="{device: value}.")


class DistributedValues(_ByDevice, replicated.DistributedValues):
    """One value for each device."""


class DistributedDelegate(_ByDevice, replicated.DistributedDelegate):
    """Values that act like the one of the tower that this is in."""


class PerDevice(_ByDevice, replicated.PerReplica):
    """Values of which each device has its own."""


class Mirrored(_ByDevice, replicated.Mirrored):
    """Values that are the same on all devices."""


def _copies(index: Dict[str, Any], primary_var: Any) -> Tuple[Any, List[Any]]:
    """The devices and the copies of a variable, the primary one first."""
    pairs = sorted(index.items(), key=lambda pair: pair[1] is not primary_var)
    return ReplicaDeviceMap([name for name, _ in pairs]), [copy for _, copy in pairs]


class MirroredVariable(replicated_variables.MirroredVariable):
    """A variable whose copies, {device: variable}, are the same."""

    def __init__(self, index: Dict[str, Any], primary_var: Any) -> None:
        super().__init__(get_strategy(), *_copies(index, primary_var), VariableAggregation.NONE)


class TowerLocalVariable(replicated_variables.SyncOnReadVariable):
    """A variable whose copies are each tower's own; a checkpoint has their "sum" or "mean"."""

    def __init__(self, index: Dict[str, Any], primary_var: Any, reduce_method: str) -> None:
        super().__init__(get_strategy(), *_copies(index, primary_var), VariableAggregation[ReduceOp.of(reduce_method).name])
        self._reduce_method = reduce_method

    reduce_method = property(lambda self: self._reduce_method, doc="How the copies are put together.")


def regroup(per_device: Dict[str, Any], wrap_class: Callable[[Dict[str, Any]], Any] = PerDevice) -> Any:
    """{device: structure} as one structure, whose leaves have a value for each device; copies of a variable are the variable."""
    return replicated.regroup(ReplicaDeviceMap(list(per_device)), list(per_device.values()), lambda found, made: wrap_class(dict(zip(found.all_devices, made))))


def select_device(device: str, structured: Any) -> Any:
    """What a device has of a structure that regroup made."""
    return nest.map_structure(lambda v: v.get(device) if isinstance(v, replicated.DistributedValues) else v, structured)


class PerDeviceDataIterator:
    """Gives each device an element in turn."""

    def __init__(self, iterator: Any, devices: Sequence[str], dataset: Any) -> None:
        del dataset  # the iterator knows it
        self._iterator, self._devices = iterator, devices

    initializer = property(lambda self: self._iterator.initializer, doc="Sets it to the beginning.")

    def get_next(self) -> Any:
        """The next elements, one for each device; what is left over at the end is left out."""
        batch = self._iterator.get_next()
        return regroup({name: nest.map_structure(lambda rows, at=i: rows[at], batch) for i, name in enumerate(self._devices)})


class PerDeviceDataset:
    """A data set whose elements are dealt out to devices. `prefetch_on_device` changes nothing: memory is shared."""

    def __init__(self, dataset: Any, devices: Sequence[str], prefetch_on_device: Optional[bool] = None) -> None:
        del prefetch_on_device  # memory is shared
        self._devices, self._dataset = tuple(devices), dataset.batch(len(devices), drop_remainder=True)

    def make_one_shot_iterator(self) -> PerDeviceDataIterator:
        """An iterator that begins by itself."""
        return PerDeviceDataIterator(self._dataset.make_one_shot_iterator(), self._devices, self._dataset)

    def make_initializable_iterator(self) -> PerDeviceDataIterator:
        """An iterator that begins when its initializer has run."""
        return PerDeviceDataIterator(self._dataset.make_initializable_iterator(), self._devices, self._dataset)


# ---- the values of towers as one ----


def _get_devices_from(destinations: Any) -> List[str]:
    """The devices of values, of a name or of names."""
    if isinstance(destinations, replicated.DistributedValues):
        return list(destinations.devices)
    names = [destinations] if isinstance(destinations, str) else destinations
    if not isinstance(names, (list, tuple)):
        return [canonicalize(names.device)]  # of a tensor or variable
    return [resolve(name) for name in names]


class CrossTowerOps:
    """Adds the values of towers, or takes their mean, and puts it on devices: in the place of the values where none are named."""

    def reduce(self, method_string: str, per_device_value: Any, destinations: Any = None) -> Mirrored:
        """The "sum" or "mean" of a PerDevice, on devices."""
        if not isinstance(per_device_value, replicated.DistributedValues):
            raise at_user_line(ValueError("per_device_value must be a PerDevice, got %r" % (per_device_value,)))
        kind, values = ReduceOp.of(method_string), list(per_device_value.values)
        with device(self._where(per_device_value, destinations)):
            total = values[0] if len(values) == 1 else aggregate_tensors_or_indexed_slices(values, self._accumulate)
            if kind is ReduceOp.MEAN:
                total = divide_by_n_tensors_or_indexed_slices(total, len(values))
        return self._spread(total, per_device_value if destinations is None else destinations)

    _accumulate: Optional[Callable[..., Any]] = None

    def _where(self, value: Any, destinations: Any) -> str:
        return _get_devices_from(value if destinations is None else destinations)[0]

    @staticmethod
    def _spread(value: Any, destinations: Any) -> Mirrored:
        return Mirrored({name: _copied(value, name) for name in _get_devices_from(destinations)})

    def batch_reduce(self, method_string: str, value_destination_pairs: Sequence[Tuple[Any, Any]]) -> List[Mirrored]:
        """The sums or means of several values."""
        return [self.reduce(method_string, value, where) for value, where in value_destination_pairs]

    def broadcast(self, tensor: Any, destinations: Any) -> Mirrored:
        """A tensor, on devices."""
        return self._spread(array_ops.identity(tensor), destinations)


class ReductionToOneDeviceCrossTowerOps(CrossTowerOps):
    """Adds on `reduce_to_device` (where values go to, if none is named) by `accumulation_fn`, add_n if none is given."""

    def __init__(self, reduce_to_device: Optional[str] = None, accumulation_fn: Optional[Callable[..., Any]] = None) -> None:
        self._device, self._accumulate = reduce_to_device, accumulation_fn

    def _where(self, value: Any, destinations: Any) -> str:
        return self._device or super()._where(value, destinations)


class AllReduceCrossTowerOps(CrossTowerOps):
    """Adds among devices: memory is shared, so the algorithm, the number of packs and how small gradients go together change nothing."""

    def __init__(self, all_reduce_alg: str = "nccl", num_packs: int = 1, agg_small_grads_max_bytes: int = 0, agg_small_grads_max_group: int = 10) -> None:
        self.all_reduce_alg, self.num_packs = all_reduce_alg, num_packs
        self.agg_small_grads_max_bytes, self.agg_small_grads_max_group = agg_small_grads_max_bytes, agg_small_grads_max_group


_TWO_RINGS = [[1, 2, 3, 4], [0, 2, 3, 5], [0, 1, 3, 6], [0, 1, 2, 7], [0, 5, 6, 7], [1, 4, 6, 7], [2, 4, 5, 7], [3, 4, 5, 6]]  # eight devices, by fours


def _choose_all_reduce_algorithm(device_links: Sequence[Sequence[int]]) -> CrossTowerOps:
    """How devices that are linked in this way add: two fours of which each device has one in the other by hierarchical copies, others by NCCL."""
    if [[other for other in links if other != own] for own, links in enumerate(device_links)] == _TWO_RINGS:
        return AllReduceCrossTowerOps("hierarchical_copy", num_packs=len(device_links))
    return AllReduceCrossTowerOps("nccl", num_packs=1)
