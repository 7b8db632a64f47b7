# SPDX-License-Identifier: Apache-2.0
"""Servers: a task of a cluster in this process, with a master for clients and a worker with devices."""

from __future__ import annotations

import json
import threading
from typing import Any, Dict, List, Optional

import millrace._core as _core
from millrace.framework.errors import at_user_line
from millrace.launch import contract, events, health
from millrace.protos.definitions import ServerDef  # type: ignore[attr-defined]
from millrace.train.cluster import ClusterSpec


_started: List[Any] = []  # until they are stopped: sessions of their targets may be all that the program keeps


def _describe_all_steps() -> str:
    return "\n".join(str(server.steps().decode()) for server in list(_started)) or "no server has started"


def _only(what: str, choices: Any) -> Any:
    if len(choices) != 1:
        raise at_user_line(ValueError("Must specify an explicit `%s`." % what))
    return choices[0]


def _server_def(given: Any, job_name: Optional[str], task_index: Optional[int], protocol: Optional[str], config: Any) -> Any:
    made = ServerDef()
    if isinstance(given, ServerDef):
        made.CopyFrom(given)
        if job_name is not None:
            made.job_name = job_name
        if task_index is not None:
            made.task_index = task_index
        if protocol is not None:
            made.protocol = protocol
    else:
        cluster = ClusterSpec(given)
        made.job_name = job_name if job_name is not None else _only("job_name", cluster.jobs)
        made.task_index = task_index if task_index is not None else _only("task_index", cluster.task_indices(made.job_name))
        made.protocol = protocol if protocol is not None else "grpc"
        made.cluster.CopyFrom(cluster.as_cluster_def())
    if not made.job_name or not made.protocol:
        raise at_user_line(ValueError("The ServerDef must have a job_name and a protocol."))
    if config is not None:
        made.default_session_config.CopyFrom(config)
    return made


class Server:
    """A task of a cluster, which lives until it is stopped or the process ends: sessions of its target, in this process or others, run on the devices of the cluster's tasks.

    server_or_cluster_def is a ServerDef, a ClusterDef, a ClusterSpec or what makes one.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: Optional[str] = None,
        task_index: Optional[int] = None,
        protocol: Optional[str] = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        self._def = _server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        contract.tell_lost_peers()
        self._server = _core.Server(self._def.SerializeToString())
        if start:
            self.start()

    def start(self) -> None:
        """Answers clients and other tasks from now on."""
        tell = events.Events(job=self._def.job_name, task=self._def.task_index).tell
        contract.answer_requests(_describe_all_steps, tell)  # before anyone can know the server
        self._server.start()
        if self._server not in _started:
            _started.append(self._server)
        health.watch(self._server, self.status, tell)

    def join(self) -> None:
        """Waits until the server ends, which it does not by itself; Ctrl-C ends the waiting."""
        waiting = threading.Thread(target=self._server.join, daemon=True)
        waiting.start()
        while waiting.is_alive():
            waiting.join(timeout=1)

    def stop(self) -> None:
        """Ends what runs here, and drops the state of the task; join returns then. It cannot start again."""
        health.unwatch(self._server)
        self._server.stop()
        if self._server in _started:
            _started.remove(self._server)

    def status(self) -> Dict[str, Any]:
        """What it does: its task, the tasks of its cluster, steps, bytes, which calls wait (docs/cluster.md)."""
        return dict(json.loads(self._server.status()))

    def describe_steps(self) -> str:
        """Which steps are under way here, and what each of them waits for, line by line: for people."""
        return str(self._server.steps().decode())

    @property
    def server_def(self) -> Any:
        """The ServerDef that it was made from."""
        return self._def

    @property
    def target(self) -> str:
        """What sessions take as their target to reach it: "grpc://host:port"."""
        return str(self._server.target)

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> "Server":
        """A server of this process alone, a cluster of one task."""
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)
