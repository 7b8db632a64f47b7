# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.cluster_resolver: what resolvers say of clusters."""

import json
import os
import types

import pytest

import millrace as tf

resolvers = tf.distribute.cluster_resolver
_TF_CONFIG = {"cluster": {"ps": ["a:1"], "worker": ["b:2", "c:3"]}, "task": {"type": "worker", "index": 1}, "environment": "cloud", "rpc_layer": "grpc"}


def test_tf_config(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps(_TF_CONFIG))
    found = resolvers.TFConfigClusterResolver()
    assert found.cluster_spec().as_dict() == _TF_CONFIG["cluster"]
    assert (found.task_type, found.task_id, found.rpc_layer, found.environment) == ("worker", 1, "grpc", "cloud")
    assert found.master() == "grpc://c:3" and found.master("ps", 0) == "grpc://a:1" and found.master("ps", 0, "") == "grpc://a:1"
    assert resolvers.TFConfigClusterResolver(task_type="ps", task_id=0).master() == "grpc://a:1"
    with pytest.raises(ValueError, match="No such job"):
        found.master("chief", 0)
    for alone in ("", "{}", json.dumps({"cluster": {"worker": ["a:1"]}})):
        monkeypatch.setenv("TF_CONFIG", alone)
        assert resolvers.TFConfigClusterResolver().master() == ""
    monkeypatch.setenv("TF_CONFIG", "[]")
    with pytest.raises(ValueError, match="JSON object"):
        found.cluster_spec()


def test_what_tf_config_leaves_open(monkeypatch):
    cluster = {"cluster": {"ps": ["a:1"], "worker": ["b:2", "c:3"]}, "task": {"type": 7, "index": "1"}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    found = resolvers.TFConfigClusterResolver()
    assert (found.task_type, found.task_id, found.rpc_layer, found.environment) == ("7", 1, None, None)
    found.task_type, found.task_id, found.rpc_layer = "worker", 0, "test"
    assert found.master() == "test://b:2"
    monkeypatch.setenv("TF_CONFIG", json.dumps({**cluster, "session_master": "m:1"}))
    assert resolvers.TFConfigClusterResolver().master() == "m:1"


def test_accelerators_of_a_task(monkeypatch):
    names = ["/job:w/task:0/device:TPU:0", "/job:w/task:0/device:GPU:0", "/job:w/task:1/device:GPU:1", "/job:w/task:0/device:CPU:0"]
    devices = [types.SimpleNamespace(name=name, device_type=name[-5:-2]) for name in names]
    monkeypatch.setattr(tf.python.client.session.BaseSession, "list_devices", lambda self: devices)

    class Here(resolvers.ClusterResolver):
        def master(self, *of):
            return ""

    of = Here().num_accelerators
    assert of() == {"TPU": 1, "GPU": 2} and of("w", 0) == {"TPU": 1, "GPU": 1} and of("w", 1) == {"GPU": 1} and of("v") == {}
    assert resolvers.TPUClusterResolver("local").num_accelerators() == {"TPU": 1}


def test_slurm(monkeypatch):
    for name, value in {
        "SLURM_PROCID": "3",
        "SLURM_STEP_NUM_TASKS": "5",
        "SLURM_STEP_NODELIST": "t02n[13,41],t02n43",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
        "SLURMD_NODENAME": "t02n41",
    }.items():
        monkeypatch.setenv(name, value)
    found = resolvers.SlurmClusterResolver({"ps": 1, "worker": 4}, port_base=8888, auto_set_gpu=False)
    assert found.cluster_spec().as_dict() == {"ps": ["t02n13:8888"], "worker": ["t02n13:8889", "t02n41:8888", "t02n41:8889", "t02n43:8888"]}
    assert found.get_task_info() == ("worker", 2) and found.master() == "grpc://t02n41:8889"
    with pytest.raises(ValueError, match="3 tasks"):
        resolvers.SlurmClusterResolver({"worker": 3}, auto_set_gpu=False).cluster_spec()
    with pytest.raises(RuntimeError, match="more GPUs per node"):
        resolvers.SlurmClusterResolver({"worker": 5}, gpus_per_node=2, gpus_per_task=2).cluster_spec()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    resolvers.SlurmClusterResolver({"worker": 5}, gpus_per_node=4, gpus_per_task=2).cluster_spec()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,3"
    for name in ("SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_NTASKS", "5")
    with pytest.raises(RuntimeError, match="tasks_per_node"):
        resolvers.SlurmClusterResolver({"worker": 5}).cluster_spec()
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "2")
    jobs = resolvers.SlurmClusterResolver({"ps": 1, "worker": 4}, auto_set_gpu=False).cluster_spec().as_dict()
    assert jobs["worker"] == ["t02n13:8889", "t02n41:8888", "t02n41:8889", "t02n43:8888"]
    monkeypatch.delenv("SLURM_PROCID")
    with pytest.raises(RuntimeError, match="srun"):
        found.cluster_spec()


