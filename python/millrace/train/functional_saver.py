# SPDX-License-Identifier: Apache-2.0
"""Savers that are functions: each call adds the operations that write or read, for the name that it is given."""

from __future__ import annotations

from typing import Any, Dict, List

from millrace.framework import device as devices
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, device
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.protos import definitions
from millrace.train.saveable import SaveableObject

_SUFFIX = "_temp/part"  # behind the name of a checkpoint, while its parts are apart


def _checked(saveable_objects: Any) -> List[SaveableObject]:
    found = list(saveable_objects)
    for saveable in found:
        if not isinstance(saveable, SaveableObject):
            raise at_user_line(ValueError("Expected a SaveableObject, got %s." % (saveable,)))
    return found


class _SingleDeviceSaver:
    """Writes and reads SaveableObjects, where it is called."""

    def __init__(self, saveable_objects: Any) -> None:
        self._saveables = _checked(saveable_objects)

    def save(self, file_prefix: Any) -> Any:
        """An operation that writes a checkpoint of this name."""
        specs = [spec for saveable in self._saveables for spec in saveable.specs]
        with device("cpu:0"):
            return gen_ops.save_v2(file_prefix, [s.name for s in specs], [s.slice_spec for s in specs], [array_ops.identity(s.tensor) for s in specs])

    def restore(self, file_prefix: Any) -> Dict[str, Any]:
        """Operations that set the objects from a checkpoint of this name, by the objects' names."""
        made = {}
        for saveable in self._saveables:
            specs = saveable.specs
            with device("cpu:0"):
                values = gen_ops.restore_v2(file_prefix, [s.name for s in specs], [s.slice_spec for s in specs], [s.dtype.base_dtype for s in specs])
            made[saveable.name] = saveable.restore(list(values), None)
        return made


def _task_of(saveable: SaveableObject) -> str:
    """The processor of the task that an object's tensors are on."""
    spec = devices.DeviceSpec.from_string(saveable.device or "")
    return devices.DeviceSpec(spec.job, spec.replica, spec.task, "CPU", spec.device_index if spec.device_type == "CPU" else 0).to_string()


class MultiDeviceSaver:
    """Writes and reads SaveableObjects on several devices: a file for each of them, which become one checkpoint."""

    def __init__(self, saveable_objects: Any) -> None:
        by_device: Dict[str, List[SaveableObject]] = {}
        for saveable in _checked(saveable_objects):
            by_device.setdefault(_task_of(saveable), []).append(saveable)
        self._savers = {where: _SingleDeviceSaver(found) for where, found in sorted(by_device.items())}

    def save(self, file_prefix: Any) -> Any:
        """A tensor: the name of the checkpoint, which has been written when it is known."""
        file_prefix = convert_to_tensor(file_prefix, name="file_prefix")
        with device("cpu:0"):
            apart = file_prefix + constant(_SUFFIX)
        names, written = [], []
        for i, (where, saver) in enumerate(self._savers.items()):
            with device(where):
                names.append(gen_ops.sharded_filename(apart, i, len(self._savers)))
                written.append(saver.save(names[-1]))
        with control_dependencies(written), device("cpu:0"):
            merged = gen_ops.merge_v2_checkpoints(array_ops.stack(names), file_prefix, delete_old_dirs=True)
            with control_dependencies([merged]):
                return array_ops.identity(file_prefix)

    def restore(self, file_prefix: Any) -> Dict[str, Any]:
        """Operations that set the objects from a checkpoint of this name, by the objects' names."""
        made: Dict[str, Any] = {}
        for where, saver in self._savers.items():
            with device(where):
                made.update(saver.restore(file_prefix))
        return made

    def to_proto(self) -> Any:
        """A SaverDef whose operations this adds to the graph."""
        name = array_ops.placeholder("string", [], name="saver_filename")
        saved = self.save(name)
        restored = control_flow_ops.group(*self.restore(name).values())
        return definitions.SaverDef(filename_tensor_name=name.name, save_tensor_name=saved.name, restore_op_name=restored.name, version=definitions.SaverDef.V2)
