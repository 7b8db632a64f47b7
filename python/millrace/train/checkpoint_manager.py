# SPDX-License-Identifier: Apache-2.0
"""The checkpoints of one Checkpoint in one folder: numbers them, and deletes old ones."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from millrace import gfile, tf_logging
from millrace.framework.errors import at_user_line
from millrace.train import checkpoint_management
from millrace.train.checkpoint import Checkpoint, _session
from millrace.train.checkpoint_management import checkpoint_exists, get_checkpoint_state, latest_checkpoint, remove_checkpoint, write_checkpoint_state


def _now() -> float:
    """The time by the clock of checkpoint_management, which tests of programs replace there."""
    return float(checkpoint_management.time.time())  # type: ignore[attr-defined]


class CheckpointManager:
    """Keeps the last max_to_keep checkpoints of a folder (None: all); one that was written keep_checkpoint_every_n_hours after the last such stays."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: Optional[int],
        keep_checkpoint_every_n_hours: Optional[float] = None,
        checkpoint_name: str = "ckpt",
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise at_user_line(ValueError("Expected a positive integer or `None` for `max_to_keep`, got %s." % max_to_keep))
        self._checkpoint, self._directory, self._max_to_keep = checkpoint, gfile.as_path(directory), max_to_keep
        self._keep_seconds = None if keep_checkpoint_every_n_hours is None else 3600.0 * keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        now = _now()
        self._last_preserved = now - 1
        self._latest = latest_checkpoint(self._directory)
        self._written: Dict[str, float] = {}  # times by paths, oldest first, of what is kept for now; others wrote what has no time
        state = get_checkpoint_state(self._directory)
        if state is not None and state.all_model_checkpoint_timestamps:
            if now < state.last_preserved_timestamp:
                tf_logging.warning("The clock is %f seconds behind the last preserved checkpoint timestamp.", state.last_preserved_timestamp - now)
            self._last_preserved = min(state.last_preserved_timestamp, now)
            times = zip(state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps)
            self._written = {path: min(at, now) for path, at in times if min(at, now) > self._last_preserved and checkpoint_exists(path)}

    @property
    def checkpoint(self) -> Checkpoint:
        """The objects that are saved."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """The path of the newest checkpoint, or None."""
        return self._latest

    @property
    def checkpoints(self) -> List[str]:
        """The paths of those that are kept, oldest first, but for those that stay for good."""
        return list(self._written)

    def save(self, checkpoint_number: Any = None, session: Any = None) -> str:
        """Writes a checkpoint with a number (how often it was saved, unless one is given), deletes old ones; its path."""
        session = _session(session)
        count = self._checkpoint._count(session)
        if checkpoint_number is not None:
            count = int(checkpoint_number) if isinstance(checkpoint_number, int) else int(session.run(checkpoint_number))
        path = self._checkpoint.write("%s-%d" % (self._prefix, count), session)
        self._written.pop(path, None)
        self._written[path], self._latest = _now(), path
        old = []
        while self._max_to_keep is not None and len(self._written) > self._max_to_keep:
            oldest = next(iter(self._written))
            written = self._written.pop(oldest)
            if self._keep_seconds is not None and written - self._keep_seconds >= self._last_preserved:
                self._last_preserved = written
            else:
                old.append(oldest)
        write_checkpoint_state(self._directory, path, self._written, self._last_preserved)  # first: no state names a file that is gone
        for gone in old:
            remove_checkpoint(gone)
        return path

    def restore_or_initialize(self, session: Any = None) -> Optional[str]:
        """Restores the newest checkpoint, and gives other variables their first values; its path, or None where there is none."""
        self._checkpoint.restore(self.latest_checkpoint).initialize_or_restore(session)
        return self.latest_checkpoint
