# SPDX-License-Identifier: Apache-2.0
"""Runs a function as each task of a cluster: in threads of one process that drives servers elsewhere, or in this process as the task that it is."""

from __future__ import annotations

import copy
import json
import os
import threading
import time
from typing import Any, Callable, Optional

from millrace.framework.errors import at_user_line
from millrace.launch.resolvers import format_master_url
from millrace.protos.definitions import ConfigProto
from millrace.train import tasks
from millrace.train.cluster import ClusterSpec
from millrace.train.coordinator import Coordinator
from millrace.train.monitored_session import ChiefSessionCreator, WorkerSessionCreator
from millrace.train.server import Server

_thread_local = threading.local()  # the server of a thread's task


class _TaskType:
    """Names of jobs."""

    CHIEF, WORKER, PS, EVALUATOR, CLIENT = "chief", "worker", "ps", "evaluator", "client"


class CoordinatorMode:
    """Whether one process drives all tasks, whose servers run elsewhere, or each process is a task."""

    STANDALONE_CLIENT = "standalone_client"
    INDEPENDENT_WORKER = "independent_worker"


class _Barrier:
    """Holds threads until so many have come."""

    def __init__(self, num_participants: int) -> None:
        self._barrier = threading.Barrier(num_participants)

    def wait(self) -> None:
        """Waits for the others, as often as is wanted."""
        self._barrier.wait()


def _get_num_workers(cluster_spec: Optional[ClusterSpec]) -> int:
    """How many tasks train."""
    jobs = cluster_spec.as_dict() if cluster_spec else {}
    return len(jobs.get("chief", ())) + len(jobs.get("worker", ()))


class _WorkerContext:
    """What a task knows of itself while its function runs."""

    def __init__(
        self,
        strategy: Any,
        cluster_spec: Any,
        task_type: Optional[str],
        task_id: Optional[int],
        session_config: Any = None,
        rpc_layer: Optional[str] = "grpc",
        worker_barrier: Optional[_Barrier] = None,
    ) -> None:
        self._strategy, self._cluster_spec, self._task_type, self._task_id = strategy, cluster_spec, task_type, task_id
        self._session_config, self._worker_barrier = session_config, worker_barrier
        self._master_target = self._find_target(rpc_layer)
        self._is_chief = not cluster_spec or task_type in (None, _TaskType.EVALUATOR) or tasks.is_chief(cluster_spec, task_type, task_id)

    def _find_target(self, rpc_layer: Optional[str]) -> str:
        if not self._cluster_spec or self._task_type == _TaskType.CLIENT:
            return ""
        kind, number = self._task_type, self._task_id
        if kind is None:  # one graph for all: its session is at the task that leads
            kind, number = "chief" if "chief" in self._cluster_spec.jobs else "worker", 0
        return format_master_url(self._cluster_spec.task_address(kind, int(number or 0)), rpc_layer)

    def __enter__(self) -> "_WorkerContext":
        if tasks.get_current_worker_context() is not None:
            raise at_user_line(ValueError("this thread is within a worker context already"))
        tasks._worker_context.current = self
        return self

    def __exit__(self, *unused: Any) -> None:
        tasks._worker_context.current = None

    def wait_for_other_workers(self) -> None:
        """Waits until all workers have come here. ValueError where they are not this process's."""
        if self._worker_barrier is None:
            raise at_user_line(ValueError("there is no barrier among workers of several processes: wait for a variable, or for a file"))
        self._worker_barrier.wait()

    def session_creator(
        self,
        scaffold: Any = None,
        config: Any = None,
        checkpoint_dir: Optional[str] = None,
        checkpoint_filename_with_path: Optional[str] = None,
        max_wait_secs: float = 7200,
    ) -> Any:
        """What makes the task's sessions: it initialises variables, or waits until another task has, as the strategy says."""
        settings = self._session_config
        if config is not None:
            settings = copy.deepcopy(settings) if settings is not None else ConfigProto()
            settings.MergeFrom(config)
        if not self._strategy or self._strategy.extended.experimental_should_init:
            return ChiefSessionCreator(scaffold, self.master_target, settings, checkpoint_dir, checkpoint_filename_with_path)
        return WorkerSessionCreator(scaffold, self.master_target, settings, max_wait_secs)

    session_config = property(lambda self: self._session_config, doc="The settings of its sessions.")
    has_barrier = property(lambda self: self._worker_barrier is not None, doc="Whether it can wait for the others.")
    distributed_mode = property(lambda self: bool(self._cluster_spec) and self._task_type != "evaluator", doc="Whether it trains with others.")
    cluster_spec = property(lambda self: copy.deepcopy(self._cluster_spec), doc="The cluster.")
    task_type = property(lambda self: self._task_type, doc="Its job.")
    task_id = property(lambda self: self._task_id, doc="Its number in the job.")
    master_target = property(lambda self: self._master_target, doc="The target of its sessions.")
    is_chief = property(lambda self: self._is_chief, doc="Whether it leads the others.")
    num_workers = property(lambda self: _get_num_workers(self._cluster_spec), doc="How many tasks train.")
    experimental_should_init = property(lambda self: self._strategy.extended.experimental_should_init, doc="Whether it initialises variables.")
    should_checkpoint = property(lambda self: self._strategy.extended.should_checkpoint, doc="Whether it writes checkpoints.")
    should_save_summary = property(lambda self: self._strategy.extended.should_save_summary, doc="Whether it writes summaries.")


