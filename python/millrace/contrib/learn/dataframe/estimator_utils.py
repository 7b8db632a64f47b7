# SPDX-License-Identifier: Apache-2.0
"""Data frames as feature columns and input functions of estimators."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from millrace.contrib.feature_columns.frames import DataFrameColumn
from millrace.contrib.learn.dataframe.series import PredefinedSeries, Series, TransformedSeries
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.ops import parsing_ops


def _to_feature_spec(tensor: Any, default_value: Any = None) -> Any:
    """How a column that becomes this tensor is parsed."""
    if hasattr(tensor, "indices"):
        return parsing_ops.VarLenFeature(dtype=tensor.dtype)
    shape = tensor.get_shape()
    return parsing_ops.FixedLenFeature(shape=shape if shape.ndims is None else shape[1:], dtype=tensor.dtype, default_value=default_value)


def _infer_feature_specs(dataframe: Any, keys_with_defaults: Dict[str, Any]) -> Dict[str, Any]:
    with Graph().as_default():
        cache: Dict[str, Any] = {}
        return {key: _to_feature_spec(dataframe[key].build(cache), default) for key, default in keys_with_defaults.items()}


def _rebuilt(series: Series, bases: Sequence[Tuple[Series, Series]]) -> Series:
    """The same column of others in place of its bases."""
    for base, other in bases:
        if base is series:
            return other
    if not isinstance(series, TransformedSeries) or not series.inputs:
        raise at_user_line(ValueError("the column %r is none of the base inputs, and not made of them" % series))
    return series.with_inputs([_rebuilt(each, bases) for each in series.inputs])


def to_feature_columns_and_input_fn(
    dataframe: Any, base_input_keys_with_defaults: Dict[str, Any], feature_keys: Any, label_keys: Any = None, **kwargs: Any
) -> Tuple[List[DataFrameColumn], Any]:
    """(feature columns, a function that makes (features, labels)).

    base_input_keys_with_defaults: the columns that are parsed where a model is served, with what they are when they are missing. feature_keys: the columns
    that a model sees, which are made of these. label_keys: those that it learns, none of which it may see: one is a tensor, several are a dictionary.
    kwargs: as DataFrame.build takes them."""
    labels = list(label_keys or [])
    for what, keys in (("base_input_keys_with_defaults", base_input_keys_with_defaults), ("feature_keys", feature_keys), ("label_keys", labels)):
        unknown = set(keys) - dataframe.columns()
        if unknown:
            raise at_user_line(ValueError("%s has no columns of the data frame: %s" % (what, ", ".join(sorted(unknown)))))
    both = set(labels).intersection([*feature_keys, *base_input_keys_with_defaults])
    if both:
        raise at_user_line(ValueError("columns are labels and features: %s" % ", ".join(sorted(both))))
    specs = _infer_feature_specs(dataframe, base_input_keys_with_defaults)
    bases = [(dataframe[key], PredefinedSeries(key, spec)) for key, spec in specs.items()]
    columns = [DataFrameColumn(key, _rebuilt(dataframe[key], bases)) for key in feature_keys]

    def input_fn() -> Tuple[Dict[str, Any], Any]:
        cache: Dict[str, Any] = {}
        built = {key: dataframe[key].build(cache, **kwargs) for key in [*base_input_keys_with_defaults, *labels]}
        wanted: Optional[Any] = {key: built[key] for key in labels}
        return {key: built[key] for key in base_input_keys_with_defaults}, built[labels[0]] if len(labels) == 1 else wanted

    return columns, input_fn
