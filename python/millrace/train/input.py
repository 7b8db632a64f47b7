# SPDX-License-Identifier: Apache-2.0
"""Queues that give names of files, numbers, or slices of tensors, again and again."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace import summary
from millrace.framework import dtypes, tensor_shape
from millrace.framework.composite_tensors import convert_to_tensor_or_indexed_slices
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, random_ops
from millrace.ops.queues import FIFOQueue, QueueBase
from millrace.ops.variables import Variable
from millrace.train.queue_runner import QueueRunner, add_queue_runner


def match_filenames_once(pattern: Any, name: Optional[str] = None) -> Variable:
    """A local variable with the files that match a pattern, or one of several, when it is initialised."""
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(gen_ops.matching_files(pattern), trainable=False, name=scope, validate_shape=False, collections=[GraphKeys.LOCAL_VARIABLES])


def limit_epochs(tensor: Any, num_epochs: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """The tensor, num_epochs times; then OutOfRangeError. The local variable `epochs` counts."""
    tensor = convert_to_tensor(tensor)
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise at_user_line(ValueError("num_epochs must be > 0 not %d." % num_epochs))
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        counter = Variable(constant(0, dtypes.int64), name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        with control_dependencies([counter.count_up_to(num_epochs)]):
            return array_ops.identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: Optional[int] = None,
    shuffle: bool = True,
    seed: Optional[int] = None,
    capacity: int = 32,
    shared_name: Optional[str] = None,
    summary_name: Optional[str] = None,
    name: Optional[str] = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of the rows of a tensor, and a queue runner for it."""
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.get_shape()[1:].merge_with(tensor_shape.as_shape(element_shape))
        if not shape.is_fully_defined():
            raise at_user_line(ValueError("Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"))
        if shuffle:
            rows = random_ops.random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [shape], shared_name=shared_name, name=name)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            summary.scalar(summary_name, fullness(queue, None, capacity))
        return queue


def fullness(queue: QueueBase, least: Optional[int], capacity: int) -> Tensor:
    """How much of a queue is in use, from 0 to 1: of what it has beyond the least number of elements where there is one."""
    size = queue.size()
    if least is not None:
        size = math_ops.maximum(0, size - least)
    return math_ops.cast(size, dtypes.float32) * (1.0 / (capacity - (least or 0)))


def string_input_producer(
    string_tensor: Any,
    num_epochs: Optional[int] = None,
    shuffle: bool = True,
    seed: Optional[int] = None,
    capacity: int = 32,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of strings, such as names of files."""
    empty = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, (Tensor, Variable)) and not len(string_tensor):
        raise at_user_line(ValueError(empty))
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        with control_dependencies([control_flow_ops.Assert(gen_ops.greater(array_ops.size(strings), 0), [empty])]):
            strings = array_ops.identity(strings)
        return input_producer(strings, [], num_epochs, shuffle, seed, capacity, shared_name, "fraction_of_%d_full" % capacity, scope, cancel_op)


def range_input_producer(
    limit: Any,
    num_epochs: Optional[int] = None,
    shuffle: bool = True,
    seed: Optional[int] = None,
    capacity: int = 32,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> QueueBase:
    """A queue of the numbers 0, 1, ... below a limit."""
    with name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(math_ops.range(limit), [], num_epochs, shuffle, seed, capacity, shared_name, "fraction_of_%d_full" % capacity, scope)


def slice_input_producer(
    tensor_list: Any,
    num_epochs: Optional[int] = None,
    shuffle: bool = True,
    seed: Optional[int] = None,
    capacity: int = 32,
    shared_name: Optional[str] = None,
    name: Optional[str] = None,
) -> List[Tensor]:
    """One row of each tensor, the same one of all, another in each step."""
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor_or_indexed_slices(t) for t in tensor_list]
        if not tensors:
            raise at_user_line(ValueError("Expected at least one tensor in slice_input_producer()."))
        rows = range_input_producer(array_ops.shape(tensors[0])[0], num_epochs, shuffle, seed, capacity, shared_name)
        row = rows.dequeue()
        return [array_ops.gather(t, row) for t in tensors]
