# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""What layers and models are."""

from millrace.keras.engine import network, saving, topology, training
from millrace.layers.base import Layer
from millrace.layers.nodes import InputSpec
from millrace.keras.engine.inputs import Input, InputLayer
from millrace.keras.engine.network import Network, get_source_inputs
from millrace.keras.engine.training import Model
from millrace import names as _names


def __getattr__(name):  # type: ignore[no-untyped-def]
    if name.startswith("__"):
        raise AttributeError(name)
    value = globals()[name] = _names.find("keras.engine." + name)
    return value
