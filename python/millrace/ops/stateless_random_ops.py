# SPDX-License-Identifier: Apache-2.0
"""Random numbers that are the same for the same seed of two integers, whatever ran before."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor, shape_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import gen_ops


def stateless_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
    """Evenly distributed in [minval, maxval); maxval is 1 unless given, and must be given for integers."""
    dtype = dtypes.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise at_user_line(ValueError("Must specify maxval for integer dtype %s" % dtype.name))
        maxval = 1
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        low, high = convert_to_tensor(minval, dtype, "min"), convert_to_tensor(maxval, dtype, "max")
        if dtype.is_integer:
            return gen_ops.stateless_random_uniform_int(shape_tensor(shape), seed, low, high, name=scope)
        drawn = gen_ops.stateless_random_uniform(shape_tensor(shape), seed, dtype=dtype)
        return gen_ops.add(gen_ops.mul(drawn, gen_ops.sub(high, low)), low, name=scope)


def _normal(op: Any, default: str, doc: str) -> Any:
    def function(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
        with name_scope(name, default, [shape, seed, mean, stddev]) as scope:
            middle, spread = convert_to_tensor(mean, dtype, "mean"), convert_to_tensor(stddev, dtype, "stddev")
            return gen_ops.add(gen_ops.mul(op(shape_tensor(shape), seed, dtype=dtype), spread), middle, name=scope)

    function.__name__, function.__doc__ = default.replace("random_", ""), doc
    return function


stateless_normal = _normal(gen_ops.stateless_random_normal, "stateless_random_normal", "Normally distributed about a mean.")
stateless_truncated_normal = _normal(
    gen_ops.stateless_truncated_normal, "stateless_truncated_normal", "Normally distributed, within two standard deviations of a mean."
)


def stateless_multinomial(logits: Any, num_samples: Any, seed: Any, output_dtype: Any = dtypes.int64, name: Optional[str] = None) -> Tensor:
    """Classes drawn by unnormalized log-probabilities [batch, classes]."""
    return gen_ops.stateless_multinomial(logits, num_samples, seed, output_dtype=output_dtype, name=name)


def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: Optional[str] = None) -> Tensor:
    """Classes drawn by unnormalized log-probabilities [batch, classes]."""
    return stateless_multinomial(logits, num_samples, seed, dtype, name)
