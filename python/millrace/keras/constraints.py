# SPDX-License-Identifier: Apache-2.0
"""tf.keras.constraints: what weights go through after each step."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np

from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object
from millrace.ops import array_ops, gen_ops, math_ops


class Constraint:
    """Base of constraints."""

    def __call__(self, w: Any) -> Any:
        return w

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {}


def _norms(w: Any, axis: Any) -> Any:
    return gen_ops.sqrt(math_ops.reduce_sum(gen_ops.square(w), axis, True))


class MaxNorm(Constraint):
    """Norms along an axis of at most a value."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        return w * (K.clip(norms, 0, self.max_value) / (K.epsilon() + norms))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {"max_value": self.max_value, "axis": self.axis}


class NonNeg(Constraint):
    """Nothing negative."""

    def __call__(self, w: Any) -> Any:
        return array_ops.where(gen_ops.greater_equal(w, 0.0), w, array_ops.zeros_like(w))


class UnitNorm(Constraint):
    """Norms along an axis of 1."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        return w / (K.epsilon() + _norms(w, self.axis))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {"axis": self.axis}


class MinMaxNorm(Constraint):
    """Norms along an axis between two values, moved there by a rate."""

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        wanted = self.rate * K.clip(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (wanted / (K.epsilon() + norms))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {"min_value": self.min_value, "max_value": self.max_value, "rate": self.rate, "axis": self.axis}


class RadialConstraint(Constraint):
    """Square kernels [size, size, in, out] of one value for each ring around the middle: those along the diagonal below the middle."""

    def __call__(self, w: Any) -> Any:
        shape = convert_to_tensor(w).get_shape()
        if shape.ndims != 4:
            raise at_user_line(ValueError("The weight tensor must be of rank 4, but is of shape: %s" % shape))
        size = shape[0].value
        half, odd = size // 2, size % 2
        apart = np.abs(np.arange(size) - (size - 1) / 2)
        ring = np.floor(np.maximum(apart[:, None], apart[None, :])).astype(int)
        of_ring = np.array([half - 1] + [half + r - odd for r in range(1, half + 1)])  # the middle, then TensorFlow's choice for each ring
        return gen_ops.gather_nd(w, np.repeat(of_ring[ring][..., None], 2, -1).astype(np.int32))


max_norm, non_neg, unit_norm, min_max_norm, radial_constraint = MaxNorm, NonNeg, UnitNorm, MinMaxNorm, RadialConstraint
maxnorm, nonneg, unitnorm = MaxNorm, NonNeg, UnitNorm


def serialize(constraint: Any) -> Any:
    """A constraint as settings."""
    return serialize_keras_object(constraint)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The constraint of settings."""
    return deserialize_keras_object(config, globals(), custom_objects, "constraint")


def get(identifier: Any) -> Any:
    """A constraint by name or settings, or what is one already."""
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    if callable(identifier):
        return identifier
    raise at_user_line(ValueError("Could not interpret constraint identifier: %s" % (identifier,)))
