# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.RunConfig: tf.estimator's with the arguments of contrib."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import arguments
from millrace.estimator import run_config


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
        arguments.only("", master=master or "")
        arguments.only("", evaluation_master=evaluation_master or "")
        if session_config is None:
            from millrace.protos.definitions import ConfigProto  # type: ignore[attr-defined]

            session_config = ConfigProto(
                log_device_placement=log_device_placement, inter_op_parallelism_threads=num_cores, intra_op_parallelism_threads=num_cores
            )
            session_config.gpu_options.per_process_gpu_memory_fraction = gpu_memory_fraction
        super().__init__(
            model_dir,
            tf_random_seed,
            save_summary_steps,
            save_checkpoints_steps,
            save_checkpoints_secs,
            session_config,
            keep_checkpoint_max,
            keep_checkpoint_every_n_hours,
            log_step_count_steps,
        )
