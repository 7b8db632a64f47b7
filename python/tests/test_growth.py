# SPDX-License-Identifier: Apache-2.0
"""A loop that adds operations between runs is told so once, with its line."""

import re
import warnings

import numpy as np
import pytest

import millrace as tf


def line_of(mark):
    with open(__file__) as source:
        return next(i for i, text in enumerate(source, 1) if text.rstrip().endswith("# " + mark))


def caught(function):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function()
    return [w for w in seen if issubclass(w.category, RuntimeWarning)]


GOLDEN = (
    "The graph grows in a loop: operations made here were new in four runs (the graph has 11 now). Each such run is prepared anew, "
    "and the memory comes back with the graph only. Make them before the loop and feed what changes; Graph.finalize() makes it an error."
)


def test_a_growing_loop_warns_once_at_the_fourth_run():
    values = tf.constant(np.arange(10.0))
    runs = []
    session = tf.Session()

    def loop():
        for i in range(50):
            session.run(values[i % 10])  # indexing
            runs.append(len(caught_so_far))

    with warnings.catch_warnings(record=True) as caught_so_far:
        warnings.simplefilter("always")
        loop()
    assert [str(w.message) for w in caught_so_far] == [re.sub(r"has \d+ now", "has %s now" % _count(caught_so_far), GOLDEN)]
    assert (caught_so_far[0].filename, caught_so_far[0].lineno) == (__file__, line_of("indexing"))
    assert runs[:4] == [0, 0, 0, 1]


def _count(seen):
    return re.search(r"has (\d+) now", str(seen[0].message)).group(1)


def test_a_callable_is_looked_at_too():
    x = tf.constant(1.0)
    session = tf.Session()
    call = session.make_callable(x)
    seen = caught(lambda: [(call(), tf.identity(x)) for _ in range(20)])
    assert len(seen) == 1


def test_runs_in_between_do_not_hide_it():
    x = tf.constant(1.0)
    session = tf.Session()
    seen = caught(lambda: [(session.run(x + 1.0), session.run(x), session.run(x)) for _ in range(20)])
    assert len(seen) == 1


def test_a_program_that_builds_and_runs_by_turns_is_not_blamed():
    def program():
        with tf.Session() as session:
            a = tf.constant(1.0)
            session.run(a)
            b = a + 1.0
            session.run(b)
            c = b * 2.0
            session.run(c)
            d = tf.sqrt(c)
            session.run(d)
            for _ in range(100):
                session.run([a, b, c, d])

    assert caught(program) == []


def test_finalize_makes_it_an_error():
    x = tf.constant(1.0)
    x.graph.finalize()
    with tf.Session() as session:
        with pytest.raises(RuntimeError, match="finalized"):
            session.run(x + 1.0)
