# SPDX-License-Identifier: Apache-2.0
"""What a column is, in both styles that programs write their own in.

FeatureColumn and what derives from it is the style of today: `transform_feature(cache, state_manager)` makes a column's values of those of a
FeatureTransformationCache (features.py), and variables are those of a StateManager (state.py), which `create_state` makes. In the style before,
_FeatureColumn and what derives from it, `_transform_feature(inputs)` makes them of those of a _LazyBuilder, and variables come from tf.get_variable.
The columns of this package are of both (styles.py)."""

from __future__ import annotations

import collections.abc
import numbers
from typing import Any, Dict, List, NamedTuple, Optional

from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line


class IdsAndWeights(NamedTuple):
    """Classes of each example, and how much each counts: two SparseTensors of the same places, or None where all count alike."""

    id_tensor: SparseTensor
    weight_tensor: Optional[SparseTensor]


class NumbersAndLengths(NamedTuple):
    """Numbers of each example's steps, and how many steps each has."""

    dense_tensor: Any
    sequence_length: Any


def _missing(column: Any, what: str) -> NotImplementedError:
    return NotImplementedError("%s.%s" % (type(column).__name__, what))


class _Named:
    """A column of a table, which is known by its name."""

    @property
    def name(self) -> str:
        """What its variables are called after; no two columns of a model have the same."""
        raise _missing(self, "name")

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other)

    def __gt__(self, other: Any) -> bool:
        return str(self) > str(other)


# ---- today's style ----


class FeatureColumn(_Named):
    """A column of a table. Programs may write their own."""

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """Its values, made of those of the cache."""
        raise _missing(self, "transform_feature")

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """How tf.parse_example finds its features."""
        raise _missing(self, "parse_example_spec")

    def create_state(self, state_manager: Any) -> None:
        """Makes its variables; most columns have none."""

    @property
    def parents(self) -> List[Any]:
        """The columns and names of features that it is made of."""
        raise _missing(self, "parents")

    @property
    def _is_v2_column(self) -> bool:
        """Whether it and all that it is made of are of this style."""
        return True

    def _get_config(self) -> Dict[str, Any]:
        """What makes such a column, as JSON takes it."""
        raise _missing(self, "_get_config")

    @classmethod
    def _from_config(cls, config: Dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        """The column of what _get_config gave."""
        raise NotImplementedError("%s._from_config" % cls.__name__)


class DenseColumn(FeatureColumn):
    """A column that is numbers."""

    @property
    def variable_shape(self) -> Any:
        """The shape of an example's numbers."""
        raise _missing(self, "variable_shape")

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The numbers of all examples."""
        raise _missing(self, "get_dense_tensor")


class CategoricalColumn(FeatureColumn):
    """A column of numbers of classes."""

    IdWeightPair = IdsAndWeights

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        raise _missing(self, "num_buckets")

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """The classes of all examples."""
        raise _missing(self, "get_sparse_tensors")


class SequenceDenseColumn(FeatureColumn):
    """A column that is numbers for each step of a sequence."""

    TensorSequenceLengthPair = NumbersAndLengths

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> NumbersAndLengths:
        """The numbers of all examples' steps."""
        raise _missing(self, "get_sequence_dense_tensor")


# ---- the style before ----


class _FeatureColumn(_Named):
    """A column of a table. Programs may write their own."""

    @property
    def _var_scope_name(self) -> str:
        """The scope of its variables."""
        return self.name

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        """How tf.parse_example finds its features."""
        raise _missing(self, "_parse_example_spec")

    def _transform_feature(self, inputs: Any) -> Any:
        """Its values, made of those of `inputs`."""
        raise _missing(self, "_transform_feature")


class _DenseColumn(_FeatureColumn):
    """A column that is numbers."""

    @property
    def _variable_shape(self) -> Any:
        """The shape of an example's numbers."""
        raise _missing(self, "_variable_shape")

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> Any:
        """The numbers of all examples."""
        raise _missing(self, "_get_dense_tensor")


class _CategoricalColumn(_FeatureColumn):
    """A column of numbers of classes."""

    IdWeightPair = IdsAndWeights

    @property
    def _num_buckets(self) -> int:
        """How many classes there are."""
        raise _missing(self, "_num_buckets")

    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> IdsAndWeights:
        """The classes of all examples: `inputs` has them, unless a column says otherwise."""
        del weight_collections, trainable  # a column of classes has no weights
        return IdsAndWeights(inputs.get(self), None)


class _SequenceDenseColumn(_FeatureColumn):
    """A column that is numbers for each step of a sequence."""

    TensorSequenceLengthPair = NumbersAndLengths

    def _get_sequence_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> NumbersAndLengths:
        """The numbers of all examples' steps."""
        raise _missing(self, "_get_sequence_dense_tensor")


# ---- columns of either style ----


def buckets_of(column: Any) -> int:
    """How many classes a column has."""
    return column.num_buckets if isinstance(column, CategoricalColumn) else column._num_buckets


def spec_of(column: Any) -> Dict[str, Any]:
    """How tf.parse_example finds a column's features."""
    return column.parse_example_spec if isinstance(column, FeatureColumn) else column._parse_example_spec


def is_feature_column_v2(feature_columns: Any) -> bool:
    """Whether all are of today's style, and made of such."""
    return all(isinstance(column, FeatureColumn) and column._is_v2_column for column in feature_columns)


def is_count(value: Any) -> bool:
    """Whether it is an integer, and no truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def checked_columns(columns: Any, kind: type = _FeatureColumn) -> List[Any]:
    """The columns in the order of their names. ValueError where there is none, something that is no column of the kind, or two of one name."""
    if isinstance(columns, kind):
        columns = [columns]
    if isinstance(columns, dict):
        raise at_user_line(ValueError("Expected feature_columns to be iterable, found dict."))
    listed = list(columns) if isinstance(columns, collections.abc.Iterable) else [columns]
    for column in listed:
        if not isinstance(column, kind):
            raise at_user_line(ValueError("Items of feature_columns must be a %s. Given (type %s): %s." % (kind.__name__, type(column), column)))
    if not listed:
        raise at_user_line(ValueError("feature_columns must not be empty."))
    by_name: Dict[str, Any] = {}
    for column in listed:
        if column.name in by_name:
            raise at_user_line(
                ValueError(
                    "Duplicate feature column name found for columns: %s and %s. Both are of one feature: leave one of them out, "
                    "or give the feature a second name in the features." % (column, by_name[column.name])
                )
            )
        by_name[column.name] = column
    return sorted(listed, key=lambda column: column.name)


def merged_specs(columns: Any, kind: type, spec: str) -> Dict[str, Any]:
    """What tf.parse_example needs for columns of a kind, which say so by an attribute."""
    made: Dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, kind):
            raise at_user_line(ValueError("All feature_columns must be %s instances. Given: %s" % (kind.__name__, column)))
        for key, value in getattr(column, spec).items():
            if made.setdefault(key, value) != value:
                raise at_user_line(ValueError("feature_columns contain different parse_spec for key %s. Given %s and %s" % (key, value, made[key])))
    return made


def make_parse_example_spec(feature_columns: Any) -> Dict[str, Any]:
    """What tf.parse_example needs for some columns."""
    return merged_specs(feature_columns, _FeatureColumn, "_parse_example_spec")


def make_parse_example_spec_v2(feature_columns: Any) -> Dict[str, Any]:
    """What tf.parse_example needs for some columns of today's style."""
    return merged_specs(feature_columns, FeatureColumn, "parse_example_spec")
