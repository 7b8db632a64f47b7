# SPDX-License-Identifier: Apache-2.0
"""Names of devices, of which parts may be left out."""
from __future__ import annotations

from typing import Any, Dict, Optional


class DeviceSpec:
    """A device name in parts: /job:<job>/replica:<n>/task:<n>/device:<type>:<index>, each may be missing."""

    def __init__(self, job: Optional[str] = None, replica: Optional[int] = None, task: Optional[int] = None,
                 device_type: Optional[str] = None, device_index: Optional[int] = None) -> None:
        self.job, self.replica, self.task = job, replica, task
        self.device_type = device_type.upper() if device_type else None
        self.device_index = device_index

    @staticmethod
    def from_string(spec: str) -> "DeviceSpec":
        """Parses a name. ValueError when it is none."""
        return DeviceSpec().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> "DeviceSpec":
        """Takes the parts of a name over."""
        for part in spec.split("/"):
            pieces = part.split(":")
            key = pieces[0].lower()
            try:
                if not part:
                    continue
                if key == "job" and len(pieces) == 2:
                    self.job = pieces[1]
                elif key == "replica" and len(pieces) == 2:
                    self.replica = int(pieces[1])
                elif key == "task" and len(pieces) == 2:
                    self.task = int(pieces[1])
                elif key in ("cpu", "gpu") and len(pieces) == 2:
                    self.device_type, self.device_index = key.upper(), None if pieces[1] == "*" else int(pieces[1])
                elif key == "device" and len(pieces) == 3:
                    self.device_type, self.device_index = pieces[1].upper(), None if pieces[2] == "*" else int(pieces[2])
                elif key == "device" and len(pieces) == 2:
                    self.device_type = pieces[1].upper()
                elif key in ("cpu", "gpu") and len(pieces) == 1:
                    self.device_type = key.upper()
                else:
                    raise ValueError
            except ValueError:
                raise ValueError("Unknown attribute: '%s' in device name '%s'" % (part, spec)) from None
        return self

    def merge_from(self, other: "DeviceSpec") -> None:
        """Parts that `other` has win."""
        for name, value in vars(other).items():
            if value is not None:
                setattr(self, name, value)

    def to_string(self) -> str:
        """The name."""
        parts = []
        if self.job is not None:
            parts.append("/job:" + self.job)
        if self.replica is not None:
            parts.append("/replica:%d" % self.replica)
        if self.task is not None:
            parts.append("/task:%d" % self.task)
        if self.device_type is not None:
            parts.append("/device:%s:%s" % (self.device_type, "*" if self.device_index is None else self.device_index))
        return "".join(parts)

    def __str__(self) -> str:
        return self.to_string()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())


_merged: Dict[Any, str] = {}


def merge_device(outer: str, inner: str) -> str:
    """The name with the parts of both, where both have a part `inner`'s."""
    if not inner:
        return DeviceSpec.from_string(outer).to_string() if outer else ""
    key = (outer, inner)
    if key not in _merged:
        spec = DeviceSpec.from_string(outer)
        spec.merge_from(DeviceSpec.from_string(inner))
        _merged[key] = spec.to_string()
    return _merged[key]


def canonical_name(device: Any) -> str:
    """The name in full spelling."""
    return device.to_string() if isinstance(device, DeviceSpec) else merge_device("", device or "")
