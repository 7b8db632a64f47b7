# SPDX-License-Identifier: Apache-2.0
"""The museum: what other systems' clusters hang in. Each ends here, in time, and says why."""

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

import millrace as tf
from millrace.testing.test_util import _unused_port, create_local_cluster
from test_serve import _environ, _Served, needs_grpc


@pytest.fixture(autouse=True)
def no_graph_of_others():
    with tf.Graph().as_default():
        yield


class _Within:
    """Fails when the block takes longer than that many seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        self.began = time.monotonic()

    def __exit__(self, *_):
        took = time.monotonic() - self.began
        assert took < self.seconds, "took %.1f s" % took


def _in_thread(work):
    """Starts it; what it raises is in the list that comes back beside the thread."""
    raised = []

    def run():
        try:
            work()
        except Exception as e:  # pylint: disable=broad-except
            raised.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised


def test_a_session_with_a_server_that_is_not_there_honours_its_timeout():
    config = tf.ConfigProto(operation_timeout_in_ms=300)
    session = tf.Session("grpc://localhost:%d" % _unused_port(), config=config)
    with _Within(3), pytest.raises(tf.errors.DeadlineExceededError):
        session.run(tf.constant(1))
    with _Within(1):
        session.close()


def test_a_session_with_a_task_that_is_not_there_names_it_and_honours_its_timeout():
    cluster = {"worker": ["localhost:%d" % _unused_port()], "ps": ["localhost:%d" % _unused_port()]}
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    session = tf.Session(server.target, config=tf.ConfigProto(operation_timeout_in_ms=300))
    with _Within(3), pytest.raises(tf.errors.DeadlineExceededError, match="/job:ps/replica:0/task:0"):
        session.run(tf.constant(1))
    with _Within(1):
        session.close()
    server.stop()


def test_joining_a_parameter_server_ends_when_it_is_stopped():
    server = tf.train.Server.create_local_server()
    thread, raised = _in_thread(server.join)
    time.sleep(0.1)
    assert thread.is_alive()
    server.stop()
    thread.join(timeout=5)
    assert not thread.is_alive() and not raised


def test_a_session_closes_when_the_workers_left_first():
    workers, servers = create_local_cluster(num_workers=2, num_ps=1)
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0)
    with tf.device("/job:worker/task:1"):
        y = v * 2
    session = tf.Session(workers[0].target)
    session.run(v.initializer)
    assert session.run(y) == 2
    workers[1].stop()
    servers[0].stop()
    with _Within(5):
        session.close()
        workers[0].stop()


def test_a_deadline_says_which_node_waits():
    workers, _ = create_local_cluster(num_workers=1, num_ps=1)
    with tf.device("/job:ps/task:0"):
        taken = tf.FIFOQueue(1, [tf.float32]).dequeue(name="waits_here")
    with tf.device("/job:worker/task:0"):
        doubled = taken * 2
    with tf.Session(workers[0].target) as session:
        with pytest.raises(tf.errors.DeadlineExceededError, match="waits_here"):
            session.run(doubled, options=tf.RunOptions(timeout_in_ms=100))


def test_steps_that_time_out_hold_nothing_that_later_ones_need(tmp_path):
    server = tf.train.Server.create_local_server()
    queue = tf.FIFOQueue(1, [tf.float32])
    taken, put = queue.dequeue(), queue.enqueue(3.0)
    v = tf.Variable(1.0)
    saver = tf.train.Saver()
    with tf.Session(server.target) as session:
        session.run(v.initializer)
        for _ in range(40):
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(taken, options=tf.RunOptions(timeout_in_ms=5))
        with _Within(10):
            saver.save(session, str(tmp_path / "model"))
        session.run(put)
        assert session.run(taken) == 3


def test_steps_that_wait_hold_no_thread_that_others_need():
    server = tf.train.Server.create_local_server()
    queue = tf.FIFOQueue(100, [tf.float32])
    taken, put, x = queue.dequeue(), queue.enqueue(1.0), tf.reduce_sum(tf.random_normal([50]))
    with tf.Session(server.target) as session:
        threads = [_in_thread(lambda: session.run(taken)) for _ in range(32)]
        time.sleep(0.2)
        with _Within(10):
            for _ in range(20):
                session.run(x)
            for _ in threads:
                session.run(put)
            for thread, raised in threads:
                thread.join(timeout=10)
                assert not thread.is_alive() and not raised


def test_a_stop_frees_those_who_enqueue():
    server = tf.train.Server.create_local_server()
    queue = tf.FIFOQueue(1, [tf.float32])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 3)
    with tf.Session(server.target) as session:
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coord=coordinator, start=True)
        time.sleep(0.2)  # the queue is full, and all wait
        with _Within(10):
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=8)


def test_a_failure_on_one_task_ends_what_waits_on_another():
    workers, _ = create_local_cluster(num_workers=2, num_ps=1)
    with tf.device("/job:worker/task:0"):
        index = tf.placeholder(tf.int32, [])
        bad = tf.gather(tf.constant([1.0, 2.0]), index, name="out_of_range")
    with tf.device("/job:worker/task:1"):
        waits = tf.FIFOQueue(1, [tf.float32]).dequeue() + bad
    with tf.Session(workers[0].target) as session:
        with _Within(10), pytest.raises(tf.errors.OpError, match="out_of_range"):
            session.run(waits, {index: 9})


@pytest.mark.parametrize("dies", ["before a step", "in a step"])
def test_what_a_dead_worker_would_have_given_is_an_error_and_no_zero(dies):
    workers, _ = create_local_cluster(num_workers=2, num_ps=1)
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(3.0)
    losses, waits = [], tf.placeholder(tf.bool, [])
    for i in range(2):
        with tf.device("/job:worker/task:%d" % i):
            queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
            losses.append(tf.square(w) + tf.cond(waits, queue.dequeue, lambda: tf.constant(0.0)))
    train = w.assign_sub(0.1 * tf.add_n(losses))
    with tf.Session(workers[0].target) as session:
        session.run(w.initializer)
        assert session.run(tf.add_n(losses), {waits: False}) == 18.0
        values = []
        if dies == "before a step":
            workers[1].stop()
        step, raised = _in_thread(lambda: values.append(session.run([train, losses[1]], {waits: dies == "in a step"})))
        if dies == "in a step":
            time.sleep(0.3)
            assert step.is_alive()
            workers[1].stop()
        step.join(timeout=15)
        assert not step.is_alive() and not values
        assert isinstance(raised[0], (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)) and "task:1" in str(raised[0])
        assert session.run(w) == 3.0  # nothing was made of what is not there


_REPLICA = """
import json, sys, time
import millrace as tf
cluster, task, last = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
server = tf.train.Server(cluster, job_name="worker", task_index=task)

