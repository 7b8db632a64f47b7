# SPDX-License-Identifier: Apache-2.0
"""The processes of a training over two parameter servers and three workers, and what is done to them."""

import os
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


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
        self.environment = dict(os.environ, MILLRACE_DEAD_AFTER_SECONDS=str(dead_after), MILLRACE_STALLED_AFTER_SECONDS="20")
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
