# SPDX-License-Identifier: Apache-2.0
"""Batches of elements that are taken or left at random, so that classes come as often as is wanted."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, random_ops
from millrace.ops.variables import Variable
from millrace.train.batching import batch, in_form_of, listed, maybe_batch


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
            inside = [check_ops.assert_less_equal(0.0, chance), check_ops.assert_less_equal(chance, 1.0)]
            with control_dependencies(inside):
                chance = array_ops.identity(chance, name="prob_with_checks")
        made = maybe_batch(each, gen_ops.less(random_ops.random_uniform([]), chance), batch_size, queue_threads)
        return in_form_of(tensors, made if isinstance(made, list) else [made])


def _estimate_data_distribution(labels: Tensor, num_classes: int, smoothing_constant: int = 10) -> Tensor:
    """How often the classes have come till now, as if each had come so many times before."""
    if smoothing_constant <= 0:
        raise at_user_line(ValueError("smoothing_constant must be more than 0, got %s" % smoothing_constant))
    seen = Variable(np.full([num_classes], smoothing_constant, np.int64), trainable=False, name="class_count")
    now = math_ops.reduce_sum(array_ops.one_hot(math_ops.cast(labels, dtypes.int64), num_classes, dtype=dtypes.int64), 0)
    counted = seen.assign_add(now) + 0  # as it is now: others go on counting
    return math_ops.cast(counted, dtypes.float32) / math_ops.cast(math_ops.reduce_sum(counted), dtypes.float32)


def _verify_input(tensor_list: List[Tensor], labels: Tensor, probs_list: List[Tensor]) -> Tuple[List[Tensor], Tensor, List[Tensor]]:
    """The arguments, which fail in the step where batches differ, labels are no classes or probabilities do not sum up to 1; ValueError where that
    is known before."""
    sure = []
    for probs in probs_list:
        shape = probs.get_shape()
        if not shape.is_fully_defined() or shape.ndims != 1 or shape != probs_list[0].get_shape():
            raise at_user_line(ValueError("Probabilities must be vectors of one known length, got %s" % [p.get_shape() for p in probs_list]))
        total = math_ops.reduce_sum(probs)
        checks = [check_ops.assert_non_negative(probs), check_ops.assert_less(total, 1.0 + 1e-6), check_ops.assert_less(1.0 - 1e-6, total)]
        sure.append(control_flow_ops.with_dependencies(checks, probs))
    labels.get_shape().assert_has_rank(1)
    for tensor in tensor_list:
        batch = tensor.get_shape().with_rank_at_least(1)[:1]
        batch.assert_is_compatible_with(labels.get_shape().with_rank(1))
    count, classes = array_ops.shape(labels)[0], sure[0].get_shape()[0].value
    some = check_ops.assert_positive(count)
    tensors = [control_flow_ops.with_dependencies([some, check_ops.assert_equal(array_ops.shape(t)[0], count)], t) for t in tensor_list]
    check_ops.assert_integer(labels)
    known = [some, check_ops.assert_non_negative(labels), check_ops.assert_less(labels, math_ops.cast(classes, labels.dtype))]
    return tensors, control_flow_ops.with_dependencies(known, labels), sure


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
        if isinstance(tensors, Tensor):
            raise at_user_line(TypeError("tensors must be a list of tensors, got %s" % tensors))
        each, classes = [convert_to_tensor(t) for t in tensors], convert_to_tensor(labels)
        target = convert_to_tensor(target_probs, dtypes.float32)
        if not enqueue_many:
            each, classes = [array_ops.expand_dims(t, 0) for t in each], array_ops.expand_dims(classes, 0)
        if init_probs is None:
            target.get_shape().assert_is_fully_defined()
            initial = _estimate_data_distribution(classes, target.get_shape().num_elements())  # type: ignore[arg-type]
        else:
            initial = convert_to_tensor(init_probs, dtypes.float32)
        each, classes, (initial, target) = _verify_input(each, classes, [initial, target])
        # The step that reads an element counts its class, too: what decides about it comes along through the queue.
        *values, label, chance = _one_by_one([*each, classes, array_ops.gather(_chances(initial, target), classes)], threads_per_queue, queue_capacity)
        made = maybe_batch([*values, label], gen_ops.less(random_ops.random_uniform([]), chance), batch_size, threads_per_queue)
        return made[:-1], made[-1]
