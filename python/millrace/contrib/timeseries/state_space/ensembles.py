# SPDX-License-Identifier: Apache-2.0
"""State space models made of others: their states lie one behind the other."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence

from millrace.contrib.timeseries.matrices import block_diagonal
from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.state_space_model import StateSpaceModel
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops
from millrace.ops.variable_scope import variable_scope


class StateSpaceEnsemble(StateSpaceModel):
    """The base of ensembles. What is observed is the sum of what is observed of each member."""

    def __init__(self, ensemble_members: Sequence[StateSpaceModel], configuration: StateSpaceModelConfiguration) -> None:
        self._ensemble_members = ensemble_members
        super().__init__(configuration)

    def _blocks(self, member_fn: Callable[[Any], Any], name: str) -> Tensor:
        """What a function gives of each member, along the diagonal."""
        with variable_scope(self._variable_scope):
            return block_diagonal([member_fn(member) for member in self._ensemble_members], self.dtype, name)

    def _set_input_statistics(self, input_statistics: Any = None) -> None:
        super()._set_input_statistics(input_statistics)
        for member in self._ensemble_members:
            member._set_input_statistics(input_statistics)

    def _define_parameters(self, observation_transition_tradeoff_log: Any = None) -> None:
        with variable_scope(self._variable_scope):
            given = observation_transition_tradeoff_log
            tradeoff = self._tradeoff_variable() if given is None else given
            for member in self._ensemble_members:
                member._define_parameters(tradeoff)
            super()._define_parameters(tradeoff)

    def _loss_additions(self, times: Any, values: Any, mode: str) -> Any:
        of_members = gen_ops.add_n([member._loss_additions(times, values, mode) for member in self._ensemble_members])
        return super()._loss_additions(times, values, mode) + of_members

    def random_model_parameters(self, seed: Optional[int] = None) -> Dict[Any, Any]:
        """Values for tensors of the model and its members, drawn at random."""
        drawn: Dict[Any, Any] = {}
        for i, member in enumerate(self._ensemble_members):
            drawn.update(member.random_model_parameters(seed + i if seed else None))
        return {**drawn, **super().random_model_parameters(seed)}

    def get_prior_mean(self) -> Tensor:
        """Those of the members, one behind the other."""
        return array_ops.concat([member.get_prior_mean() for member in self._ensemble_members], 0, name="ensemble_prior_state_mean")

    def get_state_transition(self) -> Tensor:
        """Those of the members, along the diagonal."""
        return self._blocks(lambda member: member.get_state_transition(), "ensemble_state_transition")

    def get_noise_transform(self) -> Tensor:
        """Those of the members, along the diagonal."""
        return self._blocks(lambda member: member.get_noise_transform(), "ensemble_noise_transform")

    def transition_to_powers(self, powers: Any) -> Tensor:
        """Those of the members, along the diagonal."""
        return self._blocks(lambda member: member.transition_to_powers(powers), "ensemble_transition_to_powers")

    def get_observation_model(self, times: Any) -> Any:
        """Ensembles have only a broadcast one."""
        raise NotImplementedError("Ensembles have no observation model of their own: use get_broadcasted_observation_model")

    def get_broadcasted_observation_model(self, times: Any) -> Tensor:
        """Those of the members beside each other, [b, n, d]."""
        models = [convert_to_tensor(member.get_broadcasted_observation_model(times), self.dtype) for member in self._ensemble_members]
        return array_ops.concat(models, 2)


class StateSpaceIndependentEnsemble(StateSpaceEnsemble):
    """Members whose noises have nothing to do with each other."""

    def transition_power_noise_accumulator(self, num_steps: Any) -> Tensor:
        """Those of the members, along the diagonal."""
        return self._blocks(lambda member: member.transition_power_noise_accumulator(num_steps), "ensemble_power_noise_accumulator")

    def get_prior_covariance(self) -> Tensor:
        """Those of the members, along the diagonal."""
        return self._blocks(lambda member: member.get_prior_covariance(), "ensemble_prior_state_covariance")

    def get_state_transition_noise_covariance(self, minimum_initial_variance: float = 1e-5) -> Tensor:
        """Those that the members have, along the diagonal."""
        del minimum_initial_variance  # the members have their own
        return self._blocks(lambda member: member.state_transition_noise_covariance, "ensemble_state_transition_noise")


class StateSpaceCorrelatedFeaturesEnsemble(StateSpaceEnsemble):
    """A univariate member for each feature, all noises correlated."""

    def __init__(self, ensemble_members: Sequence[StateSpaceModel], configuration: StateSpaceModelConfiguration) -> None:
        if len(ensemble_members) != configuration.num_features:
            raise at_user_line(
                ValueError("The number of members in a StateSpaceCorrelatedFeaturesEnsemble must equal the number of features in the time series.")
            )
        if any(member.num_features != 1 for member in ensemble_members):
            raise at_user_line(ValueError("StateSpaceCorrelatedFeaturesEnsemble components must be univariate."))
        super().__init__(ensemble_members, configuration)

    def transition_power_noise_accumulator(self, num_steps: Any) -> Tensor:
        """That of the only member, or as of any model."""
        if len(self._ensemble_members) == 1:
            return self._ensemble_members[0].transition_power_noise_accumulator(num_steps)
        return super().transition_power_noise_accumulator(num_steps)

    def get_broadcasted_observation_model(self, times: Any) -> Tensor:
        """Each feature is observed of its member: [b, n, d]."""
        return self._blocks(lambda member: member.get_broadcasted_observation_model(times), "feature_ensemble_observation_model")
