# SPDX-License-Identifier: Apache-2.0
"""Parameter servers that end when all workers are done, for schedulers that wait for every process: Slurm, mpirun."""

from __future__ import annotations

from typing import Any

from millrace.framework.graph import Graph, device
from millrace.framework.session import Session
from millrace.launch.identity import Identity
from millrace.ops.queues import FIFOQueue
from millrace.protos.definitions import ConfigProto  # type: ignore[attr-defined]


def _queue(me: Identity, job: str, task: int) -> Any:
    with device("/job:%s/task:%d" % (job, task)):
        return FIFOQueue(max(1, sum(len(t) for j, t in me.cluster.items() if j != job)), ["int32"], [()], shared_name="millrace_done")


def serve_until_done(server: Any, me: Identity) -> None:
    """Waits until every task of the other jobs has called tell_done. A parameter server that was started again has forgotten who did."""
    assert me.job is not None and me.task is not None
    others = sum(len(tasks) for job, tasks in me.cluster.items() if job != me.job)
    with Graph().as_default():
        done = _queue(me, me.job, me.task).dequeue()
        with Session(server.target, config=ConfigProto(device_filters=["/job:%s/task:%d" % (me.job, me.task)])) as session:
            for _ in range(others):
                session.run(done)


def tell_done(server: Any, me: Identity, job: str = "ps") -> None:
    """Tells all tasks of a job that this one is done."""
    with Graph().as_default():
        told = [_queue(me, job, i).enqueue(me.task) for i in sorted(me.cluster.get(job, {}))]
        if told:
            with Session(server.target, config=ConfigProto(device_filters=["/job:%s" % job, "/job:%s/task:%s" % (me.job, me.task)])) as session:
                session.run(told)
