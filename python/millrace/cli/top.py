# SPDX-License-Identifier: Apache-2.0
"""`millrace top`: what the tasks of a cluster do: steps, bytes, who waits."""

from __future__ import annotations

import concurrent.futures
import re
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from millrace.cli.answers import Answer, size, table
from millrace.cli.serve import identity_arguments, status_of
from millrace.launch import identity

_PATIENCE_MS = 2000  # for one task


def add_to(commands: Any) -> None:
    """The command's arguments."""
    parser = commands.add_parser(
        "top",
        help="what the tasks of a cluster do",
        description="Asks all tasks of a cluster, again and again until Ctrl-C, and prints steps and bytes a second and which call "
        "waits longest. Certificates are read from the MILLRACE_TLS_ variables.",
    )
    parser.add_argument("target", nargs="?", help="grpc://host:port or host:port of one task, which knows the others; default: who this process is says")
    identity_arguments(parser)
    parser.add_argument("--interval", type=float, default=2.0, metavar="SECONDS", help="between two looks (2)")
    parser.add_argument("--once", action="store_true", help="two looks, and one answer")
    parser.set_defaults(command=_top)


def _addresses(given: Any) -> List[Tuple[str, str]]:
    """Names and addresses of all tasks."""
    if given.target:
        address = given.target[len("grpc://") :] if given.target.startswith("grpc://") else given.target
        _, colon, port = address.rpartition(":")
        if not colon or "/" in address or not port.isdigit() or not 1 <= int(port) <= 65535:
            raise ValueError("the address is '%s', want grpc://host:port" % given.target)
        status = status_of("grpc://" + address, _PATIENCE_MS)
        return [("/job:%s/task:%d" % (t["job"], t["task"]), _own(status, t, address)) for t in status["tasks"]]
    me = identity.who_am_i(given.cluster, given.job, given.task if given.cluster is None or given.task is not None else 0)
    if me.is_alone:
        raise ValueError("which cluster? Give the address of a task, or --cluster")
    return [("/job:%s/task:%d" % (job, i), a) for job, tasks in sorted(me.cluster.items()) for i, a in sorted(tasks.items())]


def _own(status: Dict[str, Any], task: Dict[str, Any], address: str) -> str:
    """The task that was asked is where it was asked: its own address may have port 0."""
    is_own = status["task"] == "/job:%s/replica:0/task:%d" % (task["job"], task["task"])
    return address if is_own else str(task["address"])


def _look(tasks: List[Tuple[str, str]], pool: Any) -> List[Any]:
    def one(task: Tuple[str, str]) -> Any:
        try:
            return (time.monotonic(), status_of("grpc://" + task[1], _PATIENCE_MS))
        except Exception as error:
            return _why(getattr(error, "message", None) or str(error))

    return list(pool.map(one, tasks))


def _why(told: str) -> str:
    """The reason alone: not where this program asked, nor all that gRPC tried."""
    line = re.sub(r"\. At \S*:\d+\Z", "", told.splitlines()[0]) if told else ""
    return line.rpartition("Failed to connect to remote host: ")[2]


def _row(name: str, before: Any, now: Any) -> Dict[str, Any]:
    if isinstance(now, str):
        return {"task": name, "down": now or "no answer"}
    at, status = now
    then, last = before if not isinstance(before, str) and before[1]["incarnation"] == status["incarnation"] else (None, None)
    seconds = at - then if then is not None else status["up_seconds"]

    def grown(key: str) -> float:
        return float(status[key] - (last[key] if last is not None else 0))

    steps = grown("steps") + grown("failed_steps")
    oldest = max(status["waiting"], key=lambda w: w["seconds"], default=None)
    return {
        "task": name,
        "sessions": status["sessions"],
        "steps_per_second": grown("steps") / seconds,
        "failed_steps": status["failed_steps"],
        "step_ms": 1e3 * grown("step_seconds") / steps if steps else None,
        "parts_per_second": grown("parts") / seconds,
        "in_per_second": grown("bytes_in") / seconds,
        "out_per_second": grown("bytes_out") / seconds,
        "in_flight": status["calls"],
        "oldest": oldest,
    }


def _text(rows: List[Dict[str, Any]]) -> str:
    lines: List[Any] = []
    for r in rows:
        if "down" in r:
            lines.append((r["task"], "down", "", "", "", "", "", "", "", r["down"]))
            continue
        oldest: Optional[Dict[str, Any]] = r["oldest"]
        waits = "%s from %s, %.1f s" % (oldest["method"], oldest["peer"], oldest["seconds"]) if oldest and oldest["seconds"] >= 0.1 else ""
        lines.append(
            (
                r["task"],
                "up",
                str(r["sessions"]),
                "%.1f" % r["steps_per_second"],
                str(r["failed_steps"]),
                "" if r["step_ms"] is None else "%.2f" % r["step_ms"],
                "%.1f" % r["parts_per_second"],
                size(r["in_per_second"]),
                size(r["out_per_second"]),
                waits,
            )
        )
    return table(lines, ("task", "", "sessions", "steps/s", "failed", "ms/step", "parts/s", "in/s", "out/s", "waits longest"))


def _top(given: Any) -> Answer:
    if not 0.05 <= given.interval <= 3600:
        raise ValueError("--interval is %g, want 0.05 to 3600 seconds" % given.interval)
    tasks = _addresses(given)
    with concurrent.futures.ThreadPoolExecutor(min(len(tasks), 32)) as pool:
        before = _look(tasks, pool)
        while True:
            time.sleep(given.interval)
            now = _look(tasks, pool)
            rows = [_row(name, b, n) for (name, _), b, n in zip(tasks, before, now)]
            if given.once:
                return Answer({"tasks": rows}, _text(rows), 1 if any("down" in r for r in rows) else 0)
            before = now
            sys.stdout.write(("\x1b[H\x1b[J" if sys.stdout.isatty() else "") + _text(rows) + "\n")
            sys.stdout.flush()
