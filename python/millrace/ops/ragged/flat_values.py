# SPDX-License-Identifier: Apache-2.0
"""Functions of the flat values of ragged tensors that have the same rows."""

from __future__ import annotations

from typing import Any, Callable, List

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, check_ops, math_ops
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged, is_ragged


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """op of the flat values of ragged arguments, which must all have the same rows; the result has them too."""
    arguments, named = list(args), dict(kwargs)
    found: List[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if is_ragged(value):
            found.append(convert_to_tensor_or_ragged(value))
            return found[-1]
        if isinstance(value, (list, tuple)) and any(is_ragged(v) for v in value):
            return [flat(v) for v in value]
        return value

    arguments = [flat(a) for a in arguments]
    named = {k: flat(v) for k, v in named.items()}
    if not found:
        return op(*args, **kwargs)
    first = found[0]
    if any(r.ragged_rank != first.ragged_rank for r in found):
        raise at_user_line(ValueError("Inputs must have identical ragged splits: their ragged ranks differ."))
    checks = same_rows(found)

    def values(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return value.flat_values
        return [values(v) for v in value] if isinstance(value, list) else value

    with control_dependencies(checks):
        made = op(*[values(a) for a in arguments], **{k: values(v) for k, v in named.items()})
        if checks and isinstance(made, Tensor):
            made = array_ops.identity(made)
    rows, have = made.get_shape(), first.flat_values.get_shape()
    if rows.ndims is not None and have.ndims is not None and (rows.ndims == 0 or not rows[:1].is_compatible_with(have[:1])):
        raise at_user_line(
            ValueError(
                "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as flat_values of any ragged inputs. "
                "(output shape: %s; expected outer dimension size: %s)" % (rows, have[0])
            )
        )
    return first.with_flat_values(made)


def same_rows(ragged: List[RaggedTensor]) -> List[Any]:
    """Checks that ragged tensors have the same rows."""
    checks = []
    for other in ragged[1:]:
        for a, b in zip(ragged[0].nested_row_splits, other.nested_row_splits):
            if a is not b:
                checks.append(
                    check_ops.assert_equal(math_ops.cast(a, dtypes.int64), math_ops.cast(b, dtypes.int64), message="Inputs must have identical ragged splits")
                )
    return [c for c in checks if c is not None]
