# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.distribute.cluster_resolver: objects that know a cluster, and which of its tasks this process is."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.launch import hosts, identity
from millrace.train.cluster import ClusterSpec


def format_master_url(master: str, rpc_layer: Optional[str] = None) -> str:
    """grpc://host:port of host:port; without a layer the address itself."""
    return "%s://%s" % (rpc_layer, master) if rpc_layer and master else master


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
        """How many devices that are no CPUs the task has, by type."""
        from millrace.framework.session import Session
        from millrace.framework.graph import Graph

        counts: Dict[str, int] = {}
        with Session(self.master(task_type, task_id), graph=Graph(), config=config_proto) as session:
            for d in session.list_devices():
                if d.device_type != "CPU":
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
        return self._type if self._type is not None else self._told().get("task", {}).get("type")

    @property
    def task_id(self) -> Optional[int]:  # type: ignore[override]
        """What was given, or TF_CONFIG says."""
        index = self._id if self._id is not None else self._told().get("task", {}).get("index")
        return None if index is None else int(index)

    @property
    def rpc_layer(self) -> Optional[str]:  # type: ignore[override]
        """What was given, or TF_CONFIG says."""
        return self._layer if self._layer is not None else self._told().get("rpc_layer", "grpc")

    @property
    def environment(self) -> str:  # type: ignore[override]
        """What was given, or TF_CONFIG says."""
        return self._environment if self._environment is not None else self._told().get("environment", "")

    def cluster_spec(self) -> ClusterSpec:
        """TF_CONFIG's cluster; empty when it has none."""
        return ClusterSpec(self._told().get("cluster", {}))

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """The target of the task; "" where a program is alone."""
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
        gpus_per_node: Optional[int] = None,
        gpus_per_task: Optional[int] = None,
        tasks_per_node: Any = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        if gpus_per_node or gpus_per_task:
            raise at_user_line(NotImplementedError("SlurmClusterResolver: there are no GPUs to share out"))
        del auto_set_gpu  # there are none
        self._jobs, self._port, self.rpc_layer = jobs, port_base, rpc_layer
        self._per_node = tasks_per_node

    def _me(self) -> identity.Identity:
        environ = {k: v for k, v in os.environ.items() if k.startswith("SLURM")}
        if "SLURM_PROCID" not in environ:
            raise at_user_line(RuntimeError("SLURM_PROCID is not set: this process was not started by srun"))
        environ["MILLRACE_PORT"] = str(self._port)
        if self._jobs is not None:
            environ["MILLRACE_JOBS"] = ",".join("%s=%d" % j for j in self._jobs.items())
        if self._per_node is not None:
            nodes = hosts.expand_nodelist(environ.get("SLURM_STEP_NODELIST", ""))
            counts = [self._per_node] * len(nodes) if isinstance(self._per_node, int) else list(self._per_node)
            environ["SLURM_STEP_TASKS_PER_NODE"] = ",".join(map(str, counts))
        return identity.who_am_i(environ=environ)

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
                    addresses.append("%s:%s" % (pod.status.pod_ip or pod.status.host_ip, self._port))
            jobs[job] = addresses
        return ClusterSpec(jobs)

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """The task's target, the first worker's unless given."""
        jobs = self.cluster_spec()
        if task_type is not None and task_id is not None:
            return format_master_url(jobs.task_address(task_type, task_id), rpc_layer or self.rpc_layer)
        found = jobs.job_tasks(next(iter(self._labels))) if jobs else []
        return format_master_url(str(found[0]), rpc_layer or self.rpc_layer) if found else ""


class TPUClusterResolver(ClusterResolver):
    """The TPU "local" or "", which is this process. Others are in another's cloud."""

    def __init__(
        self,
        tpu: Any = None,
        zone: Optional[str] = None,
        project: Optional[str] = None,
        job_name: str = "worker",
        coordinator_name: Optional[str] = None,
        coordinator_address: Optional[str] = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: Optional[str] = None,
    ) -> None:
        del zone, project, job_name, coordinator_name, coordinator_address, credentials, service, discovery_url  # no service is asked
        if tpu is None:
            raise at_user_line(ValueError("Please provide a TPU Name to connect to: '' or 'local' is this machine, and there are no others."))
        name = tpu[0] if isinstance(tpu, (list, tuple)) and tpu else tpu
        name = name.decode() if isinstance(name, bytes) else name
        if name not in ("", "local"):
            raise at_user_line(NotImplementedError("There are no TPUs: not %r. Give '' (this machine), or no cluster at all and use_tpu=False." % (tpu,)))

    def cluster_spec(self) -> Any:
        """None: there is no cluster."""
        return None

    def master(self, task_type: Optional[str] = None, task_id: Optional[int] = None, rpc_layer: Optional[str] = None) -> str:
        """The target of sessions: this process."""
        return ""

    get_master = master
