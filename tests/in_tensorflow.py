# SPDX-License-Identifier: Apache-2.0
"""in_tensorflow.py SCRIPT ARGUMENT...: runs it in the Python that MILLRACE_TF_PYTHON names, which has TensorFlow; without it,
says so and ends with code 77. {include} among the arguments is the folder of TensorFlow's headers."""

import os
import subprocess
import sys

python = os.environ.get("MILLRACE_TF_PYTHON")
if not python:
    print("skipped: MILLRACE_TF_PYTHON is not set")
    sys.exit(77)
arguments = sys.argv[1:]
if "{include}" in arguments:
    find = "import importlib.util as u; print(u.find_spec('tensorflow').submodule_search_locations[0])"
    folder = subprocess.run([python, "-c", find], check=True, capture_output=True, text=True).stdout.strip()
    arguments = [os.path.join(folder, "include") if a == "{include}" else a for a in arguments]
sys.exit(subprocess.call([python] + arguments))
