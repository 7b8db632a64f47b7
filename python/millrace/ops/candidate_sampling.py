# SPDX-License-Identifier: Apache-2.0
"""Losses over a sample of many classes."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.random_seed import op_seeds
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops, nn_ops


def _sampler(op_name: str) -> Any:
    def sample(true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Optional[int] = None, name: Optional[str] = None) -> Any:
        seed1, seed2 = op_seeds(seed)
        return getattr(gen_ops, op_name)(
            math_ops.cast(true_classes, dtypes.int64), num_true, num_sampled, unique, range_max, seed=seed1, seed2=seed2, name=name
        )

    sample.__name__ = sample.__qualname__ = op_name
    sample.__doc__ = "(sampled classes, expected counts of the true ones, expected counts of the sampled ones)."
    return sample


uniform_candidate_sampler = _sampler("uniform_candidate_sampler")
log_uniform_candidate_sampler = _sampler("log_uniform_candidate_sampler")
learned_unigram_candidate_sampler = _sampler("learned_unigram_candidate_sampler")


def all_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: Optional[int] = None, name: Optional[str] = None) -> Any:
    """All classes, for tests."""
    seed1, seed2 = op_seeds(seed)
    return gen_ops.all_candidate_sampler(math_ops.cast(true_classes, dtypes.int64), num_true, num_sampled, unique, seed=seed1, seed2=seed2, name=name)


def compute_accidental_hits(true_classes: Any, sampled_candidates: Any, num_true: int, seed: Optional[int] = None, name: Optional[str] = None) -> Any:
    """(rows, places, weights) of the drawn classes that are true ones."""
    seed1, seed2 = op_seeds(seed)
    return gen_ops.compute_accidental_hits(
        math_ops.cast(true_classes, dtypes.int64), math_ops.cast(sampled_candidates, dtypes.int64), num_true, seed=seed1, seed2=seed2, name=name
    )


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: Optional[int] = None,
    name: Optional[str] = None,
) -> Any:
    """Classes drawn by given frequencies."""
    seed1, seed2 = op_seeds(seed)
    return gen_ops.fixed_unigram_candidate_sampler(
        math_ops.cast(true_classes, dtypes.int64),
        num_true,
        num_sampled,
        unique,
        range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=list(unigrams),
        seed=seed1,
        seed2=seed2,
        name=name,
    )


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    subtract_log_q: bool,
    remove_accidental_hits: bool,
    partition_strategy: str,
    seed: Any,
) -> Tuple[Tensor, Tensor]:
    if not isinstance(weights, (list, tuple)):
        weights = [weights] if not hasattr(weights, "_get_variable_list") else list(weights)
    labels = math_ops.cast(labels, dtypes.int64)
    flat = array_ops.reshape(labels, [-1])
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_count, sampled_count = (gen_ops.stop_gradient(v) for v in sampled_values)
    sampled = math_ops.cast(sampled, dtypes.int64)
    every = array_ops.concat([flat, sampled], 0)
    count = array_ops.size(flat)
    rows = nn_ops.embedding_lookup(list(weights), every, partition_strategy)
    shifts = nn_ops.embedding_lookup(biases, every, partition_strategy)
    width = rows.get_shape()[-1].value
    true_rows = array_ops.slice(rows, array_ops.stack([count, 0]) * 0, array_ops.stack([count, -1]))
    sampled_rows = array_ops.slice(rows, array_ops.stack([count, 0]), [-1, -1])
    true_shift = array_ops.slice(shifts, [0], array_ops.expand_dims(count, 0))
    sampled_shift = array_ops.slice(shifts, array_ops.expand_dims(count, 0), [-1])
    sampled_rows.set_shape([num_sampled, width])
    sizes_of_rows = [-1, num_true, array_ops.shape(rows)[-1] if width is None else width]
    products = array_ops.expand_dims(inputs, 1) * array_ops.reshape(true_rows, sizes_of_rows)
    true_logits = math_ops.reduce_sum(products, 2) + array_ops.reshape(true_shift, [-1, num_true])
    sampled_logits = matrix_ops.matmul(inputs, sampled_rows, transpose_b=True) + sampled_shift
    if remove_accidental_hits:
        hits = compute_accidental_hits(labels, sampled, num_true)
        at = array_ops.stack([math_ops.cast(hits[0], dtypes.int64), hits[1]], 1)
        sizes = array_ops.stack([array_ops.shape(labels, out_type=dtypes.int64)[0], convert_to_tensor(num_sampled, dtypes.int64)])
        sampled_logits += gen_ops.scatter_nd(at, math_ops.cast(hits[2], sampled_logits.dtype), sizes)
    if subtract_log_q:
        true_logits -= gen_ops.log(true_count)
        sampled_logits -= gen_ops.log(sampled_count)
    logits = array_ops.concat([true_logits, sampled_logits], 1)
    targets = array_ops.concat([array_ops.ones_like(true_logits) / num_true, array_ops.zeros_like(sampled_logits)], 1)
    return logits, targets


def _compute_sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    subtract_log_q: bool = True,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: Optional[str] = None,
) -> Tuple[Tensor, Tensor]:
    """(logits of the true and the sampled classes, targets), of which nce_loss and sampled_softmax_loss are made."""
    with name_scope(name, "compute_sampled_logits"):
        return _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            subtract_log_q,
            remove_accidental_hits,
            partition_strategy,
            None,
        )


def _arguments(inputs: Any, labels: Any) -> Any:
    """0.x had inputs before labels: labels are integers."""
    first, second = convert_to_tensor(inputs), convert_to_tensor(labels)
    if second.dtype.is_floating and first.dtype.is_integer:
        return second, first
    if second.dtype.is_floating and (first.get_shape().ndims == 2 and (first.get_shape()[-1].value or 0) == 1):
        return second, first
    return first, second


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any = None,
    inputs: Any = None,
    num_sampled: Any = None,
    num_classes: Any = None,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation, for each example."""
    inputs, labels = _arguments(inputs, labels)
    with name_scope(name, "nce_loss"):
        logits, targets = _sampled_logits(
            weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True, remove_accidental_hits, partition_strategy, None
        )
        return math_ops.reduce_sum(nn_ops.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits), 1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any = None,
    inputs: Any = None,
    num_sampled: Any = None,
    num_classes: Any = None,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: Any = None,
) -> Tensor:
    """The softmax cross entropy over the true class and a sample of others, for each example."""
    inputs, labels = _arguments(inputs, labels)
    with name_scope(name, "sampled_softmax_loss"):
        logits, targets = _sampled_logits(
            weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True, remove_accidental_hits, partition_strategy, seed
        )
        return nn_ops.softmax_cross_entropy_with_logits_v2(labels=gen_ops.stop_gradient(targets), logits=logits)
