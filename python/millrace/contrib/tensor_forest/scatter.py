# SPDX-License-Identifier: Apache-2.0
"""tensor_forest_ops: additions to parts of variables."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes, errors
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops
from millrace.ops.variables import scatter_nd_add

_ALIKE = "Number of updates should be same as number of indices."


def scatter_add_ndim(input: Any, indices: Any, deltas: Any, name: Optional[str] = None) -> Operation:
    """Adds deltas to the elements or slices of a variable that indices [n, axes] say; nothing where there are none."""
    with name_scope(name, "ScatterAddNdim", [indices, deltas]):
        places = convert_to_tensor(indices, dtype=dtypes.int32, name="indices")
        added = convert_to_tensor(deltas, dtype=input.dtype.base_dtype, name="deltas")
        if places.get_shape().num_elements() == 0:
            return control_flow_ops.no_op()
        if not added.get_shape()[:1].is_compatible_with(places.get_shape()[:1]):
            raise at_user_line(errors.InvalidArgumentError(None, None, "%s got %s and %s" % (_ALIKE, added.get_shape(), places.get_shape())))
        with control_dependencies([check_ops.assert_equal(array_ops.shape(added)[0], array_ops.shape(places)[0], message=_ALIKE)]):
            return scatter_nd_add(input, places, array_ops.identity(added)).op
