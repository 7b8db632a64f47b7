# SPDX-License-Identifier: Apache-2.0
"""Which task of which cluster this process is, as flags or the environment of a scheduler say.

The first row of _ROWS that finds something answers. What it finds and cannot be is a ValueError that names the variable,
what it holds, and what is wanted: a task never guesses.

Where a scheduler numbers processes and knows no jobs, MILLRACE_JOBS ("ps=2,worker=3") shares the numbers out in its
order; without it all are workers. Where it does not say on which hosts the others are, MILLRACE_HOSTS does: a list with
commas, or a pattern with {job} and {i}; MILLRACE_PORT is the first port of a host.
"""

from __future__ import annotations

import json
import os
import re
import socket
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from millrace import settings
from millrace.launch import hosts as _hosts

Jobs = Dict[str, Dict[int, str]]  # addresses by job and task
Environment = Mapping[str, str]


class Identity(NamedTuple):
    """Who a process is. One that is alone has no cluster, job or task."""

    source: str  # what said so: "flags", "TF_CONFIG", "SLURM_*", ...
    cluster: Jobs
    job: Optional[str]
    task: Optional[int]

    @property
    def is_alone(self) -> bool:
        """Whether there is no cluster."""
        return not self.cluster

    @property
    def address(self) -> Optional[str]:
        """Where the others reach this task; None for an evaluator, which nobody calls."""
        return self.cluster.get(self.job or "", {}).get(-1 if self.task is None else self.task)

    def jobs(self) -> Dict[str, Any]:
        """The cluster as ClusterSpec takes it: lists, or dicts where tasks are left out."""
        return {job: [tasks[i] for i in range(len(tasks))] if sorted(tasks) == list(range(len(tasks))) else dict(tasks) for job, tasks in self.cluster.items()}

    def tf_config(self) -> str:
        """The same as TF_CONFIG says it."""
        if self.is_alone:
            return "{}"
        jobs = self.jobs()
        is_whole = all(isinstance(tasks, list) for tasks in jobs.values())
        return json.dumps({"cluster" if is_whole else "sparseCluster": jobs, "task": {"type": self.job, "index": self.task}})


def who_am_i(cluster: Any = None, job: Optional[str] = None, task: Optional[int] = None, environ: Optional[Environment] = None) -> Identity:
    """Who this process is; the arguments are its flags. ValueError where what is said makes no sense."""
    environment = os.environ if environ is None else environ
    if cluster is None and task is not None:
        raise ValueError("--task %s is given without --cluster" % task)
    if cluster is not None:
        return _of_flags(cluster, job, task)
    for source, look in _ROWS:
        found = look(environment, job)
        if found is not None:
            return Identity(source, *found)
    if job is not None:
        raise ValueError("--job %s is given, but neither --cluster nor the environment says which tasks there are" % job)
    return Identity("nothing: one process", {}, None, None)


_Found = Optional[Tuple[Jobs, str, int]]


# What people and TF_CONFIG write.


def parse_cluster(text: str) -> Dict[str, Any]:
    """ "ps=host:port;worker=host:port,host:port" or the same as JSON."""
    if text.lstrip().startswith("{"):
        jobs = _json(text, "--cluster")
    else:
        jobs = {}
        for part in filter(None, (p.strip() for p in text.split(";"))):
            name, equals, addresses = part.partition("=")
            if not equals or name.strip() in jobs:
                raise ValueError("--cluster has '%s', want each job once, as job=host:port,host:port" % part[:200])
            jobs[name.strip()] = [a.strip() for a in addresses.split(",") if a.strip()]
    if not jobs or not all(jobs.values()):
        raise ValueError("--cluster has no tasks, want such as ps=host:port;worker=host:port,host:port")
    return dict(jobs)


