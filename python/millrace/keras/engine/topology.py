# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Where models begin, and layers that are made of layers."""

from __future__ import annotations

from typing import Any, List

from millrace.layers.base import Layer, is_keras_tensor
from millrace.layers.nodes import InputSpec, Node, listed, one_or_all, shape_tuple  # noqa: F401
from millrace.keras.engine.network import Network, get_source_inputs
from millrace.keras.engine.saving import (  # noqa: F401
    load_weights_from_hdf5_group,
    load_weights_from_hdf5_group_by_name,
    preprocess_weights_for_loading,
    save_weights_to_hdf5_group,
)
from millrace.keras.engine.inputs import Input, InputLayer

Container = Network
_is_keras_tensor = is_keras_tensor


def _to_list(x: Any) -> List[Any]:
    return listed(x)


def _object_list_uid(values: Any) -> str:
    return ", ".join(str(abs(id(x))) for x in listed(values))


def shape_type_conversion(function: Any) -> Any:
    """Kept for programs that use it: shapes are tuples and TensorShapes alike."""
    return function


__all__ = ["Container", "Input", "InputLayer", "InputSpec", "Layer", "Network", "Node", "get_source_inputs", "preprocess_weights_for_loading"]
