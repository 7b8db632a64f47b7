# SPDX-License-Identifier: Apache-2.0
"""GET /healthz, /readyz and /metrics of a server, for schedulers and Prometheus."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace import settings
from millrace.launch import contract

# name, type, help, and what of the status it is
_METRICS: Tuple[Tuple[str, str, str, str], ...] = (
    ("millrace_up_seconds", "gauge", "Seconds since the server was made.", "up_seconds"),
    ("millrace_sessions", "gauge", "Sessions of masters on this task.", "sessions"),
    ("millrace_steps_total", "counter", "Steps of clients of this task that ended well.", "steps"),
    ("millrace_failed_steps_total", "counter", "Steps of clients of this task that failed.", "failed_steps"),
    ("millrace_step_seconds_total", "counter", "Time of all steps of clients together.", "step_seconds"),
    ("millrace_steps_in_flight", "gauge", "Steps of clients under way.", "steps_in_flight"),
    ("millrace_parts_total", "counter", "Parts of steps that other tasks asked for.", "parts"),
    ("millrace_received_bytes_total", "counter", "Bytes of requests.", "bytes_in"),
    ("millrace_sent_bytes_total", "counter", "Bytes of replies.", "bytes_out"),
    ("millrace_refused_calls_total", "counter", "Calls of peers that may not make them.", "refused"),
    ("millrace_calls_in_flight", "gauge", "Calls under way: steps, and tensors that are waited for.", "calls"),
)
_MOST_WAITING_SECONDS = 10.0  # for the rest of a request


def metrics_text(status: Dict[str, Any]) -> str:
    """The status in Prometheus' text form."""
    lines = []
    label = json.dumps(status["task"])
    for name, kind, help_text, key in _METRICS:
        lines += ["# HELP %s %s" % (name, help_text), "# TYPE %s %s" % (name, kind), "%s{task=%s} %s" % (name, label, status[key])]
    lines += [
        "# HELP millrace_resident_bytes Memory of the process.",
        "# TYPE millrace_resident_bytes gauge",
        "millrace_resident_bytes{task=%s} %d" % (label, _resident()),
    ]
    if status["seconds_since_step"] is not None:
        lines += [
            "# HELP millrace_seconds_since_step Seconds since a step, or a part of one, ended well.",
            "# TYPE millrace_seconds_since_step gauge",
            "millrace_seconds_since_step{task=%s} %s" % (label, status["seconds_since_step"]),
        ]
    oldest = max((w["seconds"] for w in status["waiting"]), default=0)
    lines += [
        "# HELP millrace_oldest_call_seconds Age of the oldest call under way.",
        "# TYPE millrace_oldest_call_seconds gauge",
        "millrace_oldest_call_seconds{task=%s} %s" % (label, oldest),
    ]
    return "\n".join(lines) + "\n"


def _resident() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


class HealthServer:
    """Answers at host:port until it is stopped. `status` tells what the server is doing; `ready` gives nothing, or why the task is not ready."""

    def __init__(self, host: str, port: int, status: Callable[[], Dict[str, Any]], ready: Callable[[], Optional[str]]) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = _MOST_WAITING_SECONDS
            server_version, sys_version = "millrace", ""

            def do_GET(self) -> None:
                """One of three pages."""
                path = self.path.split("?")[0]
                if path == "/healthz":
                    self._answer(200, "ok\n")
                elif path == "/readyz":
                    why = ready()
                    self._answer(503 if why else 200, (why or "ok") + "\n")
                elif path == "/metrics":
                    self._answer(200, metrics_text(status()), "text/plain; version=0.0.4; charset=utf-8")
                else:
                    self._answer(404, "there are /healthz, /readyz and /metrics\n")

            do_HEAD = do_GET

            def _answer(self, code: int, text: str, kind: str = "text/plain; charset=utf-8") -> None:
                body = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Probes come every few seconds: no line for each."""

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 16

            def handle_error(self, *_: Any) -> None:
                """A peer that hangs up is no event."""

        self._listener = Listener((host, port), Handler)
        self.address = "%s:%d" % (host, self._listener.server_address[1])
        self._thread = threading.Thread(target=self._listener.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answers nobody any more."""
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join(timeout=5)


def ready_of(status: Callable[[], Dict[str, Any]], step_deadline: Optional[float]) -> Callable[[], Optional[str]]:
    """Why a task is not ready: a call waits for longer than the deadline, and no step has ended in that time. Nothing without a deadline."""

    def why() -> Optional[str]:
        now = status()
        if step_deadline is None:
            return None
        oldest = max((w["seconds"] for w in now["waiting"]), default=0)
        last = now["seconds_since_step"]
        if oldest > step_deadline and (last is None or last > step_deadline):
            return "no step has ended for %.0f s, and the oldest call waits for %.0f s; the deadline is %g s" % (
                last if last is not None else now["up_seconds"],
                oldest,
                step_deadline,
            )
        return None

    return why


def host_and_port(text: str, what: str) -> Tuple[str, int]:
    """What [HOST:]PORT names; `what` is who says so."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError("%s is '%s', want PORT or HOST:PORT" % (what, text))
    return host or "127.0.0.1", int(port)


_watched: Dict[Any, HealthServer] = {}


def watch(server: Any, status: Callable[[], Dict[str, Any]], tell: Callable[..., None]) -> None:
    """Tells the health of a program that has a server where MILLRACE_HEALTH says, of the first where it has several, and in a line where that is."""
    where = settings.text("MILLRACE_HEALTH")
    if where and not _watched:
        host, port = host_and_port(where, "MILLRACE_HEALTH")
        try:
            _watched[server] = HealthServer(host, port, status, connected_of(status))
        except OSError as error:
            raise OSError(error.errno, "MILLRACE_HEALTH is '%s', where this process cannot listen: %s" % (where, error.strerror)) from None
        tell("tells its health", at=_watched[server].address)


def unwatch(server: Any) -> None:
    """Tells nothing of it any more."""
    if server in _watched:
        _watched.pop(server).stop()


def connected_of(status: Callable[[], Dict[str, Any]]) -> Callable[[], Optional[str]]:
    """Why a program's task is not ready: it leaves, or no session reaches it yet. Once one has, that counts for good."""
    has_connected: List[bool] = []

    def why() -> Optional[str]:
        if contract.is_leaving():
            return "the task is leaving"
        now = status()
        if not has_connected and (now["sessions"] or now["steps"] or now["parts"]):
            has_connected.append(True)
        return None if has_connected else "no session has been made on this task yet"

    return why
