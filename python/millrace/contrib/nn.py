# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.nn: cross entropies with logits before labels, and other functions of their time."""

from __future__ import annotations

import numbers
from typing import Any, List, Optional

from millrace.framework import dtypes, static_values
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, candidate_sampling, check_ops, gen_ops, math_ops, matrix_ops, nn_ops, random_ops
from millrace.ops.gradients import gradients
from millrace.ops.morphology import nth_element  # noqa: F401
from millrace.ops.pool_ops import conv1d_transpose  # noqa: F401


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


def fwd_gradients(ys: Any, xs: Any, grad_xs: Any = None, assert_unused: bool = False) -> List[Any]:
    """What ys change by when xs change by grad_xs (ones): gradients from front to back, by two from back to front.

    ys have to be made of xs by ops whose gradients are linear in the incoming one; assert_unused makes a step fail that needs the numbers
    in between, which no result depends on."""
    incoming = [array_ops.zeros_like(y) + float("nan") for y in ys]
    back = [None if g is None else convert_to_tensor(g) for g in gradients(ys, xs, grad_ys=incoming)]
    if assert_unused:
        with control_dependencies([check_ops.assert_equal(array_ops.placeholder_with_default(False, []), True, name="fwd_gradients")]):
            back = [None if g is None else array_ops.identity(g) for g in back]
    both_ways = [array_ops.zeros_like(x) if g is None else g for x, g in zip(xs, back)]
    for x, g in zip(xs, both_ways):
        g.set_shape(x.get_shape())
    return gradients(both_ways, incoming, grad_ys=[array_ops.ones_like(x) for x in xs] if grad_xs is None else grad_xs)  # not of what must not be needed


def rank_sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_resampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    resampling_temperature: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: Optional[str] = None,
) -> Tensor:
    """sampled_softmax_loss of those num_resampled of num_sampled classes whose logits, by the log of the sum of their exponentials over the batch,
    are the highest; inputs are divided by the temperature for this choice."""
    if num_sampled > num_classes:
        raise at_user_line(ValueError("num_sampled (%s) cannot be greater than num_classes (%s)" % (num_sampled, num_classes)))
    if num_sampled <= num_resampled:
        raise at_user_line(ValueError("num_resampled (%s) must be less than num_sampled (%s)" % (num_resampled, num_sampled)))
    if partition_strategy not in ("div", "mod"):
        raise at_user_line(ValueError("unsupported partition_strategy (%s)" % partition_strategy))
    with name_scope(name, "rank_sampled_softmax_loss", [labels, inputs, resampling_temperature]) as scope:
        if not sampled_values:
            sampled_values = candidate_sampling.learned_unigram_candidate_sampler(labels, num_true, num_sampled, True, num_classes)
        sampled, true_count, sampled_count = (gen_ops.stop_gradient(value) for value in sampled_values)
        sampled = math_ops.cast(sampled, dtypes.int64)
        products = matrix_ops.matmul(nn_ops.embedding_lookup(weights, sampled, partition_strategy), inputs / resampling_temperature, transpose_b=True)
        ranks = math_ops.reduce_logsumexp(products, axis=1)
        ranks = ranks + array_ops.reshape(nn_ops.embedding_lookup(biases, sampled, partition_strategy), [-1]) / resampling_temperature
        _, chosen = nn_ops.top_k(ranks, num_resampled, sorted=False)
        return candidate_sampling.sampled_softmax_loss(
            weights,
            biases,
            labels,
            inputs,
            num_resampled,
            num_classes,
            num_true,
            (array_ops.gather(sampled, chosen), true_count, array_ops.gather(sampled_count, chosen)),
            remove_accidental_hits,
            partition_strategy,
            name=scope,
        )


def sampled_sparse_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: Optional[str] = "sampled_sparse_softmax_loss",
) -> Tensor:
    """The softmax's cross entropy of one true class and the sampled ones, for each example."""
    logits, _ = candidate_sampling._compute_sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, 1, sampled_values, True, remove_accidental_hits, partition_strategy, name
    )
    first = array_ops.zeros([array_ops.shape(logits)[0]], dtypes.int64)
    return nn_ops.sparse_softmax_cross_entropy_with_logits(labels=first, logits=logits)
