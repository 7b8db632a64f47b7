# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.distributions: those of tf.distributions and more."""

from millrace.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Distribution,
    Exponential,
    FULLY_REPARAMETERIZED,
    Gamma,
    Laplace,
    Multinomial,
    NOT_REPARAMETERIZED,
    Normal,
    RegisterKL,
    ReparameterizationType,
    StudentT,
    Uniform,
    kl_divergence,
)
from millrace.distributions.continuous import Cauchy, Chi2, Deterministic, Gumbel, InverseGamma, Logistic, NormalWithSoftplusScale
from millrace.distributions.discrete import (
    Binomial,
    ExpRelaxedOneHotCategorical,
    Geometric,
    OneHotCategorical,
    Poisson,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from millrace.distributions.distribution import kl
from millrace.distributions.multivariate import (
    Independent,
    Mixture,
    MultivariateNormalDiag,
    MultivariateNormalDiagWithSoftplusScale,
    MultivariateNormalFullCovariance,
    MultivariateNormalTriL,
)
from millrace.distributions import bijectors
from millrace.distributions.bijector import TransformedDistribution
from millrace.distributions.util import fill_triangular, reduce_weighted_logsumexp, softplus_inverse, tridiag
from millrace.ops.nn_ops import softplus as _softplus


softplus = _softplus
MultivariateNormalCholesky = MultivariateNormalTriL
MultivariateNormalFull = MultivariateNormalFullCovariance

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Deterministic",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "ExpRelaxedOneHotCategorical",
    "Exponential",
    "FULLY_REPARAMETERIZED",
    "Gamma",
    "Geometric",
    "Gumbel",
    "Independent",
    "InverseGamma",
    "Laplace",
    "Logistic",
    "Mixture",
    "Multinomial",
    "MultivariateNormalCholesky",
    "MultivariateNormalDiag",
    "MultivariateNormalDiagWithSoftplusScale",
    "MultivariateNormalFull",
    "MultivariateNormalFullCovariance",
    "MultivariateNormalTriL",
    "NOT_REPARAMETERIZED",
    "Normal",
    "NormalWithSoftplusScale",
    "OneHotCategorical",
    "Poisson",
    "RegisterKL",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReparameterizationType",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "bijectors",
    "fill_triangular",
    "kl",
    "kl_divergence",
    "reduce_weighted_logsumexp",
    "softplus",
    "softplus_inverse",
    "tridiag",
]
