# SPDX-License-Identifier: Apache-2.0
"""Initializers: called with a shape they give the first value of a variable."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph
from millrace.framework.random_seed import op_seeds
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, random_ops


class Initializer:
    """Base of initializers."""

    dtype: Any = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        raise NotImplementedError

    def get_config(self) -> Any:
        """The arguments that it was made with."""
        return {k: v.name if isinstance(v, dtypes.DType) else v for k, v in vars(self).items() if not k.startswith("_")}

    @classmethod
    def from_config(cls, config: Any) -> "Initializer":
        """An initializer of its get_config()."""
        return cls(**config)


class _Meta(type):
    """Lets zeros_initializer and ones_initializer be passed uncalled: called with a shape they give the tensor."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        looks_like_shape = args and not isinstance(args[0], (dtypes.DType, str, type)) and args[0] is not None
        if looks_like_shape or "shape" in kwargs:
            kwargs.pop("partition_info", None)
            return type.__call__(cls)(*args, **kwargs)
        return type.__call__(cls, *args, **kwargs)


class Zeros(Initializer, metaclass=_Meta):
    """Makes zeros of a shape."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return array_ops.zeros(shape, self.dtype if dtype is None else dtype)


class Ones(Initializer, metaclass=_Meta):
    """Makes ones of a shape."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return array_ops.ones(shape, self.dtype if dtype is None else dtype)


class Constant(Initializer):
    """One value everywhere, or the values given: a number, a string, a list or an array. TypeError for others, as tensors."""

    def __init__(self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False) -> None:
        if not np.isscalar(value) and not isinstance(value, (list, tuple, np.ndarray)):
            wanted = "Python scalar, list or tuple of values, or numpy.ndarray"
            raise at_user_line(TypeError("Invalid type for initial value: %s (expected %s)." % (type(value), wanted)))
        self.value, self.dtype, self._verify_shape = value, dtypes.as_dtype(dtype), verify_shape

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: Any = None) -> Tensor:
        return constant(self.value, self.dtype if dtype is None else dtype, shape, verify_shape=bool(verify_shape or self._verify_shape))


class RandomUniform(Initializer):
    """Evenly distributed from minval to before maxval."""

    def __init__(self, minval: Any = 0, maxval: Any = None, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> None:
        self.minval, self.maxval, self.seed, self.dtype = minval, maxval, seed, dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return random_ops.random_uniform(shape, self.minval, self.maxval, self.dtype if dtype is None else dtype, self.seed)


class RandomNormal(Initializer):
    """Normally distributed."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> None:
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return random_ops.random_normal(shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, self.seed)


class TruncatedNormal(RandomNormal):
    """Normally distributed, within two standard deviations."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return random_ops.truncated_normal(shape, self.mean, self.stddev, self.dtype if dtype is None else dtype, self.seed)


def _floating(dtype: Any) -> dtypes.DType:
    """A type of floating-point numbers; ValueError for others."""
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise at_user_line(ValueError("Expected floating point type, got %s." % found))
    return found


class UniformUnitScaling(Initializer):
    """Evenly distributed, scaled so that the size of what flows through stays the same."""

    def __init__(self, factor: float = 1.0, seed: Optional[int] = None, dtype: Any = dtypes.float32, full_shape: Any = None) -> None:
        self.factor, self.seed, self.dtype, self.full_shape = factor, seed, _floating(dtype), full_shape

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        size = 1.0
        whole = self.full_shape if self.full_shape is not None else partition_info.full_shape if partition_info is not None else shape
        for dim in _dims(whole)[:-1]:
            size *= float(dim)
        limit = math.sqrt(3 / max(size, 1.0)) * self.factor
        return random_ops.random_uniform(shape, -limit, limit, self.dtype if dtype is None else dtype, self.seed)


def _dims(shape: Any) -> List[int]:
    return [int(d) for d in TensorShape(shape).as_list()]  # type: ignore[arg-type]


class VarianceScaling(Initializer):
    """Scaled by the number of inputs and outputs, as Glorot and Bengio, and He et al., proposed."""

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal", seed: Optional[int] = None, dtype: Any = dtypes.float32
    ) -> None:
        if scale <= 0.0:
            raise at_user_line(ValueError("`scale` must be positive float."))
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise at_user_line(ValueError("Invalid `mode` argument: %s" % mode))
        distribution = {"normal": "truncated_normal"}.get(distribution.lower(), distribution.lower())
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise at_user_line(ValueError("Invalid `distribution` argument: %s" % distribution))
        self.scale, self.mode, self.distribution, self.seed, self.dtype = scale, mode, distribution, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        dtype = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        seed1, seed2 = op_seeds(self.seed, made_first=3)  # the shape, and two numbers of the distribution
        if self.distribution == "untruncated_normal" or partition_info is not None:
            fan_in, fan_out = _fans(_dims(shape if partition_info is None else partition_info.full_shape))
            n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
            variance = self.scale / max(1.0, n)
            if self.distribution == "uniform":
                limit = math.sqrt(3.0 * variance)
                return random_ops.random_uniform(shape, -limit, limit, dtype, self.seed)
            if self.distribution == "truncated_normal":
                return random_ops.truncated_normal(shape, 0.0, math.sqrt(variance) / 0.87962566103423978, dtype, self.seed)
            return random_ops.random_normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        here = get_default_graph().get_name_scope()
        return gen_ops.variance_scaling(
            _dims(shape),
            dtype=dtype,
            scale=self.scale,
            mode=self.mode,
            distribution=self.distribution,
            seed=seed1,
            seed2=seed2,
            name=here + "/" if here else None,
        )


