# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.preprocessing."""

from millrace.keras.preprocessing import image, sequence, text
