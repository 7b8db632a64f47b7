# SPDX-License-Identifier: Apache-2.0
"""The training that these programs share: averages in each step, inverses in every tenth."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

from millrace import tf_logging
from millrace.contrib.kfac.layer_collection import LayerCollection
from millrace.contrib.kfac.optimizer import KfacOptimizer
from millrace.framework import dtypes
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, math_ops, nn_ops
from millrace.ops.variable_scope import get_variable_scope, variable_scope
from millrace.train.global_step import get_or_create_global_step

_BETWEEN_INVERSES = 10
_Build = Callable[..., Tuple[Any, Any]]


def optimizer_of(layer_collection: LayerCollection, learning_rate: float = 0.01) -> KfacOptimizer:
    """KFAC as all of these programs use it."""
    return KfacOptimizer(learning_rate, cov_ema_decay=0.95, damping=0.01, layer_collection=layer_collection, momentum=0.9)


def loss_and_accuracy(logits: Any, labels: Any) -> Tuple[Any, Any]:
    """The mean loss of logits, and how many of them are right, as a share."""
    loss = math_ops.reduce_mean(nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    right = math_ops.equal(math_ops.cast(labels, dtypes.int64), math_ops.argmax(logits, axis=1))
    return loss, math_ops.reduce_mean(math_ops.cast(right, dtypes.float32))


def run(session: Any, optimizer: KfacOptimizer, train: Any, loss: Any, accuracy: Any, updates: bool = True) -> float:
    """Steps until the input ends; the last accuracy. Only who updates the averages and inverses says so."""
    made, step = 0.0, 0
    with session:
        while not session.should_stop():
            if updates and step % _BETWEEN_INVERSES == 0:
                session.run(optimizer.cov_update_op)
                session.run(optimizer.inv_update_op)
            lost, made, *_ = session.run([loss, accuracy, train, *([optimizer.cov_update_op] if updates else [])])
            step += 1
            if step % 100 == 0:
                tf_logging.info("step %d: loss %g, accuracy %g", step, lost, made)
    return float(made)


def in_towers(build: _Build, examples: Any, labels: Any, num_towers: int, layer_collection: LayerCollection) -> Tuple[Any, Any]:
    """The means of what build(examples, labels, layer_collection) gives for each part of a batch, which share variables."""
    losses: List[Any] = []
    accuracies: List[Any] = []
    for tower, (some, theirs) in enumerate(zip(array_ops.split(examples, num_towers), array_ops.split(labels, num_towers))):
        with name_scope("tower_%d" % tower), variable_scope(get_variable_scope(), reuse=tower > 0):
            loss, accuracy = build(some, theirs, layer_collection)
        losses.append(loss)
        accuracies.append(accuracy)
    return math_ops.add_n(losses) / num_towers, math_ops.add_n(accuracies) / num_towers


def train_op(optimizer: Any, loss: Any) -> Any:
    """A step, which is counted."""
    return optimizer.minimize(loss, global_step=get_or_create_global_step())
