# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.summary: records of scalars, histograms and images for TensorBoard, and the writer of event files."""

from __future__ import annotations

import os
import time
import warnings
import weakref
from typing import Any, Dict, List, Optional, Set

import millrace._core as _core
from millrace import gfile as _gfile, names as _names, summary_plugins as _plugins
from millrace.framework import dtypes as _dtypes, not_provided as _not_provided
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line as _at_user_line
from millrace.framework.graph import Graph, GraphKeys, Tensor, add_to_collections, get_collection, get_default_graph, name_scope
from millrace.ops import gen_ops
from millrace.protos import definitions as _definitions
from millrace.protos.definitions import Event, RunMetadata, SessionLog, Summary  # type: ignore[attr-defined]  # noqa: F401

_INVALID = "".join(chr(c) for c in range(128) if not (chr(c).isalnum() or chr(c) in "-_./"))


def _clean(name: str) -> str:
    name = "".join("_" if c in _INVALID else c for c in name).lstrip("/")
    return name


def _tag(name: str, family: Optional[str]) -> Any:
    family = _clean(family) if family else None
    base = _clean(name)
    if family:
        base = family + "/" + base
    return base, family


def _collect(value: Any, collections: Any) -> Any:
    add_to_collections([GraphKeys.SUMMARIES] if collections is None else list(collections), value)
    return value


def scalar(name: str, tensor: Any, collections: Any = None, family: Optional[str] = None) -> Tensor:
    """A record of a number."""
    base, family = _tag(name, family)
    with name_scope(base) as scope:
        tag = (family + "/" if family else "") + scope.rstrip("/")
        return _collect(gen_ops.scalar_summary(tag, tensor, name=scope), collections)


def histogram(name: str, values: Any, collections: Any = None, family: Optional[str] = None) -> Tensor:
    """A record of how values are distributed."""
    base, family = _tag(name, family)
    with name_scope(base) as scope:
        tag = (family + "/" if family else "") + scope.rstrip("/")
        return _collect(gen_ops.histogram_summary(tag, values, name=scope), collections)


def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: Optional[str] = None, max_images: Optional[int] = None) -> Tensor:
    """A record of images."""
    base, family = _tag(name, family)
    with name_scope(base) as scope:
        tag = (family + "/" if family else "") + scope.rstrip("/")
        return _collect(gen_ops.image_summary(tag, tensor, max_images=max_images or max_outputs, name=scope), collections)


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None, family: Optional[str] = None) -> Tensor:
    """A record of sounds."""
    base, family = _tag(name, family)
    with name_scope(base) as scope:
        tag = (family + "/" if family else "") + scope.rstrip("/")
        return _collect(gen_ops.audio_summary_v2(tag, tensor, convert_to_tensor(sample_rate, "float32"), max_outputs=max_outputs, name=scope), collections)


def text(name: str, tensor: Any, collections: Any = None) -> Tensor:
    """A record of text. ValueError unless the tensor is of strings."""
    tensor = convert_to_tensor(tensor)
    if tensor.dtype.base_dtype != _dtypes.string:
        raise _at_user_line(ValueError("Expected tensor %s to have dtype string, got %s" % (tensor.name, tensor.dtype)))
    metadata = _definitions.SummaryMetadata(plugin_data=_definitions.SummaryMetadata.PluginData(plugin_name="text"))
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: Any = None,
    collections: Any = None,
    summary_metadata: Any = None,
    family: Optional[str] = None,
    display_name: Any = None,
) -> Tensor:
    """A record of any tensor, with a name and a description to be shown beside it."""
    metadata = _definitions.SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = summary_description
    base, family = _tag(_clean(name), family)
    with name_scope(base) as scope:
        tag = (family + "/" if family else "") + scope.rstrip("/")
        return _collect(gen_ops.tensor_summary_v2(tag, tensor, metadata.SerializeToString(), name=scope), collections)