def held(step):
    if step == last:
        print("in the middle of step", step, flush=True)
        time.sleep(600)
    return 1.0

with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:%d" % task)):
    global_step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    step = tf.placeholder(tf.int64, [])
    factor = tf.cast(tf.py_func(held, [step], tf.float64), tf.float32)
    factor.set_shape([])
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2, total_num_replicas=2)
    train = optimizer.minimize(tf.square(w - 1) * factor, global_step=global_step)
    hook = optimizer.make_session_run_hook(task == 0, num_tokens=0)  # no step goes on without both
filters = ["/job:ps", "/job:worker/task:%d" % task]
with tf.train.MonitoredTrainingSession(server.target, is_chief=task == 0, hooks=[hook], config=tf.ConfigProto(device_filters=filters)) as session:
    for k in range(10**6):
        print("step", session.run([global_step, train], {step: k})[0], flush=True)
        time.sleep(0.02)
"""


@needs_grpc
def test_a_worker_that_is_killed_in_a_step_does_not_starve_the_others_of_tokens(tmp_path):
    """Two replicas train synchronously; one is killed before it has given its gradient, and its successor lets the other go on."""
    (tmp_path / "replica.py").write_text(_REPLICA)
    cluster = {"ps": ["localhost:%d" % _unused_port()], "worker": ["localhost:%d" % _unused_port() for _ in range(2)]}
    started = []

    def replica(task, last=-1):
        lines = tmp_path / ("lines%d" % len(started))
        with open(lines, "w") as out:
            arguments = [sys.executable, str(tmp_path / "replica.py"), json.dumps(cluster), str(task), str(last)]
            started.append(subprocess.Popen(arguments, stdout=out, stderr=subprocess.STDOUT, env=_environ()))
        return started[-1], lines.read_text

    def until(comes, seconds=60):
        end = time.monotonic() + seconds
        while not comes():
            assert time.monotonic() < end, [p.poll() for p in started] + [(tmp_path / ("lines%d" % i)).read_text()[-2000:] for i in range(len(started))]
            time.sleep(0.05)

    def steps_of(lines):
        return lines().count("step ")

    with _Served("--job", "ps", cluster=";".join("%s=%s" % (job, ",".join(tasks)) for job, tasks in cluster.items())):
        try:
            chief, of_chief = replica(0)
            victim, of_victim = replica(1, last=3)
            until(lambda: "in the middle of step 3" in of_victim())
            victim.kill()
            assert victim.wait(timeout=10) == -signal.SIGKILL
            time.sleep(1)
            stands = steps_of(of_chief)
            time.sleep(1)
            assert chief.poll() is None and steps_of(of_chief) == stands  # it waits for the other's gradient
            _, of_successor = replica(1)
            until(lambda: steps_of(of_chief) >= stands + 10 and steps_of(of_successor) >= 5)
            assert chief.poll() is None
        finally:
            for process in started:
                process.kill()
                process.wait()


def test_a_synchronous_step_ends_at_the_deadline_when_a_worker_is_gone_that_nobody_backs_up():
    """Nobody can take a dead worker's place: the others wait for its successor, no longer than their sessions say, and are told what for."""
    workers, _ = create_local_cluster(num_workers=2, num_ps=1)
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
        global_step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2, total_num_replicas=2)
        train = optimizer.minimize(tf.square(w - 1), global_step=global_step)
        hook = optimizer.make_session_run_hook(is_chief=True, num_tokens=0)
    workers[1].stop()
    config = tf.ConfigProto(operation_timeout_in_ms=1500, device_filters=["/job:ps", "/job:worker/task:0"])
    with _Within(20), pytest.raises(tf.errors.DeadlineExceededError, match="sync_token_q|grad_accum|AccumulatorTakeGradient"):
        with tf.train.MonitoredTrainingSession(workers[0].target, hooks=[hook], config=config) as session:
            for _ in range(3):
                session.run(train)


def test_a_client_that_is_killed_leaves_no_step_behind():
    server = tf.train.Server.create_local_server()
    program = (
        """
import millrace as tf
queue = tf.FIFOQueue(1, [tf.float32], shared_name="of_the_dead")
print("waits", flush=True)
tf.Session(%r).run(queue.dequeue())
"""
        % server.target
    )
    client = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert b"waits" in client.stdout.readline()
    time.sleep(1)
    client.kill()
    client.wait()
    queue = tf.FIFOQueue(1, [tf.float32], shared_name="of_the_dead")
    put, size, taken = queue.enqueue(5.0), queue.size(), queue.dequeue()
    with tf.Session(server.target) as session:
        time.sleep(1)
        session.run(put)
        time.sleep(0.2)
        assert session.run(size) == 1, "a step of a dead client has taken it"
        assert session.run(taken) == 5
