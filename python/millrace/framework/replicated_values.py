# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tensorflow.python.distribute.values, as strategies that a program derives use it: one value for each replica, and which devices they are on."""

from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Iterator, Sequence, Tuple

from millrace.framework import nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.device_names import canonicalize, current
from millrace.framework.errors import at_user_line
from millrace.framework.strategy_base import get_replica_context
from millrace.framework.tensor_util import is_tensor
from millrace.framework.type_spec import TypeSpec, type_spec_from_value

# ---- devices ----


class DeviceMap:
    """Devices by number, each named with all its parts. Two are equal when they are of one class and have the same devices."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = tuple(canonicalize(d) for d in devices)
        if len(set(self._devices)) != len(self._devices):
            raise at_user_line(ValueError("Duplicate devices in %s, after canonicalization: %s" % (tuple(devices), self._devices)))

    all_devices = property(lambda self: self._devices, doc="The devices.")
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

    def select_for_current_replica(self, values: Any, replica_context: Any) -> Any:
        """The value of the replica that a context is of."""
        return values[replica_context.replica_id_in_sync_group]

    def select_for_device(self, values: Any, device: str) -> Any:
        """The value on a device. ValueError for one that is not of the map."""
        return values[self._number(device)]

    def _number(self, device: str) -> int:
        if device not in self._devices:
            raise at_user_line(ValueError("Device %s not found in %s (current device %s)" % (device, self._devices, current())))
        return self._devices.index(device)

    @property
    def devices_by_replica(self) -> Iterator[Tuple[str, ...]]:
        """For each replica its devices."""
        raise at_user_line(ValueError("`%s` is not indexed by replicas" % type(self).__name__))

    def replica_for_device(self, device: str) -> int:
        """Which replica is on a device."""
        raise at_user_line(ValueError("`%s` not indexed by replicas" % type(self).__name__))

    def is_device_in_replica(self, device: str, replica_id: int) -> bool:
        """Whether it is that replica's."""
        raise at_user_line(ValueError("%s not indexed by replicas" % type(self).__name__))

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and bool(vars(self) == vars(other))

    def __hash__(self) -> int:
        return hash((type(self), self._devices))

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join(map(repr, self._devices)))


class SingleDeviceMap(DeviceMap):
    """One device, whatever replica asks."""

    def __init__(self, device: str) -> None:
        super().__init__((device,))

    def select_for_current_replica(self, values: Any, replica_context: Any) -> Any:
        """The value."""
        del replica_context  # whichever it is
        return values[0]


class ReplicaDeviceMap(DeviceMap):
    """One device for each replica. ValueError for one that is there twice."""

    devices_by_replica = property(lambda self: ((d,) for d in self._devices), doc="For each replica its devices.")  # type: ignore[assignment]

    def replica_for_device(self, device: str) -> int:
        """Which replica is on a device, None of another's."""
        return self._devices.index(device) if device in self._devices else None  # type: ignore[return-value]

    def is_device_in_replica(self, device: str, replica_id: int) -> bool:
        """Whether it is that replica's."""
        return self._devices[replica_id] == device


