# SPDX-License-Identifier: Apache-2.0
"""Clusters on Ray: an actor a task. Wants the package ray, which is imported when run() is called.

    from millrace.launch import ray
    losses = ray.run(train, workers=3, ps=2, args=("/data",))

`train` is called in each worker with TF_CONFIG set, and what it returns comes back, by worker. Parameter servers serve until all workers are done. When an
actor dies or a worker loses a peer, all actors are killed and made anew, so long as restarts are left: the function finds its newest checkpoint by itself.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple


class _Lost(Exception):
    """A task is gone; starting again may help."""


class _Task:
    """What an actor does."""

    def node(self) -> str:
        """Where it is."""
        import ray

        return str(ray.util.get_node_ip_address())

    def port(self) -> int:
        """One that nobody has here."""
        with socket.socket() as s:
            s.bind(("", 0))
            return int(s.getsockname()[1])

    def run(
        self, cluster: Dict[str, List[str]], job: str, task: int, environ: Dict[str, str], function: Optional[Callable[..., Any]], args: Sequence[Any]
    ) -> Tuple[bool, Any]:
        """Whether it went well, and the function's result; without a function it serves until the actor is killed."""
        os.environ.update(environ)
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": job, "index": task}})
        os.environ["MILLRACE_LOG_FIELDS"] = "job=%s,task=%d" % (job, task)
        if function is None:
            from millrace.train.server import Server

            Server(cluster, job_name=job, task_index=task).join()
            return True, None
        from millrace.framework import errors
        from millrace.launch import contract

        try:
            return True, function(*args)
        except errors.OpError as error:
            if contract.exit_code_of(error) != contract.LOST_PEER:
                raise
            return False, "/job:%s/task:%d lost a peer: %s" % (job, task, error.message)


def run(
    function: Callable[..., Any],
    workers: int,
    ps: int = 0,
    args: Sequence[Any] = (),
    max_restarts: int = 3,
    worker_options: Optional[Dict[str, Any]] = None,
    ps_options: Optional[Dict[str, Any]] = None,
    environ: Optional[Dict[str, str]] = None,
) -> List[Any]:
    """Runs function(*args) as each worker of a cluster; what they return. Ray must be initialised. Options are those of Ray's actors (num_cpus, resources, ...).

    What a worker raises is raised here, and ends all; RuntimeError when no restart is left.
    """
    import ray

    if workers < 1 or ps < 0:
        raise ValueError("workers is %d and ps is %d, want at least 1 and 0" % (workers, ps))
    options = {"worker": dict(worker_options or {}), "ps": {"num_cpus": 0, **(ps_options or {})}}
    reasons: List[str] = []
    for _ in range(max_restarts + 1):
        tasks = [(job, i) for job, count in (("ps", ps), ("worker", workers)) for i in range(count)]
        actors = [ray.remote(_Task).options(max_restarts=0, **options[job]).remote() for job, _ in tasks]
        try:
            return _run_once(ray, tasks, actors, function, args, dict(environ or {}))
        except _Lost as error:
            reasons.append(str(error))
        finally:
            for actor in actors:
                ray.kill(actor)
    raise RuntimeError("the cluster was started %d times, and lost a task each time: %s" % (max_restarts + 1, "; ".join(reasons)))


def _run_once(
    ray: Any, tasks: List[Tuple[str, int]], actors: List[Any], function: Callable[..., Any], args: Sequence[Any], environ: Dict[str, str]
) -> List[Any]:
    gone = (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError)
    try:
        nodes = ray.get([a.node.remote() for a in actors])
        ports = ray.get([a.port.remote() for a in actors])
    except gone as error:
        raise _Lost("an actor did not start: %s" % error) from None
    is_one_host = len(set(nodes)) == 1
    cluster: Dict[str, List[str]] = {}
    for (job, _), node, port in zip(tasks, nodes, ports):
        cluster.setdefault(job, []).append("%s:%d" % ("127.0.0.1" if is_one_host else "[%s]" % node if ":" in node else node, port))
    running = {a.run.remote(cluster, job, i, environ, function if job == "worker" else None, args): (job, i) for a, (job, i) in zip(actors, tasks)}
    results: Dict[int, Any] = {}
    while any(job == "worker" for job, _ in running.values()):
        done, _ = ray.wait(list(running), num_returns=1)
        job, i = running.pop(done[0])
        try:
            is_well, result = ray.get(done[0])
        except gone as error:
            raise _Lost("/job:%s/task:%d died: %s" % (job, i, str(error).splitlines()[0])) from None
        if not is_well:
            raise _Lost(result)
        if job == "ps":
            raise _Lost("/job:ps/task:%d ended before the workers" % i)
        results[i] = result
    return [results[i] for i in sorted(results)]
