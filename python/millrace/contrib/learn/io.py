# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn.io: input functions, batches of Example messages by queues."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, Optional

from millrace import train
from millrace.contrib.learn.learn_io import (  # noqa: F401
    HAS_DASK,
    HAS_PANDAS,
    extract_dask_data,
    extract_dask_labels,
    extract_pandas_data,
    extract_pandas_labels,
    extract_pandas_matrix,
    generator_input_fn,
    numpy_input_fn,
    pandas_input_fn,
)
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, parsing_ops

InputFnOps = collections.namedtuple("InputFnOps", ["features", "labels", "default_inputs"])


def read_batch_examples(
    file_pattern: Any,
    batch_size: int,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Any = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Any:
    """Batches of serialized Example messages of files, which queue runners read."""
    from millrace import gfile

    files = [f for p in (file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]) for f in gfile.Glob(p)]
    if not files:
        raise at_user_line(ValueError("No files match %s." % (file_pattern,)))
    if not 0 < batch_size < queue_capacity:
        raise at_user_line(ValueError("Invalid batch_size %s, with queue_capacity %s." % (batch_size, queue_capacity)))
    if num_epochs is not None and num_epochs <= 0:
        raise at_user_line(ValueError("Invalid num_epochs %s." % num_epochs))
    with name_scope(name, "read_batch_examples"):
        names = train.string_input_producer(sorted(files), num_epochs=num_epochs, shuffle=randomize_input, capacity=len(files), seed=seed)
        many = []
        for _ in range(num_threads):
            _, examples = reader().read_up_to(names, read_batch_size)
            many.append([parse_fn(examples) if parse_fn is not None else examples])
        if randomize_input:
            least = max(min(queue_capacity - 3 * batch_size, batch_size), 0)
            return train.shuffle_batch_join(
                many, batch_size, queue_capacity, least, enqueue_many=True, allow_smaller_final_batch=num_epochs is not None, seed=seed
            )
        return train.batch_join(many, batch_size, queue_capacity, enqueue_many=True, allow_smaller_final_batch=num_epochs is not None)


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Dict[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: Optional[int] = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Any = None,
    name: Optional[str] = None,
) -> Dict[str, Any]:
    """Batches of Example messages of files as a dict of tensors."""
    del feature_queue_capacity, num_enqueue_threads  # batches are parsed where they are used
    with name_scope(name, "read_batch_features"):
        examples = read_batch_examples(file_pattern, batch_size, reader, randomize_input, num_epochs, queue_capacity, reader_num_threads, parse_fn=parse_fn)
        return parsing_ops.parse_example(examples, features)


def build_parsing_serving_input_fn(feature_spec: Dict[str, Any], default_batch_size: Optional[int] = None) -> Callable[[], Any]:
    """A function that gives InputFnOps of a placeholder for serialized Example messages."""

    def input_fn() -> Any:
        examples = array_ops.placeholder(dtypes.string, [default_batch_size], "input_example_tensor")
        return InputFnOps(parsing_ops.parse_example(examples, feature_spec), None, {"examples": examples})

    return input_fn


def build_default_serving_input_fn(features: Dict[str, Any], default_batch_size: Optional[int] = None) -> Callable[[], Any]:
    """A function that gives InputFnOps of placeholders like these features."""

    def input_fn() -> Any:
        made = {key: array_ops.placeholder(t.dtype, [default_batch_size, *t.get_shape().as_list()[1:]], t.op.name) for key, t in features.items()}
        return InputFnOps(made, None, made)

    return input_fn
