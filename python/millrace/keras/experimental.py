# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.experimental: schedules that tf.keras.optimizers.schedules does not list."""
from millrace.keras.schedules import CosineDecay, CosineDecayRestarts, LinearCosineDecay, NoisyLinearCosineDecay  # noqa: F401
