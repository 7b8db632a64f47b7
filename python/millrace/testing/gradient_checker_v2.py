# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions against differences of their values."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices, IndexedSlicesValue
from millrace.framework.convert import convert_to_tensor
from millrace.framework.default_session import get_default_session
from millrace.framework.graph_elements import Tensor
from millrace.ops.array_ops import placeholder
from millrace.testing.gradient_checker import TYPES, gradient_of, jacobians


def _to_numpy(value: Any) -> np.ndarray:
    """The value of a tensor, or of rows of one, in the default session; an array as it is, and the sum of an IndexedSlicesValue's rows."""
    if isinstance(value, IndexedSlicesValue):
        dense = np.zeros(value.dense_shape, np.asarray(value.values).dtype)
        np.add.at(dense, value.indices, value.values)
        return dense
    if isinstance(value, IndexedSlices):
        value = convert_to_tensor(value)
    return _session().run(value) if isinstance(value, Tensor) else np.asarray(value)


def _session() -> Any:
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: call it inside `with session`")
    return session


def compute_gradient(f: Callable[..., Any], x: Sequence[Any], delta: float = 1e-3) -> Tuple[List[np.ndarray], List[np.ndarray]]:
    """(by the gradient, by differences): for each argument of f the Jacobian matrix [elements of the argument, elements of f(*x)].

    x is a list or tuple of arrays or tensors, of float16 to complex128; complex elements count as two real ones. delta is the step of the
    differences. Values are those of the default session. ValueError: x is no list, there is no session, or f does not depend on an
    argument. AssertionError: an argument has another type.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError("x must be a list or tuple of arguments, got %s" % type(x).__name__)
    session = _session()
    values = [_to_numpy(one) for one in x]
    for i, value in enumerate(values):
        if dtypes.as_dtype(value.dtype).name not in TYPES:
            raise AssertionError("argument %d is of type %s: gradients are those of %s" % (i, value.dtype, ", ".join(TYPES)))
    with session.graph.as_default():
        fed = [placeholder(value.dtype, value.shape) for value in values]
        y = convert_to_tensor(f(*fed))
    feeds = dict(zip(fed, values))
    shape = session.run(y, feeds).shape
    made = []
    for one, value in feeds.items():
        dx, dy = gradient_of(one, y, shape)
        made.append(jacobians(one, value.shape, dx, y, shape, dy, value, delta, feeds))
    return [by_gradient for by_gradient, _ in made], [by_differences for _, by_differences in made]


def max_error(grad1: Sequence[np.ndarray], grad2: Sequence[np.ndarray]) -> float:
    """The largest difference of two lists of Jacobians, such as compute_gradient gives: NaN where one of them is, 0 when they are empty.

    ValueError unless they are as many and of the same shapes.
    """
    if [one.shape for one in grad1] != [other.shape for other in grad2]:
        raise ValueError("Jacobians of the same shapes are compared, got %s and %s" % ([one.shape for one in grad1], [other.shape for other in grad2]))
    return float(np.max([np.max(np.abs(one - other), initial=0) for one, other in zip(grad1, grad2)], initial=0))
