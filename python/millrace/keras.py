# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras: layers and data sets alone."""
from millrace import initializers  # noqa: F401
from millrace import keras_datasets as datasets  # noqa: F401
from millrace import layers, losses  # noqa: F401
from millrace.framework import missing as _missing

_missing.fill(globals(), "keras.", {n: "tf.layers and a training loop" for n in ("Sequential", "Model", "Input", "models", "optimizers", "callbacks", "utils",
                                                                                  "backend", "applications", "preprocessing")})
