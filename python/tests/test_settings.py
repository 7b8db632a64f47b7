# SPDX-License-Identifier: Apache-2.0
"""Settings of the environment: declared once, checked alike everywhere, and read nowhere else."""

import glob
import os
import re
import subprocess
import sys

import pytest

from millrace import settings
from millrace.launch import contract, identity

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _sources(folders, ends):
    for folder in folders:
        for end in ends:
            for path in glob.glob(os.path.join(ROOT, folder, "**", "*." + end), recursive=True):
                if not path.endswith("_test.cc"):
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, ROOT), file.read()


def test_the_documentation_has_the_declared_table():
    with open(os.path.join(ROOT, "docs", "running.md"), encoding="utf-8") as file:
        told = file.read()
    assert settings.markdown() in told, "write what `python -m millrace.settings` prints into docs/running.md"


def test_every_name_in_the_sources_is_declared():
    named = {}
    for path, source in _sources(("src", "python/src", "python/millrace", "include"), ("cc", "h", "py")):
        for name in re.findall(r"\"(MILLRACE_[A-Z_]*[A-Z])\"", source):
            named.setdefault(name, path)
    assert {"MILLRACE_NUM_THREADS", "MILLRACE_TRACE", "MILLRACE_DRAIN_SECONDS"} <= set(named)
    assert {n: p for n, p in named.items() if n not in settings.declared() and n not in settings.names_of_tests()} == {}
    assert set(settings.declared()) - set(named) == set(), "declared, but nobody's"


def test_nobody_else_asks_the_environment():
    asking = []
    for path, source in _sources(("src", "python/src", "include", "plugins/grpc"), ("cc", "h")):
        calls = re.findall(r"getenv\(([^)]*)\)", source)
        asking += [(path, c) for c in calls if "TMP" not in c and c != "name"]  # `name`: the one reader, base/settings.cc
    assert asking == [("python/src/api.cc", '"MILLRACE_LIBRARY"')], "it is where the reader itself comes from"
    readers = [p for p, source in _sources(("src",), ("cc", "h")) if "getenv(name)" in source]
    assert readers == ["src/base/settings.cc"]
    asking = []
    for path, source in _sources(("python/millrace",), ("py",)):
        asking += [(path, line) for line in re.findall(r".*environ(?:\.get\(|\[)\"MILLRACE_\w+\"(?!\] = ).*", source)]
    assert asking == []


@pytest.mark.parametrize(
    "name, value, fault",
    [
        ("MILLRACE_NUM_THREADS", "0", "MILLRACE_NUM_THREADS is '0', want a number from 1 on"),
        ("MILLRACE_NUM_THREADS", "two", "MILLRACE_NUM_THREADS is 'two', want a number from 1 on"),
        ("MILLRACE_NUM_THREADS", "3", None),
        ("MILLRACE_NUM_THREADS", "", None),
        ("MILLRACE_PORT", "70000", "MILLRACE_PORT is '70000', want a number from 1 to 65535"),
        ("MILLRACE_DRAIN_SECONDS", "0.5", None),
        ("MILLRACE_DRAIN_SECONDS", "nan", "MILLRACE_DRAIN_SECONDS is 'nan', want seconds from 0 to 31536000"),
        ("MILLRACE_MAX_ISA", "avx", "MILLRACE_MAX_ISA is 'avx', want one of sse2, sse4, avx2, avx512"),
        ("MILLRACE_VERIFY_GRAPHS", "yes", "MILLRACE_VERIFY_GRAPHS is 'yes', want 0 or 1"),
        ("MILLRACE_TRACE", "/anywhere", None),
    ],
)
def test_values_are_of_their_kind_and_range(name, value, fault):
    assert settings.declared()[name].fault(value) == fault
    assert settings.faults({name: value, "OTHER": "x"}) == ([fault] if fault else [])
    if fault:
        with pytest.raises(ValueError, match="want"):
            settings.text(name, {name: value})


@pytest.mark.parametrize(
    "name, value, fault",
    [
        ("MILLRACE_TRACE_STEPS", "0-9,100", None),
        ("MILLRACE_TRACE_STEPS", "abc", "MILLRACE_TRACE_STEPS is 'abc', want steps such as 0-9,100"),
        ("MILLRACE_TRACE_STEPS", "3-2", "MILLRACE_TRACE_STEPS is '3-2', want steps such as 0-9,100"),
        ("MILLRACE_TRACE", "/proc/nope", "MILLRACE_TRACE is '/proc/nope', want a folder: /proc: No such file or directory"),
        ("MILLRACE_TRACE", __file__ + "/a", "MILLRACE_TRACE is '%s/a', want a folder: %s: Not a directory" % (__file__, __file__)),
        ("MILLRACE_TLS_CA", "/nope", "MILLRACE_TLS_CA is '/nope', want a file: No such file or directory"),
        ("MILLRACE_HOSTFILE", __file__, None),
        ("MILLRACE_LOG_FIELDS", "job=ps,task=0", None),
        ("MILLRACE_LOG_FIELDS", "zz", "MILLRACE_LOG_FIELDS is 'zz', want fields such as job=ps,task=0"),
        ("MILLRACE_HEALTH", "[::1]:8080", None),
        ("MILLRACE_HEALTH", "zz", "MILLRACE_HEALTH is 'zz', want [HOST:]PORT"),
        ("MILLRACE_BIND", "[::]:22", None),
        ("MILLRACE_BIND", "a:b:c", "MILLRACE_BIND is 'a:b:c', want HOST or HOST:PORT"),
    ],
)
def test_the_doctor_looks_at_texts_and_at_files(name, value, fault):
    assert settings.text(name, {name: value}) == value, "its reader checks it"
    assert settings.faults({name: value}) == ([fault] if fault else [])


