# SPDX-License-Identifier: Apache-2.0
"""Batches of tensors, made by queues that threads fill."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from millrace import summary
from millrace.framework import tensor_shape
from millrace.framework.composite_tensors import convert_to_tensor_or_sparse_tensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import control_flow_ops, gen_ops, math_ops
from millrace.ops.dialects import either
from millrace.ops.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from millrace.train import sparse_batching
from millrace.train.input import fullness
from millrace.train.queue_runner import QueueRunner, add_queue_runner


class _InOrder:
    """Batches in the order of coming."""

    def __init__(self, capacity: int, dynamic_pad: bool, shared_name: Optional[str]) -> None:
        self._capacity, self._class, self._shared_name = capacity, PaddingFIFOQueue if dynamic_pad else FIFOQueue, shared_name

    def queue(self, types: List[Any], shapes: Any) -> QueueBase:
        return self._class(capacity=self._capacity, dtypes=types, shapes=shapes, shared_name=self._shared_name)

    def summarise(self, queue: QueueBase) -> None:
        summary.scalar("fraction_of_%d_full" % self._capacity, fullness(queue, None, self._capacity))


class _Shuffled:
    """Batches of elements that are chosen at random."""

    def __init__(self, capacity: int, min_after_dequeue: int, seed: Optional[int], shared_name: Optional[str]) -> None:
        self._capacity, self._least, self._seed, self._shared_name = capacity, min_after_dequeue, seed, shared_name

    def queue(self, types: List[Any], shapes: Any) -> QueueBase:
        return RandomShuffleQueue(
            capacity=self._capacity, min_after_dequeue=self._least, dtypes=types, shapes=shapes, seed=self._seed, shared_name=self._shared_name
        )

    def summarise(self, queue: QueueBase) -> None:
        summary.scalar("fraction_over_%d_of_%d_full" % (self._least, self._capacity - self._least), fullness(queue, self._least, self._capacity))

    def check(self) -> None:
        """ValueError when the queue could never have enough to choose from."""
        if self._capacity <= self._least:
            raise at_user_line(ValueError("capacity %d must be bigger than min_after_dequeue %d." % (self._capacity, self._least)))


def listed(tensors: Any) -> List[Any]:
    """The tensors of a list, or of a dict by the order of its keys."""
    return [tensors[k] for k in sorted(tensors, key=str)] if isinstance(tensors, dict) else list(tensors)


def in_form_of(given: Any, made: Any) -> Any:
    """Tensors in the structure that was given: a dict or a list."""
    return dict(zip(sorted(given, key=str), made)) if isinstance(given, dict) else list(made)


def as_given(given: Any, made: Any) -> Any:
    """Tensors in the structure that was given; of a list of one tensor it alone, as a queue hands it out."""
    return made[0] if len(made) == 1 and not isinstance(given, dict) else in_form_of(given, made)


_as_tensor_list, _as_original_type = listed, as_given


def known_keep_input(keep_input: Any, enqueue_many: bool) -> Tensor:
    keep = convert_to_tensor(keep_input)
    rank = keep.get_shape().ndims
    if rank is None:
        raise at_user_line(ValueError("`keep_input` dimensions must be known at graph construction."))
    if rank == 1 and not enqueue_many:
        raise at_user_line(ValueError("`keep_input` cannot be a vector when `enqueue_many=False`."))
    if rank > 1:
        raise at_user_line(ValueError("`keep_input` must be 0 or 1 dimensions."))
    return keep


def types_of(lists: Sequence[List[Tensor]]) -> List[Any]:
    found = [[t.dtype.base_dtype for t in tensors] for tensors in lists]
    for other in found[1:]:
        if other != found[0]:
            raise at_user_line(
                TypeError("Expected types to be consistent: %s vs. %s." % (", ".join(t.name for t in found[0]), ", ".join(t.name for t in other)))
            )
    return found[0]


def shapes_of(lists: Sequence[List[Tensor]], enqueue_many: bool) -> List[tensor_shape.TensorShape]:
    """The shapes of elements, those of the first list; the others' must fit."""
    found: List[tensor_shape.TensorShape] = []
    for column in zip(*lists):
        shapes = [t.get_shape() for t in column]
        for tensor, shape in zip(column, shapes):
            if shape.ndims is None:
                raise at_user_line(ValueError("Cannot infer Tensor's rank: %s" % tensor))
        if enqueue_many:
            shapes = [s.with_rank_at_least(1)[1:] for s in shapes]
        for other in shapes[1:]:
            shapes[0].merge_with(other)
        found.append(shapes[0])
    return found


def _filler(queue: QueueBase, tensors: List[Tensor], enqueue_many: bool, keep: Tensor) -> Any:
    """The operation that puts in what is to be kept."""
    enqueue = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep.get_shape().ndims == 1:
        parts = math_ops.cast(keep, "int32")
        return enqueue([gen_ops.dynamic_partition(t, parts, 2)[1] for t in tensors])
    return control_flow_ops.smart_cond(keep, lambda: enqueue(tensors), control_flow_ops.no_op)


