# SPDX-License-Identifier: Apache-2.0
"""Input functions of estimators: windows of a series drawn at random, a whole series, and times behind an evaluation."""

from __future__ import annotations

import abc
from typing import Any, Callable, Dict, Optional, Tuple

from millrace.contrib.timeseries.continuing import canonicalize_times_or_steps_from_output
from millrace.contrib.timeseries.feature_keys import FilteringResults, PredictionFeatures, TrainEvalFeatures
from millrace.contrib.timeseries.readers import TimeSeriesReader
from millrace.framework import dtypes, nest
from millrace.framework.convert import constant
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops, random_ops, state_ops
from millrace.ops.control_flow_ops import cond
from millrace.ops.variables import Variable
from millrace.train import batching
from millrace.train.input import limit_epochs

_Batch = Tuple[Dict[str, Any], None]


def predict_continuation_input_fn(
    evaluation: Dict[str, Any], steps: Optional[int] = None, times: Any = None, exogenous_features: Any = None
) -> Callable[[], _Batch]:
    """An input function for Estimator.predict that goes on behind an evaluation: for so many steps, or times [n] or [batch, n]. Exogenous features are
    arrays [batch, steps, ...] by their names. ValueError where not just one of steps and times is given, or times do not come after the evaluation."""
    features = {
        PredictionFeatures.STATE_TUPLE: evaluation[FilteringResults.STATE_TUPLE],
        PredictionFeatures.TIMES: canonicalize_times_or_steps_from_output(times, steps, evaluation),
        **(exogenous_features or {}),
    }

    def input_fn() -> _Batch:
        return nest.map_structure(lambda value: limit_epochs(value, num_epochs=1), features), None

    return input_fn


class TimeSeriesInputFn(abc.ABC):
    """The base of input functions over a reader."""

    @abc.abstractmethod
    def create_batch(self) -> _Batch:
        """Tensors [batch, window, ...] by features' names, and no labels."""

    def __call__(self) -> _Batch:
        return self.create_batch()


class WholeDatasetInputFn(TimeSeriesInputFn):
    """The whole series in each step, a batch of one."""

    def __init__(self, time_series_reader: TimeSeriesReader) -> None:
        self._reader = time_series_reader

    def create_batch(self) -> _Batch:
        """Tensors [1, records, ...]."""
        return {name: value[None] for name, value in self._reader.read_full().items()}, None


class RandomWindowInputFn(TimeSeriesInputFn):
    """Windows of steps that follow each other, in an order drawn at random.

    A queue puts records together, batch_size windows at a time; another gives out windows by chance. Records come by again and again, so that a window may
    hold the end of a series and its beginning: such windows are dropped or sorted.
    """

    def __init__(
        self,
        time_series_reader: TimeSeriesReader,
        window_size: int,
        batch_size: int,
        queue_capacity_multiplier: int = 1000,
        shuffle_min_after_dequeue_multiplier: int = 2,
        discard_out_of_order: bool = True,
        discard_consecutive_batches_limit: int = 1000,
        jitter: bool = True,
        num_threads: Optional[int] = 2,
        shuffle_seed: Optional[int] = None,
    ) -> None:
        """Queues hold queue_capacity_multiplier batches; that of windows keeps shuffle_min_after_dequeue_multiplier batches to draw from.

        Windows whose times do not increase are dropped where discard_out_of_order says so, at most discard_consecutive_batches_limit batches without one
        that is good (then OutOfRangeError); otherwise they are sorted. With jitter a record is left out now and then, so that windows begin elsewhere. With
        a shuffle_seed, one thread and no jitter windows come in the same order each time.
        """
        self._reader, self._window_size, self._batch_size = time_series_reader, window_size, batch_size
        time_series_reader.check_dataset_size(window_size)
        self._capacity, self._kept = queue_capacity_multiplier, shuffle_min_after_dequeue_multiplier
        self._discard_out_of_order, self._discard_limit = discard_out_of_order, discard_consecutive_batches_limit
        self._jitter, self._threads, self._seed = jitter, batch_size if num_threads is None else num_threads, shuffle_seed

    def create_batch(self) -> _Batch:
        """Tensors [batch_size, window_size, ...]."""
        windows = self._windows()
        good: Any = True
        if self._discard_out_of_order:
            good = self._in_order(windows[TrainEvalFeatures.TIMES])
        else:
            windows = self._sorted(windows)
        made = batching.maybe_shuffle_batch(
            windows,
            self._batch_size,
            capacity=self._capacity * self._batch_size,
            min_after_dequeue=self._kept * self._batch_size,
            keep_input=good,
            num_threads=self._threads,
            seed=self._seed,
            enqueue_many=True,
        )
        return made, None

    def _windows(self) -> Dict[str, Tensor]:
        """Windows in the order of the records, [batch_size, window_size, ...]."""
        size = self._window_size * self._batch_size
        left_out = random_ops.random_uniform([], maxval=2, dtype=dtypes.int32) if self._jitter else 0
        records = batching.batch(self._reader.read(), size + left_out, enqueue_many=True, capacity=self._capacity * size, num_threads=self._threads)
        shape = [self._batch_size, self._window_size]
        windows = {}
        for name, value in records.items():
            value = value[left_out:] if self._jitter else value
            windows[name] = array_ops.reshape(value, array_ops.concat([shape, array_ops.shape(value)[1:]], 0))
            windows[name].set_shape([*shape, *value.get_shape()[1:]])
        return windows

    def _in_order(self, times: Tensor) -> Tensor:
        """Whether the times of each window increase. Counts batches in which no window's do."""
        good = math_ops.reduce_all(times[:, 1:] >= times[:, :-1], axis=1)
        bad_batches = Variable(constant(0, dtypes.int64), name="discarded_windows_limiter", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])

        def count() -> Tensor:
            return cond(
                math_ops.reduce_any(good),
                lambda: array_ops.identity(state_ops.assign(bad_batches, 0)),
                lambda: array_ops.identity(bad_batches.count_up_to(self._discard_limit)),
            )

        counted = cond(state_ops.is_variable_initialized(bad_batches), count, lambda: constant(0, dtypes.int64))
        with control_dependencies([counted]):
            return array_ops.identity(good)

    @staticmethod
    def _sorted(windows: Dict[str, Tensor]) -> Dict[str, Tensor]:
        """The windows, each sorted by its times."""
        times = windows[TrainEvalFeatures.TIMES]
        _, order = nn_ops.top_k(-times, k=array_ops.shape(times)[1])
        rows = array_ops.zeros_like(order) + math_ops.range(array_ops.shape(times)[0])[:, None]
        return {name: gen_ops.gather_nd(value, array_ops.stack([rows, order], axis=2)) for name, value in windows.items()}
