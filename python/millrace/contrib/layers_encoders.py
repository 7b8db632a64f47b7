# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.encoders: sequences of symbols as rows of a table that is learnt."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib.framework import model_variable
from millrace.contrib.layers_sparse import dense_to_sparse_tensor
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, gen_ops, math_ops, nn_ops
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse
from millrace.ops.variable_scope import variable_scope


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The mean of the rows of a table at ids [batch, length]; looked up sparsely, symbol 0 counts only where there is no other."""
    if not vocab_size or not embed_dim:
        raise at_user_line(ValueError("Must specify vocab size and embedding dimension"))
    sparse = isinstance(ids, SparseTensor)
    if sparse and not sparse_lookup:
        raise at_user_line(TypeError("ids are expected to be dense Tensor, got: %s" % (ids,)))
    with variable_scope(scope, "bow_encoder", [] if sparse else [ids], reuse=reuse):
        table = model_variable("embeddings", [vocab_size, embed_dim], initializer=initializer, regularizer=regularizer, trainable=trainable)
        if not sparse_lookup:
            return math_ops.reduce_mean(nn_ops.embedding_lookup(table, ids), 1)
        return safe_embedding_lookup_sparse([table], ids if sparse else dense_to_sparse_tensor(ids), combiner="mean", default_id=0)


def embed_sequence(
    ids: Any,
    vocab_size: Optional[int] = None,
    embed_dim: Optional[int] = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Any:
    """The rows of a table, which it makes, at ids; `unique`: each row is read once."""
    if not (reuse or (vocab_size and embed_dim)):
        raise at_user_line(
            ValueError("Must specify vocab size and embedding dimension when not reusing. Got vocab_size=%s and embed_dim=%s" % (vocab_size, embed_dim))
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        table = model_variable("embeddings", [vocab_size, embed_dim], initializer=initializer, regularizer=regularizer, trainable=trainable)
        return (embedding_lookup_unique if unique else nn_ops.embedding_lookup)(table, ids)


def embedding_lookup_unique(params: Any, ids: Any, partition_strategy: str = "mod", name: Optional[str] = None) -> Any:
    """embedding_lookup that reads each row once."""
    with name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = convert_to_tensor(ids)
        different, places = gen_ops.unique(array_ops.reshape(ids, [-1]))
        rows = nn_ops.embedding_lookup(params, different, partition_strategy)
        made = array_ops.reshape(array_ops.gather(rows, places), array_ops.concat([array_ops.shape(ids), array_ops.shape(rows)[1:]], 0))
        made.set_shape(ids.get_shape().concatenate(rows.get_shape()[1:]))
        return made
