# SPDX-License-Identifier: Apache-2.0
"""tf.distribute.cluster_resolver: what resolvers say of clusters."""

import json
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


def test_slurm(monkeypatch):
    for name, value in {
        "SLURM_PROCID": "3",
        "SLURM_STEP_NUM_TASKS": "5",
        "SLURM_STEP_NODELIST": "t02n[13,41],t02n43",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
        "SLURMD_NODENAME": "t02n41",
    }.items():
        monkeypatch.setenv(name, value)
    found = resolvers.SlurmClusterResolver({"ps": 1, "worker": 4}, port_base=8888)
    assert found.cluster_spec().as_dict() == {"ps": ["t02n13:8888"], "worker": ["t02n13:8889", "t02n41:8888", "t02n41:8889", "t02n43:8888"]}
    assert found.get_task_info() == ("worker", 2) and found.master() == "grpc://t02n41:8889"
    with pytest.raises(ValueError, match="3 tasks"):
        resolvers.SlurmClusterResolver({"worker": 3}).cluster_spec()
    with pytest.raises(NotImplementedError, match="GPU"):
        resolvers.SlurmClusterResolver({"worker": 5}, gpus_per_node=2)
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
