# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.experimental.ops.map_defun: a function of the graph, of each row of tensors."""

from __future__ import annotations

from typing import Any, List, Sequence

from millrace.framework import nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph
from millrace.ops import gen_ops


def map_defun(fn: Any, elems: Sequence[Any], output_dtypes: Sequence[Any], output_shapes: Sequence[Any], max_intra_op_parallelism: int = 1) -> List[Tensor]:
    """The results of a function (tf.contrib.eager.defun) for each row of the tensors of elems, stacked: output_shapes are those of one result.
    The rows are worked on at the same time. ValueError where elems or output_dtypes are no lists."""
    if not isinstance(elems, list) or not isinstance(output_dtypes, list) or not isinstance(output_shapes, list):
        raise at_user_line(ValueError("elems, output_dtypes and output_shapes must be lists of tensors, types and shapes."))
    concrete = fn.get_concrete_function()
    concrete.add_to_graph(get_default_graph())
    rows = [convert_to_tensor(rows) for rows in elems]
    made = gen_ops.map_defun(rows, concrete.captured_inputs, output_dtypes, output_shapes, concrete.name, max_intra_op_parallelism=max_intra_op_parallelism)
    return list(nest.listed(made))
