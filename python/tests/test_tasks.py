# SPDX-License-Identifier: Apache-2.0
"""What the tasks of a cluster are, and functions that are run as each of them. The values are those of TensorFlow 1.15.5."""

import json
import threading
import types

import numpy as np
import pytest

import millrace as tf

distribute = tf.python.distribute
tasks, devices, coordinate = distribute.multi_worker_util, distribute.device_util, distribute.distribute_coordinator
_CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"], "evaluator": ["e:1"]}


def test_parts_of_tasks():
    of = {kind: [(tasks.is_chief(_CLUSTER, kind, 0), tasks.collective_leader(_CLUSTER, kind, 0))] for kind in _CLUSTER}
    led = "/job:chief/replica:0/task:0"
    assert of == {"chief": [(True, led)], "worker": [(False, led)], "ps": [(False, led)], "evaluator": [(True, "")]}
    assert tasks.is_chief({"worker": ["b:1", "c:1"]}, "worker", 0) and not tasks.is_chief({"worker": ["b:1", "c:1"]}, "worker", 1)
    assert tasks.collective_leader({"worker": ["b:1"]}, "worker", 0) == "/job:worker/replica:0/task:0" and tasks.collective_leader({}, None, 0) == ""
    assert [tasks.worker_count(_CLUSTER, kind) for kind in ("chief", "worker", "evaluator")] == [3, 3, 1]
    assert [tasks.id_in_cluster(_CLUSTER, kind, 0) for kind in ("chief", "worker", "evaluator")] == [0, 1, 0]
    spec = tf.train.ClusterSpec(_CLUSTER)
    assert tasks.normalize_cluster_spec(spec) is spec and tasks.normalize_cluster_spec(spec.as_cluster_def()) == spec


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tasks.normalize_cluster_spec(["a:1"]), "should be dict or a `tf.train.ClusterSpec`"),
        (lambda: tasks.is_chief({}, "worker", 0), "`task_type` 'worker' not found in cluster_spec."),
        (lambda: tasks.is_chief({}), "None of `cluster_spec`, `task_type`, and `task_id` should be `None`."),
        (lambda: tasks.is_chief(_CLUSTER, "worker", 2), "The `task_id` 2 exceeds the maximum id of worker."),
        (lambda: tasks.id_in_cluster(_CLUSTER, "foo", 0), "Unrecognized task_type: 'foo'"),
        (lambda: tasks.id_in_cluster(_CLUSTER, "ps", 0), "There is no id for task_type 'ps'"),
        (lambda: tasks.worker_count(_CLUSTER, "ps"), "Unexpected `task_type` 'ps'"),
        (lambda: tasks.id_in_cluster({"chief": ["a:1", "b:1"]}, "chief", 0), "There must be at most one 'chief' job."),
        (lambda: tasks.should_save_checkpoint(), "no worker context"),
    ],
)
def test_tasks_that_there_are_not(call, message):
    with pytest.raises(ValueError) as caught:
        call()
    assert message in str(caught.value)


def test_names_of_devices_in_full():
    assert devices.canonicalize("/cpu:0") == "/replica:0/task:0/device:CPU:0" == devices.canonicalize("")
    assert devices.canonicalize("/job:worker/task:1", default="/gpu:0") == "/job:worker/replica:0/task:1/device:GPU:0"
    assert devices.canonicalize("/cpu:0", default="/job:worker") == "/job:worker/replica:0/task:0/device:CPU:0"
    with tf.Graph().as_default() as graph, tf.device("/job:worker"), tf.device(lambda op: "/gpu:1"):
        assert devices.current() == "/job:worker/device:GPU:1" and not graph.get_operations()
        assert devices.resolve("/task:2") == "/job:worker/replica:0/task:2/device:GPU:1"
    assert devices.current() == "" and devices.get_host_for_device("/job:a/task:1/gpu:3") == "/job:a/task:1/device:CPU:0"
    assert devices.local_devices_from_num_gpus(2) == ("/device:GPU:0", "/device:GPU:1") and devices.local_devices_from_num_gpus(0) == ("/device:CPU:0",)


