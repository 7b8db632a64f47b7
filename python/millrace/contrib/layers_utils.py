# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.utils: outputs collected under names, and helpers of layers."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, List, Optional, Tuple

from millrace.framework import static_values
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, add_to_collections, get_collection
from millrace.ops.control_flow_ops import smart_cond  # noqa: F401
from millrace.ops.variables import Variable


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """The value where it is known before a step, else None; what is no tensor is its own. ValueError where a tensor is of another type than dtype."""
    value = value_or_tensor_or_var
    if value is None:
        raise at_user_line(ValueError("value_or_tensor_or_var cannot be None"))
    if not isinstance(value, (Tensor, Variable)):
        return value
    if dtype is not None and value.dtype != dtype:
        raise at_user_line(ValueError("It has the wrong type %s instead of %s" % (value.dtype, dtype)))
    return None if isinstance(value, Variable) else static_values.constant_value(value)


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Gives a tensor another name, for collections of outputs."""
    names = getattr(tensor, "aliases", None) or []
    tensor.aliases = names + [alias.rstrip("/")]
    return tensor


def gather_tensors_aliases(tensors: Any) -> List[str]:
    """The names of tensors."""
    return [name for tensor in tensors for name in get_tensor_aliases(tensor)]


def get_tensor_aliases(tensor: Any) -> List[str]:
    """The names of a tensor: those it was given, or its operation's."""
    return getattr(tensor, "aliases", None) or [tensor.op.name]


def collect_named_outputs(collections: Any, alias: Optional[str], outputs: Any) -> Any:
    """Puts outputs into collections under a name."""
    if collections:
        if alias:
            append_tensor_alias(outputs, alias)
        add_to_collections(collections, outputs)
    return outputs


def convert_collection_to_dict(collection: Any, clear_collection: bool = False) -> Any:
    """The tensors of a collection by their names."""
    from millrace.framework.graph import get_default_graph

    found = OrderedDict((name, tensor) for tensor in get_collection(collection) for name in get_tensor_aliases(tensor))
    if clear_collection:
        get_default_graph().clear_collection(collection)
    return found


def static_cond(pred: Any, fn1: Any, fn2: Any) -> Any:
    """fn1() or fn2(), by a Python bool."""
    return fn1() if pred else fn2()


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections of a variable, of a list or of a dictionary by names."""
    return variables_collections.get(name) if isinstance(variables_collections, dict) else variables_collections


def last_dimension(shape: Any, min_rank: int = 1) -> Any:
    """The last dimension, which must be known."""
    if shape.ndims is None or shape.ndims < min_rank:
        raise ValueError("rank of shape must be at least %d not: %s" % (min_rank, shape.ndims))
    if shape[-1].value is None:
        raise ValueError("last dimension shape must be known but is None")
    return shape[-1].value


def two_element_tuple(int_or_tuple: Any) -> Tuple[int, int]:
    """A pair, of a pair or a number."""
    if isinstance(int_or_tuple, (list, tuple)):
        if len(int_or_tuple) != 2:
            raise ValueError("Must be a list with 2 elements: %s" % (int_or_tuple,))
        return int(int_or_tuple[0]), int(int_or_tuple[1])
    return int(int_or_tuple), int(int_or_tuple)


def n_positive_integers(n: int, value: Any) -> Tuple[int, ...]:
    """n numbers above zero, of as many or of one."""
    if not isinstance(n, int) or n < 1:
        raise ValueError("n must be a positive integer, got %r" % (n,))
    try:
        listed = value.as_list() if hasattr(value, "as_list") else value
        values = tuple(int(v) for v in listed) if isinstance(listed, (list, tuple)) else (int(listed),) * n
    except (TypeError, ValueError):
        values = ()
    if len(values) != n or min(values) <= 0:
        raise ValueError("value must be one or %d positive integers, got %s" % (n, value))
    return values
