# SPDX-License-Identifier: Apache-2.0
"""Small programs in the style of TensorFlow 1.x, run as they are; with MILLRACE_TF_PYTHON (a Python with TensorFlow and tf_keras),
TensorFlow runs them too and must print the same."""

import glob
import os
import re
import subprocess
import sys

import pytest

import millrace

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PROGRAMS = sorted(os.path.basename(p)[:-3] for p in glob.glob(os.path.join(FOLDER, "*.py")))
# What depends on the random numbers of a graph, since TensorFlow numbers its nodes differently from release to release; and
# what TensorFlow 2 no longer has.
NOT_COMPARED = {"word2vec", "slim_net"}


def run(command, folder, **environment):
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert made.returncode == 0, made.stderr[-3000:]
    return made.stdout


def expected(name):
    with open(os.path.join(FOLDER, name + ".txt")) as file:
        return file.read()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    command = [sys.executable, "-m", "millrace.compat", os.path.join(FOLDER, name + ".py")]
    assert run(command, tmp_path, PYTHONPATH=os.path.dirname(os.path.dirname(os.path.abspath(millrace.__file__)))) == expected(name)


@pytest.mark.skipif("MILLRACE_TF_PYTHON" not in os.environ, reason="no Python with TensorFlow is named")
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in NOT_COMPARED])
def test_tensorflow_prints_the_same(name, tmp_path):
    with open(os.path.join(FOLDER, name + ".py")) as file:
        text = re.sub(r"^import tensorflow as tf$", "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()", file.read(), flags=re.M)
    (tmp_path / "program.py").write_text(text)
    assert run(
        [os.environ["MILLRACE_TF_PYTHON"], "program.py"],
        tmp_path,
        TF_USE_LEGACY_KERAS="1",
        TF_ENABLE_ONEDNN_OPTS="0",
        CUDA_VISIBLE_DEVICES="",
        TF_CPP_MIN_LOG_LEVEL="3",
    ) == expected(name)
