# SPDX-License-Identifier: Apache-2.0
"""What schedulers rely on of programs with servers: signals, exit codes, probes, and parameter servers that end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import millrace as tf
from millrace.launch import contract, done
from millrace.launch.identity import Identity
from millrace.testing.test_util import _unused_port, create_local_cluster
from test_launch import _program, _until
from test_serve import _environ, _get, _Served, needs_grpc


class _Started:
    """A Python program with its lines, until the end of the block."""

    def __init__(self, *arguments, **environ):
        self.process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environ(**environ))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def line_with(self, text, stream="stdout"):
        """The next line that has it."""
        for line in getattr(self.process, stream):
            if text in line:
                return line
        raise AssertionError("ended with %s: %s" % (self.process.wait(), self.process.stderr.read()))

    def end(self, number=None):
        """(exit code, what it still said)."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


_TRAINING = """
print("begins", flush=True)
import sys, time
import millrace as tf
from millrace.launch import done, who_am_i
me = who_am_i()
server = tf.train.Server(me.jobs(), job_name=me.job, task_index=me.task)
if me.job == "ps":
    done.serve_until_done(server, me)
    sys.exit(0)
with tf.device(tf.train.replica_device_setter(cluster=me.jobs(), worker_device="/job:worker/task:0")):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
with tf.train.MonitoredTrainingSession(server.target, checkpoint_dir=sys.argv[1], save_checkpoint_secs=100000) as session:
    at = 0
    while at < int(sys.argv[2]):
        at = session.run(train)
        print("step", at, flush=True)
        time.sleep(0.05)
done.tell_done(server, me)
"""


@needs_grpc
@pytest.mark.parametrize("servers", [[], ["--serve-ps"]])
def test_save_now_saves_and_ends_no_parameter_server(tmp_path, servers):
    program, folder = _program(tmp_path, _TRAINING), str(tmp_path / "logs")
    with _Started("-m", "millrace", "launch", "-n", "1", "--ps", "1", *servers, program, folder, "60", MILLRACE_DRAIN_SECONDS=5) as launched:
        launched.line_with("begins")
        launched.process.send_signal(signal.SIGUSR1)  # before the task could take it
        launched.line_with("step 5")
        before = tf.train.latest_checkpoint(folder)
        launched.process.send_signal(signal.SIGUSR1)
        assert _until(lambda: tf.train.latest_checkpoint(folder) not in (None, before)), "SIGUSR1 saved nothing"
        code, out, err = launched.end()
    assert code == 0 and "[worker/0] step 60\n" in out, err
    assert re.search(r"^\[ps/0\].*SIGUSR1 asks for a checkpoint", err, re.M), err


@needs_grpc
def test_who_has_a_server_tells_its_steps(tmp_path):
    program = _program(
        tmp_path,
        """
import threading, time
import millrace as tf
server = tf.train.Server.create_local_server()
taken = tf.FIFOQueue(1, [tf.float32]).dequeue(name="take")
session = tf.Session(server.target)
threading.Thread(target=lambda: session.run(taken), daemon=True).start()
print("there", flush=True)
server.join()
""",
    )
    with _Started(program) as started:
        started.line_with("there")
        time.sleep(1)
        started.process.send_signal(signal.SIGUSR2)
        assert "take (QueueDequeue" in started.line_with("take (", "stderr")
        assert started.process.poll() is None


_INTERRUPTED = """
import sys, time
import millrace as tf
step = tf.train.get_or_create_global_step()
train = tf.assign_add(step, 1)
def work():
    with tf.train.MonitoredTrainingSession(checkpoint_dir=sys.argv[1], save_checkpoint_secs=100000) as session:
        while not session.should_stop():
            print("step", session.run(train), flush=True)
            time.sleep(0.02)
if sys.argv[2] == "caught":
    try:
        work()
    except KeyboardInterrupt:
        time.sleep(4)
        print("went on", flush=True)
else:
    work()
"""


@pytest.mark.parametrize("how", ["caught", "not caught"])
def test_sigint_lets_a_training_save(tmp_path, how):
    folder = str(tmp_path / "logs")
    with _Started(_program(tmp_path, _INTERRUPTED), folder, how, MILLRACE_DRAIN_SECONDS=3) as started:
        started.line_with("step 5")
        code, out, err = started.end(signal.SIGINT)
    last = int((re.findall(r"step (\d+)", out) or [5])[-1])
    assert code == (0 if how == "caught" else -signal.SIGINT), err  # 130, as a shell has it
    assert ("went on" in out) == (how == "caught")  # after more than a drain
    assert int(tf.train.load_checkpoint(folder).get_tensor("global_step")) in (last, last + 1)


