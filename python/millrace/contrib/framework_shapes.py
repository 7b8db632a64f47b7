# SPDX-License-Identifier: Apache-2.0
"""Functions of tf.contrib.framework that look at shapes, when a graph is built where they are known, else in steps."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.confusion_matrix import remove_squeezable_dimensions as _without_excess
from millrace.ops.variables import Variable


def reduce_sum_n(tensors: Any, name: Optional[str] = None) -> Tensor:
    """The sum of all elements of some tensors."""
    if not tensors:
        raise at_user_line(ValueError("No tensors provided."))
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        sums = [math_ops.reduce_sum(t, name="%s/sum" % t.op.name) for t in tensors]
        return sums[0] if len(sums) == 1 else math_ops.add_n(sums, name=scope)


def remove_squeezable_dimensions(predictions: Any, labels: Any, name: Optional[str] = None) -> Tuple[Any, Any]:
    """(predictions, labels), without a last dimension of 1 that one of them has more than the other."""
    labels, predictions = _without_excess(labels, predictions, name=name)
    return predictions, labels


def assert_scalar_int(tensor: Any, name: Optional[str] = None) -> Tensor:
    """The tensor; ValueError unless it is a scalar of an integer type."""
    tensor = convert_to_tensor(tensor)
    if not tensor.dtype.base_dtype.is_integer:
        raise at_user_line(ValueError("Expected integer type for %s, received type: %s." % (tensor.name, tensor.dtype)))
    return check_ops.assert_scalar(tensor, name=name)


def with_same_shape(expected_tensor: Any, tensor: Any) -> Tensor:
    """The tensor, which must have the shape of another."""
    shape = expected_tensor.get_shape()
    return with_shape(shape.as_list() if shape.is_fully_defined() else array_ops.shape(expected_tensor), tensor)


def with_shape(expected_shape: Any, tensor: Any) -> Tensor:
    """The tensor, which must have a shape, a list (of which -1 is any size), or a tensor of int32: ValueError, or in steps
    InvalidArgumentError. What has one element may be asked to be a scalar."""
    if isinstance(tensor, SparseTensor):
        raise at_user_line(ValueError("SparseTensor not supported."))
    if isinstance(expected_shape, (Tensor, Variable)):
        if expected_shape.dtype.base_dtype != dtypes.int32:
            raise at_user_line(ValueError("Invalid dtype %s for shape %s expected of tensor %s." % (expected_shape.dtype, expected_shape, tensor.name)))
        return _checked(expected_shape, tensor)
    wanted = _listed(expected_shape, tensor)
    known = tensor.get_shape()
    if not wanted and (not known.is_fully_defined() or known.is_compatible_with([1])):
        return array_ops.reshape(tensor, []) if known.ndims != 0 else tensor
    if known.is_fully_defined():
        if not known.is_compatible_with([None if n == -1 else n for n in wanted]):
            raise at_user_line(ValueError("Invalid shape for tensor %s, expected %s, got %s." % (tensor.name, expected_shape, known)))
        return tensor
    made = _checked(convert_to_tensor(wanted, dtypes.int32), tensor)
    made.set_shape([None if n == -1 else n for n in wanted])
    return made


def _listed(shape: Any, tensor: Any) -> Any:
    sizes = [-1 if n is None else n for n in shape.as_list()] if hasattr(shape, "as_list") else shape
    array = np.asarray(sizes, np.int32 if len(sizes) == 0 else None)
    if array.ndim > 1:
        raise at_user_line(ValueError("Invalid rank %s for shape %s expected of tensor %s." % (array.ndim, shape, tensor.name)))
    if not np.issubdtype(array.dtype, np.integer) or isinstance(shape, np.ndarray) and shape.dtype != np.int32:
        raise at_user_line(ValueError("Invalid dtype %s for shape %s expected of tensor %s." % (array.dtype, shape, tensor.name)))
    return array.tolist()


def _checked(wanted: Any, tensor: Any) -> Tensor:
    actual = array_ops.shape(tensor)

    def fits() -> Tensor:
        return math_ops.reduce_all(gen_ops.logical_or(gen_ops.equal(wanted, -1), gen_ops.equal(wanted, actual)))

    same_rank = gen_ops.equal(array_ops.size(wanted), array_ops.rank(tensor))
    right = control_flow_ops.cond(same_rank, fits, lambda: convert_to_tensor(False))
    with control_dependencies([control_flow_ops.Assert(right, ["Wrong shape for %s [expected] [actual]." % tensor.name, wanted, actual])]):
        return array_ops.identity(tensor)
