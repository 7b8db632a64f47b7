# SPDX-License-Identifier: Apache-2.0
"""The contract of processes: `millrace serve` as schedulers and strangers meet it."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

import millrace as tf
from millrace import cli
from millrace.cli import machine
from millrace.launch import certificates, contract, health
from test_op_library import library
from test_servers import _HAS_GRPC

needs_grpc = pytest.mark.skipif(not _HAS_GRPC, reason="skipped: libmillrace_grpc.so is not built")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="skipped: the program openssl is not here")


def _environ(**settings):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_TLS", "MILLRACE_ALLOW", "TF_CONFIG"))}
    return {**kept, **{k: str(v) for k, v in settings.items()}}


class _Served:
    """`millrace serve` of one task, until the end of the block."""

    def __init__(self, *flags, cluster="ps=localhost:0", environ=None):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "millrace", "serve", "--cluster", cluster, "--task", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ or _environ(),
        )
        self.lines = []
        while not self.lines or "listens at" not in self.lines[-1]:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError("it ended: %s" % self.process.stderr.read())
            self.lines.append(line)
        self.target = self.lines[-1].split()[-1]
        self.port = int(self.target.rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def end(self, number):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def _run(*arguments, environ=None, timeout=60):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environ or _environ(), timeout=timeout)


def _get(address, path):
    try:
        with urllib.request.urlopen("http://%s%s" % (address, path), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@needs_grpc
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_task_tells_its_port_and_leaves_when_it_is_told(number, code, tmp_path):
    with _Served("--port-file", str(tmp_path / "port"), "--log-format", "json") as served:
        assert (tmp_path / "port").read_text() == "%d\n" % served.port and served.port > 0
        assert re.fullmatch(r"/job:ps/task:0 listens at grpc://localhost:\d+\n", served.lines[0])
        got, out, err = served.end(number)
    assert got == code and "was ended by %s" % signal.Signals(number).name in out
    events = [json.loads(line) for line in err.splitlines()]
    assert [e["text"] for e in events] == ["listens", "leaves", "has left"]
    assert all(e["job"] == "ps" and e["task"] == 0 and re.fullmatch("[0-9a-f]{16}", e["incarnation"]) for e in events)
    assert len({e["incarnation"] for e in events}) == 1


@needs_grpc
def test_sigusr2_is_answered_from_the_first_line_on():
    with _Served() as served:
        served.process.send_signal(signal.SIGUSR2)
        lines = [served.process.stderr.readline()]
        while "no step is under way" not in lines[-1]:
            assert lines[-1], "the server ended with %s" % served.process.wait(10)
            lines.append(served.process.stderr.readline())
        assert served.end(signal.SIGTERM)[0] == 143


@needs_grpc
def test_sigusr2_says_what_steps_wait_for():
    with _Served() as served, tf.Graph().as_default(), tf.Session(served.target) as session:
        queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]])
        taken, put = queue.dequeue(name="take"), queue.enqueue(3.0)
        session.run(tf.no_op())
        lines = []

        def asked():
            served.process.send_signal(signal.SIGUSR2)
            lines.append(served.process.stderr.readline())
            while "under way" not in lines[-1]:
                assert lines[-1], "the server ended with %s" % served.process.wait(10)
                lines.append(served.process.stderr.readline())
            return lines[-1]

        assert "no step is under way" in asked()
        waiting = threading.Thread(target=lambda: lines.append(session.run(taken)))
        waiting.start()
        deadline = time.monotonic() + 30
        while "take (FIFOQueue" not in asked() and "take (QueueDequeue" not in lines[-1]:
            assert time.monotonic() < deadline, lines
            time.sleep(0.2)
        session.run(put)
        waiting.join()
        assert lines[-1] == 3.0
        assert served.end(signal.SIGTERM)[0] == 143


@pytest.mark.parametrize(
    "flags, told",
    [
        (["--cluster", "ps=localhost", "--task", "0"], "want host:port"),
        ([], "which tasks"),
        (["--cluster", "ps=localhost:0", "--task", "0", "--health", "x"], "--health"),
        (["--cluster", "ps=localhost:0", "--task", "0", "--max-steps", "0"], "MILLRACE_MAX_STEPS is '0'"),
        (["--cluster", "ps=localhost:0", "--task", "0", "--tls-ca", "/nowhere/ca"], "MILLRACE_TLS_CA"),
        (["--cluster", "ps=0.0.0.0:0", "--task", "0"], "allow_insecure_remote"),
        (["--cluster", "ps=localhost:0", "--task", "0", "--bind", "0.0.0.0"], "allow_insecure_remote"),
    ],
)
def test_bad_configurations_end_with_2(flags, told):
    if not _HAS_GRPC and ("tls" in told.lower() or "insecure" in told):
        pytest.skip("skipped: libmillrace_grpc.so is not built")
    done = _run("-m", "millrace", "serve", *flags)
    assert done.returncode == 2 and told in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 or "E" in done.stderr


@needs_grpc
def test_a_port_that_is_taken_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        command = ["-m", "millrace", "serve", "--cluster", "ps=" + address, "--task", "0", "--wait-for-port"]
        done = _run(*command, "0")
        program = _run("-c", "import millrace as tf\ntf.train.Server({'ps': ['%s']})" % address)
        waiting = subprocess.Popen([sys.executable, *command, "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environ())
        assert "waits for its port" in waiting.stderr.readline()
    assert done.returncode == 138 and done.stdout == ""  # a restart may help
    assert done.stderr == "millrace: Could not start gRPC server: cannot listen at %s: Address already in use\n" % address
    assert program.returncode == 138 and "UnknownError: Could not start gRPC server" in program.stderr
    assert "listens at" in waiting.stdout.readline()  # the port was given back
    waiting.send_signal(signal.SIGTERM)
    waiting.communicate(timeout=60)
    assert waiting.returncode == 143


def test_without_grpc_no_address_of_other_hosts_is_taken(monkeypatch, capsys):
    monkeypatch.setattr(machine, "has_grpc", lambda: False)
    for flags in (["--cluster", "ps=node1:2222"], ["--cluster", "ps=localhost:0", "--bind", "0.0.0.0"]):
        monkeypatch.setenv("MILLRACE_BIND", "")
        assert cli.main(["serve", *flags, "--job", "ps", "--task", "0"]) == 2
        assert "this installation has no gRPC" in capsys.readouterr().err


@needs_grpc
def test_health_and_metrics():
    with _Served("--health", "127.0.0.1:0", "--step-deadline", "1") as served:
        at = served.lines[0].split()[-1]
        assert _get(at, "/healthz") == (200, "ok\n") and _get(at, "/readyz") == (200, "ok\n") and _get(at, "/else")[0] == 404
        with tf.Graph().as_default(), tf.Session(served.target) as session:
            assert session.run(tf.constant(2) * 3) == 6
            code, text = _get(at, "/metrics")
            assert code == 200 and 'millrace_steps_total{task="/job:ps/replica:0/task:0"} 1\n' in text
            assert all(re.fullmatch(r'[a-z_]+\{task="[^"]*"\} [0-9.e+-]+', line) for line in text.splitlines() if line[0] != "#")
            queue = tf.FIFOQueue(1, [tf.float32]).dequeue()
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(queue, options=tf.RunOptions(timeout_in_ms=3000))
            time.sleep(0.1)
        assert "millrace_failed_steps_total{" in _get(at, "/metrics")[1]
        with socket.create_connection(at.split(":")) as s:  # what is no request harms nobody
            s.sendall(b"\x00\xff" * 5000 + b"\r\n\r\n")
        assert _get(at, "/healthz")[0] == 200


def test_readiness_turns_red_when_no_step_ends():
    status = {"waiting": [{"seconds": 5.0}], "seconds_since_step": 6.0, "up_seconds": 7.0}
    why = health.ready_of(lambda: status, 4.0)
    assert "6 s" in why() and health.ready_of(lambda: status, None)() is None
    status["seconds_since_step"] = 1.0
    assert why() is None
    status.update(seconds_since_step=None, waiting=[])
    assert why() is None


@needs_grpc
def test_limits_hold_at_one_more():
    with _Served("--max-sessions", "2", "--max-message-bytes", "100000") as served:

        def session():
            with tf.Graph().as_default():
                made = tf.Session(served.target)
                x = tf.placeholder(tf.float32, [None])
                return made, x, tf.reduce_sum(x)

        first, second, third = session(), session(), session()
        assert first[0].run(first[2], {first[1]: [1.0] * 24000}) == 24000 and second[0].run(second[2], {second[1]: [1.0]}) == 1
        with pytest.raises(tf.errors.ResourceExhaustedError, match="2 open sessions"):
            third[0].run(third[2], {third[1]: [1.0]})
        with pytest.raises(tf.errors.ResourceExhaustedError):
            first[0].run(first[2], {first[1]: [1.0] * 26000})
        first[0].close()
        assert third[0].run(third[2], {third[1]: [1.0]}) == 1
        second[0].close()
        third[0].close()


@needs_grpc
def test_steps_under_way_are_limited():
    with _Served("--max-steps", "1") as served, tf.Graph().as_default(), tf.Session(served.target) as session:
        taken, x = tf.FIFOQueue(1, [tf.float32]).dequeue(), tf.constant(1.0)
        assert session.run(x) == 1
        ended = []

        def wait():
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(taken, options=tf.RunOptions(timeout_in_ms=8000))
            ended.append(True)

        waiting = threading.Thread(target=wait)
        waiting.start()
        end = time.monotonic() + 7
        with pytest.raises(tf.errors.ResourceExhaustedError, match="runs 1 steps already"):
            while time.monotonic() < end:
                session.run(x)
        waiting.join(timeout=30)
        assert ended and session.run(x) == 1


_CLIENT = """
import sys, millrace as tf
with tf.Session(sys.argv[1], config=tf.ConfigProto(operation_timeout_in_ms=int(sys.argv[2]))) as s:
    try:
        print("got", s.run(tf.constant(2) * 3))
    except tf.errors.OpError as e:
        print(type(e).__name__, e.message.replace(chr(10), " "))
