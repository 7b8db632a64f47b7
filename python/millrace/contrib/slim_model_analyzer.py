# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.model_analyzer: how large a model is."""

from __future__ import annotations

from typing import Any, Tuple


def tensor_description(var: Any) -> str:
    """Type and shape, as float32_ref 3x5."""
    return "%s %s" % (var.dtype.name, "x".join("?" if d.value is None else str(d.value) for d in var.get_shape()))


def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """How many elements the outputs of a graph's operations have, as far as that is known."""
    if print_info:
        print("---------\nOperations: name -> (type shapes) [size]\n---------")
    total = 0
    for op in graph.get_operations():
        sizes = [t.get_shape().num_elements() or 0 for t in op.outputs]
        total += sum(sizes)
        if print_info:
            print("%s\t->\t%s\t[%s]" % (op.name, "(%s)" % ", ".join("%s" % tensor_description(t) for t in op.outputs), sum(sizes)))
    if print_info:
        print("---------\nTotal size: %d" % total)
    return total


def analyze_vars(variables: Any, print_info: bool = False) -> Tuple[int, int]:
    """How many elements and bytes variables have."""
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
    elements = size = 0
    for var in variables:
        count = var.get_shape().num_elements() or 0
        width = count * var.dtype.base_dtype.size
        elements, size = elements + count, size + width
        if print_info:
            print("%s (%s) [%d, bytes: %d]" % (var.name, tensor_description(var), count, width))
    if print_info:
        print("Total size of variables: %d\nTotal bytes of variables: %d" % (elements, size))
    return elements, size
