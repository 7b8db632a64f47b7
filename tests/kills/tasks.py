# SPDX-License-Identifier: Apache-2.0
"""The processes of a training over two parameter servers and three workers, and what is done to them."""

import glob
import os
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
_MARK = "MILLRACE_KILLS_FOLDER"  # in the environment of whatever the tasks start: the folder of the run
_MORE_FILES = 16  # that a server may have open in the end beyond what it had before the first fault: connections that come and go


def _processes_with(mark):
    """Those whose environment has it, but for dead ones that somebody has yet to wait for."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as environ, open("/proc/%d/stat" % pid) as stat:
                if mark in environ.read().split(b"\0") and stat.read().rpartition(")")[2].split()[0] != "Z":
                    found.append(pid)
        except OSError:
            pass  # it has ended, or is another user's
    return found


def _open_files(pid):
    """What each open file of a process is: "socket:[1234]", "/memfd:..."."""
    found = []
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            found.append(os.readlink(path))
        except OSError:
            pass  # closed meanwhile
    return found


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("localhost", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Tasks:
    """Servers, one process each, and clients, which `commands` names: of each its arguments, by the addresses of the tasks."""

    def __init__(self, folder, dead_after, commands):
        self.folder, self.dead_after = folder, dead_after
        ports = free_ports(5)
        self.addresses = {("ps", i): "localhost:%d" % ports[i] for i in range(2)}
        self.addresses.update({("worker", i): "localhost:%d" % ports[2 + i] for i in range(3)})
        self.environment = dict(os.environ, MILLRACE_DEAD_AFTER_SECONDS=str(dead_after), MILLRACE_STALLED_AFTER_SECONDS="20", **{_MARK: folder})
        self._most_files = None
        self.log = open(os.path.join(folder, "log"), "ab")
        self.servers, self.clients = {}, {}
        self.commands = commands(self.addresses)

    def start(self):
        for task in self.addresses:
            self.start_server(task)
        for name in self.commands:
            self.start_client(name)

    def start_server(self, task):
        cluster = ";".join("%s=%s" % (job, ",".join(a for (j, _), a in sorted(self.addresses.items()) if j == job)) for job in ("ps", "worker"))
        command = [sys.executable, "-m", "millrace", "serve", "--cluster", cluster, "--job", task[0], "--task", str(task[1])]
        deadline = time.monotonic() + 60
        while True:  # the port of one that was killed may not be free at once
            made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=self.environment)
            if b"listens at" in made.stdout.readline():
                break
            made.wait()
            if time.monotonic() > deadline:
                raise RuntimeError("task %s:%d does not come up; see %s" % (*task, self.log.name))
            time.sleep(0.2)
        self.servers[task] = made

    def start_client(self, name):
        self.clients[name] = subprocess.Popen([sys.executable, *self.commands[name]], stdout=self.log, stderr=self.log, env=self.environment)

    def wait_until(self, done, patience, what):
        """Returns when `done` says so. RuntimeError when it does not, or a client ends badly."""
        deadline = time.monotonic() + patience
        while not done():
            for name, client in self.clients.items():
                if client.poll() not in (None, 0):
                    raise RuntimeError("%s ended with %d" % (name, client.returncode))
            if time.monotonic() > deadline:
                raise RuntimeError("hangs: %s; what each task waits for is in %s" % (what, self.log.name))
            time.sleep(0.02)

    def clients_have_ended(self):
        return all(client.poll() is not None for client in self.clients.values())

    def disturb(self, chosen):
        """One fault, and the word for it."""
        who = chosen.choice(["ps:0", "ps:1", "worker:0", "worker:1", "worker:2", "client"])
        if who == "client":
            name = chosen.choice(sorted(self.clients))
            self.clients[name].kill()
            self.clients[name].wait()
            self.start_client(name)
            return "%s killed" % name
        task = (who[:-2], int(who[-1]))
        kind = chosen.choice(["killed", "killed", "stopped for long", "stopped for a moment"])
        process = self.servers[task]
        if kind == "killed":
            process.kill()
            process.wait()
            time.sleep(chosen.random())
            self.start_server(task)
        else:
            process.send_signal(signal.SIGSTOP)
            time.sleep(self.dead_after * 1.6 if kind == "stopped for long" else self.dead_after * 0.3)
            process.send_signal(signal.SIGCONT)
        return "%s %s" % (who, kind)

    def note_open_files(self):
        """Of servers that nothing has disturbed yet: what they have open is what those at the end may have."""
        self._most_files = max(len(_open_files(process.pid)) for process in self.servers.values())

    def check_open_files(self):
        """Once the clients have ended: nothing is kept for peers that are gone."""
        for task, process in self.servers.items():
            files = _open_files(process.pid)
            if len(files) > self._most_files + _MORE_FILES:
                kinds = sorted({f.split("[")[0] for f in files}, key=lambda kind: -sum(f.startswith(kind) for f in files))
                raise RuntimeError(
                    "task %s:%d has %d files open, before the first fault %d were the most: %s" % (*task, len(files), self._most_files, kinds[:5])
                )

    def check_nothing_is_left(self):
        """No process that a task has started, and no shared memory: segments have no names, so they are in somebody's open files."""
        deadline = time.monotonic() + 10
        while _processes_with(self._mark) and time.monotonic() < deadline:
            time.sleep(0.1)
        left = ["%d (%s)" % (pid, open("/proc/%d/cmdline" % pid).read().replace("\0", " ")) for pid in _processes_with(self._mark)]
        left += ["%s of this process" % f for f in _open_files(os.getpid()) if f.startswith("/memfd:millrace")]
        if left:
            raise RuntimeError("left behind: %s" % left)

    @property
    def _mark(self):
        return ("%s=%s" % (_MARK, self.folder)).encode()

    def stop_servers(self):
        for process in self.servers.values():
            process.send_signal(signal.SIGTERM)
        for task, process in self.servers.items():
            if process.wait(timeout=30) != 143:
                raise RuntimeError("task %s:%d ended with %d" % (*task, process.returncode))

    def end(self):
        for process in [*self.servers.values(), *self.clients.values()]:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self.log.close()