"""


@needs_grpc
def test_connections_are_limited():
    with _Served("--max-connections", "1") as served, tf.Graph().as_default():
        with tf.Session(served.target) as session:
            x = tf.constant(1.0)
            assert session.run(x) == 1
            said = _call(served, 20)
            assert said.startswith("ResourceExhaustedError") and "MILLRACE_MAX_CONNECTIONS" in said, said
            # Nor by gRPC, which has a limit of its own.
            with socket.create_connection(("localhost", served.port)):
                time.sleep(0.2)
                with socket.create_connection(("localhost", served.port)) as second:
                    second.settimeout(10)
                    assert len(second.recv(100)) == 17 and second.recv(100) == b""
            assert session.run(x) == 1


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("certs"))
    done = _run("-m", "millrace", "certs", folder, "--host", "ps-0.test", "--secret")
    assert done.returncode == 0, done.stderr
    certificates.make_certificate(folder, "task", "expired", ["localhost"], days=-1)
    certificates.make_certificate(folder, "client", "expired-client", days=-1)
    certificates.make_certificate(folder, "task", "elsewhere", ["elsewhere.test"])
    other = os.path.join(folder, "other")
    certificates.make_authority(other)
    certificates.make_certificate(other, "client")
    certificates.make_certificate(other, "task", hosts=["localhost"])
    return folder


def _tls(folder, name, ca=None):
    return dict(
        MILLRACE_TLS_CA=os.path.join(ca or folder, "ca.pem"),
        MILLRACE_TLS_CERT=os.path.join(folder, name + ".pem"),
        MILLRACE_TLS_KEY=os.path.join(folder, name + ".key"),
    )


def _call(served, seconds=4, **settings):
    done = _run("-c", _CLIENT, served.target, str(int(seconds * 1000)), environ=_environ(**settings))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _refuses(served, why, **settings):
    """Within seconds, in one line, although the client would wait for a minute."""
    start = time.monotonic()
    said = _call(served, 60, **settings)
    assert "UnauthenticatedError" in said and why in said, said
    assert time.monotonic() - start < 20


@needs_grpc
@needs_openssl
def test_only_those_with_certificates_get_anything(certs):
    with _Served("--log-format", "json", environ=_environ(**_tls(certs, "task"))) as served:
        assert _call(served, 20, **_tls(certs, "client")) == "got 6"
        assert _call(served, 20, **_tls(certs, "task")) == "got 6"
        other = os.path.join(certs, "other")
        _refuses(served, "the server speaks TLS alone: this process has no certificates (MILLRACE_TLS_CA")
        _refuses(served, "the certificate of this process (URI:millrace://role/client) is signed by", **_tls(other, "client", ca=certs))
        _refuses(served, "is signed by another authority", **_tls(other, "client"))
        _refuses(served, "the certificate of this process (URI:millrace://role/client) expired on", **_tls(certs, "expired-client"))
        refused = _call(served, 20, **_tls(certs, "monitor"))
        assert "PermissionDeniedError" in refused and "certificate has the role monitor, want task or client" in refused
        again = _call(served, 20, **_tls(certs, "monitor"))
        assert "PermissionDeniedError" in again
        for stranger in (b"GET / HTTP/1.0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01" + b"\x00" * 200):  # a port scan
            with socket.create_connection(("localhost", served.port)) as s:
                s.settimeout(15)
                s.sendall(stranger)
                s.shutdown(socket.SHUT_WR)
                got = b""
                try:
                    while True:
                        more = s.recv(4096)
                        if not more:
                            break
                        got += more
                except OSError:
                    pass
            assert len(got) < 100 and b"millrace" not in got.lower()
        assert _call(served, 20, **_tls(certs, "client")) == "got 6"  # it is there still
        code, _, err = served.end(signal.SIGTERM)
        assert code == 143
        told = [json.loads(line) for line in err.splitlines() if "refuses Master." in line]
        assert len(told) == 1 and (told[0]["job"], told[0]["task"], told[0]["level"]) == ("ps", "0", "W"), err  # once a minute


@needs_grpc
@needs_openssl
@pytest.mark.parametrize(
    "who, why",
    [
        ("expired", "its certificate (URI:millrace://role/task, DNS:localhost) expired on"),
        ("elsewhere", "its certificate is for URI:millrace://role/task, DNS:elsewhere.test, and not for 'localhost'"),
        ("other", "is signed by another authority"),
        (None, "the server speaks no TLS: it was started without certificates"),
    ],
)
def test_a_server_is_known_by_its_certificate(certs, who, why):
    mine = {} if who is None else _tls(os.path.join(certs, "other"), "task") if who == "other" else _tls(certs, who)
    with _Served(environ=_environ(**mine)) as served:
        _refuses(served, why, **_tls(certs, "client"))


@needs_grpc
@needs_openssl
def test_credentials_that_make_no_server_are_refused_before_the_port_is_taken(certs):
    serve = ("-m", "millrace", "serve", "--cluster", "ps=localhost:0", "--task", "0")
    odd = dict(_tls(certs, "task"), MILLRACE_TLS_KEY=os.path.join(certs, "client.key"))
    done = _run(*serve, environ=_environ(**odd))
    assert done.returncode == 2 and "MILLRACE_TLS_KEY=" + odd["MILLRACE_TLS_KEY"] in done.stderr, done.stderr
    assert "the key is not that of the certificate" in done.stderr and "taken" not in done.stderr
    done = _run(*serve, environ=_environ(**_tls(certs, "client")))
    assert done.returncode == 2 and "has the role client; a server's has the role task" in done.stderr, done.stderr
    assert os.path.join(certs, "client.pem") in done.stderr


@needs_grpc
@needs_openssl
def test_roles_of_other_tasks(certs):
    """A task with a task's certificate asks another for tensors; one with a client's does not start."""
    with _Served(environ=_environ(**_tls(certs, "task"))) as served:
        cluster = "ps=%s;worker=localhost:0" % served.target[len("grpc://") :]
        code = """
