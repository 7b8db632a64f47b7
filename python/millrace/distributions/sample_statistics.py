# SPDX-License-Identifier: Apache-2.0
"""Statistics of samples: percentiles, moving means and variances, what a normal prior becomes."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.distributions.continuous import Normal
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, nn_ops, variable_scope


def auto_correlation(x: Any, axis: int = -1, max_lags: Any = None, center: bool = True, normalize: bool = True, name: str = "auto_correlation") -> Tensor:
    """The means of x[n + m] conj(x[n]) along an axis of L elements, for each lag m from 0 to `max_lags` (L - 1), in place of that axis.

    With `center` of what differs from the mean, with `normalize` divided by what it is at lag 0. x is real or complex.
    """
    with name_scope(name, "auto_correlation", [x]):
        x = convert_to_tensor(x, name="x")
        rank: Any = x.get_shape().ndims
        if rank is None:
            rank = array_ops.rank(x)
            order: Any = math_ops.range(rank)
            at = axis + rank if axis < 0 else axis
            last: Any = array_ops.concat([order[:at], order[at + 1 :], [at]], 0)
            home: Any = gen_ops.invert_permutation(last)
        else:
            at = range(rank)[axis]
            last = [*range(at), *range(at + 1, rank), at]
            home = np.argsort(last)
        values = array_ops.transpose(x, last)
        length: Any = values.get_shape()[-1].value
        length = array_ops.shape(values)[-1] if length is None else length
        if center:
            values = values - math_ops.reduce_mean(values, -1, keepdims=True)
        padded = array_ops.concat([values, array_ops.zeros_like(values)], -1)  # a lag beyond the end meets zeros
        wide = dtypes.complex128 if x.dtype.base_dtype in (dtypes.float64, dtypes.complex128) else dtypes.complex64
        spectrum = gen_ops.fft(math_ops.cast(padded, wide))
        if max_lags is None:
            count = length
        elif isinstance(length, int) and not isinstance(max_lags, Tensor):
            count = min(length, max_lags + 1)
        else:
            count = gen_ops.minimum(length, max_lags + 1)
        sums = gen_ops.ifft(spectrum * math_ops.conj(spectrum))[..., :count]
        sums = math_ops.cast(sums if x.dtype.is_complex else math_ops.real(sums), x.dtype.base_dtype)
        found = sums / math_ops.cast(length - math_ops.range(count), x.dtype.base_dtype)
        return array_ops.transpose(found / found[..., :1] if normalize else found, home)


def percentile(
    x: Any, q: Any, axis: Any = None, interpolation: Optional[str] = None, keep_dims: bool = False, validate_args: bool = False, name: Optional[str] = None
) -> Tensor:
    """The value that q percent of elements do not exceed, over axes (all without `axis`): the nearest, the next lower or higher element."""
    interpolation = interpolation or "nearest"
    if interpolation not in ("lower", "higher", "nearest"):
        raise at_user_line(ValueError("Argument 'interpolation' must be in lower, higher, nearest, got %s" % interpolation))
    with name_scope(name, "percentile", [x, q]):
        x = convert_to_tensor(x, name="x")
        rank = x.get_shape().ndims
        if rank is None:
            raise at_user_line(NotImplementedError("percentile needs a tensor of known rank"))
        if isinstance(q, Tensor) and q.get_shape().ndims not in (None, 0) or not isinstance(q, Tensor) and np.ndim(q):
            raise at_user_line(ValueError("q must be a scalar, got %s" % (q,)))
        if x.get_shape().num_elements() == 0:
            raise at_user_line(ValueError("there is no percentile of nothing: x has the shape %s" % x.get_shape()))
        q = math_ops.cast(convert_to_tensor(q, name="q"), dtypes.float64)
        if validate_args:
            from millrace.ops import check_ops

            checks = [check_ops.assert_rank(q, 0), check_ops.assert_greater_equal(q, 0.0), check_ops.assert_less_equal(q, 100.0)]
            with control_dependencies([c for c in checks if c is not None]):
                q = array_ops.identity(q)
        axes = list(range(rank)) if axis is None else sorted({int(a) % rank for a in np.ravel(axis)})
        kept = [a for a in range(rank) if a not in axes]
        lead = array_ops.transpose(x, kept + axes)
        sizes = array_ops.shape(x)
        flat = array_ops.reshape(lead, array_ops.concat([array_ops.gather(sizes, convert_to_tensor(kept, dtypes.int32)), [-1]], 0))
        count = array_ops.shape(flat)[-1]
        ordered = nn_ops.top_k(flat, count).values  # descending
        place = math_ops.cast(count - 1, dtypes.float64) * (1.0 - q / 100.0)
        place = {"lower": gen_ops.ceil, "higher": gen_ops.floor, "nearest": gen_ops.round}[interpolation](place)
        at = gen_ops.minimum(gen_ops.maximum(math_ops.cast(place, dtypes.int32), 0), count - 1)
        found = array_ops.gather(ordered, at, axis=-1)
        static = [d for a, d in enumerate(x.get_shape().as_list()) if a in kept]
        found.set_shape(static)
        for a in axes if keep_dims else ():
            found = array_ops.expand_dims(found, a)
        return found


def assign_moving_mean_variance(mean_var: Any, variance_var: Any, value: Any, decay: Any, name: Optional[str] = None) -> Any:
    """(mean, variance) after a step: decay of the old ones and 1 - decay of the value, and of its square distance from the old mean."""
    with name_scope(name, "assign_moving_mean_variance", [variance_var, mean_var, value, decay]):
        dtype = variance_var.dtype.base_dtype
        if not dtype.is_floating:
            raise at_user_line(TypeError("variance_var.base_dtype(%s) does not have float type." % dtype.name))
        if mean_var.dtype.base_dtype != dtype:
            raise at_user_line(TypeError("mean_var.base_dtype(%s) != variance_var.base_dtype(%s)." % (mean_var.dtype.base_dtype.name, dtype.name)))
        value, decay = convert_to_tensor(value, dtype, "value"), convert_to_tensor(decay, dtype, "decay")
        away = value - array_ops.identity(mean_var)  # of the mean before this step
        with control_dependencies([away]):
            mean = mean_var.assign_add((1.0 - decay) * away)
            variance = variance_var.assign_sub((1.0 - decay) * (variance_var - decay * gen_ops.square(away)))
        return mean, variance


def assign_log_moving_mean_exp(log_mean_exp_var: Any, log_value: Any, decay: Any, name: Optional[str] = None) -> Tensor:
    """The logarithm of a moving mean of exp(log_value): log(decay exp(old) + (1 - decay) exp(log_value))."""
    with name_scope(name, "assign_log_moving_mean_exp", [log_mean_exp_var, log_value, decay]):
        dtype = log_mean_exp_var.dtype.base_dtype
        if not dtype.is_floating:
            raise at_user_line(TypeError("log_mean_exp_var.base_dtype(%s) does not have float type." % dtype.name))
        log_value, decay = convert_to_tensor(log_value, dtype, "log_value"), convert_to_tensor(decay, dtype, "decay")
        old = array_ops.identity(log_mean_exp_var) + gen_ops.log(decay)
        new = log_value + gen_ops.log1p(-decay)
        return log_mean_exp_var.assign(math_ops.reduce_logsumexp(array_ops.stack([old + array_ops.zeros_like(new), new + array_ops.zeros_like(old)]), 0))


def moving_mean_variance(value: Any, decay: Any, collections: Any = None, name: Optional[str] = None) -> Any:
    """The moving mean and variance of a value in variables that begin at 0."""
    if collections is None:
        collections = ["variables"]
    with variable_scope.variable_scope(name, "moving_mean_variance", [value, decay]):
        value = convert_to_tensor(value, name="value")
        if not value.get_shape().is_fully_defined():
            raise at_user_line(ValueError("Cannot make variables for a value of unknown shape: %s" % value))
        shape, dtype = value.get_shape(), value.dtype.base_dtype
        kept = [
            variable_scope.get_variable(label, shape, dtype, init_ops.zeros_initializer(), trainable=False, collections=collections)
            for label in ("moving_mean", "moving_variance")
        ]
        return assign_moving_mean_variance(kept[0], kept[1], value, decay)


def _posterior(prior: Any, scale: Any, s: Any, n: Any) -> Any:
    if not isinstance(prior, Normal):
        raise at_user_line(TypeError("Expected prior to be an instance of type Normal"))
    if s.dtype.base_dtype != prior.dtype:
        raise at_user_line(TypeError("Observation sum s.dtype does not match prior dtype: %s vs. %s" % (s.dtype, prior.dtype)))
    n = math_ops.cast(n, prior.dtype)
    before, known = gen_ops.square(prior.scale), gen_ops.square(scale)
    variance = 1.0 / (1.0 / before + n / known)
    return (prior.loc / before + s / known) * variance, variance


def normal_conjugates_known_scale_posterior(prior: Any, scale: Any, s: Any, n: Any) -> Normal:
    """What a normal prior of a mean becomes, of n observations of a known scale whose sum is s."""
    scale, s = (convert_to_tensor(v, getattr(prior, "dtype", None)) if not isinstance(v, Tensor) else v for v in (scale, s))
    loc, variance = _posterior(prior, scale, s, n)
    return Normal(loc=loc, scale=gen_ops.sqrt(variance))


def normal_conjugates_known_scale_predictive(prior: Any, scale: Any, s: Any, n: Any) -> Normal:
    """How the next observation is distributed, after n of a known scale whose sum is s."""
    scale, s = (convert_to_tensor(v, getattr(prior, "dtype", None)) if not isinstance(v, Tensor) else v for v in (scale, s))
    loc, variance = _posterior(prior, scale, s, n)
    return Normal(loc=loc, scale=gen_ops.sqrt(variance + gen_ops.square(scale)))