def test_simple_ones_and_unions():
    one = resolvers.SimpleClusterResolver(
        tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:2"]}), master="b:2", task_type="worker", task_id=0, rpc_layer="grpc"
    )
    two = resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["c:3"], "chief": {1: "d:4"}}))
    assert one.master() == "grpc://b:2" and one.master("ps", 0) == "grpc://a:1" and one.num_accelerators() == {}
    both = resolvers.UnionResolver(one, two)
    assert both.cluster_spec().as_dict() == {"ps": ["a:1"], "worker": ["b:2", "c:3"], "chief": {1: "d:4"}}
    assert (both.task_type, both.task_id, both.master()) == ("worker", 0, "grpc://b:2")
    clash = resolvers.SimpleClusterResolver(tf.train.ClusterSpec({"chief": {1: "e:5"}}))
    with pytest.raises(KeyError, match="task 1 of job chief"):
        resolvers.UnionResolver(two, clash).cluster_spec()
    with pytest.raises(TypeError, match="ClusterSpec"):
        resolvers.SimpleClusterResolver({"ps": ["a:1"]})
    with pytest.raises(ValueError, match="At least one"):
        resolvers.UnionResolver()
    with pytest.raises(TypeError, match="ClusterResolvers"):
        resolvers.UnionResolver(one, 3)
    assert tf.contrib.cluster_resolver.UnionClusterResolver is resolvers.UnionResolver


def test_kubernetes():
    def pod(name, ip, phase="Running"):
        return types.SimpleNamespace(metadata=types.SimpleNamespace(name=name), status=types.SimpleNamespace(pod_ip=ip, host_ip=None, phase=phase))

    class Client:
        pods = {"job=ps": [pod("p-1", "10.0.0.2"), pod("p-0", "10.0.0.1")], "job=worker": [pod("w-0", "10.0.0.3")]}

        def list_pod_for_all_namespaces(self, label_selector):
            return types.SimpleNamespace(items=self.pods[label_selector])

    found = resolvers.KubernetesClusterResolver({"worker": ["job=worker"], "ps": ["job=ps"]}, tf_server_port=7, override_client=Client())
    assert found.cluster_spec().as_dict() == {"worker": ["10.0.0.3:7"], "ps": ["10.0.0.1:7", "10.0.0.2:7"]}
    assert found.master() == "grpc://10.0.0.3:7" and found.master("ps", 1) == "grpc://10.0.0.2:7"
    Client.pods["job=ps"].append(pod("p-2", "", "Pending"))
    with pytest.raises(RuntimeError, match="p-2.*Pending"):
        found.cluster_spec()


class _Service:
    """What Google's clients answer, by the last argument of a request."""

    def __init__(self, answers):
        self._answers = answers

    def __getattr__(self, name):
        def call(**asked):
            key = list(asked.values())[-1] if asked else None
            return types.SimpleNamespace(execute=lambda: self._answers[key]) if key in self._answers else None if name == "listInstances_next" else self

        return call


