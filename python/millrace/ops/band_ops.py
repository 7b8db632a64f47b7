# SPDX-License-Identifier: Apache-2.0
"""Diagonals and bands of matrices, functions of matrices, matrices of three diagonals."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops

__all__ = ["extract_volume_patches", "matrix_diag", "matrix_diag_part", "matrix_set_diag", "matrix_square_root", "sparse_matmul"]


def _is_main(k: Any) -> bool:
    return isinstance(k, int) and k == 0


def _padding(value: Any, dtype: Any) -> Tensor:
    return convert_to_tensor(bool(value) if dtype.base_dtype == dtypes.bool_ and not isinstance(value, Tensor) else value, dtype)


def matrix_diag(diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0) -> Tensor:
    """Matrices with the given diagonals: the main one, that of number k, or those from k[0] to k[1]."""
    diagonal = convert_to_tensor(diagonal, name="diagonal")
    if _is_main(k) and isinstance(num_rows, int) and num_rows == num_cols == -1 and isinstance(padding_value, int) and padding_value == 0:
        return gen_ops.matrix_diag(diagonal, name=name)
    return gen_ops.matrix_diag_v2(
        diagonal,
        convert_to_tensor(k, dtypes.int32),
        convert_to_tensor(num_rows, dtypes.int32),
        convert_to_tensor(num_cols, dtypes.int32),
        _padding(padding_value, diagonal.dtype),
        name=name,
    )


def matrix_diag_part(input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0) -> Tensor:
    """Diagonals of matrices: the main one, that of number k, or those from k[0] to k[1], filled up with the padding value."""
    input = convert_to_tensor(input, name="input")
    if _is_main(k):
        return gen_ops.matrix_diag_part(input, name=name)
    return gen_ops.matrix_diag_part_v2(input, convert_to_tensor(k, dtypes.int32), _padding(padding_value, input.dtype), name=name)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0) -> Tensor:
    """Matrices with the main diagonal, that of number k, or those from k[0] to k[1] replaced."""
    input = convert_to_tensor(input, name="input")
    diagonal = convert_to_tensor(diagonal, input.dtype, "diagonal")
    if _is_main(k):
        return gen_ops.matrix_set_diag(input, diagonal, name=name)
    return gen_ops.matrix_set_diag_v2(input, diagonal, convert_to_tensor(k, dtypes.int32), name=name)


def matrix_square_root(input: Any, name: Optional[str] = None) -> Tensor:
    """Matrices whose squares are the given ones."""
    return gen_ops.matrix_square_root(convert_to_tensor(input), name=name)


def matrix_exponential(input: Any, name: Optional[str] = None) -> Tensor:
    """The exponentials of square matrices."""
    return gen_ops.matrix_exponential(convert_to_tensor(input), name=name)


def sparse_matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, name: Optional[str] = None
) -> Tensor:
    """The product of two matrices; that they have many zeros is a hint."""
    return gen_ops.sparse_mat_mul(
        convert_to_tensor(a),
        convert_to_tensor(b),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
        name=name,
    )


def extract_volume_patches(input: Any, ksizes: Any, strides: Any, padding: str, name: Optional[str] = None) -> Tensor:
    """Patches of volumes, laid out in the depth dimension."""
    return gen_ops.extract_volume_patches(convert_to_tensor(input), ksizes=ksizes, strides=strides, padding=padding, name=name)


def cumulative_logsumexp(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Optional[str] = None) -> Tensor:
    """Running logarithms of sums of exponentials along an axis."""
    with name_scope(name, "CumulativeLogsumexp", [x]) as scope:
        return gen_ops.cumulative_logsumexp(convert_to_tensor(x, name="x"), convert_to_tensor(axis), exclusive=exclusive, reverse=reverse, name=scope)


def _three_rows(diagonals: Any, form: str, like: Any) -> Any:
    """The upper, main and lower diagonals, each as a row of a matrix."""
    if form == "sequence":
        if not isinstance(diagonals, (list, tuple)) or len(diagonals) != 3:
            raise at_user_line(ValueError("Expected diagonals to be a sequence of length 3."))
        return [array_ops.expand_dims(d, -2) for d in _of_one_length(*(convert_to_tensor(d, like) for d in diagonals))]
    diagonals = convert_to_tensor(diagonals, like)
    sizes = diagonals.get_shape().with_rank_at_least(2)[-2:] if diagonals.get_shape().ndims is not None else None
    if form == "matrix":
        if sizes is not None and not sizes[0].is_compatible_with(sizes[1]):
            raise at_user_line(ValueError("Expected last two dimensions of diagonals to be the same, got %s" % sizes))
        zero = array_ops.zeros_like(diagonals[..., :1])
        upper, lower = array_ops.concat([diagonals[..., 1:], zero], -1), array_ops.concat([zero, diagonals[..., :-1]], -1)
        return [array_ops.expand_dims(matrix_diag_part(moved), -2) for moved in (upper, diagonals, lower)]
    if form != "compact":
        raise at_user_line(ValueError("Unrecognized diagonals format: %s" % form))
    if sizes is not None and not sizes[0].is_compatible_with(3):
        raise at_user_line(ValueError("Expected 3 diagonals got %s" % sizes[0]))
    return [diagonals[..., i : i + 1, :] for i in range(3)]


def _of_one_length(upper: Tensor, main: Tensor, lower: Tensor) -> Any:
    """The diagonals, the outer ones filled up to the length of the main one."""
    for diagonal in (upper, lower):
        if not diagonal.get_shape()[:-1].is_compatible_with(main.get_shape()[:-1]):
            raise at_user_line(ValueError("The three diagonals must have one batch, got %s and %s" % (diagonal.get_shape(), main.get_shape())))
    size = main.get_shape()[-1].value

    def filled(diagonal: Tensor, name: str, side: Any) -> Tensor:
        given = diagonal.get_shape()[-1].value
        if given in (None, size) or size is None:
            return diagonal
        if given != size - 1:
            raise at_user_line(ValueError("Expected the %sdiagonal to have length %d or %d, got %d." % (name, size, size - 1, given)))
        return array_ops.pad(diagonal, [[0, 0]] * ((diagonal.get_shape().ndims or 1) - 1) + [side])

    return filled(upper, "super", [0, 1]), main, filled(lower, "sub", [1, 0])


def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: Optional[str] = None) -> Tensor:
    """Products of matrices of three diagonals with matrices."""
    with name_scope(name, "tridiagonal_matmul", [rhs]):
        rhs = convert_to_tensor(rhs)
        return gen_ops.tridiagonal_mat_mul(*_three_rows(diagonals, diagonals_format, rhs.dtype), rhs)  # type: ignore[call-arg]


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: Optional[str] = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """Solutions of equations whose matrices have three diagonals: of the shape of rhs."""
    with name_scope(name, "tridiagonal_solve", [rhs]):
        rhs = convert_to_tensor(rhs)
        rows = array_ops.concat(_three_rows(diagonals, diagonals_format, rhs.dtype), -2)
        ranks = rows.get_shape().ndims, rhs.get_shape().ndims
        if None not in ranks and (ranks[0] < 2 or ranks[1] not in (ranks[0] - 1, ranks[0])):  # type: ignore[operator]
            raise at_user_line(ValueError("Expected rhs to have as many dimensions as diagonals of rank %s, or one less, got %s" % ranks))
        is_vector = None not in ranks and ranks[1] == ranks[0] - 1  # type: ignore[operator]
        if is_vector:
            rhs = array_ops.expand_dims(rhs, -1)
        elif transpose_rhs:
            rhs = array_ops.matrix_transpose(rhs)
        if conjugate_rhs and rhs.dtype.is_complex:
            rhs = gen_ops.conj(rhs)
        x = gen_ops.tridiagonal_solve(rows, rhs, partial_pivoting=partial_pivoting)
        return array_ops.squeeze(x, [-1]) if is_vector else array_ops.matrix_transpose(x) if transpose_rhs else x
