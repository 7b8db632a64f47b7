# SPDX-License-Identifier: Apache-2.0
"""The operations of a saver: those that save objects to a checkpoint, and those that restore them."""

from __future__ import annotations

import uuid
from typing import Any, Dict, List, Optional, Tuple

from millrace.framework.convert import convert_to_tensor
from millrace.framework.device import DeviceSpec, canonical_name
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Operation, Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.ops.variables import PartitionedVariable
from millrace.protos import definitions
from millrace.train import saveable as saveable_objects
from millrace.train.saveable import SaveableObject, SaveSpec, saveables_of

V1, V2 = 1, 2  # SaverDef.CheckpointFormatVersion
_PerDevice = List[Tuple[str, List[SaveableObject]]]


def _host(device: Optional[str]) -> str:
    """The processor beside a device: files are read and written by hosts."""
    spec = DeviceSpec.from_string(device or "")
    spec.device_type, spec.device_index = "CPU", 0
    return spec.to_string()


_Saveable = SaveableObject


class BaseSaverBuilder:
    """Builds the operations of a saver. A subclass may state save_op and restore_op in other ways."""

    SaveSpec = SaveSpec
    SaveableObject = SaveableObject  # a name of TensorFlow's; types below say _Saveable
    VariableSaveable = saveable_objects.VariableSaveable
    ResourceVariableSaveable = saveable_objects.ResourceVariableSaveable

    def __init__(self, write_version: int = V2) -> None:
        if write_version not in (V1, V2):
            raise at_user_line(RuntimeError("Unexpected write_version: %s" % (write_version,)))
        self._write_version = write_version

    def save_op(self, filename_tensor: Any, saveables: List[_Saveable]) -> Operation:
        """An operation that writes the tensors of objects to a file."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        write = gen_ops.save_slices if self._write_version == V1 else gen_ops.save_v2
        return write(filename_tensor, [s.name for s in specs], [s.slice_spec for s in specs], [s.tensor for s in specs])

    def restore_op(self, filename_tensor: Any, saveable: _Saveable, preferred_shard: int) -> List[Tensor]:
        """The tensors of an object, read from a file. `preferred_shard` is for subclasses: the formats here find a shard by its index."""
        del preferred_shard
        return [gen_ops.restore_v2(filename_tensor, [s.name], [s.slice_spec], [s.dtype.base_dtype])[0] for s in saveable.specs]

    def bulk_restore(self, filename_tensor: Any, saveables: List[_Saveable], preferred_shard: int, restore_sequentially: bool) -> List[Tensor]:
        """The tensors of all objects, read from a file one object at a time, or in order when `restore_sequentially`."""
        found: List[Tensor] = []
        for saveable in saveables:
            with get_default_graph().device(_host(saveable.device) if saveable.device else None):
                with get_default_graph().control_dependencies([found[-1]] if restore_sequentially and found else []):
                    found.extend(self.restore_op(filename_tensor, saveable, preferred_shard))
        return found

    def sharded_filename(self, filename_tensor: Any, shard: int, num_shards: Any) -> Tensor:
        """The name of a shard's file."""
        return gen_ops.sharded_filename(filename_tensor, shard, num_shards)

    # ---- saving ----

    def _save_all(self, filename: Any, saveables: List[_Saveable]) -> Tensor:
        save = self.save_op(filename, saveables)
        with get_default_graph().colocate_with(filename.op):
            return control_flow_ops.with_dependencies([save], filename)

    def _save_shards(self, filename: Any, per_device: _PerDevice) -> Tensor:
        """Each device's objects go to a file; in the second format these become one checkpoint at the end."""
        base = filename if self._write_version == V1 else gen_ops.string_join([filename, "_temp_%s/part" % uuid.uuid4().hex])
        count = convert_to_tensor(len(per_device), name="num_shards")
        written = []
        for shard, (device, saveables) in enumerate(per_device):
            with get_default_graph().device(device if self._write_version == V1 else _host(device)):
                written.append(self._save_all(self.sharded_filename(base, shard, count), saveables))
        with get_default_graph().control_dependencies([w.op for w in written]):
            if self._write_version == V1:
                return gen_ops.sharded_filespec(filename, count)
            with get_default_graph().device(_host(per_device[-1][0])):
                merge = gen_ops.merge_v2_checkpoints(array_ops.stack([w.op.inputs[0] for w in written]), filename, delete_old_dirs=True)
                with get_default_graph().control_dependencies([merge]):
                    return array_ops.identity(filename)

    # ---- restoring ----

    def _restore_all(
        self, filename: Any, saveables: List[_Saveable], sequentially: bool, reshape: bool, shard: int = -1, name: str = "restore_all"
    ) -> Operation:
        tensors = self.bulk_restore(filename, saveables, shard, sequentially)
        assigned: List[Any] = []
        for saveable in saveables:
            shapes: Optional[List[Any]] = None
            if reshape:
                shapes = [s.tensor.get_shape() if s.tensor.get_shape().is_fully_defined() else array_ops.shape(s.tensor) for s in saveable.specs]
            count = len(saveable.specs)
            with get_default_graph().control_dependencies(assigned[-1:] if sequentially else []):
                assigned.append(saveable.restore(tensors[:count], shapes))
            tensors = tensors[count:]
        return control_flow_ops.group(*assigned, name=name)

    def _restore_shards(self, filename: Any, per_device: _PerDevice, sequentially: bool, reshape: bool) -> Operation:
        shards = []
        for shard, (device, saveables) in enumerate(per_device):
            with get_default_graph().device(device):
                shards.append(self._restore_all(filename, saveables, sequentially, reshape, shard, "restore_shard"))
        return control_flow_ops.group(*shards, name="restore_all")

    def _by_device(self, saveables: List[_Saveable]) -> _PerDevice:
        found: Dict[str, List[_Saveable]] = {}
        for saveable in saveables:
            devices = {canonical_name(spec.device) for spec in saveable.specs}
            if len(devices) != 1:
                raise at_user_line(ValueError("All tensors of a saveable object must be on the same device: %s" % saveable.name))
            found.setdefault(devices.pop(), []).append(saveable)
        return sorted(found.items())

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: Optional[int] = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: Optional[str] = None,
        restore_sequentially: bool = False,
        filename: Any = "model",
    ) -> Any:
        """Adds the operations to the graph; the SaverDef that names them."""
        saveables = saveables_of(names_to_saveables)
        with name_scope(name, "save", [saveable.op for saveable in saveables]):
            path = array_ops.placeholder_with_default(filename or "model", shape=(), name="filename")
            path = array_ops.placeholder_with_default(path, shape=(), name="Const")
            if sharded:
                per_device = self._by_device(saveables)
                save, restore = self._save_shards(path, per_device), self._restore_shards(path, per_device, restore_sequentially, reshape)
            else:
                save, restore = self._save_all(path, saveables), self._restore_all(path, saveables, restore_sequentially, reshape)
        _make_wholes(get_default_graph())
        return definitions.SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=save.name,
            restore_op_name=restore.name,
            max_to_keep=max_to_keep or 0,
            sharded=sharded,
            version=self._write_version,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
        )


class BulkSaverBuilder(BaseSaverBuilder):
    """A builder whose restoring operations read all objects at once, unless they are to be read in order."""

    def bulk_restore(self, filename_tensor: Any, saveables: List[_Saveable], preferred_shard: int, restore_sequentially: bool) -> List[Tensor]:
        if restore_sequentially:
            return super().bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially)
        specs = [spec for saveable in saveables for spec in saveable.specs]
        with get_default_graph().device("/device:CPU:0"):
            return gen_ops.restore_v2(filename_tensor, [s.name for s in specs], [s.slice_spec for s in specs], [s.dtype.base_dtype for s in specs])


def _make_wholes(graph: Graph) -> None:
    """A PartitionedVariable in a collection is looked up by its name when the graph is read back: there is a tensor of that name."""
    for key in graph.get_all_collection_keys():
        for element in graph.get_collection(key):
            if isinstance(element, PartitionedVariable) and graph._find(element.name) is None:
                element.as_tensor()
