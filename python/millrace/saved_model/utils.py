# SPDX-License-Identifier: Apache-2.0
"""Tensors as a SavedModel names them."""
from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.protos import definitions


def build_tensor_info(tensor: Any) -> Any:
    """The TensorInfo of a tensor."""
    if not hasattr(tensor, "get_shape") or not hasattr(tensor, "name"):
        raise at_user_line(TypeError("A TensorInfo needs a tensor of a graph; got %r" % (tensor,)))
    made = definitions.TensorInfo(name=tensor.name, dtype=dtypes.as_dtype(tensor.dtype).base_dtype.as_datatype_enum)
    made.tensor_shape.CopyFrom(tensor.get_shape().as_proto())
    return made


def get_tensor_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: Optional[str] = None) -> Any:
    """The tensor that a TensorInfo names."""
    name = "%s/%s" % (import_scope, tensor_info.name) if import_scope else tensor_info.name
    return (graph or get_default_graph()).get_tensor_by_name(name)