def _of_flags(cluster: Any, job: Optional[str], task: Optional[int]) -> Identity:
    jobs = _checked(parse_cluster(cluster) if isinstance(cluster, str) else cluster, "--cluster")
    if job is None:
        if len(jobs) > 1:
            raise ValueError("which job is this? Give --job: %s" % ", ".join(sorted(jobs)))
        job = next(iter(jobs))
    if task is None:
        raise ValueError("which task of job %s is this? Give --task" % job)
    return Identity("flags", jobs, *_known(jobs, job, task, "--job and --task"))


def _of_tf_config(environ: Environment, job: Optional[str]) -> _Found:
    text = environ.get("TF_CONFIG", "")
    if not text.strip():
        return None
    told = _json(text, "TF_CONFIG")
    jobs = dict(_dict(told, "cluster"))
    for name, tasks in _dict(told, "sparseCluster").items():  # each task knows its own address, and those of parameter servers
        jobs[name] = tasks
    if not jobs:
        return None  # it says other things, as to estimators
    checked = _checked(jobs, "TF_CONFIG")
    task = _dict(told, "task")
    kind, index = job or task.get("type"), task.get("index")
    if not isinstance(kind, str) or index is None:
        raise ValueError('TF_CONFIG has a cluster, but its task is %s, want {"type": job, "index": number}' % json.dumps(told.get("task"))[:200])
    return (checked, *_known(checked, kind, _index(index, "TF_CONFIG's task index"), "TF_CONFIG"))


def _dict(told: Dict[str, Any], key: str) -> Dict[str, Any]:
    value = told.get(key) or {}
    if not isinstance(value, dict):
        raise ValueError("TF_CONFIG's %s is %s, want a JSON object" % (key, json.dumps(value)[:200]))
    return value


def _json(text: str, where: str) -> Dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("%s is no JSON: %s" % (where, error)) from None
    if not isinstance(value, dict):
        raise ValueError("%s must be a JSON object, got %s" % (where, text[:200]))
    return value


def _index(value: Any, what: str) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,9}", str(value)):
        raise ValueError("%s is %r, want a number from 0 on" % (what, value))
    return int(value)


def _checked(jobs: Any, where: str) -> Jobs:
    """The tasks of each job by number, their addresses well formed."""
    made: Jobs = {}
    for job, tasks in dict(jobs).items():
        if not isinstance(job, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", job):
            raise ValueError("%s has a job %r, want a letter, then letters, digits and '_'" % (where, job))
        if isinstance(tasks, dict):
            made[job] = {_index(i, "a task of job %s in %s" % (job, where)): a for i, a in tasks.items()}
        elif isinstance(tasks, (list, tuple)):
            made[job] = dict(enumerate(tasks))
        else:
            raise ValueError("%s gives job %s %r, want a list of addresses" % (where, job, tasks))
        for i, address in made[job].items():
            if not isinstance(address, str) or not _is_address(address):
                raise ValueError("%s gives task %d of job %s the address %r, want host:port" % (where, i, job, address))
    if not any(made.values()):
        raise ValueError("%s has no tasks" % where)
    return made


def _is_address(text: str) -> bool:
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\],]+):(\d{1,5})", text)
    return bool(found) and int(found.group(2)) <= 65535  # type: ignore[union-attr]


def _known(jobs: Jobs, job: str, task: int, where: str) -> Tuple[str, int]:
    if job == "evaluator" and job not in jobs:
        return job, task  # which is in no cluster
    if job not in jobs:
        raise ValueError("%s: there is no job %s, only %s" % (where, job, ", ".join(sorted(jobs))))
    if task not in jobs[job]:
        raise ValueError("%s: job %s has no task %d, it has %s" % (where, job, task, ", ".join(map(str, sorted(jobs[job])))))
    return job, task


# What schedulers say: a number of so many.


class _Ranks(NamedTuple):
    rank: int
    hosts: List[str]  # of each number
    port: int  # the first one of each host
    is_of_job: bool = False  # the number is within the job


