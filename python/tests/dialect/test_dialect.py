# SPDX-License-Identifier: Apache-2.0
"""Every documented way of calling the functions that programs use most gives what NumPy says.

With MILLRACE_TF_PYTHON, a Python that has the TensorFlow wheel, the wheel is asked about the same calls in a process of its own.
"""

import os
import pickle
import subprocess
import sys

import pytest

import millrace as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from evaluate import evaluate, same
from suite import CASES

_ALL = [
    pytest.param(c, call, id="%s-%s%d" % (c.name.replace(" ", "_"), kind, i))
    for c in CASES
    for kind, calls in (("", c.calls), ("old", c.old))
    for i, call in enumerate(calls)
]


@pytest.mark.parametrize("case, call", _ALL)
def test_call(case, call):
    difference = same(evaluate(tf, call), case.expected)
    assert difference is None, difference


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    python = os.environ.get("MILLRACE_TF_PYTHON")
    if not python:
        pytest.skip("MILLRACE_TF_PYTHON names no Python with TensorFlow")
    path = tmp_path_factory.mktemp("wheel") / "reference.pickle"
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "evaluate.py")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([python, script, str(path)], check=True, env=environment, timeout=900)
    return pickle.loads(path.read_bytes())


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name.replace(" ", "_")) for c in CASES if c.wheel])
def test_same_as_the_wheel(wheel, case):
    """Where the wheel takes a call, it gives what Millrace gives. At least one call of each function must be one it takes."""
    taken = 0
    for i, call in enumerate(case.calls):
        kind, value = wheel[case.name, i]
        if kind == "error":
            continue
        taken += 1
        difference = same(evaluate(tf, call), value)
        assert difference is None, "call %d: %s" % (i, difference)
    assert taken, wheel[case.name, 0]