def test_names_that_tests_read_are_known():
    named = {}
    for path, source in _sources(("src", "tests", "python/tests", "bench", "fuzz"), ("cc", "h", "c", "py")):
        for name in re.findall(r"(?:environ\.get\(|environ\[|getenv\()\"(MILLRACE_[A-Z_]*[A-Z])\"(?!\] =)", source):
            named.setdefault(name, path)
    assert {"MILLRACE_TF_PYTHON", "MILLRACE_KILLS"} <= set(named)
    assert {n: p for n, p in named.items() if n not in settings.declared() and n not in settings.names_of_tests()} == {}
    assert settings.faults({"MILLRACE_TF_PYTHON": "x"}) == []


def test_defaults_are_the_declared_ones(monkeypatch):
    monkeypatch.delenv("MILLRACE_DRAIN_SECONDS", raising=False)
    assert contract.drain_seconds() == 25
    monkeypatch.setenv("MILLRACE_DRAIN_SECONDS", "3.5")
    assert contract.drain_seconds() == 3.5
    slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_NODELIST": "a", "MILLRACE_PORT": "x"}
    with pytest.raises(ValueError, match="MILLRACE_PORT is 'x', want a number from 1 to 65535"):
        identity.who_am_i(environ=slurm)


def test_what_the_log_does_not_take_is_told_before_anything_else_is():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MILLRACE_MIN_LOG_LEVEL": "x"}
    done = subprocess.run([sys.executable, "-c", "import millrace as tf; tf.constant(1)"], env=environ, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.endswith("W ignoring a setting: MILLRACE_MIN_LOG_LEVEL is 'x', want a number from 0 on\n"), done.stderr


def test_the_library_says_what_it_does_not_take():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MILLRACE_NUM_THREADS": "many"}
    code = "import millrace as tf; print(tf.Session().run(tf.constant(1)))"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.stdout == "1\n" and "MILLRACE_NUM_THREADS is 'many', want a number from 1 on" in done.stderr


def test_a_name_that_is_none_is_told_once_at_start():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MILLRACE_NUM_THREAD": "2", "MILLRACE_TF_PYTHON": "python"}
    environ.pop("MILLRACE_MIN_LOG_LEVEL", None)
    code = "import millrace as tf; print([int(tf.Session().run(tf.constant(i))) for i in range(2)])"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    assert done.stdout == "[0, 1]\n", done.stderr
    assert re.fullmatch(r".* W MILLRACE_NUM_THREAD is no setting; did you mean MILLRACE_NUM_THREADS\?\n", done.stderr), done.stderr


@pytest.mark.parametrize(
    "setting, wrong",
    [
        ("MILLRACE_LIBRARY=/nope.so", "MILLRACE_LIBRARY is '/nope.so', want the library that belongs to this package: unset it"),
        ("MILLRACE_MEMORY_LIMIT_BYTES=1000", "MILLRACE_MEMORY_LIMIT_BYTES is '1000', which does not do for a product of 512"),
        ("MILLRACE_SWITCHED_OFF_STAGES=nope", "MILLRACE_SWITCHED_OFF_STAGES: 'nope' is no stage"),
        ("MILLRACE_TRACEBACK=yes", "MILLRACE_TRACEBACK is 'yes', want 0 or 1"),
        ("MILLRACE_TRACE=/proc/nope", "MILLRACE_TRACE is '/proc/nope', want a folder"),
    ],
)
def test_the_doctor_always_answers(setting, wrong):
    name, value = setting.split("=")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), name: value}
    done = subprocess.run([sys.executable, "-m", "millrace", "doctor"], env=environ, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "", done.stderr
    told = done.stdout[done.stdout.index("\nwrong\n") :].splitlines()[2:]
    assert len(told) == 1 and wrong in told[0] and "\npython " in done.stdout, done.stdout


def test_without_the_library_other_commands_say_so():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MILLRACE_LIBRARY": "/nope.so"}
    done = subprocess.run([sys.executable, "-m", "millrace", "explain", __file__], env=environ, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("millrace: ") and done.stderr.count("\n") == 1, done.stderr


def test_the_doctor_shows_all_settings():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MILLRACE_MAX_STEPS": "12", "MILLRACE_PORTS": "1"}
    done = subprocess.run([sys.executable, "-m", "millrace", "doctor", "--settings"], env=environ, capture_output=True, text=True)
    assert done.returncode == 1 and "MILLRACE_PORTS is no setting; did you mean MILLRACE_PORT?" in done.stdout
    assert re.search(r"MILLRACE_MAX_STEPS +12 +a number from 1 on +1000", done.stdout), done.stdout
    assert all(name in done.stdout for name in settings.declared())


def test_programs_say_how_much_of_the_log_they_want(tmp_path):
    """Most say so above their imports, in the way of TensorFlow."""
    program = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "%s"
import tensorflow as tf
with tf.device("/gpu:0"):
    x = tf.Variable(1.0)
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    session.run(x.initializer)
"""
    environ = {key: value for key, value in os.environ.items() if "MIN_LOG_LEVEL" not in key}
    for level, told in (("0", True), ("2", False)):
        path = tmp_path / "program.py"
        path.write_text(program % level)
        ended = subprocess.run([sys.executable, "-m", "millrace.compat", str(path)], capture_output=True, text=True, env=environ, timeout=100)
        assert ended.returncode == 0 and ("no device matches" in ended.stderr) is told, ended.stderr
