# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.experimental: schedules that tf.keras.optimizers.schedules does not list, linear models, columns of sequences."""

import importlib
from typing import Any, Optional

from millrace.framework import not_provided as _not_provided
from millrace.keras import activations
from millrace.layers.columns import SequenceFeatures  # noqa: F401
from millrace.layers.core import Dense
from millrace.layers.recurrent import PeepholeLSTMCell  # noqa: F401
from millrace.keras.models import Model
from millrace.keras.utils.data_utils import terminate_keras_multiprocessing_pools  # noqa: F401
from millrace.keras.schedules import CosineDecay, CosineDecayRestarts, LinearCosineDecay, NoisyLinearCosineDecay  # noqa: F401


class LinearModel(Model):
    """activation(sum of x W + b), of one input or of a list of them."""

    def __init__(
        self,
        units: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        name: Optional[str] = None,
    ) -> None:
        super().__init__(name=name)
        self.units, self.activation, self.use_bias = units, activations.get(activation), use_bias
        self._bias = dict(bias_initializer=bias_initializer, bias_regularizer=bias_regularizer)
        self._kernel = dict(kernel_initializer=kernel_initializer, kernel_regularizer=kernel_regularizer)

    def call(self, inputs: Any) -> Any:  # type: ignore[override]
        """The outputs."""
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if not self.layers:  # one bias for all
            self.layers.extend(Dense(self.units, use_bias=self.use_bias and i == 0, **self._kernel, **self._bias) for i in range(len(given)))
        total = None
        for layer, x in zip(self.layers, given):
            made = layer(x)
            total = made if total is None else total + made
        return self.activation(total)


_missing = _not_provided.getter("keras.experimental")


def __getattr__(name: str) -> Any:
    if name in ("export_saved_model", "load_from_saved_model"):
        return getattr(importlib.import_module("millrace.keras.exporting"), name)
    return _missing(name)
