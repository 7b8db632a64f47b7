# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras: models of layers, trained on arrays and data sets."""

from millrace import keras_datasets as datasets
from millrace.framework import not_provided as _not_provided
from millrace.keras import (
    activations,
    backend,
    callbacks,
    constraints,
    engine,
    estimator,
    experimental,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    preprocessing,
    regularizers,
    utils,
    wrappers,
)
from millrace.keras.engine import Input
from millrace.keras.models import Model, Sequential

__getattr__ = _not_provided.getter("keras")
