# SPDX-License-Identifier: Apache-2.0
"""The checkpoints of a folder: which are there, which is the newest, and the state file that says so."""

from __future__ import annotations

import glob
import os
import re
import time as time  # checkpoint_manager asks it here
from typing import Any, Dict, List, Optional

from millrace import gfile, tf_logging
from millrace.framework.errors import OpError, at_user_line
from millrace.protos import definitions, text_format

_V1, _V2 = 1, 2  # SaverDef.CheckpointFormatVersion
_SHARDED = re.compile(r"-[\d\?]+-of-[\d\?]+$")


def _path_of(prefix: str, version: int) -> str:
    """The path that says whether a checkpoint is there: in the second format that of its index."""
    return prefix + ".index" if version == _V2 else prefix


def meta_graph_filename(checkpoint_filename: str, meta_graph_suffix: str = "meta") -> str:
    """The file of the graph beside a checkpoint; the shards of one have one graph."""
    return "%s.%s" % (_SHARDED.sub("", checkpoint_filename), meta_graph_suffix)


def _is_file(path: str) -> bool:
    return gfile.Exists(path) and not gfile.IsDirectory(path)


def _matching(path: str) -> List[str]:
    """The file of a path, or the files of a pattern, as the shards of the first format are given."""
    return [path] if _is_file(path) else [p for p in gfile.Glob(path) if _is_file(p)]


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Whether a checkpoint is there."""
    prefix = gfile.as_path(checkpoint_prefix)
    return bool(_matching(_path_of(prefix, _V2)) or _matching(prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: List[str]) -> List[float]:
    """When checkpoints were written, in seconds; those that are not there are left out."""
    times = []
    for prefix in checkpoint_prefixes:
        found = _matching(_path_of(prefix, _V2)) or _matching(prefix)
        if found:
            times.append(gfile.Stat(found[0]).mtime_nsec / 1e9)
    return times


def remove_checkpoint(checkpoint_prefix: str, checkpoint_format_version: int = _V2, meta_graph_suffix: str = "meta") -> None:
    """Removes the files of a checkpoint, and of the graph beside it."""
    patterns = [meta_graph_filename(checkpoint_prefix, meta_graph_suffix)]
    if checkpoint_format_version == _V2:
        patterns += [checkpoint_prefix + ".index", glob.escape(checkpoint_prefix) + ".data-?????-of-?????"]
    else:
        patterns.append(checkpoint_prefix)
    for pattern in patterns:
        for path in _matching(pattern):
            gfile.Remove(path)


# ---- the state file ----


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Any = None,
    all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: Optional[float] = None,
) -> Any:
    """A CheckpointState. Paths are relative to the folder when that is a relative one; timestamps are seconds, one for each path."""
    save_dir, model_checkpoint_path = gfile.as_path(save_dir), gfile.as_path(model_checkpoint_path)
    paths, times = [gfile.as_path(p) for p in all_model_checkpoint_paths or []], list(all_model_checkpoint_timestamps or [])
    if times and len(times) != len(paths):
        raise at_user_line(
            ValueError("Number of timestamps, if provided, must match checkpoint paths (given %d paths and %d timestamps)" % (len(paths), len(times)))
        )
    if not paths or paths[-1] != model_checkpoint_path:
        tf_logging.info("%s is not in all_model_checkpoint_paths. Manually adding it.", model_checkpoint_path)
        paths.append(model_checkpoint_path)
        if isinstance(all_model_checkpoint_paths, list):
            all_model_checkpoint_paths.append(model_checkpoint_path)  # callers look at their list again, as in TensorFlow
        if times:
            times.append(time.time())
    if not os.path.isabs(save_dir):
        paths = [p if os.path.isabs(p) else os.path.relpath(p, save_dir) for p in paths]
        if not os.path.isabs(model_checkpoint_path):
            model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir)
    more = {} if last_preserved_timestamp is None else {"last_preserved_timestamp": last_preserved_timestamp}
    return definitions.CheckpointState(
        model_checkpoint_path=model_checkpoint_path, all_model_checkpoint_paths=paths, all_model_checkpoint_timestamps=times, **more
    )


def _below(folder: str, path: str) -> str:
    return os.path.relpath(path, folder) if os.path.isabs(path) else path


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Any = None,
    latest_filename: Optional[str] = None,
    all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: Optional[float] = None,
    save_relative_paths: bool = False,
) -> None:
    """Writes the state file of a folder. RuntimeError when the checkpoint has the path of the state file."""
    save_dir = gfile.as_path(save_dir)
    file = os.path.join(save_dir, latest_filename or "checkpoint")
    state = generate_checkpoint_state_proto(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    if save_relative_paths and os.path.isabs(save_dir):
        state.model_checkpoint_path = _below(save_dir, state.model_checkpoint_path)
        paths = [_below(save_dir, p) for p in state.all_model_checkpoint_paths]
        del state.all_model_checkpoint_paths[:]
        state.all_model_checkpoint_paths.extend(paths)
    if file == state.model_checkpoint_path:
        raise at_user_line(
            RuntimeError("Save path '%s' conflicts with path used for checkpoint state.  Please use a different save path." % model_checkpoint_path)
        )
    gfile.atomic_write(file, str(state))


def write_checkpoint_state(folder: str, newest: str, written: Dict[str, float], last_preserved: float) -> None:
    """Writes the state file of a folder, with paths below it and the times of all."""
    state = definitions.CheckpointState(
        model_checkpoint_path=os.path.relpath(newest, folder),
        last_preserved_timestamp=last_preserved,
        all_model_checkpoint_paths=[os.path.relpath(p, folder) for p in written],
        all_model_checkpoint_timestamps=list(written.values()),
    )
    gfile.atomic_write(os.path.join(folder, "checkpoint"), str(state))


def get_checkpoint_state(checkpoint_dir: str, latest_filename: Optional[str] = None) -> Any:
    """The CheckpointState of a folder, or None: model_checkpoint_path is the newest checkpoint."""
    folder = gfile.as_path(checkpoint_dir)
    file = os.path.join(folder, latest_filename or "checkpoint")
    if not gfile.Exists(file):
        return None
    try:
        with gfile.GFile(file, "r") as opened:
            state = text_format.Parse(opened.read(), definitions.CheckpointState())
    except (OpError, ValueError) as error:
        tf_logging.warning("%s: Checkpoint ignored (%s)", file, error)
        return None
    if not state.model_checkpoint_path:
        raise at_user_line(ValueError("Invalid checkpoint state loaded from %s" % folder))
    if not os.path.isabs(state.model_checkpoint_path):
        state.model_checkpoint_path = os.path.join(folder, state.model_checkpoint_path)
    paths = [p if os.path.isabs(p) else os.path.join(folder, p) for p in state.all_model_checkpoint_paths]
    del state.all_model_checkpoint_paths[:]
    state.all_model_checkpoint_paths.extend(paths)
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: Optional[str] = None) -> Optional[str]:
    """The newest checkpoint of a folder, or None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    for path in [state.model_checkpoint_path, *reversed(list(state.all_model_checkpoint_paths))]:
        if checkpoint_exists(path):
            return str(path)
        tf_logging.error("Couldn't match files for checkpoint %s", path)
    return None
