# SPDX-License-Identifier: Apache-2.0
"""All tasks of a cluster as processes of this host, which end together: for development.

Each task is the leader of a process group, so that what it starts ends with it. A keeper, a process that does nothing but read a pipe from the launcher,
kills the groups when the launcher is gone, however it went.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Tuple

from millrace import settings
from millrace.launch import contract

_KEEPER = """
import os, signal
groups = set()
with os.fdopen(0, "rb", buffering=0) as told:
    rest = b""
    while True:
        more = told.read(4096)
        if not more:
            break
        *lines, rest = (rest + more).split(b"\\n")
        for line in lines:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""
_AFTER_DRAIN = 5.0  # seconds that a task has beyond its drain before it is killed


def free_ports(count: int) -> List[int]:
    """Ports of the loopback interface that nobody has; all are different."""
    held = []
    try:
        for _ in range(count):
            s = socket.socket()
            held.append(s)
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()


class Task:
    """One process of a cluster."""

    def __init__(self, job: str, index: int, command: Sequence[str], environ: Dict[str, str]) -> None:
        self.job, self.index = job, index
        self.process = subprocess.Popen(
            list(command), env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.code: Optional[int] = None
        prefix = ("[%s/%d] " % (job, index)).encode()
        self._readers = [
            threading.Thread(target=_pass_on, args=(stream, out, prefix), daemon=True)
            for stream, out in ((self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def poll(self) -> Optional[int]:
        """Its exit code as a shell has it, once it has ended; what it started and left is killed then."""
        if self.code is None and self.process.poll() is not None:
            self.signal(signal.SIGKILL)
            self.code = self.process.returncode if self.process.returncode >= 0 else 128 - self.process.returncode
            for reader in self._readers:
                reader.join(timeout=5)
        return self.code

    def signal(self, number: int) -> None:
        """Sends a signal to its whole group."""
        try:
            os.killpg(self.process.pid, number)
        except OSError:
            pass  # nobody is left


_output = threading.Lock()


def _pass_on(stream: Any, out: Any, prefix: bytes) -> None:
    """Each line with the task's name; a last one that has no end gets one."""
    raw: BinaryIO = getattr(out, "buffer", out)
    for line in iter(stream.readline, b""):
        with _output:
            try:
                raw.write(prefix + line + (b"" if line.endswith(b"\n") else b"\n"))
                raw.flush()
            except (OSError, ValueError):
                pass  # nobody reads any more; the task must not wait for that
    stream.close()


class LocalCluster:
    """The tasks of a cluster on this host, from start() to the end of wait(). `command` gives each task's command line."""

    def __init__(self, jobs: Dict[str, int], command: Any, environ: Optional[Dict[str, str]] = None) -> None:
        self._counts = {job: count for job, count in jobs.items() if count}
        ports = free_ports(sum(self._counts.values()))
        self.cluster = {job: ["127.0.0.1:%d" % ports.pop() for _ in range(count)] for job, count in self._counts.items()}
        self._command, self._environ = command, dict(os.environ if environ is None else environ)
        health = settings.text("MILLRACE_HEALTH", self._environ)
        if health:  # each task has a port of its own, which it names in a line
            self._environ["MILLRACE_HEALTH"] = health.rpartition(":")[0] + ":0"
        self._tasks: List[Task] = []
        self._keeper: Optional[subprocess.Popen[bytes]] = None

    def start(self) -> None:
        """Starts all."""
        self._keeper = subprocess.Popen([sys.executable, "-c", _KEEPER], stdin=subprocess.PIPE, start_new_session=True)
        for job, addresses in self.cluster.items():
            for i in range(len(addresses)):
                environ = {
                    **self._environ,
                    "TF_CONFIG": json.dumps({"cluster": self.cluster, "task": {"type": job, "index": i}}),
                    "MILLRACE_LOG_FIELDS": "job=%s,task=%d" % (job, i),
                    "PYTHONUNBUFFERED": "1",
                }
                task = Task(job, i, self._command(job, i), environ)
                self._tasks.append(task)
                self._tell("+%d" % task.process.pid)

    def _tell(self, text: str) -> None:
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.write(text.encode() + b"\n")
            self._keeper.stdin.flush()

    def signal(self, number: int) -> None:
        """Sends a signal to all tasks that run."""
        for task in self._tasks:
            if task.poll() is None:
                task.signal(number)

    def wait(self, stopped: Any = lambda: False) -> Tuple[int, str]:
        """The exit code of the first task that failed, with its name, once all have ended; 0 when all but the parameter servers are done, which end then."""
        running, first = list(self._tasks), (0, "")
        end_by: Optional[float] = None
        while running:
            for task in list(running):
                code = task.poll()
                if code is None:
                    continue
                running.remove(task)
                self._tell("-%d" % task.process.pid)
                if code and end_by is None:
                    first = (code, "/job:%s/task:%d" % (task.job, task.index))
            is_over = first[0] or stopped() or not any(t.job != "ps" for t in running)
            if running and is_over and end_by is None:
                end_by = time.monotonic() + contract.drain_seconds() + _AFTER_DRAIN
                for task in running:
                    task.signal(signal.SIGTERM)
            if end_by is not None and time.monotonic() > end_by:
                for task in running:
                    task.signal(signal.SIGKILL)
            time.sleep(0.02)
        return first

    def close(self) -> None:
        """Kills what still runs."""
        for task in self._tasks:
            if task.poll() is None:
                task.signal(signal.SIGKILL)
                task.process.wait()
                task.poll()
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.close()
            self._keeper.wait()
            self._keeper = None
