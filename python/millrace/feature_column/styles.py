# SPDX-License-Identifier: Apache-2.0
"""What the columns of this package share: they are written in today's style (base.py), and are columns of the style before by what stands here.
A column is a named tuple of its settings; two are the same where class and settings are."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.feature_column import base, serialization
from millrace.feature_column.base import IdsAndWeights, NumbersAndLengths, spec_of
from millrace.feature_column.state import VariablesInScope
from millrace.framework.errors import at_user_line


class Column(base.FeatureColumn, base._FeatureColumn):
    """A column of both styles, made of one feature or of one column: `_source` is the field that says which."""

    _source = "key"
    _fields: Tuple[str, ...]

    @property
    def name(self) -> str:
        """The feature's name."""
        return getattr(self, self._source)

    @property
    def parents(self) -> List[Any]:
        """What it is made of."""
        return [getattr(self, self._source)]

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """How tf.parse_example finds the features that it is made of."""
        return dict(spec_of(getattr(self, self._source)))

    @property
    def _is_v2_column(self) -> bool:
        return base.is_feature_column_v2([parent for parent in self.parents if not isinstance(parent, str)])

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        return self.parse_example_spec

    def _transform_feature(self, inputs: Any) -> Any:
        return self.transform_feature(inputs, None)

    def _get_config(self) -> Dict[str, Any]:
        return serialization.config_of({field: getattr(self, field) for field in self._fields})

    @classmethod
    def _from_config(cls, config: Dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        return cls(**serialization.fields_of(config, cls._fields, custom_objects, columns_by_name))

    def _settings(self) -> Tuple[Any, ...]:
        return (type(self), *(getattr(self, field) for field in self._fields))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Column) and self._settings() == other._settings()

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._settings())


class Dense(Column, base.DenseColumn, base._DenseColumn):
    """A dense column of both styles."""

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The numbers of all examples."""
        return transformation_cache.get(self, state_manager)

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> Any:
        return self.get_dense_tensor(inputs, VariablesInScope(weight_collections, trainable))


class Categorical(Column, base.CategoricalColumn, base._CategoricalColumn):
    """A column of classes of both styles."""

    @property
    def _num_buckets(self) -> int:
        return self.num_buckets

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """The classes of all examples, which all count alike."""
        return IdsAndWeights(transformation_cache.get(self, state_manager), None)

    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> IdsAndWeights:
        return self.get_sparse_tensors(inputs, VariablesInScope(weight_collections, trainable))


class SequenceDense(Column, base.SequenceDenseColumn, base._SequenceDenseColumn):
    """A column of numbers for each step, of both styles."""

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape  # type: ignore[attr-defined]

    def _get_sequence_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> NumbersAndLengths:
        return self.get_sequence_dense_tensor(inputs, VariablesInScope(weight_collections, trainable))


def checked_key(key: Any) -> str:
    """ValueError unless it is the name of a feature."""
    if not isinstance(key, str):
        raise at_user_line(ValueError("key must be a string. Got: type %s. Given key: %s." % (type(key), key)))
    return key


class OfSteps:
    """Columns of classes for each step of a sequence: what is made of them has steps too."""


def no_sequence(column: Any, maker: str, cache: Any) -> None:
    """ValueError where a column's classes are those of steps."""
    classes = column.categorical_column
    if isinstance(classes, OfSteps):
        raise at_user_line(
            ValueError(
                "In %s: %s. categorical_column must not be of type %sSequenceCategoricalColumn. Suggested fix A: for DenseFeatures or input_layer, use "
                "categorical_column_with_*, which has no steps. Suggested fix B: for sequences, use SequenceFeatures. Given (type %s): %s"
                % (maker, column.name, cache.mark, type(classes), classes)
            )
        )


def only_sequence(column: Any, maker: str, cache: Any) -> None:
    """ValueError unless a column's classes are those of steps."""
    classes = column.categorical_column
    if not isinstance(classes, OfSteps):
        raise at_user_line(
            ValueError(
                "In %s: %s. categorical_column must be of type %sSequenceCategoricalColumn to use %s. Suggested fix: Use one of "
                "sequence_categorical_column_with_*. Given (type %s): %s"
                % (maker, column.name, cache.mark, "sequence_input_layer" if cache.mark else "SequenceFeatures", type(classes), classes)
            )
        )
