# SPDX-License-Identifier: Apache-2.0
"""What boosted trees make of feature columns: a vector of buckets for each number of a column, in the order of the columns' names."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

from millrace.feature_column import _transform_features, _transform_features_v2
from millrace.feature_column.base import CategoricalColumn, DenseColumn, _CategoricalColumn, _DenseColumn, buckets_of, is_feature_column_v2
from millrace.feature_column.dense import BucketizedColumn, IndicatorColumn
from millrace.feature_column.state import _StateManagerImpl
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops

# A stream of quantiles gives some more boundaries than it is asked for. TensorFlow counts what is above the last bucket to the next node.
_SPARE_BUCKETS = 8


def _width(column: Any) -> int:
    """How many numbers a dense column has."""
    shape = (column.variable_shape if is_feature_column_v2([column]) else column._variable_shape).as_list()
    if len(shape) > 1:
        raise at_user_line(ValueError("For now, we only support Dense column with rank of 1, but column `%s` got: %s" % (column.name, shape)))
    return int(shape[0]) if shape else 1


def _kind_error(column: Any) -> ValueError:
    if isinstance(column, (CategoricalColumn, _CategoricalColumn)):
        return at_user_line(ValueError("CategoricalColumn must be wrapped by IndicatorColumn, got: %s" % (column,)))
    return at_user_line(ValueError("Got unexpected feature column type: %s. Use a numeric, bucketized or indicator column." % type(column).__name__))


def sorted_columns(columns: Iterable[Any]) -> List[Any]:
    """The columns in the order in which their features are numbered."""
    return sorted(columns, key=lambda column: column.name)


def float_columns(columns: Iterable[Any]) -> List[Any]:
    """The columns whose numbers are put into buckets by their quantiles."""
    return [c for c in columns if _is_numeric(c) and c.dtype.is_floating]


def _is_numeric(column: Any) -> bool:
    if isinstance(column, (BucketizedColumn, IndicatorColumn)):
        return False
    if not isinstance(column, (DenseColumn, _DenseColumn)) or not hasattr(column, "dtype"):
        raise _kind_error(column)
    return True


def names_of_features(columns: Iterable[Any]) -> List[str]:
    """The name of the column that each feature is of."""
    names: List[str] = []
    for column in columns:
        if isinstance(column, IndicatorColumn):
            names += [column.categorical_column.name] * buckets_of(column.categorical_column)
        elif isinstance(column, BucketizedColumn):
            names.append(column.name)
        else:
            names += [column.name] * (_width(column) if _is_numeric(column) else 0)
    return names


class FeatureGroup(NamedTuple):
    """Features whose sums lie in one tensor."""

    num_buckets: int
    features: List[int]


def group_by_buckets(columns: List[Any], num_quantiles: int) -> List[FeatureGroup]:
    """The features by the kind of their column: classes, quantiles, boundaries."""
    groups: Dict[str, Tuple[int, List[int]]] = {}
    boundaries, last, next_feature = 2, [], 0
    for column in columns:
        count = len(names_of_features([column]))
        features = list(range(next_feature, next_feature + count))
        next_feature += count
        if isinstance(column, BucketizedColumn):
            boundaries = max(boundaries, len(column.boundaries) + 1)
            last += features
        elif isinstance(column, IndicatorColumn):
            groups.setdefault("indicator", (2, []))[1].extend(features)
        else:
            groups.setdefault("quantiles", (num_quantiles + _SPARE_BUCKETS, []))[1].extend(features)
    if last:
        groups["boundaries"] = (boundaries, last)
    return [FeatureGroup(*group) for group in groups.values()]


def _transformed(features: Dict[str, Any], columns: List[Any]) -> Dict[Any, Any]:
    made: Dict[Any, Any] = {}
    today = [c for c in columns if is_feature_column_v2([c])]
    before = [c for c in columns if not is_feature_column_v2([c])]
    if today:
        made.update(_transform_features_v2(features, today, _StateManagerImpl(None, False)))  # type: ignore[arg-type]
    if before:
        made.update(_transform_features(features, before))
    return made


def numbers_of(features: Dict[str, Any], columns: List[Any]) -> List[Any]:
    """A vector for each number of numeric columns, as it is."""
    made = _transformed(features, columns)
    return [vector for column in columns if _width(column) for vector in array_ops.unstack(made[column], axis=1)]


def buckets_of_features(features: Dict[str, Any], columns: List[Any], boundaries: List[Any]) -> List[Any]:
    """A vector of buckets for each feature. `boundaries` are those of the features of float columns."""
    made, buckets, used = _transformed(features, columns), [], 0
    for column in columns:
        value = made[column]
        if isinstance(column, BucketizedColumn):
            if value.get_shape().ndims != 2:
                given = features[column.source_column.name].get_shape()
                raise at_user_line(
                    ValueError("For now, only supports features equivalent to rank 1 but column `%s` got: %s" % (column.source_column.name, given))
                )
            buckets.append(array_ops.squeeze(value, axis=1))
        elif isinstance(column, IndicatorColumn):
            if (value.get_shape().ndims or 0) > 2:
                name = column.categorical_column.name
                raise at_user_line(ValueError("Rank of indicator column must be no more than 2, but column `%s` got: %s" % (name, value.get_shape())))
            buckets += array_ops.unstack(math_ops.cast(value, dtypes.int32), axis=1)
        else:
            width, numbers = _width(column), array_ops.unstack(value, axis=1)
            if column.dtype.is_floating:
                numbers = list(gen_ops.boosted_trees_bucketize(numbers, boundaries[used : used + width]))
                used += width
            buckets += [math_ops.cast(n, dtypes.int32) for n in numbers]
    return buckets
