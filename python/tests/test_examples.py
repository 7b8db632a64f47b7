# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python. That of digits comes with the package (test_package), that of a custom op is a test of its own."""

import os
import re
import subprocess
import sys

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")


def _run(program, *arguments):
    made = subprocess.run([sys.executable, os.path.join(_FOLDER, program), *map(str, arguments)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_letters_are_learned():
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", _run("text.py", "--steps", 201))]
    assert len(losses) == 3 and losses[0] > 3 and losses[-1] < 1.7  # a letter at random of 42: 3.7; by frequency alone: 3


def test_letters_of_a_file(tmp_path):
    (tmp_path / "t.txt").write_text("abcd" * 50)
    out = _run("text.py", tmp_path / "t.txt", "--steps", 101)
    assert "abcdabcdabcd" in out.splitlines()[-1]


def test_features_of_a_saved_model_help(tmp_path):
    right = float(re.match(r"([0-9.]+) %", _run("transfer.py", tmp_path / "model")).group(1))
    assert right > 70  # at random: 20; the same program and seed on TensorFlow 1.15.5: 77.0
    assert (tmp_path / "model" / "saved_model.pb").exists()
