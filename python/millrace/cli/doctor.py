# SPDX-License-Identifier: Apache-2.0
"""`millrace doctor`: what this machine and installation have, and what is wrong with them."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import time
from typing import Any, Dict, List, Tuple

import numpy as np

from millrace.cli import machine
from millrace.cli.answers import Answer, sections, table
from millrace.launch import identity

_SETTINGS: Dict[str, str] = {  # environment variable, what it wants
    "MILLRACE_NUM_THREADS": "a number from 1 on",
    "MILLRACE_MIN_LOG_LEVEL": "0 (all) to 3 (errors)",
    "MILLRACE_MEMORY_LIMIT_BYTES": "a number of bytes",
    "MILLRACE_PREPARED_LIMIT_BYTES": "a number of bytes",
    "MILLRACE_GUARD_ALLOCATIONS": "1 for a page that faults behind every tensor (for tests)",
    "MILLRACE_SWITCHED_OFF_STAGES": "names of compiler stages, with commas",
    "MILLRACE_VERIFY_GRAPHS": "1 to verify graphs between the stages of the compiler",
    "MILLRACE_MAX_ISA": "sse2, sse4, avx2 or avx512: kernels as lesser machines have them",
    "MILLRACE_TRACE": "a folder for traces of steps",
    "MILLRACE_TRACE_STEPS": "which steps of each session are traced, such as 0-9,100",
    "MILLRACE_ALLOW_INSECURE_REMOTE": "1 for servers that other hosts may use, without encryption or passwords",
    "MILLRACE_ALLOW_OTHER_USERS": "1 for servers on the loopback interface that other users of the host may use",
    "MILLRACE_ALLOW_FILES": "folders that graphs on servers may use, with ':' between them, or all",
    "MILLRACE_ALLOW_PY_FUNC": "1 for servers whose graphs may call functions of the program, 0 for others",
    "MILLRACE_ALLOW_ANY_CLUSTER": "1 for servers to which sessions may bring clusters with any addresses, 0 for others",
    "MILLRACE_BIND": "HOST or HOST:PORT where servers listen",
    "MILLRACE_MAX_SESSIONS": "a number from 1 on",
    "MILLRACE_MAX_STEPS": "a number from 1 on",
    "MILLRACE_MAX_CALLS": "a number from 1 on",
    "MILLRACE_MAX_MESSAGE_BYTES": "a number of bytes",
    "MILLRACE_TLS_CA": "a file with the authority's certificate",
    "MILLRACE_TLS_CERT": "a file with a certificate",
    "MILLRACE_TLS_KEY": "a file with its key",
    "MILLRACE_TLS_SECRET": "a file with a secret",
    "MILLRACE_TLS_SERVER_NAME": "the name that servers' certificates have, instead of their hosts'",
    "MILLRACE_JOBS": "jobs and numbers of tasks, such as ps=2,worker=3",
    "MILLRACE_JOB": "the job of this process, where its scheduler numbers within jobs",
    "MILLRACE_HOSTS": "hosts of tasks: a list, or a pattern with {job} and {i}",
    "MILLRACE_HOSTFILE": "a host file of MPI",
    "MILLRACE_SUBDOMAIN": "the domain of the pods of an indexed Job",
    "MILLRACE_PORT": "the first port of tasks on a host",
    "MILLRACE_DRAIN_SECONDS": "how long a process may take to end after SIGTERM (25)",
    "MILLRACE_HEALTH": "[HOST:]PORT: a process with a server answers GET /healthz, /readyz and /metrics there",
    "MILLRACE_DEAD_AFTER_SECONDS": "a number of seconds; 0: tasks are never taken for dead",
    "MILLRACE_STALLED_AFTER_SECONDS": "a number of seconds; 0: no step is described",
    "MILLRACE_LOG_FORMAT": "text or json",
    "MILLRACE_LOG_FIELDS": "fields of each log line, such as job=ps,task=0",
    "MILLRACE_LIBRARY": "the native library, where it is not that of the package",
    "MILLRACE_TRACEBACK": "1 for tracebacks of this program",
}
_NUMBERS = ("MILLRACE_NUM_THREADS", "MILLRACE_MIN_LOG_LEVEL", "MILLRACE_MEMORY_LIMIT_BYTES", "MILLRACE_PREPARED_LIMIT_BYTES")


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "doctor",
        help="what this machine and installation have, and what is wrong",
        description="Looks at the machine, the installation and the settings, and runs a small product. Exit status 1 when something is wrong.",
    )
    parser.add_argument("--cluster", action="store_true", help="instead: which task of which cluster a process started here would be, and what says so")
    parser.set_defaults(command=_doctor)


def _doctor(given: Any) -> Answer:
    if given.cluster:
        return _cluster()
    facts: Dict[str, Any] = {}
    wrong: List[str] = []
    for look in (machine.machine, machine.library, _installation, _settings, _product):
        found, faults = look()
        facts.update(found)
        wrong += faults
    text = sections(
        table([(k.replace("_", " "), v) for k, v in facts.items() if not isinstance(v, dict)]),
        "settings\n" + table(list(facts["settings"].items()), indent="  ") if facts["settings"] else "",
        "wrong\n" + "\n".join("  " + w for w in wrong) if wrong else "nothing is wrong",
    )
    return Answer({**facts, "wrong": wrong}, text, 1 if wrong else 0)


def _cluster() -> Answer:
    me = identity.who_am_i()
    facts = {"source": me.source, "job": me.job, "task": me.task, "address": me.address, "cluster": me.cluster}
    if me.is_alone:
        return Answer(facts, "one process: the environment names no cluster")
    rows = [
        ("/job:%s/task:%d" % (job, i), address, "this process" if (job, i) == (me.job, me.task) else "")
        for job, tasks in sorted(me.cluster.items())
        for i, address in sorted(tasks.items())
    ]
    return Answer(facts, sections("/job:%s/task:%s, says %s" % (me.job, me.task, me.source), table(rows)))


def _installation() -> Tuple[Dict[str, Any], List[str]]:
    import millrace
    from millrace.framework.registry import PACKAGE_PATH

    facts = {"TensorFlow's_version_here": millrace.__version__, "package": PACKAGE_PATH, "python": platform.python_version(), "numpy": np.__version__}
    beside = [name for name in ("tensorflow", "torch", "jax") if importlib.util.find_spec(name) is not None]
    facts["installed_beside"] = ", ".join(beside) or "none of tensorflow, torch, jax"
    wrong: List[str] = []
    if sys.version_info < (3, 9):
        wrong.append("Python is older than 3.9: install a newer one")
    return facts, wrong


def _settings() -> Tuple[Dict[str, Any], List[str]]:
    import difflib

    found = {name: value for name, value in sorted(os.environ.items()) if name.startswith("MILLRACE_")}
    wrong = []
    for name, value in found.items():
        if name not in _SETTINGS:
            near = difflib.get_close_matches(name, _SETTINGS, n=1)
            wrong.append("%s is no setting%s" % (name, "; did you mean %s?" % near[0] if near else ": unset it"))
        elif name in _NUMBERS and not (value.isdigit() and (name != "MILLRACE_NUM_THREADS" or int(value) > 0)):
            wrong.append("%s is '%s', want %s" % (name, value, _SETTINGS[name]))
    return {"settings": found}, wrong


def _product() -> Tuple[Dict[str, Any], List[str]]:
    import millrace as tf

    side = 512
    value = np.random.RandomState(0).standard_normal((side, side)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [side, side])
        y = tf.matmul(x, x)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            made = session.run(y, {x: value})
            times.append(time.perf_counter() - start)
        devices = ", ".join(d.name for d in session.list_devices())
    error = float(np.abs(made - value.astype(np.float64) @ value).max())
    facts = {"devices": devices, "product_of_512": "%.1f GFLOP/s" % (2 * side**3 / min(times) / 1e9)}
    return facts, [] if error < 1e-3 else ["a product of matrices is wrong by %g: try MILLRACE_MAX_ISA=sse4 and DNNL_MAX_CPU_ISA=SSE41, and report it" % error]
