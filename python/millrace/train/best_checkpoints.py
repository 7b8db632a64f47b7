# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints of a folder are the best by a score. The scores stand in a file beside the state file, which the library keeps."""

from __future__ import annotations

from typing import List, Optional

import millrace._core as _core
from millrace import gfile
from millrace.framework.errors import at_user_line
from millrace.train.checkpoint_management import checkpoint_exists

BETTER = ("greatest", "least")
_ALL = 2**31 - 1


class BestCheckpoints:
    """The scores of the checkpoints of a folder."""

    def __init__(self, folder: str, state_file: str = "checkpoint", better: str = "greatest") -> None:
        if better not in BETTER:
            raise at_user_line(ValueError("the best score is 'greatest' or 'least', got %r" % (better,)))
        self._folder, self._state_file, self._least = folder, state_file, better == "least"

    def best(self, count: int = _ALL) -> List[str]:
        """The paths with the best scores, the best first; of equals the newer. DataLossError when the file of scores is damaged."""
        return list(_core.best_checkpoints(self._folder, self._state_file, count, self._least))

    def add(self, path: str, score: float, count: int) -> List[str]:
        """Notes a score and forgets all but the best `count`; the paths that are forgotten."""
        return list(_core.note_checkpoint_score(self._folder, self._state_file, path, float(score), count, self._least))


def best_checkpoint(checkpoint_dir: str, latest_filename: Optional[str] = None, better: str = "greatest") -> Optional[str]:
    """The checkpoint of a folder with the best score, or None when none has one."""
    known = BestCheckpoints(gfile.as_path(checkpoint_dir), latest_filename or "checkpoint", better)
    return next((p for p in known.best() if checkpoint_exists(p)), None)
