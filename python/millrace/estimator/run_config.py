# SPDX-License-Identifier: Apache-2.0
"""How an estimator runs: what it saves and when, and which task of a cluster it is, as the environment variable TF_CONFIG says."""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Callable, Dict, Optional, Tuple

from millrace import tf_logging
from millrace.estimator.util import fn_args
from millrace.framework import strategy
from millrace.framework.errors import at_user_line
from millrace.protos import definitions
from millrace.train.cluster import ClusterSpec

_UNSET = object()
_BOTH = "`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set."
_REPLACEABLE = (
    "model_dir",
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
    "device_fn",
    "session_creation_timeout_secs",
    "protocol",
    "train_distribute",
    "eval_distribute",
)
_CHECKS: Dict[str, Tuple[Callable[[Any], Any], str]] = {
    "model_dir": (bool, "model_dir should be non-empty"),
    "tf_random_seed": (lambda v: isinstance(v, int), "tf_random_seed must be integer."),
    "save_summary_steps": (lambda v: v >= 0, "save_summary_steps should be >= 0"),
    "save_checkpoints_steps": (lambda v: v >= 0, "save_checkpoints_steps should be >= 0"),
    "save_checkpoints_secs": (lambda v: v >= 0, "save_checkpoints_secs should be >= 0"),
    "session_config": (lambda v: isinstance(v, definitions.ConfigProto), "session_config must be instance of ConfigProto"),
    "keep_checkpoint_max": (lambda v: v >= 0, "keep_checkpoint_max should be >= 0"),
    "keep_checkpoint_every_n_hours": (lambda v: v > 0, "keep_checkpoint_every_n_hours should be > 0"),
    "log_step_count_steps": (lambda v: v > 0, "log_step_count_steps should be > 0"),
    "device_fn": (lambda v: callable(v) and fn_args(v) == ("op",), 'device_fn must be callable with exactly one argument "op".'),
    "protocol": (lambda v: v in ("grpc", "grpc+verbs"), "protocol should be grpc or grpc+verbs"),
    "session_creation_timeout_secs": (lambda v: v > 0, "session_creation_timeout_secs should be > 0"),
}


def get_default_session_config() -> Any:
    """What sessions of estimators are told where nothing is given: operations may go to other devices than those that they ask for."""
    made = definitions.ConfigProto(allow_soft_placement=True)
    made.graph_options.rewrite_options.meta_optimizer_iterations = definitions.RewriterConfig.ONE
    return made


class TaskType:
    """What a process of a cluster does."""

    MASTER, PS, WORKER, CHIEF, EVALUATOR = "master", "ps", "worker", "chief", "evaluator"


def _master(cluster: ClusterSpec, task_type: str, task_id: int) -> str:
    """The session's target: this task's own server, none where there is but one task."""
    if sum(len(tasks) for tasks in cluster.as_dict().values()) == 1:
        return ""
    return "grpc://%s" % cluster.job_tasks(task_type)[task_id]


def _task(cluster: ClusterSpec, task: Dict[str, Any], chief: str) -> Tuple[str, int]:
    """The type and number of this process in a cluster that has one chief."""
    if chief not in cluster.jobs:
        raise at_user_line(ValueError('If "cluster" is set in TF_CONFIG, it must have one "%s" node.' % chief))
    if len(cluster.job_tasks(chief)) > 1:
        raise at_user_line(ValueError('The "cluster" in TF_CONFIG must have only one "%s" node.' % chief))
    if not task.get("type"):
        raise at_user_line(ValueError('If "cluster" is set in TF_CONFIG, task type must be set.'))
    if task.get("index") is None:
        raise at_user_line(ValueError('If "cluster" is set in TF_CONFIG, task index must be set.'))
    if int(task["index"]) < 0:
        raise at_user_line(ValueError("Task index must be non-negative number."))
    kind, index = task["type"], int(task["index"])
    if kind != TaskType.EVALUATOR:  # which is no part of the cluster
        if kind not in cluster.jobs:
            wrong = "%s is not a valid task_type in the cluster_spec" % kind
        elif index >= len(cluster.job_tasks(kind)):
            wrong = "%d is not a valid task_id for task_type %s in the cluster_spec" % (index, kind)
        else:
            return kind, index
        raise at_user_line(ValueError("%s:\n%s\n\nNote that these values may be coming from the TF_CONFIG environment variable." % (wrong, cluster.as_dict())))
    return kind, index


def _model_dir(told: Optional[str], given: Any) -> Optional[str]:
    """The folder that a program gives, which has to be TF_CONFIG's where that has one."""
    given = None if given is None else os.fspath(given)
    if given == "":
        raise at_user_line(ValueError("model_dir should be non-empty."))
    if told == "":
        raise at_user_line(ValueError("model_dir in TF_CONFIG should be non-empty."))
    if told and given and told != given:
        raise at_user_line(
            ValueError(
                "`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in TF_CONFIG. model_dir: %s\n"
                'TF_CONFIG["model_dir"]: %s.\n' % (given, told)
            )
        )
    return given or told


