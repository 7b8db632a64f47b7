# SPDX-License-Identifier: Apache-2.0
"""The switches between the behaviours of TensorFlow 1 and 2: here it is always that of 1, with graphs and sessions."""

from __future__ import annotations

from typing import Any

from millrace.framework.errors import at_user_line


def _stays(name: str, text: str) -> Any:
    def switch() -> None:
        pass

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = text
    return switch


disable_v2_behavior = _stays("disable_v2_behavior", "Does nothing: the behaviour is that of TensorFlow 1.")
disable_eager_execution = _stays("disable_eager_execution", "Does nothing: operations go into a graph.")
disable_v2_tensorshape = _stays("disable_v2_tensorshape", "Does nothing: the dimensions of a shape are Dimension objects.")
disable_tensor_equality = _stays("disable_tensor_equality", "Does nothing: tensors are compared by identity.")


def _refused(name: str) -> Any:
    def switch(*args: Any, **kwargs: Any) -> None:
        raise at_user_line(NotImplementedError("tf.%s: Millrace has graphs and sessions, not TensorFlow 2's behaviour" % name))

    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = "Says that there is no such behaviour."
    return switch


enable_eager_execution = _refused("enable_eager_execution")
enable_v2_behavior = _refused("enable_v2_behavior")
enable = _refused("compat.v2.enable")  # tensorflow.python.tf2.enable
disable = _stays("disable", "Does nothing: the behaviour is that of TensorFlow 1.")
enable_tensor_equality = _refused("enable_tensor_equality")
enable_v2_tensorshape = _refused("enable_v2_tensorshape")


# tensorflow.python.training.experimental.mixed_precision_global_state
mixed_precision_graph_rewrite_is_enabled = False  # whether enable_mixed_precision_graph_rewrite was called last
using_default_mixed_precision_policy = True  # whether no policy of layers is set


def enabled() -> bool:  # tensorflow.python.tf2.enabled
    """False."""
    return False


def executing_eagerly_outside_functions() -> bool:
    """False."""
    return False


def get_logger() -> Any:
    """The logger that tf.logging writes to."""
    import logging

    return logging.getLogger("tensorflow")


def executing_eagerly() -> bool:
    """False."""
    return False


__all__ = [
    "enable_tensor_equality",
    "enable_v2_tensorshape",
    "executing_eagerly_outside_functions",
    "get_logger",
    "disable_eager_execution",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
    "enable_eager_execution",
    "enable_v2_behavior",
    "executing_eagerly",
]