def test_instances_of_a_group():
    service = _Service(
        {
            "name": {"items": [{"instance": "https://cloud/b"}, {"instance": "https://cloud/a"}]},
            "b": {"networkInterfaces": [{"networkIP": "10.0.0.2"}]},
            "a": {"networkInterfaces": [{"networkIP": "10.0.0.1"}]},
        }
    )
    service.listInstances_next = lambda **_: None
    found = resolvers.GCEClusterResolver("project", "zone", "group", 8470, service=service)
    assert found.cluster_spec().as_dict() == {"worker": ["10.0.0.1:8470", "10.0.0.2:8470"]} and found.master() == "grpc://10.0.0.1:8470"
    found.task_id = 1
    assert found.master(rpc_layer="test") == "test://10.0.0.2:8470"
    old = tf.contrib.cluster_resolver.GceClusterResolver("project", "zone", "group", 1, "ps", None, service)
    assert old.cluster_spec().as_dict() == {"ps": ["10.0.0.1:1", "10.0.0.2:1"]}
    later = tf.contrib.cluster_resolver.GceClusterResolver("project", "zone", "group", 1, task_type="ps", task_id=1, rpc_layer="test", service=service)
    assert later.master("ps", 1) == "test://10.0.0.2:1" and later.task_type == "ps"
    named = tf.contrib.cluster_resolver.GceClusterResolver("project", "zone", "group", 1, job_name="ps", service=service)
    assert named.cluster_spec().jobs == ["ps"]
    with pytest.raises(ImportError, match="google-api-python-client"):
        resolvers.GCEClusterResolver("project", "zone", "group", 8470, credentials=None)


def test_hosts_of_a_tpu(monkeypatch):
    """The values are those of TensorFlow 1.15.5."""
    ends = [{"ipAddress": "10.0.0.1", "port": 8470}, {"ipAddress": "10.0.0.2", "port": 8470}]
    nodes = {"pod": {"networkEndpoints": ends}, "one": {"ipAddress": "10.0.0.3", "port": "1"}, "new": {"state": "CREATING"}}
    service = _Service({"projects/p/locations/z/nodes/" + name: told for name, told in nodes.items()})
    found = resolvers.TPUClusterResolver("pod", "z", "p", service=service)
    assert found.cluster_spec().as_dict() == {"worker": ["10.0.0.1:8470", "10.0.0.2:8470"]} and found.master() == "grpc://10.0.0.1:8470"
    assert found.master("worker", 1, "test") == "test://10.0.0.2:8470"
    one = resolvers.TPUClusterResolver(["one"], "z", "p", coordinator_name="c", coordinator_address="d:5", service=service)
    assert one.cluster_spec().as_dict() == {"worker": ["10.0.0.3:1"], "c": ["d:5"]}
    with pytest.raises(RuntimeError, match='"new" is not yet ready; state: "CREATING"'):
        resolvers.TPUClusterResolver("new", "z", "p", service=service).cluster_spec()
    two = resolvers.TPUClusterResolver("grpc://1.2.3.4:8470,grpc://1.2.3.5:8470")
    assert two.cluster_spec().as_dict() == {"worker": ["1.2.3.4:8470", "1.2.3.5:8470"]} and two.master() == "grpc://1.2.3.4:8470"
    bns = resolvers.TPUClusterResolver("/bns/ab/cd:1234")
    assert (bns.master(), bns.cluster_spec(), bns.environment, bns.rpc_layer) == ("/bns/ab/cd", None, "google", None)
    assert resolvers.TPUClusterResolver("localhost:5").master() == "localhost:5" and resolvers.TPUClusterResolver("local").master() == ""
    monkeypatch.delenv("TPU_NAME", raising=False)
    for given, error, what in [(None, ValueError, "provide a TPU Name"), ([], ValueError, "At least one TPU"), ("mine", ImportError, "oauth2client")]:
        with pytest.raises(error, match=what):
            resolvers.TPUClusterResolver(given)
    monkeypatch.setenv("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "grpc://10.1.1.1:8470")
    assert resolvers.TPUClusterResolver().cluster_spec().as_dict() == {"worker": ["10.1.1.1:8470"]}


def test_paths_of_resolvers():
    other = tf.python.distribute.cluster_resolver
    assert other.TPUClusterResolver is resolvers.TPUClusterResolver is tf.contrib.cluster_resolver.TPUClusterResolver
    assert other.tpu_cluster_resolver.TPUClusterResolver is resolvers.TPUClusterResolver
    assert other.tfconfig_cluster_resolver.TFConfigClusterResolver is resolvers.TFConfigClusterResolver
