# SPDX-License-Identifier: Apache-2.0
"""Files of every kind cross between this package and TensorFlow, both ways. MILLRACE_TF_PYTHON names a Python that has
TensorFlow, and `safetensors` for that kind; without it what we write is read by ourselves alone."""

import json
import os
import subprocess
import sys

import pytest

from files_of_both import KINDS

_PYTHON = os.environ.get("MILLRACE_TF_PYTHON")
_PROGRAM = os.path.join(os.path.dirname(__file__), "files_of_both.py")


def _told(library, does, folder):
    environment = {k: v for k, v in os.environ.items() if library == "millrace" or k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable if library == "millrace" else _PYTHON, _PROGRAM, library, does, str(folder)], capture_output=True, text=True, env=environment
    )
    assert "TOLD" in done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout.split("TOLD")[1])


@pytest.fixture(scope="module", params=["millrace to millrace", "millrace to tensorflow", "tensorflow to millrace"])
def crossing(request, tmp_path_factory):
    """What became of each kind, written and read."""
    writer, _, reader = request.param.split()
    if "tensorflow" in (writer, reader) and not _PYTHON:
        pytest.skip("skipped: MILLRACE_TF_PYTHON names no Python with TensorFlow")
    folder = tmp_path_factory.mktemp("files")
    return _told(writer, "write", folder), _told(reader, "read", folder)


@pytest.mark.parametrize("kind", KINDS)
def test_files_cross(crossing, kind):
    written, read = crossing
    if "skipped" in (written[kind], read[kind]):
        pytest.skip("skipped: no package safetensors")
    assert written[kind] == ""
    assert read[kind] == ""
