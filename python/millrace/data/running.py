# SPDX-License-Identifier: Apache-2.0
"""Functions for Dataset.apply that say how a pipeline is run, and what is counted of its elements."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from millrace.data.dataset import Dataset, _int64
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import gen_ops

_Transformation = Callable[[Dataset], Dataset]


# ---- statistics ----


class StatsAggregator:
    """Where data sets count: give it to Options.experimental_stats.aggregator, and put get_summary() into the summaries of the graph."""

    def __init__(self) -> None:
        with control_dependencies(None):
            self._resource = gen_ops.stats_aggregator_handle()

    def get_summary(self) -> Tensor:
        """A scalar string: a Summary with a histogram for each tag."""
        return gen_ops.stats_aggregator_summary(self._resource)

    def _counting(self, dataset: Dataset, tag: Any, counter_prefix: Any) -> Dataset:
        return dataset._same(gen_ops.set_stats_aggregator_dataset(dataset._variant, self._resource, tag, counter_prefix, *dataset._spec))


def set_stats_aggregator(stats_aggregator: StatsAggregator, prefix: Any = "", counter_prefix: Any = "") -> _Transformation:
    """latency_stats and bytes_produced_stats before this count in stats_aggregator, with the prefix before their tags."""
    return lambda dataset: stats_aggregator._counting(dataset, prefix, counter_prefix)


def latency_stats(tag: Any) -> _Transformation:
    """The microseconds that each element takes are counted, where the data set's options have an aggregator."""
    return lambda dataset: dataset._same(gen_ops.latency_stats_dataset(dataset._variant, convert_to_tensor(tag, dtypes.string), *dataset._spec))


def bytes_produced_stats(tag: Any) -> _Transformation:
    """The bytes of each element are counted, where the data set's options have an aggregator."""
    return lambda dataset: dataset._same(gen_ops.bytes_produced_stats_dataset(dataset._variant, convert_to_tensor(tag, dtypes.string), *dataset._spec))


# ---- time and threads ----


def sleep(sleep_microseconds: Any) -> _Transformation:
    """The elements, before each of which time passes."""
    return lambda dataset: dataset._same(gen_ops.sleep_dataset(dataset._variant, _int64(sleep_microseconds), *dataset._spec))


class PrivateThreadPool:
    """Something for override_threadpool. Data sets have threads of their own here, and use none of it."""

    def __init__(self, num_threads: int, display_name: Optional[str] = None, max_intra_op_parallelism: int = 1) -> None:
        self._resource = gen_ops.thread_pool_handle(num_threads, display_name=display_name or "", max_intra_op_parallelism=max_intra_op_parallelism)


def override_threadpool(dataset: Dataset, thread_pool: Any) -> Dataset:
    """The data set: it has threads of its own."""
    if not isinstance(thread_pool, PrivateThreadPool):
        return dataset
    return dataset._same(gen_ops.thread_pool_dataset(dataset._variant, thread_pool._resource, *dataset._spec))


# ---- rewriting, of which there is none ----


def assert_next(transformations: Any) -> _Transformation:
    """The data set. InvalidArgumentError, when an iterator begins, unless the data sets over it are so called; not where its options, or
    `optimize`, want it rewritten, which is not done."""
    names = np.asarray(transformations, object)
    return lambda dataset: dataset._same(gen_ops.assert_next_dataset(dataset._variant, convert_to_tensor(names, dtypes.string), *dataset._spec))


def model() -> _Transformation:
    """The data set: no pipeline is tuned."""
    return lambda dataset: dataset._same(gen_ops.model_dataset(dataset._variant, output_types=dataset._spec[0], output_shapes=dataset._spec[1]))


def non_serializable() -> _Transformation:
    """The data set."""
    return lambda dataset: dataset._same(gen_ops.non_serializable_dataset(dataset._variant, *dataset._spec))


def optimize(optimizations: Any = None) -> _Transformation:
    """The data set: no pipeline is rewritten."""
    names = convert_to_tensor(np.asarray([] if optimizations is None else optimizations, object), dtypes.string)
    return lambda dataset: dataset._same(gen_ops.optimize_dataset(dataset._variant, names, *dataset._spec))
