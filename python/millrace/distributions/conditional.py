# SPDX-License-Identifier: Apache-2.0
"""Distributions whose methods take conditions by name."""

from __future__ import annotations

from typing import Any, Optional

from millrace.distributions.bijector import TransformedDistribution
from millrace.distributions.distribution import Distribution
from millrace.framework.graph import Tensor


class ConditionalDistribution(Distribution):
    """Passes what its methods get by name on to _sample_n, _log_prob and their kin of a subclass."""

    def sample(self, sample_shape: Any = (), seed: Optional[int] = None, name: str = "sample", **condition_kwargs: Any) -> Tensor:
        """Samples of a shape, in front of the shapes of the batch and the event."""
        return self._call_sample_n(sample_shape, seed, name, **condition_kwargs)

    def log_prob(self, value: Any, name: str = "log_prob", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the density, or of the probability."""
        return self._call_log_prob(value, name, **condition_kwargs)

    def prob(self, value: Any, name: str = "prob", **condition_kwargs: Any) -> Tensor:
        """The density, or the probability."""
        return self._call_prob(value, name, **condition_kwargs)

    def log_cdf(self, value: Any, name: str = "log_cdf", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the probability of no more than a value."""
        return self._call_log_cdf(value, name, **condition_kwargs)

    def cdf(self, value: Any, name: str = "cdf", **condition_kwargs: Any) -> Tensor:
        """The probability of no more than a value."""
        return self._call_cdf(value, name, **condition_kwargs)

    def log_survival_function(self, value: Any, name: str = "log_survival_function", **condition_kwargs: Any) -> Tensor:
        """The logarithm of the probability of more than a value."""
        return self._call_log_survival_function(value, name, **condition_kwargs)

    def survival_function(self, value: Any, name: str = "survival_function", **condition_kwargs: Any) -> Tensor:
        """The probability of more than a value."""
        return self._call_survival_function(value, name, **condition_kwargs)

    def quantile(self, value: Any, name: str = "quantile", **condition_kwargs: Any) -> Tensor:
        """The value that a share of samples does not exceed."""
        return self._call_quantile(value, name, **condition_kwargs)


class ConditionalTransformedDistribution(ConditionalDistribution, TransformedDistribution):
    """A TransformedDistribution whose methods take bijector_kwargs and distribution_kwargs: conditions of its two parts, as dicts."""
