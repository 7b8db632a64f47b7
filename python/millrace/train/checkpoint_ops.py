# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.training.checkpoint_ops: matrices of a checkpoint whose rows and columns stand for words that have moved since."""

from __future__ import annotations

import math
from typing import Any, Callable, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, init_ops, math_ops


def _both_or_none(old: Any, new: Any, which: str) -> bool:
    if bool(old) != bool(new):
        raise at_user_line(
            ValueError(
                "old_%s_vocab_file and new_%s_vocab_file must both be specified or left unspecified. old_%s_vocab_file='%s', "
                "new_%s_vocab_file='%s'" % (which, which, which, old, which, new)
            )
        )
    return bool(old)


def _load_and_remap_matrix(
    ckpt_path: Any,
    old_tensor_name: str,
    new_row_vocab_offset: int,
    num_rows_to_load: int,
    new_col_vocab_size: int,
    initializer: Callable[..., Any],
    old_row_vocab_size: int = -1,
    old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    max_rows_in_memory: int = -1,
) -> Any:
    """A matrix of a checkpoint with the rows and columns of new vocabularies. Words that the old ones lack, and buckets for words of
    neither, which come last, begin as the initializer says. Either rows or columns must have vocabularies."""
    for what, count in (("num_row_oov_buckets", num_row_oov_buckets), ("num_col_oov_buckets", num_col_oov_buckets)):
        if count < 0:
            raise at_user_line(ValueError("%s must be >= 0, but received %d" % (what, count)))
    rows_move = _both_or_none(old_row_vocab_file, new_row_vocab_file, "row")
    columns_move = _both_or_none(old_col_vocab_file, new_col_vocab_file, "col")
    if not rows_move and not columns_move:
        raise at_user_line(
            ValueError("Must provide either row or column vocab files. If no remapping is necessary, consider using `tf.train.init_from_checkpoint` instead.")
        )
    rows: Any = math_ops.range(new_row_vocab_offset, new_row_vocab_offset + num_rows_to_load, dtype=dtypes.int64)
    columns: Any = convert_to_tensor([], dtypes.int64)
    known_rows, known_columns = num_rows_to_load, new_col_vocab_size
    if rows_move and num_rows_to_load:
        rows, known_rows = gen_ops.generate_vocab_remapping(new_row_vocab_file, old_row_vocab_file, new_row_vocab_offset, num_rows_to_load, old_row_vocab_size)  # type: ignore[assignment]
    if columns_move:
        columns, known_columns = gen_ops.generate_vocab_remapping(new_col_vocab_file, old_col_vocab_file, 0, new_col_vocab_size)  # type: ignore[assignment]
    if not num_rows_to_load:  # a part of buckets alone
        made: Any = array_ops.zeros([0, new_col_vocab_size])
    else:
        new = initializer([num_rows_to_load * new_col_vocab_size - known_rows * known_columns, 1])
        path = ckpt_path[0] if isinstance(ckpt_path, (list, tuple)) and len(ckpt_path) == 1 else ckpt_path
        made = gen_ops.load_and_remap_matrix(path, old_tensor_name, rows, columns, new, num_rows_to_load, new_col_vocab_size, max_rows_in_memory)
    if num_row_oov_buckets:
        made = array_ops.concat([made, convert_to_tensor(initializer([num_row_oov_buckets, new_col_vocab_size]))], 0)
    if num_col_oov_buckets:
        made = array_ops.concat([made, convert_to_tensor(initializer([num_rows_to_load + num_row_oov_buckets, num_col_oov_buckets]))], 1)
    return made


def _load_and_remap_matrix_initializer(
    ckpt_path: Any,
    old_tensor_name: str,
    new_row_vocab_size: int,
    new_col_vocab_size: int,
    old_row_vocab_size: int = -1,
    old_row_vocab_file: Any = None,
    new_row_vocab_file: Any = None,
    old_col_vocab_file: Any = None,
    new_col_vocab_file: Any = None,
    num_row_oov_buckets: int = 0,
    num_col_oov_buckets: int = 0,
    initializer: Optional[Callable[..., Any]] = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer of variables, also of parts along the rows, that begin as a matrix of a checkpoint with other rows and columns."""
    begin = init_ops.zeros_initializer() if initializer is None else initializer
    if not callable(begin):
        raise at_user_line(TypeError("initializer must be callable, instead of being %s of type %s." % (begin, type(begin))))

    def make(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Any:
        if dtypes.as_dtype(dtype) != dtypes.float32:
            raise at_user_line(TypeError("Currently, only float32 is supported. Received dtype: %s" % dtype))
        if len(shape) != 2:
            raise at_user_line(ValueError("Expected 2-dim shape, but received: %s" % (shape,)))
        if shape[0] <= 0:
            raise at_user_line(ValueError("Expected 1st dim of shape to be > 0, but received shape: %s" % (shape,)))
        if shape[1] != new_col_vocab_size + num_col_oov_buckets:
            raise at_user_line(
                ValueError(
                    "Expected 2nd dim of shape to be new_col_vocab_size (%d) + num_col_oov_buckets (%d) = %d, but received shape: %s"
                    % (new_col_vocab_size, num_col_oov_buckets, new_col_vocab_size + num_col_oov_buckets, shape)
                )
            )
        offset = 0 if partition_info is None else partition_info.single_offset(shape)
        if offset + shape[0] > new_row_vocab_size + num_row_oov_buckets:
            raise at_user_line(
                ValueError(
                    "Trying to initialize %d additional rows after %d rows have already been initialized, which would exceed expected "
                    "total row count of new_row_vocab_size (%d) + num_row_oov_buckets (%d) = %d."
                    % (shape[0], offset, new_row_vocab_size, num_row_oov_buckets, new_row_vocab_size + num_row_oov_buckets)
                )
            )
        buckets = min(shape[0], max(0, offset + shape[0] - new_row_vocab_size))  # those that lie in this part
        return _load_and_remap_matrix(
            ckpt_path,
            old_tensor_name,
            offset,
            shape[0] - buckets,
            new_col_vocab_size,
            begin,
            old_row_vocab_size,
            old_row_vocab_file,
            new_row_vocab_file,
            old_col_vocab_file,
            new_col_vocab_file,
            buckets,
            num_col_oov_buckets,
            max_rows_in_memory,
        )

    return make


def _load_embedding_initializer(
    ckpt_path: Any,
    embedding_tensor_name: str,
    new_vocab_size: int,
    embedding_dim: int,
    old_vocab_file: Any,
    new_vocab_file: Any,
    old_vocab_size: int = -1,
    num_oov_buckets: int = 0,
    initializer: Optional[Callable[..., Any]] = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer of embeddings that begin as those of a checkpoint; of new words as the initializer says, normal numbers by default."""
    if initializer is None:
        initializer = init_ops.truncated_normal_initializer(stddev=1.0 / math.sqrt(embedding_dim))
    return _load_and_remap_matrix_initializer(
        ckpt_path,
        embedding_tensor_name,
        new_vocab_size,
        embedding_dim,
        old_vocab_size,
        old_vocab_file,
        new_vocab_file,
        None,
        None,
        num_oov_buckets,
        0,
        initializer,
        max_rows_in_memory,
    )
