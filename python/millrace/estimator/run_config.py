# SPDX-License-Identifier: Apache-2.0
"""How an estimator runs."""
from __future__ import annotations

import copy
import os
from typing import Any, Optional

from millrace.framework.errors import at_user_line

_UNSET = object()


class RunConfig:
    """Where and how often an estimator saves, summarises and logs."""

    def __init__(self, model_dir: Optional[str] = None, tf_random_seed: Optional[int] = None, save_summary_steps: int = 100,
                 save_checkpoints_steps: Any = _UNSET, save_checkpoints_secs: Any = _UNSET, session_config: Any = None, keep_checkpoint_max: int = 5,
                 keep_checkpoint_every_n_hours: float = 10000, log_step_count_steps: int = 100, train_distribute: Any = None, device_fn: Any = None,
                 **unused: Any) -> None:
        given = [v for v in (save_checkpoints_steps, save_checkpoints_secs) if v not in (_UNSET, None)]
        if len(given) > 1:
            raise at_user_line(ValueError("Can not provide both save_checkpoints_steps and save_checkpoints_secs."))
        self._save_checkpoints_steps = None if save_checkpoints_steps is _UNSET else save_checkpoints_steps
        default = 600 if save_checkpoints_steps is _UNSET and save_checkpoints_secs is _UNSET else None
        self._save_checkpoints_secs = default if save_checkpoints_secs is _UNSET else save_checkpoints_secs
        self._model_dir = None if model_dir is None else os.fspath(model_dir)
        self._tf_random_seed, self._save_summary_steps, self._session_config = tf_random_seed, save_summary_steps, session_config
        self._keep_checkpoint_max, self._keep_checkpoint_every_n_hours = keep_checkpoint_max, keep_checkpoint_every_n_hours
        self._log_step_count_steps, self._train_distribute, self._device_fn = log_step_count_steps, train_distribute, device_fn

    model_dir = property(lambda self: self._model_dir, doc="The folder of checkpoints and event files.")
    tf_random_seed = property(lambda self: self._tf_random_seed, doc="The seed of the graph.")
    save_summary_steps = property(lambda self: self._save_summary_steps, doc="How many steps lie between summaries.")
    save_checkpoints_steps = property(lambda self: self._save_checkpoints_steps, doc="How many steps lie between checkpoints, or None.")
    save_checkpoints_secs = property(lambda self: self._save_checkpoints_secs, doc="How many seconds lie between checkpoints, or None.")
    session_config = property(lambda self: self._session_config, doc="The ConfigProto of sessions.")
    keep_checkpoint_max = property(lambda self: self._keep_checkpoint_max, doc="How many checkpoints are kept.")
    keep_checkpoint_every_n_hours = property(lambda self: self._keep_checkpoint_every_n_hours, doc="As of tf.train.Saver.")
    log_step_count_steps = property(lambda self: self._log_step_count_steps, doc="How many steps lie between logged losses.")
    train_distribute = property(lambda self: self._train_distribute, doc="What was given.")
    device_fn = property(lambda self: self._device_fn, doc="What was given.")
    master = evaluation_master = property(lambda self: "", doc="The session's target.")
    is_chief = property(lambda self: True, doc="Whether this process leads.")
    task_type = property(lambda self: "worker", doc="What this process does.")
    task_id = global_id_in_cluster = num_ps_replicas = property(lambda self: 0, doc="Always 0 in one process.")
    num_worker_replicas = property(lambda self: 1, doc="Always 1 in one process.")
    cluster_spec = property(lambda self: None, doc="None in one process.")

    def replace(self, **changes: Any) -> "RunConfig":
        """A copy with other values."""
        made = copy.copy(self)
        for name, value in changes.items():
            if "_" + name not in self.__dict__:
                raise at_user_line(ValueError("Replacing %s is not supported." % name))
            setattr(made, "_" + name, value)
        if changes.get("save_checkpoints_steps") is not None and "save_checkpoints_secs" not in changes:
            made._save_checkpoints_secs = None
        if changes.get("save_checkpoints_secs") is not None and "save_checkpoints_steps" not in changes:
            made._save_checkpoints_steps = None
        return made
