# SPDX-License-Identifier: Apache-2.0
"""Kills, stops and restarts tasks of a training over processes, and compares what comes of it with what must come of it.

    PYTHONPATH=build/release/python python tests/kills/kill_tasks.py --kills 100 --seed 1 [--asynchronous]

Two parameter servers and three workers. A fault is due each time that the training has come so many steps further: by the seed, a task or a client is killed
and begun again, or a task is stopped for less or more time than makes it count as dead. Nothing may hang, and no process and no shared memory may be left.

Synchronous training has one client (trainer.py), and every step must have the bits of a run that nobody disturbs. Asynchronous training has a client on each
worker (pusher.py), and no push that was acknowledged may be lost or be done twice, but those since the last checkpoint before a fault.
"""

import argparse
import bisect
import os
import random
import shutil
import tempfile
import time

import trainer
from tasks import HERE, Tasks

_WORKERS = 3


class _Lines:
    """The whole lines of a file that grows."""

    def __init__(self, path):
        self.path, self._read, self._lines = path, 0, []

    def __call__(self):
        if os.path.exists(self.path):
            with open(self.path) as file:
                file.seek(self._read)
                text = file.read()
            whole = text.rfind("\n") + 1
            self._read += whole
            self._lines += text[:whole].splitlines()
        return self._lines


class Synchronous:
    """One client, and the line of each step: its number and the bits of its loss."""

    def __init__(self, folder, kills, steps_between):
        self.steps = steps_between * (kills + 1)
        self._steps_between = steps_between
        self._lines = _Lines(os.path.join(folder, "losses"))
        self._checkpoints = os.path.join(folder, "checkpoints")
        self._want = self._reference()

    def _reference(self):
        """The lines of a run that nobody disturbs, on a cluster of servers within this process."""
        import millrace as tf
        from millrace.testing.test_util import create_local_cluster

        workers, _ = create_local_cluster(num_workers=_WORKERS, num_ps=2)
        with tf.Graph().as_default():
            number, loss, train = trainer.build(_WORKERS)
            with tf.Session(workers[0].target) as session:
                session.run(tf.global_variables_initializer())
                return [trainer.line(*session.run([number, loss, train])[:2]) for _ in range(self.steps)]

    def commands(self, addresses):
        at = "grpc://" + addresses["worker", 0]
        return {
            "client": [
                os.path.join(HERE, "trainer.py"),
                "--master",
                at,
                "--checkpoints",
                self._checkpoints,
                "--steps",
                str(self.steps),
                "--out",
                self._lines.path,
            ]
        }

    def progress(self):
        return [1 + max((int(line.split()[0]) for line in self._lines()[-100:]), default=-1)]

    def is_due(self, fault):
        return self.progress()[0] >= self._steps_between * (fault + 1)

    def note_fault(self):
        pass

    def finish(self):
        pass

    def check(self):
        got = self._lines()
        wrong = [line for line in got if line != self._want[int(line.split()[0])]]
        missing = self.steps - len(set(got))
        if wrong or missing:
            raise RuntimeError("%d steps have other bits (%s), %d are missing" % (len(wrong), wrong[:3], missing))
        return "%d steps with the bits of the undisturbed run, %d of them trained again" % (self.steps, len(got) - self.steps)


