# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: saving and restoring variables, and graphs with their collections."""
from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

import millrace._core as _core
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, add_to_collection, get_collection, get_default_graph
from millrace.ops.variables import PartitionedVariable, Variable, global_variables
from millrace.protos import definitions
from millrace.train import meta_graph


class Saver:
    """Saves variables and restores them. `var_list`: variables, or a dict of them by the names to save them under."""

    def __init__(self, var_list: Any = None, reshape: bool = False, sharded: bool = False, max_to_keep: Optional[int] = 5,
                 keep_checkpoint_every_n_hours: float = 10000.0, name: Optional[str] = None, restore_sequentially: bool = False,
                 saver_def: Any = None, builder: Any = None, defer_build: bool = False, allow_empty: bool = False,
                 write_version: Any = None, pad_step_number: bool = False, save_relative_paths: bool = False, filename: Any = None) -> None:
        self._var_list, self._name, self._saver_def = var_list, name, saver_def
        self._max_to_keep = 0 if max_to_keep is None else int(max_to_keep)
        self._every = keep_checkpoint_every_n_hours
        self._allow_empty, self._pad_step_number = allow_empty, pad_step_number
        self._graph = get_default_graph()
        self._core: Any = None
        self._empty = False
        self._last: List[Tuple[str, float]] = []
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Adds its ops to the graph."""
        if self._core is not None or self._empty:
            return
        if self._saver_def is not None:
            self._core = _core.Saver(self._graph, self._saver_def.SerializeToString(), self._max_to_keep)
            return
        names, tensors = self._named()
        if not names:
            if not self._allow_empty:
                raise at_user_line(ValueError("No variables to save"))
            self._empty = True
            return
        self._core = _core.Saver(self._graph, tensors, names, self._max_to_keep)
        self._core.keep_every(float(self._every))
        self._graph._sync()

    def _named(self) -> Tuple[List[str], List[Any]]:
        if self._var_list is None:
            self._var_list = global_variables() + self._graph.get_collection(GraphKeys.SAVEABLE_OBJECTS)
        given = self._var_list
        pairs: Dict[str, Any] = {}
        if isinstance(given, dict):
            items = list(given.items())
        else:
            items = [(None, v) for v in given]
        for name, value in items:
            for part in value if isinstance(value, (list, tuple, PartitionedVariable)) else [value]:
                v: Any = getattr(part, "table_ref", part)  # a table that changes is saved by its handle
                if not hasattr(v, "op"):
                    raise at_user_line(TypeError("Variable to save is not a Variable: %r" % (v,)))
                key = name or v.op.name
                if key in pairs:
                    if pairs[key] is v:
                        continue
                    raise at_user_line(ValueError("At least two variables have the same name: %s" % key))
                pairs[key] = v
        keys = sorted(pairs)
        return keys, [pairs[k]._ref() if isinstance(pairs[k], Variable) else pairs[k] for k in keys]

    def save(self, sess: Any, save_path: str, global_step: Any = None, latest_filename: Optional[str] = None, meta_graph_suffix: str = "meta",
             write_meta_graph: bool = True, write_state: bool = True, strip_default_attrs: bool = False) -> str:
        """Writes a checkpoint; its path. With a global_step that is part of the name."""
        if self._core is None and not self._empty:
            raise at_user_line(RuntimeError("Use save() only after the saver was built"))
        if self._empty:
            return str(save_path)
        step = -1
        if global_step is not None:
            step = int(global_step) if isinstance(global_step, (int,)) or not hasattr(global_step, "graph") else int(sess.run(global_step))
        path = os.fspath(save_path)
        if self._pad_step_number and step >= 0:
            path, step = "%s-%08d" % (path, step), -1
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder) and (os.path.exists(folder) or not os.path.isdir(os.path.dirname(folder) or ".")):
            raise at_user_line(ValueError("Parent directory of %s doesn't exist, can't save." % path))
        written: str = self._core.save(getattr(sess, "_sess", None) or _raw(sess), path, step, False).decode()
        if write_meta_graph:
            meta_graph.export("%s.%s" % (written, meta_graph_suffix), getattr(sess, "graph", self._graph), self.as_saver_def(), None, False)
        self._note(written)
        if latest_filename not in (None, "checkpoint") and write_state:
            update_checkpoint_state(folder, written, [p for p, _ in self._last], latest_filename)
        return written

    def _note(self, path: str) -> None:
        self._last = [(p, t) for p, t in self._last if p != path] + [(path, time.time())]
        if self._max_to_keep:
            for old, _ in self._last[:-max(2, self._max_to_keep)]:
                if os.path.exists(old + ".meta") and not checkpoint_exists(old):
                    os.remove(old + ".meta")
            self._last = self._last[-max(2, self._max_to_keep):]

    def restore(self, sess: Any, save_path: Optional[str]) -> None:
        """Gives the variables the values of a checkpoint."""
        if self._empty:
            return
        if save_path is None:
            raise at_user_line(ValueError("Can't load save_path when it is None."))
        self._core.restore(getattr(sess, "_sess", None) or _raw(sess), os.fspath(save_path))

    @property
    def last_checkpoints(self) -> List[str]:
        """The checkpoints written and kept, oldest first."""
        return [p for p, _ in self._last]

    def set_last_checkpoints(self, last_checkpoints: List[str]) -> None:
        """Sets the checkpoints that count as written."""
        self.set_last_checkpoints_with_time([(p, time.time()) for p in last_checkpoints])

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Any) -> None:
        """Sets the checkpoints that count as written, with their times."""
        self._last = [(os.fspath(p), float(t)) for p, t in last_checkpoints_with_time]
        if self._core is not None:
            self._core.set_checkpoints([p for p, _ in self._last], [t for _, t in self._last])

    def recover_last_checkpoints(self, checkpoint_paths: List[str]) -> None:
        """Counts checkpoints that are there as written, when their files were."""
        self.set_last_checkpoints_with_time([(p, _written(p)) for p in checkpoint_paths if checkpoint_exists(p)])

    @property
    def saver_def(self) -> Any:
        """Its SaverDef."""
        return self.as_saver_def()

    def as_saver_def(self) -> Any:
        """Its SaverDef."""
        return definitions.SaverDef() if self._core is None else definitions.SaverDef.FromString(self._core.to_def())

    def to_proto(self, export_scope: Any = None) -> Any:
        """Its SaverDef."""
        return self.as_saver_def()

    @staticmethod
    def from_proto(saver_def: Any, import_scope: Any = None) -> "Saver":
        """The saver of a SaverDef."""
        return Saver(saver_def=saver_def)

    def export_meta_graph(self, filename: Optional[str] = None, collection_list: Any = None, as_text: bool = False, **unused: Any) -> Any:
        """Writes the graph with its collections and this saver; the MetaGraphDef."""
        return meta_graph.export(filename, self._graph, self.as_saver_def(), collection_list, as_text)


def _get_saver_or_default() -> Any:
    """The saver in the graph's collection, or a new one that the collection then has."""
    found = get_collection(GraphKeys.SAVERS)
    if len(found) > 1:
        raise RuntimeError("More than one item in collection %s. Please indicate which one to use by passing it to the constructor." % GraphKeys.SAVERS)
    if found:
        return found[0]
    saver = Saver(sharded=True, allow_empty=True)
    add_to_collection(GraphKeys.SAVERS, saver)
    return saver


