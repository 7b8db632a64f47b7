# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.distributions: those of tf.distributions and more."""
from millrace.distributions import (Bernoulli, Beta, Categorical, Dirichlet, DirichletMultinomial, Distribution, Exponential, FULLY_REPARAMETERIZED,
                                    Gamma, Laplace, Multinomial, NOT_REPARAMETERIZED, Normal, RegisterKL, ReparameterizationType, StudentT, Uniform,
                                    kl_divergence)
from millrace.distributions.continuous import Cauchy, Chi2, Deterministic, Gumbel, InverseGamma, Logistic, NormalWithSoftplusScale
from millrace.distributions.discrete import (Binomial, ExpRelaxedOneHotCategorical, Geometric, OneHotCategorical, Poisson, RelaxedBernoulli,
                                             RelaxedOneHotCategorical)
from millrace.distributions.distribution import kl
from millrace.distributions.multivariate import (Independent, Mixture, MultivariateNormalDiag, MultivariateNormalDiagWithSoftplusScale,
                                                 MultivariateNormalFullCovariance, MultivariateNormalTriL)
from millrace.ops.nn_ops import softplus as _softplus


def softplus_inverse(x, name=None):  # type: ignore[no-untyped-def]
    """The number whose softplus is x."""
    from millrace.distributions.distribution import float_parameters
    from millrace.ops import gen_ops
    (x,) = float_parameters(x)
    return gen_ops.add(x, gen_ops.log(-gen_ops.expm1(-x)), name=name)


softplus = _softplus
MultivariateNormalCholesky = MultivariateNormalTriL
MultivariateNormalFull = MultivariateNormalFullCovariance

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Deterministic", "Dirichlet", "DirichletMultinomial", "Distribution",
           "ExpRelaxedOneHotCategorical", "Exponential", "FULLY_REPARAMETERIZED", "Gamma", "Geometric", "Gumbel", "Independent", "InverseGamma", "Laplace",
           "Logistic", "Mixture", "Multinomial", "MultivariateNormalCholesky", "MultivariateNormalDiag", "MultivariateNormalDiagWithSoftplusScale",
           "MultivariateNormalFull", "MultivariateNormalFullCovariance", "MultivariateNormalTriL", "NOT_REPARAMETERIZED", "Normal",
           "NormalWithSoftplusScale", "OneHotCategorical", "Poisson", "RegisterKL", "RelaxedBernoulli", "RelaxedOneHotCategorical",
           "ReparameterizationType", "StudentT", "Uniform", "kl", "kl_divergence", "softplus", "softplus_inverse"]
