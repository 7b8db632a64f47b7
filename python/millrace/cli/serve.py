# SPDX-License-Identifier: Apache-2.0
"""`millrace serve`: one task of a cluster, until a signal ends it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple

from millrace import settings
from millrace.cli import machine
from millrace.cli.answers import Answer
from millrace.launch import contract, events, health, identity

# flags whose value the library reads from the environment, when the server is made
_SETTINGS: Tuple[Tuple[str, str, str, str], ...] = (
    ("--bind", "MILLRACE_BIND", "HOST[:PORT]", "listen there; the others still use the task's address in the cluster"),
    ("--tls-ca", "MILLRACE_TLS_CA", "FILE", "the authority's certificate: with it connections are TLS, and everybody shows a certificate of its"),
    ("--tls-cert", "MILLRACE_TLS_CERT", "FILE", "this task's certificate"),
    ("--tls-key", "MILLRACE_TLS_KEY", "FILE", "its key"),
    ("--tls-secret", "MILLRACE_TLS_SECRET", "FILE", "callers show the secret in this file, and no certificate"),
    (
        "--allow-files",
        "MILLRACE_ALLOW_FILES",
        "FOLDERS",
        "graphs may use files beneath these, with ':' between them, or 'all'; default: all on the loopback interface, else none",
    ),
    ("--max-sessions", "MILLRACE_MAX_SESSIONS", "N", "sessions of clients (1000)"),
    ("--session-lease", "MILLRACE_SESSION_LEASE_SECONDS", "SECONDS", "sessions of clients that were not heard for so long are ended (600; 0: never)"),
    ("--max-steps", "MILLRACE_MAX_STEPS", "N", "steps of clients under way at once (1000)"),
    ("--max-calls", "MILLRACE_MAX_CALLS", "N", "calls of one task under way at once: pulls of tensors and parts of steps (20000)"),
    ("--max-message-bytes", "MILLRACE_MAX_MESSAGE_BYTES", "N", "of one request (4 GiB)"),
    ("--max-control-bytes", "MILLRACE_MAX_CONTROL_BYTES", "N", "of one request without a graph or a tensor (16 MiB)"),
    ("--max-connections", "MILLRACE_MAX_CONNECTIONS", "N", "at once (half of the files that the process may open, at most 10000)"),
    ("--max-connection-bytes", "MILLRACE_MAX_CONNECTION_BYTES", "N", "that gRPC's connections may hold in memory together (three quarters of the machine's)"),
)


def identity_arguments(parser: Any) -> None:
    """The arguments that say who a task is."""
    parser.add_argument("--cluster", help='the tasks of all jobs: ps=host:port;worker=host:port,host:port, or the same as JSON: {"ps": ["host:port"], ...}')
    parser.add_argument("--job", help="the job of this task")
    parser.add_argument("--task", type=int, help="the number of this task in its job")


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "serve",
        help="be a task of a cluster",
        description="Runs the server of one task until SIGTERM or SIGINT ends it (exit status 143 or 130; a second one ends it at "
        "once). Who it is say the arguments, or the environment of a scheduler. One line says where it listens.",
    )
    identity_arguments(parser)
    for flag, variable, value, what in _SETTINGS:
        parser.add_argument(flag, metavar=value, help="%s (or %s)" % (what, variable))
    parser.add_argument(
        "--allow-py-func", action="store_true", help="graphs may call Python functions that this process has registered (or MILLRACE_ALLOW_PY_FUNC=1)"
    )
    parser.add_argument(
        "--allow-any-cluster",
        action="store_true",
        help="sessions may bring clusters with any addresses, to which this process then connects (or MILLRACE_ALLOW_ANY_CLUSTER=1); default: on the "
        "loopback interface, else the addresses of its own cluster",
    )
    parser.add_argument(
        "--allow-insecure-remote",
        action="store_true",
        help="listen where other hosts can connect, although nothing is encrypted and nobody has to say who he is: whoever reaches the port can run any "
        "graph here, with the rights of this process",
    )
    parser.add_argument(
        "--allow-other-users",
        action="store_true",
        help="on the loopback interface, without certificates, take the calls of other users of this host too (or MILLRACE_ALLOW_OTHER_USERS=1)",
    )
    parser.add_argument(
        "--op-library",
        metavar="FILE",
        action="append",
        default=[],
        help="load this library of ops first, as tf.load_op_library does: graphs with its ops run here; may be given again",
    )
    parser.add_argument(
        "--wait-for-port", type=float, default=10.0, metavar="SECONDS", help="how long to wait where another process has the port (10); then it exits with 138"
    )
    parser.add_argument("--port-file", metavar="FILE", help="write the port that was got there")
    parser.add_argument(
        "--health", metavar="[HOST:]PORT", help="answer GET /healthz, /readyz and /metrics there (or MILLRACE_HEALTH); port 0: any, named in a line"
    )
    parser.add_argument("--step-deadline", type=float, metavar="SECONDS", help="/readyz says 503 when a call waits for longer and no step has ended meanwhile")
    parser.add_argument("--log-format", choices=("text", "json"), help="of log lines, each of which has job, task and incarnation (or MILLRACE_LOG_FORMAT)")
    parser.set_defaults(command=_serve)


def settle(given: Any) -> None:
    """Puts what the flags say where the library looks."""
    for flag, variable, _, _ in _SETTINGS:
        value = getattr(given, flag[2:].replace("-", "_"))
        if value is not None:
            os.environ[variable] = value
    for name in ("allow_py_func", "allow_any_cluster", "allow_insecure_remote", "allow_other_users"):
        if getattr(given, name):
            os.environ["MILLRACE_" + name.upper()] = "1"
    if given.log_format:
        os.environ["MILLRACE_LOG_FORMAT"] = given.log_format


def _check_reach(address: str) -> None:
    """A server that nobody can reach is no server: without gRPC there is this host alone."""
    host = address.rpartition(":")[0] if not address.endswith("]") and ":" in address else address
    if host not in ("localhost", "[::1]") and not host.startswith("127.") and not machine.has_grpc():
        raise ValueError(
            "%s would be reached by other hosts, but this installation has no gRPC (the wheel never has it): build from source where Debian's libgrpc++-dev "
            "is installed, or give addresses such as localhost:2222 to tasks of this host" % address
        )


def _serve(given: Any) -> Answer:
    me = identity.who_am_i(given.cluster, given.job, given.task)
    if me.is_alone:
        raise ValueError("which tasks has the cluster? Give --cluster, --job and --task, or TF_CONFIG")
    if me.address is None:
        raise ValueError("task %s of job %s has no address in the cluster: it has no server" % (me.task, me.job))
    settle(given)
    _check_reach(settings.text("MILLRACE_BIND") or me.address)
    os.environ.setdefault("MILLRACE_LOG_FIELDS", "job=%s,task=%s" % (me.job, me.task))
    name = "/job:%s/task:%s" % (me.job, me.task)
    log = events.Events(job=me.job, task=me.task)
    woken = threading.Event()
    signals = contract.Signals(lambda _: woken.set(), stops=(signal.SIGTERM, signal.SIGINT))
    told, said_by = (given.health, "--health") if given.health is not None else (settings.text("MILLRACE_HEALTH"), "MILLRACE_HEALTH")
    os.environ.pop("MILLRACE_HEALTH", None)  # that of programs, where this tells more
    health_at = health.host_and_port(told, said_by) if told else None
    from millrace.framework.load_library import load_op_library
    from millrace.train.server import Server

    for library in given.op_library:
        load_op_library(library)
    server = _server_once_its_port_is_free(lambda: Server(me.jobs(), job_name=me.job, task_index=me.task), given.wait_for_port, woken, log)
    if server is None:
        return Answer({"job": me.job, "task": me.task}, "", signals.exit_code)

    def status() -> Dict[str, Any]:
        return dict(server.status())

    log.fields["incarnation"] = status()["incarnation"]
    if given.port_file:
        _write_whole(given.port_file, server.target.rpartition(":")[2] + "\n")
    probes: Optional[health.HealthServer] = None
    if health_at is not None:
        probes = health.HealthServer(*health_at, status, lambda: "the task is leaving" if woken.is_set() else health.ready_of(status, given.step_deadline)())
        print("%s tells its health at %s" % (name, probes.address), flush=True)
    print("%s listens at %s" % (name, server.target), flush=True)
    log.tell("listens", target=server.target, who=me.source, pid=os.getpid())
    while not woken.wait(timeout=0.25):
        pass  # signals are handled between two waits
    signal_name = signal.Signals(signals.received or signal.SIGTERM).name
    log.tell("leaves", signal=signal_name)
    last = status()
    server.stop()
    if probes is not None:
        probes.stop()
    log.tell("has left", signal=signal_name, steps=last["steps"], parts=last["parts"])
    facts = {"job": me.job, "task": me.task, "target": server.target, "signal": signal_name}
    return Answer(facts, "%s was ended by %s" % (name, signal_name), signals.exit_code)


def _server_once_its_port_is_free(make: Callable[[], Any], patience: float, woken: threading.Event, log: events.Events) -> Any:
    """The server; None when a signal comes first. The task that ran before may be about to leave its port: it is waited for."""
    end = time.monotonic() + patience
    is_told = False
    while True:
        try:
            return make()
        except Exception as error:
            if not contract.is_taken_port(error) or time.monotonic() >= end:
                raise
            if not is_told:
                log.tell("waits for its port", seconds=patience, why=str(getattr(error, "message", error)))
            is_told = True
        if woken.wait(timeout=0.25):
            return None


def _write_whole(path: str, text: str) -> None:
    """Whoever waits for the file never sees a part of it."""
    part = "%s.%d.part" % (path, os.getpid())
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, path)


def status_of(target: str, timeout_ms: int = 5000) -> Dict[str, Any]:
    """What the server at "grpc://host:port" tells of itself."""
    import millrace._core as core

    return dict(json.loads(core.target_status(target, timeout_ms)))
