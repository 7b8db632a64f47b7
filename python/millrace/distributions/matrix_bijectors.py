# SPDX-License-Identifier: Apache-2.0
"""Bijectors of matrices and of shapes: triangles from vectors, factors to products, ordered vectors, linear operators."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from millrace.distributions.basic_bijectors import Chain, Inline, Softplus
from millrace.distributions.bijector import Bijector
from millrace.distributions.util import fill_triangular, fill_triangular_inverse
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies
from millrace.framework.tensor_shape import TensorShape, as_shape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, matrix_ops


def _zero(x: Any) -> Any:
    return array_ops.zeros([], x.dtype.base_dtype)


class FillTriangular(Bijector):
    """Vectors of n (n + 1) / 2 numbers as triangular matrices."""

    _gain = 1

    def __init__(self, upper: bool = False, validate_args: bool = False, name: str = "fill_triangular") -> None:
        super().__init__(1, is_constant_jacobian=True, validate_args=validate_args, name=name)
        self._upper = upper

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        count = input_shape.as_list()[-1]
        if count is None:
            return input_shape[:-1].concatenate([None, None])
        n = (math.isqrt(1 + 8 * count) - 1) // 2
        if n * (n + 1) // 2 != count:
            raise at_user_line(ValueError("%d is not a triangular number" % count))
        return input_shape[:-1].concatenate([n, n])

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        rows, columns = output_shape.as_list()[-2:]
        if None not in (rows, columns) and rows != columns:
            raise at_user_line(ValueError("Matrix must be square, got %s" % output_shape))
        n = columns if rows is None else rows
        return output_shape[:-2].concatenate([None if n is None else n * (n + 1) // 2])

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        wide = gen_ops.sqrt(0.25 + 2.0 * math_ops.to_double(input_shape[-1:])) - 0.5
        n = math_ops.to_int32(gen_ops.round(wide))
        return array_ops.concat([input_shape[:-1], n, n], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        n = output_shape[-1:]
        return array_ops.concat([output_shape[:-2], n * (n + 1) // 2], 0)

    def _forward(self, x: Any) -> Any:
        return fill_triangular(x, self._upper)

    def _inverse(self, y: Any) -> Any:
        return fill_triangular_inverse(y, self._upper)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return _zero(x)


class TransformDiagonal(Bijector):
    """Matrices with a bijector applied to their diagonals."""

    def __init__(self, diag_bijector: Any, validate_args: bool = False, name: str = "transform_diagonal") -> None:
        self._diag_bijector = diag_bijector
        super().__init__(2, diag_bijector.graph_parents, diag_bijector.is_constant_jacobian, validate_args, diag_bijector.dtype, name)

    diag_bijector = property(lambda self: self._diag_bijector, doc="What is applied.")

    def _forward(self, x: Any) -> Any:
        return gen_ops.matrix_set_diag(x, self._diag_bijector.forward(gen_ops.matrix_diag_part(x)))

    def _inverse(self, y: Any) -> Any:
        return gen_ops.matrix_set_diag(y, self._diag_bijector.inverse(gen_ops.matrix_diag_part(y)))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._diag_bijector.forward_log_det_jacobian(gen_ops.matrix_diag_part(x), 1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._diag_bijector.inverse_log_det_jacobian(gen_ops.matrix_diag_part(y), 1)


class ScaleTriL(Chain):
    """Vectors as lower triangles whose diagonals are positive."""

    def __init__(self, diag_bijector: Any = None, diag_shift: Any = 1e-5, validate_args: bool = False, name: str = "scale_tril") -> None:
        if diag_bijector is None:
            diag_bijector = Softplus(validate_args=validate_args)
        if diag_shift is not None:
            shifted = Inline(lambda x: x + diag_shift, lambda y: y - diag_shift, _zero, is_constant_jacobian=True, name="diag_shift")
            diag_bijector = Chain([shifted, diag_bijector])
        super().__init__([TransformDiagonal(diag_bijector), FillTriangular()], validate_args, name)


class MatrixInverseTriL(Bijector):
    """The inverses of lower triangular matrices."""

    def __init__(self, validate_args: bool = False, name: str = "matrix_inverse_tril") -> None:
        super().__init__(2, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        with control_dependencies(_checks_of_triangle(x) if self._validate_args else []):
            shape = array_ops.shape(x)
            eye = gen_ops.matrix_diag(array_ops.ones(shape[:-1], x.dtype.base_dtype))
            return gen_ops.matrix_triangular_solve(x, eye)

    def _inverse(self, y: Any) -> Any:
        return self._forward(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        diagonal = gen_ops.matrix_diag_part(x)
        n = math_ops.cast(array_ops.shape(x)[-1], x.dtype.base_dtype)
        return -(n + 1.0) * math_ops.reduce_sum(gen_ops.log(gen_ops.abs(diagonal)), [-1])

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._forward_log_det_jacobian(y)


def _checks_of_triangle(x: Any) -> Any:
    above = x - gen_ops.matrix_band_part(x, -1, 0)
    zero, diagonal = array_ops.zeros([], x.dtype.base_dtype), gen_ops.matrix_diag_part(x)
    return [
        check_ops.assert_equal(above, array_ops.zeros_like(above), message="Argument is not lower triangular."),
        check_ops.assert_none_equal(diagonal, zero, message="Argument is not invertible: its diagonal has a 0."),
    ]


class CholeskyOuterProduct(Bijector):
    """x x^T of lower triangles with positive diagonals."""

    def __init__(self, validate_args: bool = False, name: str = "cholesky_outer_product") -> None:
        super().__init__(2, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        if self._validate_args:
            checks = [*_checks_of_triangle(x), check_ops.assert_positive(gen_ops.matrix_diag_part(x), message="Diagonal must be positive")]
            with control_dependencies(checks):
                x = array_ops.identity(x)
        return matrix_ops.matmul(x, x, transpose_b=True)

    def _inverse(self, y: Any) -> Any:
        return gen_ops.cholesky(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        diagonal = gen_ops.matrix_diag_part(x)
        n = array_ops.shape(diagonal)[-1]
        # d(x x^T) of the entries of row k and below has 2 x_kk once and x_kk once an entry below.
        counts = math_ops.cast(n - math_ops.range(n), x.dtype.base_dtype)
        return math_ops.reduce_sum(counts * gen_ops.log(diagonal), [-1]) + math_ops.cast(n, x.dtype.base_dtype) * math.log(2.0)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -self._forward_log_det_jacobian(self.inverse(y))


class Ordered(Bijector):
    """Increasing vectors to any: the first entry, then the logarithms of the steps."""

    def __init__(self, validate_args: bool = False, name: str = "ordered") -> None:
        super().__init__(1, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        steps = x[..., 1:] - x[..., :-1]
        if self._validate_args:
            with control_dependencies([check_ops.assert_positive(steps, message="Forward transformation input must be strictly increasing.")]):
                steps = array_ops.identity(steps)
        return array_ops.concat([x[..., :1], gen_ops.log(steps)], -1)

    def _inverse(self, y: Any) -> Any:
        return math_ops.cumsum(array_ops.concat([y[..., :1], gen_ops.exp(y[..., 1:])], -1), -1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return math_ops.reduce_sum(y[..., 1:], [-1])

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -math_ops.reduce_sum(gen_ops.log(x[..., 1:] - x[..., :-1]), [-1])


class Reshape(Bijector):
    """Events of another shape with the same numbers; one size of each shape may be -1."""

    def __init__(self, event_shape_out: Any, event_shape_in: Any = (-1,), validate_args: bool = False, name: Optional[str] = None) -> None:
        self._in, self._out = (_sizes(shape, what) for shape, what in ((event_shape_in, "event_shape_in"), (event_shape_out, "event_shape_out")))
        if -1 not in self._in and -1 not in self._out and np.prod(self._in) != np.prod(self._out):
            raise at_user_line(ValueError("Input/output `event_size`s do not match: %s and %s" % (self._in, self._out)))
        self._gain = len(self._out) - len(self._in)
        super().__init__(len(self._in), is_constant_jacobian=True, validate_args=validate_args, name=name or "reshape")

    def _static(self, shape: TensorShape, given: Any, wanted: Any) -> TensorShape:
        if shape.ndims is None:
            return shape
        lead, event = shape.as_list()[: shape.ndims - len(given)], shape.as_list()[shape.ndims - len(given) :]
        if shape.ndims < len(given) or any(g not in (-1, e) for g, e in zip(given, event) if e is not None):
            raise at_user_line(ValueError("Input `event_shape` does not match `event_shape_in`: %s and %s" % (event, given)))
        if -1 not in wanted:
            return TensorShape(lead + wanted)
        count, rest = TensorShape(event).num_elements(), int(np.prod([w for w in wanted if w != -1]))
        if count is not None and count % rest:
            raise at_user_line(ValueError("Events of %s have no shape of %s" % (event, wanted)))
        return TensorShape(lead + [w if w != -1 else None if count is None else count // rest for w in wanted])

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return self._static(input_shape, self._in, self._out)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return self._static(output_shape, self._out, self._in)

    def _dynamic(self, shape: Tensor, given: Any, wanted: Any) -> Tensor:
        lead = array_ops.shape(shape)[0] - len(given)
        if -1 not in wanted:
            return array_ops.concat([shape[:lead], wanted], 0)
        unknown = gen_ops.prod(shape[lead:], [0]) // int(np.prod([w for w in wanted if w != -1]))
        return array_ops.concat([shape[:lead], array_ops.stack([unknown if w == -1 else w for w in wanted])], 0)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self._dynamic(input_shape, self._in, self._out)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self._dynamic(output_shape, self._out, self._in)

    def _reshaped(self, x: Any, given: Any, wanted: Any) -> Any:
        static = self._static(x.get_shape(), given, wanted)
        made = array_ops.reshape(x, self._dynamic(array_ops.shape(x), given, wanted))
        made.set_shape(static)
        return made

    def _forward(self, x: Any) -> Any:
        return self._reshaped(x, self._in, self._out)

    def _inverse(self, y: Any) -> Any:
        return self._reshaped(y, self._out, self._in)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return _zero(x)


def _sizes(shape: Any, what: str) -> Any:
    from millrace.framework.static_values import constant_value

    known: Any = constant_value(shape) if isinstance(shape, Tensor) else as_shape(shape).as_list() if isinstance(shape, TensorShape) else shape
    if known is None or isinstance(known, list) and None in known:
        raise at_user_line(NotImplementedError("%s of Reshape must be known when the graph is built" % what))
    if np.ndim(known) != 1:
        raise at_user_line(ValueError("`%s` must be a vector, got %s" % (what, known)))
    sizes = [int(n) for n in known]
    if sizes.count(-1) > 1:
        raise at_user_line(ValueError("`%s` must have at most one -1, got %s" % (what, sizes)))
    if -1 in sizes and 0 in sizes:
        raise at_user_line(ValueError("`%s` has any number of elements beside none: %s" % (what, sizes)))
    if any(n < -1 for n in sizes):
        raise at_user_line(ValueError("`%s` elements must be either positive integers or `-1`, got %s" % (what, sizes)))
    return sizes


class AffineLinearOperator(Bijector):
    """y = scale x + shift of vectors, the scale a LinearOperator."""

    def __init__(self, shift: Any = None, scale: Any = None, event_ndims: Any = 1, validate_args: bool = False, name: str = "affine_linear_operator") -> None:
        self._shift, self._scale = None if shift is None else convert_to_tensor(shift, name="shift"), scale
        if self._shift is not None and scale is not None and self._shift.dtype.base_dtype != scale.dtype:
            raise at_user_line(TypeError("shift.dtype(%s) is incompatible with scale.dtype(%s)." % (self._shift.dtype, scale.dtype)))
        if scale is not None and (not scale.is_non_singular or scale.is_square is False):
            raise at_user_line(ValueError("Scale matrix must be square and non-singular: say is_non_singular=True"))
        parents = ([] if self._shift is None else [self._shift]) + ([] if scale is None else list(scale.graph_parents))
        super().__init__(event_ndims, parents, True, validate_args, name=name)

    shift = property(lambda self: self._shift, doc="What is added.")
    scale = property(lambda self: self._scale, doc="The operator.")

    def _forward(self, x: Any) -> Any:
        if self._scale is not None:
            x = array_ops.squeeze(self._scale.matmul(array_ops.expand_dims(x, -1)), [-1])
        return x if self._shift is None else x + self._shift

    def _inverse(self, y: Any) -> Any:
        x = y if self._shift is None else y - self._shift
        return x if self._scale is None else array_ops.squeeze(self._scale.solve(array_ops.expand_dims(x, -1)), [-1])

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return _zero(x) if self._scale is None else self._scale.log_abs_determinant()
