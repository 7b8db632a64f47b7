# SPDX-License-Identifier: Apache-2.0
"""Device names whose parts are all said, as strategies compare them."""

from __future__ import annotations

from typing import Optional, Tuple

from millrace.framework.device import DeviceSpec
from millrace.framework.graph import current_device


def canonicalize(d: Optional[str], default: Optional[str] = None) -> str:
    """A name with all parts but perhaps the job: those that it lacks are `default`'s, else replica 0, task 0 and the first processor."""
    given = DeviceSpec.from_string(d or "")
    if given.device_type is None and default:
        given = DeviceSpec.from_string(default).make_merged_spec(given)
    elif default:
        other = DeviceSpec.from_string(default)
        given = DeviceSpec(other.job, other.replica, other.task).make_merged_spec(given)
    return DeviceSpec(None, 0, 0, "CPU", 0).make_merged_spec(given).to_string()


def resolve(d: Optional[str]) -> str:
    """A name whose missing parts are those of the surrounding tf.device."""
    return canonicalize(d, current())


def current() -> str:
    """The device of operations that are made here; "" where nothing is said."""
    return current_device()


def get_host_for_device(device: str) -> str:
    """The processor of the task that a device is of."""
    spec = DeviceSpec.from_string(device)
    return DeviceSpec(spec.job, spec.replica, spec.task, "CPU", 0).to_string()


def local_devices_from_num_gpus(num_gpus: int) -> Tuple[str, ...]:
    """The names of so many GPUs, or of the processor where there are none."""
    return tuple("/device:GPU:%d" % i for i in range(num_gpus)) or ("/device:CPU:0",)
