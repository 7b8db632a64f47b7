# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn's batches of records of files by queues that queue runners fill, with their keys or without, parsed or not."""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace import gfile, summary, train
from millrace.framework import dtypes, errors
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, parsing_ops, state_ops
from millrace.ops.queues import FIFOQueue
from millrace.ops.readers import TFRecordReader
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.train.queue_runner import QueueRunner, add_queue_runner

_Reader = Callable[[], Any]
_KEY = "__key__"  # of the records' keys among what parse_fn gives


def _get_file_names(file_pattern: Any, randomize_input: bool) -> List[str]:
    """The files of a pattern, or of each of a list; sorted, unless their order is to be random."""
    if isinstance(file_pattern, (list, tuple)) and not file_pattern:
        raise at_user_line(ValueError("No files given to dequeue_examples."))
    patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    found = [name for pattern in patterns for name in gfile.Glob(pattern)]
    if not found:
        raise at_user_line(ValueError("No files match %s." % (file_pattern,)))
    return found if randomize_input else sorted(found)


def _check(batch_size: Any, queue_capacity: Any, read_batch_size: Any, num_threads: Any, num_epochs: Any) -> None:
    def positive(number: Any) -> bool:
        return number is not None and (isinstance(number, Tensor) or number > 0)

    if not positive(queue_capacity):
        raise at_user_line(ValueError("Invalid queue_capacity %s." % queue_capacity))
    if not positive(batch_size) or not isinstance(batch_size, Tensor) and batch_size >= queue_capacity:
        raise at_user_line(ValueError("Invalid batch_size %s, with queue_capacity %s." % (batch_size, queue_capacity)))
    for name, number in (("read_batch_size", read_batch_size), ("num_threads", num_threads)):
        if not positive(number):
            raise at_user_line(ValueError("Invalid %s %s." % (name, number)))
    if num_epochs is not None and num_epochs <= 0:
        raise at_user_line(ValueError("Invalid num_epochs %s." % num_epochs))


def _next_shared(names: List[str], shuffle: bool, num_epochs: Optional[int], seed: Optional[int]) -> Tensor:
    """The next of names, by a counter in a variable: workers that share it take turns. OutOfRange behind num_epochs."""
    if shuffle and seed:
        random.seed(seed)
    listed: List[str] = []
    for _ in range(num_epochs or 1):
        names = random.sample(names, len(names)) if shuffle else names
        listed += names
    with variable_scope("obtain_next"):
        start = constant(0 if num_epochs else -1, dtypes.int64)
        counter = get_variable("obtain_next_counter", initializer=start, trainable=False, use_resource=False)
        all_names = get_variable("obtain_next_expanded_list", initializer=constant(listed), trainable=False, use_resource=False)
        if num_epochs:
            return array_ops.gather(all_names, gen_ops.count_up_to(counter, len(listed)))
        return array_ops.gather(all_names, math_ops.mod(state_ops.assign_add(counter, constant(1, dtypes.int64), use_locking=True), len(listed)))


def _file_name_queue(names: List[str], shared: bool, shuffle: bool, num_epochs: Optional[int], seed: Optional[int]) -> Any:
    with name_scope("file_name_queue") as scope:
        if not shared:
            return train.string_input_producer(constant(names, name="input"), num_epochs=num_epochs, shuffle=shuffle, name=scope, seed=seed)
        queue = FIFOQueue(1, [dtypes.string], shapes=[[]])
        add_queue_runner(QueueRunner(queue, [queue.enqueue(_next_shared(names, shuffle, num_epochs, seed))]))
        return queue


def _read(queue: Any, reader: _Reader, read_batch_size: int, filter_fn: Any, parse_fn: Any) -> Any:
    """(keys, records) of one thread, or a dict where parse_fn gives one."""
    keys, records = reader().read_up_to(queue, read_batch_size) if read_batch_size > 1 else reader().read(queue)
    if filter_fn is not None:
        kept = filter_fn(keys, records)
        keys, records = array_ops.boolean_mask(keys, kept), array_ops.boolean_mask(records, kept)
    if parse_fn is not None:
        records = parse_fn(records)
    return {**records, _KEY: keys} if isinstance(records, dict) else (keys, records)


