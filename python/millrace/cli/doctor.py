# SPDX-License-Identifier: Apache-2.0
"""`millrace doctor`: what this machine and installation have, and what is wrong with them."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import time
from typing import Any, Callable, Dict, List

import numpy as np

from millrace import settings
from millrace.cli import machine
from millrace.cli.answers import Answer, sections, table
from millrace.launch import identity


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "doctor",
        help="what this machine and installation have, and what is wrong",
        description="Looks at the machine, the installation and the settings, and runs a small product. Exit status 1 when something is wrong.",
    )
    parser.add_argument("--cluster", action="store_true", help="instead: which task of which cluster a process started here would be, and what says so")
    parser.add_argument("--settings", action="store_true", help="instead: all settings, what each wants, is, and is by default")
    parser.set_defaults(command=_doctor)


def _doctor(given: Any) -> Answer:
    if given.cluster:
        return _cluster()
    if given.settings and machine.is_loaded():
        return _all_settings()
    facts: Dict[str, Any] = {}
    wrong: List[str] = []
    library = machine.library()  # without one there is neither a table of settings nor a product
    looks = (_settings, _product) if machine.is_loaded() else (_bare_settings,)
    for found, faults in (_looked(machine.machine), library, _looked(_installation), *map(_looked, looks)):
        facts.update(found)
        wrong += faults
    text = sections(
        table([(k.replace("_", " "), v) for k, v in facts.items() if not isinstance(v, dict)]),
        "settings\n" + table(list(facts["settings"].items()), indent="  ") if facts.get("settings") else "",
        "wrong\n" + "\n".join("  " + w for w in wrong) if wrong else "nothing is wrong",
    )
    return Answer({**facts, "wrong": wrong}, text, 1 if wrong else 0)


def _looked(look: Callable[[], machine.Found]) -> machine.Found:
    """What a look finds. One that fails is wrong, and the others go on."""
    try:
        return look()
    except Exception as error:
        lines = str(getattr(error, "message", "") or error or type(error).__name__).splitlines()
        return {}, ["%s: %s" % (look.__name__.strip("_").replace("_", " "), lines[0])]


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


def _installation() -> machine.Found:
    import millrace
    from millrace.framework.registry import PACKAGE_PATH

    facts = {"TensorFlow's_version_here": millrace.__version__, "package": PACKAGE_PATH, "python": platform.python_version(), "numpy": np.__version__}
    beside = [name for name in ("tensorflow", "torch", "jax") if importlib.util.find_spec(name) is not None]
    facts["installed_beside"] = ", ".join(beside) or "none of tensorflow, torch, jax"
    wrong: List[str] = []
    if sys.version_info < (3, 9):
        wrong.append("Python is older than 3.9: install a newer one")
    return facts, wrong


def _bare_settings() -> machine.Found:
    return {"settings": {name: value for name, value in sorted(os.environ.items()) if name.startswith("MILLRACE_")}}, []


def _settings() -> machine.Found:
    return _bare_settings()[0], settings.faults()


def _all_settings() -> Answer:
    rows = [(s.name, os.environ.get(s.name, ""), s.wants, s.otherwise) for s in settings.declared().values()]
    wrong = settings.faults()
    text = sections(table([("setting", "is", "wants", "default"), *rows]), "wrong\n" + "\n".join("  " + w for w in wrong) if wrong else "")
    facts = [{**s._asdict(), "wants": s.wants, "is": os.environ.get(s.name)} for s in settings.declared().values()]
    return Answer({"settings": facts, "wrong": wrong}, text, 1 if wrong else 0)


def _product() -> machine.Found:
    import millrace as tf

    traced = os.environ.pop("MILLRACE_TRACE", None)  # nobody wants to see these steps
    try:
        return _multiplied(512)
    except tf.errors.ResourceExhaustedError as error:
        limit = settings.unchecked("MILLRACE_MEMORY_LIMIT_BYTES")
        if not limit:
            raise
        return {}, ["MILLRACE_MEMORY_LIMIT_BYTES is '%s', which does not do for a product of 512, want some MB (%s)" % (limit, error.message.splitlines()[0])]
    finally:
        if traced is not None:
            os.environ["MILLRACE_TRACE"] = traced


def _multiplied(side: int) -> machine.Found:
    import millrace as tf

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
    facts = {"devices": devices, "product_of_%d" % side: "%.1f GFLOP/s" % (2 * side**3 / min(times) / 1e9)}
    return facts, [] if error < 1e-3 else ["a product of matrices is wrong by %g: try MILLRACE_MAX_ISA=sse4 and DNNL_MAX_CPU_ISA=SSE41, and report it" % error]
