# SPDX-License-Identifier: Apache-2.0
"""Checkpoints written while training goes on, the best ones kept, and what a checkpoint lacks."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _begun(*variables):
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_an_asynchronous_checkpoint_is_a_snapshot(tmp_path, sharded, resource):
    variables = [tf.get_variable("v%d" % i, [1000, 100], initializer=tf.zeros_initializer(), use_resource=resource) for i in range(4)]
    step = tf.group(*[v.assign_add(tf.ones([1000, 100])) for v in variables])
    saver = tf.train.Saver(asynchronous=True, sharded=sharded, max_to_keep=None)
    with _begun() as session:
        for i in range(5):
            path = saver.save(session, str(tmp_path / "c"), global_step=i)
            assert path == str(tmp_path / ("c-%d" % i))
            for _ in range(7):
                session.run(step)  # while it is written
        saver.wait()
        values = session.run(variables)
    assert all((v == 35).all() for v in values)
    for i in range(5):
        for v in variables:
            read = tf.train.load_variable(str(tmp_path / ("c-%d" % i)), v.op.name)
            assert (read == 7 * i).all(), (i, np.unique(read))
    assert tf.train.latest_checkpoint(str(tmp_path)) == path


def test_what_goes_wrong_is_raised_by_the_next_call(tmp_path):
    tf.get_variable("v", [3])
    saver = tf.train.Saver(asynchronous=True)
    with _begun() as session:
        saver.save(session, str(tmp_path / "a"))
        saver.wait()
        (tmp_path / "file").write_text("")
        saver.save(session, str(tmp_path / "b"))
        saver.wait()
        os.mkdir(tmp_path / "c.index")  # where the index is to come
        saver.save(session, str(tmp_path / "c"))
        with pytest.raises(tf.errors.OpError):
            saver.wait()
        saver.wait()  # once
        assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "b")
        with pytest.raises(ValueError, match="Parent directory"):
            saver.save(session, str(tmp_path / "no" / "such" / "d"))


def test_restore_waits_for_what_is_being_written(tmp_path):
    v = tf.get_variable("v", [300000], initializer=tf.ones_initializer())
    saver = tf.train.Saver(asynchronous=True)
    with _begun() as session:
        path = saver.save(session, str(tmp_path / "a"))
        session.run(v.assign(tf.zeros([300000])))
        saver.restore(session, path)
        assert session.run(v).sum() == 300000


def test_a_closed_session_leaves_whole_checkpoints(tmp_path):
    v = tf.get_variable("v", [500000], initializer=tf.ones_initializer())
    saver = tf.train.Saver(asynchronous=True)
    with _begun() as session:
        path = saver.save(session, str(tmp_path / "a"))
    assert tf.train.latest_checkpoint(str(tmp_path)) == path and tf.train.load_variable(path, "v").sum() == 500000
    os.mkdir(tmp_path / "b.index")
    session = _begun()
    saver.save(session, str(tmp_path / "b"))
    with pytest.raises(tf.errors.OpError):
        session.close()
    with pytest.raises((RuntimeError, tf.errors.OpError)):
        session.run(v)


def test_hooks_save_in_the_background(tmp_path):
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", [100000], initializer=tf.zeros_initializer())
    train = tf.group(v.assign_add(tf.ones([100000])), step.assign_add(1))
    saver = tf.train.Saver(asynchronous=True, max_to_keep=None)
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=3, saver=saver)
    with tf.train.MonitoredTrainingSession(hooks=[hook, tf.train.StopAtStepHook(last_step=10)]) as session:
        while not session.should_stop():
            session.run(train)
    newest = tf.train.latest_checkpoint(str(tmp_path))
    assert newest.endswith("-10")
    for number in (0, 3, 6, 9, 10):
        assert (tf.train.load_variable(str(tmp_path / ("model.ckpt-%d" % number)), "v") == number).all()


_PROGRAM = """
import sys, millrace as tf
v = [tf.get_variable("v%d" % i, [200, 50], initializer=tf.zeros_initializer()) for i in range(5)]
step = tf.group(*[x.assign_add(tf.ones([200, 50])) for x in v])
saver = tf.train.Saver(asynchronous=True, max_to_keep=3)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    newest = tf.train.latest_checkpoint(sys.argv[1])
    if newest:
        saver.restore(session, newest)
    begin = int(session.run(v[0])[0, 0])
    print("ready", flush=True)
    for i in range(begin + 1, 100000):
        session.run(step)
        saver.save(session, sys.argv[1] + "/c", global_step=i, write_meta_graph=False)
