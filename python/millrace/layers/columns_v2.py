# SPDX-License-Identifier: Apache-2.0
"""Feature columns as layers of TensorFlow 2's tf.keras."""

from __future__ import annotations

from typing import Any

from millrace.feature_column.state import _StateManagerImplV2
from millrace.layers import columns


class DenseFeatures(columns.DenseFeatures):
    """tf.keras.layers.DenseFeatures whose variables the layer makes, whatever the variable scope says."""

    def __init__(self, feature_columns: Any, trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(feature_columns, trainable, name, **kwargs)
        self._state_manager = _StateManagerImplV2(self, self.trainable)
