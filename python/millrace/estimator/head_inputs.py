# SPDX-License-Identifier: Apache-2.0
"""What heads are given, checked and brought into shape: labels, logits, weights, functions of losses, and what trains."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import numpy as np

from millrace import feature_column
from millrace.estimator.util import fn_args
from millrace.framework import dtypes, static_values
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.control_flow_ops import Assert


def train_op_of(loss: Any, train_op_fn: Any, optimizer: Any, variables: Any = None) -> Any:
    if optimizer is not None and train_op_fn is not None:
        raise at_user_line(ValueError("train_op_fn and optimizer cannot both be set."))
    if optimizer is not None:
        from millrace.train.global_step import get_global_step

        chosen = {} if variables is None else {"var_list": variables}
        return optimizer.minimize(loss, global_step=get_global_step(), **chosen)
    if train_op_fn is None:
        raise at_user_line(ValueError("train_op_fn and optimizer cannot both be None."))
    return train_op_fn(loss)


def check_loss_fn(loss_fn: Callable[..., Any]) -> None:
    given = fn_args(loss_fn)
    for name in ("labels", "logits"):
        if name not in given:
            raise at_user_line(ValueError("loss_fn must contain argument: %s. Given arguments: %s" % (name, given)))
    unknown = sorted(set(given) - {"labels", "logits", "features"})
    if unknown:
        raise at_user_line(ValueError("loss_fn has unexpected args: %s" % unknown))


def of_shape(values: Any, shape: Any, message: str, name: str, shown: Tuple[str, Any]) -> Any:
    """The values, once a step has found them to be of this shape; what it shows beside theirs: (a name, a tensor)."""
    found = array_ops.shape(values)
    known = static_values.constant_value(found), static_values.constant_value(shape)
    if known[0] is not None and known[1] is not None and np.array_equal(*known):
        return array_ops.identity(values)
    same = gen_ops.logical_and(math_ops.equal(array_ops.size(shape), array_ops.size(found)), math_ops.reduce_all(math_ops.equal(shape, found)))
    with control_dependencies([Assert(same, [message, shown[0] + ": ", shown[1], name + ": ", found])]):
        return array_ops.identity(values)


def _one_rank_below(values: Any, logits: Any) -> bool:
    rank, whole = values.get_shape().ndims, logits.get_shape().ndims
    return rank is not None and whole is not None and rank == whole - 1


def checked_labels(labels: Any, logits: Any, width: int) -> Any:
    if labels is None:
        raise at_user_line(
            ValueError(
                "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that your data contain your label "
                "feature. Check that your input_fn properly parses and returns labels."
            )
        )
    with name_scope(None, "labels", [labels, logits]):
        labels = convert_to_tensor_or_sparse_tensor(labels)
        if isinstance(labels, SparseTensor):
            raise at_user_line(ValueError("SparseTensor labels are not supported. labels must be a Tensor of shape [D0, D1, ..., DN, %d]." % width))
        if _one_rank_below(labels, logits):
            labels = array_ops.expand_dims(labels, -1)
        message = (
            "labels shape must be [D0, D1, ... DN, %d]. Suggested Fix: check your n_classes argument to the estimator and/or the shape of your label." % width
        )
        with control_dependencies([check_ops.assert_rank_at_least(labels, 2, message=message)]):
            known = labels.get_shape()
            if known.ndims is not None and known[-1].value not in (None, width):
                raise at_user_line(
                    ValueError(
                        "Mismatched label shape. Expected labels dimension=%s.  Received %s. Suggested Fix: If your classifier expects "
                        "one-hot encoding label, check your n_classes argument to the estimator and/or the shape of your label. Otherwise, "
                        "check the shape of your label." % (width, known[-1].value)
                    )
                )
            shape = array_ops.concat([array_ops.shape(logits)[:-1], [width]], 0)
            return of_shape(labels, shape, message, "labels_shape", ("expected_labels_shape", shape))


def checked_logits(logits: Any, width: int) -> Any:
    with name_scope(None, "logits", [logits]):
        logits = math_ops.cast(convert_to_tensor(logits), dtypes.float32)
        message = "logits shape must be [D0, D1, ... DN, logits_dimension]"
        with control_dependencies([check_ops.assert_rank_at_least(logits, 2, message=message)]):
            known = logits.get_shape()
            if known.ndims is not None and known[-1].value == width:
                return array_ops.identity(logits)
            if known.ndims is not None and known[-1].value is not None:
                raise at_user_line(ValueError("%s, got %s." % (message, known)))
            found = array_ops.shape(logits)
            with control_dependencies([check_ops.assert_equal(width, found[-1], data=[message, found], message=message)]):
                return array_ops.identity(logits)


def in_range(labels: Any, n_classes: int, message: Optional[str] = None) -> Any:
    with name_scope(None, "assert_range", [labels]):
        below = check_ops.assert_less_equal(labels, math_ops.cast(n_classes - 1, labels.dtype), message=message or "Labels must <= n_classes - 1")
        with control_dependencies([below, check_ops.assert_non_negative(labels, message=message or "Labels must >= 0")]):
            return array_ops.identity(labels)


def weights_of(features: Any, weight_column: Any, logits: Any, loss_dimension: int) -> Any:
    """The weights as [..., 1], or one for each of several losses of an example."""
    if weight_column is None:
        return 1.0
    column = feature_column.numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, feature_column._NumericColumn):
        raise at_user_line(TypeError("Weight column must be either a string or _NumericColumn. Given type: %s." % type(column)))
    with name_scope(None, "weights", list(features.values())):
        weights = column._get_dense_tensor(feature_column._LazyBuilder(features))
        if not (weights.dtype.is_floating or weights.dtype.is_integer):
            raise at_user_line(ValueError("Weight column should be castable to float. Given dtype: %s" % weights.dtype))
        weights = math_ops.cast(weights, dtypes.float32)
        message = "weights shape must be [D0, D1, ... DN] or [D0, D1, ... DN, 1]"
        found, whole = array_ops.shape(weights), array_ops.shape(logits)
        outer = whole[:-1]
        if _one_rank_below(weights, logits):
            fits = _same(found, outer)
        else:
            fits = _same(found, array_ops.concat([outer, [1]], 0))
            if loss_dimension > 1:
                message = "weights shape must be [D0, D1, ... DN], [D0, D1, ... DN, 1] or [D0, D1, ... DN, logits_dimension]"
                fits = gen_ops.logical_or(fits, _same(found, whole))
        with control_dependencies([Assert(fits, [message, "logits_shape: ", whole, "weights_shape: ", found])]):
            return array_ops.expand_dims(weights, -1) if _one_rank_below(weights, logits) else array_ops.identity(weights)


def _same(shape: Any, other: Any) -> Any:
    """Whether two shapes of one rank are the same."""
    return math_ops.reduce_all(math_ops.equal(shape, other))
