# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.RunConfig: tf.estimator's with the arguments of contrib."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Optional, Sequence

from millrace.contrib.learn.keys import TaskType
from millrace.estimator import run_config
from millrace.estimator.run_config import _master
from millrace.framework.errors import at_user_line
from millrace.protos import definitions
from millrace.train.cluster import ClusterSpec


_DEFAULT_UID_WHITE_LIST = [  # what does not make a configuration another one; programs have the name
    "tf_random_seed",
    "save_summary_steps",
    "save_checkpoints_steps",
    "save_checkpoints_secs",
    "session_config",
    "keep_checkpoint_max",
    "keep_checkpoint_every_n_hours",
    "log_step_count_steps",
]


class Environment:
    """Where a cluster runs."""

    CLOUD, GOOGLE, LOCAL = "cloud", "google", "local"


class RunConfig(run_config.RunConfig):
    """Where and how often an estimator saves, summarises and logs."""

    def __init__(
        self,
        master: Optional[str] = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: Optional[int] = None,
        save_summary_steps: int = 100,
        save_checkpoints_secs: Any = run_config._UNSET,
        save_checkpoints_steps: Any = run_config._UNSET,
        keep_checkpoint_max: int = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int = 100,
        evaluation_master: str = "",
        model_dir: Optional[str] = None,
        session_config: Any = None,
        **unused: Any,
    ) -> None:
        del unused  # of other releases
        self._given_master, self._given_evaluation_master = master, evaluation_master or ""
        if save_checkpoints_secs == 0:  # the default, as it was said once
            save_checkpoints_secs = run_config._UNSET if save_checkpoints_steps in (None, run_config._UNSET) else None
            save_checkpoints_steps = run_config._UNSET if save_checkpoints_steps is None else save_checkpoints_steps
        both = save_checkpoints_steps not in (None, run_config._UNSET) and save_checkpoints_secs not in (None, run_config._UNSET)
        self._tf_config = definitions.ConfigProto(
            log_device_placement=log_device_placement, inter_op_parallelism_threads=num_cores, intra_op_parallelism_threads=num_cores
        )
        self._tf_config.gpu_options.per_process_gpu_memory_fraction = gpu_memory_fraction
        super().__init__(
            model_dir,
            tf_random_seed,
            save_summary_steps,
            save_checkpoints_steps,
            None if both else save_checkpoints_secs,
            session_config,
            keep_checkpoint_max,
            keep_checkpoint_every_n_hours,
            log_step_count_steps,
        )
        if both:  # nobody is told before a training
            self._save_checkpoints_secs = save_checkpoints_secs

    def uid(self, whitelist: Optional[Sequence[str]] = None) -> str:
        """A text that is the same for configurations that differ in no property but these (the seed, and how often is saved and logged)."""
        left = {"_" + name for name in (_DEFAULT_UID_WHITE_LIST if whitelist is None else whitelist)}
        state = {name: value for name, value in vars(self).items() if name not in left}
        if isinstance(state.get("_cluster_spec"), ClusterSpec):
            state["_cluster_spec"] = sorted(state["_cluster_spec"].as_dict().items())
        return ", ".join("%s=%r" % item for item in sorted(state.items()))

    environment = property(lambda self: self._environment, doc="Where it runs: one of Environment.")
    tf_config = property(lambda self: self._tf_config, doc="A ConfigProto of num_cores, log_device_placement and gpu_memory_fraction.")

    def config_of_sessions(self) -> Any:
        """session_config, or without it tf_config, where operations may go to other devices than those that they ask for."""
        if self.session_config is not None:
            return self.session_config
        made = definitions.ConfigProto()
        made.CopyFrom(self._tf_config)
        made.allow_soft_placement = True
        return made

    @staticmethod
    def get_task_id() -> int:
        """The number of this process, of TF_CONFIG."""
        return int(json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {}).get("index", 0))

    def _check_task(self, cluster: ClusterSpec) -> None:
        if self._task_type not in cluster.jobs:
            raise at_user_line(ValueError("%s is not a valid task_type in the cluster_spec:\n%s" % (self._task_type, cluster)))
        if not 0 <= self._task_id < len(cluster.job_tasks(self._task_type)):
            raise at_user_line(ValueError("%d is not a valid task_id for task_type %s in the cluster_spec:\n%s" % (self._task_id, self._task_type, cluster)))

    def _set_cluster(self, given: Dict[str, Any]) -> None:
        """As tf.contrib.learn has it: no chief is asked for, and workers beside a master, or the first worker, write checkpoints."""
        task, cluster = given.get("task", {}), ClusterSpec(given.get("cluster", {}))
        self._service, self._cluster_spec, self._evaluation_master = None, cluster, self._given_evaluation_master
        self._environment = given.get("environment", Environment.LOCAL)
        self._task_type, self._task_id = task.get("type"), int(task.get("index", 0))
        tasks = cluster.as_dict()
        alone = len(tasks) == 1 and len(next(iter(tasks.values()))) == 1
        self._master = self._given_master or ""
        if tasks and not alone and self._task_type and self._given_master is None:
            self._check_task(cluster)
            self._master = _master(cluster, self._task_type, self._task_id)
        self._num_ps_replicas, self._num_worker_replicas = (
            len(tasks.get(TaskType.PS, ())),
            sum(len(tasks.get(job, ())) for job in (TaskType.WORKER, TaskType.MASTER)),
        )
        chief = TaskType.MASTER if self._environment == Environment.CLOUD else TaskType.WORKER
        self._is_chief = self._task_id == 0 and self._task_type in (None, chief)
        self._global_id_in_cluster = None
        folder = given.get("model_dir")
        if folder and self._model_dir not in (None, folder):
            raise at_user_line(
                ValueError(
                    "`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in TF_CONFIG: %s and %s."
                    % (self._model_dir, folder)
                )
            )
        self._model_dir = folder or self._model_dir
