# SPDX-License-Identifier: Apache-2.0
"""Servers: tasks of clusters, in this process and in others."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import millrace as tf
from millrace.protos import text_format
from millrace.testing.test_util import _unused_port, create_local_cluster

_HAS_GRPC = os.path.exists(os.path.join(os.path.dirname(os.path.abspath(tf.__file__)), "libmillrace_grpc.so")) or any(
    os.path.exists(os.path.join(d, "libmillrace_grpc.so"))
    for d in (
        os.path.dirname(os.path.realpath(os.environ.get("MILLRACE_LIBRARY", "") or "/")),
        os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(tf.__file__)), "..", "..", "lib")),
    )
)


def test_a_local_server_runs_steps():
    server = tf.train.Server.create_local_server()
    assert re.fullmatch(r"grpc://localhost:\d+", server.target)
    assert server.server_def.job_name == "local" and server.server_def.protocol == "grpc"
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        x = tf.placeholder(tf.float32, [2])
        y = x * 2
        assert session.run(y, {x: [1, 2]}).tolist() == [2, 4]
        z = y + 1  # the graph grows after the first step
        assert session.run(z, {x: [1, 2]}).tolist() == [3, 5]
        assert [d.name for d in session.list_devices()] == ["/job:local/replica:0/task:0/device:CPU:0"]


def test_variables_live_on_parameter_servers():
    workers, servers = create_local_cluster(num_workers=2, num_ps=2)
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=workers[0].server_def.cluster)):
            a, b = tf.Variable(1.0, name="a"), tf.Variable(np.ones([3, 2], np.float32), name="b")
            total = tf.reduce_sum(b) * a
            step = tf.train.GradientDescentOptimizer(0.5).minimize(total)
        assert a.device == "/job:ps/task:0" and b.device == "/job:ps/task:1"
        with tf.Session(workers[0].target) as first, tf.Session(workers[1].target) as second:
            first.run(tf.global_variables_initializer())
            first.run(step)
            assert second.run(a) == 1.0 - 0.5 * 6
            options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
            second.run(step, options=options, run_metadata=metadata)
            ran = {d.device for d in metadata.step_stats.dev_stats}
            assert {"/job:ps/replica:0/task:%d/device:CPU:0" % i for i in range(2)} <= ran
        with tf.Session(servers[0].target) as third:  # a new session, the same state
            assert third.run(a) != 1.0
        tf.Session.reset(servers[0].target)
        with tf.Session(servers[0].target) as fourth, pytest.raises(tf.errors.FailedPreconditionError):
            fourth.run(a)


def test_nodes_without_a_task_run_on_the_first():
    workers, _ = create_local_cluster(num_workers=2, num_ps=2)
    with tf.Graph().as_default():
        variable = tf.Variable(1.0, name="v")
        add = variable.assign_add(1.0)
        with tf.device("/job:worker"):
            fed = tf.placeholder(tf.float32, name="fed")
            square = tf.square(fed, name="square")
        with tf.Session(workers[0].target) as first, tf.Session(workers[1].target) as second:
            first.run(variable.initializer)
            assert second.run(add) == 2.0
            options, metadata = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
            assert second.run([square, add], {fed: 3.0}, options=options, run_metadata=metadata)[0] == 9.0
    where = {n.name: n.device for g in metadata.partition_graphs for n in g.node}
    assert where["v"] == "/job:ps/replica:0/task:0/device:CPU:0"
    assert where["square"] == "/job:worker/replica:0/task:0/device:CPU:0"


def _made_by_sessions(target, make):
    """What `make`'s second fetch gives in two sessions, each of which runs the first before."""
    got = []
    for _ in range(2):
        with tf.Graph().as_default():
            before, after = make()
            with tf.Session(target) as session:
                session.run(before)
                got.append(session.run(after))
    return got


