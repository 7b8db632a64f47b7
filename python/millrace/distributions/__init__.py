# SPDX-License-Identifier: Apache-2.0
"""tf.distributions."""

from millrace.distributions.continuous import Beta, Exponential, Gamma, Laplace, Normal, StudentT, Uniform
from millrace.distributions.discrete import Bernoulli, Categorical, Multinomial
from millrace.distributions.distribution import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED, Distribution, RegisterKL, ReparameterizationType, kl_divergence
from millrace.distributions.multivariate import Dirichlet, DirichletMultinomial

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "FULLY_REPARAMETERIZED",
    "Gamma",
    "Laplace",
    "Multinomial",
    "NOT_REPARAMETERIZED",
    "Normal",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "kl_divergence",
]
