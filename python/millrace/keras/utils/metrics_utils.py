# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.keras.utils.metrics_utils: how areas are measured, and ragged values of metrics."""

from __future__ import annotations

import enum
from typing import Any, List, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies
from millrace.ops import array_ops, check_ops
from millrace.ops.ragged.tensor import RaggedTensor


class AUCCurve(enum.Enum):
    """The curve under which an area lies."""

    ROC = "ROC"
    PR = "PR"


class AUCSummationMethod(enum.Enum):
    """How an area is summed up between thresholds."""

    INTERPOLATION = "interpolation"
    MAJORING = "majoring"
    MINORING = "minoring"


def one_of(kind: Any, value: Any, what: str) -> Any:
    """The member of an enumeration, or of that name. ValueError where there is none."""
    for member in kind:
        if value is member or isinstance(value, str) and value.lower() == member.value.lower():
            return member
    raise at_user_line(ValueError('Invalid AUC %s value "%s". Valid options are: %s' % (what, value, [m.value for m in kind])))


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
    if len({x.ragged_rank for x in (given if mask is None else [*given, mask])}) > 1:
        raise at_user_line(ValueError("Ragged values and their mask must have rows of the same depth: %s" % ([*given, mask],)))
    others = given[1:] + ([] if mask is None else [mask])
    same = [check_ops.assert_equal(a, b) for x in others for a, b in zip(given[0].nested_row_splits, x.nested_row_splits)]

    def column(x: Any) -> Any:
        return array_ops.expand_dims(array_ops.identity(x.flat_values), -1)

    with control_dependencies(same):
        columns = [column(x) for x in given]
        return columns if isinstance(values, list) else columns[0], None if mask is None else column(mask)
