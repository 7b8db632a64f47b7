# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.model_pruning: weights of which the smallest are set to zero while a model trains (Zhu and Gupta, To prune, or not to prune, 2017)."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib import slim_learning
from millrace.contrib.model_pruning.layers import MaskedBasicLSTMCell, MaskedLSTMCell, masked_conv2d, masked_convolution, masked_fully_connected
from millrace.contrib.model_pruning.pruning import Pruning, get_pruning_hparams, get_weight_sparsity
from millrace.contrib.model_pruning.stripping import graph_def_from_checkpoint, strip_pruning_vars_fn
from millrace.contrib.model_pruning.weights import apply_mask, get_masked_weights, get_masks, get_thresholds, get_weights

train_step = slim_learning.train_step


def train(train_op: Any, logdir: Optional[str], mask_update_op: Any, train_step_fn: Any = train_step, **kwargs: Any) -> Any:
    """tf.contrib.slim.learning.train, which runs an operation of the masks behind each step; its other arguments are those of that one."""

    def step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Any) -> Any:
        result = train_step_fn(sess, train_op, global_step, train_step_kwargs)
        sess.run(mask_update_op)
        return result

    return slim_learning.train(train_op, logdir, train_step_fn=step, **kwargs)
