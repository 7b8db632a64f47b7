# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.saved_model of Keras models: the functions of tf.keras.experimental under their first names."""

from millrace.keras.exporting import export_saved_model as save_keras_model  # noqa: F401
from millrace.keras.exporting import load_from_saved_model as load_keras_model  # noqa: F401
