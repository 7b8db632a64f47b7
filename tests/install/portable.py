#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at what script/wheel has made, and uses it as strangers would.

  portable.py made                       contents of the newest wheel and SDK that are in build/portable/dist, and python of the
                                         wheel with this Python; 77 where there is none (ctest's install/portable_wheel)
  portable.py contents WHEEL [SDK]       what it holds, the libraries and glibc versions that it asks for, its size
  portable.py python WHEEL PYTHON...     installs it with NumPy for these Pythons, and trains
  portable.py beside WHEEL PYTHON [NAME...]   trains in one process with these packages that PYTHON has (torch, tensorflow,
                                         pandas), imported before it and after it
  portable.py chroot WHEEL RELEASE [SDK] in an otherwise empty Debian of this release: trains in Python and in C++

The last makes the chroot with debootstrap, in build/portable/chroots, and needs root.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_BYTES = 25 * 1000 * 1000
GLIBC = (2, 28)
SYSTEM = {"libstdc++.so.6", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libgcc_s.so.1"}
OURS = {"libmillrace.so", "libmillrace.so.0", "libmillrace_dnnl.so", "libmillrace_serial.so"}
EXPORTED = {
    "libmillrace_dnnl": r".*",
    "libmillrace_serial": r"(omp|GOMP)_\w+",
    "libmillrace.so": r"(TF|TFE|MR)_\w+",
    "libtensorflow.so": r"(TF|TFE)_\w+",
    "_core": r"PyInit__core",
}

TRAIN = """
import re, subprocess, sys
made = subprocess.run([sys.executable, "-m", "millrace.examples.digits"], capture_output=True, text=True, check=False)
found = re.search(r"([0-9.]+) % of 360", made.stdout)
assert found and float(found[1]) > 93, made.stdout + made.stderr
import millrace, numpy
print("Python %s, NumPy %s: %s" % (sys.version.split()[0], numpy.__version__, made.stdout.splitlines()[-1]))
"""

BESIDE = """
import sys
for name in sys.argv[1:]:
    __import__(name)
sys.argv[1:] = ["200"]
from millrace.examples.digits import __main__ as digits
digits.main()
import numpy as np
for name in ("torch", "tensorflow", "pandas"):  # each works with Millrace's library in the process
    other = sys.modules.get(name)
    if other is None: continue
    if name == "torch":
        x = other.nn.functional.conv2d(other.ones(1, 3, 8, 8), other.ones(4, 3, 3, 3))
        assert float(x.sum()) == 4 * 36 * 27
    elif name == "tensorflow":
        assert float(other.reduce_sum(other.nn.conv2d(np.ones((1, 8, 8, 3), np.float32), np.ones((3, 3, 3, 4), np.float32), 1, "VALID"))) == 4 * 36 * 27
    else:
        assert other.DataFrame({"a": [1, 2]}).a.sum() == 3
libraries = {line.split()[-1].rsplit("/", 1)[-1] for line in open("/proc/self/maps") if ".so" in line}
print("OpenMP: %s" % sorted(n for n in libraries if n.startswith(("libgomp", "libomp", "libiomp"))))
"""


def run(*command, **options):
    if not shutil.which(command[0]):
        sys.exit("%s is not there: install the package that has it (apt-get install %s)" % (command[0], command[0]))
    made = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if made.returncode != 0:
        sys.exit("failed: %s\n%s\n%s" % (" ".join(command)[:300], made.stdout[-3000:], made.stderr[-3000:]))
    return made.stdout


def check_library(path):
    name = os.path.basename(path)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path)))
    strangers = needed - SYSTEM - OURS
    if strangers:
        return "%s wants %s" % (name, ", ".join(sorted(strangers)))
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([0-9.]+)", run("readelf", "-V", path))}
    if versions and max(versions) > GLIBC:
        return "%s wants glibc %d.%d" % (name, *max(versions))
    if " .symtab " in run("readelf", "-SW", path):
        return "%s is not stripped" % name
    exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", path).splitlines() if " A " not in line}
    allowed = next(pattern for start, pattern in EXPORTED.items() if name.startswith(start))
    shown = sorted(symbol for symbol in exported if not re.fullmatch(allowed, symbol.split("@")[0]))
    if shown or not exported:
        return "%s shows %s" % (name, shown[:5])
    print("%-45s glibc %d.%d, %d symbols, %d bytes" % (name, *max(versions or {(0, 0)}), len(exported), os.path.getsize(path)))
    return None


