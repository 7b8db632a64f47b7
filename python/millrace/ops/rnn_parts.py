# SPDX-License-Identifier: Apache-2.0
"""What recurrent cells are made of: states of zeros, products with weights."""

from __future__ import annotations

import contextlib
from typing import Any

from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, init_ops, matrix_ops, nn_ops
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


def _concat(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """A batch's shape and what comes behind it, each a number, a shape or a tensor, as one: a tensor, or as far as it is known a list. In either case
    TensorFlow makes both tensors."""
    known = [_known_dims(part) for part in (prefix, suffix)]
    tensors = []
    for part, shape in zip((prefix, suffix), known):
        if isinstance(part, Tensor):
            tensors.append(array_ops.expand_dims(part, 0) if part.shape.ndims == 0 else part)
        elif shape.is_fully_defined():
            tensors.append(convert_to_tensor(shape.as_list(), dtypes.int32))
        elif not static:
            raise at_user_line(ValueError("Provided a prefix or suffix of None: %s and %s" % (prefix, suffix)))
    if static:
        whole = known[0].concatenate(known[1])
        return None if whole.ndims is None else whole.as_list()
    return array_ops.concat(tensors, 0)


def _known_dims(part: Any) -> tensor_shape.TensorShape:
    """A number or a shape, or what is known of a tensor that is one, as a shape."""
    if not isinstance(part, Tensor):
        return tensor_shape.as_shape(part)
    value = constant_value(part)
    if value is None and part.shape.is_fully_defined():
        return tensor_shape.TensorShape([None] * (part.shape.num_elements() or 0))
    return tensor_shape.as_shape(value)


def _zeros(size: Any, batch_size: Any, dtype: Any) -> Tensor:
    made = array_ops.zeros(_concat(batch_size, size), dtype)
    made.set_shape(_concat(batch_size, size, static=True))
    return made


def _zero_state_tensors(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """States of zeros, of the sizes of a structure."""
    return nest.map_structure(lambda size: _zeros(size, batch_size, dtype), state_size)


def _depth(inputs: Any) -> int:
    size = inputs.get_shape()[-1].value
    if size is None:
        raise at_user_line(ValueError("Expected inputs.shape[-1] to be known, saw shape: %s" % inputs.get_shape()))
    return int(size)


_WEIGHTS_VARIABLE_NAME, _BIAS_VARIABLE_NAME = "kernel", "bias"


class _Linear:
    """[args] kernel + bias: makes the variables, and computes for these or other tensors of the same widths."""

    def __init__(self, args: Any, output_size: int, build_bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None) -> None:
        listed = list(args) if isinstance(args, (list, tuple)) else [] if args is None else [args]
        if not listed:
            raise at_user_line(ValueError("`args` must be specified"))
        shapes = [a.get_shape() for a in listed]
        if any(shape.ndims not in (None, 2) for shape in shapes):
            raise at_user_line(ValueError("linear is expecting 2D arguments: %s" % shapes))
        dtype = listed[0].dtype.base_dtype
        self._kernel = get_variable(_WEIGHTS_VARIABLE_NAME, [sum(_depth(a) for a in listed), output_size], dtype, kernel_initializer)
        self._bias = None
        if build_bias:
            with variable_scope(get_variable_scope(), auxiliary_name_scope=False) as inner:
                inner.set_partitioner(None)
                self._bias = get_variable(_BIAS_VARIABLE_NAME, [output_size], dtype, bias_initializer or init_ops.zeros_initializer(dtype))

    def __call__(self, args: Any) -> Tensor:
        listed = list(args) if isinstance(args, (list, tuple)) else [args]
        product = matrix_ops.matmul(listed[0] if len(listed) == 1 else array_ops.concat(listed, 1), self._kernel)
        return nn_ops.bias_add(product, self._bias) if self._bias is not None else product


def _linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None, scope: Any = None, bias_start: float = 0.0
) -> Tensor:
    """[args] kernel + bias."""
    if isinstance(bias_initializer, (int, float)):
        bias_start, bias_initializer = float(bias_initializer), None
    with contextlib.ExitStack() as inside:
        if scope is not None:
            inside.enter_context(variable_scope(scope))
        return _Linear(args, output_size, bias, bias_initializer or init_ops.constant_initializer(bias_start), kernel_initializer)(args)


ASSERT_LIKE_RNNCELL_ERROR_REGEXP = "is not an RNNCell"


def assert_like_rnncell(cell_name: str, cell: Any) -> None:
    """TypeError, which names the argument, unless an object has the sizes of its output and its state, and can be called."""
    lacking = [repr(n) for n in ("output_size", "state_size") if not hasattr(cell, n)]
    if lacking or not callable(cell):
        how = "it lacks " + " and ".join(lacking) if lacking else "it is not callable"
        raise TypeError("The argument %r (%r) is not an RNNCell: %s" % (cell_name, cell, how))
