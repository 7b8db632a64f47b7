# SPDX-License-Identifier: Apache-2.0
"""Adding a GraphDef to a graph."""
from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Operation, get_default_graph


def import_graph_def(graph_def: Any, input_map: Any = None, return_elements: Any = None, name: Optional[str] = None, op_dict: Any = None,
                     producer_op_list: Any = None) -> Optional[List[Any]]:
    """Adds the nodes of a GraphDef below a name scope ("import" unless given; "" for none). `input_map` replaces tensors
    of it by tensors of the graph; `return_elements` names tensors and operations to return."""
    del op_dict, producer_op_list  # attributes that the library does not know keep what they are
    if not hasattr(graph_def, "SerializeToString"):
        raise TypeError("graph_def must be a GraphDef proto.")
    if input_map is not None and not (isinstance(input_map, dict) and all(isinstance(k, (str, bytes)) for k in input_map)):
        raise TypeError("input_map must be a dictionary mapping strings to Tensor objects.")
    if return_elements is not None:
        return_elements = [e.decode() if isinstance(e, bytes) else e for e in return_elements]
        if not all(isinstance(e, str) for e in return_elements):
            raise TypeError("return_elements must be a list of strings.")
    graph = get_default_graph()
    prefix = "import" if name is None else name
    if prefix.endswith("/"):
        prefix = prefix[:-1]
    elif prefix:
        prefix = graph.unique_name(prefix)
    elif graph.get_name_scope():
        prefix = graph.get_name_scope()
    mapped = []
    with graph.name_scope(prefix + "/" if prefix else None):
        for key, value in (input_map or {}).items():
            key = key.decode() if isinstance(key, bytes) else key
            mapped.append((key, value if isinstance(value, Operation) else convert_to_tensor(value)))
    made = graph._import(graph_def.SerializeToString(), prefix, mapped, return_elements or [])
    return made if return_elements is not None else None  # type: ignore[no-any-return]
