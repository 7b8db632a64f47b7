#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a source of ops and kernels, and one of file systems, against TensorFlow's headers and against ours, and compares what both do. Then
loads TensorFlow's binaries here, where libtensorflow_framework.so.2 is ours.

  beside_tensorflow.py CXX OURS MILLRACE_PYTHON PACKAGE FACE

OURS is the library that the build made of tensorflow_kernels.cc with our headers, with that of memory_files.cc beside it; FACE is our libtensorflow.so.2. Skipped unless MILLRACE_TF_PYTHON names a
Python with the tensorflow package.
"""

import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command, **variables):
    made = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", **variables))
    if made.returncode != 0:
        sys.exit("failed: %s\n%s\n%s" % (" ".join(command[:4]), made.stdout[-2000:], made.stderr[-4000:]))
    return made.stdout


def compare(what, want, got):
    differing = [k for k in sorted(set(want) | set(got)) if want.get(k) != got.get(k)]
    for key in differing:
        print("%s\n  TensorFlow: %s\n  Millrace:   %s" % (key, want.get(key), got.get(key)))
    print("%s: %d of %d results agree" % (what, len(want) - len(differing), len(want)))
    return len(differing)


def main():
    python = os.environ.get("MILLRACE_TF_PYTHON")
    if not python:
        print("skipped: MILLRACE_TF_PYTHON names no Python that has TensorFlow")
        sys.exit(SKIPPED)
    cxx, ours, our_python, package, face = sys.argv[1:6]
    where = "import tensorflow.sysconfig as s; print(s.get_include()); print(s.get_lib())"
    include, library = run(python, "-c", where).split()[-2:]
    with tempfile.TemporaryDirectory() as work:
        os.symlink(face, os.path.join(work, "libtensorflow_framework.so.2"))

        def differences(what, source, name, library_of_ours):
            """How many results of a program differ for a source, compiled for TensorFlow and for us."""
            theirs = os.path.join(work, source + ".so")
            made = [cxx, "-std=c++17", "-O1", "-fPIC", "-shared", "-I" + include, os.path.join(HERE, source), "-o", theirs]
            run(*made, "-L" + library, "-l:libtensorflow_framework.so.2", "-Wl,-rpath," + library)
            program = os.path.join(HERE, name)
            want = json.loads(run(python, program, "tensorflow", theirs))
            got = json.loads(run(our_python, program, "millrace", library_of_ours, PYTHONPATH=package))
            binary = json.loads(run(our_python, program, "millrace", theirs, PYTHONPATH=package, LD_LIBRARY_PATH=work))
            return compare(what + ", source compiled here", want, got) + compare(what + ", binary loaded here", want, binary)

        wrong = differences("ops and kernels", "tensorflow_kernels.cc", "program.py", ours)
        files = os.path.join(os.path.dirname(ours), "plugin_memory_files.so")
        wrong += differences("file systems", "memory_files.cc", "files_program.py", files)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
