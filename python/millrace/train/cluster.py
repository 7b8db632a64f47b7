# SPDX-License-Identifier: Apache-2.0
"""Which tasks a cluster has, and on which of them operations are placed."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from millrace.framework.device import DeviceSpec
from millrace.framework.errors import at_user_line
from millrace.protos.definitions import ClusterDef, NodeDef  # type: ignore[attr-defined]


class ClusterSpec:
    """The tasks of jobs, with their addresses: a dict of lists or of dicts by task, a ClusterDef, or a ClusterSpec."""

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_cluster_def()
        if isinstance(cluster, dict):
            self._jobs = {job: self._tasks(job, tasks) for job, tasks in cluster.items()}
        elif isinstance(cluster, ClusterDef):
            self._jobs = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise at_user_line(
                TypeError("`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a `ClusterDef` protocol buffer")
            )
        for job, tasks in self._jobs.items():
            if not isinstance(job, str) or not all(isinstance(a, str) for a in tasks.values()):
                raise at_user_line(TypeError("Names of jobs and addresses of tasks must be strings: %r: %r" % (job, tasks)))

    @staticmethod
    def _tasks(job: Any, tasks: Any) -> Dict[int, str]:
        if isinstance(tasks, (list, tuple)):
            return dict(enumerate(tasks))
        if not isinstance(tasks, dict):
            raise at_user_line(TypeError("The tasks for job %r must be a list or a dictionary from integers to strings." % (job,)))
        if not all(isinstance(i, int) for i in tasks):
            raise at_user_line(TypeError("The keys of the tasks of job %r must be integers." % (job,)))
        return dict(tasks)

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: Any) -> bool:
        return bool(self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other))

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        jobs = self.as_dict()
        return "ClusterSpec({%s})" % ", ".join("%r: %r" % (job, jobs[job]) for job in sorted(jobs))

    def as_dict(self) -> Dict[str, Any]:
        """Lists of addresses by job; dicts by task where tasks are left out."""
        return {job: [tasks[i] for i in range(len(tasks))] if sorted(tasks) == list(range(len(tasks))) else dict(tasks) for job, tasks in self._jobs.items()}

    def as_cluster_def(self) -> Any:
        """Its ClusterDef."""
        made = ClusterDef()
        for job in sorted(self._jobs):
            entry = made.job.add()
            entry.name = job
            for i in sorted(self._jobs[job]):
                entry.tasks[i] = self._jobs[job][i]
        return made

    @property
    def jobs(self) -> List[str]:
        """The names of its jobs."""
        return list(self._jobs)

    def _job(self, job_name: str) -> Dict[int, str]:
        if job_name not in self._jobs:
            raise at_user_line(ValueError("No such job in cluster: %r" % job_name))
        return self._jobs[job_name]

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> List[int]:
        """The tasks of a job."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise at_user_line(ValueError("No task with index %r in job %r" % (task_index, job_name)))
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> List[Optional[str]]:
        """The addresses of a job's tasks, None for those left out."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks) + 1)] if tasks else []


_VARIABLES = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Any = None,
    ps_strategy: Any = None,
) -> Optional[Callable[[Any], str]]:
    """A device function: variables go to the tasks of ps_device in turn, or as ps_strategy says, all else to worker_device."""
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        ps_job = DeviceSpec.from_string(ps_device).job
        if ps_job not in jobs or jobs[ps_job] is None:
            return None
        ps_tasks = len(jobs[ps_job])
    if ps_tasks == 0:
        return None
    strategy = ps_strategy or _RoundRobinStrategy(ps_tasks)
    if not callable(strategy):
        raise at_user_line(TypeError("ps_strategy must be callable"))
    kinds = tuple(_VARIABLES if ps_ops is None else ps_ops)

    def place(op: Any) -> str:
        if not merge_devices and op.device:
            return str(op.device)
        now = DeviceSpec.from_string(op.device or "")
        if (op.op if isinstance(op, NodeDef) else op.type) in kinds:
            wanted = DeviceSpec.from_string(ps_device)
            if wanted.job and (not now.job or now.job == wanted.job):
                wanted.task = strategy(op)
        else:
            wanted = DeviceSpec.from_string(worker_device)
        wanted.merge_from(now)
        return str(wanted.to_string())

    return place


class _RoundRobinStrategy:
    """The tasks one after another."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks, self._next = num_tasks, 0

    def __call__(self, op: Any) -> int:
        task, self._next = self._next, (self._next + 1) % self._num_tasks
        return task
