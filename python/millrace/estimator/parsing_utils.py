# SPDX-License-Identifier: Apache-2.0
"""How examples are parsed for a model that is made already: its columns, its labels and their weights."""

from __future__ import annotations

from typing import Any, Dict

from millrace import feature_column
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import parsing_ops


def _with_labels(feature_columns: Any, label_key: str, label: Any, weight_column: Any) -> Dict[str, Any]:
    spec = feature_column.make_parse_example_spec(feature_columns)
    if label_key in spec:
        raise at_user_line(ValueError("label should not be used as feature. label_key: %s, features: %s" % (label_key, list(spec))))
    spec[label_key] = label
    if weight_column is None:
        return spec
    column = feature_column.numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, feature_column._NumericColumn):
        raise at_user_line(
            ValueError("weight_column should be an instance of tf.feature_column.numeric_column. Given type: %s value: %s" % (type(column), column))
        )
    if column.key in spec:
        raise at_user_line(ValueError("weight_column should not be used as feature. weight_column: %s, features: %s" % (column.key, list(spec))))
    return {**spec, **column._parse_example_spec}


def classifier_parse_example_spec(
    feature_columns: Any, label_key: str, label_dtype: Any = dtypes.int64, label_default: Any = None, weight_column: Any = None
) -> Dict[str, Any]:
    """What tf.parse_example needs for the columns and a class."""
    return _with_labels(feature_columns, label_key, parsing_ops.FixedLenFeature((1,), label_dtype, label_default), weight_column)


def regressor_parse_example_spec(
    feature_columns: Any, label_key: str, label_dtype: Any = dtypes.float32, label_default: Any = None, label_dimension: int = 1, weight_column: Any = None
) -> Dict[str, Any]:
    """What tf.parse_example needs for the columns and label_dimension numbers."""
    return _with_labels(feature_columns, label_key, parsing_ops.FixedLenFeature((label_dimension,), label_dtype, label_default), weight_column)
