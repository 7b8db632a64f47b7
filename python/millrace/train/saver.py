# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Checkpoints: saving and restoring variables, and graphs with their collections."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

import millrace._core as _core
from millrace import gfile, tf_logging
from millrace.framework import dtypes, errors
from millrace.framework.arguments import only
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, Tensor, add_to_collection, get_collection, get_default_graph
from millrace.framework.library_names import prepend_name_scope, strip_name_scope
from millrace.framework.proto_functions import register_proto_function
from millrace.ops.variables import Variable
from millrace.protos import definitions
from millrace.train import meta_graph
from millrace.train.background_save import BackgroundSaver
from millrace.train.best_checkpoints import BETTER, BestCheckpoints
from millrace.train.checkpoint_management import (  # noqa: F401
    checkpoint_exists,
    generate_checkpoint_state_proto,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    meta_graph_filename,
    remove_checkpoint,
    update_checkpoint_state,
)
from millrace.train.mismatch import Mismatch, compare, values_for, wanted_by
from millrace.train.object_names import ByNames, names_in_checkpoint_of_objects
from millrace.train.safetensors import SafetensorsFile
from millrace.train.saveable import all_saveable_objects
from millrace.train.saver_builder import BaseSaverBuilder, BulkSaverBuilder, V1, V2  # noqa: F401

_update_checkpoint_state = update_checkpoint_state


class NoCheckpointError(ValueError, errors.NotFoundError):  # type: ignore[misc, valid-type]
    """A path without a checkpoint. Programs from TensorFlow 1.9 on expect a ValueError, those before it what the operation said."""

    def __init__(self, path: str) -> None:
        text = "The passed save_path is not a valid checkpoint: %s. Failed to find any matching files for %s" % (path, path)
        errors.NotFoundError.__init__(self, None, None, text)


