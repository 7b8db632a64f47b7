# SPDX-License-Identifier: Apache-2.0
"""Tests of graphs with pytest: a `conftest.py` with `pytest_plugins = ["millrace.pytest_plugin"]`, or `pytest -p millrace.pytest_plugin`.

Each test starts with an empty default graph and the same seeds, and must leave what it has entered. `session` is a session of the test's graph.
"""

from __future__ import annotations

import random
from typing import Any, Iterator, List

import numpy as np
import pytest

import millrace as tf
import millrace._core as _core
from millrace.framework.default_session import sessions


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("millrace")
    group.addoption("--millrace-seed", type=int, default=1, metavar="N", help="seed of graphs, NumPy and random in each test (default: 1)")
    parser.addini("millrace_as_tensorflow", "whether `import tensorflow` imports Millrace in tests", type="bool", default=False)


def pytest_configure(config: Any) -> None:
    if config.getini("millrace_as_tensorflow"):
        from millrace.compat import imports

        imports.install()


def pytest_report_header(config: Any) -> str:
    return "millrace: %s, --millrace-seed=%d" % (tf.__version__, config.getoption("--millrace-seed"))


def _leave_all() -> List[str]:
    """Leaves what is entered on this thread; what that was, outermost first."""
    left = []
    for session in list(sessions.stack):
        interactive = isinstance(session, tf.InteractiveSession)
        left.append("an InteractiveSession that nobody has closed" if interactive else "a session that is still the default one (`with` or as_default())")
        if interactive:
            session.close()
    sessions.stack.clear()
    if _core.stack_depth():
        left.append("graphs that are still the default one (`with graph.as_default()`): %d" % _core.stack_depth())
    while _core.stack_depth():
        _core.pop_graph()
    return left


@pytest.fixture(autouse=True)
def _own_graph(request: Any) -> Iterator[None]:
    """An empty default graph, and seeds. Fails a test that leaves contexts behind, in which later tests would build."""
    seed = request.config.getoption("--millrace-seed")
    random.seed(seed)
    np.random.seed(seed)
    tf.reset_default_graph()
    tf.set_random_seed(seed)
    yield
    left = _leave_all()
    tf.reset_default_graph()
    if left:
        pytest.fail("the test has left behind:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture
def session(_own_graph: None) -> Iterator[tf.Session]:
    """A session of the test's graph, the default one for `eval` and `run`. It is closed behind the test."""
    with tf.Session() as made:
        yield made