def merge(inputs: Any, collections: Any = None, name: Optional[str] = None) -> Tensor:
    """All records in one."""
    with name_scope(name, "Merge", inputs):
        merged = gen_ops.merge_summary([convert_to_tensor(i) for i in inputs], name=name)
        if collections:
            _collect(merged, collections)
        return merged


def merge_all(key: Any = GraphKeys.SUMMARIES, scope: Optional[str] = None, name: Optional[str] = None) -> Optional[Tensor]:
    """All records of the graph in one, or None when there are none."""
    found = get_collection(key, scope)
    return merge(found, name=name) if found else None


def get_summary_description(node_def: Any) -> Any:
    """Kept for programs that import it."""
    raise NotImplementedError("tf.summary.get_summary_description is not provided.")


_PLUGINS_DIR = "plugins"
_METADATA_FIELD = b"\x4a"  # how field 9 of a Summary.Value begins


_of_sessions: "weakref.WeakKeyDictionary[Any, Dict[Any, Any]]" = weakref.WeakKeyDictionary()  # by folder and suffix: the file, [how many write into it]


class FileWriter:
    """Writes an event file for TensorBoard. Those of one folder and one `session` write into the same file, which the one that was closed last closes."""

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: Optional[str] = None,
        session: Any = None,
    ) -> None:
        del max_queue  # records go to the file at once
        self._logdir = os.fspath(logdir).decode() if isinstance(os.fspath(logdir), bytes) else os.fspath(logdir)
        self._suffix = filename_suffix or ""
        self._flush_secs, self._last_flush = flush_secs, time.time()
        self._session = session
        self._open()
        self._tags_with_metadata: Set[str] = set()
        self._tags_of_runs: Set[str] = set()
        if graph is not None or graph_def is not None:
            from millrace.train import meta_graph

            self.add_graph(graph, graph_def=graph_def)
            of_graph = graph.as_graph_def(add_shapes=True) if isinstance(graph, Graph) else graph
            self.add_meta_graph(meta_graph.create_meta_graph_def(graph_def=graph_def or of_graph))

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def _open(self) -> None:
        files = {} if self._session is None else _of_sessions.setdefault(self._session, {})
        file, users = files.get((self._logdir, self._suffix), (None, [0]))
        if file is None:
            file, users = files.setdefault((self._logdir, self._suffix), (_core.EventWriter(self._logdir, self._suffix), users))
        self._writer: Any = file
        self._users: List[int] = users
        users[0] += 1

    def _is_closed(self) -> bool:
        if self._writer is None:
            warnings.warn("Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is explicitly reopened.", stacklevel=3)
        return self._writer is None

    def _due(self) -> None:
        if time.time() - self._last_flush > self._flush_secs:
            self.flush()

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Writes a record: what a summary op gave, or a Summary message."""
        if self._is_closed():
            return
        if hasattr(summary, "SerializeToString"):
            summary = summary.SerializeToString()
        self._writer.add_summary(self._metadata_once(bytes(summary)), 0 if global_step is None else int(global_step))
        self._due()

    def _metadata_once(self, data: bytes) -> bytes:
        """A Summary whose values have metadata only where this writer has not written any for their tags."""
        if _METADATA_FIELD not in data:
            return data
        message = Summary.FromString(data)
        again = [value for value in message.value if value.HasField("metadata") and value.tag in self._tags_with_metadata]
        self._tags_with_metadata.update(value.tag for value in message.value if value.HasField("metadata"))
        for value in again:
            value.ClearField("metadata")
        return bytes(message.SerializeToString()) if again else data

    def add_event(self, event: Any) -> None:
        """Writes an Event message."""
        if self._is_closed():
            return
        self._writer.add_event(event.SerializeToString())
        self._due()

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Writes a graph, or a GraphDef."""
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        given = graph if graph is not None else graph_def
        if isinstance(given, Graph):
            self._write_plugin_assets(given)
            given = given.as_graph_def(add_shapes=True)
        if hasattr(given, "SerializeToString"):
            self.add_event(Event(graph_def=given.SerializeToString(), step=int(global_step or 0), wall_time=time.time()))
        else:
            raise TypeError("The passed graph must be an instance of `Graph` or the deprecated `GraphDef`")

    def _write_plugin_assets(self, graph: Graph) -> None:
        for asset in _plugins.get_all_plugin_assets(graph):
            folder = os.path.join(self._logdir, _PLUGINS_DIR, asset.plugin_name)
            for name, contents in asset.assets().items():
                _gfile.MakeDirs(folder)
                with _gfile.GFile(os.path.join(folder, name), "w") as file:
                    file.write(contents)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Writes a MetaGraphDef."""
        self.add_event(Event(meta_graph_def=meta_graph_def.SerializeToString(), step=int(global_step or 0), wall_time=time.time()))

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Writes a SessionLog."""
        event = Event(step=int(global_step or 0), wall_time=time.time())
        event.session_log.CopyFrom(session_log)
        self.add_event(event)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Writes the RunMetadata of a step. ValueError where one was written with the same tag."""
        if tag in self._tags_of_runs:
            raise ValueError("The provided tag was already used for this event type")
        self._tags_of_runs.add(tag)
        event = Event(step=int(global_step or 0), wall_time=time.time())
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = run_metadata.SerializeToString()
        self.add_event(event)

    def flush(self) -> None:
        """Writes what is still in memory."""
        self._last_flush = time.time()
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Writes what is still in memory, and closes the file."""
        if self._writer is not None:
            self._users[0] -= 1
            if self._users[0]:
                self._writer.flush()
            else:
                self._writer.close()
                if self._session is not None:
                    _of_sessions[self._session].pop((self._logdir, self._suffix), None)
            self._writer = None

    def reopen(self) -> None:
        """Goes on in a new file after close()."""
        if self._writer is None:
            self._open()

    def __enter__(self) -> "FileWriter":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()