import sys, millrace as tf
server = tf.train.Server(%r, job_name="worker", task_index=0)
with tf.device("/job:ps"):
    x = tf.constant(2) * 3
with tf.Session(server.target, config=tf.ConfigProto(operation_timeout_in_ms=8000)) as s:
    try:
        print("got", s.run(x))
    except tf.errors.OpError as e:
        print(type(e).__name__, e.message)
""" % ({"ps": [served.target[len("grpc://") :]], "worker": ["localhost:0"]},)
        assert cluster
        assert "got 6" in _run("-c", code, environ=_environ(**_tls(certs, "task"))).stdout
        refused = _run("-c", code, environ=_environ(**_tls(certs, "client")))
        assert "got" not in refused.stdout and "a server's has the role task" in refused.stderr


@needs_grpc
@needs_openssl
def test_a_secret_instead_of_certificates(certs, tmp_path):
    ca = os.path.join(certs, "ca.pem")
    secret = os.path.join(certs, "secret")
    wrong = tmp_path / "wrong"
    wrong.write_text("x" * 64)
    with _Served(environ=_environ(**_tls(certs, "task"), MILLRACE_TLS_SECRET=secret)) as served:
        assert _call(served, 20, MILLRACE_TLS_CA=ca, MILLRACE_TLS_SECRET=secret) == "got 6"
        refused = _call(served, 20, MILLRACE_TLS_CA=ca, MILLRACE_TLS_SECRET=wrong)
        assert "UnauthenticatedError" in refused and "secret" in refused
        assert "got" not in _call(served, 20, **_tls(certs, "client"))
        assert "got" not in _call(served)
    short = tmp_path / "short"
    short.write_text("x" * 15)
    done = _run("-m", "millrace", "serve", "--cluster", "ps=localhost:0", "--task", "0", environ=_environ(**_tls(certs, "task"), MILLRACE_TLS_SECRET=short))
    assert done.returncode == 2 and "15 bytes, want 16" in done.stderr


@needs_grpc
@needs_openssl
def test_new_certificates_need_no_restart(certs, tmp_path):
    folder = str(tmp_path)
    for name in ("ca.pem", "ca.key", "client.pem", "client.key"):
        shutil.copy(os.path.join(certs, name), folder)
    for end in (".pem", ".key"):
        shutil.copy(os.path.join(certs, "expired" + end), os.path.join(folder, "task" + end))
    with _Served(environ=_environ(**_tls(folder, "task"))) as served:
        assert "got" not in _call(served, **_tls(folder, "client"))
        certificates.make_certificate(folder, "task", hosts=["localhost"])
        time.sleep(1.1)  # how long they may be what they were
        assert _call(served, 20, **_tls(folder, "client")) == "got 6"
        other = os.path.join(certs, "other")
        for name in ("ca.pem", "task.pem", "task.key"):
            shutil.copy(os.path.join(other, name), folder)
        time.sleep(1.1)
        assert _call(served, 20, **_tls(other, "client")) == "got 6"
        assert "got" not in _call(served, **_tls(certs, "client"))


@needs_grpc
@needs_openssl
def test_remote_servers_keep_files_and_functions_from_graphs(certs, tmp_path):
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "x").write_text("inside")
    (tmp_path / "x").write_text("outside")
    code = """
