# SPDX-License-Identifier: Apache-2.0
"""Labeled tensors out of examples, and as placeholders."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Sequence

from millrace.contrib.labeled_tensor.axes import Axes, as_axis
from millrace.contrib.labeled_tensor.core import LabeledTensor, convert_to_labeled_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, parsing_ops


class _Feature(NamedTuple):
    axes: Any
    dtype: Any
    default_value: Any = None


class FixedLenFeature(_Feature):
    """A feature of examples that has axes with sizes."""

    def __new__(cls, axes: Sequence[Any], dtype: Any, default_value: Any = None) -> "FixedLenFeature":
        return super().__new__(cls, [as_axis(axis) for axis in axes], dtype, default_value)


def _plain(features: Dict[str, FixedLenFeature]) -> Dict[str, Any]:
    made = {}
    for name, feature in features.items():
        shape = [axis.size for axis in feature.axes]
        if None in shape:
            raise at_user_line(ValueError("axes with unknown size are not supported"))
        made[name] = parsing_ops.FixedLenFeature(shape, feature.dtype, feature.default_value)
    return made


def parse_example(serialized: Any, features: Dict[str, FixedLenFeature], name: Optional[str] = None, example_names: Any = None) -> Dict[str, LabeledTensor]:
    """The features of examples, behind the axis of these."""
    given = convert_to_labeled_tensor(serialized)
    parsed = parsing_ops.parse_example(given.tensor, _plain(features), name, example_names)
    return {key: LabeledTensor(value, [*given.axes.values(), *features[key].axes]) for key, value in parsed.items()}


def parse_single_example(
    serialized: Any, features: Dict[str, FixedLenFeature], name: Optional[str] = None, example_names: Any = None
) -> Dict[str, LabeledTensor]:
    """The features of an example."""
    given = convert_to_labeled_tensor(serialized)
    parsed = parsing_ops.parse_single_example(given.tensor, _plain(features), name, example_names)
    return {key: LabeledTensor(value, features[key].axes) for key, value in parsed.items()}


def placeholder(dtype: Any, axes: Sequence[Any], name: Optional[str] = None) -> LabeledTensor:
    """A placeholder with axes; one that is a name alone has any size."""
    with name_scope(name, "lt_placeholder", []) as scope:
        known = Axes([(axis, None) if isinstance(axis, str) else axis for axis in axes])
        return LabeledTensor(array_ops.placeholder(dtype, [axis.size for axis in known.values()], name=scope), known)
