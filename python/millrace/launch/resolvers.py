# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.distribute.cluster_resolver: objects that know a cluster, and which of its tasks this process is."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Tuple

from millrace.framework.device import DeviceSpec
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.framework.session import Session
from millrace.launch import hosts, identity
from millrace.train.cluster import ClusterSpec


def format_master_url(master: str, rpc_layer: Optional[str] = None) -> str:
    """grpc://host:port of host:port; without a layer the address itself."""
    return "%s://%s" % (rpc_layer, master) if rpc_layer and master else master


def devices_of(master: str, config_proto: Any = None) -> List[Any]:
    """The devices that a session with this target has."""
    with Session(master, graph=Graph(), config=config_proto) as session:
        return list(session.list_devices())


class ClusterResolver:
    """Base of resolvers."""

    task_type: Optional[str] = None
    task_id: Optional[int] = None
    rpc_layer: Optional[str] = None
    environment: str = ""

    def cluster_spec(self) -> ClusterSpec:
        """The cluster as it is now."""
        raise NotImplementedError("cluster_spec is not implemented for %s." % type(self).__name__)

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """The target of sessions: that of a task, this process's own unless given; "" where there is no cluster."""
        kind = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        spec = self.cluster_spec()
        if not spec:
            return ""
        if kind is None or number is None:
            raise at_user_line(ValueError("which task? Both task_type and task_id must be given, or known."))
        return format_master_url(spec.task_address(kind, number), rpc_layer or self.rpc_layer)

    def num_accelerators(self, task_type: Optional[str] = None, task_id: Optional[int] = None, config_proto: Any = None) -> Dict[str, int]:
        """How many devices that are no CPUs there are, by type: those of a job and of a task, where these are given."""
        counts: Dict[str, int] = {}
        for d in devices_of(self.master(task_type, task_id), config_proto):
            spec = DeviceSpec.from_string(d.name)
            if d.device_type != "CPU" and task_type in (None, spec.job) and task_id in (None, spec.task):
                counts[d.device_type] = counts.get(d.device_type, 0) + 1
        return counts