class Saver:
    """Saves variables and restores them.

    `var_list`: variables, tables and SaveableObjects, or a dict of them by the names to save them under; all of the graph when None.
    `max_to_keep`: how many checkpoints stay (None and 0: all); one that is written `keep_checkpoint_every_n_hours` after the last such
    stays for good. `sharded`: a file for each device. `reshape`: values take the variables' shapes. `write_version`: of SaverDef.
    `asynchronous`: save returns when the values are read, and a thread writes them; `wait` ends when they are on disk. `keep_best`: so many
    checkpoints with the best score that `save` was given stay too; which is better says `best_is`, 'greatest' or 'least'. `consistent`: the
    variables are those of one moment between the session's steps that change them; steps of other threads wait while they are read.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: Optional[int] = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: Optional[str] = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: Any = None,
        asynchronous: bool = False,
        keep_best: int = 0,
        best_is: str = "greatest",
        consistent: bool = False,
    ) -> None:
        if defer_build and var_list:
            raise at_user_line(ValueError("If `var_list` is provided then build cannot be deferred. Either set defer_build=False or var_list=None."))
        self._var_list, self._reshape, self._sharded, self._max_to_keep = var_list, reshape, sharded, max_to_keep
        self._keep_checkpoint_every_n_hours, self._name, self._restore_sequentially = keep_checkpoint_every_n_hours, name, restore_sequentially
        self.saver_def, self._builder, self._is_built, self._allow_empty, self._is_empty = saver_def, builder, False, allow_empty, False
        self._write_version, self._pad_step_number, self._save_relative_paths, self._filename = write_version, pad_step_number, save_relative_paths, filename
        if best_is not in BETTER or keep_best < 0:
            raise at_user_line(ValueError("keep_best is %r and best_is %r, want a number from 0 on, and 'greatest' or 'least'" % (keep_best, best_is)))
        self._keep_best, self._best_is = keep_best, best_is
        self._snapshots = BackgroundSaver(asynchronous, consistent) if asynchronous or consistent else None
        self._last_checkpoints: List[Tuple[str, float]] = []
        self._checkpoints_to_be_deleted: List[Tuple[str, float]] = []
        if saver_def is not None:
            self._check_saver_def()
            self._write_version = saver_def.version
        if not defer_build:
            self.build()

    def __repr__(self) -> str:
        if not self._is_built:
            return "<Saver, not built yet>"
        what = "nothing" if self._is_empty else "%d objects" % len(self._var_list) if self._var_list is not None else "'%s'" % self.saver_def.save_tensor_name
        return "<Saver of %s, keeps %s%s>" % (what, self._max_to_keep or "all", ", newest %s" % self.last_checkpoints[-1] if self._last_checkpoints else "")

    def build(self) -> None:
        """Adds its ops to the graph."""
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is None:
            if self._builder is None:
                self._builder = BulkSaverBuilder(self._write_version)
            if self._var_list is None:
                self._var_list = all_saveable_objects()
            if not self._var_list:
                if not self._allow_empty:
                    raise at_user_line(ValueError("No variables to save"))
                self._is_empty = True
                return
            self.saver_def = self._builder.build(
                self._var_list,
                reshape=self._reshape,
                sharded=self._sharded,
                max_to_keep=self._max_to_keep,
                name=self._name,
                keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours,
                restore_sequentially=self._restore_sequentially,
                filename=self._filename,
            )
        elif self._name:
            for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                setattr(self.saver_def, field, prepend_name_scope(getattr(self.saver_def, field), self._name))
        self._check_saver_def()
        self._next_checkpoint_time = time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600

    def _check_saver_def(self) -> None:
        if not isinstance(self.saver_def, definitions.SaverDef):
            raise at_user_line(ValueError("saver_def must be a saver_pb2.SaverDef: %s" % (self.saver_def,)))
        for field in ("save_tensor_name", "restore_op_name"):
            if not getattr(self.saver_def, field):
                raise at_user_line(ValueError("saver_def must specify the %s: %s" % (field, self.saver_def)))

    # ---- saving and restoring ----

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: Optional[str] = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        score: Optional[float] = None,
    ) -> Optional[str]:
        """Writes a checkpoint; its path, or None when there is nothing to save. With a global_step that is part of the name.

        Of an asynchronous saver the checkpoint is whole later, see `wait`; what went wrong with the one before is raised here.
        """
        if not self._is_built:
            raise at_user_line(RuntimeError("`build()` should be called before save if defer_build==True"))
        latest_filename = latest_filename or "checkpoint"
        if score is not None and not (self._keep_best and write_state):
            raise at_user_line(ValueError("a score wants a Saver with keep_best, and write_state"))
        if os.path.split(latest_filename)[0]:
            raise at_user_line(ValueError("'latest_filename' must not contain path components"))
        path = gfile.as_path(save_path)
        if global_step is not None:
            step = int(sess.run(global_step)) if isinstance(global_step, (Tensor, Variable)) else int(global_step)
            path = ("%s-%08d" if self._pad_step_number else "%s-%d") % (path, step)
        elif os.path.basename(path) == latest_filename and not self._sharded:
            raise at_user_line(ValueError("'latest_filename' collides with 'save_path': '%s' and '%s'" % (latest_filename, path)))
        session, written = _raw(sess), None
        if not self._is_empty:
            written = self._write(session, path, latest_filename, meta_graph_suffix, write_state, score)
        if write_meta_graph:
            with session.graph.as_default():
                self.export_meta_graph(meta_graph_filename(path, meta_graph_suffix), strip_default_attrs=strip_default_attrs)
        return written

    def wait(self) -> None:
        """Returns when the checkpoint that an asynchronous save began is on disk; raises what went wrong."""
        if self._snapshots is not None:
            self._snapshots.wait()

    def _write(self, session: Any, path: str, latest_filename: str, meta_graph_suffix: str, write_state: bool, score: Optional[float]) -> str:
        folder = gfile.folder_of(path)
        lost = ValueError("Parent directory of %s doesn't exist, can't save." % path)
        if folder and not gfile.IsDirectory(folder) and (gfile.Exists(folder) or not gfile.IsDirectory(gfile.folder_of(folder) or ".")):
            raise lost

        def is_whole(written: str) -> None:
            if not write_state:
                return
            self._RecordLastCheckpoint(written)
            update_checkpoint_state(folder, written, self.last_checkpoints, latest_filename, save_relative_paths=self._save_relative_paths)
            if self._keep_best:
                self._note_score(folder, latest_filename, written, score)
            self._MaybeDeleteOldCheckpoints(meta_graph_suffix)

        try:
            if self._snapshots is not None:
                self._snapshots.begin(session, self.saver_def.save_tensor_name, self.saver_def.filename_tensor_name, path, is_whole)
                return path
            written = session.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: path}).decode()
            is_whole(written)
        except (errors.FailedPreconditionError, errors.NotFoundError):
            if folder and not gfile.IsDirectory(folder):
                raise lost from None
            raise
        return written

    def restore(self, sess: Any, save_path: Optional[str]) -> None:
        """Gives the variables the values of a checkpoint, or of a file whose name ends in .safetensors."""
        if self._is_empty:
            return
        if save_path is None:
            raise at_user_line(ValueError("Can't load save_path when it is None."))
        self.wait()
        session, path = _raw(sess), gfile.as_path(save_path)
        if not checkpoint_exists(path):
            raise at_user_line(NoCheckpointError(path))
        tf_logging.info("Restoring parameters from %s", save_path)
        if path.endswith(".safetensors"):
            self._restore_arrays(session, path, SafetensorsFile(path))
            return
        try:
            session.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: path})
        except (errors.NotFoundError, errors.InvalidArgumentError) as error:
            if isinstance(error, errors.NotFoundError) and names_in_checkpoint_of_objects(path):
                tf_logging.warning("%s is a checkpoint of objects, whose values are taken by names: tf.train.Checkpoint reads it by the objects.", path)
                self._restore_arrays(session, path, ByNames(path))
                return
            differs = self._mismatch(session.graph, path)
            if not differs:
                raise
            raise at_user_line(
                type(error)(
                    error.node_def,
                    error.op,
                    "%s\n\nThere is a mismatch between the current graph and the graph of the checkpoint: %s" % (error.message, differs),
                )
            ) from None

    def _restore_arrays(self, session: Any, path: str, file: Any) -> None:
        operation = session.graph.get_operation_by_name(self.saver_def.restore_op_name)
        differs = compare(path, wanted_by(operation), file)
        if differs.missing:
            raise at_user_line(errors.NotFoundError(None, None, "Could not find some variables of the graph: %s" % (differs,)))
        if differs:
            raise at_user_line(errors.InvalidArgumentError(None, None, str(differs)))
        session.run(operation, values_for(operation, file))

    def mismatch(self, save_path: str) -> Mismatch:
        """In what a checkpoint differs from what `restore` wants of it: names missing, with those that are like them, unexpected names, other shapes."""
        return compare(gfile.as_path(save_path), wanted_by(get_default_graph().get_operation_by_name(self.saver_def.restore_op_name)))

    def _mismatch(self, graph: Graph, save_path: str) -> Optional[Mismatch]:
        """None when the checkpoint cannot be read at all."""
        try:
            return compare(save_path, wanted_by(graph.get_operation_by_name(self.saver_def.restore_op_name)))
        except (errors.OpError, ValueError, KeyError):
            return None

    # ---- which checkpoints stay ----

    def _RecordLastCheckpoint(self, latest_save_path: str) -> None:
        if not self.saver_def.max_to_keep or self.saver_def.max_to_keep < 0:
            return
        self._last_checkpoints = [c for c in self._last_checkpoints if c[0] != latest_save_path] + [(latest_save_path, time.time())]
        while len(self._last_checkpoints) > self.saver_def.max_to_keep:
            self._checkpoints_to_be_deleted.append(self._last_checkpoints.pop(0))

    def _note_score(self, folder: str, latest_filename: str, written: str, score: Optional[float]) -> None:
        """The best ones leave the list of those to be deleted, and come back to it when others are better."""
        known = BestCheckpoints(folder, latest_filename, self._best_is)
        if score is not None:
            forgotten = known.add(written, score, self._keep_best)
            self._checkpoints_to_be_deleted += [(p, 0.0) for p in forgotten if p not in self.last_checkpoints]
        best = known.best(self._keep_best)
        self._checkpoints_to_be_deleted = [c for c in self._checkpoints_to_be_deleted if c[0] not in best]

    def _MaybeDeleteOldCheckpoints(self, meta_graph_suffix: str = "meta") -> None:
        """Removes the checkpoints that the state file no longer names, but for those that stay for good."""
        while self._checkpoints_to_be_deleted:
            path, written = self._checkpoints_to_be_deleted.pop(0)
            if written > self._next_checkpoint_time:
                self._next_checkpoint_time += self.saver_def.keep_checkpoint_every_n_hours * 3600
                continue
            try:
                remove_checkpoint(path, self.saver_def.version, meta_graph_suffix)
            except errors.OpError as error:  # leftovers harm nobody
                tf_logging.warning("Ignoring: %s", error)

    @property
    def last_checkpoints(self) -> List[str]:
        """The checkpoints written and kept, oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints: List[str]) -> None:
        """Sets the checkpoints that count as written; when, is not known."""
        self.set_last_checkpoints_with_time([(path, float("nan")) for path in last_checkpoints])

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Any) -> None:
        """Sets the checkpoints that count as written, with their times."""
        if not isinstance(last_checkpoints_with_time, list):
            raise at_user_line(TypeError("a list of checkpoints is needed, not %r" % (last_checkpoints_with_time,)))
        self._last_checkpoints = [(os.fspath(path), float(written)) for path, written in last_checkpoints_with_time]

    def recover_last_checkpoints(self, checkpoint_paths: List[str]) -> None:
        """Counts checkpoints that are there as written, when their files were."""
        found = [path for path in checkpoint_paths if checkpoint_exists(path)]
        self.set_last_checkpoints_with_time(list(zip(found, get_checkpoint_mtimes(found))))

    def _CheckpointFilename(self, p: Tuple[str, float]) -> str:
        return p[0]

    def _MetaGraphFilename(self, checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
        return meta_graph_filename(checkpoint_filename, meta_graph_suffix)

    # ---- messages ----

    def as_saver_def(self) -> Any:
        """Its SaverDef."""
        return self.saver_def

    def to_proto(self, export_scope: Optional[str] = None) -> Any:
        """Its SaverDef with names below a scope, or None when its ops are not in it."""
        if export_scope is None:
            return self.saver_def
        if self.saver_def is None or not (
            self.saver_def.filename_tensor_name.startswith(export_scope)
            and self.saver_def.save_tensor_name.startswith(export_scope)
            and self.saver_def.restore_op_name.startswith(export_scope)
        ):
            return None
        inside = definitions.SaverDef()
        inside.CopyFrom(self.saver_def)
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(inside, field, strip_name_scope(getattr(inside, field), export_scope))
        return inside

    @staticmethod
    def from_proto(saver_def: Any, import_scope: Optional[str] = None) -> "Saver":
        """The saver of a SaverDef whose ops lie below a scope."""
        return Saver(saver_def=saver_def, name=import_scope)

    def export_meta_graph(
        self,
        filename: Optional[str] = None,
        collection_list: Any = None,
        as_text: bool = False,
        export_scope: Optional[str] = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
    ) -> Any:
        """Writes the graph with its collections and this saver; the MetaGraphDef."""
        return export_meta_graph(
            filename,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
        )

    def _add_collection_def(self, meta_graph_def: Any, key: str, export_scope: Optional[str] = None) -> None:
        meta_graph.add_collection_def(meta_graph_def, key, export_scope=export_scope)


register_proto_function(GraphKeys.SAVERS, definitions.SaverDef, Saver.to_proto, Saver.from_proto)


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


def _raw(session: Any) -> Any:
    """The session behind wrappers."""
    while not isinstance(session, _core.Session):
        inner = getattr(session, "_tf_sess", None) or getattr(session, "raw_session", None)
        if inner is None:
            raise at_user_line(TypeError("'sess' must be a Session; %s" % (session,)))
        session = inner()
    return session


def import_meta_graph(meta_graph_or_file: Any, clear_devices: bool = False, import_scope: Optional[str] = None, **kwargs: Any) -> Optional[Saver]:
    """Adds a graph that export_meta_graph wrote, with its collections; its saver, or None. `kwargs`: of import_graph_def."""
    return import_meta_graph_with_return_elements(meta_graph_or_file, clear_devices, import_scope, **kwargs)[0]


def import_meta_graph_with_return_elements(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: Optional[str] = None, return_elements: Any = None, **kwargs: Any
) -> Tuple[Optional[Saver], Any]:
    """import_meta_graph's saver, and the elements of the graph that were asked for."""
    definition = meta_graph.read_meta_graph_file(meta_graph_or_file)
    imported, elements = meta_graph.import_scoped_meta_graph_with_return_elements(
        definition, clear_devices=clear_devices, import_scope=import_scope, return_elements=return_elements, **kwargs
    )
    if definition.HasField("saver_def") and definition.saver_def.restore_op_name:
        scope = import_scope
        if not scope and imported:
            stripped = min(imported)
            scope = imported[stripped].name[: -len(stripped) - 1] or None  # the name scope that it was imported in
        own = definitions.SaverDef.FromString(definition.saver_def.SerializeToString())  # the saver puts its scope into it
        return Saver(saver_def=own, name=scope), elements
    return (Saver() if all_saveable_objects(import_scope) else None), elements


def export_meta_graph(
    filename: Optional[str] = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Optional[Graph] = None,
    export_scope: Optional[str] = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
) -> Any:
    """Writes a graph with its collections; the MetaGraphDef."""
    only(False, save_debug_info=save_debug_info)
    return meta_graph.export_scoped_meta_graph(
        filename=filename,
        meta_info_def=meta_info_def,
        graph_def=graph_def,
        saver_def=saver_def,
        collection_list=collection_list,
        as_text=as_text,
        graph=graph,
        export_scope=export_scope,
        clear_devices=clear_devices,
        clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs,
    )[0]


# ---- reading checkpoints ----


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
        return {n: self._reader.describe(n)[1] for n in self._reader.names()}

    def get_variable_to_dtype_map(self) -> Dict[str, Any]:
        """The types by name."""
        return {n: dtypes.as_dtype(self._reader.describe(n)[0]) for n in self._reader.names()}

    def debug_string(self) -> bytes:
        """A listing."""
        types, names = self.get_variable_to_dtype_map(), {"float16": "HALF", "float32": "FLOAT", "float64": "DOUBLE"}
        rows = (
            "%s (DT_%s) [%s]\n" % (name, names.get(types[name].name, types[name].name.upper()), ",".join(map(str, shape)))
            for name, shape in sorted(self.get_variable_to_shape_map().items())
        )
        return "".join(rows).encode()


NewCheckpointReader = CheckpointReader


def list_variables(ckpt_dir_or_file: str) -> List[Tuple[str, List[int]]]:
    """(name, shape) of the variables of a checkpoint or of the newest one of a folder."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of a variable of a checkpoint or of the newest one of a folder."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.rsplit(":0", 1)[0])


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """A reader of a checkpoint or of the newest one of a folder."""
    path = gfile.as_path(ckpt_dir_or_file)
    found = latest_checkpoint(path) if gfile.IsDirectory(path) else path
    if found is None:
        raise at_user_line(ValueError("Couldn't find 'checkpoint' file or checkpoints in given directory %s" % ckpt_dir_or_file))
    return CheckpointReader(found)


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a GraphDef to a file; its path."""
    definition = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    path = os.path.join(gfile.as_path(logdir), name)
    gfile.MakeDirs(gfile.folder_of(path))
    with gfile.Open(path, "wb") as file:
        file.write(str(definition).encode() if as_text else definition.SerializeToString())
    return path
