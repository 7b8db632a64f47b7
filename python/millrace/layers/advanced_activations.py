# SPDX-License-Identifier: Apache-2.0
"""Activations with settings or weights."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import activations
from millrace.keras import backend as K
from millrace.layers.settings import InputSpec, SettingsLayer
from millrace.ops import gen_ops, math_ops, nn_ops


class LeakyReLU(SettingsLayer):
    """max(alpha x, x)."""

    settings: Tuple[str, ...] = ("alpha",)
    supports_masking = True

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = float(alpha)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return K.relu(inputs, alpha=self.alpha)


class PReLU(SettingsLayer):
    """x, or alpha x below zero, with an alpha that is learned for each place."""

    settings: Tuple[str, ...] = ("alpha_initializer", "alpha_regularizer", "alpha_constraint", "shared_axes")
    supports_masking = True

    def __init__(
        self, alpha_initializer: Any = "zeros", alpha_regularizer: Any = None, alpha_constraint: Any = None, shared_axes: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._set(alpha_initializer=alpha_initializer, alpha_regularizer=alpha_regularizer, alpha_constraint=alpha_constraint)
        self.shared_axes = None if shared_axes is None else list(shared_axes) if isinstance(shared_axes, (list, tuple)) else [shared_axes]

    def build(self, input_shape: Any) -> None:
        """Makes the slopes."""
        sizes = TensorShape(input_shape).as_list()[1:]
        for axis in self.shared_axes or []:
            sizes[axis - 1] = 1
        self.alpha = self.add_weight("alpha", sizes, None, self.alpha_initializer, self.alpha_regularizer, True, self.alpha_constraint)
        self.input_spec = InputSpec(ndim=len(sizes) + 1, axes={i + 1: n for i, n in enumerate(sizes) if i + 1 not in (self.shared_axes or [])})  # type: ignore[misc]
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return nn_ops.relu(inputs) - self.alpha * nn_ops.relu(-inputs)


class ELU(SettingsLayer):
    """x, or alpha (exp(x) - 1) below zero."""

    settings: Tuple[str, ...] = ("alpha",)
    supports_masking = True

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = float(alpha)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return K.elu(inputs, self.alpha)


class ThresholdedReLU(SettingsLayer):
    """x above a threshold, else 0."""

    settings: Tuple[str, ...] = ("theta",)
    supports_masking = True

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = float(theta)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return inputs * math_ops.cast(gen_ops.greater(inputs, self.theta), inputs.dtype.base_dtype)


class ReLU(SettingsLayer):
    """max(x, 0), with a slope below and a largest value."""

    settings: Tuple[str, ...] = ("max_value", "negative_slope", "threshold")
    supports_masking = True

    def __init__(self, max_value: Any = None, negative_slope: float = 0.0, threshold: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for value, what in ((max_value, "max_value"), (negative_slope, "negative_slope")):
            if value is not None and value < 0.0:
                raise at_user_line(ValueError("%s of Relu layer cannot be negative value: %s" % (what, value)))
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return K.relu(inputs, alpha=self.negative_slope, max_value=self.max_value, threshold=self.threshold)


class Softmax(SettingsLayer):
    """softmax over an axis."""

    settings: Tuple[str, ...] = ("axis",)
    supports_masking = True

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return activations.softmax(inputs, self.axis)
