# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints of a folder are the best by a score. The scores stand in a file beside the state file, so that they outlive the process."""

from __future__ import annotations

import json
import math
import os
from typing import Dict, List, Optional

from millrace import gfile
from millrace.framework.errors import at_user_line
from millrace.train.checkpoint_management import checkpoint_exists

BETTER = ("greatest", "least")


class BestCheckpoints:
    """The scores of the checkpoints of a folder."""

    def __init__(self, folder: str, state_file: str = "checkpoint", better: str = "greatest") -> None:
        if better not in BETTER:
            raise at_user_line(ValueError("the best score is 'greatest' or 'least', got %r" % (better,)))
        self._folder, self._file, self._better = folder, os.path.join(folder, state_file + ".scores"), better
        self.scores: Dict[str, float] = {}  # by path
        if os.path.exists(self._file):
            try:
                with open(self._file) as file:
                    read = json.load(file)
                self.scores = {os.path.join(folder, name): float(score) for name, score in read.items()}
            except (ValueError, AttributeError, TypeError) as error:
                raise at_user_line(ValueError("%s holds no scores: %s" % (self._file, error))) from None

    def best(self, count: int) -> List[str]:
        """The paths with the best scores, the best first; of equals the newer."""
        sign = -1.0 if self._better == "greatest" else 1.0
        order = list(self.scores)
        return sorted(order, key=lambda p: (sign * self.scores[p], -order.index(p)))[:count]

    def add(self, path: str, score: float, count: int) -> List[str]:
        """Notes a score and forgets all but the best `count`; the paths that are forgotten."""
        if math.isnan(score):
            raise at_user_line(ValueError("the score of %s is not a number" % path))
        self.scores.pop(path, None)
        self.scores[path] = float(score)
        kept = set(self.best(count))
        forgotten = [p for p in self.scores if p not in kept]
        self.scores = {p: s for p, s in self.scores.items() if p in kept}
        gfile.atomic_write(self._file, json.dumps({os.path.relpath(p, self._folder or "."): s for p, s in self.scores.items()}, indent=1))
        return forgotten


def best_checkpoint(checkpoint_dir: str, latest_filename: Optional[str] = None, better: str = "greatest") -> Optional[str]:
    """The checkpoint of a folder with the best score, or None when none has one."""
    known = BestCheckpoints(os.fspath(checkpoint_dir), latest_filename or "checkpoint", better)
    return next((p for p in known.best(len(known.scores)) if checkpoint_exists(p)), None)