@pytest.mark.parametrize("number, code", [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("waits", ["for the chief", "between attempts"])
def test_who_waits_for_others_leaves_at_once(tmp_path, number, code, waits):
    text = """
import sys
import millrace as tf
from millrace.train.wrapped_sessions import _Failures
_Failures.FIRST_PAUSE = 1000.0
tf.get_variable("v", [])
def lost(step_context):
    print("there", flush=True)
    raise tf.errors.UnavailableError(None, None, "it is gone")
server = tf.train.Server.create_local_server()
is_chief = sys.argv[1] == "between attempts"
class Begins(tf.train.SessionRunHook):
    def begin(self):
        if not is_chief:
            print("there", flush=True)
with tf.train.MonitoredTrainingSession(server.target, is_chief=is_chief, hooks=[Begins()]) as session:
    session.run_step_fn(lost)
"""
    with _Started(_program(tmp_path, text), waits) as started:
        started.line_with("there")
        time.sleep(2)
        began = time.monotonic()
        assert started.end(number)[0] == code
        assert time.monotonic() - began < 15  # and not when the drain is over


@needs_grpc
def test_a_program_tells_its_health(tmp_path):
    program = _program(
        tmp_path,
        """
import sys
import millrace as tf
server = tf.train.Server({"worker": ["localhost:0"]}, job_name="worker", task_index=0)
print("there", flush=True)
sys.stdin.readline()
tf.Session(server.target).run(tf.constant(1))
print("has run", flush=True)
sys.stdin.readline()
server.stop()
print("stopped", flush=True)
sys.stdin.readline()
""",
    )
    address = "127.0.0.1:%d" % _unused_port()
    process = subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environ(MILLRACE_HEALTH=address))
    with process:
        assert process.stdout.readline() == "there\n"
        assert _get(address, "/healthz") == (200, "ok\n")
        assert _get(address, "/readyz") == (503, "no session has been made on this task yet\n")
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "has run\n"
        assert _get(address, "/readyz") == (200, "ok\n")
        assert 'millrace_steps_total{task="/job:worker/replica:0/task:0"} 1\n' in _get(address, "/metrics")[1]
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "stopped\n"
        with pytest.raises(OSError):
            _get(address, "/healthz")
        process.kill()


def test_tasks_of_one_host_have_a_port_each_for_their_health(tmp_path):
    text = """
import millrace as tf
server = tf.train.Server.create_local_server()
"""
    with _Started("-m", "millrace", "launch", "-n", "2", _program(tmp_path, text), MILLRACE_HEALTH="127.0.0.1:80") as launched:
        code, _, err = launched.end()
    ports = re.findall(r"^\[worker/\d\].* tells its health at=127.0.0.1:(\d+)$", err, re.M)
    assert code == 0 and len(ports) == 2 and "80" not in ports, err


def test_a_bad_place_for_health_is_an_error(monkeypatch):
    monkeypatch.setenv("MILLRACE_HEALTH", "nowhere")
    with pytest.raises(ValueError, match="MILLRACE_HEALTH is 'nowhere'"):
        tf.train.Server.create_local_server()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("MILLRACE_HEALTH", "%d" % taken.getsockname()[1])
        with pytest.raises(OSError, match="MILLRACE_HEALTH is .*cannot listen"):
            tf.train.Server.create_local_server()


def test_exit_codes_of_errors():
    assert contract.exit_code_of(tf.errors.UnavailableError(None, None, "gone")) == 138
    assert contract.exit_code_of(tf.errors.DeadlineExceededError(None, None, "the step took too long")) == 1
    with pytest.raises(tf.errors.DeadlineExceededError) as late:
        tf.Session("grpc://localhost:%d" % _unused_port(), config=tf.ConfigProto(operation_timeout_in_ms=100)).run(tf.constant(1))
    assert contract.exit_code_of(late.value) == 138
    cluster = {"worker": ["localhost:%d" % _unused_port()], "ps": ["localhost:%d" % _unused_port()]}
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    with pytest.raises(tf.errors.DeadlineExceededError) as late:
        tf.Session(server.target, config=tf.ConfigProto(operation_timeout_in_ms=100)).run(tf.constant(1))
    assert contract.exit_code_of(late.value) == 138
    server.stop()
    local = tf.train.Server.create_local_server()
    with tf.Session(local.target) as session, pytest.raises(tf.errors.DeadlineExceededError) as slow:
        session.run(tf.FIFOQueue(1, [tf.float32]).dequeue(), options=tf.RunOptions(timeout_in_ms=50))
    assert contract.exit_code_of(slow.value) == 1
    tf.get_variable("v", [])
    with tf.Session(local.target), pytest.raises(tf.errors.DeadlineExceededError) as late:
        tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.1).wait_for_session(local.target, max_wait_secs=0.3)
    assert contract.exit_code_of(late.value) == 138
    local.stop()


