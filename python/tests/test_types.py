# SPDX-License-Identifier: Apache-2.0
"""mypy --strict finds nothing in programs that use the package, its examples among them. The test python/mypy checks the package itself."""

import inspect
import os
import subprocess
import sys

import pytest

import millrace
from millrace.protos.message import Message

pytest.importorskip("mypy")
PACKAGE = os.path.dirname(os.path.abspath(millrace.__file__))
HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def mypy(tmp_path, *arguments):
    environment = dict(os.environ, MYPYPATH=os.path.dirname(PACKAGE))
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *arguments],
        cwd=str(tmp_path),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_programs(cache):
    made = mypy(cache, "--strict", "--config-file=", "--follow-imports=silent", os.path.join(HERE, "typed", "program.py"), os.path.join(PACKAGE, "examples"))
    assert made.returncode == 0, made.stdout + made.stderr
    assert "no issues found in" in made.stdout


def test_mistakes_are_found(cache, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import millrace as tf\nx: int = tf.zeros([2])\ny: tf.Tensor = tf.Session()\ntf.matmul()\n")
    made = mypy(cache, "--strict", "--config-file=", "--follow-imports=silent", str(program))
    assert [line.split(":")[1] for line in made.stdout.splitlines() if ": error:" in line] == ["2", "3", "4"], made.stdout


def core_names():
    """The names that half of the programs of TensorFlow 1.x make do with."""
    with open(os.path.join(HERE, "core_names.txt"), encoding="utf-8") as file:
        return file.read().split()


def test_core_names_have_types(cache, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import millrace as tf\n" + "".join("reveal_type(tf.%s)\n" % name for name in core_names()))
    made = mypy(cache, "--strict", "--config-file=", "--follow-imports=silent", str(program))
    shown = [line for line in made.stdout.splitlines() if "Revealed type is" in line]
    assert made.returncode == 0 and len(shown) == len(core_names()), made.stdout
    assert not [line for line in shown if 'is "Any"' in line or "def (*args: Any, **kwargs: Any)" in line]


def test_wrong_keywords_are_found(cache, tmp_path):
    program = tmp_path / "program.py"
    calls = [
        "tf.nn.relu(1.0, nmae='x')",
        "tf.reduce_sum(1.0, axs=0)",
        "tf.square(1.0, nm='x')",
        "tf.exp(1.0, nm='x')",
        "tf.train.AdamOptimizer(rate=0.1)",
        "tf.assign(1, 2, naem='x')",
        "tf.summary.scalar('a', 1.0, nmae='x')",
        "tf.nn.conv2d(1, 2, stride=3)",
    ]
    program.write_text("import millrace as tf\n" + "\n".join(calls) + "\n")
    made = mypy(cache, "--config-file=", "--follow-imports=silent", str(program))
    wrong = {line.split(":")[1] for line in made.stdout.splitlines() if "nexpected keyword argument" in line}
    assert wrong == {str(n) for n in range(2, 2 + len(calls))}, made.stdout


def test_core_names_say_what_they_take():
    for name in core_names():
        value = millrace
        for part in name.split("."):
            value = getattr(value, part)
        if callable(value) and not isinstance(value, millrace.DType):
            assert value.__doc__ and len(value.__doc__) > 10, name
            if name == "zeros_initializer" or isinstance(value, type) and issubclass(value, Message):
                continue  # called with a shape too; with any field of the message
            parameters = list(inspect.signature(value).parameters.values())
            assert not parameters or not all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters), name


def test_program_runs():
    made = subprocess.run([sys.executable, os.path.join(HERE, "typed", "program.py"), "--steps=30"], capture_output=True, text=True, check=False)
    assert made.returncode == 0 and "(2,) 1.0" in made.stdout, made.stdout + made.stderr
