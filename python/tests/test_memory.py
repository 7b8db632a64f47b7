# SPDX-License-Identifier: Apache-2.0
"""Memory does not grow with graphs that are gone, nor with runs. MILLRACE_MEMORY=full: 10,000 graphs and 10^6 runs."""

import os
import subprocess
import sys

import pytest

FULL = os.environ.get("MILLRACE_MEMORY") == "full"

PROLOGUE = """
import ctypes, gc, sys
import numpy as np
import millrace as tf

def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096

def measure(step, count):
    for i in range(max(count // 10, 20)):
        step(i)
    before = resident()
    for i in range(count):
        step(i)
    after = resident()
    print((after - before) / count, before, after)
"""

MODEL = """
def model():
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    w = tf.get_variable("w", [8, 4], initializer=tf.random_normal_initializer(seed=1))
    b = tf.Variable(tf.zeros([4]), name="b")
    loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w) + b)))
    return x, loss, tf.train.AdamOptimizer(0.01).minimize(loss)
data = np.ones([16, 8], np.float32)
"""

GRAPHS = {
    "models": MODEL
    + """
def step(i):
    with tf.Graph().as_default():
        x, loss, train = model()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run([loss, train], {x: data})
""",
    "default graphs": MODEL
    + """
def step(i):
    tf.reset_default_graph()
    x, loss, train = model()
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    session.run(train, {x: data})
""",
    "functions that refer back": """
def step(i):
    graph = tf.Graph()
    with graph.as_default():
        session = tf.Session()
        y = tf.py_func(lambda: np.float32(session.graph is graph), [], tf.float32)
        call = session.make_callable(y)
        assert session.run(y) == 1 and call() == 1
        graph.kept = call
""",
    "loops and conditionals": """
def step(i):
    with tf.Graph().as_default():
        v = tf.Variable(1.)
        n = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * v), [0, 1.])[1]
        c = tf.cond(n > 0., lambda: n * 2., lambda: n)
        g = tf.gradients(c, v._ref() if hasattr(v, "_ref") else v)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run([c, g])
""",
}

RUNS = {
    "feeds and fetches": """
x = tf.placeholder(tf.float32, [None])
y, session = x * 2., tf.Session()
small, large = np.ones(4, np.float32), np.ones(4096, np.float32)
def step(i):
    session.run([y, {"y": y}], {x: large if i % 16 == 0 else small})
""",
    "training": MODEL
    + """
x, loss, train = model()
session = tf.Session()
session.run(tf.global_variables_initializer())
def step(i):
    session.run([loss, train], {x: data})
""",
    "functions": """
x = tf.placeholder(tf.float32, [None])
y, session = tf.py_func(lambda v: v * 2, [x], tf.float32), tf.Session()
big = np.ones(4096, np.float32)
def step(i):
    session.run(y, {x: big})
""",
    "errors": """
x = tf.placeholder(tf.float32, [None])
y, session = tf.reshape(x, [3]), tf.Session()
def step(i):
    try:
        session.run(y, {x: [1., 2.]})
    except tf.errors.InvalidArgumentError:
        pass
""",
    "strings": """
x = tf.placeholder(tf.string, [None])
y, session = tf.identity(x), tf.Session()
def step(i):
    session.run(y, {x: [b"a" * 100, "b"]})
""",
}


def growth(program, count):
    """Bytes per step."""
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE + program + "\nmeasure(step, %d)" % count],
        capture_output=True,
        text=True,
        timeout=3600 if FULL else 120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    per_step, before, after = map(float, done.stdout.split())
    print("%.1f bytes a step: %.1f MB, then %.1f MB" % (per_step, before / 1e6, after / 1e6))
    return after - before


@pytest.mark.parametrize("program", GRAPHS.values(), ids=[n.replace(" ", "_") for n in GRAPHS])
def test_graphs_that_are_dropped(program):
    assert growth(program, 10000 if FULL else 200) < 2 << 20


@pytest.mark.parametrize("program", RUNS.values(), ids=[n.replace(" ", "_") for n in RUNS])
def test_runs(program):
    assert growth(program, 1000000 if FULL else 5000) < 2 << 20


RESTS = """
x = tf.placeholder(tf.float32, [1000, 1000])
sums = [tf.reduce_sum(tf.tile(x, [25, 2]) + float(i)) for i in range(3)]  # 200 MB each, two at a time
session = tf.Session()
session.run(tf.add_n(sums), {x: np.ones([1000, 1000])})
high, end = resident(), time.monotonic() + 60
while resident() > high - (250 << 20) and time.monotonic() < end:
    time.sleep(1)
print(high, resident())
"""


def test_a_process_that_rests_gives_its_pages_back():
    program = "import time\n" + PROLOGUE + RESTS
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    high, rest = map(int, done.stdout.split())
    assert high > 400 << 20 and rest < high - (250 << 20), (high, rest)  # after 10 to 20 seconds
