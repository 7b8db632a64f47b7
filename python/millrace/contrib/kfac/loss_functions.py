# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.loss_functions: negative logarithms of probabilities, with the Fisher information of their parameters.

For a loss F is the Fisher information in its parameters and B a factor of it: F = B B'. Where the parameters are the natural ones of the
distribution F is the matrix of second derivatives as well."""

from __future__ import annotations

from typing import Any

from millrace.distributions.continuous import Normal
from millrace.distributions.discrete import Bernoulli, Categorical, OneHotCategorical
from millrace.framework import tensor_shape
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops


def _to_be_written(what: Any, name: str) -> Exception:
    return NotImplementedError("%s has no %s." % (type(what).__name__, name))


class LossFunction:
    """A loss of some inputs and targets, with products of its second derivatives."""

    @property
    def targets(self) -> Any:
        raise _to_be_written(self, "targets")

    @property
    def inputs(self) -> Any:
        raise _to_be_written(self, "inputs")

    def evaluate(self) -> Any:
        """The loss, as a function of the inputs."""
        if self.targets is None:
            raise at_user_line(Exception("Cannot evaluate losses with unspecified targets."))
        return self._evaluate(gen_ops.stop_gradient(self.targets))

    def _evaluate(self, targets: Any) -> Any:
        raise _to_be_written(self, "_evaluate")

    def multiply_hessian(self, vector: Any) -> Any:
        """The second derivatives times a vector."""
        raise _to_be_written(self, "multiply_hessian")

    def multiply_hessian_factor(self, vector: Any) -> Any:
        """B times a vector."""
        raise _to_be_written(self, "multiply_hessian_factor")

    def multiply_hessian_factor_transpose(self, vector: Any) -> Any:
        """B' times a vector."""
        raise _to_be_written(self, "multiply_hessian_factor_transpose")

    def multiply_hessian_factor_replicated_one_hot(self, index: Any) -> Any:
        """B times the vectors that are 1 at an index of each example and 0 elsewhere."""
        raise _to_be_written(self, "multiply_hessian_factor_replicated_one_hot")

    @property
    def hessian_factor_inner_shape(self) -> Any:
        raise _to_be_written(self, "hessian_factor_inner_shape")

    @property
    def hessian_factor_inner_static_shape(self) -> Any:
        raise _to_be_written(self, "hessian_factor_inner_static_shape")


class NegativeLogProbLoss(LossFunction):
    """- log p of targets, whose distribution the inputs are parameters of."""

    def __init__(self, seed: Any = None) -> None:
        self._default_seed = seed

    @property
    def inputs(self) -> Any:
        return self.params

    @property
    def params(self) -> Any:
        raise _to_be_written(self, "params")

    def multiply_fisher(self, vector: Any) -> Any:
        """F times a vector."""
        raise _to_be_written(self, "multiply_fisher")

    def multiply_fisher_factor(self, vector: Any) -> Any:
        """B times a vector."""
        raise _to_be_written(self, "multiply_fisher_factor")

    def multiply_fisher_factor_transpose(self, vector: Any) -> Any:
        """B' times a vector."""
        raise _to_be_written(self, "multiply_fisher_factor_transpose")

    def multiply_fisher_factor_replicated_one_hot(self, index: Any) -> Any:
        """B times the vectors that are 1 at an index of each example and 0 elsewhere."""
        raise _to_be_written(self, "multiply_fisher_factor_replicated_one_hot")

    @property
    def fisher_factor_inner_shape(self) -> Any:
        raise _to_be_written(self, "fisher_factor_inner_shape")

    @property
    def fisher_factor_inner_static_shape(self) -> Any:
        raise _to_be_written(self, "fisher_factor_inner_static_shape")

    def sample(self, seed: Any) -> Any:
        """Targets by chance."""
        raise _to_be_written(self, "sample")

    def evaluate_on_sample(self, seed: Any = None) -> Any:
        """The loss of targets by chance."""
        return self._evaluate(gen_ops.stop_gradient(self.sample(self._default_seed if seed is None else seed)))