_LOSES = """
import json, sys, time
import millrace as tf
cluster, is_chief = json.loads(sys.argv[1]), sys.argv[2] == "chief"
server = tf.train.Server(cluster, job_name="worker", task_index=0)
with tf.device("/job:ps/task:0"):
    step = tf.train.get_or_create_global_step()
    train = tf.assign_add(step, 1)
config = tf.ConfigProto(operation_timeout_in_ms=2000)
with tf.train.MonitoredTrainingSession(server.target, is_chief, config=config, max_wait_secs=1) as session:
    while True:
        print("step", session.run(train), flush=True)
        time.sleep(0.02)
"""


@needs_grpc
@pytest.mark.parametrize("waits_for", ["a parameter server", "the chief"])
def test_who_lost_a_peer_ends_with_138(tmp_path, waits_for):
    cluster = {job: ["localhost:%d" % _unused_port()] for job in ("ps", "worker")}
    text = ";".join("%s=%s" % (job, tasks[0]) for job, tasks in cluster.items())
    is_chief = waits_for == "a parameter server"
    with _Served("--job", "ps", cluster=text) as served:
        with _Started(_program(tmp_path, _LOSES), json.dumps(cluster), "chief" if is_chief else "worker") as started:
            if is_chief:
                started.line_with("step 3")
                served.process.kill()
            code, _, err = started.end()
    assert code == 138, err
    assert "DeadlineExceededError" in err or "UnavailableError" in err


def _identities(workers, servers):
    addresses = {"worker": workers, "ps": servers}
    cluster = {job: {i: s.target[len("grpc://") :] for i, s in enumerate(made)} for job, made in addresses.items()}
    return {(job, i): Identity("flags", cluster, job, i) for job, made in addresses.items() for i in range(len(made))}


def _serving(server, me, **options):
    thread = threading.Thread(target=lambda: done.serve_until_done(server, me, **options), daemon=True)
    thread.start()
    return thread


def test_a_parameter_server_counts_tasks_and_not_calls():
    workers, servers = create_local_cluster(num_workers=2, num_ps=1)
    me = _identities(workers, servers)
    serving = _serving(servers[0], me["ps", 0])
    for _ in range(3):  # more often than there are tasks
        done.tell_done(workers[0], me["worker", 0])
    serving.join(timeout=1.5)
    assert serving.is_alive()
    done.tell_done(workers[1], me["worker", 1])
    serving.join(timeout=10)
    assert not serving.is_alive()


def test_nobody_waits_for_a_server_that_does_not_listen_or_is_not_there(caplog):
    workers, servers = create_local_cluster(num_workers=1, num_ps=2)
    me = _identities(workers, servers)
    servers[0].stop()
    began = time.monotonic()
    for _ in range(4):  # jobs one after another, on a server that never looks
        done.tell_done(workers[0], me["worker", 0], timeout=0.5)
    assert time.monotonic() - began < 10
    serving = _serving(servers[1], me["ps", 1])
    serving.join(timeout=10)
    assert not serving.is_alive()  # the second was told, though the first could not be


def test_a_parameter_server_that_has_forgotten_ends_when_nobody_is_there(monkeypatch):
    monkeypatch.setattr(done, "_PROBE_EVERY", 0.2)
    workers, servers = create_local_cluster(num_workers=2, num_ps=1)
    me = _identities(workers, servers)
    serving = _serving(servers[0], me["ps", 0], patience=4.0)
    workers[0].stop()  # it had told the server that was here before
    serving.join(timeout=6)
    assert serving.is_alive()  # one is still there
    workers[1].stop()
    serving.join(timeout=20)
    assert not serving.is_alive()


if __name__ == "__main__":
    sys.exit(pytest.main([os.path.abspath(__file__)]))