class Asynchronous:
    """A client on each worker, and a line for each thing that it learns."""

    def __init__(self, folder, kills, steps_between):
        del kills
        self._steps_between, self._last = steps_between, 0
        self._checkpoints, self._stop = os.path.join(folder, "checkpoints"), os.path.join(folder, "stop")
        self._lines = [_Lines(os.path.join(folder, "worker%d" % k)) for k in range(_WORKERS)]
        self._faults = []

    def commands(self, addresses):
        return {
            "client %d" % k: [
                *(os.path.join(HERE, "pusher.py"), "--master", "grpc://" + addresses["worker", k], "--task", str(k)),
                *("--checkpoints", self._checkpoints, "--out", self._lines[k].path, "--stop-file", self._stop),
            ]
            for k in range(_WORKERS)
        }

    def progress(self):
        return [sum(" pushed " in line for line in lines()) for lines in self._lines]

    def is_due(self, fault):
        del fault
        now = sum(self.progress())
        if now < self._last + self._steps_between or min(self.progress()) == 0:
            return False
        self._last = now
        return True

    def note_fault(self):
        self._faults.append(time.time())

    def finish(self):
        open(self._stop, "w").close()

    def check(self):
        saved = [(float(line.split()[0]), [int(n) for n in line.split()[2:]]) for line in self._lines[0]() if line.split()[1] == "saved"]
        times = [t for t, _ in saved]
        pushes = fell = lost = 0
        for k, lines in enumerate(self._lines):
            count, unknown, known_at = 0, 0, 0.0
            for line in lines():
                at, what, *facts = line.split()
                unknown += what == "session"  # the push that was under way may have come
                if what != "pushed":
                    continue
                pushes += 1
                got = int(facts[0])
                if got > count + 1 + unknown:
                    raise RuntimeError("worker %d: push %d after %d, with %d of which nobody knows: one was done twice" % (k, got, count, unknown))
                if got <= count:
                    since = bisect.bisect(self._faults, float(at))
                    if since == 0 or self._faults[since - 1] < known_at - 120:
                        raise RuntimeError("worker %d: push %d after %d, and there was no fault" % (k, got, count))
                    # The newest checkpoint that was there when the first fault came that can have taken what is missing.
                    first = self._faults[max(0, bisect.bisect_left(self._faults, known_at) - 1)]
                    kept = bisect.bisect(times, first)
                    floor = saved[kept - 1][1][k] if kept else 0
                    if got <= floor:
                        raise RuntimeError("worker %d: push %d after %d, though %d were saved" % (k, got, count, floor))
                    fell, lost = fell + 1, lost + count + 1 - got
                count, unknown, known_at = got, 0, float(at)
        if not saved:
            raise RuntimeError("there was no checkpoint")
        return "%d pushes, none done twice and none lost but since the last of %d checkpoints (%d times, %d pushes in all)" % (pushes, len(saved), fell, lost)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=2, help="by default a parameter server and two workers are killed, and one stopped for long")
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--steps-between", type=int, default=25)
    parser.add_argument("--dead-after", type=float, default=3)
    parser.add_argument("--patience", type=float, default=60, help="seconds within which the training must go on after a fault")
    parser.add_argument("--keep", action="store_true", help="keeps the folder with logs")
    given = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="millrace_kills_")
    training = (Asynchronous if given.asynchronous else Synchronous)(folder, given.kills, given.steps_between)
    named_segments = set(os.listdir("/dev/shm"))
    tasks, chosen, ok = Tasks(folder, given.dead_after, training.commands), random.Random(given.seed), False
    slowest = 0.0
    try:
        tasks.start()
        for k in range(given.kills):
            tasks.wait_until(lambda k=k: training.is_due(k), given.patience, "before fault %d" % k)
            if k == 0:
                tasks.note_open_files()
            at, began = training.progress(), time.monotonic()
            training.note_fault()
            what = tasks.disturb(chosen)
            tasks.wait_until(lambda at=at: all(b > a for a, b in zip(at, training.progress())), given.patience, "after fault %d: %s" % (k, what))
            slowest = max(slowest, time.monotonic() - began)
            print("fault %d at step %s: %s; %.1f s" % (k, "+".join("%d" % n for n in at), what, time.monotonic() - began), flush=True)
        training.finish()
        tasks.wait_until(tasks.clients_have_ended, given.patience, "at the end")
        tasks.check_open_files()
        tasks.stop_servers()
        told = training.check()
        tasks.check_nothing_is_left()
        left = set(os.listdir("/dev/shm")) - named_segments
        if left:
            raise RuntimeError("left in /dev/shm: %s" % sorted(left))
        ok = True
        print("%d faults; %s; slowest recovery %.1f s" % (given.kills, told, slowest))
    finally:
        tasks.end()
        if ok and not given.keep:
            shutil.rmtree(folder)
        else:
            print("logs: " + folder)


if __name__ == "__main__":
    main()