import sys, millrace as tf
with tf.Session(sys.argv[1]) as s:
    for what in (tf.read_file(sys.argv[2] + "/in/x"), tf.read_file(sys.argv[2] + "/x"), tf.write_file(sys.argv[2] + "/in/y", "y"), tf.matching_files(sys.argv[2] + "/*"),
                 tf.py_func(lambda: 1, [], tf.int64)):
        try:
            got = s.run(what)
            print("got", "".join(str(got).split()))
        except tf.errors.OpError as e:
            print(type(e).__name__)
"""

    def answers(served):
        target = "grpc://localhost:%d" % served.port
        return _run("-c", code, target, str(tmp_path), environ=_environ(**_tls(certs, "client"))).stdout.split("\n")[:5]

    remote = ("--bind", "0.0.0.0")
    with _Served(*remote, environ=_environ(**_tls(certs, "task"))) as served:
        assert answers(served) == ["PermissionDeniedError"] * 3 + ["got []", "PermissionDeniedError"]  # nothing matches where nothing may be listed
    with _Served(*remote, "--allow-files", str(inside), environ=_environ(**_tls(certs, "task"))) as served:
        assert answers(served) == ["got b'inside'", "PermissionDeniedError", "got None", "got []", "PermissionDeniedError"]
    assert (inside / "y").read_text() == "y"
    with _Served(environ=_environ(**_tls(certs, "task"))) as served:  # of this host alone: as it was
        got = answers(served)
        assert got[:3] == ["got b'inside'", "got b'outside'", "got None"] and got[3].startswith("got") and got[4] == "InvalidArgumentError"


@needs_openssl
def test_certificates_are_their_owners_alone(certs):
    for name in os.listdir(certs):
        if name.endswith(".key") or name == "secret":
            assert os.stat(os.path.join(certs, name)).st_mode & 0o077 == 0, name
    before = open(os.path.join(certs, "ca.pem")).read()
    assert _run("-m", "millrace", "certs", certs, "--role", "task", "--name", "n2", "--host", "*.svc", "--host", "10.0.0.1").returncode == 0
    assert open(os.path.join(certs, "ca.pem")).read() == before
    shown = subprocess.run(["openssl", "x509", "-in", os.path.join(certs, "n2.pem"), "-noout", "-text"], capture_output=True, text=True).stdout
    assert all(t in shown for t in ("URI:millrace://role/task", "DNS:*.svc", "IP Address:10.0.0.1", "TLS Web Server Authentication"))
    client = subprocess.run(["openssl", "x509", "-in", os.path.join(certs, "client.pem"), "-noout", "-text"], capture_output=True, text=True).stdout
    assert "TLS Web Server Authentication" not in client
    for bad in (
        ["--days", "0"],
        ["--name", "x"],
        ["--role", "task", "--name", "../x"],
        ["--role", "task", "--host", "a b"],
        ["--role", "task", "--host", "x,DNS:y"],
    ):
        assert _run("-m", "millrace", "certs", certs, *bad).returncode == 2, bad


@needs_grpc
def test_a_second_signal_ends_at_once():
    code = """
