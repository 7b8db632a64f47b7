# SPDX-License-Identifier: Apache-2.0
"""Kills, stops and restarts tasks of a training over processes, and compares the loss of each step with that of a run that nobody disturbs.

    PYTHONPATH=build/release/python python tests/kills/kill_tasks.py --kills 100 --seed 1

Two parameter servers, three workers, and the client that trains (trainer.py). A fault is due each time that the training has come so many steps further: by the
seed, a task or the client is killed and begun again, or a task is stopped for less or more time than makes it count as dead. Nothing may hang, every step must
have the bits of the undisturbed run, and no process and no shared memory may be left.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import trainer

HERE = os.path.dirname(os.path.abspath(__file__))


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("localhost", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Training:
    """The processes."""

    def __init__(self, folder, steps, dead_after):
        self.folder, self.steps, self.dead_after = folder, steps, dead_after
        ports = free_ports(5)
        self.addresses = {("ps", i): "localhost:%d" % ports[i] for i in range(2)}
        self.addresses.update({("worker", i): "localhost:%d" % ports[2 + i] for i in range(3)})
        self.environment = dict(os.environ, MILLRACE_DEAD_AFTER_SECONDS=str(dead_after), MILLRACE_STALLED_AFTER_SECONDS="20")
        self.log = open(os.path.join(folder, "log"), "ab")
        self.losses = os.path.join(folder, "losses")
        open(self.losses, "a").close()
        self.tasks = {}
        self.client = None

    def start_task(self, task):
        cluster = ";".join("%s=%s" % (job, ",".join(a for (j, _), a in sorted(self.addresses.items()) if j == job)) for job in ("ps", "worker"))
        command = [sys.executable, "-m", "millrace", "serve", "--cluster", cluster, "--job", task[0], "--task", str(task[1])]
        deadline = time.monotonic() + 30
        while True:  # the port of one that was killed may not be free at once
            made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, env=self.environment)
            if b"listens at" in made.stdout.readline():
                break
            made.wait()
            if time.monotonic() > deadline:
                raise RuntimeError("task %s:%d does not come up; see %s" % (*task, self.log.name))
            time.sleep(0.2)
        self.tasks[task] = made

    def start_client(self):
        command = [
            sys.executable,
            os.path.join(HERE, "trainer.py"),
            "--master",
            "grpc://" + self.addresses["worker", 0],
            "--checkpoints",
            os.path.join(self.folder, "checkpoints"),
            "--steps",
            str(self.steps),
            "--out",
            self.losses,
        ]
        self.client = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=self.environment)

    def step(self):
        """How many steps have been trained, counted once."""
        with open(self.losses) as lines:
            return 1 + max((int(line.split()[0]) for line in lines if line.endswith("\n")), default=-1)

    def end(self):
        for process in [*self.tasks.values(), self.client]:
            if process is not None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        self.log.close()


def wait_until(training, done, patience, what):
    deadline = time.monotonic() + patience
    while not done():
        if training.client.poll() not in (None, 0):
            raise RuntimeError("the client ended with %d" % training.client.returncode)
        if time.monotonic() > deadline:
            raise RuntimeError("hangs: %s; what each task waits for is in %s" % (what, training.log.name))
        time.sleep(0.02)


def disturb(training, chosen):
    """One fault, and the word for it."""
    who = chosen.choice(["ps:0", "ps:1", "worker:0", "worker:1", "worker:2", "client"])
    if who == "client":
        training.client.kill()
        training.client.wait()
        training.start_client()
        return "client killed"
    task = (who[:-2], int(who[-1]))
    kind = chosen.choice(["killed", "killed", "stopped for long", "stopped for a moment"])
    process = training.tasks[task]
    if kind == "killed":
        process.kill()
        process.wait()
        time.sleep(chosen.random())
        training.start_task(task)
    else:
        process.send_signal(signal.SIGSTOP)
        time.sleep(training.dead_after * 1.6 if kind == "stopped for long" else training.dead_after * 0.3)
        process.send_signal(signal.SIGCONT)
    return "%s %s" % (who, kind)


def reference(steps):
    """The lines of a run that nobody disturbs, on a cluster of servers within this process."""
    import millrace as tf
    from millrace.testing.test_util import create_local_cluster

    workers, _ = create_local_cluster(num_workers=3, num_ps=2)
    with tf.Graph().as_default():
        number, loss, train = trainer.build(3)
        with tf.Session(workers[0].target) as session:
            session.run(tf.global_variables_initializer())
            return [trainer.line(*session.run([number, loss, train])[:2]) for _ in range(steps)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=2, help="by default a parameter server and two workers are killed, and one stopped for long")
    parser.add_argument("--steps-between", type=int, default=25)
    parser.add_argument("--dead-after", type=float, default=3)
    parser.add_argument("--patience", type=float, default=60, help="seconds within which the training must go on after a fault")
    parser.add_argument("--keep", action="store_true", help="keeps the folder with logs")
    given = parser.parse_args()
    steps = given.steps_between * (given.kills + 1)
    want = reference(steps)
    segments = set(os.listdir("/dev/shm"))
    folder = tempfile.mkdtemp(prefix="millrace_kills_")
    training, chosen, ok = Training(folder, steps, given.dead_after), random.Random(given.seed), False
    slowest = 0.0
    try:
        for task in training.addresses:
            training.start_task(task)
        training.start_client()
        for k in range(given.kills):
            due = given.steps_between * (k + 1)
            wait_until(training, lambda due=due: training.step() >= due, given.patience, "before fault %d" % k)
            at, began = training.step(), time.monotonic()
            what = disturb(training, chosen)
            wait_until(training, lambda at=at: training.step() > at, given.patience, "after fault %d: %s" % (k, what))
            slowest = max(slowest, time.monotonic() - began)
            print("fault %d at step %d: %s; %.1f s" % (k, at, what, time.monotonic() - began), flush=True)
        wait_until(training, lambda: training.client.poll() is not None, given.patience, "at the end")
        for process in training.tasks.values():
            process.send_signal(signal.SIGTERM)
        for task, process in training.tasks.items():
            if process.wait(timeout=30) != 143:
                raise RuntimeError("task %s:%d ended with %d" % (*task, process.returncode))
        with open(training.losses) as lines:
            got = [line.rstrip("\n") for line in lines]
        wrong = [line for line in got if line != want[int(line.split()[0])]]
        missing = steps - len(set(got))
        left = set(os.listdir("/dev/shm")) - segments
        if wrong or missing or left:
            raise RuntimeError("%d steps have other bits (%s), %d are missing, left in /dev/shm: %s" % (len(wrong), wrong[:3], missing, sorted(left)))
        ok = True
        print(
            "%d faults, %d steps with the bits of the undisturbed run, %d steps trained again, slowest recovery %.1f s"
            % (given.kills, steps, len(got) - steps, slowest)
        )
    finally:
        training.end()
        if ok and not given.keep:
            shutil.rmtree(folder)
        else:
            print("logs: " + folder)


if __name__ == "__main__":
    main()
