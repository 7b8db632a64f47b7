# SPDX-License-Identifier: Apache-2.0
"""Feature columns as layers of tf.keras: they take a dict of features."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple

from millrace.feature_column.base import DenseColumn, FeatureColumn, SequenceDenseColumn, checked_columns
from millrace.feature_column.features import FeatureTransformationCache
from millrace.feature_column.models import flat, same_batch
from millrace.feature_column.sequence import same_lengths
from millrace.feature_column.serialization import deserialize_feature_columns, serialize_feature_columns
from millrace.feature_column.state import _StateManagerImpl
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.layers.base import Layer
from millrace.ops import array_ops
from millrace.ops.variable_scope import variable_scope


def scope_of_variables(name: str) -> Any:
    """A scope for the names of variables alone."""
    return variable_scope(name, auxiliary_name_scope=False)


def checked_features(features: Any) -> FeatureTransformationCache:
    """What columns ask for features. ValueError unless they are a dict."""
    if not isinstance(features, dict):
        raise at_user_line(ValueError("We expected a dictionary here. Instead we got: %s" % (features,)))
    return FeatureTransformationCache(features)


class _BaseFeaturesLayer(Layer):
    """The variables of columns are the layer's."""

    def __init__(self, feature_columns: Any, expected_column_type: type, trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._feature_columns = checked_columns(feature_columns, FeatureColumn)
        self._state_manager = _StateManagerImpl(self, self.trainable)
        for column in self._feature_columns:
            if not isinstance(column, expected_column_type):
                raise at_user_line(
                    ValueError(
                        "Items of feature_columns must be a %s. You can wrap a categorical column with an embedding_column or indicator_column. Given: %s"
                        % (expected_column_type.__name__, column)
                    )
                )

    def build(self, input_shape: Any) -> None:
        """Makes the variables of the columns, each in the scope of its name."""
        with scope_of_variables(self.name):
            for column in self._feature_columns:
                with scope_of_variables(column.name):
                    column.create_state(self._state_manager)
        super().build(input_shape)

    def _target_shape(self, input_shape: Any, total_elements: int) -> Tuple[Any, ...]:
        raise NotImplementedError("%s._target_shape" % type(self).__name__)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs for one of inputs."""
        shape = next(iter(input_shape.values())) if isinstance(input_shape, dict) else input_shape
        return self._target_shape(shape, sum(column.variable_shape.num_elements() for column in self._feature_columns))

    def _each(self, ask: Callable[[Any], Any]) -> List[Any]:
        """What `ask` makes of each column."""
        made = []
        for column in self._feature_columns:
            with name_scope(column.name):
                made.append(ask(column))
        return made

    def _side_by_side(self, parts: List[Tensor]) -> Tensor:
        same_batch(parts, self._feature_columns)
        return array_ops.concat(parts, -1)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer, with columns as their classes and settings."""
        return {**super().get_config(), "feature_columns": serialize_feature_columns(self._feature_columns)}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave."""
        made: Any = cls
        return made(**{**config, "feature_columns": deserialize_feature_columns(config["feature_columns"], custom_objects)})


class DenseFeatures(_BaseFeaturesLayer):
    """Dense columns beside each other, in the order of their names: float32 [examples, numbers of all columns]."""

    def __init__(self, feature_columns: Any, trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(feature_columns, DenseColumn, trainable, name, **kwargs)

    def _target_shape(self, input_shape: Any, total_elements: int) -> Tuple[Any, ...]:
        return (input_shape[0], total_elements)

    def call(self, features: Dict[str, Any], cols_to_output_tensors: Any = None) -> Tensor:  # type: ignore[override]
        """The numbers; cols_to_output_tensors becomes those of each column."""
        cache = checked_features(features)
        parts = self._each(lambda column: flat(column.get_dense_tensor(cache, self._state_manager), column.variable_shape))
        if cols_to_output_tensors is not None:
            cols_to_output_tensors.update(zip(self._feature_columns, parts))
        return self._side_by_side(parts)


class SequenceFeatures(_BaseFeaturesLayer):
    """Columns of sequences beside each other: (float32 [examples, steps, numbers of all columns], int64 lengths)."""

    def __init__(self, feature_columns: Any, trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(feature_columns, SequenceDenseColumn, trainable, name, **kwargs)

    def _target_shape(self, input_shape: Any, total_elements: int) -> Tuple[Any, ...]:
        return (input_shape[0], input_shape[1], total_elements)

    def call(self, features: Dict[str, Any]) -> Tuple[Tensor, Tensor]:  # type: ignore[override]
        """The numbers and the lengths, which must be the same for all columns."""
        cache = checked_features(features)

        def steps(column: Any) -> Tuple[Tensor, Tensor]:
            value, lengths = column.get_sequence_dense_tensor(cache, self._state_manager)
            return flat(value, column.variable_shape, steps=True), lengths

        parts, lengths = (list(made) for made in zip(*self._each(steps)))
        same_batch(lengths, self._feature_columns)
        return self._side_by_side(parts), same_lengths(lengths)
