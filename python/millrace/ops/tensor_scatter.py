# SPDX-License-Identifier: Apache-2.0
"""Tensors with other values at some places, repeated elements, and what else came with TensorFlow 1.14 and 1.15."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import Dimension
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.gradients import custom_gradient

__all__ = [
    "batch_scatter_update",
    "dimension_at_index",
    "dimension_value",
    "fingerprint",
    "grad_pass_through",
    "no_gradient",
    "repeat",
    "switch_case",
    "tensor_scatter_add",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensor_scatter_sub",
    "tensor_scatter_update",
    "to_complex128",
    "to_complex64",
]


def fingerprint(data: Any, method: Any = "farmhash64", name: Optional[str] = None) -> Tensor:
    """The eight bytes of a hash of each element along the first axis.

    Shapes: data [n, ...]; the result [n, 8] of uint8.
    """
    return gen_ops.fingerprint(data, method, name=name)


tensor_scatter_update = tensor_scatter_nd_update = gen_ops.tensor_scatter_update
tensor_scatter_add = tensor_scatter_nd_add = gen_ops.tensor_scatter_add
tensor_scatter_sub = tensor_scatter_nd_sub = gen_ops.tensor_scatter_sub


def batch_scatter_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: Optional[str] = None) -> Any:
    """Sets elements of a variable: indices [batch..., n] say which along the dimension behind the batch's."""
    return ref.batch_scatter_update(IndexedSlices(updates, indices), use_locking, name)


