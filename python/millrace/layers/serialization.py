# SPDX-License-Identifier: Apache-2.0
"""Layers and models as settings, and back: whoever defines classes puts them into CLASSES."""

from __future__ import annotations

from typing import Any, Dict

from millrace.keras.utils.generic_utils import deserialize_keras_object

CLASSES: Dict[str, Any] = {}  # by the name that settings say


def serialize(layer: Any) -> Any:
    """A layer as its class and settings."""
    return {"class_name": type(layer).__name__, "config": layer.get_config()}


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The layer, or model, of a class and settings."""
    return deserialize_keras_object(config, CLASSES, custom_objects, "layer")