def contents(wheel, sdk=None):
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        for package in [wheel] + ([sdk] if sdk else []):
            size = os.path.getsize(package)
            print("%s: %d bytes" % (os.path.basename(package), size))
            if size > MOST_BYTES:
                wrong.append("%s is larger than %d bytes" % (package, MOST_BYTES))
            folder = os.path.join(work, os.path.basename(package))
            if package.endswith(".whl"):
                zipfile.ZipFile(package).extractall(folder)
            else:
                with tarfile.open(package) as archive:
                    archive.extractall(folder, filter="data")
            libraries = [p for p in glob.glob(folder + "/**/*.so*", recursive=True) if not os.path.islink(p)]
            wrong += filter(None, map(check_library, sorted(libraries)))
            if not any(os.path.basename(p).startswith("libmillrace.so") for p in libraries):
                wrong.append("no libmillrace.so in %s" % package)
            for file in ("include/millrace/ops.h", "include/tensorflow/c/c_api.h", "licenses/onednn.txt"):
                if not glob.glob(folder + "/**/" + file, recursive=True):
                    wrong.append("%s lacks %s" % (os.path.basename(package), file))
    if wrong:
        sys.exit("\n".join(wrong))


def made():
    newest = [max(glob.glob(os.path.join(ROOT, "build", "portable", "dist", form)), key=os.path.getmtime, default=None) for form in ("*.whl", "*.tar.gz")]
    if newest[0] is None:
        print("skipped: script/wheel has made no wheel here")
        sys.exit(77)
    contents(*newest)
    python(newest[0], sys.executable)


def clean():
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MILLRACE"))}


def python(wheel, *pythons):
    for interpreter in pythons:
        with tempfile.TemporaryDirectory() as work:
            run(interpreter, "-m", "venv", work + "/venv")
            run(work + "/venv/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, env=clean())
            print(run(work + "/venv/bin/python", "-c", TRAIN, cwd=work, env=clean()).strip())


def beside(wheel, interpreter, *names):
    with tempfile.TemporaryDirectory() as work:
        run(interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", work, wheel)
        for order in (["millrace", *names], [*names, "millrace"]):
            said = run(interpreter, "-c", BESIDE, *order, cwd=work, env=dict(clean(), PYTHONPATH=work)).splitlines()
            print("%s: %s; %s" % (", ".join(order), said[-2], said[-1]))


DIGITS = """set -e
cd /tmp/use
python3 -m venv venv
venv/bin/pip install -q --no-index --find-links . millrace
venv/bin/python train.py
flags() { venv/bin/python -c "import millrace.sysconfig as s; print(' '.join(s.get_$1_flags()))"; }
g++ -std=c++20 -O1 $(flags compile) -Iprogress -DDIGITS_DATA='""' digits/main.cc digits/images.cc progress/progress.cc -o with_wheel $(flags link) -lz
LD_LIBRARY_PATH=$(venv/bin/python -c "import millrace.sysconfig as s; print(s.get_lib())") ./with_wheel --data digits/data --dir run --epochs 3 | tail -n 3
for sdk in *.tar.gz; do
  [ -e "$sdk" ] || continue
  tar xf "$sdk"
  g++ -std=c++20 main.cc -o with_sdk $(PKG_CONFIG_PATH=$(echo millrace-*-linux-*/lib/pkgconfig) pkg-config --cflags --libs millrace)
  echo "SDK: $(LD_LIBRARY_PATH=$(echo millrace-*-linux-*/lib) ./with_sdk) bytes of op declarations"
done
dpkg-query -W 'libc6' 'g++' 'python3' | tr '\\n' ' '
! ldd venv/lib/python3*/site-packages/millrace/libmillrace.so | grep 'not found'
"""


def chroot(wheel, release, sdk=None):
    folder = os.path.join(ROOT, "build", "portable", "chroots", release)
    if not os.path.exists(folder + "/made"):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        archive = run("apt-get", "indextargets", "Component: main", "Identifier: Packages", "--format", "$(REPO_URI)").split()[0]
        run("debootstrap", "--variant=minbase", "--include=python3,python3-venv,g++,pkg-config,zlib1g-dev", release, folder, archive)
        open(folder + "/made", "w").close()
    use = folder + "/tmp/use"
    shutil.rmtree(use, ignore_errors=True)
    os.makedirs(use)
    for package in filter(None, [wheel, sdk]):
        shutil.copy(package, use)
    for example in ("digits", "progress"):
        shutil.copytree(os.path.join(ROOT, "examples", example), os.path.join(use, example))
    shutil.copy(os.path.join(ROOT, "tests", "install", "consumer", "main.cc"), use)
    with open(use + "/train.py", "w", encoding="utf-8") as file:
        file.write(TRAIN)
    version = run("chroot", folder, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    run(
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "--python-version",
        version,
        "--platform",
        "manylinux_2_28_x86_64",
        "--platform",
        "manylinux_2_27_x86_64",
        "--platform",
        "manylinux2014_x86_64",
        "-d",
        use,
        "numpy",
    )
    print(run("chroot", folder, "bash", "-c", DIGITS, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}).strip())


if __name__ == "__main__":
    if sys.argv[1:] == ["made"]:
        sys.exit(made())
    if len(sys.argv) < 3 or sys.argv[1] not in ("contents", "python", "beside", "chroot"):
        sys.exit(__doc__)
    globals()[sys.argv[1]](os.path.abspath(sys.argv[2]), *sys.argv[3:])
