# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.framework.py_func: Python functions whose arguments and results are nested structures."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.framework import nest, tensor_shape
from millrace.framework.errors import at_user_line
from millrace.ops import script_ops


def py_func(
    func: Callable[..., Any],
    args: Any = (),
    kwargs: Optional[Dict[str, Any]] = None,
    output_types: Any = None,
    output_shapes: Any = None,
    stateful: bool = True,
    name: Optional[str] = None,
) -> Any:
    """func(*args, **kwargs) in each step, where tensors in args and kwargs, at whatever depth, come as arrays.

    output_types is a structure of types, which func's results have, and so has what is returned; output_shapes says for each of its types a shape.
    Either may be a function of args and kwargs that gives it. A step fails where the results have another structure.
    Raises: TypeError where args is no list or tuple, or kwargs no dict.
    """
    if not isinstance(args, (list, tuple)):
        raise at_user_line(TypeError("args must be a list or tuple, got %s: %r" % (type(args).__name__, args)))
    if not isinstance(kwargs or {}, dict):
        raise at_user_line(TypeError("kwargs must be a dict, got %s: %r (tf.py_func takes output types there)" % (type(kwargs).__name__, kwargs)))
    given = list(args), dict(kwargs or {})
    types = output_types(*given[0], **given[1]) if callable(output_types) else output_types
    shapes = output_shapes(*given[0], **given[1]) if callable(output_shapes) else output_shapes

    def call(*flat: Any) -> Any:
        positional, named = nest.pack_sequence_as(given, flat)
        results = func(*positional, **named)
        nest.assert_shallow_structure(types, results)
        return nest.flatten(results)

    flat_types = nest.flatten(types)
    results = script_ops.py_func(call, nest.flatten(given), flat_types, stateful, name)
    if shapes is not None:
        for result, shape in zip(results, nest.flatten_up_to(types, shapes)):
            result.set_shape(tensor_shape.as_shape(shape))
    return nest.pack_sequence_as(types, results)
