# SPDX-License-Identifier: Apache-2.0
"""RecordInput: batches of records of many files, in an order that is drawn anew each time."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops


class RecordInput:
    """Reads the records of files that fit a pattern, shuffled, again and again."""

    def __init__(
        self,
        file_pattern: str,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0,
        seed: int = 0,
        name: Optional[str] = None,
        batches: Optional[int] = None,
        compression_type: Any = None,
    ) -> None:
        self._batch_size = batch_size * batches if batches is not None else batch_size
        self._batches, self._name = batches, name
        self._given: Any = {
            "file_pattern": file_pattern,
            "file_buffer_size": buffer_size,
            "file_parallelism": parallelism,
            "file_shuffle_shift_ratio": shift_ratio,
            "file_random_seed": seed,
        }
        if compression_type:
            from millrace.python_io import TFRecordOptions

            self._given["compression_type"] = TFRecordOptions.get_compression_type_string(compression_type)

    def get_yield_op(self) -> Any:
        """A tensor of the next records; of several batches a list."""
        records: Tensor = gen_ops.record_input(batch_size=self._batch_size, name=self._name, **self._given)
        if self._batches is None:
            return records
        size = self._batch_size // self._batches
        rows: List[Tensor] = array_ops.split(records, self._batch_size, 0)
        return [[array_ops.reshape(r, []) for r in rows[i * size : (i + 1) * size]] for i in range(self._batches)]
