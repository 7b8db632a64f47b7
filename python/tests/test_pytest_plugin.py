# SPDX-License-Identifier: Apache-2.0
"""millrace.pytest_plugin, as the conftest.py of a user's project names it."""

import os
import subprocess
import sys


def _pytest(folder, source, *arguments, ini=""):
    (folder / "conftest.py").write_text('pytest_plugins = ["millrace.pytest_plugin"]\n')
    (folder / "pytest.ini").write_text("[pytest]\n" + ini)
    (folder / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
    return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True)


def test_each_test_has_a_graph_of_its_own_and_the_same_seeds(tmp_path):
    source = """
import random
import numpy as np
import pytest
import millrace as tf

seen = []

@pytest.mark.parametrize("time", range(2))
def test_same(time, session):
    assert tf.get_default_session() is session and session.graph is tf.get_default_graph()
    value = tf.get_variable("v", [], initializer=tf.random_normal_initializer())
    session.run(tf.global_variables_initializer())
    seen.append((value.name, session.run(value), np.random.rand(), random.random()))
    assert seen[0] == seen[time]
    print("drew %r" % (seen[0],))

def test_empty():
    assert tf.get_default_graph().get_operations() == [] and tf.get_default_session() is None
"""
    first = _pytest(tmp_path, source, "-s")
    assert first.returncode == 0 and "3 passed" in first.stdout, first.stdout
    assert "--millrace-seed=1" in first.stdout  # to be seen where a test fails
    other = _pytest(tmp_path, source, "-s", "--millrace-seed", "2")
    drew = [next(line for line in run.stdout.splitlines() if "drew" in line) for run in (first, other)]
    assert other.returncode == 0 and drew[0] != drew[1]


def test_what_a_test_leaves_behind_fails_it_and_no_other(tmp_path):
    source = """
import millrace as tf

def test_interactive():
    tf.InteractiveSession()

def test_graph():
    tf.Graph().as_default().__enter__()

def test_session():
    tf.Session().__enter__()

def test_clean(session):
    assert len(tf.get_default_graph().get_operations()) == 0
    with tf.Graph().as_default(), tf.Session():
        tf.constant(1)
"""
    run = _pytest(tmp_path, source)
    assert "4 passed, 3 errors" in run.stdout, run.stdout
    assert "an InteractiveSession that nobody has closed" in run.stdout
    assert "a session that is still the default one" in run.stdout and "graphs that are still the default one" in run.stdout


def test_tests_of_tensorflow_programs_run_where_the_project_says_so(tmp_path):
    source = """
import tensorflow as tf

def test_add(session):
    assert tf.matmul.__module__.startswith("millrace")
    assert session.run(tf.constant(1) + 1) == 2
"""
    run = _pytest(tmp_path, source, ini="millrace_as_tensorflow = true\n")
    assert run.returncode == 0 and "1 passed" in run.stdout, run.stdout
