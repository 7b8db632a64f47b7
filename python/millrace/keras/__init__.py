# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras: models of layers, trained on arrays."""
import types as _types
from typing import Any as _Any

from millrace import initializers  # noqa: F401
from millrace import keras_datasets as datasets  # noqa: F401
from millrace.framework import missing as _missing
from millrace.keras import backend, callbacks, engine, layers, models, objectives, optimizers, utils  # noqa: F401
from millrace.keras.engine import Input  # noqa: F401
from millrace.keras.models import Model, Sequential  # noqa: F401


def _module(name: str, names: _Any) -> _Any:
    made = _types.ModuleType("millrace.keras." + name)
    made.__dict__.update(names)
    return made


losses = metrics = objectives
activations = _module("activations", {**engine._ACTIVATIONS, "get": engine.activation})
regularizers = _module("regularizers", {"l1": lambda l=0.01: engine.Regularizer(l), "l2": lambda l=0.01: engine.Regularizer(0.0, l),
                                        "l1_l2": lambda l1=0.01, l2=0.01: engine.Regularizer(l1, l2), "Regularizer": engine.Regularizer})
preprocessing = _module("preprocessing", {"sequence": _module("sequence", {"pad_sequences": utils.pad_sequences})})
_missing.fill(preprocessing.__dict__, "keras.preprocessing.", {"image": "NumPy", "text": "tf.contrib.learn.preprocessing"})
_missing.fill(globals(), "keras.", {"applications": "tf.contrib.slim.nets", "constraints": "a function of the variable", "wrappers": "tf.keras.Model",
                                    "estimator": "tf.estimator"})
