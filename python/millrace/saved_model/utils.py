# SPDX-License-Identifier: Apache-2.0
"""Tensors as a SavedModel names them."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import CompositeTensor, SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.framework.library_names import prepend_name_scope
from millrace.framework.type_spec import type_spec_from_value
from millrace.protos import definitions
from millrace.saved_model import structures
from millrace.saved_model.reading import parse_saved_model


def build_tensor_info(tensor: Any) -> Any:
    """The TensorInfo of a tensor; a SparseTensor's names its three tensors, and that of other composite ones their components.

    The type of a variable that is a reference is that of the reference.
    """
    if isinstance(tensor, CompositeTensor) and not isinstance(tensor, SparseTensor):
        return _of_components(tensor)
    if not hasattr(tensor, "get_shape") or not isinstance(tensor, SparseTensor) and not hasattr(tensor, "name"):
        raise at_user_line(TypeError("A TensorInfo needs a tensor of a graph; got %r" % (tensor,)))
    made = definitions.TensorInfo(dtype=dtypes.as_dtype(tensor.dtype).as_datatype_enum)
    made.tensor_shape.CopyFrom(tensor.get_shape().as_proto())
    if isinstance(tensor, SparseTensor):
        made.coo_sparse.values_tensor_name, made.coo_sparse.indices_tensor_name = tensor.values.name, tensor.indices.name
        made.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        made.name = tensor.name
    return made


def _of_components(tensor: Any) -> Any:
    spec = type_spec_from_value(tensor)
    made = definitions.TensorInfo(dtype=dtypes.as_dtype(tensor.dtype).base_dtype.as_datatype_enum)
    made.tensor_shape.CopyFrom(tensor.shape.as_proto())
    made.composite_tensor.type_spec.CopyFrom(structures.encode(spec).type_spec_value)
    for component in nest.flatten(tensor, expand_composites=True):
        made.composite_tensor.components.add().CopyFrom(build_tensor_info(component))
    return made


def build_tensor_info_from_op(op: Any) -> Any:
    """The TensorInfo that names an operation: of no type and unknown rank."""
    made = definitions.TensorInfo(name=op.name)
    made.tensor_shape.unknown_rank = True
    return made


def get_element_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: Optional[str] = None) -> Any:
    """The tensor or operation that a TensorInfo names."""
    graph = get_default_graph() if graph is None else graph
    return graph.as_graph_element(prepend_name_scope(tensor_info.name, import_scope))


def get_tensor_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: Optional[str] = None) -> Any:
    """The tensor, or composite one, that a TensorInfo names."""
    graph = get_default_graph() if graph is None else graph
    kind = tensor_info.WhichOneof("encoding")

    def find(name: str) -> Any:
        return graph.get_tensor_by_name(prepend_name_scope(name, import_scope))

    if kind == "name":
        return find(tensor_info.name)
    if kind == "coo_sparse":
        sparse = tensor_info.coo_sparse
        return SparseTensor(find(sparse.indices_tensor_name), find(sparse.values_tensor_name), find(sparse.dense_shape_tensor_name))
    if kind == "composite_tensor":
        spec = structures.decode(definitions.StructuredValue(type_spec_value=tensor_info.composite_tensor.type_spec))
        parts = [get_tensor_from_tensor_info(part, graph, import_scope) for part in tensor_info.composite_tensor.components]
        return nest.pack_sequence_as(spec, parts, expand_composites=True)
    raise at_user_line(ValueError("Invalid TensorInfo.encoding: %s" % kind))


def get_meta_graph_def(saved_model_dir: Any, tag_set: str) -> Any:
    """The MetaGraphDef of a SavedModel that has these tags, which commas separate."""
    wanted = set(tag_set.split(","))
    for graph in parse_saved_model(saved_model_dir).meta_graphs:
        if set(graph.meta_info_def.tags) == wanted:
            return graph
    raise at_user_line(RuntimeError("MetaGraphDef associated with tag-set %s could not be found in SavedModel" % tag_set))


def get_saved_model_tag_sets(saved_model_dir: Any) -> Any:
    """The tags of each MetaGraphDef of a SavedModel."""
    return [list(graph.meta_info_def.tags) for graph in parse_saved_model(saved_model_dir).meta_graphs]


def read_saved_model(saved_model_dir: Any) -> Any:
    """The SavedModel message of a folder."""
    return parse_saved_model(saved_model_dir)
