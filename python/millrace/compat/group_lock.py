# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.lock_util: a lock that several threads of one group hold together."""

from __future__ import annotations

import contextlib
import threading
from typing import Iterator


class GroupLock:
    """Threads of one group at a time: any number of them."""

    def __init__(self, num_groups: int = 2) -> None:
        if num_groups < 1:
            raise ValueError("num_groups must be a positive integer, got %s" % num_groups)
        self._ready = threading.Condition()
        self._group_member_counts = [0] * num_groups

    def _check(self, group_id: int) -> None:
        if not 0 <= group_id < len(self._group_member_counts):
            raise ValueError("group_id=%s should be between 0 and num_groups=%d" % (group_id, len(self._group_member_counts)))

    @contextlib.contextmanager
    def _holding(self, group_id: int) -> Iterator[None]:
        self.acquire(group_id)
        try:
            yield
        finally:
            self.release(group_id)

    def group(self, group_id: int) -> "contextlib.AbstractContextManager[None]":
        """A scope that holds the lock for a group."""
        self._check(group_id)
        return self._holding(group_id)

    def acquire(self, group_id: int) -> None:
        """Waits until no other group holds it, and holds it."""
        self._check(group_id)
        with self._ready:
            self._ready.wait_for(lambda: not any(n for g, n in enumerate(self._group_member_counts) if g != group_id))
            self._group_member_counts[group_id] += 1

    def release(self, group_id: int) -> None:
        """Lets it go."""
        self._check(group_id)
        with self._ready:
            self._group_member_counts[group_id] -= 1
            if not self._group_member_counts[group_id]:
                self._ready.notify_all()
