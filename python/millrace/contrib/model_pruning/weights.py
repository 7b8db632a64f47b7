# SPDX-License-Identifier: Apache-2.0
"""Masks of weights, where they are kept, and what is done with weights in blocks."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, add_to_collection, get_collection, name_scope
from millrace.ops import array_ops, control_flow_ops, init_ops, math_ops, window_ops
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.ops.variables import assign

MASK_COLLECTION = "masks"
THRESHOLD_COLLECTION = "thresholds"
MASKED_WEIGHT_COLLECTION = "masked_weights"
WEIGHT_COLLECTION = "kernel"
MASKED_WEIGHT_NAME = "weights/masked_weight"


def masked(weights: Any, mask: Any, threshold: Any) -> Tensor:
    """Weights by their mask. All three are noted, so that Pruning finds them; those of a mask that is noted are not again."""
    made = math_ops.multiply(mask, weights, MASKED_WEIGHT_NAME)
    if not any(known is mask for known in get_masks()):
        add_to_collection(THRESHOLD_COLLECTION, threshold)
        add_to_collection(MASK_COLLECTION, mask)
        add_to_collection(MASKED_WEIGHT_COLLECTION, made)
        add_to_collection(WEIGHT_COLLECTION, weights)
    return made


def weight_mask_variable(var: Any, scope: Any) -> Any:
    """A mask of a variable's shape, of ones."""
    with variable_scope(scope):
        return get_variable("mask", var.get_shape(), var.dtype.base_dtype, init_ops.ones_initializer(), trainable=False)


def weight_threshold_variable(var: Any, scope: Any) -> Any:
    """The bound under which weights are masked, 0."""
    with variable_scope(scope):
        return get_variable("threshold", [], var.dtype.base_dtype, init_ops.zeros_initializer(), trainable=False)


def apply_mask(x: Any, scope: Any = "") -> Tensor:
    """Weights by a mask that Pruning sets, of which `mask` and `threshold` are made in a scope."""
    return masked(x, weight_mask_variable(x, scope), weight_threshold_variable(x, scope))


def get_masked_weights() -> List[Any]:
    """The products of weights and masks."""
    return get_collection(MASKED_WEIGHT_COLLECTION)


def get_masks() -> List[Any]:
    """The masks."""
    return get_collection(MASK_COLLECTION)


def get_thresholds() -> List[Any]:
    """The bounds under which weights are masked."""
    return get_collection(THRESHOLD_COLLECTION)


def get_weights() -> List[Any]:
    """The weights that have masks."""
    return get_collection(WEIGHT_COLLECTION)


# ---- blocks ----


def kronecker_product(mat1: Any, mat2: Any) -> Tensor:
    """The second matrix by each element of the first, each in its place."""
    a: Any = convert_to_tensor(mat1)
    b: Any = convert_to_tensor(mat2)
    (m1, n1), (m2, n2) = a.get_shape().as_list(), b.get_shape().as_list()
    return array_ops.reshape(array_ops.reshape(a, [m1, 1, n1, 1]) * array_ops.reshape(b, [1, m2, 1, n2]), [m1 * m2, n1 * n2])


def expand_tensor(tensor: Any, block_dims: Sequence[Any]) -> Tensor:
    """A matrix with each element as a block."""
    if tensor.get_shape().ndims != 2:
        raise at_user_line(ValueError("Input tensor must be rank 2"))
    if len(block_dims) != 2:
        raise at_user_line(ValueError("block_dims must have 2 elements"))
    return kronecker_product(tensor, array_ops.ones([int(n) for n in block_dims], tensor.dtype.base_dtype))


def factorized_pool(
    input_tensor: Any, window_shape: Sequence[int], pooling_type: str, strides: Sequence[int], padding: str, name: Optional[str] = None
) -> Tensor:
    """A matrix pooled along one dimension behind the other."""
    if input_tensor.get_shape().ndims != 2:
        raise at_user_line(ValueError("factorized_pool() accepts tensors of rank 2 only"))
    height, width = input_tensor.get_shape().as_list()
    with name_scope(name, "factorized_pool"):
        pooled = array_ops.reshape(input_tensor, [1, 1, height, width])
        for i in (0, 1):
            pooled = window_ops.pool(pooled, [1, window_shape[i]], pooling_type, padding, strides=[1, strides[i]])
            pooled = array_ops.transpose(pooled, [0, 1, 3, 2])
    return array_ops.squeeze(pooled, [0, 1])


# ---- assignments ----


def determine_partitioned_axis(partitioned_variable: Any) -> int:
    """The dimension that a variable is parted along."""
    whole, axis = partitioned_variable.get_shape().as_list(), 0
    for part in partitioned_variable:
        smaller = [i for i, (n, all_) in enumerate(zip(part.get_shape().as_list(), whole)) if n < all_]
        if len(smaller) != 1:
            raise at_user_line(ValueError("Number of partitioned axes %d not equal to 1" % len(smaller)))
        axis = smaller[0]
    return axis


def variable_assign(var: Any, new_value: Any) -> Any:
    """An assignment that is named after its variable."""
    return assign(var, new_value, name=var.op.name + "_assign")


def partitioned_variable_assign(partitioned_var: Any, new_value: Any) -> Operation:
    """The assignments of all parts of a variable."""
    parts = list(partitioned_var)
    axis = 0 if len(parts) == 1 else determine_partitioned_axis(partitioned_var)
    values = array_ops.split(new_value, [part.get_shape().as_list()[axis] for part in parts], axis)
    return control_flow_ops.group(*map(variable_assign, parts, values), name=partitioned_var.name + "_group_assign")
