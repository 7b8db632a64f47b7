# SPDX-License-Identifier: Apache-2.0
"""Clusters of processes on this host: `millrace launch`, `millrace top`, signals of training programs, and engines where they are installed."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

import millrace as tf
from test_serve import _environ, _run, _Served, needs_grpc

_EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "cluster")
_TRAIN = os.path.join(_EXAMPLE, "train.py")


def _program(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(text)
    return str(path)


def _launch(*arguments, **kwargs):
    return _run("-m", "millrace", "launch", *arguments, timeout=240, **kwargs)


def _alive(marker):
    """Processes whose environment or command line has the marker."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if marker.encode() in open(path, "rb").read():
                with open(path.replace("environ", "stat")) as file:
                    if file.read().rpartition(")")[2].split()[0] != "Z":
                        found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return [p for p in found if p != os.getpid()]


def _until(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


@needs_grpc
def test_two_parameter_servers_and_three_workers(tmp_path):
    done = _launch("-n", "3", "--ps", "2", _TRAIN, "--steps", "200", "--logdir", str(tmp_path / "line"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {int(m) for m in re.findall(r"^\[worker/(\d)\] task \1 of worker", done.stdout, re.M)} == {0, 1, 2}
    assert "all tasks are done" in done.stderr and re.search(r"`millrace top 127\.0\.0\.1:\d+`", done.stderr)
    again = _launch("-n", "1", _TRAIN, "--steps", "205", "--logdir", str(tmp_path / "line"))  # from the checkpoint, on another cluster
    loss = re.search(r"loss (\S+) at step 20\d\b", again.stdout)
    assert again.returncode == 0 and loss and float(loss.group(1)) < 1e-6, again.stdout + again.stderr


@needs_grpc
def test_parameter_servers_may_be_those_of_the_launcher():
    text = "import os, json, time; t = json.loads(os.environ['TF_CONFIG']); assert t['task']['type'] == 'worker'; print('done')"
    done = _launch("-n", "2", "--ps", "1", "--serve-ps", "--", sys.executable, "-c", text, environ=_environ(MILLRACE_DRAIN_SECONDS=5))
    assert done.returncode == 0 and done.stdout.count("done\n") == 2, done.stdout + done.stderr


def test_the_first_failure_ends_all(tmp_path):
    marker = "MARK=%s" % tmp_path
    program = _program(
        tmp_path,
        """
import json, os, subprocess, sys, time
task = json.loads(os.environ["TF_CONFIG"])["task"]
print("there", end="", flush=True)
if task["index"] == 1:
    time.sleep(0.5)
    sys.exit(7)
subprocess.Popen(["sleep", "600"])
time.sleep(600)
""",
    )
    began = time.monotonic()
    done = _launch("-n", "3", program, environ=_environ(MARK=tmp_path))
    assert done.returncode == 7 and "/job:worker/task:1 ended with exit status 7" in done.stderr
    assert done.stdout.count("] there\n") == 3 and time.monotonic() - began < 30
    assert _until(lambda: not _alive(marker)), "left behind"
    done = _launch("-n", "1", "--", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 128 + signal.SIGSEGV


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nobody_is_left_when_the_launcher_goes(tmp_path, number):
    program = _program(tmp_path, "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\nprint('there', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "millrace", "launch", "-n", "2", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environ(MARK=tmp_path)
    )
    assert process.stdout.readline() + process.stdout.readline()
    process.send_signal(number)
    code = process.wait(timeout=60)
    assert code == (-9 if number == signal.SIGKILL else 128 + number)
    assert _until(lambda: not _alive("MARK=%s" % tmp_path)), "left behind"
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize(
    "arguments, told", [(["-n", "0", "x.py"], "want 1 to 1000"), (["-n", "1"], "which program"), (["-n", "1", "/nowhere/x.py"], "no such file")]
)
def test_bad_command_lines(arguments, told):
    done = _launch(*arguments)
    assert done.returncode == 2 and told in done.stderr


_TRAINING = """
import sys, time
import millrace as tf
step = tf.train.get_or_create_global_step()
train = tf.assign_add(step, 1)
folder, kind = sys.argv[1:]
if kind == "monitored":
    with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, save_checkpoint_secs=100000) as s:
        while not s.should_stop():
            print(s.run(train), flush=True)
            time.sleep(0.02)
else:
    sv = tf.train.Supervisor(logdir=folder, save_model_secs=100000)
    with sv.managed_session() as s:
        while not sv.should_stop():
            print(s.run(train), flush=True)
            time.sleep(0.02)
print("the end")
"""


@pytest.mark.parametrize("kind", ["monitored", "supervised"])
def test_signals_of_training_programs(tmp_path, kind):
    program, folder = _program(tmp_path, _TRAINING), str(tmp_path / "logs")
    process = subprocess.Popen([sys.executable, program, folder, kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environ())
    for _ in range(5):
        assert process.stdout.readline(), process.stderr.read()
    before = tf.train.latest_checkpoint(folder) if os.path.isdir(folder) else None
    process.send_signal(signal.SIGUSR1)
    assert _until(lambda: tf.train.latest_checkpoint(folder) not in (None, before)), "SIGUSR1 saved nothing"
    saved = tf.train.latest_checkpoint(folder)
    told = process.stdout.readline()
    assert told and process.poll() is None
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    out = told + out
    assert process.returncode == 143, err
    assert "the end" not in out
    last = tf.train.latest_checkpoint(folder)
    assert last != saved
    value = int(tf.train.load_checkpoint(folder).get_tensor("global_step"))
    if kind == "monitored":
        assert value == int([line for line in out.split() if line.isdigit()][-1]) or value == int(out.split()[-1]) + 1


def test_signals_are_given_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)) as session:
            session.run(step)
            assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGUSR1)) == before


@needs_grpc
def test_parameter_servers_end_when_workers_are_done(tmp_path):
    program = _program(
        tmp_path,
        """
import millrace as tf
from millrace.launch import done, who_am_i
me = who_am_i()
server = tf.train.Server(me.jobs(), job_name=me.job, task_index=me.task)
if me.job == "ps":
    done.serve_until_done(server, me)
    print("ended")
else:
    done.tell_done(server, me)
    if me.task == 0:  # the launcher ends parameter servers when workers have ended: this one waits until they have
        import time
        time.sleep(8)
""",
    )
    finished = _launch("-n", "2", "--ps", "2", program)
    assert finished.returncode == 0 and sorted(finished.stdout.split("\n")) == ["", "[ps/0] ended", "[ps/1] ended"], finished.stdout + finished.stderr


@needs_grpc
def test_top_tells_what_tasks_do():
    with _Served() as served:
        with tf.Graph().as_default(), tf.Session(served.target) as session:
            x = tf.constant(1.0)
            for _ in range(3):
                session.run(x)
            done = _run("-m", "millrace", "top", served.target, "--once", "--interval", "0.3")
            assert done.returncode == 0 and re.search(r"^/job:ps/task:0 +up +\d+ +0\.0", done.stdout, re.M), done.stdout + done.stderr
        facts = json.loads(_run("-m", "millrace", "top", served.target, "--once", "--interval", "0.3", "--json").stdout)
        assert facts["tasks"][0]["task"] == "/job:ps/task:0" and facts["tasks"][0]["failed_steps"] == 0
        cluster = "ps=%s;worker=localhost:1" % served.target[len("grpc://") :]
        done = _run("-m", "millrace", "top", "--cluster", cluster, "--job", "ps", "--once", "--interval", "0.3")
        assert done.returncode == 1 and re.search(r"^/job:worker/task:0 +down +\S.*[^\d\s]$", done.stdout, re.M), done.stdout + done.stderr
        assert " At " not in done.stdout and "thread.py" not in done.stdout
    assert _run("-m", "millrace", "top").returncode == 2
    assert _run("-m", "millrace", "top", "localhost:1", "--once").returncode == 2


def test_the_status_of_a_server_in_this_process():
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        session.run(tf.constant(1))
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.check_numerics(tf.constant(float("nan")), "it"))
        status = server.status()
        assert status["steps"] == 1 and status["failed_steps"] == 1 and status["task"] == "/job:local/replica:0/task:0" and status["sessions"] == 1
    server.stop()