def test_variables_of_several_devices():
    shared = distribute.shared_variable_creator
    assert [shared._canonicalize_variable_name(name) for name in (None, "a_1/b_2_3", "foo_1:0")] == ["Variable", "a/b_2", "foo_1:0"]
    store, made = {}, []
    with tf.Graph().as_default():
        for i in range(3):
            with tf.variable_creator_scope(shared.make_fn(store, i)):
                made.append([tf.Variable(1.0, name="foo"), tf.Variable([2.0, 3.0], name="foo")])
        assert made[0] == made[1] == made[2] and made[0][0] is not made[0][1]
        with tf.Session() as session:
            distribute.numpy_dataset.init_var_from_numpy(made[0][1], np.float32([4.0, 5.0]), session)
            assert list(session.run(made[2][1])) == [4.0, 5.0]


class _Strategy:
    """Tells what it is told: the first task initialises."""

    def __init__(self, between_graph):
        self.extended = types.SimpleNamespace(experimental_between_graph=between_graph, experimental_should_init=None)

    def configure(self, session_config=None, cluster_spec=None, task_type=None, task_id=None):
        self.extended.experimental_should_init = not task_id
        self.extended.should_checkpoint = self.extended.should_save_summary = not task_id
        if task_type:
            session_config.device_filters.append("/job:%s/task:%d" % (task_type, task_id))


def _seen(**asked):
    """What the contexts of all tasks say."""
    found, lock = [], threading.Lock()

    def note(strategy):
        context = distribute.distribute_coordinator_context.get_current_worker_context()
        with lock:
            found.append((str(context.task_type), context.task_id, context.master_target, context.num_workers, context.is_chief, context.distributed_mode))
        assert context.should_checkpoint is strategy.extended.should_checkpoint is tasks.should_save_checkpoint()
        return context.has_barrier

    made = coordinate.run_distribute_coordinator(note, _Strategy(asked.pop("between", False)), **asked)
    assert not tasks.has_worker_context()
    return sorted(found, key=str), made


def test_functions_of_all_tasks(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert _seen() == ([("None", None, "", 0, True, False)], False)
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "evaluator": ["e:1"]}
    evaluator = ("evaluator", 0, "grpc://e:1", 2, True, False)
    assert _seen(cluster_spec=cluster)[0] == [("None", None, "grpc://a:1", 2, True, True), evaluator]
    both = [("chief", 0, "grpc://a:1", 2, True, True), evaluator, ("worker", 0, "grpc://b:1", 2, False, True)]
    assert _seen(cluster_spec=cluster, between=True)[0] == both
    with pytest.raises(ZeroDivisionError):
        coordinate.run_distribute_coordinator(lambda _: 1 // 0, _Strategy(True), cluster_spec=cluster)


def test_a_task_and_its_server(monkeypatch):
    asked = []

    def server(**of):
        asked.append(of)
        return types.SimpleNamespace(start=lambda: None, join=lambda: "joined")

    cluster = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}
    monkeypatch.setattr(coordinate, "_run_std_server", server)
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}, "rpc_layer": "cake"}))
    found, _ = _seen(mode="independent_worker", between=True)
    assert found == [("worker", 1, "cake://b:1", 2, False, True)]
    assert (asked[0]["task_type"], asked[0]["task_id"], asked[0]["rpc_layer"], list(asked[0]["session_config"].device_filters)) == ("worker", 1, "cake", [])
    assert _seen(mode="independent_worker") == ([], "joined")
    assert _seen(mode="independent_worker", cluster_spec=cluster, task_type="ps", task_id=0) == ([], "joined")
    coordinate.run_standard_tensorflow_server()
    assert asked[-1]["session_config"].experimental.collective_group_leader == "/job:worker/replica:0/task:0"


def test_sessions_of_tasks():
    """Workers wait for the one that initialises, without being told."""
    server = tf.train.Server.create_local_server()
    address = server.target.split("//")[1]

    def train(strategy):
        v = tf.get_variable("v", initializer=1.0)
        added = v.assign_add(2.0, use_locking=True)
        context = distribute.distribute_coordinator_context.get_current_worker_context()
        with tf.train.MonitoredSession() as session:
            context.wait_for_other_workers()
            session.run(added)
            context.wait_for_other_workers()
            assert session.run(v) == 5.0

    cluster = {"worker": [address, address]}
    coordinate.run_distribute_coordinator(train, _Strategy(True), cluster_spec=cluster)