def _written(prefix: str) -> float:
    for name in (prefix + ".index", prefix):
        if os.path.exists(name):
            return os.path.getmtime(name)
    return time.time()


def _raw(session: Any) -> Any:
    """The session behind wrappers."""
    while not isinstance(session, _core.Session):
        inner = getattr(session, "_tf_sess", None) or getattr(session, "raw_session", None)
        if inner is None:
            raise at_user_line(TypeError("'sess' must be a Session; %r" % (session,)))
        session = inner()
    return session


def import_meta_graph(meta_graph_or_file: Any, clear_devices: bool = False, import_scope: Optional[str] = None, **kwargs: Any) -> Optional[Saver]:
    """Adds a graph that export_meta_graph wrote, with its collections; its saver, or None."""
    definition = meta_graph.load(meta_graph_or_file, clear_devices, import_scope)
    if definition.HasField("saver_def") and definition.saver_def.restore_op_name:
        saver_def = definition.saver_def
        if import_scope:
            for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                setattr(saver_def, field, import_scope + "/" + getattr(saver_def, field))
        return Saver(saver_def=saver_def)
    return Saver() if global_variables(scope=import_scope) else None


def export_meta_graph(filename: Optional[str] = None, meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None,
                      collection_list: Any = None, as_text: bool = False, graph: Optional[Graph] = None, **unused: Any) -> Any:
    """Writes a graph with its collections; the MetaGraphDef."""
    return meta_graph.export(filename, graph or get_default_graph(), saver_def, collection_list, as_text)


# ---- checkpoints in a folder ----

def latest_checkpoint(checkpoint_dir: str, latest_filename: Optional[str] = None) -> Optional[str]:
    """The newest checkpoint of a folder, or None."""
    if latest_filename in (None, "checkpoint"):
        found = _core.latest_checkpoint(os.fspath(checkpoint_dir))
        return None if found is None else found.decode()
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    return state.model_checkpoint_path if state and state.model_checkpoint_path and checkpoint_exists(state.model_checkpoint_path) else None


