# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.nn: cross entropies with logits before labels, and other functions of their time."""

from __future__ import annotations

import numbers
from typing import Any, Optional

from millrace.framework import static_values
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops, random_ops


def deprecated_flipped_softmax_cross_entropy_with_logits(logits: Any, labels: Any, dim: int = -1, name: Optional[str] = None) -> Tensor:
    """tf.nn.softmax_cross_entropy_with_logits, logits first."""
    return nn_ops.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits: Any, labels: Any, name: Optional[str] = None) -> Tensor:
    """tf.nn.sparse_softmax_cross_entropy_with_logits, logits first."""
    return nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: Optional[str] = None) -> Tensor:
    """tf.nn.sigmoid_cross_entropy_with_logits, logits first."""
    return nn_ops.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: Optional[str] = None) -> Tensor:
    """alpha * softplus(x / alpha), at most `clip`."""
    made = alpha * gen_ops.softplus(x / alpha)
    return array_ops.identity(made if clip is None else gen_ops.minimum(made, math_ops.cast(clip, made.dtype.base_dtype)), name=name)


def alpha_dropout(x: Any, keep_prob: Any, noise_shape: Any = None, seed: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """Dropout to a value that keeps mean and variance of what SELU gives (Klambauer 2017)."""
    with name_scope(name, "alpha_dropout", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1:
            raise at_user_line(ValueError("keep_prob must be a scalar tensor or a float in the range (0, 1], got %g" % keep_prob))
        dtype = x.dtype.base_dtype
        keep = convert_to_tensor(keep_prob, dtype, name="keep_prob")
        keep.get_shape().assert_has_rank(0)
        if static_values.constant_value(keep) == 1:
            return x
        floor = -1.7580993408473766
        drawn = random_ops.random_uniform(array_ops.shape(x) if noise_shape is None else noise_shape, dtype=dtype, seed=seed)
        kept = math_ops.cast(gen_ops.greater_equal(drawn, 1 - keep), dtype)
        scale = (keep + keep * (1 - keep) * floor**2) ** -0.5
        return gen_ops.sub(scale * (x * kept + floor * (1 - kept)), scale * floor * (1 - keep), name=scope)
