# SPDX-License-Identifier: Apache-2.0
"""Which part each task of a cluster has in a training, by the jobs chief, worker, evaluator and ps; and what this thread's task is, while
`launch.coordinate` runs it."""

from __future__ import annotations

import threading
from typing import Any, Optional

from millrace.framework.errors import at_user_line
from millrace.protos.definitions import ClusterDef
from millrace.train.cluster import ClusterSpec

_JOBS = ("chief", "worker", "evaluator", "ps")
_worker_context = threading.local()


def get_current_worker_context() -> Any:
    """What the task of this thread knows of itself; None outside of run_distribute_coordinator."""
    return getattr(_worker_context, "current", None)


def has_worker_context() -> bool:
    """Whether this thread runs a task of run_distribute_coordinator."""
    return get_current_worker_context() is not None


def _context() -> Any:
    context = get_current_worker_context()
    if context is None:
        raise at_user_line(ValueError("there is no worker context: this is asked within what run_distribute_coordinator calls"))
    return context


def should_save_checkpoint() -> bool:
    """Whether this thread's task writes checkpoints."""
    return bool(_context().should_checkpoint)


def should_load_checkpoint() -> bool:
    """Whether this thread's task reads checkpoints."""
    return bool(_context().experimental_should_init)


def wait_for_other_workers() -> None:
    """Waits until all workers have come here."""
    _context().wait_for_other_workers()


def normalize_cluster_spec(cluster_spec: Any) -> ClusterSpec:
    """A ClusterSpec of a dict, a ClusterDef or a ClusterSpec. ValueError for anything else."""
    if isinstance(cluster_spec, (dict, ClusterDef)):
        return ClusterSpec(cluster_spec)
    if not isinstance(cluster_spec, ClusterSpec):
        raise at_user_line(ValueError("`cluster_spec' should be dict or a `tf.train.ClusterSpec` or a `tf.train.ClusterDef` object"))
    return cluster_spec


def _checked(cluster_spec: Any, task_type: Optional[str], task_id: Optional[int]) -> Any:
    """The tasks by job. ValueError unless the task is one of them, and there is one chief and one evaluator at most."""
    if cluster_spec is None or task_type is None or task_id is None:
        raise at_user_line(ValueError("None of `cluster_spec`, `task_type`, and `task_id` should be `None`."))
    jobs = normalize_cluster_spec(cluster_spec).as_dict()
    if task_type not in _JOBS:
        raise at_user_line(ValueError('Unrecognized task_type: %r, valid task types are: "chief", "worker", "evaluator" and "ps".' % (task_type,)))
    if task_type not in jobs:
        raise at_user_line(ValueError("`task_type` %r not found in cluster_spec." % task_type))
    for single in ("chief", "evaluator"):
        if len(jobs.get(single, ())) > 1:
            raise at_user_line(ValueError("There must be at most one '%s' job." % single))
    if task_id >= len(jobs[task_type]):
        raise at_user_line(ValueError("The `task_id` %d exceeds the maximum id of %s." % (task_id, task_type)))
    return jobs


def is_chief(cluster_spec: Any = None, task_type: Optional[str] = None, task_id: Optional[int] = None) -> bool:
    """Whether a task leads the others: the chief, the first worker where there is none, or an evaluator, which is alone."""
    if has_worker_context():
        context = get_current_worker_context()
        cluster_spec = cluster_spec or context.cluster_spec
        task_type, task_id = task_type or context.task_type, context.task_id if task_id is None else task_id
    jobs = _checked(cluster_spec, task_type, task_id)
    return task_type in ("chief", "evaluator") or task_type == "worker" and task_id == 0 and "chief" not in jobs


def collective_leader(cluster_spec: Any, task_type: Optional[str], task_id: Optional[int]) -> str:
    """The device name of the task that leads collective operations; "" for an evaluator and where there is no cluster."""
    spec = normalize_cluster_spec(cluster_spec)
    if not spec.as_dict():
        return ""
    jobs = _checked(spec, task_type, task_id)
    if task_type == "evaluator":
        return ""
    return "/job:%s/replica:0/task:0" % ("chief" if "chief" in jobs else "worker")


def worker_count(cluster_spec: Any, task_type: str) -> int:
    """How many tasks train with those of a job: chief and workers, or evaluators. ValueError for ps."""
    jobs = _checked(cluster_spec, task_type, 0)
    if task_type == "ps":
        raise at_user_line(ValueError("Unexpected `task_type` 'ps': it counts neither as a worker nor as an evaluator"))
    return len(jobs["evaluator"]) if task_type == "evaluator" else len(jobs.get("chief", ())) + len(jobs.get("worker", ()))


def id_in_cluster(cluster_spec: Any, task_type: str, task_id: int) -> int:
    """The number of a task among those that train: the chief, if there is one, then the workers; evaluators count by themselves."""
    jobs = _checked(cluster_spec, task_type, task_id)
    if task_type == "ps":
        raise at_user_line(ValueError("There is no id for task_type 'ps'"))
    return task_id + len(jobs.get("chief", ())) if task_type == "worker" else task_id