def get_checkpoint_state(checkpoint_dir: str, latest_filename: Optional[str] = None) -> Any:
    """The CheckpointState of a folder, or None: model_checkpoint_path is the newest checkpoint."""
    path = os.path.join(os.fspath(checkpoint_dir), latest_filename or "checkpoint")
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    state = definitions.CheckpointState()
    for line in lines:
        key, _, value = line.partition(":")
        value = value.strip()
        if len(value) < 2 or value[0] != '"':
            continue
        value = value[1:-1].encode().decode("unicode_escape").encode("latin-1").decode("utf-8")
        if not os.path.isabs(value):
            value = os.path.join(os.fspath(checkpoint_dir), value)
        if key.strip() == "model_checkpoint_path":
            state.model_checkpoint_path = value
        elif key.strip() == "all_model_checkpoint_paths":
            state.all_model_checkpoint_paths.append(value)
    return state


def generate_checkpoint_state_proto(save_dir: str, model_checkpoint_path: str, all_model_checkpoint_paths: Any = None) -> Any:
    """A CheckpointState."""
    paths = list(all_model_checkpoint_paths or [])
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
    if not os.path.isabs(save_dir):  # readers take them from there
        paths = [os.path.relpath(p, save_dir) for p in paths]
        model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir)
    return definitions.CheckpointState(model_checkpoint_path=model_checkpoint_path, all_model_checkpoint_paths=paths)


def update_checkpoint_state(save_dir: str, model_checkpoint_path: str, all_model_checkpoint_paths: Any = None,
                            latest_filename: Optional[str] = None) -> None:
    """Writes the state file of a folder."""
    state = generate_checkpoint_state_proto(save_dir, model_checkpoint_path, all_model_checkpoint_paths)
    path = os.path.join(save_dir, latest_filename or "checkpoint")
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(str(state))
    os.replace(path + ".tmp", path)


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether a checkpoint is there."""
    prefix = os.fspath(checkpoint_prefix)
    return os.path.exists(prefix + ".index") or os.path.isfile(prefix)


class CheckpointReader:
    """Reads a checkpoint."""

    def __init__(self, filepattern: str) -> None:
        self._reader = _core.CheckpointReader(os.fspath(filepattern))

    def get_tensor(self, name: str) -> Any:
        """The value of a variable."""
        return self._reader.read(name)

    def has_tensor(self, name: str) -> bool:
        """Whether a variable is there."""
        return name in self._reader.names()

    def get_variable_to_shape_map(self) -> Dict[str, List[int]]:
        """The shapes by name."""
        return {n: list(getattr(self._reader.read(n), "shape", ())) for n in self._reader.names()}

    def get_variable_to_dtype_map(self) -> Dict[str, Any]:
        """The types by name."""
        from millrace.framework import dtypes
        return {n: dtypes.as_dtype(getattr(self._reader.read(n), "dtype", object)) for n in self._reader.names()}

    def debug_string(self) -> bytes:
        """A listing."""
        types, names = self.get_variable_to_dtype_map(), {"float16": "HALF", "float32": "FLOAT", "float64": "DOUBLE"}
        rows = ("%s (DT_%s) [%s]\n" % (name, names.get(types[name].name, types[name].name.upper()), ",".join(map(str, shape)))
                for name, shape in sorted(self.get_variable_to_shape_map().items()))
        return "".join(rows).encode()


NewCheckpointReader = CheckpointReader


def list_variables(checkpoint_dir: str) -> List[Tuple[str, List[int]]]:
    """(name, shape) of the variables of a checkpoint or of the newest one of a folder."""
    return sorted(_reader_of(checkpoint_dir).get_variable_to_shape_map().items())


def load_variable(checkpoint_dir: str, name: str) -> Any:
    """The value of a variable of a checkpoint or of the newest one of a folder."""
    return _reader_of(checkpoint_dir).get_tensor(name.rsplit(":0", 1)[0])


def _reader_of(path: str) -> CheckpointReader:
    found = latest_checkpoint(path) if os.path.isdir(path) else path
    if found is None:
        raise at_user_line(ValueError("Couldn't find 'checkpoint' file or checkpoints in given directory %s" % path))
    return CheckpointReader(found)


load_checkpoint = _reader_of


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a GraphDef to a file; its path."""
    definition = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    os.makedirs(logdir, exist_ok=True)
    path = os.path.join(logdir, name)
    with open(path, "wb") as file:
        file.write(str(definition).encode() if as_text else definition.SerializeToString())
    return path


