# SPDX-License-Identifier: Apache-2.0
"""What a path holds: files are known by what is in them, their names only help where that does not decide."""

from __future__ import annotations

import difflib
import glob
import math
import os
import re
import struct
import zipfile
from typing import Any, Iterable, List, NamedTuple, Tuple

import numpy as np

import millrace._core as _core
from millrace.framework import dtypes, errors
from millrace.protos import definitions, text_format
from millrace.protos.message import DecodeError
from millrace.python_io import masked_crc
from millrace.saved_model import reading
from millrace.train import safetensors
from millrace.train.checkpoint_management import latest_checkpoint

# What messages call a kind of file.
_CALLED = {
    "graph": "a graph",
    "meta_graph": "a graph with its signatures",
    "saved_model": "a SavedModel",
    "checkpoint": "a checkpoint",
    "safetensors": "a safetensors file",
    "events": "an event file",
    "records": "a record file",
    "array": "an array file",
}
_TABLE_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)  # at the end of a checkpoint's table, as in LevelDB's tables


class Source(NamedTuple):
    """A path, and what it holds."""

    kind: str  # graph, meta_graph, saved_model, checkpoint, safetensors, events, records, array
    path: str

    @property
    def told(self) -> str:
        """Both, for a message."""
        return "%s is %s" % (self.path, _CALLED[self.kind])


def open_source(path: str) -> Source:
    """Finds out what is there. A folder is a SavedModel, or stands for its newest checkpoint; a checkpoint is named by its prefix or by one of its files."""
    if os.path.isdir(path):
        return _of_folder(path)
    prefix = re.sub(r"\.(index|data-\d{5}-of-\d{5})$", "", path)
    if os.path.exists(prefix + ".index"):
        return Source("checkpoint", prefix)
    if glob.glob(path + "-?????-of-?????"):
        return Source("checkpoint", path)
    try:
        os.stat(path)
    except FileNotFoundError:
        raise FileNotFoundError(2, "no such file, folder or checkpoint", path) from None
    return Source(_kind_of_file(path), path)


def _of_folder(path: str) -> Source:
    if reading.maybe_saved_model_directory(path):
        return Source("saved_model", path)
    newest = latest_checkpoint(path)
    if newest:
        return Source("checkpoint", newest)
    events = sorted(glob.glob(os.path.join(path, "*.tfevents.*")))
    if events:
        return Source("events", events[-1])
    raise ValueError("%s holds no SavedModel (saved_model.pb), no checkpoint (a file 'checkpoint' that names one) and no event file" % path)


def _kind_of_file(path: str) -> str:
    length = os.path.getsize(path)
    if length == 0 and os.path.isfile(path):
        raise ValueError("%s is empty" % path)
    with open(path, "rb") as file:
        head = file.read(64)
        file.seek(max(0, length - 8))
        tail = file.read(8)
    if head[:6] == b"\x93NUMPY" or (head[:4] == b"PK\x03\x04" and path.endswith(".npz")):
        return "array"
    if tail == _TABLE_MAGIC:
        return "checkpoint"
    if path.endswith(".safetensors"):
        return "safetensors"
    if _begins_as_records(head):
        return "events" if b"brain.Event:" in head else "records"
    if length > 1 << 31:
        raise ValueError("%s is no checkpoint, record file or array, and larger than any graph (2 GiB)" % path)
    with open(path, "rb") as file:
        return _message_of(path, file.read())[0]


def _begins_as_records(head: bytes) -> bool:
    return len(head) >= 12 and struct.unpack("<I", head[8:12])[0] == masked_crc(head[:8])


def _message_of(path: str, data: bytes) -> Tuple[str, Any]:
    forms = (("graph", definitions.GraphDef), ("meta_graph", definitions.MetaGraphDef), ("saved_model", definitions.SavedModel))
    reasons = []
    for kind, message in forms:
        try:
            made = message.FromString(data)
        except DecodeError as error:
            reasons.append("%s: %s" % (kind, error))
            continue
        if _is_whole(kind, made):
            return kind, made
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError(
            "%s is none of: graph, meta graph, SavedModel, checkpoint, event file, record file, safetensors, array; or it is damaged%s"
            % (path, " (%s)" % reasons[0] if reasons else "")
        ) from None
    reasons = []
    for kind, message in forms:
        try:
            made = text_format.Parse(text, message())
        except (text_format.ParseError, ValueError) as error:
            reasons.append(str(error))
            continue
        if _is_whole(kind, made):
            return kind, made
    raise ValueError("%s is a text, but no graph: %s" % (path, reasons[0] if reasons else "it has no node"))