def _run_single_worker(
    worker_fn: Callable[[Any], Any],
    strategy: Any,
    cluster_spec: Any,
    task_type: Optional[str],
    task_id: Optional[int],
    session_config: Any,
    rpc_layer: Optional[str] = "",
    worker_barrier: Optional[_Barrier] = None,
) -> Any:
    """What the function makes of a copy of the strategy, which has been told which task it is of."""
    session_config, strategy = copy.deepcopy(session_config), copy.deepcopy(strategy)
    if task_type == _TaskType.EVALUATOR:  # which is alone
        if strategy is not None:
            strategy.configure(session_config=session_config)
    else:
        strategy.configure(session_config=session_config, cluster_spec=copy.deepcopy(cluster_spec), task_type=task_type, task_id=task_id)
    with _WorkerContext(strategy, cluster_spec, task_type, task_id, session_config, rpc_layer, worker_barrier):
        return worker_fn(strategy)


def _in_thread(coord: Coordinator, *args: Any) -> threading.Thread:
    def run() -> None:
        with coord.stop_on_exception():
            _run_single_worker(*args)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


class _Sleeper:
    """Stands for a server where another program runs it."""

    def start(self) -> None:
        """Nothing to do."""

    def join(self) -> None:
        """Waits for ever."""
        while True:
            time.sleep(5)


def _run_std_server(
    cluster_spec: Any = None,
    task_type: Optional[str] = None,
    task_id: Optional[int] = None,
    session_config: Any = None,
    rpc_layer: Optional[str] = None,
    environment: Optional[str] = None,
) -> Any:
    """The server of this thread's task. ValueError where it has one for another task."""
    wanted = (str(cluster_spec), task_type, task_id)
    if hasattr(_thread_local, "server"):
        if _thread_local.task != wanted:
            raise at_user_line(ValueError("this thread has a server of task %s already, got %s" % (_thread_local.task, wanted)))
        return _thread_local.server
    if environment == "google":
        server: Any = _Sleeper()
    else:
        server = Server(cluster_spec, task_type, task_id, rpc_layer or "grpc", session_config)
    _thread_local.server, _thread_local.task = server, wanted
    return server


def _configure_servers(strategy: Any, eval_strategy: Any, session_config: Any, cluster_spec: Any, task_type: str, task_id: int) -> None:
    """What strategies change in the settings of a task's server, which sees all devices whatever they say of filters."""
    if task_type == _TaskType.EVALUATOR:
        if eval_strategy:
            copy.deepcopy(eval_strategy).configure(session_config=session_config)
    else:
        copy.deepcopy(strategy).configure(session_config=session_config, cluster_spec=copy.deepcopy(cluster_spec), task_type=task_type, task_id=task_id)
    del session_config.device_filters[:]


def _tf_config() -> Any:
    return json.loads(os.environ.get("TF_CONFIG") or "{}")


