# SPDX-License-Identifier: Apache-2.0
"""Bijectors of numbers and vectors, and what combines bijectors: chains, inverses, functions of the user."""

from __future__ import annotations

import math
from typing import Any, List, Optional

from millrace.distributions.bijector import Bijector, least_dimensions
from millrace.distributions.distribution import checked
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, matrix_ops


class Exp(Bijector):
    """y = exp(x)."""

    def __init__(self, event_ndims: Any = 0, validate_args: bool = False, name: str = "exp") -> None:
        super().__init__(event_ndims, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return gen_ops.exp(x)

    def _inverse(self, y: Any) -> Any:
        return gen_ops.log(y)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -self._event_sum(gen_ops.log(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._event_sum(x)


class PowerTransform(Bijector):
    """y = (1 + c x)^(1 / c), and exp(x) for c = 0."""

    def __init__(self, power: float = 0.0, event_ndims: Any = 0, validate_args: bool = False, name: str = "power_transform") -> None:
        super().__init__(event_ndims, validate_args=validate_args, name=name)
        if power < 0:
            raise at_user_line(ValueError("`power` must be a non-negative TF constant."))
        self._power = power

    power = property(lambda self: self._power, doc="c.")

    def _forward(self, x: Any) -> Any:
        return gen_ops.exp(x if self._power == 0.0 else gen_ops.log1p(x * self._power) / self._power)

    def _inverse(self, y: Any) -> Any:
        return gen_ops.log(y) if self._power == 0.0 else gen_ops.expm1(gen_ops.log(y) * self._power) / self._power

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return (self._power - 1.0) * self._event_sum(gen_ops.log(y))


class Sigmoid(Bijector):
    """y = 1 / (1 + exp(-x))."""

    def __init__(self, validate_args: bool = False, event_ndims: Any = 0, name: str = "sigmoid") -> None:
        super().__init__(event_ndims, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return gen_ops.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return gen_ops.log(y) - gen_ops.log1p(-y)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._event_sum(-gen_ops.log(y) - gen_ops.log1p(-y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._event_sum(-gen_ops.softplus(-x) - gen_ops.softplus(x))


class Softplus(Bijector):
    """y = log(1 + exp(x)), scaled by a hinge softness."""

    def __init__(self, event_ndims: Any = 0, hinge_softness: Any = None, validate_args: bool = False, name: str = "softplus") -> None:
        super().__init__(event_ndims, validate_args=validate_args, name=name)
        self._softness = hinge_softness
        if hinge_softness is not None and validate_args:
            given = convert_to_tensor(hinge_softness, name="hinge_softness")
            zero = array_ops.zeros([], given.dtype.base_dtype)
            self._softness = checked(given, True, lambda t: check_ops.assert_none_equal(t, zero, message="hinge_softness must be non-zero"))

    hinge_softness = property(lambda self: self._softness, doc="How soft the bend is.")

    def _scale(self, x: Any) -> Any:
        return 1.0 if self._softness is None else math_ops.cast(self._softness, x.dtype.base_dtype)

    def _forward(self, x: Any) -> Any:
        c = self._scale(x)
        return c * gen_ops.softplus(x / c)

    def _inverse(self, y: Any) -> Any:
        c = self._scale(y)
        return c * softplus_inverse(y / c)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -self._event_sum(gen_ops.log(-gen_ops.expm1(-y / self._scale(y))))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -self._event_sum(gen_ops.softplus(-x / self._scale(x)))


def softplus_inverse(x: Any, name: Optional[str] = None) -> Any:
    """The y of which softplus(y) is x: x + log(1 - exp(-x)), with finite gradients at the ends."""
    with name_scope(name, "softplus_inverse", [x]):
        return _softplus_inverse(convert_to_tensor(x))


def _softplus_inverse(y: Tensor) -> Any:
    threshold = math.log(2.220446049250313e-16 if y.dtype.base_dtype.name == "float64" else 1.1920929e-07) + 2.0
    small, large = gen_ops.less(y, math.exp(threshold)), gen_ops.greater(y, -threshold)
    safe = array_ops.where(gen_ops.logical_or(small, large), array_ops.ones_like(y), y)
    middle = safe + gen_ops.log(-gen_ops.expm1(-safe))
    tiny = gen_ops.log(array_ops.where(small, y, array_ops.ones_like(y)))
    return array_ops.where(small, tiny, array_ops.where(large, y, middle))


class AffineScalar(Bijector):
    """y = scale x + shift, of each number."""

    def __init__(self, shift: Any = None, scale: Any = None, event_ndims: Any = 0, validate_args: bool = False, name: str = "affine_scalar") -> None:
        self.shift = None if shift is None else convert_to_tensor(shift, name="shift")
        self.scale = None if scale is None else convert_to_tensor(scale, name="scale")
        super().__init__(event_ndims, [t for t in (self.shift, self.scale) if t is not None], True, validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        y = x if self.scale is None else x * self.scale
        return y if self.shift is None else y + self.shift

    def _inverse(self, y: Any) -> Any:
        x = y if self.shift is None else y - self.shift
        return x if self.scale is None else x / self.scale

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        if self.scale is None:
            return convert_to_tensor(0.0, x.dtype.base_dtype)
        logarithm = gen_ops.log(gen_ops.abs(self.scale))
        return self._event_sum(logarithm + array_ops.zeros_like(x)) if self.forward_min_event_ndims else logarithm


class Affine(Bijector):
    """y = scale x + shift of vectors; the scale a multiple of the identity, a diagonal, or a lower triangle, and to it a product V D V' of few columns."""

    def __init__(
        self,
        shift: Any = None,
        scale_identity_multiplier: Any = None,
        scale_diag: Any = None,
        scale_tril: Any = None,
        scale_perturb_factor: Any = None,
        scale_perturb_diag: Any = None,
        event_ndims: Any = 1,
        validate_args: bool = False,
        name: str = "affine",
    ) -> None:
        if scale_perturb_diag is not None and scale_perturb_factor is None:
            raise at_user_line(ValueError("Where scale_perturb_diag is given, scale_perturb_factor must be specified."))
        given = [None if v is None else convert_to_tensor(v) for v in (shift, scale_identity_multiplier, scale_diag, scale_tril, scale_perturb_factor)]
        self.shift, self._multiple, self._diag, self._tril, self._factor = given
        self._weights = None if scale_perturb_diag is None else convert_to_tensor(scale_perturb_diag)
        parents = [t for t in (*given, self._weights) if t is not None]
        super().__init__(event_ndims, parents, True, validate_args, name=name)
        self._checks: List[Any] = []
        diagonal = self._diagonal if self._tril is None else gen_ops.matrix_diag_part(self._triangle)
        if validate_args and diagonal is not None:
            zero = array_ops.zeros([], diagonal.dtype.base_dtype)
            self._checks.append(check_ops.assert_none_equal(diagonal, zero, message="diagonal part must be non-zero"))

    def _behind_checks(self, x: Any) -> Any:
        with control_dependencies(self._checks):
            return array_ops.identity(x) if self._checks else x

    @property
    def _diagonal(self) -> Any:
        parts = [p for p in (self._diag, None if self._multiple is None else array_ops.expand_dims(self._multiple, -1)) if p is not None]
        return None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]

    @property
    def scale(self) -> Optional[Tensor]:
        """The matrix, where it is more than a diagonal."""
        if self._factor is None:
            return self._triangle
        weighted = self._factor if self._weights is None else self._factor * array_ops.expand_dims(self._weights, -2)
        product = gen_ops.batch_mat_mul_v2(weighted, self._factor, adj_y=True)
        if self._tril is not None:
            return self._triangle + product
        ones = array_ops.ones_like(gen_ops.matrix_diag_part(product))
        return gen_ops.matrix_diag(ones if self._diagonal is None else ones * self._diagonal) + product

    @property
    def _triangle(self) -> Optional[Tensor]:
        if self._tril is None:
            return None
        lower = gen_ops.matrix_band_part(self._tril, -1, 0)
        if self._diagonal is None:
            return lower
        return gen_ops.matrix_set_diag(lower, gen_ops.matrix_diag_part(lower) + self._diagonal)

    def _forward(self, x: Any) -> Any:
        x = self._behind_checks(x)
        if self.scale is not None:
            x = array_ops.squeeze(matrix_ops.matmul(self.scale, array_ops.expand_dims(x, -1)), [-1])
        elif self._diagonal is not None:
            x = x * self._diagonal
        return x if self.shift is None else x + self.shift

    def _inverse(self, y: Any) -> Any:
        y = self._behind_checks(y)
        x = y if self.shift is None else y - self.shift
        if self._factor is not None:
            matrices = self.scale + array_ops.expand_dims(array_ops.zeros_like(x), -1)  # as many as there are vectors
            vectors = x + array_ops.zeros_like(gen_ops.matrix_diag_part(matrices))
            return array_ops.squeeze(gen_ops.matrix_solve(matrices, array_ops.expand_dims(vectors, -1)), [-1])
        if self._tril is not None:
            return array_ops.squeeze(gen_ops.matrix_triangular_solve(self.scale, array_ops.expand_dims(x, -1)), [-1])
        return x if self._diagonal is None else x / self._diagonal

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        if self._factor is not None:
            return gen_ops.log_matrix_determinant(self.scale)[1]
        if self._tril is not None:
            return math_ops.reduce_sum(gen_ops.log(gen_ops.abs(gen_ops.matrix_diag_part(self.scale))), [-1])
        if self._diagonal is None:
            return convert_to_tensor(0.0, x.dtype.base_dtype)
        return math_ops.reduce_sum(gen_ops.log(gen_ops.abs(self._diagonal)) + array_ops.zeros(array_ops.shape(x)[-1:], x.dtype.base_dtype), [-1])


class Invert(Bijector):
    """The inverse of a bijector."""

    def __init__(self, bijector: Any, validate_args: bool = False, name: Optional[str] = None) -> None:
        self._bijector, self._gain, self.is_injective = bijector, -bijector._gain, bijector.is_injective
        super().__init__(
            bijector.inverse_min_event_ndims,
            bijector.graph_parents,
            bijector.is_constant_jacobian,
            validate_args,
            bijector.dtype,
            name or "invert_" + bijector.name,
        )

    bijector = property(lambda self: self._bijector, doc="What it inverts.")

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return self._bijector.inverse_event_shape(input_shape)

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return self._bijector.forward_event_shape(output_shape)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self._bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self._bijector.forward_event_shape_tensor(output_shape)

    def _forward(self, x: Any, **conditions: Any) -> Any:
        return self._bijector.inverse(x, **conditions)

    def _inverse(self, y: Any, **conditions: Any) -> Any:
        return self._bijector.forward(y, **conditions)

    def _forward_log_det_jacobian(self, x: Any, **conditions: Any) -> Any:
        return self._bijector.inverse_log_det_jacobian(x, **conditions)

    def _inverse_log_det_jacobian(self, y: Any, **conditions: Any) -> Any:
        return self._bijector.forward_log_det_jacobian(y, **conditions)


class Chain(Bijector):
    """Bijectors one after the other, the last one first."""

    def __init__(self, bijectors: Any = None, validate_args: bool = False, name: Optional[str] = None) -> None:
        self._bijectors: List[Any] = list(bijectors or [])
        self._gain = sum(b._gain for b in self._bijectors)
        self.is_injective = all(b.is_injective for b in self._bijectors)
        super().__init__(
            least_dimensions(self._bijectors) if self._bijectors else None,
            [p for b in self._bijectors for p in b.graph_parents],
            all(b.is_constant_jacobian for b in self._bijectors),
            validate_args,
            name=name or ("identity" if not self._bijectors else "_of_".join(["chain", *(b.name for b in self._bijectors)])),
        )

    bijectors = property(lambda self: self._bijectors, doc="The bijectors.")

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        for b in reversed(self._bijectors):
            input_shape = b.forward_event_shape(input_shape)
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        for b in self._bijectors:
            output_shape = b.inverse_event_shape(output_shape)
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        for b in reversed(self._bijectors):
            input_shape = b.forward_event_shape_tensor(input_shape)
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        for b in self._bijectors:
            output_shape = b.inverse_event_shape_tensor(output_shape)
        return output_shape

    def _forward(self, x: Any) -> Any:
        for b in reversed(self._bijectors):
            x = b.forward(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for b in self._bijectors:
            y = b.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        total: Any = convert_to_tensor(0.0, x.dtype.base_dtype)
        rank = self.forward_min_event_ndims
        for b in reversed(self._bijectors):
            total = total + b.forward_log_det_jacobian(x, rank)
            x, rank = b.forward(x), rank + b._gain
        return total

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        total: Any = convert_to_tensor(0.0, y.dtype.base_dtype)
        rank = self.inverse_min_event_ndims
        for b in self._bijectors:
            total = total + b.inverse_log_det_jacobian(y, rank)
            y, rank = b.inverse(y), rank - b._gain
        return total


class Inline(Bijector):
    """A bijector of functions."""

    def __init__(
        self,
        forward_fn: Any = None,
        inverse_fn: Any = None,
        inverse_log_det_jacobian_fn: Any = None,
        forward_log_det_jacobian_fn: Any = None,
        forward_event_shape_fn: Any = None,
        forward_event_shape_tensor_fn: Any = None,
        inverse_event_shape_fn: Any = None,
        inverse_event_shape_tensor_fn: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: Optional[int] = None,
        inverse_min_event_ndims: Optional[int] = None,
        name: str = "inline",
        event_ndims: Any = None,
    ) -> None:
        if event_ndims is None and forward_min_event_ndims is None and inverse_min_event_ndims is None:
            event_ndims = 0
        super().__init__(
            event_ndims,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name,
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
        )
        self._functions = {
            "forward": forward_fn,
            "inverse": inverse_fn,
            "forward_log_det_jacobian": forward_log_det_jacobian_fn,
            "inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
            "forward_event_shape": forward_event_shape_fn,
            "forward_event_shape_tensor": forward_event_shape_tensor_fn,
            "inverse_event_shape": inverse_event_shape_fn,
            "inverse_event_shape_tensor": inverse_event_shape_tensor_fn,
        }

    def _shape(self, what: str, shape: Any) -> Any:
        function = self._functions[what]
        return shape if function is None else function(shape)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return TensorShape(self._shape("forward_event_shape", input_shape))

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return TensorShape(self._shape("inverse_event_shape", output_shape))

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return self._shape("forward_event_shape_tensor", input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return self._shape("inverse_event_shape_tensor", output_shape)

    def _apply(self, what: str, value: Any, **conditions: Any) -> Any:
        function = self._functions[what]
        if function is None:
            raise self._missing(what)
        return function(value, **conditions)

    def _forward(self, x: Any, **conditions: Any) -> Any:
        return self._apply("forward", x, **conditions)

    def _inverse(self, y: Any, **conditions: Any) -> Any:
        return self._apply("inverse", y, **conditions)

    def _forward_log_det_jacobian(self, x: Any, **conditions: Any) -> Any:
        if self._functions["forward_log_det_jacobian"] is None and self._functions["inverse_log_det_jacobian"] is not None:
            return -self._apply("inverse_log_det_jacobian", self.forward(x, **conditions), **conditions)
        return self._apply("forward_log_det_jacobian", x, **conditions)

    def _inverse_log_det_jacobian(self, y: Any, **conditions: Any) -> Any:
        if self._functions["inverse_log_det_jacobian"] is None and self._functions["forward_log_det_jacobian"] is not None:
            return -self._apply("forward_log_det_jacobian", self.inverse(y, **conditions), **conditions)
        return self._apply("inverse_log_det_jacobian", y, **conditions)


class SoftmaxCentered(Bijector):
    """softmax of vectors with a 0 appended; the inverse takes log(y) less its last entry."""

    def __init__(self, event_ndims: Any = 1, validate_args: bool = False, name: str = "softmax_centered") -> None:
        super().__init__(event_ndims, validate_args=validate_args, name=name)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        sizes = input_shape.as_list()
        return TensorShape([*sizes[:-1], None if sizes[-1] is None else sizes[-1] + 1])

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        sizes = output_shape.as_list()
        return TensorShape([*sizes[:-1], None if sizes[-1] is None else sizes[-1] - 1])

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return array_ops.concat([input_shape[:-1], input_shape[-1:] + 1], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return array_ops.concat([output_shape[:-1], output_shape[-1:] - 1], 0)

    def _forward(self, x: Any) -> Any:
        from millrace.ops import nn_ops

        return nn_ops.softmax(array_ops.concat([x, array_ops.zeros_like(x[..., :1])], -1))

    def _inverse(self, y: Any) -> Any:
        logs = gen_ops.log(y)
        return logs[..., :-1] - logs[..., -1:]

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -math_ops.reduce_sum(gen_ops.log(y), [-1])
