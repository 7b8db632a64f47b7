# SPDX-License-Identifier: Apache-2.0
"""tf.config: the settings of sessions that are given none, and the devices of this machine."""

from __future__ import annotations

import types
from typing import Any, Dict, List, NamedTuple, Optional

from millrace.framework import not_provided
from millrace.framework.errors import at_user_line


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device of sessions."""

    name: str
    device_type: str


class VirtualDeviceConfiguration:
    """One of several devices that a physical one is cut into; CPU devices have no limit of memory."""

    def __init__(self, memory_limit: Optional[int] = None) -> None:
        self.memory_limit = memory_limit


_state: Dict[str, Any] = {"config": None, "cpus": [VirtualDeviceConfiguration()], "visible": True}
_CPU = PhysicalDevice("/physical_device:CPU:0", "CPU")


def default_config() -> Any:
    """The ConfigProto of sessions that are given none; None where nothing was set."""
    return _state["config"]


def _config() -> Any:
    if _state["config"] is None:
        from millrace.protos.definitions import ConfigProto  # type: ignore[attr-defined]

        _state["config"] = ConfigProto()
    return _state["config"]


def set_soft_device_placement(enabled: bool) -> None:
    """Whether sessions place on another device what cannot be where it was put."""
    _config().allow_soft_placement = bool(enabled)


def get_soft_device_placement() -> bool:
    """Whether they do."""
    return bool(_config().allow_soft_placement)


def set_log_device_placement(enabled: bool) -> None:
    """Whether sessions say where operations are placed."""
    _config().log_device_placement = bool(enabled)


def get_log_device_placement() -> bool:
    """Whether they do."""
    return bool(_config().log_device_placement)


def _set_threads(field: str, num_threads: int) -> None:
    if num_threads < 0:
        raise at_user_line(ValueError("num_threads must not be negative, got %d" % num_threads))
    setattr(_config(), field, int(num_threads))


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """How many operations run at a time; 0 chooses."""
    _set_threads("inter_op_parallelism_threads", num_threads)


def get_inter_op_parallelism_threads() -> int:
    """How many operations run at a time."""
    return int(_config().inter_op_parallelism_threads)


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """How many threads an operation has; 0 chooses."""
    _set_threads("intra_op_parallelism_threads", num_threads)


def get_intra_op_parallelism_threads() -> int:
    """How many threads an operation has."""
    return int(_config().intra_op_parallelism_threads)


def _known(device: Any) -> None:
    if device != _CPU:
        raise at_user_line(ValueError("Unrecognized device: %r" % (device,)))


def list_physical_devices(device_type: Optional[str] = None) -> List[PhysicalDevice]:
    """The devices of this machine, or those of a type."""
    return [_CPU] if device_type in (None, "CPU") else []


def get_visible_devices(device_type: Optional[str] = None) -> List[PhysicalDevice]:
    """The devices that sessions use."""
    return list_physical_devices(device_type) if _state["visible"] else []


def set_visible_devices(devices: Any, device_type: Optional[str] = None) -> None:
    """Chooses the devices that sessions use; the CPU is always one."""
    given = list(devices) if isinstance(devices, (list, tuple)) else [devices]
    for device in given:
        _known(device)
        if device_type not in (None, device.device_type):
            raise at_user_line(ValueError("Unrecognized device: %r is no %s" % (device, device_type)))
    if not given and device_type in (None, "CPU"):
        raise at_user_line(ValueError("the CPU is always visible"))


def get_virtual_device_configuration(device: Any) -> Optional[List[VirtualDeviceConfiguration]]:
    """What set_virtual_device_configuration cut a device into."""
    _known(device)
    return list(_state["cpus"])


def set_virtual_device_configuration(device: Any, virtual_devices: Any) -> None:
    """Cuts the CPU into several devices, of sessions that are made afterwards."""
    _known(device)
    if any(v.memory_limit is not None for v in virtual_devices):
        raise at_user_line(ValueError("Setting memory limit on CPU virtual devices is currently not supported"))
    _state["cpus"] = list(virtual_devices)
    _config().device_count["CPU"] = len(_state["cpus"])


def list_logical_devices(device_type: Optional[str] = None) -> List[LogicalDevice]:
    """The devices of sessions, or those of a type."""
    return [LogicalDevice("/device:CPU:%d" % i, "CPU") for i in range(len(_state["cpus"]))] if device_type in (None, "CPU") else []


def experimental_list_devices() -> List[str]:
    """Their names."""
    return ["/job:localhost/replica:0/task:0" + device.name for device in list_logical_devices()]


def get_memory_growth(device: Any) -> bool:
    """Of GPUs: there are none."""
    _known(device)
    raise at_user_line(ValueError("Cannot set memory growth on non-GPU devices"))


def set_memory_growth(device: Any, enable: bool) -> None:
    """Of GPUs: there are none."""
    del enable  # devices of other kinds refuse either
    get_memory_growth(device)


def get_synchronous_execution() -> bool:
    """True: an operation that is run is done when it is said to be."""
    return True


def set_synchronous_execution(enable: bool) -> None:
    """Takes True alone."""
    if not enable:
        raise at_user_line(NotImplementedError("tf.config.experimental.set_synchronous_execution(False): sessions return when their step is done."))


def get_device_policy() -> str:
    """ "silent": values are where an operation needs them."""
    return "silent"


def set_device_policy(device_policy: Optional[str]) -> None:
    """Takes "silent" and None alone."""
    if device_policy not in (None, "silent"):
        raise at_user_line(NotImplementedError("tf.config.experimental.set_device_policy(%r): values always go where they are needed." % (device_policy,)))


_PASSES = ("layout_optimizer", "constant_folding", "arithmetic_optimization", "dependency_optimization", "remapping")
_OTHER_PASSES = (  # that sessions do not have: they may be switched
    "shape_optimization",
    "loop_optimization",
    "function_optimization",
    "scoped_allocator_optimization",
    "pin_to_host_optimization",
    "implementation_selector",
)
_CHANGES_OF_MEANING = ("debug_stripper", "auto_mixed_precision")  # which may be off alone
_OTHER_SETTINGS = {"disable_meta_optimizer": bool, "disable_model_pruning": bool, "min_graph_nodes": int}


def set_optimizer_experimental_options(options: Dict[str, Any]) -> None:
    """Switches passes of the graph compiler on or off, by the names of RewriterConfig: constant_folding, arithmetic_optimization, remapping ...; and sets
    disable_meta_optimizer and the like. ValueError for other names; NotImplementedError for debug_stripper and auto_mixed_precision that are on."""
    rewriter = _config().graph_options.rewrite_options
    for name, value in options.items():
        if name in _OTHER_SETTINGS:
            setattr(rewriter, name, _OTHER_SETTINGS[name](value))
        elif name not in (*_PASSES, *_OTHER_PASSES, *_CHANGES_OF_MEANING):
            raise at_user_line(ValueError("%r is no optimizer" % name))
        elif value and name in _CHANGES_OF_MEANING:
            raise at_user_line(NotImplementedError("tf.config.optimizer: %s is not provided: graphs mean what they say." % name))
        else:
            setattr(rewriter, name, 1 if value else 2)


def get_optimizer_experimental_options() -> Dict[str, Any]:
    """What was set."""
    rewriter = _config().graph_options.rewrite_options
    made = {name: getattr(rewriter, name) == 1 for name in (*_PASSES, *_OTHER_PASSES, *_CHANGES_OF_MEANING) if getattr(rewriter, name)}
    return {**made, **{name: kind(getattr(rewriter, name)) for name, kind in _OTHER_SETTINGS.items() if getattr(rewriter, name)}}


def set_optimizer_jit(enabled: bool) -> None:
    """Takes False alone: XLA is not there, and graphs are compiled by the session."""
    if enabled:
        raise at_user_line(NotImplementedError("tf.config.optimizer.set_jit(True): there is no XLA; sessions compile their graphs anyway."))


def get_optimizer_jit() -> bool:
    """False."""
    return False


threading = types.SimpleNamespace(
    **{
        f.__name__: f
        for f in (get_inter_op_parallelism_threads, get_intra_op_parallelism_threads, set_inter_op_parallelism_threads, set_intra_op_parallelism_threads)
    }
)
optimizer = types.SimpleNamespace(
    get_experimental_options=get_optimizer_experimental_options,
    set_experimental_options=set_optimizer_experimental_options,
    get_jit=get_optimizer_jit,
    set_jit=set_optimizer_jit,
)
experimental = types.SimpleNamespace(
    **{
        f.__name__: f
        for f in (
            VirtualDeviceConfiguration,
            get_device_policy,
            get_memory_growth,
            get_synchronous_execution,
            get_virtual_device_configuration,
            get_visible_devices,
            list_logical_devices,
            list_physical_devices,
            set_device_policy,
            set_memory_growth,
            set_synchronous_execution,
            set_virtual_device_configuration,
            set_visible_devices,
        )
    }
)

__getattr__ = not_provided.getter("config")