def _dict(name: str, value: Any) -> Any:
    if value is not None and not isinstance(value, dict):
        raise at_user_line(TypeError('If "%s" is set in TF_CONFIG, it must be a dict. Given %s' % (name, type(value))))
    return value


class RunConfig:
    """Where and how often an estimator saves, summarises and logs."""

    def __init__(
        self,
        model_dir: Optional[str] = None,
        tf_random_seed: Optional[int] = None,
        save_summary_steps: int = 100,
        save_checkpoints_steps: Any = _UNSET,
        save_checkpoints_secs: Any = _UNSET,
        session_config: Any = None,
        keep_checkpoint_max: int = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: Optional[int] = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: Optional[str] = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: Optional[float] = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if experimental_distribute is not None:
            raise at_user_line(NotImplementedError("experimental_distribute is not provided: one process trains on all cores of its machine."))
        for name, value in (("train_distribute", train_distribute), ("eval_distribute", eval_distribute)):
            if value is not None and not isinstance(value, strategy.Strategy):
                raise at_user_line(NotImplementedError("%s=%r is not provided: one process trains on all cores of its machine." % (name, value)))
        self._train_distribute, self._eval_distribute = train_distribute, eval_distribute
        if experimental_max_worker_delay_secs is not None:
            raise at_user_line(NotImplementedError("experimental_max_worker_delay_secs is not provided: workers begin within 60 seconds."))
        if save_checkpoints_steps is _UNSET and save_checkpoints_secs is _UNSET:
            save_checkpoints_steps, save_checkpoints_secs = None, 600
        save_checkpoints_steps = None if save_checkpoints_steps is _UNSET else save_checkpoints_steps
        save_checkpoints_secs = None if save_checkpoints_secs is _UNSET else save_checkpoints_secs
        if save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise at_user_line(ValueError(_BOTH))
        self._model_dir: Optional[str] = None
        self._save_checkpoints_secs: Optional[float] = None
        self._save_checkpoints_steps: Optional[int] = None
        self._session_config: Any = None
        told = json.loads(os.environ.get("TF_CONFIG") or "{}")
        RunConfig._replace(
            self,
            model_dir=_model_dir(told.get("model_dir"), model_dir),
            tf_random_seed=tf_random_seed,
            save_summary_steps=save_summary_steps,
            save_checkpoints_steps=save_checkpoints_steps,
            save_checkpoints_secs=save_checkpoints_secs,
            session_config=session_config,
            keep_checkpoint_max=keep_checkpoint_max,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            log_step_count_steps=log_step_count_steps,
            device_fn=device_fn,
            session_creation_timeout_secs=session_creation_timeout_secs,
            protocol=protocol,
        )
        self._set_cluster(told)
        if self._session_config is None and self._cluster_spec:
            self._session_config = self._session_config_of_task()

    def _set_cluster(self, given: Dict[str, Any]) -> None:
        if given:
            tf_logging.info("TF_CONFIG environment variable: %s", given)
        self._service = _dict("service", given.get("service"))
        cluster, task = ClusterSpec(given.get("cluster", {})), given.get("task", {})
        self._cluster_spec, self._evaluation_master = cluster, ""
        if not cluster:
            self._set_alone(given, task)
            return
        chief = TaskType.MASTER if TaskType.MASTER in cluster.jobs else TaskType.CHIEF
        if chief == TaskType.MASTER and TaskType.CHIEF in cluster.jobs:
            raise at_user_line(ValueError("If `master` node exists in `cluster`, job `chief` is not supported."))
        self._task_type, self._task_id = _task(cluster, task, chief)
        if self._task_type == TaskType.EVALUATOR:
            if chief == TaskType.MASTER:
                raise at_user_line(ValueError("If `master` node exists in `cluster`, task_type `evaluator` is not supported."))
            # An evaluator is no part of the cluster: it reads checkpoints.
            self._cluster_spec, self._master, self._num_ps_replicas, self._num_worker_replicas = ClusterSpec({}), "", 0, 0
            self._evaluation_master = given.get("eval_session_master", "")
        else:
            tasks = cluster.as_dict()
            self._master = given["session_master"] if "session_master" in given else _master(cluster, self._task_type, self._task_id)
            self._num_ps_replicas, self._num_worker_replicas = len(tasks.get(TaskType.PS, [])), len(tasks.get(TaskType.WORKER, [])) + len(tasks[chief])
        self._is_chief = self._task_type == chief
        self._global_id_in_cluster: Optional[int] = self._number(chief)

    def _number(self, chief: str) -> Optional[int]:
        """This process among all of the cluster: the chief, then the others by the names of their jobs, those that hold variables last."""
        if self._task_type == TaskType.EVALUATOR:
            return None
        before = 0
        for job in [chief, *sorted((job for job in self._cluster_spec.jobs if job != chief), key=lambda job: (job == TaskType.PS, job))]:
            if job == self._task_type:
                return before + self._task_id
            before += self._cluster_spec.num_tasks(job)
        return before

    def config_of_sessions(self) -> Any:
        """session_config, or one where operations may go to other devices than those that they ask for."""
        return self.session_config or get_default_session_config()

    def _session_config_of_task(self) -> Any:
        """Sessions of a task that trains know the tasks that hold variables and its own: they wait for no others."""
        if self._task_type not in (TaskType.CHIEF, TaskType.MASTER, TaskType.WORKER, TaskType.PS):
            return None
        own = "/job:%s/task:%d" % (self._task_type, self._task_id) if self._task_type == TaskType.WORKER else "/job:%s" % self._task_type
        others = ["/job:worker", "/job:chief", "/job:master"] if self._task_type == TaskType.PS else [own]
        made = get_default_session_config()
        made.device_filters.extend(["/job:ps", *others])
        return made

    def _set_alone(self, given: Dict[str, Any], task: Dict[str, Any]) -> None:
        self._task_type, self._task_id = task.get("type", TaskType.WORKER), int(task.get("index", 0))
        self._global_id_in_cluster, self._is_chief, self._master = 0, True, given.get("session_master", "")
        self._evaluation_master = given.get("eval_session_master", "")
        self._num_ps_replicas, self._num_worker_replicas = 0, 1
        if self._task_type == TaskType.EVALUATOR:
            self._is_chief, self._num_worker_replicas, self._global_id_in_cluster = False, 0, None
            return
        if self._task_type != TaskType.WORKER:
            raise at_user_line(ValueError('If "cluster" is not set in TF_CONFIG, task type must be WORKER.'))
        if self._task_id != 0:
            raise at_user_line(ValueError('If "cluster" is not set in TF_CONFIG, task index must be 0.'))

    model_dir = property(lambda self: self._model_dir, doc="The folder of checkpoints and event files.")
    tf_random_seed = property(lambda self: self._tf_random_seed, doc="The seed of the graph.")
    save_summary_steps = property(lambda self: self._save_summary_steps, doc="How many steps lie between summaries.")
    save_checkpoints_steps = property(lambda self: self._save_checkpoints_steps, doc="How many steps lie between checkpoints, or None.")
    save_checkpoints_secs = property(lambda self: self._save_checkpoints_secs, doc="How many seconds lie between checkpoints, or None.")
    session_config = property(lambda self: self._session_config, doc="The ConfigProto of sessions.")
    keep_checkpoint_max = property(lambda self: self._keep_checkpoint_max, doc="How many checkpoints are kept.")
    keep_checkpoint_every_n_hours = property(lambda self: self._keep_checkpoint_every_n_hours, doc="As of tf.train.Saver.")
    log_step_count_steps = property(lambda self: self._log_step_count_steps, doc="How many steps lie between logged losses.")
    device_fn = property(lambda self: self._device_fn, doc="Where operations are placed, or None.")
    session_creation_timeout_secs = property(lambda self: self._session_creation_timeout_secs, doc="How long a session may wait for its chief.")
    experimental_max_worker_delay_secs = property(lambda self: None, doc="None: workers begin within 60 seconds.")
    protocol = property(lambda self: self._protocol, doc="What servers speak with each other.")
    train_distribute = property(lambda self: self._train_distribute, doc="The strategy, of one replica, that training is in the scope of, or None.")
    eval_distribute = property(lambda self: self._eval_distribute, doc="The strategy, of one replica, that evaluation is in the scope of, or None.")
    master = property(lambda self: self._master, doc="The session's target.")
    evaluation_master = property(lambda self: self._evaluation_master, doc="The target of sessions that evaluate.")
    is_chief = property(lambda self: self._is_chief, doc="Whether this process leads.")
    task_type = property(lambda self: self._task_type, doc="What this process does.")
    task_id = property(lambda self: self._task_id, doc="Which one of its type it is.")
    global_id_in_cluster = property(lambda self: self._global_id_in_cluster, doc="Which one of the cluster it is; None for an evaluator.")
    num_ps_replicas = property(lambda self: self._num_ps_replicas, doc="How many processes hold variables.")
    num_worker_replicas = property(lambda self: self._num_worker_replicas, doc="How many processes train.")
    cluster_spec = property(lambda self: self._cluster_spec, doc="The cluster; an empty one is false.")
    service = property(lambda self: self._service, doc="What TF_CONFIG says of a service, or None.")

    def replace(self, **kwargs: Any) -> "RunConfig":
        """A copy with other values."""
        return RunConfig._replace(copy.deepcopy(self), **kwargs)

    @staticmethod
    def _replace(config: "RunConfig", **changes: Any) -> "RunConfig":
        for name, value in changes.items():
            if name not in _REPLACEABLE:
                raise at_user_line(ValueError("Replacing %s is not supported. Allowed properties are %s." % (name, list(_REPLACEABLE))))
            setattr(config, "_" + name, value)
        steps, seconds = changes.get("save_checkpoints_steps"), changes.get("save_checkpoints_secs")
        if steps is not None and seconds is not None:
            raise at_user_line(ValueError(_BOTH))
        if steps is not None:
            config._save_checkpoints_secs = None
        if seconds is not None:
            config._save_checkpoints_steps = None
        for name, (is_right, message) in _CHECKS.items():
            value = getattr(config, name)
            if value is not None and not is_right(value):
                raise at_user_line(ValueError(message))
        return config
