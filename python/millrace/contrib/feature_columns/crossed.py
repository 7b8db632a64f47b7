# SPDX-License-Identifier: Apache-2.0
"""Columns of the combinations of other columns' values."""

from __future__ import annotations

from typing import Any, Iterable, Optional

from millrace.contrib.feature_columns.base import check_both_or_none, checked_combiner
from millrace.contrib.feature_columns.dense import _BucketizedColumn
from millrace.contrib.feature_columns.sparse import _CrossedColumn, _SparseColumn
from millrace.framework.errors import at_user_line


def crossed_column(
    columns: Iterable[Any],
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    hash_key: Optional[int] = None,
) -> _CrossedColumn:
    """A column of the combinations of others' values, which share hash_bucket_size classes."""
    ordered = tuple(columns)
    for column in ordered:
        if not isinstance(column, (_SparseColumn, _CrossedColumn, _BucketizedColumn)):
            raise at_user_line(TypeError("columns must be a set of _SparseColumn, _CrossedColumn, or _BucketizedColumn instances. Column is: %s" % (column,)))
    if len(ordered) < 2:
        raise at_user_line(ValueError("columns must contain at least 2 elements. columns: %s" % (ordered,)))
    if hash_bucket_size < 2:
        raise at_user_line(ValueError("hash_bucket_size must be at least 2. hash_bucket_size: %s" % hash_bucket_size))
    check_both_or_none(ckpt_to_load_from, tensor_name_in_ckpt)
    return _CrossedColumn(
        tuple(sorted(ordered, key=lambda c: c.name)), hash_bucket_size, hash_key, checked_combiner(combiner), ckpt_to_load_from, tensor_name_in_ckpt
    )
