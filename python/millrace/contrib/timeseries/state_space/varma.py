# SPDX-License-Identifier: Apache-2.0
"""Vector autoregression with moving averages.

The state is k = max(autoregressive_order, moving_average_order + 1) blocks of all features. In a step the first block becomes a linear function of the whole
state, by the autoregressive coefficients, and each other one what the block before it was. Noise e is added to the last block, and moving average coefficients
times e to the blocks before it. The first block is observed; where there are no more autoregressive than moving average coefficients also the last, in which
noise would otherwise be lost.
"""

from __future__ import annotations

from typing import Any

from millrace.contrib.timeseries.covariances import variable_covariance_matrix
from millrace.contrib.timeseries.state_space.configuration import StateSpaceModelConfiguration
from millrace.contrib.timeseries.state_space.state_space_model import StateSpaceModel
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.init_ops import zeros_initializer
from millrace.ops.matrix_ops import eye
from millrace.ops.variable_scope import get_variable, variable_scope


class VARMA(StateSpaceModel):
    """Such a model. Its coefficients are variables: ar_coefs [features, features, autoregressive_order], whose numbers for a feature are, row by row, those of
    the state's first numbers, and ma_coefs [moving_average_order, features, features]."""

    def __init__(
        self, autoregressive_order: int, moving_average_order: int, configuration: StateSpaceModelConfiguration = StateSpaceModelConfiguration()
    ) -> None:
        self.ar_order, self.ma_order = autoregressive_order, moving_average_order
        self.state_num_blocks = max(autoregressive_order, moving_average_order + 1)
        super().__init__(configuration)
        self.state_dimension = self.state_num_blocks * self.num_features

    def _eye(self, blocks: int = 1) -> Tensor:
        return eye(blocks * self.num_features, dtype=self.dtype)

    def _define_parameters(self, observation_transition_tradeoff_log: Any = None) -> None:
        n = self.num_features
        with variable_scope(self._variable_scope):
            self.ar_coefs = get_variable("ar_coefs", [n, n, self.ar_order], self.dtype, zeros_initializer())
            self.ma_coefs = get_variable("ma_coefs", dtype=self.dtype, initializer=array_ops.tile(self._eye()[None], [self.ma_order, 1, 1]))
        super()._define_parameters(observation_transition_tradeoff_log)

    def get_state_transition(self) -> Tensor:
        """The coefficients beside each other, above the identity that moves blocks on: [d, d]."""
        missing = self.state_num_blocks - self.ar_order
        first = array_ops.reshape(array_ops.pad(self.ar_coefs, [[0, 0], [0, 0], [0, missing]]), [self.num_features, self.state_dimension])
        others = array_ops.pad(self._eye(self.state_num_blocks - 1), [[0, 0], [0, self.num_features]])
        return array_ops.concat([first, others], 0)

    def get_noise_transform(self) -> Tensor:
        """The moving average coefficients one below the other, above the identity: [d, features]."""
        others = self.state_num_blocks - 1
        padded = array_ops.pad(self.ma_coefs, [[others - self.ma_order, 0], [0, 0], [0, 0]])
        above = array_ops.reshape(padded, [others * self.num_features, self.num_features], name="noise_transform")
        return array_ops.concat([above, self._eye()], 0)

    def get_observation_model(self, times: Any) -> Tensor:
        """The first block, or the first and the last: [features, d]."""
        del times  # it is observed alike at all times
        both = self.ar_order <= self.ma_order and self.state_num_blocks > 1
        between = self.state_num_blocks - (2 if both else 1)
        first = array_ops.pad(self._eye(), [[0, 0], [0, self.num_features * between]])
        return array_ops.concat([first, self._eye()] if both else [first], 1, name="observation_model")

    def get_state_transition_noise_covariance(self, minimum_initial_variance: float = 1e-5) -> Tensor:
        """A variable covariance [features, features], which begins as large as the series' own: noise of states is all that makes the series move."""
        scale: Any = 0.0
        if self._input_statistics is not None:
            scale = gen_ops.log(math_ops.maximum(math_ops.reduce_mean(self._start_variance()), minimum_initial_variance))
        return variable_covariance_matrix(self.num_features, "state_transition_noise", self.dtype, initial_overall_scale_log=scale)
