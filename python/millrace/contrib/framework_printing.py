# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.framework.print_op: tf.Print that says what it prints, of sparse tensors and tensor arrays as well."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.ops import array_ops, control_flow_ops, math_ops
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variables import Variable

_KINDS = {"Tensor": Tensor, "SparseTensor": SparseTensor, "TensorArray": TensorArray, "Variable": Variable}


def _described(t: Any, name: bool, kind: bool, shape: bool, first_true: bool) -> List[Any]:
    what = next((n for n, c in _KINDS.items() if isinstance(t, c)), None)
    if what is None:
        raise at_user_line(ValueError("print_op takes a Tensor, SparseTensor, TensorArray or Variable, not %r" % (t,)))
    found: List[Any] = []
    if name and what == "Tensor":
        found.append("Name: " + t.name)
    if kind:
        found.append("Type: %s (%s)" % (what, t.dtype.name))
    if shape and what == "Tensor":
        found.append("Shape: %s" % (t.get_shape().dims,))
    elif shape and what == "SparseTensor":
        found += ["Shape:", t.dense_shape]
    elif shape and what == "TensorArray":
        found += ["Size:", t.size()]
    if first_true and what == "Tensor" and t.dtype == dtypes.bool:
        found += ["First True in Boolean tensor at:", math_ops.argmax(math_ops.cast(t, dtypes.uint8), 0)]
    if what == "Tensor":
        found += ["Value:", t]
    elif what == "SparseTensor":
        found += ["Sparse indices:", t.indices, "Sparse values:", t.values]
    elif what == "TensorArray":
        found += ["Value:", t.stack()]
    return found


def print_op(
    input_: Any,
    data: Any = None,
    message: Optional[str] = None,
    first_n: Optional[int] = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_shape: bool = True,
    summarize_indicator_vector: bool = True,
    name: Optional[str] = None,
) -> Any:
    """input_; whenever it is needed, its name, type, shape and values are printed behind the message, and those of data."""
    asked = print_tensor_name, print_tensor_type, print_shape, summarize_indicator_vector
    parts = [part for t in [input_, *(data or [])] for part in _described(t, *asked)]
    if isinstance(input_, (Tensor, Variable)):
        return control_flow_ops.Print(convert_to_tensor(input_), parts, message or "", first_n, summarize, name)
    with control_dependencies([control_flow_ops.Print(convert_to_tensor(0), parts, message or "", first_n, summarize, name)]):
        if isinstance(input_, SparseTensor):
            return SparseTensor(array_ops.identity(input_.indices), array_ops.identity(input_.values), array_ops.identity(input_.dense_shape))
        return input_.identity()
