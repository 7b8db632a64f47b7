# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training: batches whose examples come as often as a rate says, by Poisson's distribution."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, init_ops, math_ops
from millrace.ops.derived_ops import random_poisson
from millrace.ops.tensor_scatter import repeat
from millrace.ops.variable_scope import get_local_variable, variable_scope
from millrace.train.moving_averages import assign_moving_average


def _repeat_range(counts: Any, name: Optional[str] = None) -> Tensor:
    """0 counts[0] times, 1 counts[1] times, and so on."""
    counts = convert_to_tensor(counts)
    return repeat(math_ops.range(array_ops.shape(counts)[0]), counts, name=name)


def resample_at_rate(inputs: Any, rates: Any, scope: Optional[str] = None, seed: Optional[int] = None, back_prop: bool = False) -> List[Tensor]:
    """The inputs with each row as often as a draw from Poisson's distribution of its rate says."""
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rates = convert_to_tensor(rates, name="rates")
        rows = _repeat_range(math_ops.cast(random_poisson(rates, (), rates.dtype, seed=seed), dtypes.int32))
        return [array_ops.gather(x, rows if back_prop else gen_ops.stop_gradient(rows)) for x in inputs]


def weighted_resample(
    inputs: List[Any], weights: Any, overall_rate: Any, scope: Optional[str] = None, mean_decay: float = 0.999, seed: Optional[int] = None
) -> Tuple[List[Tensor], Tensor]:
    """(the inputs with rows by their weights, overall_rate of them in the mean; the rate of each row): the mean weight is a moving average."""
    with name_scope(scope, "weighted_resample", inputs) as inside:
        weights = convert_to_tensor(weights)
        dtype = weights.dtype.base_dtype
        with variable_scope(scope, "estimate_mean", inputs):
            mean = get_local_variable("estimated_mean", shape=[], dtype=dtype, initializer=init_ops.zeros_initializer())
            mean = assign_moving_average(mean, math_ops.reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / mean
        rates_of, *rows = resample_at_rate([rates, *inputs], rates, scope=inside, seed=seed)
        return rows, rates_of
