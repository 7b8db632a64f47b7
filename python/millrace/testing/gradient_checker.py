# SPDX-License-Identifier: Apache-2.0
"""Gradients against differences of values."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import constant
from millrace.framework.default_session import get_default_session
from millrace.ops import array_ops
from millrace.ops.gradients import gradients

TYPES = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def _count(shape: Any) -> int:
    return int(shape) if isinstance(shape, (int, np.integer)) else int(np.prod([int(d) for d in shape], dtype=np.int64))


def _parts(dtype: dtypes.DType) -> int:
    """How many real numbers an element has."""
    return 2 if dtype.is_complex else 1


def _real_view(array: np.ndarray, dtype: dtypes.DType) -> np.ndarray:
    """The real numbers of an array, in its own memory where it is contiguous."""
    return array.reshape(-1).view(dtype.real_dtype.as_numpy_dtype)


def _by_gradient(x: Any, x_shape: Any, dx: Any, dy: Any, y_shape: Any, run: Callable[..., Any], start: np.ndarray) -> np.ndarray:
    rows, columns = _count(x_shape) * _parts(x.dtype), _count(y_shape) * _parts(dy.dtype)
    jacobian = np.zeros((rows, columns), x.dtype.real_dtype.as_numpy_dtype)
    one = np.zeros(y_shape, dy.dtype.as_numpy_dtype)
    flat = _real_view(one, dy.dtype)
    for column in range(columns):
        flat[column] = 1
        if isinstance(dx, IndexedSlices):
            indices, values = run([dx.indices, dx.values], {x: start, dy: one})
            dense = np.zeros(start.shape, values.dtype)
            np.add.at(dense, indices, values)
            jacobian[:, column] = _real_view(dense, x.dtype)
        else:
            jacobian[:, column] = _real_view(np.ascontiguousarray(run(dx, {x: start, dy: one})), x.dtype)
        flat[column] = 0
    if columns == 0:
        found = run(dx, {x: start, dy: one})
        if found.shape != start.shape:
            raise ValueError("Empty gradient has wrong shape: expected %s, got %s" % (start.shape, found.shape))
        if np.any(found):
            raise ValueError("Empty tensor with nonzero gradients")
    return jacobian


def _by_differences(x: Any, x_shape: Any, y: Any, y_shape: Any, delta: float, run: Callable[..., Any], start: np.ndarray) -> np.ndarray:
    rows, columns = _count(x_shape) * _parts(x.dtype), _count(y_shape) * _parts(y.dtype)
    jacobian = np.zeros((rows, columns), x.dtype.real_dtype.as_numpy_dtype)
    width = np.asarray(2 * delta, y.dtype.real_dtype.as_numpy_dtype)[()]
    for row in range(rows):
        values = []
        for step in (delta, -delta):
            moved = np.array(start)
            _real_view(moved, x.dtype)[row] += step
            values.append(run(y, {x: moved}))
        jacobian[row, :] = _real_view(np.ascontiguousarray((values[0] - values[1]) / width), y.dtype)
    return jacobian


def gradient_of(x: Any, y: Any, y_shape: Any) -> Tuple[Any, Any]:
    """(dx, dy): the gradient of x as a function of that of y, which is to be fed."""
    with x.graph.as_default():
        fed = constant(1.0, shape=y_shape, dtype=y.dtype)
        dy = array_ops.identity(fed)
    found = gradients(y, x, dy)[0]
    if found is None:
        raise ValueError("%s does not depend on %s, or has no gradient" % (y.name, x.name))
    return found, fed


def jacobians(
    x: Any, x_shape: Any, dx: Any, y: Any, y_shape: Any, dy: Any, x_init_value: Any, delta: float, extra_feed_dict: Any
) -> Tuple[np.ndarray, np.ndarray]:
    for what, tensor in (("x", x), ("y", y)):
        if tensor.dtype.base_dtype.name not in TYPES:
            raise AssertionError("Don't support type %s for %s" % (tensor.dtype.name, what))
    shape = (x_shape,) if isinstance(x_shape, (int, np.integer)) else tuple(int(d) for d in x_shape)
    if x_init_value is None:
        start = np.random.random_sample(shape).astype(x.dtype.as_numpy_dtype)
        if x.dtype.is_complex:
            start.imag = np.random.random_sample(shape)
    else:
        start = np.array(x_init_value, x.dtype.as_numpy_dtype, order="C")
        if start.shape != shape:
            raise AssertionError("x_shape = %s, init_data shape = %s" % (list(shape), list(start.shape)))
    session: Any = get_default_session()

    def run(fetches: Any, feeds: Any) -> Any:
        return session.run(fetches, {**(extra_feed_dict or {}), **feeds})

    return _by_gradient(x, shape, dx, dy, y_shape, run, start), _by_differences(x, shape, y, y_shape, delta, run, start)


def compute_gradient(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3, init_targets: Any = None, extra_feed_dict: Any = None
) -> Any:
    """(by the gradient, by differences): dy/dx as matrices [elements of x, elements of y], a list of pairs for a list of x.

    Complex elements count as two real ones. Values are those of the default session. Without x_init_value x is random.
    """
    several = isinstance(x, list)
    xs: List[Any] = x if several else [x]
    shapes, starts = (x_shape, x_init_value or [None] * len(xs)) if several else ([x_shape], [x_init_value])
    pairs = [gradient_of(one, y, y_shape) for one in xs]
    for target in init_targets or ():
        target.run()
    made = [jacobians(one, shape, dx, y, y_shape, dy, start, delta, extra_feed_dict) for one, shape, (dx, dy), start in zip(xs, shapes, pairs, starts)]
    return made if several else made[0]


def compute_gradient_error(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3, init_targets: Any = None, extra_feed_dict: Any = None
) -> float:
    """The largest difference of the gradient from differences of values."""
    made = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    worst = 0.0
    for exact, measured in made if isinstance(made, list) else [made]:
        if exact.size or measured.size:
            worst = np.maximum(worst, np.fabs(exact - measured).max())
    return worst