def _is_whole(kind: str, message: Any) -> bool:
    if kind == "graph":
        return len(message.node) > 0 and all(n.name and n.op for n in message.node)
    if kind == "meta_graph":
        return _is_whole("graph", message.graph_def)
    return any(_is_whole("meta_graph", m) for m in message.meta_graphs)


def meta_graph_of(source: Source, tags: str = "") -> Any:
    """The MetaGraphDef of a model; of a SavedModel the one with these tags ("serve,gpu"), which need not be said when there is one."""
    if source.kind == "saved_model":
        saved = (reading.parse_saved_model(source.path) if os.path.isdir(source.path) else _read(source.path)).meta_graphs
        by_tags = {",".join(sorted(m.meta_info_def.tags)): m for m in saved}
        wanted = ",".join(sorted(tags.split(","))) if tags else "serve" if "serve" in by_tags else next(iter(by_tags), "")
        if wanted not in by_tags or (not tags and wanted != "serve" and len(by_tags) > 1):
            asked = "no graph with the tags %s; it has graphs" % tags if tags else "graphs"
            raise ValueError("%s has %s with the tags %s: say which with --tags" % (source.path, asked, "; ".join(sorted(by_tags)) or "(none)"))
        return by_tags[wanted]
    if tags:
        raise ValueError("%s, which has no tags; --tags is for SavedModels" % source.told)
    if source.kind == "meta_graph":
        return _read(source.path)
    if source.kind == "graph":
        return definitions.MetaGraphDef(graph_def=_read(source.path))
    raise ValueError("%s; a graph or a SavedModel is wanted" % source.told)


def graph_of(source: Source, tags: str = "") -> Any:
    """The GraphDef of a graph or model."""
    return meta_graph_of(source, tags).graph_def


def _read(path: str) -> Any:
    with open(path, "rb") as file:
        return _message_of(path, file.read())[1]


def load_arrays(path: str) -> Any:
    """The arrays of a .npz file by name, or that of a .npy file as "array"."""
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError("%s is no .npy or .npz file of numbers or strings, or it is damaged" % path) from None
    return {"array": loaded} if isinstance(loaded, np.ndarray) else loaded


def nearest(name: str, names: Iterable[str]) -> str:
    """What a message says of names that may have been meant."""
    known = sorted(names)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if not near and len(known) > 10:
        return "it has %d others, which `millrace inspect --all` lists" % len(known)
    return "did you mean %s?" % ", ".join(near) if near else "it has %s" % (", ".join(known) or "none")


class Values:
    """The named arrays of a checkpoint, safetensors file or array file, read one by one."""

    def __init__(self, source: Source) -> None:
        self.source = source
        if source.kind == "checkpoint":
            try:
                reader = _core.CheckpointReader(source.path)
            except errors.OpError as error:
                raise ValueError("the checkpoint %s cannot be read: %s" % (source.path, error.message)) from None
            self._read, self._describe = reader.read, reader.describe
            self.names: List[str] = sorted(reader.names())
        elif source.kind == "safetensors":
            file = safetensors.SafetensorsFile(source.path)
            self._read, self._describe, self.names = file.read, file.describe, sorted(file.names())
        elif source.kind == "array":
            arrays = load_arrays(source.path)
            self._read, self.names = arrays.__getitem__, sorted(arrays)
            self._describe = lambda name: (self[name].dtype, list(self[name].shape))
        else:
            raise ValueError("%s; a checkpoint, safetensors file or array is wanted" % source.told)

    def __getitem__(self, name: str) -> Any:
        value = self._read(name)
        return np.asarray(value, dtype=object) if isinstance(value, (bytes, str)) else np.asarray(value)

    def describe(self, name: str) -> Tuple[dtypes.DType, List[int]]:
        """The type and the shape of an array, which is not read where the file says them elsewhere."""
        kind, dims = self._describe(name)
        return dtypes.string if getattr(kind, "kind", None) in ("O", "S", "U") else dtypes.as_dtype(kind), dims

    def num_bytes(self, name: str) -> int:
        """Of an array; of strings what they hold."""
        kind, dims = self.describe(name)
        return sum(map(len, self[name].reshape(-1).tolist())) if kind == dtypes.string else kind.size * math.prod(dims)
