# SPDX-License-Identifier: Apache-2.0
"""Bijectors of matrices and of shapes: triangles from vectors, factors to products, ordered vectors, linear operators."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from millrace.distributions.basic_bijectors import Chain, Inline, Softplus
from millrace.distributions.bijector import Bijector
from millrace.distributions.util import fill_triangular, fill_triangular_inverse
from millrace.distributions.distribution import checked
from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops, matrix_ops


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
        if self._validate_args:
            whole = check_ops.assert_equal(n * (n + 1) // 2, input_shape[-1:], message="The last dimension is not a triangular number")
            n = control_flow_ops.with_dependencies([whole], n)
        return array_ops.concat([input_shape[:-1], n, n], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        n = output_shape[-1:]
        if self._validate_args:
            n = control_flow_ops.with_dependencies([check_ops.assert_equal(output_shape[-2:-1], n, message="Matrix must be square.")], n)
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

    def _checked(self, x: Any) -> Any:
        with control_dependencies(_checks_of_triangle(x) if self._validate_args else []):
            return array_ops.identity(x)

    def _forward(self, x: Any) -> Any:
        x = self._checked(x)
        eye = gen_ops.matrix_diag(array_ops.ones(array_ops.shape(x)[:-1], x.dtype.base_dtype))
        return gen_ops.matrix_triangular_solve(x, eye)

    def _inverse(self, y: Any) -> Any:
        return self._forward(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        diagonal = gen_ops.matrix_diag_part(self._checked(x))
        n = math_ops.cast(array_ops.shape(x)[-1], x.dtype.base_dtype)
        return -(n + 1.0) * math_ops.reduce_sum(gen_ops.log(gen_ops.abs(diagonal)), [-1])

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._forward_log_det_jacobian(y)


def _checks_of_triangle(x: Any) -> Any:
    form = [check_ops.assert_rank_at_least(x, 2, message="Input must have rank at least 2.")]
    form.append(check_ops.assert_equal(array_ops.shape(x)[-2], array_ops.shape(x)[-1], message="Input must be a square matrix."))
    above = x - gen_ops.matrix_band_part(x, -1, 0)
    zero, diagonal = array_ops.zeros([], x.dtype.base_dtype), gen_ops.matrix_diag_part(x)
    return [
        *form,
        check_ops.assert_equal(above, array_ops.zeros_like(above), message="Input must be lower triangular."),
        check_ops.assert_none_equal(diagonal, zero, message="Input must have all diagonal entries nonzero."),
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


class _Sizes:
    """The shape of an event: a vector of sizes of which one may be -1, and what is known of it when the graph is built."""

    def __init__(self, shape: Any, what: str, validate: bool) -> None:
        if isinstance(shape, TensorShape):
            shape = [-1 if size is None else size for size in shape.as_list()]
        self.tensor = shape if isinstance(shape, Tensor) else constant(np.array(shape, np.int32))
        if not self.tensor.dtype.is_integer:
            raise at_user_line(TypeError("`%s` must be integers, got %s" % (what, self.tensor.dtype.name)))
        if self.tensor.get_shape().ndims not in (None, 1):
            raise at_user_line(ValueError("`%s` must be a vector, got the shape %s" % (what, self.tensor.get_shape())))
        found = constant_value(self.tensor)
        self.known = None if found is None else [int(size) for size in found]
        count = self.tensor.get_shape().num_elements()
        self.rank = None if count is None else int(count)
        texts = "`%s` elements must have at most one `-1`." % what, "`%s` elements must be either positive integers or `-1`." % what
        self.tensor = checked(
            math_ops.cast(self.tensor, dtypes.int32),
            validate,
            lambda t: check_ops.assert_less_equal(math_ops.reduce_sum(math_ops.cast(gen_ops.equal(t, -1), dtypes.int32)), 1, message=texts[0]),
            lambda t: check_ops.assert_greater_equal(t, -1, message=texts[1]),
        )
        if self.known is not None and not validate:
            for wrong, text in zip((self.known.count(-1) > 1, any(size < -1 for size in self.known)), texts):
                if wrong:
                    raise at_user_line(ValueError("%s Got %s" % (text, self.known)))
            if -1 in self.known and 0 in self.known:
                raise at_user_line(ValueError("`%s` has any number of elements beside none: %s" % (what, self.known)))

    def static_of(self, shape: TensorShape, wanted: _Sizes) -> TensorShape:
        """What is known of a shape that ends with this one, when it ends with the other instead."""
        if shape.ndims is None or self.rank is None or wanted.rank is None:
            return TensorShape(None)
        if shape.ndims < self.rank:
            raise at_user_line(ValueError("Input `event_shape` does not match `event_shape_in`: %s has not %d dimensions" % (shape, self.rank)))
        lead, event = shape.as_list()[: shape.ndims - self.rank], shape.as_list()[shape.ndims - self.rank :]
        if self.known is not None and any(own not in (-1, size) for own, size in zip(self.known, event) if size is not None):
            raise at_user_line(ValueError("Input `event_shape` does not match `event_shape_in`. Got %s for %s" % (event, self.known)))
        if wanted.known is None:
            return TensorShape(lead + [None] * wanted.rank)
        if -1 not in wanted.known:
            return TensorShape(lead + wanted.known)
        count, rest = TensorShape(event).num_elements(), int(np.prod([size for size in wanted.known if size != -1]))
        if count is not None and count % rest:
            raise at_user_line(ValueError("Events of %s have no shape of %s" % (event, wanted.known)))
        return TensorShape(lead + [size if size != -1 else None if count is None else count // rest for size in wanted.known])

    def shape_of(self, shape: Tensor, wanted: _Sizes) -> Tensor:
        """A shape that ends with this one, when it ends with the other instead."""
        split = array_ops.size(shape) - array_ops.size(self.tensor)
        is_open, sizes = gen_ops.equal(wanted.tensor, -1), wanted.tensor
        fill = gen_ops.prod(shape[split:], [0]) // gen_ops.maximum(gen_ops.prod(array_ops.where(is_open, array_ops.ones_like(sizes), sizes), [0]), 1)
        return array_ops.concat([shape[:split], array_ops.where(is_open, array_ops.zeros_like(sizes) + fill, sizes)], 0)

    def checks_of(self, static: TensorShape, shape: Tensor) -> Any:
        """Operations that fail where a shape does not end with this one, if that is not known."""
        if self.known is not None and static.ndims is not None and static[static.ndims - len(self.known) :].is_fully_defined():
            return []
        event = shape[array_ops.size(shape) - array_ops.size(self.tensor) :]
        fits = gen_ops.logical_or(gen_ops.equal(self.tensor, -1), gen_ops.equal(self.tensor, event))
        message = "Input `event_shape` does not match `event_shape_in`."
        return [control_flow_ops.Assert(math_ops.reduce_all(fits), [message, event, self.tensor])]


class Reshape(Bijector):
    """Events of another shape with the same numbers; one size of each shape may be -1. Shapes may be tensors."""

    def __init__(self, event_shape_out: Any, event_shape_in: Any = (-1,), validate_args: bool = False, name: Optional[str] = None) -> None:
        with name_scope(name, "reshape", [event_shape_out, event_shape_in]):
            self._out, self._in = (
                _Sizes(shape, what, validate_args) for shape, what in ((event_shape_out, "event_shape_out"), (event_shape_in, "event_shape_in"))
            )
        before, after = self._in.rank, self._out.rank
        self._gain = 0 if before is None or after is None else after - before
        super().__init__(before or 0, is_constant_jacobian=True, validate_args=validate_args, name=name or "reshape")

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return self._in.static_of(input_shape, self._out)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return self._out.static_of(output_shape, self._in)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self._in.shape_of(input_shape, self._out)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self._out.shape_of(output_shape, self._in)

    def _reshaped(self, x: Any, given: _Sizes, wanted: _Sizes) -> Any:
        static, shape = given.static_of(x.get_shape(), wanted), array_ops.shape(x)
        lead = shape[: array_ops.size(shape) - array_ops.size(given.tensor)]
        with control_dependencies(given.checks_of(x.get_shape(), shape) if self._validate_args else []):
            made = array_ops.reshape(x, array_ops.concat([lead, wanted.tensor], 0))
        made.set_shape(static)
        return made

    def _forward(self, x: Any) -> Any:
        return self._reshaped(x, self._in, self._out)

    def _inverse(self, y: Any) -> Any:
        return self._reshaped(y, self._out, self._in)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return _zero(x)

    def _over_events(self, logarithm: Any, value: Tensor, event_ndims: Any, least: int) -> Any:
        return logarithm  # nothing changes, however many dimensions an event has


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
