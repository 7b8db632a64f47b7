# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""What layers and models are."""

from millrace.keras.engine import base, network, saving, topology, training
from millrace.keras.engine.base import InputSpec, Layer
from millrace.keras.engine.inputs import Input, InputLayer
from millrace.keras.engine.network import Network, get_source_inputs
from millrace.keras.engine.training import Model
