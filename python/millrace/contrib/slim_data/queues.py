# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.queues."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys
from millrace.train.coordinator import Coordinator
from millrace.train.queue_runner import start_queue_runners


@contextlib.contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """A context in which the queue runners of the session's graph run."""
    if not session.graph.get_collection(GraphKeys.QUEUE_RUNNERS):
        raise at_user_line(ValueError("The graph has no queue runners"))
    coordinator = Coordinator()
    threads = start_queue_runners(session, coordinator)
    try:
        yield
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)