def _compute_fans(shape: Any) -> Any:
    """How many numbers flow into and out of each place of a kernel."""
    return _fans(_dims(shape))


def _fans(shape: List[int]) -> Any:
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = float(np.prod(shape[:-2])) if len(shape) > 2 else 1.0
    return shape[-2] * field, shape[-1] * field


class _Glorot(VarianceScaling):
    _distribution = ""

    def __init__(self, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", self._distribution, seed, dtype)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such an initializer."""
        return {"seed": self.seed, "dtype": self.dtype.name}


class GlorotUniform(_Glorot):
    """Glorot and Bengio's, evenly distributed."""

    _distribution = "uniform"


class GlorotNormal(_Glorot):
    """Glorot and Bengio's, normally distributed."""

    _distribution = "truncated_normal"


class Orthogonal(Initializer):
    """An orthogonal matrix, drawn at random: q of the q and r of a matrix of normal numbers, with the signs of r's diagonal."""

    def __init__(self, gain: float = 1.0, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> None:
        self.gain, self.seed, self.dtype = gain, seed, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        dtype = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        sizes = _dims(shape)
        if len(sizes) < 2:
            raise at_user_line(ValueError("The tensor to initialize must be at least two-dimensional"))
        rows, columns = int(np.prod(sizes[:-1])), sizes[-1]
        if rows == 0 or columns == 0:
            return array_ops.zeros(sizes, dtype)
        drawn = random_ops.random_normal([max(rows, columns), min(rows, columns)], dtype=dtype, seed=self.seed)
        q, r = gen_ops.qr(drawn, full_matrices=False)
        q = gen_ops.mul(q, gen_ops.sign(gen_ops.matrix_diag_part(r)))
        if rows < columns:
            q = gen_ops.transpose(q, [1, 0])
        return gen_ops.mul(convert_to_tensor(self.gain, dtype), gen_ops.reshape(q, sizes))


class Identity(Initializer):
    """The identity matrix; of a part of a variable, the part of it."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain, self.dtype = gain, _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        whole = _dims(shape if partition_info is None else partition_info.full_shape)
        if len(whole) != 2:
            raise at_user_line(ValueError("Identity matrix initializer can only be used for 2D matrices."))
        dtype = self.dtype if dtype is None else dtypes.as_dtype(dtype)
        matrix = self.gain * np.eye(whole[0], whole[1])
        if partition_info is not None:
            rows, columns = (slice(o, o + n) for o, n in zip(partition_info.var_offset, _dims(shape)))
            matrix = matrix[rows, columns]
        return constant(matrix, dtype)


zeros_initializer, ones_initializer, constant_initializer = Zeros, Ones, Constant
random_uniform_initializer, random_normal_initializer, truncated_normal_initializer = RandomUniform, RandomNormal, TruncatedNormal
uniform_unit_scaling_initializer, variance_scaling_initializer = UniformUnitScaling, VarianceScaling
orthogonal_initializer, identity_initializer = Orthogonal, Identity
glorot_uniform_initializer, glorot_normal_initializer = GlorotUniform, GlorotNormal


def get(identifier: Any) -> Any:
    """The initializer of a name, or what is one already."""
    if identifier is None or callable(identifier):
        return identifier
    if isinstance(identifier, str):
        names: Any = {
            "zeros": Zeros,
            "ones": Ones,
            "constant": Constant,
            "random_uniform": RandomUniform,
            "random_normal": RandomNormal,
            "truncated_normal": TruncatedNormal,
            "orthogonal": Orthogonal,
            "glorot_uniform": glorot_uniform_initializer,
            "glorot_normal": glorot_normal_initializer,
            "he_normal": lambda: VarianceScaling(2.0),
            "he_uniform": lambda: VarianceScaling(2.0, "fan_in", "uniform"),
            "lecun_normal": lambda: VarianceScaling(),
            "lecun_uniform": lambda: VarianceScaling(1.0, "fan_in", "uniform"),
        }
        if identifier in names:
            return names[identifier]()
    raise at_user_line(ValueError("Could not interpret initializer identifier: %s" % (identifier,)))