def _build(
    scope_name: str,
    given: List[Any],
    kind: Any,
    batch_size: Any,
    keep_input: Any,
    threads: int,
    enqueue_many: bool,
    shapes: Any,
    allow_smaller_final_batch: bool,
    name: Optional[str],
) -> Any:
    """The queue, what fills it (a list of tensors each, in several threads), and a batch of it."""
    lists = [listed(tensors) for tensors in given]
    with name_scope(name, scope_name, [t for tensors in lists for t in tensors] + [keep_input]) as scope:
        if isinstance(kind, _Shuffled):
            kind.check()
        lists = [[convert_to_tensor_or_sparse_tensor(t) for t in tensors] for tensors in lists]
        if not lists[0]:
            raise at_user_line(ValueError("Expected at least one tensor in %s()." % scope_name))
        keep = known_keep_input(keep_input, enqueue_many)
        stored, sparse = sparse_batching.store(lists, enqueue_many, keep)
        queue = kind.queue(types_of(stored), shapes_of(stored, enqueue_many) if shapes is None else shapes)
        fillers = [_filler(queue, tensors, enqueue_many, keep) for tensors in stored]
        add_queue_runner(QueueRunner(queue, fillers * threads))
        kind.summarise(queue)
        dequeue = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
        made = dequeue(batch_size, name=scope)
        return as_given(given[0], sparse_batching.restore([made] if isinstance(made, Tensor) else made, sparse))


def _same_keys(tensors_list: Any) -> List[Any]:
    if not tensors_list:
        raise at_user_line(ValueError("Expected at least one set of tensors"))
    if isinstance(tensors_list[0], dict) and any(set(t) != set(tensors_list[0]) for t in tensors_list[1:]):
        raise at_user_line(ValueError("All dictionaries in tensors_list must have the same keys"))
    return list(tensors_list)


def batch(
    tensors: Any = None,
    batch_size: Any = None,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
    tensor_list: Any = None,
) -> Any:
    """Batches of the tensors of `tensors`, in the order of coming."""
    return maybe_batch(
        either("tensors", tensors, "tensor_list", tensor_list),
        True,
        batch_size,
        num_threads,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> Any:
    """Batches of the tensors of those steps in which `keep_input` is true."""
    return _build(
        "batch",
        [tensors],
        _InOrder(capacity, dynamic_pad, shared_name),
        batch_size,
        keep_input,
        num_threads,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
    )


def batch_join(
    tensors_list: Any = None,
    batch_size: Any = None,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
    tensor_list_list: Any = None,
) -> Any:
    """Batches of the tensors of several lists, each of which has its thread."""
    return maybe_batch_join(
        either("tensors_list", tensors_list, "tensor_list_list", tensor_list_list),
        True,
        batch_size,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch_join(
    tensors_list: Any,
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> Any:
    """batch_join of those steps in which `keep_input` is true."""
    return _build(
        "batch_join",
        _same_keys(tensors_list),
        _InOrder(capacity, dynamic_pad, shared_name),
        batch_size,
        keep_input,
        1,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
    )


def shuffle_batch(
    tensors: Any = None,
    batch_size: Any = None,
    capacity: Any = None,
    min_after_dequeue: Any = None,
    num_threads: int = 1,
    seed: Optional[int] = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
    tensor_list: Any = None,
) -> Any:
    """Batches of the tensors of `tensors`, in a random order: each chosen among at least min_after_dequeue."""
    return maybe_shuffle_batch(
        either("tensors", tensors, "tensor_list", tensor_list),
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        num_threads,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: Optional[int] = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> Any:
    """shuffle_batch of those steps in which `keep_input` is true."""
    return _build(
        "shuffle_batch",
        [tensors],
        _Shuffled(capacity, min_after_dequeue, seed, shared_name),
        batch_size,
        keep_input,
        num_threads,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
    )


def shuffle_batch_join(
    tensors_list: Any = None,
    batch_size: Any = None,
    capacity: Any = None,
    min_after_dequeue: Any = None,
    seed: Optional[int] = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
    tensor_list_list: Any = None,
) -> Any:
    """shuffle_batch of several lists, each of which has its thread."""
    return maybe_shuffle_batch_join(
        either("tensors_list", tensors_list, "tensor_list_list", tensor_list_list),
        batch_size,
        capacity,
        min_after_dequeue,
        True,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: Optional[int] = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> Any:
    """shuffle_batch_join of those steps in which `keep_input` is true."""
    return _build(
        "shuffle_batch_join",
        _same_keys(tensors_list),
        _Shuffled(capacity, min_after_dequeue, seed, shared_name),
        batch_size,
        keep_input,
        1,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        name,
    )