def test_what_has_no_shared_name_is_of_one_session():
    def queue(shared_name=None):
        made = tf.FIFOQueue(9, tf.float32, [()], shared_name=shared_name, name="queue")
        return made.enqueue(1.0), made.size()

    def accumulator():
        made = tf.ConditionalAccumulator(tf.float32, ())
        return made.apply_grad(tf.constant(1.0)), made.num_accumulated()

    def one_shot():
        element = tf.data.Dataset.range(9).make_one_shot_iterator().get_next()
        return element, element

    def table(checkpoint=True):
        made = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1, name="table", checkpoint=checkpoint)
        key = tf.random_uniform([1], maxval=2**40, dtype=tf.int64)
        return made.insert(key, key), made.size()

    target = tf.train.Server.create_local_server().target
    assert _made_by_sessions(target, queue) == [1, 1]
    assert _made_by_sessions(target, lambda: queue("shared")) == [1, 2]
    assert _made_by_sessions(target, accumulator) == [1, 1]
    assert _made_by_sessions(target, one_shot) == [1, 1]
    assert _made_by_sessions(target, table) == [1, 2], "as variables are"
    assert _made_by_sessions(target, lambda: table(checkpoint=False)) == [1, 1]


def test_an_iterator_that_sessions_share_outlives_them():
    target = tf.train.Server.create_local_server().target
    with tf.Graph().as_default():
        doubled = tf.data.Dataset.range(5).repeat().map(lambda x: x * 2).prefetch(2).map(lambda x: x + 1, 2)
        iterator = doubled.make_initializable_iterator(shared_name="shared")
        following = iterator.get_next()
        with tf.Session(target) as first:
            first.run(iterator.initializer)
            assert first.run(following) == 1
        with tf.Session(target) as second:
            assert [second.run(following) for _ in range(6)] == [3, 5, 7, 9, 1, 3]
        tf.Session.reset(target)
        with tf.Session(target) as third, pytest.raises(tf.errors.FailedPreconditionError):
            third.run(following)


def test_handles_that_were_away_find_what_a_session_owns():
    target = tf.train.Server.create_local_server().target
    with tf.Graph().as_default(), tf.Session(target) as session:
        data = tf.data.Dataset.range(9)
        one_shot = data.make_one_shot_iterator()
        again = data.make_initializable_iterator()
        handle = tf.placeholder(tf.string, [])
        element = tf.data.Iterator.from_string_handle(handle, data.output_types, data.output_shapes).get_next()
        first, second = session.run([one_shot.string_handle(), again.string_handle()])
        session.run(again.initializer)
        assert [session.run(element, {handle: h}) for h in (first, first, second, first)] == [0, 1, 0, 2]
    with tf.Graph().as_default(), tf.Session(target) as session:
        handle = tf.placeholder(tf.string, [])
        element = tf.data.Iterator.from_string_handle(handle, data.output_types, data.output_shapes).get_next()
        with pytest.raises(tf.errors.NotFoundError):  # it has ended with its session
            session.run(element, {handle: first})


@pytest.mark.parametrize("use_resource", [False, True])
def test_what_changes_a_variable_lies_with_it(use_resource, tmp_path):
    workers, _ = create_local_cluster(num_workers=2, num_ps=2)
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
            steps = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [3], initializer=tf.ones_initializer(), use_resource=use_resource)
            changes = [w.assign(tf.fill([3], 2.0)), w.assign_add(tf.ones([3])), w.assign_sub(tf.fill([3], 0.5))]
            train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w), global_step=steps)
            saver = tf.train.Saver()
        assert w.device == "/job:ps/task:1"
        with tf.Session(workers[1].target) as session:
            session.run(tf.global_variables_initializer())
            for change, value in zip(changes, (2.0, 3.0, 2.5)):
                session.run(change)
                assert session.run(w).tolist() == [value] * 3
            session.run(train)
            kept = saver.save(session, str(tmp_path / "model"))
            after = session.run(w)
            session.run(train)
            saver.restore(session, kept)
            assert session.run(w).tolist() == after.tolist() and session.run(steps) == 1