class NaturalParamsNegativeLogProbLoss(NegativeLogProbLoss):
    """Losses of natural parameters, whose second derivatives are the Fisher information."""

    def multiply_hessian(self, vector: Any) -> Any:
        return self.multiply_fisher(vector)

    def multiply_hessian_factor(self, vector: Any) -> Any:
        return self.multiply_fisher_factor(vector)

    def multiply_hessian_factor_transpose(self, vector: Any) -> Any:
        return self.multiply_fisher_factor_transpose(vector)

    def multiply_hessian_factor_replicated_one_hot(self, index: Any) -> Any:
        return self.multiply_fisher_factor_replicated_one_hot(index)

    @property
    def hessian_factor_inner_shape(self) -> Any:
        return self.fisher_factor_inner_shape

    @property
    def hessian_factor_inner_static_shape(self) -> Any:
        return self.fisher_factor_inner_static_shape


class DistributionNegativeLogProbLoss(NegativeLogProbLoss):
    """Losses by one of tf.distributions."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(seed=seed)

    @property
    def dist(self) -> Any:
        raise _to_be_written(self, "dist")

    def _evaluate(self, targets: Any) -> Any:
        return -math_ops.reduce_sum(self.dist.log_prob(targets))

    def sample(self, seed: Any) -> Any:
        return self.dist.sample(seed=seed)


class _OfOneTensor(DistributionNegativeLogProbLoss, NaturalParamsNegativeLogProbLoss):
    """Losses whose parameters are one tensor [batch, parameters]."""

    def __init__(self, params: Any, targets: Any, seed: Any) -> None:
        super().__init__(seed=seed)
        self._params, self._targets = params, targets

    targets = property(lambda self: self._targets)
    params = property(lambda self: self._params)
    fisher_factor_inner_shape = property(lambda self: array_ops.shape(self._params))
    fisher_factor_inner_static_shape = property(lambda self: self._params.shape)

    def _at(self, column: Any, index: Any) -> Any:
        """A column at its place among zeros."""
        return insert_slice_in_zeros(column, 1, int(self._params.shape[1]), _single(index))


def _single(index: Any) -> int:
    if len(index) != 1:
        raise at_user_line(ValueError("The index must have one number, not %d." % len(index)))
    return int(index[0])


class NormalMeanNegativeLogProbLoss(_OfOneTensor):
    """Normal distributions of given variance: F is the identity / var."""

    def __init__(self, mean: Any, var: Any = 0.5, targets: Any = None, seed: Any = None) -> None:
        super().__init__(mean, targets, seed)
        self._mean, self._var = mean, var

    @property
    def dist(self) -> Any:
        return Normal(loc=self._mean, scale=gen_ops.sqrt(self._var))

    def multiply_fisher(self, vector: Any) -> Any:
        return vector * (1.0 / self._var)

    def multiply_fisher_factor(self, vector: Any) -> Any:
        return vector * self._var**-0.5

    def multiply_fisher_factor_transpose(self, vector: Any) -> Any:
        return self.multiply_fisher_factor(vector)

    def multiply_fisher_factor_replicated_one_hot(self, index: Any) -> Any:
        return self._at(array_ops.expand_dims(array_ops.ones(array_ops.shape(self._mean)[:1], dtype=self._mean.dtype), -1) * self._var**-0.5, index)


class NormalMeanVarianceNegativeLogProbLoss(DistributionNegativeLogProbLoss):
    """Normal distributions: F is diagonal, with 1 / variance for the means and 1 / (2 variance^2) for the variances."""

    def __init__(self, mean: Any, variance: Any, targets: Any = None, seed: Any = None) -> None:
        for what, given in (("mean", mean), ("variance", variance)):
            if given.shape.ndims != 2:
                raise at_user_line(ValueError("Expect 2D %s tensor, not of shape %s." % (what, given.shape)))
        super().__init__(seed=seed)
        self._mean, self._variance, self._targets = mean, variance, targets

    targets = property(lambda self: self._targets)
    params = property(lambda self: (self._mean, self._variance))

    @property
    def dist(self) -> Any:
        return Normal(loc=self._mean, scale=gen_ops.sqrt(self._variance))

    def _diagonal(self) -> Any:
        return 1.0 / self._variance, 0.5 / gen_ops.square(self._variance)

    def multiply_fisher(self, vecs: Any) -> Any:
        return tuple(d * v for d, v in zip(self._diagonal(), vecs))

    def multiply_fisher_factor(self, vecs: Any) -> Any:
        return tuple(gen_ops.sqrt(d) * v for d, v in zip(self._diagonal(), array_ops.split(vecs, 2, axis=-1)))

    def multiply_fisher_factor_transpose(self, vecs: Any) -> Any:
        return array_ops.concat([gen_ops.sqrt(d) * v for d, v in zip(self._diagonal(), vecs)], axis=-1)

    def multiply_fisher_factor_replicated_one_hot(self, index: Any) -> Any:
        size, at = int(self._mean.shape[-1]), _single(index)
        which, at = divmod(at, size)
        column = array_ops.expand_dims(gen_ops.sqrt(self._diagonal()[which])[:, at], -1)
        there = insert_slice_in_zeros(column, 1, size, at)
        elsewhere = array_ops.zeros_like(there)
        return (elsewhere, there) if which else (there, elsewhere)

    @property
    def fisher_factor_inner_shape(self) -> Any:
        sizes = array_ops.shape(self._mean)
        return array_ops.concat([sizes[:-1], 2 * sizes[-1:]], 0)

    @property
    def fisher_factor_inner_static_shape(self) -> Any:
        *rest, last = self._mean.shape.as_list()
        return tensor_shape.TensorShape([*rest, 2 * last])


class CategoricalLogitsNegativeLogProbLoss(_OfOneTensor):
    """Classes by their logits: F = diag(p) - p p' and B = diag(q) - p q', where p are the probabilities and q their roots."""

    def __init__(self, logits: Any, targets: Any = None, seed: Any = None) -> None:
        super().__init__(logits, targets, seed)
        self._logits = logits

    @property
    def dist(self) -> Any:
        return Categorical(logits=self._logits)

    def _p_and_q(self) -> Any:
        p = self.dist.probs
        return p, gen_ops.sqrt(p)

    def multiply_fisher(self, vector: Any) -> Any:
        p = self.dist.probs
        return p * (vector - math_ops.reduce_sum(p * vector, axis=-1, keepdims=True))

    def multiply_fisher_factor(self, vector: Any) -> Any:
        p, q = self._p_and_q()
        return q * vector - p * math_ops.reduce_sum(q * vector, axis=-1, keepdims=True)

    def multiply_fisher_factor_transpose(self, vector: Any) -> Any:
        p, q = self._p_and_q()
        return q * (vector - math_ops.reduce_sum(p * vector, axis=-1, keepdims=True))

    def multiply_fisher_factor_replicated_one_hot(self, index: Any) -> Any:
        p, q = self._p_and_q()
        column = array_ops.expand_dims(q[:, _single(index)], -1)
        return self._at(column, index) - p * column


class OnehotCategoricalLogitsNegativeLogProbLoss(CategoricalLogitsNegativeLogProbLoss):
    """Classes by their logits, whose targets are vectors with a 1."""

    @property
    def dist(self) -> Any:
        return OneHotCategorical(logits=self._logits)


class MultiBernoulliNegativeLogProbLoss(_OfOneTensor):
    """Independent yes and no by logits: F = diag(p (1 - p))."""

    def __init__(self, logits: Any, targets: Any = None, seed: Any = None) -> None:
        super().__init__(logits, targets, seed)
        self._logits = logits

    @property
    def dist(self) -> Any:
        return Bernoulli(logits=self._logits)

    def _diagonal(self) -> Any:
        p = self.dist.probs
        return p * (1 - p)

    def multiply_fisher(self, vector: Any) -> Any:
        return self._diagonal() * vector

    def multiply_fisher_factor(self, vector: Any) -> Any:
        return gen_ops.sqrt(self._diagonal()) * vector

    def multiply_fisher_factor_transpose(self, vector: Any) -> Any:
        return self.multiply_fisher_factor(vector)

    def multiply_fisher_factor_replicated_one_hot(self, index: Any) -> Any:
        return self._at(gen_ops.sqrt(array_ops.expand_dims(self._diagonal()[:, _single(index)], -1)), index)


def insert_slice_in_zeros(slice_to_insert: Any, dim: int, dim_size: int, position: int) -> Any:
    """Zeros with a slice, of one along dim, at a position of that dimension."""
    if slice_to_insert.shape[dim] != 1:
        raise at_user_line(ValueError("Expected slice_to_insert.shape to have %d dim of 1, but was %s." % (dim, slice_to_insert.shape[dim])))
    around = [[0, 0] for _ in range(slice_to_insert.shape.ndims)]
    around[dim] = [position, dim_size - position - 1]
    return array_ops.pad(slice_to_insert, around)
