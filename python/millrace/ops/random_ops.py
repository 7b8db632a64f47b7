# SPDX-License-Identifier: Apache-2.0
"""Random tensors."""

from __future__ import annotations

import numpy as np

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor, shape_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.random_seed import op_seeds
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops


def _shape_tensor(shape: Any) -> Any:
    if isinstance(shape, TensorShape):
        shape = shape.as_list()
    if isinstance(shape, (list, tuple)) and not shape:
        return convert_to_tensor([], dtypes.int32, "shape")
    return shape_tensor(shape)


def random_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Optional[int] = None, name: Optional[str] = None
) -> Tensor:
    """Normally distributed values."""
    return _normal(gen_ops.random_standard_normal, shape, mean, stddev, dtype, seed, name, "random_normal")


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Optional[int] = None, name: Optional[str] = None
) -> Tensor:
    """Normally distributed values within two standard deviations."""
    return _normal(gen_ops.truncated_normal, shape, mean, stddev, dtype, seed, name, "truncated_normal")


def parameterized_truncated_normal(
    shape: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    dtype: Any = dtypes.float32,
    seed: Optional[int] = None,
    name: Optional[str] = None,
) -> Tensor:
    """Normally distributed values between bounds; what is no scalar is a vector, one for each place of the first axis."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    with name_scope(name, "parameterized_truncated_normal", [shape, means, stddevs, minvals, maxvals]) as scope:
        means, stddevs = convert_to_tensor(means, dtype, "means"), convert_to_tensor(stddevs, dtype, "stddevs")
        minvals, maxvals = convert_to_tensor(minvals, dtype, "minvals"), convert_to_tensor(maxvals, dtype, "maxvals")
        seed1, seed2 = op_seeds(seed)
        return gen_ops.parameterized_truncated_normal(_shape_tensor(shape), means, stddevs, minvals, maxvals, seed=seed1, seed2=seed2, name=scope)


def _normal(op: Any, shape: Any, mean: Any, stddev: Any, dtype: Any, seed: Optional[int], name: Optional[str], default: str) -> Tensor:
    dtype = dtypes.as_dtype(dtype).base_dtype
    with name_scope(name, default, [shape, mean, stddev]) as scope:
        dims = _shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype, "mean")
        stddev = convert_to_tensor(stddev, dtype, "stddev")
        seed1, seed2 = op_seeds(seed)
        values = op(dims, dtype, seed=seed1, seed2=seed2)
        return gen_ops.add(gen_ops.mul(values, stddev, name="mul"), mean, name=scope)


def random_uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, seed: Optional[int] = None, name: Optional[str] = None
) -> Tensor:
    """Values evenly distributed from minval to before maxval."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    if maxval is None:
        if dtype.is_integer:
            raise at_user_line(ValueError("Must specify maxval for integer dtype %r" % dtype))
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        dims = _shape_tensor(shape)
        minval = convert_to_tensor(minval, dtype, "min")
        maxval = convert_to_tensor(maxval, dtype, "max")
        seed1, seed2 = op_seeds(seed)
        if dtype.is_integer:
            return gen_ops.random_uniform_int(dims, minval, maxval, seed=seed1, seed2=seed2, name=scope)
        values = gen_ops.random_uniform(dims, dtype, seed=seed1, seed2=seed2)
        return gen_ops.add(values * (maxval - minval), minval, name=scope)


def random_shuffle(value: Any, seed: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """The slices along the first axis in another order."""
    seed1, seed2 = op_seeds(seed)
    return gen_ops.random_shuffle(value, seed=seed1, seed2=seed2, name=name)


def random_crop(value: Any, size: Any, seed: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """A block of a size, anywhere in the tensor."""
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, "size")
        shape = array_ops.shape(value)
        fits = math_ops.reduce_all(gen_ops.greater_equal(shape, size))
        check = control_flow_ops.Assert(fits, ["Need value.shape >= size, got ", shape, size], summarize=1000)
        limit = control_flow_ops.with_dependencies([check], shape) - size + 1
        largest = dtypes.int32.max
        offset = random_uniform(array_ops.shape(shape), dtype=dtypes.int32, minval=0, maxval=largest, seed=seed) % limit
        return gen_ops.slice(value, offset, size, name=scope)


def multinomial(logits: Any, num_samples: Any, seed: Optional[int] = None, name: Optional[str] = None, output_dtype: Any = None) -> Tensor:
    """Classes drawn by unnormalised log probabilities."""
    logits = convert_to_tensor(logits, name="logits")
    seed1, seed2 = op_seeds(seed)
    return gen_ops.multinomial(logits, num_samples, seed=seed1, seed2=seed2, output_dtype=output_dtype or dtypes.int64, name=name)


def categorical(logits: Any, num_samples: Any, dtype: Any = None, seed: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """multinomial, with its arguments in another order."""
    return multinomial(logits, num_samples, seed, name, dtype)


def random_gamma(shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """Gamma distributed values, for each alpha."""
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        dims = _shape_tensor(shape)
        alpha = convert_to_tensor(alpha, dtype, "alpha")
        beta = convert_to_tensor(1 if beta is None else beta, dtype, "beta")
        alphas = alpha + array_ops.zeros_like(beta)
        seed1, seed2 = op_seeds(seed)
        drawn = gen_ops.random_gamma(dims, alphas, seed=seed1, seed2=seed2) / beta
        return gen_ops.maximum(np.finfo(alpha.dtype.as_numpy_dtype).tiny, drawn)  # small shapes give numbers too small to hold


def random_poisson_v2(shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """`shape` samples for each rate; random_poisson takes the rates first."""
    with name_scope(name, "random_poisson", [lam, shape]):
        rate = convert_to_tensor(lam, name="lam", preferred_dtype=dtypes.float32)
        seed1, seed2 = op_seeds(seed)
        return gen_ops.random_poisson_v2(_shape_tensor(shape), rate, seed=seed1, seed2=seed2, dtype=dtypes.as_dtype(dtype))
