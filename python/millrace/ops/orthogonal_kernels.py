# SPDX-License-Identifier: Apache-2.0
"""Initializers of convolutions that keep the length of what they convolve (Xiao et al. 2018, "Dynamical Isometry and a Mean Field Theory of CNNs")."""

from __future__ import annotations

import itertools
from typing import Any, Dict, Optional, Tuple

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, random_ops

_Kernel = Dict[Tuple[int, ...], Any]  # by place: a matrix


class _OrthogonalKernel(init_ops.Orthogonal):
    """Shared: the matrices that kernels are made of, each drawn with a seed of its own."""

    _most_axes: Tuple[int, ...] = ()

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        dtype, sizes = self.dtype if dtype is None else dtypes.as_dtype(dtype), init_ops._dims(shape)
        if len(sizes) - 2 not in self._most_axes:
            raise at_user_line(ValueError("The tensor to initialize must have %s axes, got %s" % (" or ".join(str(n + 2) for n in self._most_axes), sizes)))
        if sizes[-2] > sizes[-1]:
            raise at_user_line(ValueError("In_filters cannot be greater than out_filters."))
        self._drawn = 0
        kernel = self._kernel(tuple(sizes[:-2]), sizes[-1], dtype)
        first = self._orthogonal(sizes[-1], dtype)[: sizes[-2]]
        zero = array_ops.zeros([sizes[-2], sizes[-1]], dtype)
        every = itertools.product(*(range(n) for n in sizes[:-2]))
        weights = [matrix_ops.matmul(first, kernel[place]) if place in kernel else zero for place in every]
        return array_ops.reshape(array_ops.stack(weights), sizes) * math_ops.cast(self.gain, dtype)

    def _kernel(self, places: Tuple[int, ...], n: int, dtype: Any) -> _Kernel:
        raise NotImplementedError

    def _normal(self, shape: Any, dtype: Any) -> Tensor:
        self._drawn += 1
        seed: Optional[int] = None if self.seed is None else self.seed + self._drawn - 1
        return random_ops.random_normal(shape, dtype=dtype, seed=seed)

    def _orthogonal(self, n: int, dtype: Any) -> Tensor:
        q, r = gen_ops.qr(self._normal([n, n], dtype))
        return q * gen_ops.sign(gen_ops.matrix_diag_part(r))


class ConvolutionDeltaOrthogonal(_OrthogonalKernel):
    """Zeros but for the middle, which is an orthogonal matrix: of convolutions of one to three axes."""

    _most_axes = (1, 2, 3)

    def _kernel(self, places: Tuple[int, ...], n: int, dtype: Any) -> _Kernel:
        return {tuple((size - 1) // 2 for size in places): constant(np.eye(n), dtype)}


class _BlockOrthogonal(_OrthogonalKernel):
    """Kernels of size 2 made of projections, convolved with each other until they have the size wanted."""

    def _kernel(self, places: Tuple[int, ...], n: int, dtype: Any) -> _Kernel:
        if len(set(places)) != 1:
            raise at_user_line(ValueError("Kernel sizes must be equal, got %s" % (places,)))
        kernel: _Kernel = {(0,) * len(places): constant(np.eye(n), dtype)}
        for _ in range(places[0] - 1):
            kernel = _convolved(kernel, self._block(len(places), n, dtype))
        return kernel

    def _projection(self, n: int, dtype: Any) -> Tensor:
        columns = self._orthogonal(n, dtype) * math_ops.cast(gen_ops.greater(self._normal([n], dtype), 0), dtype)
        return matrix_ops.matmul(columns, columns, transpose_b=True)

    def _block(self, axes: int, n: int, dtype: Any) -> _Kernel:
        """For each corner of a cube the product of projections, or of what they leave out, one for each axis."""
        eye = constant(np.eye(n), dtype)
        block: Dict[Tuple[int, ...], Any] = {(): None}
        for _ in range(axes):
            p = self._projection(n, dtype)
            block = {(*place, i): m if made is None else matrix_ops.matmul(made, m) for place, made in block.items() for i, m in enumerate((p, eye - p))}
        return block


def _convolved(a: _Kernel, b: _Kernel) -> _Kernel:
    sums: Dict[Tuple[int, ...], Any] = {}
    for (i, x), (j, y) in itertools.product(a.items(), b.items()):
        sums.setdefault(tuple(p + q for p, q in zip(i, j)), []).append(matrix_ops.matmul(x, y))
    return {place: parts[0] if len(parts) == 1 else math_ops.add_n(parts) for place, parts in sums.items()}


class ConvolutionOrthogonal1D(_BlockOrthogonal):
    """An orthogonal kernel [width, in, out] of a circular convolution."""

    _most_axes = (1,)


class ConvolutionOrthogonal2D(_BlockOrthogonal):
    """An orthogonal kernel [n, n, in, out] of a circular convolution."""

    _most_axes = (2,)


class ConvolutionOrthogonal3D(_BlockOrthogonal):
    """An orthogonal kernel [n, n, n, in, out] of a circular convolution."""

    _most_axes = (3,)


convolutional_delta_orthogonal = ConvolutionDeltaOrthogonal
convolutional_orthogonal_1d = ConvolutionOrthogonal1D
convolutional_orthogonal_2d = ConvolutionOrthogonal2D
convolutional_orthogonal_3d = ConvolutionOrthogonal3D