def test_the_global_step_is_counted_where_it_lies():
    workers, _ = create_local_cluster(num_workers=1, num_ps=2)
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
            w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
            steps = tf.get_variable("steps", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
            train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w), global_step=steps)
        assert train.device == steps.device == "/job:ps/task:1"
        with tf.Session(workers[0].target) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            assert session.run(steps) == 3
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [3], initializer=tf.ones_initializer(), use_resource=True)
        steps = tf.get_variable("steps", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False, use_resource=True)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w), global_step=steps)
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run(steps) == 1


def _config(servers, job="mine", **settings):
    cluster = tf.train.ClusterSpec({job: [s.target[len("grpc://") :] for s in servers]})
    return tf.ConfigProto(cluster_def=cluster.as_cluster_def(), **settings)


def test_a_session_brings_its_cluster():
    servers = [tf.train.Server.create_local_server() for _ in range(3)]
    with tf.Graph().as_default():
        with tf.device("/job:mine/task:1"):
            w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
            add = w.assign_add(tf.ones([2]))
        with tf.device("/job:mine/task:0"):
            twice = 2 * w
        with (
            tf.Session(servers[0].target, config=_config(servers[:2])) as first,
            tf.Session(servers[0].target, config=_config([servers[0], servers[2]])) as second,
        ):
            assert [d.name for d in first.list_devices()] == ["/job:mine/replica:0/task:%d/device:CPU:0" % i for i in range(2)]
            for session in (first, second):
                session.run(w.initializer)
            metadata = tf.RunMetadata()
            first.run(add, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
            ran_on = {d.device for d in metadata.step_stats.dev_stats if d.device.startswith("/job:")}  # beside thread switches
            assert ran_on == {"/job:mine/replica:0/task:1/device:CPU:0"}
            assert first.run(twice).tolist() == [2, 2] and second.run(twice).tolist() == [0, 0]
        # The variable is its server's, whatever a session calls that.
        renamed = tf.Session(servers[1].target, config=_config([servers[0], servers[1]]))
        assert renamed.run(twice).tolist() == [2, 2]
        renamed.close()
        for wrong, told in ((servers[1:], "0 tasks at localhost"), ([servers[0]] * 2, "task:0 and .*task:1 have the address localhost")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=told), tf.Session(servers[0].target, config=_config(wrong)) as session:
                session.run(twice)


def test_a_session_may_have_its_own_state():
    workers, _ = create_local_cluster(num_workers=1, num_ps=1)
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
            add = w.assign_add(1.0)
        own = tf.ConfigProto(isolate_session_state=True)
        with tf.Session(workers[0].target) as shared, tf.Session(workers[0].target, config=own) as first, tf.Session(workers[0].target, config=own) as second:
            for session in (shared, first, second):
                with pytest.raises(tf.errors.FailedPreconditionError):
                    session.run(w)
                session.run(w.initializer)
            first.run(add)
            first.run(add)
            shared.run(add)
            assert [s.run(w) for s in (shared, first, second)] == [1, 2, 0]
        with tf.Session(workers[0].target) as again, tf.Session(workers[0].target, config=own) as fresh:
            assert again.run(w) == 1
            with pytest.raises(tf.errors.FailedPreconditionError):
                fresh.run(w)


def test_definitions():
    with pytest.raises(ValueError, match="job_name"):
        tf.train.Server({"a": ["localhost:0"], "b": ["localhost:0"]})
    with pytest.raises(ValueError, match="task_index"):
        tf.train.Server({"a": ["localhost:0", "localhost:0"]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="port"):
        tf.train.Server({"local": ["localhost"]})
    server = tf.train.Server.create_local_server(start=False)
    with pytest.raises(tf.errors.UnknownError, match="Could not start gRPC server"):
        tf.train.Server({"other": [server.target[len("grpc://") :]]})
    config = tf.ConfigProto(device_count={"CPU": 3})
    with tf.Session(tf.train.Server.create_local_server(config=config).target) as session:
        assert len(session.list_devices()) == 3
    with pytest.raises(tf.errors.NotFoundError):
        tf.Session("nonexistent", graph=tf.Graph())


def test_a_cluster_is_told_as_what_makes_it():
    assert str(tf.train.ClusterSpec({"worker": ["a:1"], "ps": {1: "b:2"}})) == "ClusterSpec({'ps': {1: 'b:2'}, 'worker': ['a:1']})"


def test_experimental_options():
    config = tf.ConfigProto()
    text = 'collective_group_leader: "/job:worker/task:0" executor_type: "SINGLE_THREADED_EXECUTOR" recv_buf_max_chunk: 7 use_numa_affinity: true '
    text += "collective_nccl: true share_session_state_in_clusterspec_propagation: true disable_thread_spinning: true share_cluster_devices_in_session: true "
    text += 'session_metadata { name: "model" version: 3 } optimize_for_static_graph: true collective_deterministic_sequential_execution: true'
    text_format.Parse("experimental { %s }" % text, config)
    assert tf.ConfigProto.FromString(config.SerializeToString()) == config
    assert config.SerializeToString()[:2] == b"\x82\x01"  # field 16
    server = tf.train.Server.create_local_server(config)
    with tf.Session(server.target, config=config) as session, tf.Session(config=config) as alone:
        assert session.run(tf.constant(3)) == alone.run(tf.constant(3)) == 3
    config.experimental.executor_type = "NONE_SUCH"
    with pytest.raises(tf.errors.NotFoundError, match="NONE_SUCH"):
        tf.Session(config=config)
    config.experimental.executor_type = "DEFAULT"
    config.experimental.session_metadata.version = -1
    with pytest.raises(tf.errors.InvalidArgumentError, match="version is -1"):
        tf.Session(config=config)
    with pytest.raises((AttributeError, ValueError)):
        tf.ConfigProto(experimental=tf.ConfigProto.Experimental(enable_mlir_bridge=True))  # of later versions
    options = tf.RunOptions(experimental=tf.RunOptions.Experimental(use_run_handler_pool=True))
    with tf.Session() as session:
        assert session.run(tf.constant(3), options=options) == 3


def test_partial_runs_deadlines_and_closing():
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        first = a * 2
        second = first + b
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 3}) == 6
        assert session.partial_run(handle, second, {b: 1}) == 7
        blocked = tf.FIFOQueue(1, [tf.float32]).dequeue()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(blocked, options=tf.RunOptions(timeout_in_ms=50))
        seen = []

        def wait():
            with pytest.raises(tf.errors.CancelledError, match="Session::Close") as caught:
                session.run(blocked)
            seen.append(caught)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        session.close()
        waiting.join(timeout=10)
        assert seen


