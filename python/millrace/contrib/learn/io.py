# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.learn.io: input functions, batches of Example messages by queues."""

from __future__ import annotations

import collections
from typing import Any, Callable, Dict, Optional

from millrace.contrib.learn.graph_io import (  # noqa: F401
    queue_parsed_features,
    read_batch_examples,
    read_batch_features,
    read_batch_record_features,
    read_keyed_batch_examples,
    read_keyed_batch_examples_shared_queue,
    read_keyed_batch_features,
    read_keyed_batch_features_shared_queue,
)
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
from millrace.ops import array_ops, parsing_ops

InputFnOps = collections.namedtuple("InputFnOps", ["features", "labels", "default_inputs"])


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
