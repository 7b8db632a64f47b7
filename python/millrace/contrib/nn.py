# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.nn: cross entropies with logits before labels, and other functions of their time."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops


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
    from millrace.ops import random_ops

    floor = -1.7580993408473766
    kept = math_ops.cast(
        random_ops.random_uniform(array_ops.shape(x) if noise_shape is None else noise_shape, dtype=x.dtype.base_dtype, seed=seed) < keep_prob,
        x.dtype.base_dtype,
    )
    a = (keep_prob + floor**2 * keep_prob * (1 - keep_prob)) ** -0.5
    return array_ops.identity(a * (x * kept + floor * (1 - kept)) - a * floor * (1 - keep_prob), name=name)
