# SPDX-License-Identifier: Apache-2.0
"""Names of devices, of which parts may be left out."""

from __future__ import annotations

from typing import Any, Dict, List, Optional


class DeviceSpec:
    """A device name in parts: /job:<job>/replica:<n>/task:<n>/device:<type>:<index>, each may be missing."""

    def __init__(
        self,
        job: Optional[str] = None,
        replica: Optional[int] = None,
        task: Optional[int] = None,
        device_type: Optional[str] = None,
        device_index: Optional[int] = None,
    ) -> None:
        self.job, self.replica, self.task = job, replica, task
        self.device_type = device_type.upper() if device_type in ("cpu", "gpu") else device_type or None
        self.device_index = device_index

    @classmethod
    def from_string(cls, spec: str) -> "DeviceSpec":
        """Parses a name. ValueError when it is none."""
        return cls(**vars(DeviceSpec().parse_from_string(spec)))

    def parse_from_string(self, spec: str) -> "DeviceSpec":
        """Becomes what a name says."""
        self.job = self.replica = self.task = self.device_type = self.device_index = None
        for part in spec.split("/"):
            if part:
                try:
                    known, why = self._take(part.split(":"), spec), ""
                except ValueError as error:
                    if "multiple" in str(error):
                        raise
                    known, why = False, ": %s" % error
                if not known:
                    raise ValueError("Unknown attribute: '%s' in device name '%s'%s" % (part.split(":")[0], spec, why))
        return self

    def _take(self, pieces: List[str], spec: str) -> bool:
        """Takes over one part of a name; False when it is of no known kind."""
        key, count = pieces[0].lower(), len(pieces)
        if key == "job" and count == 2:
            self.job = pieces[1]
        elif key in ("replica", "task") and count == 2:
            setattr(self, key, int(pieces[1]))
        elif key in ("cpu", "gpu") and count <= 2 or key == "device" and count in (2, 3):
            if self.device_type is not None:
                raise ValueError("Cannot specify multiple device types: %s" % spec)
            named = pieces if key != "device" else pieces[1:]
            self.device_type = named[0].upper() if named[0].lower() in ("cpu", "gpu") else named[0]
            self.device_index = None if len(named) == 1 or named[1] == "*" else int(named[1])
        else:
            return False
        return True

    def merge_from(self, dev: "DeviceSpec") -> None:
        """Parts that `dev` has win."""
        for name, value in vars(dev).items():
            if value is not None:
                setattr(self, name, value)

    def make_merged_spec(self, dev: "DeviceSpec") -> "DeviceSpec":
        """Another one, in which parts that `dev` has win."""
        return self.replace(**{name: value for name, value in vars(dev).items() if value is not None})

    def replace(self, **parts: Any) -> "DeviceSpec":
        """Another one with other parts."""
        return type(self)(**{**vars(self), **parts})

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


class DeviceSpecV2(DeviceSpec):
    """One that does not change: parse_from_string and make_merged_spec give another."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        vars(self).update(vars(DeviceSpec(*args, **kwargs)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("can't set attribute %s of a DeviceSpecV2: use replace" % name)

    def parse_from_string(self, spec: str) -> "DeviceSpec":
        """What a name says."""
        return self.from_string(spec)

    def merge_from(self, dev: "DeviceSpec") -> None:
        """Not of this one: use make_merged_spec."""
        raise AttributeError("'DeviceSpecV2' object has no attribute 'merge_from': use make_merged_spec")


_merged: Dict[Any, str] = {}


def merge_device(outer: Any, inner: Optional[str] = None) -> Any:
    """The name with the parts of both, where both have a part `inner`'s. Of one name: a function for tf.device that adds its parts."""
    if inner is None:
        return device_function_of(outer)
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


def check_valid(spec: str) -> None:
    """ValueError when a text is no name of a device."""
    DeviceSpec.from_string(spec)


def device_function_of(spec: Any) -> Any:
    """A function for tf.device that adds the parts of a name to what an operation has."""
    given = spec if isinstance(spec, DeviceSpec) else DeviceSpec.from_string(spec or "")

    def function(node: Any) -> str:
        return merge_device(given.to_string(), node.device or "")

    return function