class SimpleClusterResolver(ClusterResolver):
    """A cluster that the program gives."""

    def __init__(
        self,
        cluster_spec: Any,
        master: str = "",
        task_type: Optional[str] = None,
        task_id: Optional[int] = None,
        environment: str = "",
        num_accelerators: Optional[Dict[str, int]] = None,
        rpc_layer: Optional[str] = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise at_user_line(TypeError("cluster_spec must be a ClusterSpec, got %s" % type(cluster_spec).__name__))
        if not isinstance(master, str):
            raise at_user_line(TypeError("master must be a string, got %s" % type(master).__name__))
        self._spec, self._master, self._accelerators = cluster_spec, master, num_accelerators
        self.task_type, self.task_id, self.environment, self.rpc_layer = task_type, task_id, environment, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """What was given."""
        return self._spec

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """The task's target, or the master that was given."""
        if task_type is not None and task_id is not None:
            return format_master_url(self._spec.task_address(task_type, task_id), rpc_layer or self.rpc_layer)
        return format_master_url(self._master, rpc_layer or self.rpc_layer)

    def num_accelerators(self, task_type: Optional[str] = None, task_id: Optional[int] = None, config_proto: Any = None) -> Dict[str, int]:
        """What was given, whichever the task."""
        del task_type, task_id, config_proto  # one answer for all
        return {} if self._accelerators is None else self._accelerators


class UnionResolver(ClusterResolver):
    """Several resolvers as one; the first one's task is this process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not args:
            raise at_user_line(ValueError("At least one resolver must be given."))
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise at_user_line(TypeError("All arguments must be ClusterResolvers, got %s" % type(resolver).__name__))
        self._resolvers: List[ClusterResolver] = list(args)
        first = args[0]
        self.task_type, self.task_id = kwargs.get("task_type", first.task_type), kwargs.get("task_id", first.task_id)
        self.rpc_layer, self.environment = kwargs.get("rpc_layer", first.rpc_layer), first.environment

    def cluster_spec(self) -> ClusterSpec:
        """The jobs of all. Jobs that several have get the tasks of all, one list after another; of dicts no number may be twice."""
        lists: Dict[str, List[str]] = {}
        numbered: Dict[str, Dict[int, str]] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                if isinstance(tasks, dict) or job in numbered:
                    if job in lists:
                        numbered[job] = dict(enumerate(lists.pop(job)))
                    known = numbered.setdefault(job, {})
                    for i, address in (tasks if isinstance(tasks, dict) else dict(enumerate(tasks))).items():
                        if i in known:
                            raise at_user_line(KeyError("Duplicate key detected when merging two ClusterSpecs: task %d of job %s" % (i, job)))
                        known[i] = address
                else:
                    lists.setdefault(job, []).extend(tasks)
        return ClusterSpec({**lists, **numbered})

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """That of the task, or of the first resolver that has one."""
        if task_type is not None and task_id is not None:
            return format_master_url(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)
        return next((m for m in (r.master(rpc_layer=rpc_layer or self.rpc_layer) for r in self._resolvers) if m), "")

    def num_accelerators(self, task_type: Optional[str] = None, task_id: Optional[int] = None, config_proto: Any = None) -> Dict[str, int]:
        """What the first resolver says."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


UnionClusterResolver = UnionResolver


class TFConfigClusterResolver(ClusterResolver):
    """The cluster of the variable TF_CONFIG."""

    def __init__(
        self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None, environment: Optional[str] = None
    ) -> None:
        self._type, self._id, self._layer, self._environment = task_type, task_id, rpc_layer, environment

    @staticmethod
    def _told() -> Dict[str, Any]:
        told = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if not isinstance(told, dict):
            raise at_user_line(ValueError("TF_CONFIG must be a JSON object"))
        return told

    @property
    def task_type(self) -> Optional[str]:  # type: ignore[override]
        """What was given, or TF_CONFIG says."""
        told = self._type if self._type is not None else self._told().get("task", {}).get("type")
        return None if told is None else str(told)

    @task_type.setter
    def task_type(self, task_type: Optional[str]) -> None:
        self._type = task_type

    @property
    def task_id(self) -> Optional[int]:  # type: ignore[override]
        """What was given, or TF_CONFIG says."""
        index = self._id if self._id is not None else self._told().get("task", {}).get("index")
        return None if index is None else int(index)

    @task_id.setter
    def task_id(self, task_id: Optional[int]) -> None:
        self._id = task_id

    @property
    def rpc_layer(self) -> Optional[str]:  # type: ignore[override]
        """What was given, or TF_CONFIG says; None where neither does: addresses are as they are written."""
        return self._layer if self._layer is not None else self._told().get("rpc_layer")

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: Optional[str]) -> None:
        self._layer = rpc_layer

    @property
    def environment(self) -> Optional[str]:  # type: ignore[override]
        """What was given, or TF_CONFIG says."""
        return self._environment if self._environment is not None else self._told().get("environment")

    def num_accelerators(self, task_type: Optional[str] = None, task_id: Optional[int] = None, config_proto: Any = None) -> Dict[str, int]:
        """How many devices that are no CPUs the task has, this process's own unless given, by type."""
        return super().num_accelerators(self.task_type if task_type is None else task_type, self.task_id if task_id is None else task_id, config_proto)

    def cluster_spec(self) -> ClusterSpec:
        """TF_CONFIG's cluster; empty when it has none."""
        return ClusterSpec(self._told().get("cluster", {}))

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """TF_CONFIG's session_master, or the target of the task; "" where a program is alone."""
        told = self._told().get("session_master")
        if told is not None:
            return str(told)
        spec = self.cluster_spec()
        jobs = spec.as_dict()
        if not jobs or (len(jobs) == 1 and len(next(iter(jobs.values()))) == 1):
            return ""
        return super().master(task_type, task_id, rpc_layer)


