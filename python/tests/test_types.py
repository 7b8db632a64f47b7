# SPDX-License-Identifier: Apache-2.0
"""mypy --strict finds nothing in programs that use the package, its examples among them. script/lint checks the package itself."""
import os
import subprocess
import sys

import pytest

import millrace

pytest.importorskip("mypy")
PACKAGE = os.path.dirname(os.path.abspath(millrace.__file__))
HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def mypy(tmp_path, *arguments):
    environment = dict(os.environ, MYPYPATH=os.path.dirname(PACKAGE))
    return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *arguments], cwd=str(tmp_path), env=environment,
                          capture_output=True, text=True, check=False, timeout=280)


def test_programs(cache):
    made = mypy(cache, "--strict", "--config-file=", "--follow-imports=silent", os.path.join(HERE, "typed", "program.py"),
                os.path.join(PACKAGE, "examples"))
    assert made.returncode == 0, made.stdout + made.stderr
    assert "no issues found in" in made.stdout


def test_mistakes_are_found(cache, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import millrace as tf\nx: int = tf.zeros([2])\ny: tf.Tensor = tf.Session()\ntf.matmul()\n")
    made = mypy(cache, "--strict", "--config-file=", "--follow-imports=silent", str(program))
    assert [line.split(":")[1] for line in made.stdout.splitlines() if ": error:" in line] == ["2", "3", "4"], made.stdout


def test_program_runs():
    made = subprocess.run([sys.executable, os.path.join(HERE, "typed", "program.py"), "--steps=30"], capture_output=True, text=True, check=False)
    assert made.returncode == 0 and "(2,) 1.0" in made.stdout, made.stdout + made.stderr