import signal, sys, time
from millrace.launch import contract
signals = contract.Signals(lambda n: print("draining", flush=True))
print("there", flush=True)
while True:
    time.sleep(0.05)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=_environ())
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "draining\n" and process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 143
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environ(MILLRACE_DRAIN_SECONDS=0.2)
    )
    assert process.stdout.readline() == "there\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 143 and "SIGTERM came 0.2 s ago" in process.stderr.read()


def test_exit_codes():
    assert contract.exit_code_of(tf.errors.UnavailableError(None, None, "x")) == 138 == contract.exit_code_of(tf.errors.AbortedError(None, None, "x"))
    assert contract.exit_code_of(ValueError()) == 1 and contract.exit_code_of(KeyboardInterrupt()) == 130
    assert [contract.exit_code_of(SystemExit(c)) for c in (None, 0, 3, "text")] == [0, 0, 3, 1]
    code = """
import atexit, millrace as tf
server = tf.train.Server.create_local_server()
atexit.register(lambda: print("cleaned up"))
raise %s
"""
    done = _run("-c", code % "tf.errors.UnavailableError(None, None, 'worker /job:ps/task:1 is gone')")
    assert done.returncode == 138 and "is gone" in done.stderr and done.stdout == "cleaned up\n"
    done = _run("-c", code % "ValueError('mine')")
    assert done.returncode == 1 and done.stdout == "cleaned up\n"


