# SPDX-License-Identifier: Apache-2.0
"""Writers of summaries that keep what they are given, and readers of event files, for tests of training."""

from __future__ import annotations

import glob
import os
from typing import Any, Dict, List

import millrace.summary as summary_module
from millrace.protos.definitions import Event, Summary  # type: ignore[attr-defined]
from millrace.testing.graph_defs import assert_meta_graph_protos_equal


class FakeSummaryWriter:
    """A FileWriter that writes nothing."""

    _writers: List[Any] = []

    @classmethod
    def install(cls) -> None:
        """Makes FileWriterCache give out writers of this class."""
        if cls._writers:
            raise ValueError("FakeSummaryWriter already installed.")
        cls._writers.append(summary_module.FileWriter)
        summary_module.FileWriter = cls  # type: ignore[misc,assignment]

    @classmethod
    def uninstall(cls) -> None:
        """Undoes install."""
        if not cls._writers:
            raise ValueError("FakeSummaryWriter not installed.")
        summary_module.FileWriter = cls._writers.pop()  # type: ignore[misc]

    def __init__(self, logdir: str, graph: Any = None) -> None:
        self._logdir, self._graph = logdir, graph
        self._summaries: Dict[int, List[Any]] = {}
        self._graphs: List[Any] = []
        self._meta_graphs: List[Any] = []
        self._logs: Dict[int, List[Any]] = {}
        self._added_run_metadata: Dict[str, Any] = {}

    summaries = property(lambda self: self._summaries, doc="The summaries by step.")

    def assert_summaries(
        self,
        test_case: Any,
        expected_logdir: Any = None,
        expected_graph: Any = None,
        expected_summaries: Any = None,
        expected_added_graphs: Any = None,
        expected_added_meta_graphs: Any = None,
        expected_session_logs: Any = None,
    ) -> None:
        """Fails the test unless what is expected has been given."""
        if expected_logdir is not None:
            test_case.assertEqual(expected_logdir, self._logdir)
        if expected_graph is not None:
            test_case.assertIs(expected_graph, self._graph)
        for step, values in (expected_summaries or {}).items():
            test_case.assertIn(step, self._summaries)
            found = {v.tag: v.simple_value for s in self._summaries[step] for v in s.value}
            for tag, value in values.items():
                test_case.assertIn(tag, found)
                test_case.assertEqual(value, found[tag])
        if expected_added_graphs is not None:
            test_case.assertEqual(expected_added_graphs, self._graphs)
        if expected_added_meta_graphs is not None:
            test_case.assertEqual(len(expected_added_meta_graphs), len(self._meta_graphs))
            for wanted, found in zip(expected_added_meta_graphs, self._meta_graphs):
                assert_meta_graph_protos_equal(test_case, wanted, found)
        if expected_session_logs is not None:
            test_case.assertEqual(expected_session_logs, [log for logs in self._logs.values() for log in logs])

    def add_summary(self, summ: Any, current_global_step: Any = None) -> None:
        """Keeps a summary."""
        if isinstance(summ, bytes):
            summ = Summary.FromString(summ)
        self._summaries.setdefault(current_global_step, []).append(summ)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Keeps a graph."""
        if global_step is not None and global_step < 0:
            raise ValueError("Invalid global_step %s." % global_step)
        if graph_def is not None:
            raise ValueError("Unexpected graph_def %s." % graph_def)
        self._graphs.append(graph)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Keeps the RunMetadata of a step, by its tag."""
        del global_step  # a tag is of one step
        self._added_run_metadata[tag] = run_metadata

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Keeps a MetaGraphDef, whatever the step."""
        del global_step  # a meta graph is of no step
        self._meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Keeps a log."""
        self._logs.setdefault(global_step, []).append(session_log)

    def flush(self) -> None:
        """Does nothing."""

    reopen = close = flush


def latest_event_file(base_dir: str) -> Any:
    """The newest event file of a folder, or None."""
    found = glob.glob(os.path.join(base_dir, "events.out.tfevents.*"))
    return max(found, key=os.path.getmtime) if found else None


def latest_events(base_dir: str) -> List[Event]:
    """The events of the newest event file of a folder."""
    path = latest_event_file(base_dir)
    return [] if path is None else list(summary_module.summary_iterator(path))


def latest_summaries(base_dir: str) -> List[Event]:
    """Those of them that are summaries."""
    return [e for e in latest_events(base_dir) if e.HasField("summary")]
