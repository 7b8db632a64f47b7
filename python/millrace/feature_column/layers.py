# SPDX-License-Identifier: Apache-2.0
"""A linear model of columns as a model of tf.keras."""

from __future__ import annotations

from typing import Any, Dict

from millrace.feature_column.base import CategoricalColumn, DenseColumn, FeatureColumn, checked_columns
from millrace.feature_column.models import same_batch, weighted_sum
from millrace.feature_column.serialization import deserialize_feature_columns, serialize_feature_columns
from millrace.feature_column.state import _StateManagerImpl
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.keras.models import Model
from millrace.layers.base import Layer
from millrace.layers.columns import DenseFeatures, SequenceFeatures, _BaseFeaturesLayer, checked_features, scope_of_variables  # noqa: F401
from millrace.ops import gen_ops, init_ops, nn_ops


class _LinearModelLayer(Layer):
    """Columns times weights, which begin as zeros, and a bias: float32 [examples, units]."""

    def __init__(self, feature_columns: Any, units: int = 1, sparse_combiner: str = "sum", trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._feature_columns = checked_columns(feature_columns, FeatureColumn)
        for column in self._feature_columns:
            if not isinstance(column, (DenseColumn, CategoricalColumn)):
                raise at_user_line(ValueError("Items of feature_columns must be either a DenseColumn or CategoricalColumn. Given: %s" % (column,)))
        self._units, self._sparse_combiner = units, sparse_combiner
        self._state_manager = _StateManagerImpl(self, self.trainable)
        self.bias: Any = None

    def _variable(self, column: Any, name: str, shape: Any) -> Any:
        start = init_ops.zeros_initializer()
        return self._state_manager.create_variable(column, name, shape, dtypes.float32, self.trainable, initializer=start)

    def build(self, input_shape: Any) -> None:
        """Makes the weights, each in the scope of its column's name, and the bias."""
        with scope_of_variables(self.name):
            for column in self._feature_columns:
                with scope_of_variables(column.name):
                    column.create_state(self._state_manager)
                    rows = column.num_buckets if isinstance(column, CategoricalColumn) else column.variable_shape.num_elements()
                    self._variable(column, "weights", (rows, self._units))
            self.bias = self._variable(self, "bias_weights", (self._units,))
        super().build(input_shape)

    def call(self, features: Dict[str, Any]) -> Tensor:  # type: ignore[override]
        """The sums."""
        cache, state = checked_features(features), self._state_manager
        parts = []
        for column in self._feature_columns:
            weights = state.get_variable(column, "weights")
            with name_scope(column.name):
                parts.append(weighted_sum(column, cache, state, lambda rows, weights=weights: weights, self._sparse_combiner))  # type: ignore[misc]
        same_batch(parts, self._feature_columns)
        return nn_ops.bias_add(gen_ops.add_n(parts, name="weighted_sum_no_bias"), self.bias, name="weighted_sum")

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer, with columns as their classes and settings."""
        columns = serialize_feature_columns(self._feature_columns)
        return {**super().get_config(), "feature_columns": columns, "units": self._units, "sparse_combiner": self._sparse_combiner}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave."""
        return cls(**{**config, "feature_columns": deserialize_feature_columns(config["feature_columns"], custom_objects)})


class LinearModel(Model):
    """Columns times weights, which begin as zeros, and a bias: float32 [examples, units]."""

    def __init__(self, feature_columns: Any, units: int = 1, sparse_combiner: str = "sum", trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.layer = _LinearModelLayer(feature_columns, units, sparse_combiner, trainable, name=self.name, **kwargs)

    def call(self, features: Dict[str, Any]) -> Tensor:  # type: ignore[override]
        """The sums."""
        return self.layer(features)

    @property
    def bias(self) -> Any:
        """The bias, after the first call."""
        return self.layer.bias
