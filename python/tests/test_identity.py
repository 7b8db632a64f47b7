# SPDX-License-Identifier: Apache-2.0
"""Who a process is: one row of the table for each way that a scheduler says it, and what it must not say."""

import json

import pytest

from millrace.launch import hosts, identity

_PS_AND_WORKERS = {"ps": {0: "a:1"}, "worker": {0: "b:2", 1: "c:3"}}
_TF_CONFIG = {"cluster": {"ps": ["a:1"], "worker": ["b:2", "c:3"]}, "task": {"type": "worker", "index": 1}}
_TORCHRUN = {"RANK": "2", "LOCAL_RANK": "2", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
_PET = {"PET_NNODES": "3", "PET_NODE_RANK": "1", "PET_NPROC_PER_NODE": "1", "PET_MASTER_ADDR": "job-node-0-0.job", "PET_MASTER_PORT": "29500"}
_SLURM = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_NTASKS": "4",
    "SLURM_STEP_NODELIST": "n[08-09]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_JOB_ID": "20007",
    "SLURMD_NODENAME": "n09",
}
_OMPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}

# row, environment, flags, source, job, task, cluster
_ROWS = [
    ("flags", {"TF_CONFIG": json.dumps(_TF_CONFIG)}, {"cluster": "ps=a:1;worker=b:2,c:3", "job": "ps", "task": 0}, "flags", "ps", 0, _PS_AND_WORKERS),
    ("flags as JSON", {}, {"cluster": '{"ps": ["a:1"]}', "task": 0}, "flags", "ps", 0, {"ps": {0: "a:1"}}),
    ("flags, IPv6", {}, {"cluster": "w=[::1]:5", "task": 0}, "flags", "w", 0, {"w": {0: "[::1]:5"}}),
    ("TF_CONFIG", {"TF_CONFIG": json.dumps(_TF_CONFIG), **_SLURM}, {}, "TF_CONFIG", "worker", 1, _PS_AND_WORKERS),
    ("TF_CONFIG, text as index", {"TF_CONFIG": json.dumps({**_TF_CONFIG, "task": {"type": "ps", "index": "0"}})}, {}, "TF_CONFIG", "ps", 0, _PS_AND_WORKERS),
    (
        "TF_CONFIG, evaluator",
        {"TF_CONFIG": json.dumps({**_TF_CONFIG, "task": {"type": "evaluator", "index": 0}})},
        {},
        "TF_CONFIG",
        "evaluator",
        0,
        _PS_AND_WORKERS,
    ),
    (
        "sparseCluster",
        {"TF_CONFIG": json.dumps({"sparseCluster": {"worker": {"3": "w:1"}, "ps": ["p:2"]}, "task": {"type": "worker", "index": 3}})},
        {},
        "TF_CONFIG",
        "worker",
        3,
        {"worker": {3: "w:1"}, "ps": {0: "p:2"}},
    ),
    ("TF_CONFIG without a cluster", {"TF_CONFIG": '{"model_dir": "x"}'}, {}, "nothing: one process", None, None, {}),
    ("RANK", _TORCHRUN, {}, "PET_*/RANK", "worker", 2, {"worker": {i: "127.0.0.1:%d" % (29501 + i) for i in range(3)}}),
    (
        "RANK with jobs",
        {**_TORCHRUN, "RANK": "0", "MILLRACE_JOBS": "ps=1,worker=2"},
        {},
        "PET_*/RANK",
        "ps",
        0,
        {"ps": {0: "127.0.0.1:29501"}, "worker": {0: "127.0.0.1:29502", 1: "127.0.0.1:29503"}},
    ),
    (
        "RANK on hosts",
        {**_TORCHRUN, "LOCAL_WORLD_SIZE": "1", "MILLRACE_HOSTS": "x,y,z", "MILLRACE_PORT": "7"},
        {},
        "PET_*/RANK",
        "worker",
        2,
        {"worker": {0: "x:7", 1: "y:7", 2: "z:7"}},
    ),
    (
        "RANK on pods",
        {**_TORCHRUN, "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "t-0.t"},
        {},
        "PET_*/RANK",
        "worker",
        2,
        {"worker": {0: "t-0.t:29501", 1: "t-0.t:29502", 2: "t-1.t:29501", 3: "t-1.t:29502"}},
    ),
    ("PET", _PET, {}, "PET_*/RANK", "worker", 1, {"worker": {i: "job-node-0-%d.job:29500" % i for i in range(3)}}),
    (
        "indexed Job",
        {"JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1", "MILLRACE_SUBDOMAIN": "svc", "MILLRACE_JOBS": "worker=2"},
        {},
        "JOB_COMPLETION_INDEX",
        "worker",
        1,
        {"worker": {0: "train-0.svc:2222", 1: "train-1.svc:2222"}},
    ),
    (
        "JobSet",
        {"JOB_COMPLETION_INDEX": "1", "MILLRACE_JOB": "ps", "MILLRACE_JOBS": "ps=2,worker=1", "MILLRACE_HOSTS": "t-{job}-0-{i}.t"},
        {},
        "JOB_COMPLETION_INDEX",
        "ps",
        1,
        {"ps": {0: "t-ps-0-0.t:2222", 1: "t-ps-0-1.t:2222"}, "worker": {0: "t-worker-0-0.t:2222"}},
    ),
    (
        "Job, numbers over jobs",
        {"JOB_COMPLETION_INDEX": "2", "MILLRACE_JOBS": "ps=1,worker=2", "MILLRACE_HOSTS": "t-[0-2].t"},
        {},
        "JOB_COMPLETION_INDEX",
        "worker",
        1,
        {"ps": {0: "t-0.t:2222"}, "worker": {0: "t-1.t:2222", 1: "t-2.t:2222"}},
    ),
    ("Slurm", _SLURM, {}, "SLURM_*", "worker", 3, {"worker": {0: "n08:12007", 1: "n08:12008", 2: "n09:12007", 3: "n09:12008"}}),
    (
        "Slurm with jobs",
        {**_SLURM, "MILLRACE_JOBS": "ps=1,worker=3"},
        {},
        "SLURM_*",
        "worker",
        2,
        {"ps": {0: "n08:12007"}, "worker": {0: "n08:12008", 1: "n09:12007", 2: "n09:12008"}},
    ),
    (
        "Slurm with other names",
        {**_SLURM, "MILLRACE_HOSTS": "n[08-09].ib"},
        {},
        "SLURM_*",
        "worker",
        3,
        {"worker": {0: "n08.ib:12007", 1: "n08.ib:12008", 2: "n09.ib:12007", 3: "n09.ib:12008"}},
    ),
    ("Open MPI below Slurm", {**_SLURM, **_OMPI}, {}, "OMPI_*/PMI_*", "worker", 1, {"worker": {i: "localhost:%d" % (12000 + i) for i in range(3)}}),
    ("Open MPI", _OMPI, {}, "OMPI_*/PMI_*", "worker", 1, {"worker": {i: "localhost:%d" % (12000 + i) for i in range(3)}}),
    (
        "Hydra",
        {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2", "MILLRACE_PORT": "5"},
        {},
        "OMPI_*/PMI_*",
        "worker",
        0,
        {"worker": {0: "localhost:5", 1: "localhost:6"}},
    ),
    ("one process of MPI", {"PMI_RANK": "0", "PMI_SIZE": "1"}, {}, "OMPI_*/PMI_*", "worker", 0, {"worker": {0: "localhost:12000"}}),
    ("nothing", {"PATH": "/bin"}, {}, "nothing: one process", None, None, {}),
]


@pytest.mark.parametrize("row, environ, flags, source, job, task, cluster", _ROWS, ids=[r[0] for r in _ROWS])
def test_each_row(row, environ, flags, source, job, task, cluster):
    me = identity.who_am_i(environ=environ, **flags)
    assert (me.source, me.job, me.task, me.cluster) == (source, job, task, cluster)
    assert me.is_alone == (not cluster)
    again = identity.who_am_i(environ={"TF_CONFIG": me.tf_config()})  # what is handed on means the same
    assert (again.job, again.task, again.cluster) == (job, task, cluster)


_BAD = [
    ({}, {"cluster": ""}, "no tasks"),
    ({}, {"cluster": "a=b:1;c=d:2"}, "--job: a, c"),
    ({}, {"cluster": "a=b:1"}, "--task"),
    ({}, {"task": 1}, "--cluster"),
    ({}, {"job": "ps"}, "--job ps"),
    ({}, {"cluster": "a=b:1", "task": 1}, "job a has no task 1"),
    ({}, {"cluster": "a=b:1", "job": "c", "task": 0}, "no job c"),
    ({}, {"cluster": "a=b", "task": 0}, "'b', want host:port"),
    ({}, {"cluster": "a=b:70000", "task": 0}, "want host:port"),
    ({}, {"cluster": "a=b:1;a=c:2", "task": 0}, "each job once"),
    ({}, {"cluster": "1=b:1", "task": 0}, "want a letter"),
    ({}, {"cluster": "{", "task": 0}, "no JSON"),
    ({"TF_CONFIG": "{"}, {}, "TF_CONFIG is no JSON"),
    ({"TF_CONFIG": "[" * 100000}, {}, "TF_CONFIG is no JSON"),
    ({"TF_CONFIG": "[]"}, {}, "JSON object"),
    ({"TF_CONFIG": '{"cluster": 3}'}, {}, "cluster is 3"),
    ({"TF_CONFIG": '{"cluster": {"ps": ["a:1"]}}'}, {}, "its task is null"),
    ({"TF_CONFIG": '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": -1}}'}, {}, "index is -1"),
    ({"TF_CONFIG": '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": true}}'}, {}, "index is True"),
    ({"TF_CONFIG": '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 1}}'}, {}, "no task 1, it has 0"),
    ({"TF_CONFIG": '{"cluster": {"ps": "a:1"}, "task": {"type": "ps", "index": 0}}'}, {}, "list of addresses"),
    ({"TF_CONFIG": '{"sparseCluster": {"ps": {"x": "a:1"}}, "task": {"type": "ps", "index": 0}}'}, {}, "'x'"),
    ({**_TORCHRUN, "RANK": "x"}, {}, "RANK is 'x'"),
    ({**_TORCHRUN, "WORLD_SIZE": "0"}, {}, "WORLD_SIZE is '0'"),
    ({**_TORCHRUN, "RANK": "3"}, {}, "is 3 of 3"),
    ({**_TORCHRUN, "LOCAL_WORLD_SIZE": "1"}, {}, "MILLRACE_HOSTS"),
    ({**_TORCHRUN, "MILLRACE_JOBS": "ps=1"}, {}, "1 tasks, but the scheduler has started 3"),
    ({**_TORCHRUN, "MILLRACE_JOBS": "ps"}, {}, "MILLRACE_JOBS is 'ps'"),
    ({**_TORCHRUN, "MILLRACE_JOBS": "a=1,a=2"}, {}, "each job once"),
    ({**_TORCHRUN, "MILLRACE_HOSTS": "a,b"}, {}, "2 hosts"),
    ({**_TORCHRUN, "MILLRACE_HOSTS": "{x}{i}"}, {}, "pattern with"),
    ({**_TORCHRUN, "MILLRACE_PORT": "0"}, {}, "MILLRACE_PORT"),
    ({**_TORCHRUN, "RANK": "2"}, {"job": "ps"}, "task 2 of job worker"),
    ({**_PET, "PET_NODE_RANK": "3"}, {}, "3 of 3"),
    ({**_PET, "PET_NNODES": "1:3"}, {}, "PET_NNODES is '1:3'"),
    ({**_PET, "PET_NPROC_PER_NODE": "4"}, {}, "RANK is not set"),
    ({**_PET, "PET_MASTER_ADDR": "host"}, {}, "MILLRACE_HOSTS"),
    ({"JOB_COMPLETION_INDEX": "1"}, {}, "Set MILLRACE_JOBS"),
    ({"JOB_COMPLETION_INDEX": "", "MILLRACE_JOBS": "a=1"}, {}, "JOB_COMPLETION_INDEX is ''"),
    ({"JOB_COMPLETION_INDEX": "0", "MILLRACE_JOBS": "a=2", "HOSTNAME": "x"}, {}, "where are the others"),
    ({"JOB_COMPLETION_INDEX": "2", "MILLRACE_JOBS": "a=2", "MILLRACE_HOSTS": "x-{i}"}, {}, "no task 2"),
    ({"JOB_COMPLETION_INDEX": "0", "MILLRACE_JOBS": "a=1", "MILLRACE_JOB": "b", "MILLRACE_HOSTS": "x-{i}"}, {}, "of job b"),
    ({**_SLURM, "SLURM_STEP_NODELIST": "n[1-"}, {}, "brackets do not match"),
    ({**_SLURM, "SLURM_STEP_TASKS_PER_NODE": "2(y2)"}, {}, "want such as"),
    ({**_SLURM, "SLURM_STEP_TASKS_PER_NODE": "3,2"}, {}, "does not fit"),
    ({**_SLURM, "SLURMD_NODENAME": "n08"}, {}, "--distribution=block"),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, {}, "SLURM_STEP_NODELIST is not set"),
    ({**_SLURM, "SLURM_PROCID": "4", "SLURMD_NODENAME": "n09"}, {}, "is 4 of 4"),
    ({**_OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, {}, "1 of 3 processes"),
    ({**_OMPI, "OMPI_COMM_WORLD_RANK": "9"}, {}, "9 of 3"),
    ({"PMI_RANK": "0"}, {}, "PMI_SIZE is not set"),
]


@pytest.mark.parametrize("environ, flags, told", _BAD)
def test_what_makes_no_sense_is_told(environ, flags, told):
    with pytest.raises(ValueError) as caught:
        identity.who_am_i(environ=environ, **flags)
    assert told in str(caught.value) and len(str(caught.value)) < 1000


def test_a_hostfile_says_where_slots_are(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("# a comment\nx slots=2\ny:1\n\nz\n")
    assert hosts.read_hostfile(str(path)) == ["x", "x", "y", "z"]
    environ = {**_OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "MILLRACE_HOSTFILE": str(path)}
    assert identity.who_am_i(environ=environ).cluster == {"worker": {0: "x:12000", 1: "x:12001", 2: "y:12000"}}
    for text in ("", "x slots=a", "x slots=1 slots=2", "x:y"):
        path.write_text(text)
        with pytest.raises(ValueError, match="host"):
            hosts.read_hostfile(str(path))


@pytest.mark.parametrize(
    "text, want",
    [
        ("n1", ["n1"]),
        ("n1,n2", ["n1", "n2"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[08-10,2]x", ["n08x", "n09x", "n10x", "n2x"]),
        ("a[1-2]b[1-2],c", ["a1b1", "a1b2", "a2b1", "a2b2", "c"]),
        ("gpu-[001]", ["gpu-001"]),
        (" a , b ", ["a", "b"]),
    ],
)
def test_nodelists(text, want):
    assert hosts.expand_nodelist(text) == want


@pytest.mark.parametrize(
    "text", ["", ",", "n[", "n]", "n[1", "n[[1]]", "n[a]", "n[1-]", "n[3-1]", "n[1-99999999999]", "a[0-999]b[0-999]", "n[" + "9" * 30 + "]"]
)
def test_bad_nodelists(text):
    with pytest.raises(ValueError, match="node list"):
        hosts.expand_nodelist(text)


def test_counts():
    assert hosts.expand_counts("2(x3),1") == [2, 2, 2, 1]
    for text in ("", "x", "2(x)", "1,,2", "1(x9999999)"):
        with pytest.raises(ValueError, match="tasks per node"):
            hosts.expand_counts(text)


def test_the_doctor_tells_who_a_process_is(monkeypatch, capsys):
    from millrace import cli

    monkeypatch.setenv("TF_CONFIG", json.dumps(_TF_CONFIG))
    assert cli.main(["doctor", "--cluster"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("/job:worker/task:1, says TF_CONFIG") and told.count("this process") == 1
    assert cli.main(["doctor", "--cluster", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["source"] == "TF_CONFIG" and facts["address"] == "c:3"
    monkeypatch.setenv("TF_CONFIG", "")
    assert cli.main(["doctor", "--cluster"]) == 0 and "one process" in capsys.readouterr().out
    monkeypatch.setenv("TF_CONFIG", "{")
    assert cli.main(["doctor", "--cluster"]) == 2 and "TF_CONFIG is no JSON" in capsys.readouterr().err
    assert cli.main(["serve"]) == 2 and "TF_CONFIG is no JSON" in capsys.readouterr().err
    monkeypatch.setenv("TF_CONFIG", "")
    assert cli.main(["serve"]) == 2 and "which tasks" in capsys.readouterr().err