def run_standard_tensorflow_server(session_config: Any = None) -> Any:
    """The started server of the task that TF_CONFIG says. ValueError where that has no cluster or no task."""
    told = _tf_config()
    if "cluster" not in told:
        raise at_user_line(ValueError('"cluster" is not found in TF_CONFIG.'))
    if "task" not in told:
        raise at_user_line(ValueError('"task" is not found in TF_CONFIG.'))
    cluster, task = tasks.normalize_cluster_spec(told["cluster"]), told["task"]
    kind, number = task["type"], int(task.get("index", 0))
    session_config = copy.deepcopy(session_config) if session_config is not None else ConfigProto()
    session_config.experimental.collective_group_leader = tasks.collective_leader(cluster, kind, number)
    layer = told.get("rpc_layer", "grpc")
    server = _run_std_server(cluster_spec=cluster, task_type=kind, task_id=number, session_config=session_config, rpc_layer=layer)
    server.start()
    return server


def run_distribute_coordinator(
    worker_fn: Callable[[Any], Any],
    strategy: Any,
    eval_fn: Optional[Callable[[Any], Any]] = None,
    eval_strategy: Any = None,
    mode: str = CoordinatorMode.STANDALONE_CLIENT,
    cluster_spec: Any = None,
    task_type: Optional[str] = None,
    task_id: Optional[int] = None,
    session_config: Any = None,
    rpc_layer: Optional[str] = "grpc",
) -> Any:
    """Calls worker_fn(strategy) for each task that trains, in a thread each, or once for this process's task; evaluators call eval_fn.

    Where strategy.extended.experimental_between_graph is false, one graph is for all workers, and the function is called once. What the tasks are
    is cluster_spec, or else TF_CONFIG; without either there is one call, and no server. Parameter servers do not return.
    """
    told = _tf_config()
    if not cluster_spec:
        cluster_spec, task = told.get("cluster", {}), told.get("task", {})
        task_type, task_id = task.get("type", task_type), int(task.get("index", task_id or 0)) if task else task_id
    rpc_layer = told.get("rpc_layer", rpc_layer)
    session_config = session_config or ConfigProto(allow_soft_placement=True)
    eval_fn, eval_strategy = eval_fn or worker_fn, eval_strategy or strategy
    if not cluster_spec:
        return _run_single_worker(worker_fn, strategy, None, None, None, session_config, rpc_layer)
    cluster = tasks.normalize_cluster_spec(cluster_spec)
    if mode == CoordinatorMode.STANDALONE_CLIENT:
        return _drive(worker_fn, strategy, eval_fn, eval_strategy, cluster, session_config, rpc_layer)
    if mode != CoordinatorMode.INDEPENDENT_WORKER:
        raise at_user_line(ValueError("mode must be one of CoordinatorMode, got: %r" % (mode,)))
    kind, number = task_type or "", task_id or 0
    _configure_servers(strategy, eval_strategy, session_config, cluster, kind, number)
    server = _run_std_server(
        cluster_spec=cluster, task_type=kind, task_id=number, session_config=session_config, rpc_layer=rpc_layer, environment=told.get("environment")
    )
    if kind == _TaskType.EVALUATOR:
        return _run_single_worker(eval_fn, eval_strategy, cluster, kind, number, session_config, rpc_layer)
    if kind in (_TaskType.CHIEF, _TaskType.WORKER):
        if strategy.extended.experimental_between_graph:
            return _run_single_worker(worker_fn, strategy, cluster, kind, number, session_config, rpc_layer)
        if tasks.is_chief(cluster, kind, number):
            return _run_single_worker(worker_fn, strategy, cluster, None, None, session_config, rpc_layer)
    elif kind != _TaskType.PS:
        raise at_user_line(ValueError("Unexpected task_type: %r" % (task_type,)))
    return server.join()


def _drive(worker_fn: Any, strategy: Any, eval_fn: Any, eval_strategy: Any, cluster: ClusterSpec, session_config: Any, rpc_layer: Optional[str]) -> Any:
    """Calls the functions of all tasks, whose servers run; what the one call made where one graph is for all workers."""
    coord, made, jobs = Coordinator(), None, cluster.as_dict()
    threads = [_in_thread(coord, eval_fn, eval_strategy, cluster, "evaluator", i, session_config, rpc_layer) for i in range(len(jobs.get("evaluator", ())))]
    if strategy.extended.experimental_between_graph:
        barrier = _Barrier(_get_num_workers(cluster))
        threads += [
            _in_thread(coord, worker_fn, strategy, cluster, kind, i, session_config, rpc_layer, barrier)
            for kind in ("chief", "worker")
            for i in range(len(jobs.get(kind, ())))
        ]
    else:
        made = _run_single_worker(worker_fn, strategy, cluster, None, None, session_config, rpc_layer)
    coord.join(threads)
    return made
