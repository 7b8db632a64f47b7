#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it into a folder, and uses it from elsewhere.

  wheel.py SOURCE CC CXX    run by a Python that has pip, scikit-build-core, nanobind and NumPy

The wheel's build folder is that of `pip wheel .`, build/wheel. With ccache it takes seconds after an ordinary build by the
same compiler; without one, and without a former build of the wheel, the test is skipped unless MILLRACE_WHEEL=1.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

SKIPPED = 77
MOST_BYTES = 20 * 1000 * 1000
MOST_MILLISECONDS = 150
WANTED = (
    "__init__.py",
    "py.typed",
    "_core.pyi",
    "libmillrace.so",
    "libtensorflow.so.1",
    "libtensorflow.so.2",
    "include/tensorflow/c/c_api.h",
    "include/millrace/c_api.h",
    "ops/gen_ops.py",
    "ops/gen_ops.pyi",
    "compat/__main__.py",
    "examples/tutorials/mnist/input_data.py",
)

PROGRAM = """
import millrace as tf, numpy as np, sys
assert tf.__file__.startswith(sys.argv[1]), tf.__file__
x = tf.placeholder(tf.float32, [None, 3])
w = tf.Variable(tf.zeros([3, 1]))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(200):
        session.run(train, {x: np.eye(3)})
    print("%.3f" % session.run(loss, {x: np.eye(3)}))
"""

# CPU time, since the machine may be busy; threads that NumPy starts are NumPy's.
IMPORT = """
import numpy, os, time
threads = len(os.listdir("/proc/self/task"))
begin = time.process_time()
import millrace
print((time.process_time() - begin) * 1000, len(os.listdir("/proc/self/task")) - threads)
"""


def run(*command, **options):
    made = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if made.returncode != 0:
        print(made.stdout[-4000:], made.stderr[-4000:], sep="\n")
        sys.exit("failed: " + " ".join(command[:6]))
    return made.stdout


def check_contents(wheel):
    size = os.path.getsize(wheel)
    print("%s: %d bytes" % (os.path.basename(wheel), size))
    if size > MOST_BYTES:
        sys.exit("larger than %d bytes" % MOST_BYTES)
    names = zipfile.ZipFile(wheel).namelist()
    missing = [n for n in WANTED if "millrace/" + n not in names]
    if missing or not any(n.startswith("millrace/_core.") and n.endswith(".so") for n in names):
        sys.exit("the wheel lacks %s" % (missing or "the extension module"))
    strangers = [n for n in names if not n.startswith("millrace/") and ".dist-info/" not in n]
    if strangers:
        sys.exit("the wheel has what does not belong there: %s" % strangers[:5])


def check_libraries(folder):
    for library in glob.glob(os.path.join(folder, "millrace", "*.so*")):
        lines = run("readelf", "-d", library).splitlines()
        paths = [line for line in lines if "RPATH" in line or "RUNPATH" in line]
        needed = [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line and "millrace" in line]
        if os.path.basename(library).startswith("libtensorflow.so."):  # next to what it stands on
            if needed != ["libmillrace.so"] or not all(line.endswith("[$ORIGIN:$ORIGIN/..]") for line in paths):
                sys.exit("%s looks for %s at %s" % (library, needed, paths))
        elif paths or needed:
            sys.exit("%s looks for libraries where it was built: %s" % (library, paths + needed))


FACE = """
import ctypes, os, sys, numpy as np
import millrace as tf
folder = os.path.dirname(tf.__file__)
for name, version in (("libtensorflow.so.1", b"1."), ("libtensorflow.so.2", b"2.")):
    lib = ctypes.CDLL(os.path.join(folder, name))
    lib.TF_Version.restype = ctypes.c_char_p
    assert lib.TF_Version().startswith(version), (name, lib.TF_Version())
maps = {line.split()[-1] for line in open("/proc/self/maps") if "libmillrace" in line}
assert len(maps) == 1, maps
print(len(maps))
"""


def check_use(folder, elsewhere):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MILLRACE"))}
    environment["PYTHONPATH"] = folder
    loss = run(sys.executable, "-c", PROGRAM, folder, cwd=elsewhere, env=environment).strip()
    if not float(loss) < 0.01:
        sys.exit("training ended at a loss of " + loss)
    run(sys.executable, "-c", FACE, cwd=elsewhere, env=environment)
    measured = [run(sys.executable, "-c", IMPORT, cwd=elsewhere, env=environment).split() for _ in range(5)]
    milliseconds, threads = min(float(m[0]) for m in measured), max(int(m[1]) for m in measured)
    print("import: %.0f ms above NumPy's, %d threads" % (milliseconds, threads))
    if milliseconds > MOST_MILLISECONDS or threads:
        sys.exit("the import takes too long, or starts threads")


def main():
    source, cc, cxx = sys.argv[1:4]
    cheap = shutil.which("ccache") or os.path.exists(os.path.join(source, "build", "wheel", "lib"))
    if not cheap and os.environ.get("MILLRACE_WHEEL") != "1":
        print("skipped: without ccache this builds everything")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as work:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        run(*pip, "wheel", source, "--no-deps", "--no-build-isolation", "--no-index", "-w", work, env=dict(os.environ, CC=cc, CXX=cxx), cwd=work)
        (wheel,) = glob.glob(os.path.join(work, "*.whl"))
        check_contents(wheel)
        folder = os.path.join(work, "installed")
        run(*pip, "install", "--no-deps", "--no-index", "--target", folder, wheel, cwd=work)
        check_libraries(folder)
        elsewhere = os.path.join(work, "elsewhere")
        os.mkdir(elsewhere)
        check_use(folder, elsewhere)


if __name__ == "__main__":
    main()
