# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.keras.utils.metrics_utils: ragged values of metrics."""

from __future__ import annotations

from typing import Any, List, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, check_ops
from millrace.ops.ragged.tensor import RaggedTensor


def ragged_assert_compatible_and_get_flat_values(values: Any, mask: Any = None) -> Tuple[Any, Any]:
    """Values, and their mask, as what metrics count: ragged ones, whose rows must be the same, as columns of their flat values."""
    given: List[Any] = list(values) if isinstance(values, list) else [values]
    ragged = [isinstance(x, RaggedTensor) for x in given]
    if any(ragged) and not (all(ragged) and (mask is None or isinstance(mask, RaggedTensor))):
        raise at_user_line(TypeError("One of the inputs does not have acceptable types."))
    if not any(ragged):
        if isinstance(mask, RaggedTensor):
            raise at_user_line(TypeError("Ragged mask is not allowed with non-ragged inputs."))
        return values, mask
    others = given[1:] + ([] if mask is None else [mask])
    same = [check_ops.assert_equal(a, b) for x in others for a, b in zip(given[0].nested_row_splits, x.nested_row_splits)]

    def column(x: Any) -> Any:
        return array_ops.expand_dims(array_ops.identity(x.flat_values), -1)

    with control_dependencies(same):
        columns = [column(x) for x in given]
        return columns if isinstance(values, list) else columns[0], None if mask is None else column(mask)
