# SPDX-License-Identifier: Apache-2.0
"""What is asked of large GraphDefs often, of their bytes: messages of all their nodes take seconds."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from millrace.protos import definitions
from millrace.protos.message import fields_of, put_bytes

_SHAPES = "_output_shapes"
_NODE, _LIBRARY = 1, 2  # of a GraphDef
_NAME, _OP, _ATTR = 1, 2, 5  # of a NodeDef


def _field(message: memoryview, number: int) -> str:
    """A text of a message, which is early in it."""
    return next((str(body, "utf-8") for n, _, body in fields_of(message) if n == number and body is not None), "")


def edited(graph_def: bytes, keep: Optional[Callable[[str], bool]], shapes: Optional[Callable[[str], Tuple[bytes, ...]]]) -> bytes:
    """A GraphDef with the nodes alone whose names `keep` takes, and with the attribute of output shapes, each the TensorShapeProto that `shapes` gives."""
    made = bytearray()
    for number, whole, node in fields_of(memoryview(graph_def)):
        if number != _NODE or node is None:
            made += whole
            continue
        name = _field(node, _NAME)
        if keep is not None and not keep(name):
            continue
        if shapes is None:
            made += whole
            continue
        written = bytes(node)
        if _SHAPES.encode() in written:  # what was imported may have had some
            without = definitions.NodeDef.FromString(written)
            without.attr.pop(_SHAPES, None)
            written = without.SerializeToString()
        inside = bytearray()
        for shape in shapes(name):
            put_bytes(inside, 7, shape)  # ListValue.shape
        value, entry, whole_node = bytearray(), bytearray(), bytearray(written)
        put_bytes(value, 1, inside)  # AttrValue.list
        put_bytes(entry, 1, _SHAPES.encode())
        put_bytes(entry, 2, value)
        put_bytes(whole_node, _ATTR, entry)
        put_bytes(made, _NODE, whole_node)
    return bytes(made)


def op_types(graph_def: bytes) -> Tuple[List[str], Any]:
    """(the op types of a GraphDef's nodes, its FunctionDefLibrary)"""
    types, library = set(), definitions.FunctionDefLibrary()
    for number, _, body in fields_of(memoryview(graph_def)):
        if number == _NODE and body is not None:
            types.add(_field(body, _OP))
        elif number == _LIBRARY and body is not None:
            library.MergeFromString(bytes(body))
    return list(types), library