def _read_keyed_batch_examples_helper(
    file_pattern: Any,
    batch_size: Any,
    reader: _Reader,
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    filter_fn: Any = None,
    parse_fn: Any = None,
    setup_shared_queue: bool = False,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Tuple[Tensor, Any]:
    names = _get_file_names(file_pattern, randomize_input)
    _check(batch_size, queue_capacity, read_batch_size, num_threads, num_epochs)
    with name_scope(name, "read_batch_examples", [file_pattern]) as scope:
        queue = _file_name_queue(names, setup_shared_queue, randomize_input, num_epochs, seed)
        with name_scope("read"):
            threads = [_read(queue, reader, read_batch_size, filter_fn, parse_fn) for _ in range(num_threads)]
        options: Dict[str, Any] = dict(enqueue_many=read_batch_size > 1, allow_smaller_final_batch=num_epochs is not None, name=scope)
        if randomize_input:
            least = int(queue_capacity * 0.4) if isinstance(batch_size, Tensor) else max(queue_capacity - 3 * batch_size, batch_size)
            batch = train.shuffle_batch_join(threads, batch_size, queue_capacity, least, seed=seed, **options)
        else:
            batch = train.batch_join(threads, batch_size, queue_capacity, **options)
        if isinstance(batch, dict):
            return batch.pop(_KEY), batch
        keys, records = batch
        return keys, records


def read_keyed_batch_examples(
    file_pattern: Any,
    batch_size: Any,
    reader: _Reader,
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Any = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Tuple[Tensor, Any]:
    """(keys, batches of the records of files): each a serialized Example, or what parse_fn makes of it."""
    options = (randomize_input, num_epochs, queue_capacity, num_threads, read_batch_size, None, parse_fn, False, name, seed)
    return _read_keyed_batch_examples_helper(file_pattern, batch_size, reader, *options)


def read_keyed_batch_examples_shared_queue(
    file_pattern: Any,
    batch_size: Any,
    reader: _Reader,
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Any = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Tuple[Tensor, Any]:
    """read_keyed_batch_examples of workers that share the files: their names are taken in turns, by a variable."""
    options = (randomize_input, num_epochs, queue_capacity, num_threads, read_batch_size, None, parse_fn, True, name, seed)
    return _read_keyed_batch_examples_helper(file_pattern, batch_size, reader, *options)


def read_batch_examples(
    file_pattern: Any,
    batch_size: Any,
    reader: _Reader,
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Any = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Any:
    """read_keyed_batch_examples without the keys."""
    options = (randomize_input, num_epochs, queue_capacity, num_threads, read_batch_size, parse_fn, name, seed)
    return read_keyed_batch_examples(file_pattern, batch_size, reader, *options)[1]


def queue_parsed_features(
    parsed_features: Dict[str, Any], keys: Any = None, feature_queue_capacity: int = 100, num_enqueue_threads: int = 2, name: Optional[str] = None
) -> Tuple[Any, Dict[str, Any]]:
    """(keys, features) by way of a queue, so that threads of queue runners parse them."""
    with name_scope(name, "queue_parsed_features"):
        names = sorted(parsed_features)
        parts: List[Tensor] = []
        for key in names:
            value = parsed_features[key]
            parts += [value.indices, value.values, value.dense_shape] if isinstance(value, SparseTensor) else [value]
        parts += [] if keys is None else [keys]
        queue = FIFOQueue(feature_queue_capacity, [part.dtype for part in parts])
        full = math_ops.cast(queue.size(), dtypes.float32) * (1.0 / feature_queue_capacity)
        summary.scalar("queue/parsed_features/%s/fraction_of_%d_full" % (queue.name, feature_queue_capacity), full)
        ends = (errors.OutOfRangeError, errors.CancelledError)
        enqueues = [queue.enqueue(parts) for _ in range(num_enqueue_threads)]
        add_queue_runner(QueueRunner(queue, enqueues, queue_closed_exception_types=ends))
        taken = queue.dequeue()
        left = list(taken) if isinstance(taken, (list, tuple)) else [taken]
        for made, part in zip(left, parts):
            made.set_shape(part.get_shape())
        features: Dict[str, Any] = {}
        for key in names:
            count = 3 if isinstance(parsed_features[key], SparseTensor) else 1
            features[key], left = SparseTensor(*left[:3]) if count == 3 else left[0], left[count:]
        return None if keys is None else left[0], features


def read_keyed_batch_features(
    file_pattern: Any,
    batch_size: Any,
    features: Dict[str, Any],
    reader: _Reader,
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    parse_fn: Any = None,
    name: Optional[str] = None,
    read_batch_size: Optional[int] = None,
) -> Tuple[Tensor, Dict[str, Any]]:
    """(keys, batches of Example messages of files as a dict of tensors)."""
    with name_scope(name, "read_batch_features", [file_pattern]) as scope:
        together = batch_size if read_batch_size is None else read_batch_size
        options = (randomize_input, num_epochs, queue_capacity, reader_num_threads, together, parse_fn, scope)
        keys, examples = read_keyed_batch_examples(file_pattern, batch_size, reader, *options)
        return queue_parsed_features(parsing_ops.parse_example(examples, features), keys, feature_queue_capacity, num_enqueue_threads, scope)


def read_keyed_batch_features_shared_queue(
    file_pattern: Any,
    batch_size: Any,
    features: Dict[str, Any],
    reader: _Reader,
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_queue_runners: int = 2,
    parse_fn: Any = None,
    name: Optional[str] = None,
) -> Tuple[Tensor, Dict[str, Any]]:
    """read_keyed_batch_features of workers that share the files."""
    with name_scope(name, "read_batch_features", [file_pattern]) as scope:
        options = (randomize_input, num_epochs, queue_capacity, reader_num_threads, batch_size, parse_fn, scope)
        keys, examples = read_keyed_batch_examples_shared_queue(file_pattern, batch_size, reader, *options)
        return queue_parsed_features(parsing_ops.parse_example(examples, features), keys, feature_queue_capacity, num_queue_runners, scope)


def read_batch_features(
    file_pattern: Any,
    batch_size: Any,
    features: Dict[str, Any],
    reader: _Reader,
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Any = None,
    name: Optional[str] = None,
    read_batch_size: Optional[int] = None,
) -> Dict[str, Any]:
    """read_keyed_batch_features without the keys."""
    options = (randomize_input, num_epochs, queue_capacity, reader_num_threads, feature_queue_capacity, num_enqueue_threads, parse_fn, name, read_batch_size)
    return read_keyed_batch_features(file_pattern, batch_size, features, reader, *options)[1]


def read_batch_record_features(
    file_pattern: Any,
    batch_size: Any,
    features: Dict[str, Any],
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> Dict[str, Any]:
    """read_batch_features of record files."""
    options: Dict[str, Any] = dict(queue_capacity=queue_capacity, reader_num_threads=reader_num_threads, name=name)
    return read_batch_features(file_pattern, batch_size, features, TFRecordReader, randomize_input, num_epochs, **options)