_OP_OF_A_LIBRARY = """
import sys, millrace as tf
ops = tf.load_op_library(sys.argv[2])
alone, inside = ops.plugin_axpy([1.0], [3.0], name="alone"), tf.reduce_sum(ops.plugin_axpy([1.0, 2.0], [3.0, 4.0], name="inside"))
with tf.Session(sys.argv[1]) as s:
    for x in (alone, inside):
        try:
            print("got", s.run(x))
        except tf.errors.UnimplementedError as e:
            print(e.message)
"""

_SERVER_WITH_A_LIBRARY = """
import sys, millrace as tf
tf.load_op_library(sys.argv[1])
server = tf.train.Server({"ps": ["localhost:0"]})
print(server.target, flush=True)
server.join()
"""


@needs_grpc
def test_ops_of_libraries():
    path = library("tensorflow_kernels")
    with _Served() as served:
        told = _run("-c", _OP_OF_A_LIBRARY, served.target, path).stdout.splitlines()
        assert len(told) == 2 and all("op PluginAxpy of node '%s'" % node in line for node, line in zip(("alone", "inside"), told)), told
        assert all("millrace serve --op-library" in line for line in told)
    with _Served("--op-library", path) as served:
        assert _run("-c", _OP_OF_A_LIBRARY, served.target, path).stdout.splitlines() == ["got [5.]", "got 13.0"]
    process = subprocess.Popen([sys.executable, "-c", _SERVER_WITH_A_LIBRARY, path], stdout=subprocess.PIPE, text=True, env=_environ())
    try:
        assert _run("-c", _OP_OF_A_LIBRARY, process.stdout.readline().strip(), path).stdout.splitlines() == ["got [5.]", "got 13.0"]
    finally:
        process.kill()
        process.communicate()
    done = _run("-m", "millrace", "serve", "--cluster", "ps=localhost:0", "--task", "0", "--op-library", "/nowhere/ops.so")
    assert done.returncode == 2 and "/nowhere/ops.so" in done.stderr
