# SPDX-License-Identifier: Apache-2.0
"""Trainings that go on: from the newest checkpoint that is whole, with pauses between attempts, and not for ever."""

import glob
import os
import sys

import numpy as np
import pytest

import millrace as tf
from millrace.train import wrapped_sessions
from millrace.train.wrapped_sessions import _Failures, _RecoverableSession


def _trained(folder, saves=3):
    """A training whose variable has the value of the step, saved at each of three steps."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        v = tf.get_variable("v", [1000], initializer=tf.zeros_initializer())
        train = tf.group(tf.assign_add(step, 1), v.assign_add(tf.ones([1000])))
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_steps=1, save_summaries_steps=None, log_step_count_steps=None) as session:
            for _ in range(saves):
                session.run(train)
    return tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths


def _goes_on(folder, names=("v",)):
    """(the step, the variable) with which a training in a folder begins."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        v = [tf.get_variable(name, [1000], initializer=tf.zeros_initializer()) for name in names][0]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_steps=1000, save_summaries_steps=None) as session:
            at, values = session.run([step, v])
            return [at, values[0]]


def _cut(path, share):
    with open(path, "r+b") as file:
        file.truncate(int(os.path.getsize(path) * share))


def _flip(path):
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 4)  # of an index: in the block of names, whose checksum is looked at
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x55]))


_HARMS = {
    "the data are cut": lambda prefix: [_cut(p, 0.5) for p in glob.glob(prefix + ".data-*")],
    "the data are empty": lambda prefix: [_cut(p, 0) for p in glob.glob(prefix + ".data-*")],
    "a bit of the data": lambda prefix: [_flip(p) for p in glob.glob(prefix + ".data-*")],
    "the data are gone": lambda prefix: [os.remove(p) for p in glob.glob(prefix + ".data-*")],
    "the index is cut": lambda prefix: _cut(prefix + ".index", 0.5),
    "the index is empty": lambda prefix: _cut(prefix + ".index", 0),
    "a bit of the index": lambda prefix: _flip(prefix + ".index"),
    "all is gone": lambda prefix: [os.remove(p) for p in glob.glob(prefix + ".*")],
}


@pytest.mark.parametrize("harm", sorted(_HARMS))
def test_a_damaged_checkpoint_is_passed_over(tmp_path, harm, caplog):
    folder = str(tmp_path)
    paths = _trained(folder)
    _HARMS[harm](paths[-1])
    assert _goes_on(folder) == [2, 2.0]
    told = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert any("%s is damaged" % paths[-1] in t for t in told) and any("Restored %s" % paths[-2] in t for t in told), told
    assert paths[-1] not in tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths


def test_with_no_whole_checkpoint_the_newest_ones_error_is_raised(tmp_path):
    folder = str(tmp_path)
    paths = _trained(folder)
    for path in paths:
        _HARMS["a bit of the data"](path)
    with pytest.raises(tf.errors.DataLossError, match=os.path.basename(paths[-1])):
        _goes_on(folder)


def test_a_checkpoint_of_other_variables_is_not_damaged(tmp_path):
    """An older one might have them, and would be taken in silence."""
    folder = str(tmp_path)
    _trained(folder)
    with pytest.raises(tf.errors.NotFoundError, match="other"):
        _goes_on(folder, names=("other",))


def test_a_checkpoint_that_the_program_names_must_be_whole(tmp_path):
    paths = _trained(str(tmp_path))
    _HARMS["a bit of the data"](paths[-1])
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        tf.get_variable("v", [1000])
        creator = tf.train.ChiefSessionCreator(checkpoint_filename_with_path=paths[-1])
        with pytest.raises(tf.errors.DataLossError):
            tf.train.MonitoredSession(creator)


class _Time:
    """A clock that only pauses move."""

    def __init__(self):
        self.now, self.pauses = 100.0, []  # after each attempt

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.pauses[-1] += seconds
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = _Time()
    monkeypatch.setattr(wrapped_sessions, "time", made)
    return made


class _Creator:
    """Sessions whose steps fail as often as `failures` says, one number for each time that a step goes well."""

    def __init__(self, failures, clock, seconds=0.0):
        self.failures, self.made, self.clock, self.seconds = list(failures), 0, clock, seconds

    def create_session(self):
        self.made += 1
        self.clock.pauses.append(0.0)
        return self

    def run(self, *_, **__):
        self.clock.now += self.seconds
        if self.failures[0]:
            self.failures[0] -= 1
            raise tf.errors.UnavailableError(None, None, "task %d of 9 is gone\nwith more lines" % self.failures[0])
        self.failures.pop(0)
        return "well"

    def close(self):
        pass


def test_pauses_grow_and_begin_anew_after_a_good_step(clock):
    creator = _Creator([15, 3], clock)
    session = _RecoverableSession(creator)
    assert session.run("x") == "well" and creator.made == 16
    first = clock.pauses[:15]
    bounds = np.minimum(_Failures.LONGEST_PAUSE, _Failures.FIRST_PAUSE * 2.0 ** np.arange(15))
    assert np.all(np.array(first) <= bounds) and np.all(np.array(first) >= bounds / 2)
    assert session.run("x") == "well" and all(0 < p <= 0.4 for p in clock.pauses[15:18])
    clock.pauses.clear()
    _RecoverableSession(_Creator([15], clock)).run("x")
    assert clock.pauses[:15] != first  # not all workers at once


def test_too_many_failures_in_a_row_are_raised_with_what_happened(clock):
    creator = _Creator([3, 1000], clock)
    session = _RecoverableSession(creator)
    assert session.run("x") == "well"
    with pytest.raises(tf.errors.UnavailableError) as raised:
        session.run("x")
    assert creator.made == 3 + _Failures.MOST and clock.pauses[-1] == 0
    lines = raised.value.message.splitlines()
    assert lines[0] == "task 980 of 9 is gone" and "20 attempts" in raised.value.message and "15 more" in raised.value.message
    assert sum("UnavailableError: task" in line for line in lines) == 5


def test_an_error_may_have_no_message(clock):
    creator = _Creator([0], clock)
    session = _RecoverableSession(creator)
    failures = iter([tf.errors.AbortedError(None, None, None)])

    def run(*_, **__):
        for failure in failures:
            raise failure
        return "well"

    creator.run = run
    assert session.run("x") == "well"


def test_an_hour_of_attempts_that_wait_long_is_too_much(clock):
    creator = _Creator([1000], clock, seconds=600)
    with pytest.raises(tf.errors.UnavailableError, match="4 attempts"):
        _RecoverableSession(creator).run("x")


if __name__ == "__main__":
    sys.exit(pytest.main([os.path.abspath(__file__)]))
