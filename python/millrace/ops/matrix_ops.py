# SPDX-License-Identifier: Apache-2.0
"""Products, norms and identity matrices."""

from __future__ import annotations

import builtins
from typing import Any, List, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.dialects import either

__all__ = ["matmul", "batch_matmul", "tensordot", "einsum", "norm", "trace", "eye"]


# ---- products ----


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: Optional[str] = None,
) -> Tensor:
    """The matrix product; of the last two axes when there are more, the others broadcast. a_is_sparse, b_is_sparse are hints.

    Shapes: a [..., n, k], b [..., k, m] -> [..., n, m]; transpose_a and transpose_b swap the last two axes of an input first.
    Raises: ValueError when the inner sizes or the types differ, or an input has less than two axes.
    """
    with name_scope(name, "MatMul", [a, b]) as scope:
        if transpose_a and adjoint_a:
            raise at_user_line(ValueError("Only one of transpose_a and adjoint_a can be True."))
        if transpose_b and adjoint_b:
            raise at_user_line(ValueError("Only one of transpose_b and adjoint_b can be True."))
        if isinstance(b, Tensor) and not isinstance(a, Tensor):
            a = convert_to_tensor(a, b.dtype.base_dtype, "a")
        a = convert_to_tensor(a, name="a")
        narrow = isinstance(b, Tensor) and {a.dtype.base_dtype, b.dtype.base_dtype} == {dtypes.float32, dtypes.bfloat16}
        b = convert_to_tensor(b, None if narrow else a.dtype.base_dtype, "b")
        is_matrix = a.get_shape().ndims == b.get_shape().ndims == 2
        if is_matrix and (narrow or ((a_is_sparse or b_is_sparse) and a.dtype.base_dtype in (dtypes.float32, dtypes.bfloat16))):
            both = a.dtype.base_dtype == b.dtype.base_dtype == dtypes.bfloat16  # the op gives float32
            turned = transpose_a or adjoint_a, transpose_b or adjoint_b
            product = gen_ops.sparse_mat_mul(a, b, *turned, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=None if both else scope)
            return math_ops.cast(product, dtypes.bfloat16, name="Cast") if both else product
        shapes = a.get_shape(), b.get_shape()
        if any(s.ndims is None or s.ndims > 2 for s in shapes):
            if transpose_a:
                a, adjoint_a = math_ops.conj(a), True
            if transpose_b:
                b, adjoint_b = math_ops.conj(b), True
            op = gen_ops.batch_mat_mul if _same_batches(*shapes) else gen_ops.batch_mat_mul_v2
            return op(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        if adjoint_a:
            a, transpose_a = math_ops.conj(a), True
        if adjoint_b:
            b, transpose_b = math_ops.conj(b), True
        return gen_ops.mat_mul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)


def _same_batches(a: Any, b: Any) -> bool:
    """Whether the axes before the last two are known to need no broadcasting: a size that is not known may be 1 in one of both."""
    return (
        a.ndims is not None and a.ndims == b.ndims and a.ndims > 2 and all(x.value == y.value and x.value is not None for x, y in zip(a.dims[:-2], b.dims[:-2]))
    )


def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: Optional[str] = None) -> Tensor:
    """matmul of the last two axes, as it was called in 0.x."""
    return gen_ops.batch_mat_mul(x, y, adj_x=adj_x, adj_y=adj_y, name=name)


def tensordot(a: Any, b: Any, axes: Any, name: Optional[str] = None) -> Tensor:
    """The sum of products over axes of both, as NumPy's: over the last n of a and the first n of b, or over (axes of a, axes of b)."""
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        axes_a, axes_b = _summed_axes(a, axes)
        left, free_a, static_a = _as_matrix(a, axes_a, False)
        right, free_b, static_b = _as_matrix(b, axes_b, True)
        product = gen_ops.mat_mul(left, right)
        if isinstance(free_a, list) and isinstance(free_b, list):
            return array_ops.reshape(product, free_a + free_b, scope)
        result = array_ops.reshape(product, array_ops.concat([_vector(free_a), _vector(free_b)], 0), scope)
        if static_a is not None and static_b is not None:
            result.set_shape(static_a + static_b)
        return result


def _vector(sizes: Any) -> Tensor:
    return convert_to_tensor(np.array(sizes, np.int32) if isinstance(sizes, list) else sizes, dtypes.int32)