def _number(environ: Environment, *names: str, least: int = 0, most: int = 10**6, otherwise: Optional[int] = None) -> int:
    """What the first of these variables that is set holds."""
    for name in names:
        text = environ.get(name)
        if text is None:
            continue
        if not re.fullmatch(r"\d{1,18}", text.strip()) or not least <= int(text) <= most:
            raise ValueError("%s is '%s', want a number from %d to %d" % (name, text[:100], least, most))
        return int(text)
    if otherwise is None:
        raise ValueError("%s is not set, want a number from %d on" % (" or ".join(names), least))
    return otherwise


def _jobs_of(environ: Environment, size: Optional[int]) -> Dict[str, int]:
    text = settings.text("MILLRACE_JOBS", environ)
    if not text.strip():
        if size is None:
            raise ValueError("how many tasks are there? Set MILLRACE_JOBS, such as ps=2,worker=3")
        return {"worker": size}
    jobs: Dict[str, int] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([A-Za-z][A-Za-z0-9_]*)=(\d{1,6})\s*", part)
        if not found or found.group(1) in jobs:
            raise ValueError("MILLRACE_JOBS is '%s', want each job once with its number of tasks, such as ps=2,worker=3" % text[:200])
        jobs[found.group(1)] = int(found.group(2))
    if size is not None and sum(jobs.values()) != size:
        raise ValueError("MILLRACE_JOBS is '%s', %d tasks, but the scheduler has started %d" % (text[:200], sum(jobs.values()), size))
    return jobs


def _spread(environ: Environment, jobs: Dict[str, int], ranks: _Ranks, where: str, job: Optional[str] = None) -> Tuple[Jobs, str, int]:
    """Numbers shared out over jobs, in their order; tasks of one host have ports one after another."""
    port = settings.number("MILLRACE_PORT", ranks.port, environ)
    names = [(j, i) for j, count in jobs.items() for i in range(count)]
    if len(names) != len(ranks.hosts):
        raise ValueError("%s: there are %d tasks, but %d hosts or slots for them" % (where, len(names), len(ranks.hosts)))
    taken: Dict[str, int] = {}
    made: Jobs = {}
    for (j, i), host in zip(names, ranks.hosts):
        taken[host] = taken.get(host, -1) + 1
        made.setdefault(j, {})[i] = "%s:%d" % ("[%s]" % host if ":" in host and host[0] != "[" else host, port + taken[host])
    if ranks.is_of_job:
        own = job or next(iter(jobs))
        return (_checked(made, where), *_known(made, own, ranks.rank, where))
    if ranks.rank >= len(names):
        raise ValueError("%s: the number of this process is %d of %d" % (where, ranks.rank, len(names)))
    if job is not None and names[ranks.rank][0] != job:
        raise ValueError("--job is %s, but %s makes this process task %d of job %s" % (job, where, names[ranks.rank][1], names[ranks.rank][0]))
    return (_checked(made, where), *names[ranks.rank])


