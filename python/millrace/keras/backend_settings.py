# SPDX-License-Identifier: Apache-2.0
"""The settings of tf.keras.backend."""

from __future__ import annotations

from typing import Any, Dict

_state: Dict[str, Any] = {"epsilon": 1e-7, "floatx": "float32", "format": "channels_last"}


def epsilon() -> float:
    """A small number."""
    return float(_state["epsilon"])


def set_epsilon(value: float) -> None:
    """Sets it."""
    _state["epsilon"] = value


def floatx() -> str:
    """The type of weights."""
    return str(_state["floatx"])


def set_floatx(value: str) -> None:
    """Sets it."""
    if value not in ("float16", "float32", "float64"):
        raise ValueError("Unknown floatx type: %s" % value)
    _state["floatx"] = str(value)


def image_data_format() -> str:
    """Where the channels are."""
    return str(_state["format"])


def set_image_data_format(data_format: str) -> None:
    """Sets it."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError("Unknown data_format: %s" % data_format)
    _state["format"] = data_format


def is_tpu_strategy(strategy: Any) -> bool:
    """Whether a strategy, or None, is one of TPUs, by the name of its class."""
    return type(strategy).__name__.startswith("TPUStrategy")