"""


def test_a_killed_process_leaves_a_whole_checkpoint(tmp_path):
    seed = int(os.environ.get("MILLRACE_KILL_SEED", random.randrange(1 << 30)))
    print("MILLRACE_KILL_SEED=%d" % seed)
    chance, last = random.Random(seed), 0
    for _ in range(int(os.environ.get("MILLRACE_KILLS", "5"))):
        child = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(tmp_path)], stdout=subprocess.PIPE)
        try:
            assert child.stdout.readline() == b"ready\n"
            time.sleep(chance.random() * 0.15)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
        newest = tf.train.latest_checkpoint(str(tmp_path))
        if newest is None:
            continue
        values = [tf.train.load_variable(newest, "v%d" % i) for i in range(5)]
        number = int(newest.rsplit("-", 1)[1])
        assert number >= last and all((v == number).all() for v in values), (newest, [np.unique(v) for v in values])
        last = number
    assert last > 0


def test_the_best_stay(tmp_path):
    tf.get_variable("v", [2])
    saver = tf.train.Saver(max_to_keep=2, keep_best=2)
    scores = [0.1, 0.9, 0.3, 0.8, 0.2, 0.85, 0.4]

    def there():
        return sorted(int(f[2:-6]) for f in os.listdir(tmp_path) if f.endswith(".index"))

    with _begun() as session:
        for i, score in enumerate(scores):
            saver.save(session, str(tmp_path / "c"), global_step=i, score=score, write_meta_graph=i == 1)
    assert there() == [1, 5, 6]  # the newest two, and the best two
    assert tf.train.best_checkpoint(str(tmp_path)) == str(tmp_path / "c-1")
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "c-6")
    # Another process goes on with the scores.
    again = tf.train.Saver(max_to_keep=1, keep_best=2)
    with _begun() as session:
        again.recover_last_checkpoints([str(tmp_path / "c-6")])
        again.save(session, str(tmp_path / "c"), global_step=7, score=0.95)
        again.save(session, str(tmp_path / "c"), global_step=8)  # without a score
    assert there() == [1, 7, 8] and tf.train.best_checkpoint(str(tmp_path)) == str(tmp_path / "c-7")
    assert os.path.exists(tmp_path / "c-1.meta")


def test_the_least_score_can_be_the_best(tmp_path):
    tf.get_variable("v", [2])
    saver = tf.train.Saver(max_to_keep=1, keep_best=1, best_is="least", asynchronous=True)
    with _begun() as session:
        for i, loss in enumerate([3.0, 1.0, 2.0]):
            saver.save(session, str(tmp_path / "c"), global_step=i, score=loss)
        saver.wait()
    assert sorted(f for f in os.listdir(tmp_path) if f.endswith(".index")) == ["c-1.index", "c-2.index"]
    assert tf.train.best_checkpoint(str(tmp_path), better="least") == str(tmp_path / "c-1")
    with pytest.raises(ValueError, match="'greatest' or 'least'"):
        tf.train.Saver(keep_best=1, best_is="smallest")
    with _begun() as session:
        with pytest.raises(ValueError, match="not a number"):
            tf.train.Saver(keep_best=1).save(session, str(tmp_path / "d"), score=float("nan"))
        with pytest.raises(ValueError, match="a Saver with keep_best"):
            tf.train.Saver().save(session, str(tmp_path / "d"), score=1.0)
    for damaged in ("[nonsense", "{", '{"c-1": "good"}', '{"c-1": 1} more', '{"c-1": NaN}'):
        (tmp_path / "checkpoint.scores").write_text(damaged)
        with pytest.raises(tf.errors.DataLossError, match="holds no scores"):
            tf.train.best_checkpoint(str(tmp_path))


def test_scores_are_json_that_others_read_and_write(tmp_path):
    tf.get_variable("v", [2])
    saver = tf.train.Saver(keep_best=3)
    with _begun() as session:
        for i, score in enumerate([0.1, 1e300, -0.0]):
            saver.save(session, str(tmp_path / 'ch\u00e9"ck'), global_step=i, score=score)
    scores = json.loads((tmp_path / "checkpoint.scores").read_text(encoding="utf-8"))
    assert scores == {'ch\u00e9"ck-0': 0.1, 'ch\u00e9"ck-1': 1e300, 'ch\u00e9"ck-2': -0.0}
    for ascii_only in (True, False):  # as Python writes it
        (tmp_path / "checkpoint.scores").write_text(json.dumps(scores, indent=1, ensure_ascii=ascii_only), encoding="utf-8")
        assert tf.train.best_checkpoint(str(tmp_path)) == str(tmp_path / 'ch\u00e9"ck-1')
        assert tf.train.best_checkpoint(str(tmp_path), better="least") == str(tmp_path / 'ch\u00e9"ck-2')


def test_a_mismatch_names_what_is_missing_and_what_is_near(tmp_path):
    tf.get_variable("layer/weights", [2, 3]), tf.get_variable("b", [3]), tf.get_variable("old_name", [1]), tf.get_variable("r", [2], use_resource=True)
    with _begun() as session:
        path = tf.train.Saver().save(session, str(tmp_path / "c"))
    with tf.Graph().as_default():
        tf.get_variable("layer/weight", [2, 3]), tf.get_variable("b", [4]), tf.get_variable("r", [5], use_resource=True)
        tf.get_variable("net/layer/weights", [2, 3]), tf.get_variable("quite_another", [1])
        saver = tf.train.Saver()
        differs = saver.mismatch(path)
        assert dict(differs.missing) == {"layer/weight": ["layer/weights"], "net/layer/weights": ["layer/weights"], "quite_another": []}
        assert differs.unexpected == ["layer/weights", "old_name"]
        assert differs.shapes == [("b", [4], [3]), ("r", [5], [2])] and differs
        with _begun() as session:
            with pytest.raises(tf.errors.NotFoundError) as caught:
                saver.restore(session, path)
            text = str(caught.value)
            assert "layer/weight, did you mean layer/weights?" in text and "b: wanted [4], found [3]" in text and "in the checkpoint alone (2)" in text
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"b: wanted \[4\], found \[3\]"):
                tf.train.Saver([v for v in tf.global_variables() if v.op.name == "b"]).restore(session, path)
    with tf.Graph().as_default():
        tf.get_variable("b", [3], dtype=tf.float64)
        assert [row[0] for row in tf.train.Saver().mismatch(path).dtypes] == ["b"]
    with tf.Graph().as_default(), _begun() as session:
        tf.get_variable("b", [3])
        assert not tf.train.Saver().mismatch(path)
        with pytest.raises(tf.errors.OpError) as caught:
            tf.train.Saver().restore(session, str(tmp_path / "nothing"))
        assert "does not fit" not in str(caught.value)


def test_several_threads_may_train_meanwhile(tmp_path):
    v = tf.get_variable("v", [2000], initializer=tf.zeros_initializer())
    step = v.assign_add(tf.ones([2000]), use_locking=True)
    saver = tf.train.Saver(asynchronous=True, max_to_keep=None)
    with _begun() as session:
        stop = threading.Event()

        def train():
            while not stop.is_set():
                session.run(step)

        threads = [threading.Thread(target=train) for _ in range(2)]
        for t in threads:
            t.start()
        paths = [saver.save(session, str(tmp_path / "c"), global_step=i, write_meta_graph=False) for i in range(20)]
        stop.set()
        for t in threads:
            t.join()
        saver.wait()
    values = [tf.train.load_variable(p, "v") for p in paths]
    assert all(len(np.unique(x)) == 1 for x in values) and [x[0] for x in values] == sorted(x[0] for x in values)
