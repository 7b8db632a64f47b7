# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras: models of layers, trained on arrays and data sets."""
from millrace import keras_datasets as datasets  # noqa: F401
from millrace.framework import missing as _missing
from millrace.keras import (activations, backend, callbacks, constraints, engine, estimator, initializers, layers, losses, metrics,  # noqa: F401
                            models, optimizers, preprocessing, regularizers, utils)
from millrace.keras.engine import Input  # noqa: F401
from millrace.keras.models import Model, Sequential  # noqa: F401

_missing.fill(globals(), "keras.", {"applications": "tf.contrib.slim.nets", "wrappers": "tf.keras.Model"})
