# SPDX-License-Identifier: Apache-2.0
"""Batches of elements that are taken or left at random, so that classes come as often as is wanted."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, random_ops
from millrace.ops.variables import Variable
from millrace.train.batching import batch, in_form_of, listed, maybe_batch

_SEEN_BEFORE = 10  # of each class, when the frequencies of classes are counted


def _one_by_one(tensors: List[Any], threads: int, capacity: int) -> List[Tensor]:
    """The rows of the tensors, one in each step."""
    rows = batch(tensors, 1, threads, capacity, enqueue_many=True)
    return [array_ops.squeeze(r, [0]) for r in (rows if isinstance(rows, list) else [rows])]


def rejection_sample(
    tensors: Any,
    accept_prob_fn: Any,
    batch_size: Any,
    queue_threads: int = 1,
    enqueue_many: bool = False,
    prebatch_capacity: int = 16,
    prebatch_threads: int = 1,
    runtime_checks: bool = False,
    name: Optional[str] = None,
) -> Any:
    """Batches of the tensors; each element is in one with the probability that a function of it gives."""
    with name_scope(name, "rejection_sample", listed(tensors)):
        each = [convert_to_tensor(t) for t in listed(tensors)]
        if enqueue_many:
            each = _one_by_one(each, prebatch_threads, prebatch_capacity)
        given = dict(zip(sorted(tensors, key=str), each)) if isinstance(tensors, dict) else each
        chance = convert_to_tensor(accept_prob_fn(given))
        chance.get_shape().assert_is_compatible_with([])
        if runtime_checks:
            inside = gen_ops.logical_and(gen_ops.less_equal(0.0, chance), gen_ops.less_equal(chance, 1.0))
            chance = control_flow_ops.with_dependencies([control_flow_ops.Assert(inside, [chance])], chance)
        made = maybe_batch(each, gen_ops.less(random_ops.random_uniform([]), chance), batch_size, queue_threads)
        return in_form_of(tensors, made if isinstance(made, list) else [made])


def _frequencies(labels: Tensor, classes: int) -> Tensor:
    """How often the classes have come till now."""
    seen = Variable(np.full([classes], _SEEN_BEFORE, np.int64), trainable=False, name="class_count", collections=[GraphKeys.LOCAL_VARIABLES])
    now = math_ops.reduce_sum(array_ops.one_hot(math_ops.cast(labels, dtypes.int64), classes, dtype=dtypes.int64), 0)
    counted = seen.assign_add(now)
    return math_ops.cast(counted, dtypes.float32) / math_ops.cast(math_ops.reduce_sum(counted), dtypes.float32)


def _chances(initial: Tensor, target: Tensor) -> Tensor:
    """The probability, for each class, of taking an element; 1 for the rarest, by what is wanted."""
    possible = control_flow_ops.Assert(
        math_ops.reduce_all(gen_ops.logical_or(math_ops.not_equal(initial, 0.0), math_ops.equal(target, 0.0))),
        ["Some classes have initial probability 0 and another target probability", initial, target],
    )
    ratio = control_flow_ops.with_dependencies([possible], gen_ops.div_no_nan(target, initial))
    return gen_ops.real_div(ratio, math_ops.reduce_max(ratio))


def stratified_sample(
    tensors: Any,
    labels: Any,
    target_probs: Any,
    batch_size: Any,
    init_probs: Any = None,
    enqueue_many: bool = False,
    queue_capacity: int = 16,
    threads_per_queue: int = 1,
    name: Optional[str] = None,
) -> Tuple[List[Any], Tensor]:
    """(batches of the tensors, of their labels), with classes as often as target_probs says."""
    with name_scope(name, "stratified_sample", [*tensors, labels]):
        each, classes = [convert_to_tensor(t) for t in tensors], convert_to_tensor(labels)
        target = convert_to_tensor(target_probs, dtypes.float32)
        if not target.get_shape().is_fully_defined():
            raise at_user_line(ValueError("The shape of target_probs must be known."))
        if not enqueue_many:
            each, classes = [array_ops.expand_dims(t, 0) for t in each], array_ops.expand_dims(classes, 0)
        initial = _frequencies(classes, target.get_shape().num_elements()) if init_probs is None else convert_to_tensor(init_probs, dtypes.float32)  # type: ignore[arg-type]
        # The step that reads an element counts its class, too: what decides about it comes along through the queue.
        *values, label, chance = _one_by_one([*each, classes, array_ops.gather(_chances(initial, target), classes)], threads_per_queue, queue_capacity)
        made = maybe_batch([*values, label], gen_ops.less(random_ops.random_uniform([]), chance), batch_size, threads_per_queue)
        return made[:-1], made[-1]