def _summed_axes(a: Tensor, axes: Any) -> Tuple[Any, Any]:
    if isinstance(axes, (int, np.integer)):
        rank = a.get_shape().ndims
        if axes < 0:
            raise at_user_line(ValueError("'axes' must be at least 0."))
        if rank is None:
            return math_ops.range(array_ops.rank(a) - int(axes), array_ops.rank(a)), list(builtins.range(axes))
        if axes > rank:
            raise at_user_line(ValueError("'axes' must not be larger than the number of dimensions of tensor %s." % a))
        return list(builtins.range(rank - axes, rank)), list(builtins.range(axes))
    if isinstance(axes, Tensor):
        known = constant_value(axes)
        if known is None:
            return axes[0], axes[1]
        axes = known.tolist()
        if isinstance(axes, int):
            return _summed_axes(a, axes)
    if len(axes) != 2:
        raise at_user_line(ValueError("'axes' must be an integer or have length 2."))
    pair = [[int(x)] if isinstance(x, (int, np.integer)) else x if isinstance(x, Tensor) else [int(i) for i in x] for x in axes]
    if all(isinstance(p, list) for p in pair) and len(pair[0]) != len(pair[1]):
        raise at_user_line(ValueError("Different number of contraction axes 'a' and 'b', %s != %s." % (len(pair[0]), len(pair[1]))))
    return pair[0], pair[1]


def _as_matrix(x: Tensor, axes: Any, summed_first: bool) -> Tuple[Tensor, Any, Any]:
    """(x with summed and free axes each as one, sizes of the free ones as a list or a tensor, what is known of these or None)."""
    shape = x.get_shape()
    if shape.ndims is None or isinstance(axes, Tensor):
        return _as_matrix_of_unknown_rank(x, axes, summed_first)
    summed = [i + shape.ndims if i < 0 else i for i in axes]
    free = [i for i in builtins.range(shape.ndims) if i not in summed]
    order = summed + free if summed_first else free + summed
    known = [shape[i].value for i in free]
    if shape.is_fully_defined():
        sizes: Any = shape.as_list()
        pair = [int(np.prod([sizes[i] for i in part], dtype=np.int64)) for part in ((summed, free) if summed_first else (free, summed))]
        return array_ops.reshape(_in_order(x, order, order), pair), known, known
    of_axes, of_free = convert_to_tensor(summed, dtypes.int32, "axes"), convert_to_tensor(free, dtypes.int32, "free")
    dynamic = array_ops.shape(x)
    free_sizes, summed_sizes = array_ops.gather(dynamic, of_free), array_ops.gather(dynamic, of_axes)
    products = [math_ops.reduce_prod(free_sizes), math_ops.reduce_prod(summed_sizes)]
    parts = [of_axes, of_free] if summed_first else [of_free, of_axes]
    places, rows_and_columns = array_ops.concat(parts, 0), array_ops.stack(products[::-1] if summed_first else products)
    return array_ops.reshape(_in_order(x, order, places), rows_and_columns), (known if None not in known else free_sizes), known


def _in_order(x: Tensor, order: Any, places: Any) -> Tensor:
    """x transposed. TensorFlow does so in any case; where the axes stay, nobody reads that."""
    made = array_ops.transpose(x, places)
    return x if order == list(builtins.range(len(order))) else made


