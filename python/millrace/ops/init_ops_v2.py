# SPDX-License-Identifier: Apache-2.0
"""Initializers of TensorFlow 2 (tensorflow.python.ops.init_ops_v2): those of init_ops with other defaults, whose type is said when they are called."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.ops import init_ops
from millrace.ops.init_ops import Initializer, _compute_fans  # noqa: F401


def _floating(dtype: Any) -> dtypes.DType:
    return init_ops._floating(dtype)


class Zeros(Initializer):
    """Makes zeros of a shape."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:  # type: ignore[override]
        return init_ops.Zeros()(shape, dtype=_number_or_bool(dtype))


class Ones(Initializer):
    """Makes ones of a shape."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:  # type: ignore[override]
        return init_ops.Ones()(shape, dtype=_number_or_bool(dtype))


def _number_or_bool(dtype: Any) -> dtypes.DType:
    found = dtypes.as_dtype(dtype)
    if found == dtypes.string:
        raise at_user_line(ValueError("Expected numeric or boolean dtype, got %s." % found))
    return found


class Constant(Initializer):
    """One value everywhere, or as many as the shape has."""

    def __init__(self, value: Any = 0) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise at_user_line(
                TypeError("Invalid type for initial value: %s (expected Python scalar, list or tuple of values, or numpy.ndarray)." % type(value))
            )
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:  # type: ignore[override]
        sizes = init_ops._dims(shape)
        count, given = int(np.prod(sizes)), np.size(self.value)
        if given not in (1, count):
            raise at_user_line(TypeError("Expected %d values for the shape %s, got %d." % (count, sizes, given)))
        return constant(self.value, dtype, sizes)


class _Typeless(Initializer):
    """One of init_ops whose type is that of a call."""

    def get_config(self) -> Any:
        """The arguments that it was made with."""
        return {name: value for name, value in super().get_config().items() if name != "dtype"}


class _Drawn(_Typeless):
    """One of floating-point numbers."""

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:  # type: ignore[override]
        return super().__call__(shape, _floating(dtype))


class RandomUniform(_Typeless, init_ops.RandomUniform):  # type: ignore[misc]
    """Evenly distributed from minval to before maxval."""

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: Optional[int] = None) -> None:
        init_ops.RandomUniform.__init__(self, minval, maxval, seed)

    def __call__(self, shape: Any, dtype: Any = dtypes.float32) -> Tensor:  # type: ignore[override]
        found = dtypes.as_dtype(dtype)
        if not found.is_floating and not found.is_integer:
            raise at_user_line(ValueError("Expected float or integer dtype, got %s." % found))
        return super().__call__(shape, found)


class RandomNormal(_Drawn, init_ops.RandomNormal):  # type: ignore[misc]
    """Normally distributed."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: Optional[int] = None) -> None:
        init_ops.RandomNormal.__init__(self, mean, stddev, seed)


class TruncatedNormal(_Drawn, init_ops.TruncatedNormal):  # type: ignore[misc]
    """Normally distributed, within two standard deviations."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: Optional[int] = None) -> None:
        init_ops.TruncatedNormal.__init__(self, mean, stddev, seed)


class VarianceScaling(_Drawn, init_ops.VarianceScaling):  # type: ignore[misc]
    """Scaled by the number of inputs and outputs."""

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal", seed: Optional[int] = None) -> None:
        init_ops.VarianceScaling.__init__(self, scale, mode, distribution, seed)


class Orthogonal(_Drawn, init_ops.Orthogonal):  # type: ignore[misc]
    """An orthogonal matrix, drawn at random."""

    def __init__(self, gain: float = 1.0, seed: Optional[int] = None) -> None:
        init_ops.Orthogonal.__init__(self, gain, seed)


class Identity(_Drawn, init_ops.Identity):  # type: ignore[misc]
    """The identity matrix."""

    def __init__(self, gain: float = 1.0) -> None:
        init_ops.Identity.__init__(self, gain)


class GlorotUniform(VarianceScaling):
    """Glorot and Bengio's, evenly distributed."""

    def __init__(self, seed: Optional[int] = None) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)

    def get_config(self) -> Any:
        """The seed."""
        return {"seed": self.seed}


class GlorotNormal(VarianceScaling):
    """Glorot and Bengio's, normally distributed."""

    def __init__(self, seed: Optional[int] = None) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)

    def get_config(self) -> Any:
        """The seed."""
        return {"seed": self.seed}


zeros_initializer, ones_initializer, constant_initializer = Zeros, Ones, Constant
random_uniform_initializer, random_normal_initializer, truncated_normal_initializer = RandomUniform, RandomNormal, TruncatedNormal
variance_scaling_initializer, orthogonal_initializer, identity_initializer = VarianceScaling, Orthogonal, Identity
glorot_uniform_initializer, glorot_normal_initializer = GlorotUniform, GlorotNormal


def lecun_normal(seed: Optional[int] = None) -> VarianceScaling:
    """LeCun's, normally distributed."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: Optional[int] = None) -> VarianceScaling:
    """LeCun's, evenly distributed."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def he_normal(seed: Optional[int] = None) -> VarianceScaling:
    """He's, normally distributed."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: Optional[int] = None) -> VarianceScaling:
    """He's, evenly distributed."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)
