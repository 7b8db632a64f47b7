# SPDX-License-Identifier: Apache-2.0
"""Powers, sums of powers, blocks and products of batches of matrices."""

from __future__ import annotations

from typing import Any, Sequence

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import Dimension, TensorShape
from millrace.ops import array_ops, functional_ops, gen_ops, math_ops
from millrace.ops.control_flow_ops import while_loop
from millrace.ops.matrix_ops import eye, matmul


def block_diagonal(matrices: Sequence[Any], dtype: Any = dtypes.float32, name: str = "block_diagonal") -> Tensor:
    """The matrices [..., n_i, m_i] along the diagonal of one [..., sum of n_i, sum of m_i], zero elsewhere."""
    blocks = [convert_to_tensor(matrix, dtype) for matrix in matrices]
    front, rows, columns = TensorShape(None), Dimension(0), Dimension(0)
    for block in blocks:
        shape = block.get_shape().with_rank_at_least(2)
        front, rows, columns = front.merge_with(shape[:-2]), rows + shape[-2], columns + shape[-1]
    widths = [array_ops.shape(block)[-1] for block in blocks]
    left: Any = 0
    right, stripes = gen_ops.add_n(widths), []
    for block, width in zip(blocks, widths):
        right -= width
        nothing = array_ops.zeros([array_ops.rank(block) - 1, 2], dtypes.int32)
        stripes.append(array_ops.pad(block, array_ops.concat([nothing, [(left, right)]], 0)))
        left += width
    made = array_ops.concat(stripes, -2, name=name)
    made.set_shape(front.concatenate([rows, columns]))
    return made


def power_sums_tensor(array_size: Any, power_matrix: Any, multiplier: Any) -> Tensor:
    """S[0], ..., S[array_size], [array_size + 1, n, n], where S[k] is the sum of A^i B (A^i)^T over i < k, A the power_matrix [n, n] and B the
    multiplier [n, n]. Each is made of the one before: S[k + 1] = A S[k] A^T + B."""
    power_matrix, multiplier = convert_to_tensor(power_matrix), convert_to_tensor(multiplier)

    def one_more(so_far: Tensor, _: Any) -> Tensor:
        return matmul(matmul(power_matrix, so_far), power_matrix, adjoint_b=True) + multiplier

    nothing = array_ops.zeros_like(multiplier)
    sums = functional_ops.scan(one_more, math_ops.range(math_ops.cast(array_size, dtypes.int32)), initializer=nothing)
    return array_ops.concat([nothing[None], sums], 0)


def matrix_to_powers(matrix: Any, powers: Any) -> Tensor:
    """A matrix [n, n] to each power of a vector: [powers, n, n]."""
    return batch_matrix_pow(array_ops.tile(array_ops.expand_dims(matrix, 0), [array_ops.size(powers), 1, 1]), powers)


def batch_matrix_pow(matrices: Any, powers: Any) -> Tensor:
    """Matrices [batch, n, n], each to its own power of a vector of whole numbers, by squaring: as many products as powers have bits."""
    matrices, powers = convert_to_tensor(matrices), math_ops.cast(powers, dtypes.int32)
    shape = array_ops.shape(matrices)
    identities = eye(shape[-1], batch_shape=shape[:1], dtype=matrices.dtype)
    identities.set_shape(matrices.get_shape())

    def square(base: Tensor, left: Tensor, made: Tensor) -> Any:
        # A base that is not needed any more stays as it is: its square might be too large.
        made = array_ops.where(gen_ops.equal(left % 2, 1), matmul(made, base), made)
        return array_ops.where(left > 1, matmul(base, base), base), left // 2, made

    return while_loop(lambda _base, left, _made: math_ops.reduce_any(left > 0), square, [matrices, powers, identities])[2]


def batch_times_matrix(batch: Any, matrix: Any, adj_x: bool = False, adj_y: bool = False) -> Tensor:
    """Each matrix of a batch [b, n, m] times one [m, p]: [b, n, p]; adj_x and adj_y say that what is given is transposed."""
    batch, matrix = convert_to_tensor(batch), convert_to_tensor(matrix)
    batch.get_shape().assert_has_rank(3)
    matrix.get_shape().assert_has_rank(2)
    return matmul(batch, matrix, adjoint_a=adj_x, adjoint_b=adj_y)


def matrix_times_batch(matrix: Any, batch: Any, adj_x: bool = False, adj_y: bool = False) -> Tensor:
    """One matrix [n, m] times each of a batch [b, m, p]: [b, n, p]; adj_x and adj_y say that what is given is transposed."""
    return array_ops.transpose(batch_times_matrix(batch, matrix, adj_x=not adj_y, adj_y=not adj_x), [0, 2, 1])


def make_toeplitz_matrix(inputs: Any, name: Any = None) -> Tensor:
    """The matrix [k n, k n] whose block (i, j) is number |i - j| of the blocks [k, n, n]."""
    shape = array_ops.shape(inputs)
    places = math_ops.range(shape[0])
    blocks = array_ops.gather(inputs, math_ops.abs(places[:, None] - places))
    size = shape[0] * shape[1]
    return array_ops.reshape(array_ops.transpose(blocks, [0, 2, 1, 3]), [size, size], name=name)