def _as_matrix_of_unknown_rank(x: Tensor, axes: Any, summed_first: bool) -> Tuple[Tensor, Any, Any]:
    sizes, rank = array_ops.shape(x), array_ops.rank(x)
    summed = convert_to_tensor(axes, dtypes.int32, "axes")
    summed = array_ops.where(gen_ops.greater_equal(summed, 0), summed, summed + rank)
    free = gen_ops.list_diff(math_ops.range(rank), summed)[0]
    free_sizes = array_ops.gather(sizes, free)
    products = [math_ops.reduce_prod(free_sizes), math_ops.reduce_prod(array_ops.gather(sizes, summed))]
    order = array_ops.concat([summed, free] if summed_first else [free, summed], 0)
    return array_ops.reshape(array_ops.transpose(x, order), array_ops.stack(products[::-1] if summed_first else products)), free_sizes, None


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sums of products in Einstein's notation. Three and more tensors are multiplied from left to right."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise at_user_line(TypeError("invalid keyword arguments for this function: %s" % ", ".join(kwargs)))
    if not isinstance(equation, str):
        raise at_user_line(TypeError("einsum's equation comes first and is a string such as 'ij,jk->ik', got %r" % (equation,)))
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = tuple(inputs[0])
    equation = equation.replace(" ", "")
    parts, arrow, result = equation.partition("->")
    terms = parts.split(",")
    if len(terms) != len(inputs):
        raise at_user_line(ValueError('Got %d arguments for equation "%s", expecting %d' % (len(inputs), equation, len(terms))))
    if not arrow:
        letters = [c for c in parts if c.isalpha()]
        result = ("..." if "..." in parts else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    tensors = [convert_to_tensor(x) for x in inputs]
    with name_scope(name, "einsum", tensors) as scope:
        while len(tensors) > 2:
            later = set(result).union(*terms[2:])
            kept = ("..." if "..." in terms[0] + terms[1] else "") + "".join(c for c in dict.fromkeys(terms[0] + terms[1]) if c.isalpha() and c in later)
            tensors[:2] = [gen_ops.einsum(tensors[:2], "%s,%s->%s" % (terms[0], terms[1], kept))]
            terms[:2] = [kept]
        return gen_ops.einsum(tensors, "%s->%s" % (",".join(terms), result), name=scope)


# ---- norms ----

_VECTOR_NORMS, _MATRIX_NORMS = ["euclidean", 1, 2, np.inf], ["euclidean", "fro", 1, 2, np.inf]


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: Optional[str] = None, keep_dims: Any = None) -> Tensor:
    """The norm of vectors along an axis, of matrices along two, or of all elements."""
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims, False))
    of_matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    if (
        of_matrix
        and (not all(isinstance(i, (int, np.integer)) for i in axis) or axis[0] == axis[1])
        or not of_matrix
        and not (axis is None or isinstance(axis, (int, np.integer)))
    ):
        raise at_user_line(ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers"))
    if of_matrix and ord not in _MATRIX_NORMS:
        raise at_user_line(ValueError("'ord' must be a supported matrix norm in %s, got %s" % (_MATRIX_NORMS, ord)))
    if not of_matrix and ord not in _VECTOR_NORMS and (isinstance(ord, str) or not np.isreal(ord) or ord <= 0):
        raise at_user_line(ValueError("'ord' must be a supported vector norm, got %s" % (ord,)))
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        axes = None if axis is None else [int(i) for i in axis] if of_matrix else [int(axis)]
        result = _norm(x, ord, axes, of_matrix)
        return result if keep else array_ops.squeeze(result, axes)


def _norm(x: Tensor, ord: Any, axes: Optional[List[int]], of_matrix: bool) -> Tensor:
    if of_matrix and ord == 2:
        return _largest_singular_value(x, axes or [])
    if ord in ("euclidean", "fro", 2):
        return gen_ops.sqrt(math_ops.reduce_sum(x * math_ops.conj(x), axes, True))
    size = math_ops.abs(x)
    if of_matrix:
        rows, columns = (axes or [])[::-1] if ord == 1 else axes or []
        return math_ops.reduce_max(math_ops.reduce_sum(size, columns, True), rows, True)
    if ord == 1:
        return math_ops.reduce_sum(size, axes, True)
    if ord == np.inf:
        return math_ops.reduce_max(size, axes, True)
    return gen_ops.pow(math_ops.reduce_sum(gen_ops.pow(size, ord), axes, True), 1.0 / ord)


def _largest_singular_value(x: Tensor, axes: List[int]) -> Tensor:
    """With both axes kept, of size one."""
    ndims = x.get_shape().ndims
    if ndims is not None:
        last = [i % ndims for i in axes]
        order: Any = [i for i in builtins.range(ndims) if i not in last] + last
        back: Any = list(np.argsort(order))
    else:
        rank = array_ops.rank(x)
        positive = array_ops.stack([i if i >= 0 else rank + i for i in axes])
        order = array_ops.concat([gen_ops.list_diff(math_ops.range(rank), positive)[0], positive], 0)
        back = gen_ops.invert_permutation(order)
    values = gen_ops.svd(array_ops.transpose(x, order), compute_uv=False)[0]
    largest = math_ops.reduce_max(math_ops.abs(values), [-1], True)
    return array_ops.transpose(array_ops.expand_dims(largest, -1), back)


def trace(x: Any, name: Optional[str] = None) -> Tensor:
    """The sum of the diagonal of matrices."""
    with name_scope(name, "Trace", [x]) as scope:
        return math_ops.reduce_sum(gen_ops.matrix_diag_part(convert_to_tensor(x)), [-1], name=scope)


def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
    """Identity matrices."""
    with name_scope(name, "eye") as scope:
        columns = num_rows if num_columns is None else num_columns
        known = all(isinstance(n, (int, np.integer)) for n in (num_rows, columns))
        if known and batch_shape is None:
            return constant(np.eye(num_rows, columns), dtype, name=scope)
        diagonal = builtins.min(num_rows, columns) if known else num_rows if num_columns is None else gen_ops.minimum(num_rows, columns)
        batch = convert_to_tensor([] if batch_shape is None else batch_shape, dtypes.int32)
        ones = array_ops.ones(array_ops.concat([batch, [diagonal]], 0), dtype)
        if num_columns is None:
            return gen_ops.matrix_diag(ones, name=scope)
        zeros = array_ops.zeros(array_ops.concat([batch, [num_rows, columns]], 0), dtype)
        return gen_ops.matrix_set_diag(zeros, ones, name=scope)