@needs_grpc
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="skipped: Open MPI is not installed")
def test_open_mpi(tmp_path):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    done = subprocess.run(
        ["mpirun", *root, "--oversubscribe", "-n", "4", "-x", "MILLRACE_JOBS", sys.executable, _TRAIN, "--steps", "100", "--logdir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        env=_environ(MILLRACE_JOBS="ps=1,worker=3"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("of worker") == 3


@needs_grpc
@pytest.mark.skipif(
    shutil.which("srun") is None or shutil.which("sinfo") is None or subprocess.run(["sinfo"], capture_output=True).returncode != 0,
    reason="skipped: no Slurm runs here",
)
def test_slurm(tmp_path):
    done = subprocess.run(
        ["srun", "--ntasks=4", "--overcommit", "--kill-on-bad-exit=1", sys.executable, _TRAIN, "--steps", "100", "--logdir", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
        env=_environ(MILLRACE_JOBS="ps=1,worker=3", MILLRACE_HOSTS="localhost"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("of worker") == 3


def _ray_train(folder, dies):
    """What a worker of Ray does: a step a call, once with a death in it."""
    import millrace as tf
    from millrace.launch import who_am_i

    me = who_am_i()
    server = tf.train.Server(me.jobs(), job_name=me.job, task_index=me.task)
    if dies and me.task == 1 and not os.path.exists(os.path.join(folder, "died")):
        open(os.path.join(folder, "died"), "w").close()
        os._exit(9)
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        count = tf.Variable(0, name="count")
        with tf.Session(server.target, config=tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % me.task])) as session:
            if me.task == 0:
                session.run(count.initializer)
            while session.run(tf.report_uninitialized_variables()).size:
                time.sleep(0.05)
            session.run(tf.assign_add(count, 1))
    return me.task, me.source


@needs_grpc
@pytest.mark.parametrize("dies", [False, True])
def test_ray(tmp_path, dies):
    ray = pytest.importorskip("ray", reason="skipped: the package ray is not installed")
    from millrace.launch import ray as on_ray

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors do not find tests
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    try:
        assert on_ray.run(_ray_train, workers=2, ps=1, args=(str(tmp_path), dies)) == [(0, "TF_CONFIG"), (1, "TF_CONFIG")]
        with pytest.raises(RuntimeError, match=r"started 1 times.*worker/task:\d died"):
            on_ray.run(os._exit, workers=1, args=(3,), max_restarts=0)
    finally:
        ray.shutdown()