def _given_hosts(environ: Environment, jobs: Dict[str, int]) -> Optional[List[str]]:
    """What MILLRACE_HOSTS says: a host for each task."""
    text = settings.text("MILLRACE_HOSTS", environ).strip()
    total = sum(jobs.values())
    if not text:
        return None
    if "{" in text:
        if not set(re.findall(r"\{([^}]*)\}", text)) <= {"job", "i"} or "{i}" not in text:
            raise ValueError("MILLRACE_HOSTS is '%s', want a pattern with {i} and perhaps {job}, such as train-{job}-0-{i}.train" % text[:200])
        return [text.replace("{job}", job.replace("_", "-")).replace("{i}", str(i)) for job, count in jobs.items() for i in range(count)]
    given = _hosts.expand_nodelist(text)
    if total % len(given):
        raise ValueError("MILLRACE_HOSTS names %d hosts, which do not share %d tasks evenly" % (len(given), total))
    return [h for h in given for _ in range(total // len(given))]


def _one_host(size: int, local: int, host: str, where: str) -> List[str]:
    if local != size:
        raise ValueError(
            "%s: %d of %d processes are on this host, and it does not say where the others are. Set MILLRACE_HOSTS, a list such as n[1-4], "
            "or a pattern such as train-{i}.svc" % (where, local, size)
        )
    return [host] * size


def _numbered(host: str, size: int, rank: int) -> Optional[List[str]]:
    """job-node-0-2.job for each number, when the first label ends in a number that is `rank`."""
    found = re.fullmatch(r"([^.]*-)(\d+)((?:\..*)?)", host)
    if not found or int(found.group(2)) != rank:
        return None
    return ["%s%d%s" % (found.group(1), i, found.group(3)) for i in range(size)]


def _of_torchrun(environ: Environment, job: Optional[str]) -> _Found:
    """PET_*: a process a node, as an operator sets it; RANK: a process of an agent."""
    if "PET_NODE_RANK" in environ or "PET_NNODES" in environ:
        nodes = _number(environ, "PET_NNODES", least=1)
        rank = _number(environ, "PET_NODE_RANK")
        per_node = environ.get("PET_NPROC_PER_NODE", "1")
        if "RANK" not in environ and per_node not in ("1", "auto", "cpu", "gpu"):
            raise ValueError("PET_NPROC_PER_NODE is '%s', but nobody has started further processes: RANK is not set" % per_node[:100])
        if "RANK" not in environ:
            master, port = environ.get("PET_MASTER_ADDR", ""), _number(environ, "PET_MASTER_PORT", least=1, most=65535, otherwise=29500)
            jobs = _jobs_of(environ, nodes)
            placed = _given_hosts(environ, jobs) or _numbered(master, nodes, 0) or _one_host(nodes, 1, master or "localhost", "PET_*")
            return _spread(environ, jobs, _Ranks(rank, placed, port), "PET_*", job)
    if "RANK" not in environ or "WORLD_SIZE" not in environ:
        return None
    size, rank = _number(environ, "WORLD_SIZE", least=1), _number(environ, "RANK")
    local = _number(environ, "LOCAL_WORLD_SIZE", least=1, otherwise=1)
    master = environ.get("MASTER_ADDR", "") or "localhost"
    port = _number(environ, "MASTER_PORT", least=1, most=65000, otherwise=29500) + 1  # that one is the agent's
    jobs = _jobs_of(environ, size)
    known = _given_hosts(environ, jobs)
    if known is None and local < size and size % local == 0:
        nodes_known = _numbered(master, size // local, 0)
        known = [h for h in nodes_known for _ in range(local)] if nodes_known else None
    return _spread(environ, jobs, _Ranks(rank, known or _one_host(size, local, master, "RANK"), port), "RANK", job)


def _of_indexed_job(environ: Environment, job: Optional[str]) -> _Found:
    """An indexed Job of Kubernetes, alone or in a JobSet; its pods are JOB-INDEX."""
    if "JOB_COMPLETION_INDEX" not in environ:
        return None
    where = "JOB_COMPLETION_INDEX"
    rank = _number(environ, where)
    own = job or settings.text("MILLRACE_JOB", environ) or environ.get("REPLICATED_JOB_NAME")
    jobs = _jobs_of(environ, None)
    if own is None and len(jobs) > 1:
        own_host = None
    else:
        own_host = environ.get("HOSTNAME") or socket.gethostname()
    known = _given_hosts(environ, jobs)
    if known is None and own_host is not None and len(jobs) == 1:
        subdomain = settings.text("MILLRACE_SUBDOMAIN", environ)
        known = _numbered(own_host + ("." + subdomain if subdomain and "." not in own_host else ""), sum(jobs.values()), rank)
    if known is None:
        raise ValueError("JOB_COMPLETION_INDEX is %d, but where are the others? Set MILLRACE_HOSTS, a pattern such as train-{job}-0-{i}.train" % rank)
    if own is not None and own not in jobs:
        raise ValueError("this pod is of job %s, but MILLRACE_JOBS has only %s" % (own, ", ".join(jobs)))
    return _spread(environ, jobs, _Ranks(rank, known, 2222, is_of_job=own is not None or len(jobs) == 1), where, own)


def _of_slurm(environ: Environment, job: Optional[str]) -> _Found:
    """A step of srun. (Below mpirun these are the launcher's own.)"""
    if "SLURM_PROCID" not in environ or "OMPI_COMM_WORLD_RANK" in environ or "PMI_RANK" in environ and "SLURM_STEP_NODELIST" not in environ:
        return None
    rank, size = _number(environ, "SLURM_PROCID"), _number(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS", least=1)
    nodes_text = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_NODELIST") or environ.get("SLURM_JOB_NODELIST")
    if not nodes_text:
        raise ValueError("SLURM_PROCID is %d, but SLURM_STEP_NODELIST is not set" % rank)
    try:
        nodes = _hosts.expand_nodelist(nodes_text)
        counts_text = environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get("SLURM_TASKS_PER_NODE")
        counts = _hosts.expand_counts(counts_text) if counts_text else [size // len(nodes)] * len(nodes)
    except ValueError as error:
        raise ValueError("SLURM_*: %s" % error) from None
    if len(counts) != len(nodes) or sum(counts) != size:
        raise ValueError("SLURM_*: %d nodes, %s tasks on each, %d tasks in all, which does not fit" % (len(nodes), counts_text or counts, size))
    placed = [node for node, count in zip(nodes, counts) for _ in range(count)]
    own = environ.get("SLURMD_NODENAME")
    if own and rank < size and placed[rank] != own:
        raise ValueError(
            "SLURM_PROCID %d is on %s, where tasks filled node after node it would be on %s: use srun --distribution=block" % (rank, own, placed[rank])
        )
    number = _number(environ, "SLURM_JOB_ID", "SLURM_JOBID", most=10**18, otherwise=0)
    jobs = _jobs_of(environ, size)
    return _spread(environ, jobs, _Ranks(rank, _given_hosts(environ, jobs) or placed, 12000 + number % 20000), "SLURM_*", job)


def _of_mpi(environ: Environment, job: Optional[str]) -> _Found:
    """mpirun of Open MPI, or of those with Hydra (MPICH, Intel); no library of MPI is needed."""
    for where, prefix, local_names in (
        ("OMPI_*", "OMPI_COMM_WORLD_", ("OMPI_COMM_WORLD_LOCAL_SIZE",)),
        ("PMI_*", "PMI_", ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE")),
    ):
        if prefix + "RANK" not in environ:
            continue
        rank, size = _number(environ, prefix + "RANK"), _number(environ, prefix + "SIZE", least=1)
        local = _number(environ, *local_names, least=1, otherwise=1 if size > 1 else size)
        jobs = _jobs_of(environ, size)
        known = _given_hosts(environ, jobs)
        hostfile = settings.text("MILLRACE_HOSTFILE", environ) or ("/etc/mpi/hostfile" if os.path.exists("/etc/mpi/hostfile") else "")
        if known is None and local != size and hostfile:
            known = _hosts.read_hostfile(hostfile)[:size]
        return _spread(environ, jobs, _Ranks(rank, known or _one_host(size, local, "localhost", where), 12000), where, job)
    return None


_ROWS: List[Tuple[str, Callable[[Environment, Optional[str]], _Found]]] = [
    ("TF_CONFIG", _of_tf_config),
    ("PET_*/RANK", _of_torchrun),
    ("JOB_COMPLETION_INDEX", _of_indexed_job),
    ("SLURM_*", _of_slurm),
    ("OMPI_*/PMI_*", _of_mpi),
]
