# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.training: hyper-parameters, batches of what belongs together, training and evaluation by monitored sessions."""

from __future__ import annotations

import hashlib
from typing import Any

from millrace.framework.errors import at_user_line
from millrace.contrib.failure_tolerator import FailureTolerator  # noqa: F401
from millrace.contrib.feeder import Feeder  # noqa: F401
from millrace.contrib.hparams import HParams, parse_values  # noqa: F401
from millrace.contrib.python_input import python_input  # noqa: F401
from millrace.contrib.slim_evaluation import checkpoints_iterator, wait_for_new_checkpoint  # noqa: F401
from millrace.contrib.slim_learning import clip_gradient_norms, multiply_gradients  # noqa: F401
from millrace.contrib.training_inputs import bucket, bucket_by_sequence_length  # noqa: F401
from millrace.contrib.training_loops import (  # noqa: F401
    StopAfterNEvalsHook,
    SummaryAtEndHook,
    add_gradients_summaries,
    clip_gradient_norms_fn,
    create_train_op,
    evaluate_once,
    evaluate_repeatedly,
    train,
)
from millrace.contrib.sgdr_decay import sgdr_decay  # noqa: F401
from millrace.train.evaluation import _get_or_create_eval_step as get_or_create_eval_step  # noqa: F401
from millrace.contrib.training_resampling import resample_at_rate, weighted_resample  # noqa: F401
from millrace.contrib.training_sequences import batch_sequences_with_states  # noqa: F401
from millrace.contrib.training_states import NextQueuedSequenceBatch, SequenceQueueingStateSaver  # noqa: F401
from millrace.contrib.training_sampling import rejection_sample, stratified_sample  # noqa: F401


# ---- where variables go ----


def byte_size_load_fn(op: Any) -> int:
    """The bytes of a variable."""
    elements = op.outputs[0].get_shape().num_elements()
    if elements is None:
        raise at_user_line(ValueError("byte_size_load_fn needs variables of known shapes, %s has not" % op.name))
    return int(op.outputs[0].dtype.base_dtype.size * elements)


class GreedyLoadBalancingStrategy:
    """For replica_device_setter: the task with the least load so far, load_fn(op) of each variable."""

    def __init__(self, num_tasks: int, load_fn: Any) -> None:
        self._loads, self._load_fn = [0.0] * num_tasks, load_fn

    def __call__(self, op: Any) -> int:
        task = min(range(len(self._loads)), key=lambda i: self._loads[i])
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """For replica_device_setter: a task by the name of the operation and a seed, so that all workers place alike whatever else they make."""

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._count, self._seed = num_ps_tasks, seed

    def __call__(self, op: Any) -> int:
        digest = hashlib.md5(("%s_%d" % (op.name, self._seed)).encode(), usedforsecurity=False).hexdigest()
        return int(digest, 16) % self._count