def repeat(input: Any, repeats: Any, axis: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """Each element along an axis (of the flat tensor, without one) `repeats` times: one number, or one for each."""
    with name_scope(name, "repeat", [input, repeats]):
        input, repeats = convert_to_tensor(input), convert_to_tensor(repeats)
        if not repeats.dtype.is_integer:
            raise at_user_line(TypeError("repeats must be an integer tensor; got dtype=%s" % repeats.dtype.name))
        repeats.get_shape().with_rank_at_most(1)
        repeats = math_ops.cast(repeats, dtypes.int32)
        if axis is None:
            input, axis = array_ops.reshape(input, [-1]), 0
        elif input.get_shape().ndims == 0:
            input = array_ops.reshape(input, [1])
        size = array_ops.shape(input)[axis]
        counts = gen_ops.broadcast_to(array_ops.reshape(repeats, [-1]), array_ops.reshape(size, [1]))
        which = array_ops.where(array_ops.sequence_mask(counts))[:, 0]
        made = array_ops.gather(input, which, axis=axis)
        made.set_shape(_repeated_shape(input.get_shape(), repeats, axis))
        return made


def _repeated_shape(shape: Any, repeats: Tensor, axis: int) -> Any:
    known = constant_value(repeats)
    if shape.ndims is None or known is None:
        return None
    sizes = shape.as_list()
    counts = np.maximum(known, 0)  # fewer than none are none
    if counts.size != 1:
        sizes[axis] = int(counts.sum())
    elif sizes[axis] is not None:
        sizes[axis] *= int(counts.ravel()[0])
    return sizes


def switch_case(branch_index: Any, branch_fns: Any, default: Optional[Callable[[], Any]] = None, name: str = "switch_case") -> Any:
    """What the function of a number gives; of other numbers the default's, or the last one's. The numbers are 0 and those behind it, each once."""
    kind = getattr(branch_index, "dtype", None)
    if kind is None or not dtypes.as_dtype(kind).is_integer:
        raise at_user_line(TypeError("branch_index must be an integer Tensor, got %r" % (branch_index,)))
    pairs = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    if pairs and all(callable(p) for p in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise at_user_line(TypeError("branch_fns must be functions, or pairs of a number and a function, got %r" % (pair,)))
        if not isinstance(pair[0], int):
            raise at_user_line(TypeError("key must be a Python `int`, got %r" % (pair[0],)))
    keys = sorted(key for key, _ in pairs)
    if not pairs or keys != list(range(len(pairs))):
        raise at_user_line(ValueError("branch_fns must have functions, whose keys must form contiguous [0, ..., %d), got %s" % (len(pairs), keys)))
    functions = dict(pairs)
    with name_scope(name, "switch_case"):
        index = convert_to_tensor(branch_index)
        others = functions[keys[-1]] if default is None else default
        return control_flow_ops.case([(gen_ops.equal(index, convert_to_tensor(i, index.dtype.base_dtype)), functions[i]) for i in keys], others, exclusive=True)


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradient is that of the identity; nothing flows into the variables that it uses."""

    @custom_gradient
    def call(*args: Any, **kwargs: Any) -> Any:
        def grad(*given: Any, variables: Any = None) -> Any:
            slopes = given[0] if len(given) == 1 else given
            return slopes if variables is None else (slopes, [None] * len(variables))

        return f(*args, **kwargs), grad

    return call


def dimension_value(dimension: Any) -> Any:
    """A Dimension as a number, or None."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: Any, index: int) -> Dimension:
    """A dimension of a shape, one of no known size where the rank is not known."""
    return Dimension(None) if shape.ndims is None else shape.dims[index]


def to_complex64(x: Any, name: str = "ToComplex64") -> Tensor:
    """As complex64."""
    return math_ops.cast(x, dtypes.complex64, name=name)


def to_complex128(x: Any, name: str = "ToComplex128") -> Tensor:
    """As complex128."""
    return math_ops.cast(x, dtypes.complex128, name=name)


def no_gradient(op_type: str) -> None:
    """Says that ops of a type have no gradient."""
    from millrace.ops.gradients import NoGradient

    NoGradient(op_type)


# ---- names of namespaces ----


def multiply_no_nan(x: Any, y: Any, name: Optional[str] = None) -> Tensor:
    """x y; 0 where y is 0, whatever x is."""
    return gen_ops.mul_no_nan(x, y, name=name)


def reciprocal_no_nan(x: Any, name: Optional[str] = None) -> Tensor:
    """1 / x; 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x)
        return gen_ops.div_no_nan(array_ops.ones_like(x), x, name=scope)


reduce_euclidean_norm = math_ops._reduction("reduce_euclidean_norm", gen_ops.euclidean_norm, "The root of the sum of squares")
reduce_euclidean_norm.__module__ = __name__


def sparse_from_dense(tensor: Any, name: Optional[str] = None) -> SparseTensor:
    """The elements other than zero."""
    with name_scope(name, "dense_to_sparse", [tensor]):
        tensor = convert_to_tensor(tensor)
        places = array_ops.where(gen_ops.not_equal(tensor, array_ops.zeros_like(tensor)))
        return SparseTensor(places, gen_ops.gather_nd(tensor, places), array_ops.shape(tensor, out_type=dtypes.int64))


def sparse_eye(num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: Optional[str] = None) -> SparseTensor:
    """Ones along the diagonal."""
    with name_scope(name, "eye", [num_rows, num_columns]):
        rows = math_ops.cast(num_rows, dtypes.int64)
        columns = rows if num_columns is None else math_ops.cast(num_columns, dtypes.int64)
        along = math_ops.range(gen_ops.minimum(rows, columns))
        return SparseTensor(array_ops.stack([along, along], 1), array_ops.ones_like(along, dtypes.as_dtype(dtype)), array_ops.stack([rows, columns]))


def is_jpeg(contents: Any, name: Optional[str] = None) -> Tensor:
    """Whether bytes begin as a JPEG file does."""
    with name_scope(name, "is_jpeg", [contents]) as scope:
        return gen_ops.equal(gen_ops.substr(contents, 0, 3), b"\xff\xd8\xff", name=scope)


def sobel_edges(image: Any) -> Tensor:
    """How images [batch, height, width, channels] change down and to the right, by Sobel's filters: one more dimension of two."""
    from millrace.ops import nn_ops

    image = convert_to_tensor(image)
    channels = array_ops.shape(image)[3]
    down = convert_to_tensor([[-1.0, -2.0, -1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1.0]])
    filters = array_ops.stack([down, array_ops.transpose(down)], 2)
    filters = math_ops.cast(gen_ops.tile(array_ops.expand_dims(filters, 2), array_ops.stack([1, 1, channels, 1])), image.dtype.base_dtype)
    filters.set_shape([3, 3, image.get_shape()[3], 2])
    made = nn_ops.depthwise_conv2d(gen_ops.mirror_pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT"), filters, [1, 1, 1, 1], "VALID")
    made = array_ops.reshape(made, array_ops.concat([array_ops.shape(image), [2]], 0))
    made.set_shape(image.get_shape().concatenate([2]))
    return made
