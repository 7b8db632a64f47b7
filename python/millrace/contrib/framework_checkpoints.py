# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.framework: checkpoints, and initializers from matrices of one whose rows and columns stand for words that have moved since."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.train import checkpoint_utils, saver
from millrace.train.checkpoint_ops import _load_and_remap_matrix_initializer as load_and_remap_matrix_initializer
from millrace.train.saver import CheckpointReader


def load_linear_multiclass_bias_initializer(
    ckpt_path: Any,
    bias_tensor_name: str,
    new_class_vocab_size: int,
    old_class_vocab_file: Any,
    new_class_vocab_file: Any,
    num_class_oov_buckets: int = 0,
    initializer: Optional[Callable[..., Any]] = None,
    max_rows_in_memory: int = -1,
) -> Callable[..., Any]:
    """An initializer of a linear model's biases [classes, 1], that begin as those of a checkpoint; of new classes as the initializer says, 0 by default."""
    return load_and_remap_matrix_initializer(
        ckpt_path,
        bias_tensor_name,
        new_class_vocab_size,
        1,
        old_row_vocab_file=old_class_vocab_file,
        new_row_vocab_file=new_class_vocab_file,
        num_row_oov_buckets=num_class_oov_buckets,
        initializer=initializer,
        max_rows_in_memory=max_rows_in_memory,
    )


def load_variable_slot_initializer(
    ckpt_path: Any, old_tensor_name: str, primary_partition_info: Any, new_row_vocab_size: int, new_col_vocab_size: int, *args: Any, **kwargs: Any
) -> Callable[..., Any]:
    """load_and_remap_matrix_initializer, whose further arguments it takes, for a slot of an optimizer: which part of the whole it is
    says primary_partition_info, that of the slot's variable."""
    names = (
        "old_row_vocab_file",
        "new_row_vocab_file",
        "old_col_vocab_file",
        "new_col_vocab_file",
        "num_row_oov_buckets",
        "num_col_oov_buckets",
        "initializer",
        "max_rows_in_memory",
    )
    kwargs.update(zip(names, args))
    make = load_and_remap_matrix_initializer(ckpt_path, old_tensor_name, new_row_vocab_size, new_col_vocab_size, **kwargs)

    def of_part(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Any:
        del partition_info  # slots are made without
        return make(shape, dtype, partition_info=primary_partition_info)

    return of_part


def load_checkpoint(filepattern: str) -> CheckpointReader:
    """tf.train.load_checkpoint."""
    return saver.load_checkpoint(filepattern)


def load_variable(checkpoint_dir: str, name: str) -> Any:
    """tf.train.load_variable."""
    return saver.load_variable(checkpoint_dir, name)


def list_variables(checkpoint_dir: str) -> List[Tuple[str, List[int]]]:
    """tf.train.list_variables."""
    return saver.list_variables(checkpoint_dir)


def init_from_checkpoint(checkpoint_dir: str, assignment_map: Any) -> None:
    """tf.train.init_from_checkpoint."""
    checkpoint_utils.init_from_checkpoint(checkpoint_dir, assignment_map)
