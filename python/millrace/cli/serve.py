# SPDX-License-Identifier: Apache-2.0
"""`millrace serve`: one task of a cluster, until a signal ends it."""
from __future__ import annotations

import os
import signal
import threading
from typing import Any

from millrace.cli.answers import Answer
from millrace.launch import contract, identity


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "serve", help="be a task of a cluster", description="Runs the server of one task until SIGTERM or SIGINT ends it (exit status 143 or 130). Who it is say the "
        "arguments, or the environment of a scheduler. One line says where it listens.")
    parser.add_argument("--cluster", help="the tasks of all jobs: ps=host:port;worker=host:port,host:port, or the same as JSON: {\"ps\": [\"host:port\"], ...}")
    parser.add_argument("--job", help="the job of this task")
    parser.add_argument("--task", type=int, help="the number of this task in its job")
    parser.add_argument("--allow-insecure-remote", action="store_true",
                        help="listen where other hosts can connect, although nothing is encrypted and nobody has to say who he is: whoever reaches the port can run any "
                             "graph here, with the rights of this process")
    parser.set_defaults(command=_serve)


def _serve(given: Any) -> Answer:
    me = identity.who_am_i(given.cluster, given.job, given.task)
    if me.is_alone:
        raise ValueError("which tasks has the cluster? Give --cluster, --job and --task, or TF_CONFIG")
    job, task = me.job, me.task
    if given.allow_insecure_remote:
        os.environ["MILLRACE_ALLOW_INSECURE_REMOTE"] = "1"
    from millrace.train.server import Server
    woken = threading.Event()
    signals = contract.Signals(lambda _: woken.set(), stops=(signal.SIGTERM, signal.SIGINT))
    server = Server(me.jobs(), job_name=job, task_index=task)
    print("/job:%s/task:%d listens at %s" % (job, task, server.target), flush=True)
    while not woken.wait(timeout=1):
        pass
    server.stop()
    facts = {"job": job, "task": task, "target": server.target, "signal": signal.Signals(signals.received or signal.SIGTERM).name}
    return Answer(facts, "/job:%s/task:%d was ended by %s" % (job, task, facts["signal"]), signals.exit_code)
