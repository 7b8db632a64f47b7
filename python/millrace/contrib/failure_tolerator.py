# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training.FailureTolerator: errors that pass, up to a limit."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Iterator, List, Sequence

from millrace import tf_logging
from millrace.framework import errors


class FailureTolerator:
    """Lets errors of some types pass that leave the context forgive(), and waits before the context is entered again.

    limit: how many are too many. init_delay: seconds to wait after the first, backoff_factor times as many after each more. Errors of more than
    forgive_after_seconds ago, waits not counted, count no longer. handled_exceptions: the types, AbortedError when it is not given."""

    def __init__(
        self, limit: int = 5, init_delay: float = 5.0, backoff_factor: float = 2.0, forgive_after_seconds: float = 6000, handled_exceptions: Any = None
    ) -> None:
        self.limit, self.init_delay, self.backoff_factor, self.forgive_after_seconds = limit, init_delay, backoff_factor, forgive_after_seconds
        given: Sequence[Any] = (errors.AbortedError,) if handled_exceptions is None else handled_exceptions
        self.handled_exceptions = tuple(given)
        self._failures: List[float] = []  # when each was, as if nobody had waited
        self._waited = 0.0

    def _now(self) -> float:
        return time.time() - self._waited

    @contextlib.contextmanager
    def forgive(self) -> Iterator[None]:
        """A context that errors of these types leave silently, until there are too many."""
        if self._failures:
            delay = self.init_delay * self.backoff_factor ** (len(self._failures) - 1)
            time.sleep(delay)
            self._waited += delay
        try:
            yield
        except self.handled_exceptions as error:
            now = self._now()
            self._failures = [when for when in self._failures if now - when < self.forgive_after_seconds] + [now]
            if len(self._failures) >= self.limit:
                raise
            tf_logging.warning("Error %d of at most %d, which passes: %r", len(self._failures), self.limit - 1, error)
