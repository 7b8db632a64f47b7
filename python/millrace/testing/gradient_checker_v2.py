# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions against differences of their values."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from millrace.framework.default_session import get_default_session
from millrace.framework.graph_elements import Tensor
from millrace.ops.array_ops import placeholder
from millrace.testing.gradient_checker import _gradient_of, _jacobians

_DELTA = 1.0 / 1024  # exact in every float type


def compute_gradient(f: Callable[..., Any], x: Sequence[Any], delta: Optional[float] = None) -> Tuple[List[np.ndarray], List[np.ndarray]]:
    """(by the gradient, by differences): for each argument of f the Jacobian matrix [elements of f(*x), elements of the argument].

    x is a list or tuple of arrays or tensors, of float16 to complex128; complex elements count as two real ones. delta is the step of the
    differences, 1/1024 unless given. Values are those of the default session. ValueError: x is no list, or there is no session.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError("x must be a list or tuple of arguments, got %s" % type(x).__name__)
    session: Any = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: call it inside `with session`")
    values = [session.run(one) if isinstance(one, Tensor) else np.asarray(one) for one in x]
    with session.graph.as_default():
        fed = [placeholder(value.dtype, value.shape) for value in values]
        y = f(*fed)
    feeds = dict(zip(fed, values))
    shape = session.run(y, feeds).shape
    made = []
    for one, value in zip(fed, values):
        dx, dy = _gradient_of(one, y, shape)
        others = {tensor: other for tensor, other in feeds.items() if tensor is not one}
        made.append(_jacobians(one, value.shape, dx, y, shape, dy, value, _DELTA if delta is None else delta, others))
    return [by_gradient.T for by_gradient, _ in made], [by_differences.T for _, by_differences in made]


def max_error(grad1: Sequence[np.ndarray], grad2: Sequence[np.ndarray]) -> float:
    """The largest difference of two lists of Jacobians, such as compute_gradient gives; 0 when they are empty."""
    return max((float(np.max(np.abs(one - other))) for one, other in zip(grad1, grad2) if one.size), default=0.0)
