# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.sparsemax: probabilities of which many are 0, and the loss that goes with them (Martins and Astudillo, 2016)."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


def sparsemax(logits: Any, name: Optional[str] = None) -> Tensor:
    """The point of the simplex nearest to each row. Rows with NaN or an infinite logit, and those of -inf alone, become NaN."""
    with name_scope(name, "sparsemax", [logits]):
        z = convert_to_tensor(logits, name="logits")
        dtype, rows, width = z.dtype.base_dtype, array_ops.shape(z)[0], array_ops.shape(z)[1]
        descending = nn_ops.top_k(z, k=width).values
        sums = math_ops.cumsum(descending, axis=1)
        ranks = math_ops.range(1, math_ops.cast(width, dtype) + 1, dtype=dtype)
        count = math_ops.reduce_sum(math_ops.cast(gen_ops.greater(1 + ranks * descending, sums), dtypes.int32), axis=1)  # of the places that are not 0
        last = array_ops.stack([math_ops.range(0, rows), gen_ops.maximum(count, 1) - 1], axis=1)
        threshold = (array_ops.gather_nd(sums, last) - 1) / math_ops.cast(count, dtype)
        made = gen_ops.maximum(math_ops.cast(0, dtype), z - array_ops.expand_dims(threshold, 1))
        wrong = gen_ops.logical_or(gen_ops.equal(count, 0), gen_ops.is_nan(sums[:, -1]))
        return array_ops.where(wrong, gen_ops.fill(array_ops.stack([rows, width]), math_ops.cast(np.nan, dtype)), made)


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: Optional[str] = None) -> Tensor:
    """The loss of each row; its gradient is sparsemax(logits) - labels."""
    with name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        z = convert_to_tensor(logits, name="logits")
        p = convert_to_tensor(sparsemax, name="sparsemax")
        q = convert_to_tensor(labels, z.dtype.base_dtype, name="labels")
        zero = array_ops.zeros_like(z)  # an infinite logit of no weight adds nothing
        inside = array_ops.where(gen_ops.logical_or(gen_ops.greater(p, 0), gen_ops.is_nan(p)), p * (z - 0.5 * p), zero)
        wanted = array_ops.where(gen_ops.logical_and(gen_ops.equal(q, 0), gen_ops.is_inf(z)), zero, q * (0.5 * q - z))
        return math_ops.reduce_sum(inside + wanted, axis=1)