def test_the_deadline_of_a_step_holds_for_the_session_that_it_makes():
    with tf.Graph().as_default(), tf.Session("grpc://localhost:%d" % _unused_port()) as session:
        x = tf.constant(1)
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError, match="waited 300ms: server localhost"):
            session.run(x, options=tf.RunOptions(timeout_in_ms=300))
        assert time.monotonic() - start < 60


def _start(cluster, job, task):
    made = subprocess.Popen(
        [sys.executable, "-m", "millrace", "serve", "--cluster", cluster, "--job", job, "--task", str(task)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert "listens at" in made.stdout.readline(), made.stderr.read()
    return made


@pytest.fixture(params=["as it is", "without gRPC"])
def library(request, tmp_path, monkeypatch):
    """The native library for other processes: where nothing lies beside it, it finds no gRPC, as in the wheel."""
    if request.param == "without gRPC":
        (mapped,) = {line.split()[-1] for line in open("/proc/self/maps") if re.search(r"/libmillrace\.so[.\d]*$", line)}
        monkeypatch.setenv("MILLRACE_LIBRARY", shutil.copy(mapped, str(tmp_path / "libmillrace.so")))
    elif not _HAS_GRPC:
        pytest.skip("libmillrace_grpc.so is not built")


def test_processes_train_together_and_one_dies(library):
    ports = [_unused_port() for _ in range(4)]
    cluster = "ps=localhost:%d,localhost:%d;worker=localhost:%d,localhost:%d" % tuple(ports)
    tasks = {(job, i): _start(cluster, job, i) for job in ("ps", "worker") for i in range(2)}
    try:
        with tf.Graph().as_default():
            with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
                w, b = tf.Variable(np.zeros([3, 1], np.float32)), tf.Variable(0.0)
                x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
                step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
            init = tf.global_variables_initializer()
            data = np.random.RandomState(0).randn(64, 3).astype(np.float32)
            feed = {x: data, y: data @ np.array([[1], [-2], [3]], np.float32) + 0.5}
            sessions = [
                tf.Session("grpc://localhost:%d" % p, config=tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % i]))
                for i, p in enumerate(ports[2:])
            ]
            sessions[0].run(init)

            def train(session):
                for _ in range(60):
                    session.run(step, feed)

            threads = [threading.Thread(target=train, args=(s,)) for s in sessions]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=60)
            assert sessions[1].run(loss, feed) < 0.01
            tasks["ps", 1].kill()
            began = time.time()
            with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError), match="/job:ps/replica:0/task:1"):
                sessions[0].run(step, feed)
            assert time.time() - began < 15
            for session in sessions:
                session.close()
        tasks["worker", 1].send_signal(signal.SIGTERM)
        assert tasks["worker", 1].wait(timeout=20) == 143
    finally:
        for task in tasks.values():
            task.kill()
            task.wait()