class WorkerDeviceMap(DeviceMap):
    """One device for each worker, which so many replicas share."""

    def __init__(self, devices: Sequence[str], num_replicas_per_worker: int) -> None:
        super().__init__(devices)
        self._each = num_replicas_per_worker

    def select_for_current_replica(self, values: Any, replica_context: Any) -> Any:
        """The value of the worker that the replica is on."""
        return values[replica_context.replica_id_in_sync_group // self._each]

    def __repr__(self) -> str:
        return "WorkerDeviceMap(%s, num_replicas_per_worker=%d)" % (self._devices, self._each)


# ---- values ----


class DistributedValues:
    """One value for each device of a map."""

    def __init__(self, device_map: Any, values: Sequence[Any], logical_device: Any = None) -> None:
        wanted = len(device_map.all_devices) if logical_device is None else len(device_map.logical_to_actual_devices(logical_device))
        if len(values) != wanted:
            raise at_user_line(ValueError("%d values for %d devices" % (len(values), wanted)))
        self._device_map, self._values = device_map, tuple(values)
        self._logical_device = device_map.logical_device_from_values(self._values) if logical_device is None else logical_device

    values = property(lambda self: self._values, doc="The values.")
    device_map = property(lambda self: self._device_map, doc="Which devices there are.")
    logical_device = property(lambda self: self._logical_device, doc="Which of a replica's devices they are on.")
    primary = property(lambda self: self._values[0], doc="The first value.")
    devices = property(lambda self: self._device_map.logical_to_actual_devices(self._logical_device), doc="The devices that they are on.")
    is_tensor_like = property(lambda self: all(is_tensor(v) for v in self._values), doc="Whether all of them are tensors.")

    def get(self, device: Any = None) -> Any:
        """The value on a device; where none is named that of the replica that this is in, and across replicas of the current device."""
        if device is None:
            replica = get_replica_context()
            if replica is not None:
                return self._device_map.select_for_current_replica(self._values, replica)
            return self._get_cross_replica()
        return self._device_map.select_for_device(self._values, canonicalize(device, current()))

    def _get_cross_replica(self) -> Any:
        return self._device_map.select_for_device(self._values, canonicalize(current()))

    def __repr__(self) -> str:
        lines = ("  %d %s: %r" % (i, d, v) for i, (d, v) in enumerate(zip(self.devices, self._values)))
        return "%s:{\n%s\n}" % (type(self).__name__, ",\n".join(lines))

    __str__ = __repr__


class DistributedDelegate(DistributedValues):
    """Values that act like the one of the replica that this is in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_self_") or "_values" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.get(), name)

    def _get_as_operand(self) -> Any:
        return self.get()

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        other = _operand(other)
        return pow(self._get_as_operand(), other) if modulo is None else pow(self._get_as_operand(), other, modulo)

    def __rpow__(self, other: Any) -> Any:
        return pow(_operand(other), self._get_as_operand())

    def __getitem__(self, key: Any) -> Any:
        return self._get_as_operand()[key]


def _operand(value: Any) -> Any:
    return value._get_as_operand() if isinstance(value, DistributedDelegate) else value


def _forward(of: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others: of(self._get_as_operand(), *map(_operand, others))


def _turned(of: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: of(_operand(other), self._get_as_operand())


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"):
    _function = getattr(operator, "__%s__" % _name)
    setattr(DistributedDelegate, "__%s__" % _name, _forward(_function))
    setattr(DistributedDelegate, "__r%s__" % _name, _turned(_function))
for _name in ("lt", "le", "gt", "ge", "neg", "abs", "invert"):
    setattr(DistributedDelegate, "__%s__" % _name, _forward(getattr(operator, "__%s__" % _name)))


class PerReplica(DistributedValues, CompositeTensor):
    """Values of which each replica has its own."""

    @property
    def _type_spec(self) -> "PerReplicaSpec":
        return PerReplicaSpec(tuple(type_spec_from_value(v) for v in self._values), self._device_map, self._logical_device)

    @property
    def _is_graph_tensor(self) -> bool:
        return any(hasattr(v, "graph") for v in self._values)


class PerReplicaSpec(TypeSpec):
    """What each replica's value is like, and where they are."""

    def __init__(self, value_specs: Sequence[Any], device_map: Any, logical_device: Any) -> None:
        if isinstance(device_map, tuple):  # as it was serialized
            device_map = _MAPS[device_map[0]](*device_map[1:])
        self._value_specs, self._device_map, self._logical_device = tuple(value_specs), device_map, logical_device

    value_type = property(lambda self: PerReplica, doc="PerReplica.")  # type: ignore[assignment]

    def _serialize(self) -> Tuple[Any, ...]:
        kind = {cls: name for name, cls in _MAPS.items()}.get(type(self._device_map))
        if kind is None:
            raise at_user_line(ValueError("PerReplicaSpec does not support device_map type %s" % type(self._device_map).__name__))
        devices = self._device_map.all_devices
        return self._value_specs, (kind, devices[0] if kind == "single" else devices), self._logical_device

    @property
    def _component_specs(self) -> Any:
        return self._value_specs

    def _to_components(self, value: Any) -> Any:
        replica = get_replica_context()
        if replica is not None and replica.num_replicas_in_sync > 1:
            raise at_user_line(ValueError("Flattening a PerReplica to components is not supported in replica context."))
        return value._values

    def _from_components(self, components: Any) -> Any:
        return PerReplica(self._device_map, tuple(components), self._logical_device)


_MAPS: Dict[str, Any] = {"single": SingleDeviceMap, "replica": ReplicaDeviceMap}


class Mirrored(DistributedDelegate):
    """Values that are the same in all replicas."""

    def _get_cross_replica(self) -> Any:
        where = canonicalize(current())
        return self._device_map.select_for_device(self._values, where) if where in self._device_map.all_devices else self.primary

    def _as_graph_element(self) -> Any:
        value = self.get()
        convert = getattr(value, "_as_graph_element", None)
        return convert() if convert else value


# ---- values of replicas together and apart ----


def _container(value: Any) -> Any:
    """The variable whose copy this is, or None."""
    held = getattr(value, "__dict__", {}).get("_distributed_container")
    return held() if held is not None else None


def value_container(val: Any) -> Any:
    """The variable of which a value is one replica's; another value itself."""
    container = _container(val)
    return val if container is None else container


def is_distributed_variable(v: Any) -> bool:
    """Whether it is a variable with a copy for each replica."""
    return isinstance(v, DistributedDelegate) and hasattr(v, "distribute_strategy")


def regroup(device_map: Any, values: Sequence[Any], wrap_class: Any = PerReplica) -> Any:
    """The structures of all replicas as one, whose leaves have a value for each replica; what is the same object in all of them stays itself, and copies of
    a variable are the variable. ValueError or TypeError for structures that are not alike."""

    def together(*leaves: Any) -> Any:
        container = _container(leaves[0])
        if any(_container(v) is not container for v in leaves):
            raise at_user_line(ValueError("the values of replicas are copies of several variables: %s" % (leaves,)))
        if container is not None:
            return container
        return leaves[0] if all(v is leaves[0] for v in leaves) else wrap_class(device_map, leaves)

    first = values[0]
    if nest._is_namedtuple(first) and all(type(v) is type(first) for v in values):
        return type(first)._make(regroup(device_map, parts, wrap_class) for parts in zip(*values))  # without the questions that an EstimatorSpec asks
    return nest.map_structure(together, *values)


def select_replica(replica_id: int, structured: Any) -> Any:
    """What one replica has of a structure that regroup made."""
    return nest.map_structure(lambda v: v.values[replica_id] if isinstance(v, DistributedValues) else v, structured)


def select_device_mirrored(device: str, structured: Any) -> Any:
    """The values on a device of a structure whose values are mirrored; TypeError for others."""

    def select(value: Any) -> Any:
        if isinstance(value, DistributedValues) and not isinstance(value, Mirrored):
            raise at_user_line(TypeError("Expected value to be mirrored across replicas: %s in %s." % (value, structured)))
        return value.get(device) if isinstance(value, DistributedValues) else value

    return nest.map_structure(select, structured)


def update_regroup(extended: Any, device_map: Any, updates: Sequence[Any], group: bool) -> Any:
    """What an update made for each copy of a variable, as mirrored values: one operation where they are grouped, and else their local results."""
    regrouped = regroup(device_map, updates, Mirrored)
    if not group:
        return nest.map_structure(extended._local_results, regrouped)
    flat = [extended._strategy.group(v) if isinstance(v, DistributedValues) else v for v in nest.flatten(regrouped)]
    return flat[0] if not nest.is_sequence(regrouped) else nest.pack_sequence_as(regrouped, flat)
