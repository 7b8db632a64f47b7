# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.keras: where tf.keras was in 1.1 to 1.3."""

from millrace.keras import (  # noqa: F401
    Input,
    Model,
    Sequential,
    activations,
    backend,
    callbacks,
    datasets,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    preprocessing,
    regularizers,
    utils,
)
