# SPDX-License-Identifier: Apache-2.0
"""What a series is like, as its windows come by: means, variances, where it begins, how long it is. Models scale what they see by it."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from millrace.contrib.timeseries.feature_keys import TrainEvalFeatures
from millrace.framework import dtypes, nest
from millrace.framework.graph import Operation, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.ops.control_flow_ops import cond, group, no_op
from millrace.ops.init_ops import ones_initializer, zeros_initializer
from millrace.ops.variable_scope import get_variable, variable_scope


class Moments(NamedTuple):
    """A mean and a variance of each feature, [features]."""

    mean: Any
    variance: Any


class InputStatistics(NamedTuple):
    """What is known of a series: moments of its first values and of all, its first time, and about how many values it has."""

    series_start_moments: Any
    overall_feature_moments: Any
    start_time: Any
    total_observation_count: Any


class _Totals(NamedTuple):
    """What the statistics are reckoned from."""

    max_time_seen: Any
    chunk_count: Any
    inter_observation_duration_sum: Any
    example_count: Any
    overall_feature_sum: Any
    overall_feature_sum_of_squares: Any


def _variable(name: str, shape: Any, dtype: Any, initializer: Any = zeros_initializer()) -> Any:
    return get_variable(name, shape, dtype, initializer, trainable=False)


class InputStatisticsFromMiniBatch:
    """Statistics of all windows that have come by, in variables that each batch of a training updates."""

    def __init__(self, num_features: int, dtype: Any, starting_variance_window_size: int = 16) -> None:
        """The first starting_variance_window_size values tell how a series begins."""
        self._num_features, self._dtype, self._start_size = num_features, dtype, starting_variance_window_size

    def initialize_graph(self, features: Dict[str, Any], update_statistics: bool = True) -> InputStatistics:
        """The statistics, [features] or scalars. They take in the batch of `features` (times [batch, window], values [batch, window, features]) first,
        where it has both and update_statistics says so."""
        times, values = features.get(TrainEvalFeatures.TIMES), features.get(TrainEvalFeatures.VALUES)
        with variable_scope("input_statistics", use_resource=True):
            statistics = self._statistics()
        with variable_scope("input_statistics_auxiliary", use_resource=True):
            totals = self._totals()
        if not update_statistics or times is None or values is None:
            return statistics
        with control_dependencies([self._update(statistics, totals, times, values)]):
            now = nest.map_structure(array_ops.identity, statistics)
            return now._replace(start_time=math_ops.minimum(now.start_time, math_ops.reduce_min(times)))

    def _statistics(self) -> InputStatistics:
        def moments(mean: str, variance: str) -> Moments:
            size = [self._num_features]
            return Moments(_variable(mean, size, self._dtype), _variable(variance, size, self._dtype, ones_initializer()))

        return InputStatistics(
            moments("series_start_mean", "series_start_variance"),
            moments("overall_feature_mean", "overall_feature_var"),
            _variable("start_time", None, dtypes.int64, dtypes.int64.max),
            _variable("total_observation_count", [], dtypes.int64, ones_initializer()),
        )

    def _totals(self) -> _Totals:
        sizes = {"overall_feature_sum": [self._num_features], "overall_feature_sum_of_squares": [self._num_features]}
        counted = ("chunk_count", "example_count")
        made = {"max_time_seen": _variable("max_time_seen", None, dtypes.int64, dtypes.int64.min)}
        for name in _Totals._fields[1:]:
            made[name] = _variable(name, sizes.get(name, []), dtypes.int64 if name in counted else self._dtype)
        return _Totals(**made)

    def _update(self, statistics: InputStatistics, totals: _Totals, times: Any, values: Any) -> Operation:
        """Takes in a batch of windows."""
        dtype, values = self._dtype, math_ops.cast(values, self._dtype)
        spans = math_ops.cast(math_ops.reduce_max(times, axis=1) - math_ops.reduce_min(times, axis=1), dtype)
        gaps = spans / math_ops.cast(array_ops.shape(times)[1] - 1, dtype)
        added = [
            totals.max_time_seen.assign(math_ops.maximum(totals.max_time_seen, math_ops.reduce_max(times))),
            totals.chunk_count.assign_add(array_ops.shape(times, out_type=dtypes.int64)[0]),
            totals.inter_observation_duration_sum.assign_add(math_ops.reduce_sum(gaps)),
            totals.example_count.assign_add(array_ops.size(times, out_type=dtypes.int64)),
            totals.overall_feature_sum.assign_add(math_ops.reduce_sum(values, axis=[0, 1])),
            totals.overall_feature_sum_of_squares.assign_add(math_ops.reduce_sum(values**2, axis=[0, 1])),
        ]
        with control_dependencies([group(*added)]):
            now = _Totals(*(total.read_value() for total in totals))
            count = math_ops.cast(now.example_count, dtype)
            mean = now.overall_feature_sum / count
            variance = count / (count - 1.0) * (now.overall_feature_sum_of_squares / count - mean**2)
            begun = self._begin(statistics, times, values)
            with control_dependencies([begun]):
                began = statistics.start_time.assign(math_ops.minimum(statistics.start_time.read_value(), math_ops.reduce_min(times)))
            with control_dependencies([began]):
                span = math_ops.cast(now.max_time_seen - statistics.start_time.read_value() + 1, dtype)
            gap = now.inter_observation_duration_sum / math_ops.cast(now.chunk_count, dtype)
            return group(
                statistics.overall_feature_moments.mean.assign(mean),
                statistics.overall_feature_moments.variance.assign(variance),
                statistics.total_observation_count.assign(math_ops.cast(math_ops.round(span / gap), dtypes.int64)),
            )

    def _begin(self, statistics: InputStatistics, times: Any, values: Any) -> Operation:
        """Where no window began earlier than the first of these, the series begins like that one."""
        first = math_ops.cast(math_ops.argmin(times[:, 0]), dtypes.int32)

        def take() -> Operation:
            mean, variance = nn_ops.moments(values[first, : self._start_size], [0])
            return group(statistics.series_start_moments.mean.assign(mean), statistics.series_start_moments.variance.assign(variance))

        return cond(gen_ops.less_equal(times[first, 0], statistics.start_time.read_value()), take, no_op)
