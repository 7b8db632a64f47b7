# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.keras.layers.recurrent_v2: recurrent layers with the defaults of TensorFlow 2, which are those of cuDNN: gates by the
exact sigmoid, and the reset gate of a GRU on what the state adds to the candidate."""

from __future__ import annotations

from typing import Any

from millrace.layers import recurrent


class GRUCell(recurrent.GRUCell):
    """Gated recurrent units."""

    def __init__(
        self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", *args: Any, reset_after: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(units, activation, recurrent_activation, *args, reset_after=reset_after, **kwargs)


class LSTMCell(recurrent.LSTMCell):
    """Long short-term memory."""

    def __init__(self, units: int, activation: Any = "tanh", recurrent_activation: Any = "sigmoid", *args: Any, **kwargs: Any) -> None:
        super().__init__(units, activation, recurrent_activation, *args, **kwargs)


class GRU(recurrent.GRU):
    """Gated recurrent units along sequences."""

    kind = GRUCell  # type: ignore[assignment]
    could_use_cudnn = False  # nor may layers of a graph in TensorFlow 1.15


class LSTM(recurrent.LSTM):
    """Long short-term memory along sequences."""

    kind = LSTMCell  # type: ignore[assignment]
    could_use_cudnn = False