class _EventFileWriter(FileWriter):
    """A FileWriter as the module of event files has it: it takes no graph."""

    def __init__(self, logdir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: Optional[str] = None) -> None:
        super().__init__(logdir, None, max_queue, flush_secs, None, filename_suffix)


class FileWriterCache:
    """One writer for each folder."""

    _cache: Dict[str, FileWriter] = {}

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The writer of a folder."""
        if logdir not in FileWriterCache._cache:
            FileWriterCache._cache[logdir] = FileWriter(logdir, graph=get_default_graph())
        return FileWriterCache._cache[logdir]

    @staticmethod
    def clear() -> None:
        """Closes all writers."""
        for writer in FileWriterCache._cache.values():
            writer.close()
        FileWriterCache._cache = {}


# The names of 0.x. Their tags are taken as they are.


def scalar_summary(tags: Any, values: Any, collections: Any = None, name: Optional[str] = None) -> Tensor:
    """scalar, as it was called in 0.x."""
    return _collect(gen_ops.scalar_summary(tags, values, name=name or "ScalarSummary"), collections)


def histogram_summary(tag: Any, values: Any, collections: Any = None, name: Optional[str] = None) -> Tensor:
    """histogram, as it was called in 0.x."""
    return _collect(gen_ops.histogram_summary(tag, values, name=name or "HistogramSummary"), collections)


def image_summary(tag: Any, tensor: Any, max_images: int = 3, collections: Any = None, name: Optional[str] = None) -> Tensor:
    """image, as it was called in 0.x."""
    return _collect(gen_ops.image_summary(tag, tensor, max_images=max_images, name=name or "ImageSummary"), collections)


def summary_iterator(path: str) -> Any:
    """The Event messages of an event file."""
    from millrace.python_io import tf_record_iterator

    for record in tf_record_iterator(path):
        yield Event.FromString(record)


def _later(name: str) -> Any:
    if name in ("all_v2_summary_ops", "initialize"):
        return getattr(_names.find("contrib.summary"), name.replace("all_v2", "all"))
    if name in ("SummaryDescription", "TaggedRunMetadata"):
        return getattr(_definitions, name)
    raise AttributeError("module 'millrace.summary' has no attribute %r" % name)


__getattr__ = _not_provided.getter("summary", _later)
