# SPDX-License-Identifier: Apache-2.0
"""`millrace serve`: one task of a cluster, until a signal ends it."""
from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any, Dict, List, Tuple

from millrace.cli.answers import Answer


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "serve", help="be a task of a cluster", description="Runs the server of one task until SIGTERM or SIGINT ends it (exit status 143 or 130). Who it is say the "
        "arguments, or else TF_CONFIG. One line says where it listens.")
    parser.add_argument("--cluster", help="the tasks of all jobs: ps=host:port;worker=host:port,host:port, or the same as JSON: {\"ps\": [\"host:port\"], ...}")
    parser.add_argument("--job", help="the job of this task")
    parser.add_argument("--task", type=int, help="the number of this task in its job")
    parser.add_argument("--allow-insecure-remote", action="store_true",
                        help="listen where other hosts can connect, although nothing is encrypted and nobody has to say who he is: whoever reaches the port can run any "
                             "graph here, with the rights of this process")
    parser.set_defaults(command=_serve)


def _jobs(text: str) -> Dict[str, Any]:
    if text.lstrip().startswith("{"):
        jobs = json.loads(text)
    else:
        parts = [part.partition("=") for part in text.split(";") if part]
        jobs = {job.strip(): [a.strip() for a in addresses.split(",") if a.strip()] for job, _, addresses in parts}
    if not jobs or not all(jobs.values()):
        raise ValueError("--cluster has no tasks, want such as ps=host:port;worker=host:port,host:port")
    return dict(jobs)


def _who(given: Any) -> Tuple[Dict[str, Any], str, int]:
    """The cluster, and the job and number of this task."""
    told: Dict[str, Any] = {}
    if given.cluster is None:
        told = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if not isinstance(told, dict):
            raise ValueError("TF_CONFIG must be a JSON object")
    jobs = _jobs(given.cluster) if given.cluster is not None else _of_tf_config(told)
    if not jobs:
        raise ValueError("which tasks has the cluster? Give --cluster, --job and --task, or TF_CONFIG")
    task = told.get("task") or {}
    job = given.job if given.job is not None else task.get("type") or (next(iter(jobs)) if len(jobs) == 1 else None)
    index = given.task if given.task is not None else task.get("index")
    if job is None:
        raise ValueError("which job is this? Give --job: %s" % ", ".join(sorted(jobs)))
    if index is None:
        raise ValueError("which task of job %s is this? Give --task" % job)
    return jobs, str(job), int(index)


def _of_tf_config(told: Dict[str, Any]) -> Dict[str, Any]:
    """The cluster; of a sparse one, where each process knows its own address and those of parameter servers, tasks by number."""
    sparse = told.get("sparseCluster") or {}
    jobs: Dict[str, Any] = dict(told.get("cluster") or {})
    for job, tasks in sparse.items():
        jobs[job] = {int(i): a for i, a in tasks.items()} if isinstance(tasks, dict) else tasks
    return jobs


def _serve(given: Any) -> Answer:
    jobs, job, task = _who(given)
    if given.allow_insecure_remote:
        os.environ["MILLRACE_ALLOW_INSECURE_REMOTE"] = "1"
    from millrace.train.server import Server
    ended: List[int] = []
    woken = threading.Event()

    def end(number: int, _: Any) -> None:
        if ended:  # once more: now
            os._exit(128 + number)
        ended.append(number)
        woken.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    server = Server(jobs, job_name=job, task_index=task)
    print("/job:%s/task:%d listens at %s" % (job, task, server.target), flush=True)
    while not woken.wait(timeout=1):
        pass
    server.stop()
    facts = {"job": job, "task": task, "target": server.target, "signal": signal.Signals(ended[0]).name}
    return Answer(facts, "/job:%s/task:%d was ended by %s" % (job, task, facts["signal"]), 128 + ended[0])
