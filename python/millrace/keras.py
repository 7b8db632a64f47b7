# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras: layers alone."""
from millrace import initializers, layers, losses  # noqa: F401
from millrace.framework import missing as _missing

_missing.fill(globals(), "keras.", {n: "tf.layers and a training loop" for n in ("Sequential", "Model", "Input", "models", "optimizers", "callbacks", "datasets", "utils",
                                                                                  "backend", "applications", "preprocessing")})
