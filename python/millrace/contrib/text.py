# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.text: pairs of a word and one near it, which word2vec learns from (Mikolov and others, 2013)."""

from __future__ import annotations

import csv
from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.framework.random_seed import get_seed
from millrace.gfile import GFile
from millrace.ops import array_ops, gen_ops, math_ops, random_ops
from millrace.ops.lookup_ops import HashTable, InitializableLookupTableBase, TextFileInitializer
from millrace.train.batching import batch

__all__ = ["skip_gram_sample", "skip_gram_sample_with_text_vocab"]


def _filter_input(input_tensor: Any, vocab_freq_table: Any, vocab_min_count: Any, vocab_subsampling: Any, corpus_size: Any, seed: Any) -> Any:
    """The tokens that the vocabulary has often enough; of frequent ones, as many as vocab_subsampling leaves by chance."""
    if vocab_freq_table is None:
        return input_tensor
    if not isinstance(vocab_freq_table, InitializableLookupTableBase):
        raise at_user_line(ValueError("vocab_freq_table must be an initialized table (such as HashTable) instead of type %s." % type(vocab_freq_table)))
    with name_scope("filter_vocab"):
        counts = vocab_freq_table.lookup(input_tensor)
        kept = math_ops.not_equal(counts, vocab_freq_table.default_value)
        if vocab_min_count is not None:
            kept = gen_ops.logical_and(kept, gen_ops.greater_equal(counts, math_ops.cast(vocab_min_count, counts.dtype)))
        tokens, counts = array_ops.boolean_mask(input_tensor, kept), array_ops.boolean_mask(counts, kept)
    if not vocab_subsampling:
        return tokens
    if vocab_subsampling < 0 or vocab_subsampling > 1:
        raise at_user_line(ValueError("Invalid vocab_subsampling=%s - it should be within range [0, 1]." % vocab_subsampling))
    with name_scope("subsample_vocab"):
        counts = math_ops.cast(counts, dtypes.float64)
        allowed = vocab_subsampling * math_ops.cast(corpus_size, dtypes.float64)
        probability = (gen_ops.sqrt(counts / allowed) + 1.0) * (allowed / counts)
        drawn = random_ops.random_uniform(array_ops.shape(counts), 0, 1, dtypes.float64, seed=seed)
        return array_ops.boolean_mask(tokens, gen_ops.less_equal(drawn, probability))


def skip_gram_sample(
    input_tensor: Any,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    vocab_freq_table: Any = None,
    vocab_min_count: Any = None,
    vocab_subsampling: Optional[float] = None,
    corpus_size: Any = None,
    batch_size: Optional[int] = None,
    batch_capacity: Optional[int] = None,
    seed: Optional[int] = None,
    name: Optional[str] = None,
) -> Any:
    """(tokens, labels): each of `limit` tokens from `start` on, with each token at most so many places away as a window of random size has,
    from min_skips to max_skips.

    vocab_freq_table: how often the corpus of corpus_size has each token; others are left out, as are those below vocab_min_count, and those
    that are more than vocab_subsampling of the corpus with the probability that Mikolov and others give. batch_size: pairs in batches, by a queue.
    """
    if vocab_freq_table is None and not (vocab_min_count is None and vocab_subsampling is None and corpus_size is None):
        raise at_user_line(ValueError("vocab_min_count, vocab_subsampling and corpus_size need a vocab_freq_table, which is not provided."))
    if (vocab_subsampling is None) != (corpus_size is None):
        raise at_user_line(ValueError("vocab_subsampling and corpus_size must both be provided, got %s and %s" % (vocab_subsampling, corpus_size)))
    with name_scope(name, "skip_gram_sample", [input_tensor]):
        tokens = _filter_input(convert_to_tensor(input_tensor), vocab_freq_table, vocab_min_count, vocab_subsampling, corpus_size, seed)
        if tokens.get_shape().ndims not in (None, 1):
            raise at_user_line(ValueError("input_tensor must be of rank 1, got shape %s" % tokens.get_shape()))
        first, second = get_seed(seed)
        pairs = gen_ops.skip_gram_generate_candidates(tokens, min_skips, max_skips, start, limit, emit_self_as_target, seed=first or 0, seed2=second or 0)
        if batch_size is not None and batch_size > 0:
            return batch(list(pairs), batch_size, capacity=batch_capacity if batch_capacity and batch_capacity > 0 else 100 * batch_size, enqueue_many=True)
        return pairs


def _read_counts(path: Any, token_index: int, count_index: int, dtype: Any, delimiter: str) -> Tuple[int, Any]:
    """How many tokens a file of counts has, and the sum of the counts."""
    lines, total = 0, 0.0
    with GFile(path, "r") as file:
        for row in csv.reader(file, delimiter=delimiter):
            if max(token_index, count_index) >= len(row):
                raise at_user_line(
                    ValueError("Row in vocab file only has %d columns, too few for columns %d and %d: %s" % (len(row), token_index, count_index, row))
                )
            count = dtype.as_numpy_dtype(row[count_index])
            if count < 0:
                raise at_user_line(ValueError("Row in vocab file has negative frequency of %s: %s" % (count, row)))
            lines, total = lines + 1, total + count
    return lines, total


def skip_gram_sample_with_text_vocab(
    input_tensor: Any,
    vocab_freq_file: Any,
    vocab_token_index: int = 0,
    vocab_token_dtype: Any = dtypes.string,
    vocab_freq_index: int = 1,
    vocab_freq_dtype: Any = dtypes.float64,
    vocab_delimiter: str = ",",
    vocab_min_count: Any = 0,
    vocab_subsampling: Optional[float] = None,
    corpus_size: Any = None,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    batch_size: Optional[int] = None,
    batch_capacity: Optional[int] = None,
    seed: Optional[int] = None,
    name: Optional[str] = None,
) -> Any:
    """skip_gram_sample with counts of a text file: tokens and counts are columns of its lines. corpus_size: the sum of the counts, unless given."""
    if vocab_token_index < 0 or vocab_freq_index < 0:
        raise at_user_line(ValueError("vocab_token_index=%d and vocab_freq_index=%d must both be >= 0." % (vocab_token_index, vocab_freq_index)))
    if vocab_token_index == vocab_freq_index:
        raise at_user_line(ValueError("vocab_token_index and vocab_freq_index should be different, but are both %d." % vocab_token_index))
    lines, total = _read_counts(vocab_freq_file, vocab_token_index, vocab_freq_index, vocab_freq_dtype, vocab_delimiter)
    if corpus_size and total - corpus_size > 1e-6:
        raise at_user_line(ValueError("`corpus_size`=%s must be >= the sum of all frequency counts (%s) of %s." % (corpus_size, total, vocab_freq_file)))
    columns = (vocab_token_dtype, vocab_token_index, vocab_freq_dtype, vocab_freq_index)
    table = HashTable(TextFileInitializer(vocab_freq_file, *columns, vocab_size=lines, delimiter=vocab_delimiter), -1)
    return skip_gram_sample(
        input_tensor,
        min_skips,
        max_skips,
        start,
        limit,
        emit_self_as_target,
        table,
        vocab_min_count,
        vocab_subsampling,
        None if vocab_subsampling is None else corpus_size or total,
        batch_size,
        batch_capacity,
        seed,
        name,
    )
