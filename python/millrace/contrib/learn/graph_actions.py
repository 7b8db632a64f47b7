# SPDX-License-Identifier: Apache-2.0
"""Running a graph a few times without a loop of one's own."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Iterable, Iterator, List, Optional


def run_feeds_iter(output_dict: Dict[str, Any], feed_dicts: Iterable[Any], restore_checkpoint_path: Optional[str] = None) -> Iterator[Dict[str, Any]]:
    """The values of tensors for each feed, in a session that initialises the variables or restores them."""
    from millrace import tables_initializer
    from millrace.framework.session import Session
    from millrace.ops.variables import global_variables_initializer, local_variables_initializer
    from millrace.train import Coordinator, Saver, start_queue_runners

    if not output_dict:
        raise ValueError("output_dict is invalid: %s." % output_dict)
    graph = next(v for v in output_dict.values() if hasattr(v, "graph")).graph
    with graph.as_default(), Session() as session:
        if restore_checkpoint_path:
            Saver().restore(session, restore_checkpoint_path)
        else:
            session.run(global_variables_initializer())
        session.run([local_variables_initializer(), tables_initializer()])
        coord = Coordinator()
        threads = start_queue_runners(session, coord)
        try:
            for feed in feed_dicts:
                yield session.run(output_dict, feed)
        finally:
            coord.request_stop()
            coord.join(threads, stop_grace_period_secs=120)


def run_feeds(*args: Any, **kwargs: Any) -> List[Dict[str, Any]]:
    """A list of what run_feeds_iter gives."""
    return list(run_feeds_iter(*args, **kwargs))


def run_n(output_dict: Dict[str, Any], feed_dict: Any = None, restore_checkpoint_path: Optional[str] = None, n: int = 1) -> List[Dict[str, Any]]:
    """The values of tensors in n steps."""
    return run_feeds(output_dict, itertools.repeat(feed_dict, n), restore_checkpoint_path)
