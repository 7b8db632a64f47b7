# SPDX-License-Identifier: Apache-2.0
"""Structural models: a level with a trend, what comes and goes, and cycles (A. C. Harvey, Forecasting, Structural Time Series Models and the Kalman Filter)."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.ensembles import StateSpaceCorrelatedFeaturesEnsemble, StateSpaceIndependentEnsemble
from millrace.contrib.timeseries.state_space.level_trend import AdderStateSpaceModel
from millrace.contrib.timeseries.state_space.periodic import CycleStateSpaceModel, ResolutionCycleModel
from millrace.contrib.timeseries.state_space.state_space_model import StateSpaceModel
from millrace.contrib.timeseries.state_space.varma import VARMA
from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.ops.variable_scope import variable_scope

_Make = Callable[[StateSpaceModelConfiguration], StateSpaceModel]


def _of_each_feature(scope: str, make: _Make, options: StateSpaceModelConfiguration) -> StateSpaceModel:
    """A univariate model for each feature, with variables below scope/feature0 and so on."""
    with variable_scope(scope):
        members = []
        for i in range(options.num_features):
            with variable_scope("feature%d" % i):
                members.append(make(options._replace(num_features=1)))
        return StateSpaceCorrelatedFeaturesEnsemble(members, options)


def _members(
    autoregressive_order: int, moving_average_order: int, use_level_noise: bool, cycles: Sequence[_Make], configuration: StateSpaceModelConfiguration
) -> List[StateSpaceModel]:
    """A level with a trend, a VARMA and cycles, whose observations have no noise of their own."""
    options = configuration._replace(use_observation_noise=False)
    level = _of_each_feature("adder", lambda one: AdderStateSpaceModel(use_level_noise, configuration=one), options)
    with variable_scope("varma"):
        varma = VARMA(autoregressive_order, moving_average_order, configuration=options)
    return [level, varma, *(_of_each_feature("cycle%d" % i, make, options) for i, make in enumerate(cycles))]


class StructuralEnsemble(StateSpaceIndependentEnsemble):
    """Level and trend, VARMA, and for each periodicity, a whole number of steps, a cycle with a value for each step."""

    def __init__(
        self,
        periodicities: Any,
        moving_average_order: int,
        autoregressive_order: int,
        use_level_noise: bool = True,
        configuration: StateSpaceModelConfiguration = StateSpaceModelConfiguration(),
    ) -> None:
        cycles = [_cycle(period) for period in nest.flatten(periodicities)]
        super().__init__(_members(autoregressive_order, moving_average_order, use_level_noise, cycles, configuration), configuration)


class MultiResolutionStructuralEnsemble(StateSpaceIndependentEnsemble):
    """Level and trend, VARMA, and for each periodicity, of any real length, a smooth cycle of cycle_num_latent_values: one number for all, or a list."""

    def __init__(
        self,
        cycle_num_latent_values: Any,
        moving_average_order: int,
        autoregressive_order: int,
        periodicities: Any,
        use_level_noise: bool = True,
        configuration: StateSpaceModelConfiguration = StateSpaceModelConfiguration(),
    ) -> None:
        periods = [] if periodicities is None else nest.flatten(periodicities)
        sizes = nest.flatten(cycle_num_latent_values)
        if len(sizes) not in (1, len(periods)):
            raise at_user_line(
                ValueError(
                    "`cycle_num_latent_values` must either be a list with the same size as `periodicity` or a scalar. Received length %d "
                    "`cycle_num_latent_values`, while `periodicities` has length %d." % (len(sizes), len(periods))
                )
            )
        sizes = sizes * len(periods) if len(sizes) == 1 else sizes
        cycles = [_smooth_cycle(size, period) for size, period in zip(sizes, periods)]
        super().__init__(_members(autoregressive_order, moving_average_order, use_level_noise, cycles, configuration), configuration)


def _cycle(period: int) -> _Make:
    return lambda options: CycleStateSpaceModel(period, configuration=options)


def _smooth_cycle(size: int, period: float) -> _Make:
    return lambda options: ResolutionCycleModel(size, period, configuration=options)
