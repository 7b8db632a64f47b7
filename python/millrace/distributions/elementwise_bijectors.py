# SPDX-License-Identifier: Apache-2.0
"""Bijectors of single numbers: distribution functions as maps, squares, sinh of arcsinh; and permutations of vectors."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.distributions.bijector import Bijector
from millrace.distributions.distribution import checked
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, sort_ops


class Square(Bijector):
    """y = x^2 of numbers that are not negative."""

    def __init__(self, validate_args: bool = False, name: str = "square") -> None:
        super().__init__(0, validate_args=validate_args, name=name)

    def _checked(self, t: Any) -> Any:
        """What it maps, behind a check of its sign where the user asked for it."""
        if not self._validate_args:
            return t
        with control_dependencies([check_ops.assert_non_negative(t, message="All elements must be non-negative.")]):
            return array_ops.identity(t)

    def _forward(self, x: Any) -> Any:
        return gen_ops.square(self._checked(x))

    def _inverse(self, y: Any) -> Any:
        return gen_ops.sqrt(self._checked(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return np.log(2.0) + gen_ops.log(self._checked(x))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -np.log(2.0) - 0.5 * gen_ops.log(self._checked(y))


class AbsoluteValue(Bijector):
    """y = |x|. Two values have the same image: the inverse is (-y, y), and its logarithms of determinants are two."""

    is_injective = False

    def __init__(self, event_ndims: Any = 0, validate_args: bool = False, name: str = "absolute_value") -> None:
        if not isinstance(event_ndims, int) or event_ndims != 0:
            raise at_user_line(ValueError("event_ndims was not 0"))
        super().__init__(0, is_constant_jacobian=True, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return math_ops.abs(x)

    def inverse(self, y: Any, name: str = "inverse", **condition_kwargs: Any) -> Any:
        """Both values whose magnitude is y."""
        with name_scope(self._name + "/" + name):
            y = self._taken(y, "y")
            y = self._magnitude(y)
            return -y, y

    def _magnitude(self, y: Tensor) -> Tensor:
        return checked(y, self._validate_args, lambda y: check_ops.assert_non_negative(y, message="Argument y was negative"))

    def forward_log_det_jacobian(self, x: Any, event_ndims: Any = None, name: str = "forward_log_det_jacobian", **condition_kwargs: Any) -> Tensor:
        """No value: it has no inverse."""
        raise self._missing("forward_log_det_jacobian of a function without one inverse")

    def inverse_log_det_jacobian(self, y: Any, event_ndims: Any = None, name: str = "inverse_log_det_jacobian", **condition_kwargs: Any) -> Any:
        """0 for both values."""
        with name_scope(self._name + "/" + name):
            y = self._magnitude(self._taken(y, "y"))
            zero = self._over_events(array_ops.zeros([], y.dtype.base_dtype), y, None if isinstance(event_ndims, str) else event_ndims, 0)
            return zero, zero


class SigmoidCentered(Bijector):
    """The pair of sigmoid(x) and 1 - sigmoid(x) for each number."""

    _gain = 1

    def __init__(self, validate_args: bool = False, name: str = "sigmoid_centered") -> None:
        super().__init__(0, validate_args=validate_args, name=name)

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return input_shape.concatenate([2])

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return output_shape[:-1]

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return array_ops.concat([input_shape, [2]], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return output_shape[:-1]

    def _forward(self, x: Any) -> Any:
        return array_ops.stack([gen_ops.sigmoid(x), gen_ops.sigmoid(-x)], -1)

    def _inverse(self, y: Any) -> Any:
        return gen_ops.log(y[..., 0]) - gen_ops.log(y[..., 1])

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -math_ops.reduce_sum(gen_ops.log(y), [-1])

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -gen_ops.softplus(-x) - gen_ops.softplus(x)


class Softsign(Bijector):
    """y = x / (1 + |x|), within -1 and 1."""

    def __init__(self, validate_args: bool = False, name: str = "softsign") -> None:
        super().__init__(0, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        return gen_ops.softsign(x)

    def _within(self, y: Any) -> Any:
        one = array_ops.ones_like(y)
        return checked(
            y,
            self._validate_args,
            lambda y: check_ops.assert_greater(y, -one, message="Inverse transformation input must be greater than -1."),
            lambda y: check_ops.assert_less(y, one, message="Inverse transformation input must be less than 1."),
        )

    def _inverse(self, y: Any) -> Any:
        y = self._within(y)
        return y / (1.0 - math_ops.abs(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -2.0 * gen_ops.log1p(math_ops.abs(x))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -2.0 * gen_ops.log1p(-math_ops.abs(self._within(y)))


class Gumbel(Bijector):
    """y = exp(-exp(-(x - loc) / scale)), Gumbel's distribution function."""

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, event_ndims: Any = 0, validate_args: bool = False, name: str = "gumbel") -> None:
        self._loc, self._scale = convert_to_tensor(loc, name="loc"), convert_to_tensor(scale, name="scale")
        super().__init__(event_ndims, [self._loc, self._scale], validate_args=validate_args, name=name)

    loc = property(lambda self: self._loc, doc="Where it lies.")
    scale = property(lambda self: self._scale, doc="How wide it is.")

    def _forward(self, x: Any) -> Any:
        return gen_ops.exp(-gen_ops.exp(-(x - self._loc) / self._scale))

    def _inverse(self, y: Any) -> Any:
        return self._loc - self._scale * gen_ops.log(-gen_ops.log(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        z = (x - self._loc) / self._scale
        return self._event_sum(-z - gen_ops.exp(-z) - gen_ops.log(self._scale))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._event_sum(gen_ops.log(self._scale / (-gen_ops.log(y) * y)))


class Weibull(Bijector):
    """y = 1 - exp(-(x / scale)^concentration) of numbers that are not negative, Weibull's distribution function."""

    def __init__(self, scale: Any = 1.0, concentration: Any = 1.0, event_ndims: Any = 0, validate_args: bool = False, name: str = "weibull") -> None:
        self._scale, self._concentration = convert_to_tensor(scale, name="scale"), convert_to_tensor(concentration, name="concentration")
        super().__init__(event_ndims, [self._scale, self._concentration], validate_args=validate_args, name=name)

    scale = property(lambda self: self._scale, doc="How wide it is.")
    concentration = property(lambda self: self._concentration, doc="Its exponent.")

    def _forward(self, x: Any) -> Any:
        return -gen_ops.expm1(-gen_ops.pow(x / self._scale, self._concentration))

    def _inverse(self, y: Any) -> Any:
        return self._scale * gen_ops.pow(-gen_ops.log1p(-y), 1.0 / self._concentration)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        z, k = x / self._scale, self._concentration
        return self._event_sum(-gen_ops.pow(z, k) + (k - 1.0) * gen_ops.log(z) + gen_ops.log(k) - gen_ops.log(self._scale))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        k = self._concentration
        return self._event_sum(-gen_ops.log1p(-y) + (1.0 / k - 1.0) * gen_ops.log(-gen_ops.log1p(-y)) + gen_ops.log(self._scale / k))


class Kumaraswamy(Bijector):
    """y = (1 - (1 - x)^(1 / concentration0))^(1 / concentration1) within 0 and 1: what makes Kumaraswamy's numbers of even ones."""

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, event_ndims: Any = 0, validate_args: bool = False, name: str = "kumaraswamy"
    ) -> None:
        self._one = convert_to_tensor(1.0 if concentration1 is None else concentration1, name="concentration1")
        self._zero = convert_to_tensor(1.0 if concentration0 is None else concentration0, name="concentration0")
        super().__init__(event_ndims, [self._one, self._zero], validate_args=validate_args, name=name)

    concentration1 = property(lambda self: self._one, doc="The exponent of x.")
    concentration0 = property(lambda self: self._zero, doc="The exponent of 1 - x.")

    def _forward(self, x: Any) -> Any:
        return gen_ops.pow(-gen_ops.expm1(gen_ops.log1p(-x) / self._zero), 1.0 / self._one)

    def _inverse(self, y: Any) -> Any:
        return -gen_ops.expm1(self._zero * gen_ops.log1p(-gen_ops.pow(y, self._one)))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        a, b = self._one, self._zero
        return self._event_sum(gen_ops.log(a) + gen_ops.log(b) + (a - 1.0) * gen_ops.log(y) + (b - 1.0) * gen_ops.log1p(-gen_ops.pow(y, a)))


def _asinh(x: Any) -> Any:
    """asinh, also of numbers whose square is no finite number: log(2 |x|) with the sign of x."""
    size = gen_ops.abs(x)
    large = gen_ops.greater(size, 1e10)
    tail = gen_ops.log(array_ops.where(large, size, array_ops.ones_like(x))) + np.log(2.0)
    return array_ops.where(large, gen_ops.sign(x) * tail, gen_ops.asinh(array_ops.where(large, array_ops.zeros_like(x), x)))


def _log_cosh(x: Any) -> Any:
    """log(cosh(x)), which is about |x| - log(2) where cosh(x) is no finite number."""
    size = gen_ops.abs(x)
    return size + gen_ops.log1p(gen_ops.exp(-2.0 * size)) - np.log(2.0)


class SinhArcsinh(Bijector):
    """y = sinh((arcsinh(x) + skewness) tailweight): one side heavier than the other, and tails as heavy as wanted."""

    def __init__(self, skewness: Any = None, tailweight: Any = None, event_ndims: Any = 0, validate_args: bool = False, name: str = "SinhArcsinh") -> None:
        given = convert_to_tensor(1.0 if tailweight is None else tailweight, name="tailweight")
        self._tailweight = checked(given, validate_args, lambda t: check_ops.assert_positive(t, message="Argument tailweight was not positive"))
        self._skewness = convert_to_tensor(0.0 if skewness is None else skewness, self._tailweight.dtype, "skewness")
        super().__init__(event_ndims, [self._skewness, self._tailweight], validate_args=validate_args, name=name)

    skewness = property(lambda self: self._skewness, doc="How much one side is heavier.")
    tailweight = property(lambda self: self._tailweight, doc="How heavy the tails are.")

    def _forward(self, x: Any) -> Any:
        return gen_ops.sinh((_asinh(x) + self._skewness) * self._tailweight)

    def _inverse(self, y: Any) -> Any:
        return gen_ops.sinh(_asinh(y) / self._tailweight - self._skewness)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        inner = _log_cosh((_asinh(x) + self._skewness) * self._tailweight)
        return self._event_sum(inner + gen_ops.log(self._tailweight) - _log_cosh(_asinh(x)))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        inner = _log_cosh(_asinh(y) / self._tailweight - self._skewness)
        return self._event_sum(inner - gen_ops.log(self._tailweight) - _log_cosh(_asinh(y)))


_EACH_ONCE = "Permutation over `d` must contain exactly one of each of `{0, 1, ..., d}`"


def _assert_permutation(order: Tensor) -> Any:
    return check_ops.assert_equal(
        sort_ops.sort(array_ops.reshape(order, [-1])), math_ops.cast(math_ops.range(array_ops.size(order)), order.dtype), message=_EACH_ONCE
    )


class Permute(Bijector):
    """The elements of the last dimension in another order: y[i] = x[permutation[i]]."""

    def __init__(self, permutation: Any, validate_args: bool = False, name: Optional[str] = None) -> None:
        self._permutation = convert_to_tensor(permutation, name="permutation")
        if not self._permutation.dtype.is_integer:
            raise at_user_line(TypeError("permutation.dtype (%s) should be `int`-like." % self._permutation.dtype.name))
        known = np.asarray(permutation) if not hasattr(permutation, "graph") else None
        if known is not None and (known.ndim != 1 or sorted(known) != list(range(len(known)))):
            raise at_user_line(ValueError("%s, got %s" % (_EACH_ONCE, permutation)))
        if known is None:
            self._permutation = checked(self._permutation, validate_args, _assert_permutation)
        super().__init__(1, [self._permutation], True, validate_args, name=name or "permute")

    permutation = property(lambda self: self._permutation, doc="Where each element comes from.")

    def _forward(self, x: Any) -> Any:
        return array_ops.gather(x, self._permutation, axis=-1)

    def _inverse(self, y: Any) -> Any:
        return array_ops.gather(y, gen_ops.invert_permutation(self._permutation), axis=-1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return array_ops.zeros([], dtypes.as_dtype(y.dtype).base_dtype)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return array_ops.zeros([], dtypes.as_dtype(x.dtype).base_dtype)