class SlurmClusterResolver(ClusterResolver):
    """The tasks of a step of srun, shared out over jobs in their order; a host's tasks have ports one after another."""

    def __init__(
        self,
        jobs: Optional[Dict[str, int]] = None,
        port_base: int = 8888,
        gpus_per_node: int = 1,
        gpus_per_task: int = 1,
        tasks_per_node: Any = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._jobs, self._port, self.rpc_layer = jobs, port_base, rpc_layer
        self._per_node, self._auto_set_gpu = tasks_per_node, auto_set_gpu
        self._gpus, self._gpus_of_task = gpus_per_node or 0, gpus_per_task or 0

    def _resolve_hostnames(self) -> List[str]:
        """The nodes of the step."""
        text = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_NODELIST") or os.environ.get("SLURM_JOB_NODELIST") or ""
        return hosts.expand_nodelist(text)

    def _counts(self, nodes: List[str], environ: Dict[str, str]) -> List[int]:
        """The tasks of each node: as the step's variable says, or of those that are given as many as are needed."""
        if self._per_node is None and "SLURM_STEP_TASKS_PER_NODE" in environ:
            return hosts.expand_counts(environ["SLURM_STEP_TASKS_PER_NODE"])
        given = self._per_node if self._per_node is not None else environ.get("SLURM_NTASKS_PER_NODE")
        if given is None:
            raise at_user_line(RuntimeError("Neither tasks_per_node nor SLURM_NTASKS_PER_NODE is set."))
        each = [int(given)] * len(nodes) if isinstance(given, (int, str)) else list(given)
        left = int(environ.get("SLURM_STEP_NUM_TASKS") or environ.get("SLURM_NTASKS") or sum(each))
        counts = []
        for most in each:
            counts.append(min(most, left))
            left -= counts[-1]
        return counts

    def _me(self) -> identity.Identity:
        environ = {k: v for k, v in os.environ.items() if k.startswith("SLURM")}
        if "SLURM_PROCID" not in environ:
            raise at_user_line(RuntimeError("SLURM_PROCID is not set: this process was not started by srun"))
        environ["MILLRACE_PORT"] = str(self._port)
        if self._jobs is not None:
            environ["MILLRACE_JOBS"] = ",".join("%s=%d" % j for j in self._jobs.items())
        nodes = self._resolve_hostnames()
        used = [(node, count) for node, count in zip(nodes, self._counts(nodes, environ)) if count]
        environ["SLURM_STEP_NODELIST"] = ",".join(node for node, _ in used)
        environ["SLURM_STEP_TASKS_PER_NODE"] = ",".join(str(count) for _, count in used)
        if self._auto_set_gpu:
            self._set_gpus(int(environ["SLURM_PROCID"]), [count for _, count in used])
        return identity.who_am_i(environ=environ)

    def _set_gpus(self, rank: int, counts: List[int]) -> None:
        """Says in CUDA_VISIBLE_DEVICES which GPUs of its node this process has. RuntimeError where the node has too few for its tasks."""
        if self._gpus_of_task * max(counts) > self._gpus:
            raise at_user_line(RuntimeError("Requested more GPUs per node than available: %d for each of %d tasks." % (self._gpus_of_task, max(counts))))
        for count in counts:
            if rank < count:
                break
            rank -= count
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(rank * self._gpus_of_task + i) for i in range(self._gpus_of_task))

    def cluster_spec(self) -> ClusterSpec:
        """The step's tasks."""
        me = self._me()
        self.task_type, self.task_id = me.job, me.task
        return ClusterSpec(me.jobs())

    def get_task_info(self) -> Tuple[str, int]:
        """Job and number of this process."""
        self.cluster_spec()
        return str(self.task_type), int(self.task_id or 0)


class KubernetesClusterResolver(ClusterResolver):
    """The pods that run and have labels, asked of the API server by the package kubernetes, or by a client that is given."""

    def __init__(
        self, job_to_label_mapping: Optional[Dict[str, List[str]]] = None, tf_server_port: int = 8470, rpc_layer: str = "grpc", override_client: Any = None
    ) -> None:
        if override_client is None:
            try:
                from kubernetes import client, config  # type: ignore[import-not-found]
            except ImportError:
                raise at_user_line(
                    ImportError(
                        "KubernetesClusterResolver wants the package kubernetes. A Job tells its tasks by environment variables too, "
                        "and needs no access to the API server: docs/cluster.md"
                    )
                ) from None
            config.load_kube_config()
            override_client = client.CoreV1Api()
        self._labels = job_to_label_mapping or {"worker": ["job-name=tensorflow"]}
        self._port, self.rpc_layer, self._client = tf_server_port, rpc_layer, override_client

    def cluster_spec(self) -> ClusterSpec:
        """The pods by label, in the order of their names. RuntimeError when one does not run."""
        jobs: Dict[str, List[str]] = {}
        for job, labels in self._labels.items():
            addresses: List[str] = []
            for label in labels:
                pods = sorted(self._client.list_pod_for_all_namespaces(label_selector=label).items, key=lambda p: p.metadata.name)
                for pod in pods:
                    if pod.status.phase != "Running":
                        raise at_user_line(RuntimeError('Pod "%s" is not running; phase: "%s"' % (pod.metadata.name, pod.status.phase)))
                    own = getattr(pod.status, "pod_ip", None)  # what it is reached at, also where it shares its node's network
                    addresses.append("%s:%s" % (own if own and isinstance(own, str) else pod.status.host_ip, self._port))
            jobs[job] = addresses
        return ClusterSpec(jobs)

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """The task's target: that of task_type and task_id, which may be set before, else of the first task of the first job."""
        task_type = self.task_type if task_type is None else task_type
        task_id = self.task_id if task_id is None else task_id
        jobs = self.cluster_spec()
        if task_type is not None and task_id is not None:
            return format_master_url(jobs.task_address(task_type, task_id), rpc_layer or self.rpc_layer)
        found = jobs.job_tasks(next(iter(self._labels))) if jobs else []
        return format_master_url(str(found[0]), rpc_layer or self.rpc_layer) if found else ""
