# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.safe_embedding_lookup_sparse."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import sparse_lookup


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: Optional[str] = None,
    default_id: Optional[int] = None,
    name: Optional[str] = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Tensor:
    """tf.nn.safe_embedding_lookup_sparse, which tells parts of several types by a ValueError."""
    try:
        return sparse_lookup.safe_embedding_lookup_sparse(
            embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, partition_strategy, max_norm
        )
    except TypeError as error:
        if "of one type" not in str(error):
            raise
        raise at_user_line(ValueError(str(error))) from error
