# SPDX-License-Identifier: Apache-2.0
"""tf.keras.initializers."""

from __future__ import annotations

from typing import Any, Optional, Set

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object
from millrace.ops import init_ops
from millrace.ops.init_ops import Initializer as InitializerV2  # noqa: F401
from millrace.ops.init_ops import Constant, GlorotNormal, GlorotUniform, Identity, Initializer, Ones, Orthogonal, VarianceScaling, Zeros  # noqa: F401
from millrace.ops.init_ops_v2 import (  # noqa: F401
    Constant as ConstantV2,
    GlorotNormal as GlorotNormalV2,
    GlorotUniform as GlorotUniformV2,
    Identity as IdentityV2,
    Ones as OnesV2,
    Orthogonal as OrthogonalV2,
    RandomNormal as RandomNormalV2,
    RandomUniform as RandomUniformV2,
    TruncatedNormal as TruncatedNormalV2,
    VarianceScaling as VarianceScalingV2,
    Zeros as ZerosV2,
    he_normal as he_normalV2,
    he_uniform as he_uniformV2,
    lecun_normal as lecun_normalV2,
    lecun_uniform as lecun_uniformV2,
)


class RandomNormal(init_ops.RandomNormal):
    """Normally distributed."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(mean, stddev, seed, dtype)


class TruncatedNormal(init_ops.TruncatedNormal):
    """Normally distributed, within two standard deviations."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(mean, stddev, seed, dtype)


class RandomUniform(init_ops.RandomUniform):
    """Evenly distributed."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(minval, maxval, seed, dtype)


_MAKERS: Set[Any] = set()  # functions that make an initializer, while others are one


def _scaling(name: str, doc: str, scale: float, mode: str, distribution: str) -> Any:
    def make(seed: Optional[int] = None, dtype: Any = dtypes.float32) -> VarianceScaling:
        return VarianceScaling(scale, mode, distribution, seed, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    _MAKERS.add(make)
    return make


he_normal = _scaling("he_normal", "He and others, normally distributed.", 2.0, "fan_in", "truncated_normal")
he_uniform = _scaling("he_uniform", "He and others, evenly distributed.", 2.0, "fan_in", "uniform")
lecun_normal = _scaling("lecun_normal", "LeCun, normally distributed.", 1.0, "fan_in", "truncated_normal")
lecun_uniform = _scaling("lecun_uniform", "LeCun, evenly distributed.", 1.0, "fan_in", "uniform")
glorot_normal, glorot_uniform = GlorotNormal, GlorotUniform
zero = zeros = Zeros
one = ones = Ones
constant, identity, orthogonal = Constant, Identity, Orthogonal
uniform = random_uniform = RandomUniform
normal = random_normal = RandomNormal
truncated_normal = TruncatedNormal


def serialize(initializer: Any) -> Any:
    """An initializer as settings."""
    made = serialize_keras_object(initializer)
    if isinstance(made, dict):
        made["config"] = {k: (v.name if isinstance(v, dtypes.DType) else v) for k, v in made["config"].items()}
    return made


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The initializer of settings."""
    return deserialize_keras_object(config, globals(), custom_objects, "initializer")


def get(identifier: Any) -> Any:
    """An initializer by name, class or settings, or what is one already."""
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        found = deserialize(identifier)
        return found() if isinstance(found, type) or found in _MAKERS else found
    if isinstance(identifier, type):
        return identifier()
    if callable(identifier):
        return identifier
    raise at_user_line(ValueError("Could not interpret initializer identifier: %s" % (identifier,)))
