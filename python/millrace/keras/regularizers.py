# SPDX-License-Identifier: Apache-2.0
"""tf.keras.regularizers."""

from __future__ import annotations

from typing import Any, Dict

from millrace.framework.errors import at_user_line
from millrace.keras.utils.generic_utils import deserialize_keras_object, serialize_keras_object
from millrace.ops import gen_ops, math_ops


class Regularizer:
    """Base of regularizers."""

    def __call__(self, x: Any) -> Any:
        return 0.0

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {}

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> Any:
        """A regularizer of what get_config gave."""
        return cls(**config)


class L1L2(Regularizer):
    """l1 |w| + l2 w^2, summed."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> Any:
        made: Any = 0.0
        if self.l1:
            made += self.l1 * math_ops.reduce_sum(math_ops.abs(x))
        if self.l2:
            made += self.l2 * math_ops.reduce_sum(gen_ops.square(x))
        return made if self.l1 or self.l2 else math_ops.cast(0.0, x.dtype.base_dtype)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that it was made with."""
        return {"l1": self.l1, "l2": self.l2}


def l1(l: float = 0.01) -> L1L2:
    """l |w|."""
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:
    """l w^2."""
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """l1 |w| + l2 w^2."""
    return L1L2(l1=l1, l2=l2)


def serialize(regularizer: Any) -> Any:
    """A regularizer as settings."""
    return serialize_keras_object(regularizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The regularizer of settings."""
    return deserialize_keras_object(config, globals(), custom_objects, "regularizer")


def get(identifier: Any) -> Any:
    """A regularizer by name or settings, or what is one already."""
    if identifier is None:
        return None
    if isinstance(identifier, str):
        found = deserialize(identifier)
        return found() if isinstance(found, type) or identifier in ("l1", "l2", "l1_l2") else found
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise at_user_line(ValueError("Could not interpret regularizer identifier: %s" % (identifier,)))
