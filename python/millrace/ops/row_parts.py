# SPDX-License-Identifier: Apache-2.0
"""Rows that lie in several variables, one behind the other."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.variables import PartitionedVariable


class RowParts:
    """A variable, or several (a list, or a PartitionedVariable) that have its rows. `sizes` says how many, where their shapes do not."""

    def __init__(self, given: Any, sizes: Optional[Sequence[int]] = None) -> None:
        self.parts: List[Any] = list(given) if isinstance(given, (list, PartitionedVariable)) else [given]
        self._sizes = None if sizes is None else list(sizes)

    @property
    def sizes(self) -> List[int]:
        """How many rows each has."""
        return self._sizes or [part.get_shape()[0].value for part in self.parts]

    def whole(self) -> Any:
        """All rows."""
        return convert_to_tensor(self.parts[0]) if len(self.parts) == 1 else array_ops.concat(self.parts, 0)

    def _places(self, rows: Any) -> List[Tuple[Any, Any]]:
        """For each part, which of `rows` it has, and where."""
        ends = math_ops.cumsum(convert_to_tensor(self.sizes, rows.dtype))
        owner = math_ops.reduce_sum(math_ops.cast(gen_ops.greater_equal(array_ops.expand_dims(rows, 1), ends[:-1]), dtypes.int32), 1)
        here = gen_ops.dynamic_partition(math_ops.range(array_ops.size(rows)), owner, len(self.parts))
        return [(chosen, array_ops.gather(rows, chosen) - sum(self.sizes[:i])) for i, chosen in enumerate(here)]

    def gather(self, rows: Any) -> Any:
        """Some rows, by their numbers."""
        if len(self.parts) == 1:
            return array_ops.gather(convert_to_tensor(self.parts[0]), rows)
        places = self._places(rows)
        return gen_ops.dynamic_stitch([chosen for chosen, _ in places], [array_ops.gather(part, at) for part, (_, at) in zip(self.parts, places)])

    def scatter(self, change: Callable[[Any, Any, Any], Any], rows: Any, values: Any) -> List[Any]:
        """change(variable, rows of it, values) for each part, as tf.scatter_add."""
        if len(self.parts) == 1:
            return [change(self.parts[0], rows, values)]
        places = self._places(rows)
        return [change(part, at, array_ops.gather(values, chosen)) for part, (chosen, at) in zip(self.parts, places)]

    def split(self, values: Any) -> List[Any]:
        """Values of all rows, by parts."""
        return [values] if len(self.parts) == 1 else array_ops.split(values, self.sizes)
