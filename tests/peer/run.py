# SPDX-License-Identifier: Apache-2.0
"""Runs conformance cases recorded from TensorFlow on the library, where they are at hand.

  run.py SOURCE_DIR LIB.so

The cases lie in a folder `shared/peer` beside the source (or $MILLRACE_SHARED/peer), with the program that runs them;
without it, or without NumPy 2 and ml_dtypes, the test is skipped (exit 77). known_differences.txt lists what may fall
short: cases where TensorFlow's own answer is a defect, or needs what a graph does not hold.
"""

import json
import os
import subprocess
import sys
import tempfile


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def main():
    source, library = sys.argv[1:3]
    shared = os.environ.get("MILLRACE_SHARED") or os.path.join(source, "..", "shared")
    runner = os.path.join(shared, "peer", "diff.py")
    if not os.path.exists(runner):
        skip("there are no recorded cases")
    python = os.environ.get("MILLRACE_PEER_PYTHON", sys.executable)
    check = "import numpy, ml_dtypes; assert int(numpy.__version__.split('.')[0]) >= 2"
    if subprocess.run([python, "-c", check], stderr=subprocess.DEVNULL).returncode:
        skip("NumPy 2 and ml_dtypes are not installed (MILLRACE_PEER_PYTHON names a Python that has them)")
    with open(os.path.join(os.path.dirname(__file__), "known_differences.txt")) as f:
        known = {tuple(line.split()[:2]) for line in f if line.strip() and not line.startswith("#")}
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        run = subprocess.run(
            [python, runner, os.path.join(shared, "peer", "goldens.pkl.xz"), library, "--wave", "2", "--list", "--json", out.name],
            capture_output=True,
            text=True,
        )
        verdicts = json.load(open(out.name))
    short = [line.split()[:3] for line in run.stdout.splitlines() if line.startswith("  ")]
    unknown = [line for line in short if (line[0], line[2]) not in known]
    print("\n".join(line for line in run.stdout.splitlines() if not line.startswith("  ")))
    for what, verdict, name in unknown:
        print("falls short: %s %s %s: %s" % (what, verdict, name, verdicts[name][what][1][:200]))
    sys.exit(1 if unknown or not verdicts else 0)


if __name__ == "__main__":
    main()
