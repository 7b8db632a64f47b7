# SPDX-License-Identifier: Apache-2.0
"""Runs interop_test.py in the Python that MILLRACE_TF_PYTHON names; without it, says so and ends with code 77."""

import os
import subprocess
import sys

python = os.environ.get("MILLRACE_TF_PYTHON")
if not python:
    print("skipped: MILLRACE_TF_PYTHON is not set")
    sys.exit(77)
script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interop_test.py")
sys.exit(subprocess.call([python, script, sys.argv[1]]))
