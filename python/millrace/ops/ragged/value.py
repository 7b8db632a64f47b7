# SPDX-License-Identifier: Apache-2.0
"""tf.ragged.RaggedTensorValue: what a ragged tensor is when it is run or fed."""

from __future__ import annotations

from typing import Any, List, Tuple

import numpy as np

from millrace.framework.errors import at_user_line


class RaggedTensorValue:
    """An array of all values, or another RaggedTensorValue, and where each row begins and ends."""

    dispatches = True

    def __init__(self, values: Any, row_splits: Any) -> None:
        if not isinstance(row_splits, (np.ndarray, np.generic)) or row_splits.dtype not in (np.int64, np.int32):
            raise at_user_line(TypeError("row_splits must be a 1-D int32 or int64 numpy array"))
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise at_user_line(TypeError("values must be convertible to a numpy array or a RaggedTensorValue"))
        if isinstance(values, RaggedTensorValue) and values.row_splits.dtype != row_splits.dtype:
            raise at_user_line(ValueError("row_splits and values.row_splits must have the same dtype"))
        self._values: Any = values
        self._row_splits: Any = row_splits

    values = property(lambda self: self._values, doc="All values: an array or a RaggedTensorValue.")
    row_splits = property(lambda self: self._row_splits, doc="Where each row begins, and where the last ends.")
    dtype = property(lambda self: self._values.dtype, doc="The type of its elements.")

    @property
    def flat_values(self) -> Any:
        """The array of the innermost level."""
        inner: Any = self
        while isinstance(inner, RaggedTensorValue):
            inner = inner.values
        return inner

    @property
    def nested_row_splits(self) -> Tuple[Any, ...]:
        """The splits of each level, the outermost first."""
        levels, inner = [], self  # type: List[Any], Any
        while isinstance(inner, RaggedTensorValue):
            levels.append(inner.row_splits)
            inner = inner.values
        return tuple(levels)

    @property
    def ragged_rank(self) -> int:
        """How many levels there are."""
        return len(self.nested_row_splits)

    @property
    def shape(self) -> Tuple[Any, ...]:
        """Its shape, with None for ragged dimensions."""
        return (self._row_splits.shape[0] - 1, None, *self._values.shape[1:])

    def to_list(self) -> List[Any]:
        """As lists within lists."""
        inner = self._values.to_list() if isinstance(self._values, RaggedTensorValue) else self._values.tolist()
        return [inner[self._row_splits[i] : self._row_splits[i + 1]] for i in range(len(self._row_splits) - 1)]

    def __eq__(self, other: Any) -> Any:
        return self.to_list() == other.to_list() if isinstance(other, RaggedTensorValue) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "<tf.RaggedTensorValue %s>" % self.to_list()

    def __repr__(self) -> str:
        return "tf.RaggedTensorValue(values=%r, row_splits=%r)" % (self._values, self._row_splits)