def test_what_lies_in_memory_of_others_is_not_written_to():
    """Large tensors are read where shared memory has them; variables that keep one, and ops that work in place, make a copy first."""
    ports = [_unused_port() for _ in range(2)]
    tasks = [_start("w=localhost:%d,localhost:%d" % tuple(ports), "w", i) for i in range(2)]
    shape = [1 << 13, 4]
    try:
        with tf.Graph().as_default():
            fed = tf.placeholder(tf.float32, shape)
            with tf.device("/job:w/task:0"):
                sent = fed * 2.0
            with tf.device("/job:w/task:1"):
                kept = tf.Variable(tf.zeros(shape), use_resource=False)
                resource = tf.Variable(tf.zeros(shape), use_resource=True)
                keep = tf.group(kept.assign(sent), resource.assign(sent))
                ones, rows = tf.ones(shape), tf.IndexedSlices(tf.ones([2, 4]), [1, 5])
                changes = [kept.assign_add(ones), tf.scatter_add(kept, rows.indices, rows.values), kept[2:4].assign(rows.values)]
                changes += [resource.assign_add(ones), resource.scatter_add(rows)]
                for variable in (kept, resource):
                    for kind in (tf.train.GradientDescentOptimizer, tf.train.AdamOptimizer, tf.train.FtrlOptimizer):
                        changes.append(kind(0.1).minimize(tf.reduce_sum(variable * variable), var_list=[variable]))
                queue = tf.FIFOQueue(1200, tf.float32, [shape])
                enqueue, taken = queue.enqueue(sent), queue.dequeue()
                counted = tf.while_loop(lambda i, x: i < 3, lambda i, x: [i + 1, x + 1.0], [0, sent])[1]
            feed = {fed: np.random.RandomState(1).rand(*shape).astype(np.float32)}
            want = feed[fed] * 2
            with tf.Session("grpc://localhost:%d" % ports[0]) as session:
                session.run(tf.global_variables_initializer())
                for change in changes:
                    session.run(keep, feed)
                    np.testing.assert_array_equal(session.run(kept), want)
                    session.run(change)
                np.testing.assert_allclose(session.run(counted, feed), want + 3, rtol=1e-6)
                for _ in range(1100):  # more than are held
                    session.run(enqueue, feed)
                for _ in range(1100):
                    np.testing.assert_array_equal(session.run(taken), want)
        assert [task.poll() for task in tasks] == [None, None]
    finally:
        for task in tasks:
            task.kill()
            task.wait()


def test_who_waits_for_the_chief_looks_often_at_first():
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default():
        tf.get_variable("v", initializer=1.0)
        init = tf.global_variables_initializer()
        manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=60)
        with tf.Session(server.target) as chief:
            timer = threading.Timer(0.3, chief.run, [init])
            timer.start()
            start = time.monotonic()
            manager.wait_for_session(server.target, max_wait_secs=300).close()
            timer.join()
            assert time.monotonic() - start < 30  # not a whole interval
