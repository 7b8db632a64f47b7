# SPDX-License-Identifier: Apache-2.0
"""What exported models of series take."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.contrib.timeseries.feature_keys import TrainEvalFeatures
from millrace.contrib.timeseries.head import state_to_dictionary
from millrace.estimator.export import ServingInputReceiver
from millrace.feature_column.base import make_parse_example_spec
from millrace.feature_column.dense import numeric_column
from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Tensor
from millrace.ops import array_ops, math_ops, parsing_ops

TIMES, VALUES = TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES


def state_placeholders(model: Any, batch_size: Tensor, known_batch_size: Optional[int]) -> Dict[str, Tensor]:
    """Placeholders for the flat state of a model, [batch, ...], which are zero where they are not fed."""
    with Graph().as_default():  # a model may need variables to know its state, and only types and shapes are wanted
        model.initialize_graph()
        parts = {name: (part.dtype.base_dtype, part.get_shape().as_list()) for name, part in state_to_dictionary(model.get_start_state()).items()}
    return {
        name: array_ops.placeholder_with_default(
            array_ops.zeros(array_ops.concat([batch_size[None], constant(shape, dtypes.int32)], 0), dtype), [known_batch_size, *shape], name=name
        )
        for name, (dtype, shape) in parts.items()
    }


def raw_receiver(model: Any, batch_size: Optional[int], length: Optional[int]) -> ServingInputReceiver:
    """Placeholders for times and exogenous features [batch, length, ...], and for values, which need not be fed to predict."""
    times = array_ops.placeholder(dtypes.int64, [batch_size, length], name=TIMES)
    nothing = array_ops.zeros([batch_size or 0, length or 0, model.num_features], model.dtype)
    taken = {TIMES: times, VALUES: array_ops.placeholder_with_default(nothing, [batch_size, length, model.num_features], name=VALUES)}
    for name, (dtype, shape) in _shapes_of_columns(model.exogenous_feature_columns).items():
        taken[name] = array_ops.placeholder(dtype, [batch_size, length, *shape], name=name)
    taken.update(state_placeholders(model, array_ops.shape(times)[0], batch_size))
    return ServingInputReceiver(taken, taken)


def _shapes_of_columns(columns: Any) -> Dict[str, Any]:
    """Type and shape of a step of the features of columns."""
    if not columns:
        return {}
    with Graph().as_default():
        parsed = parsing_ops.parse_example(array_ops.placeholder(dtypes.string, [None]), make_parse_example_spec(columns))
    return {name: (value.dtype, value.get_shape().with_rank_at_least(1).as_list()[1:]) for name, value in parsed.items()}


def one_shot_receiver(model: Any, past: int, future: int, batch_size: Optional[int], values_dtype: Any, truncate_values: bool) -> ServingInputReceiver:
    """Examples [batch] with times and exogenous features of `past` + `future` steps, and values of `past` steps; or, with truncate_values, of all, of which
    only those are used. NotImplementedError, as ValueError, for columns of varying length."""
    columns = [numeric_column(TIMES, dtype=dtypes.int64), numeric_column(VALUES, (model.num_features,), dtype=values_dtype or dtypes.float32)]
    parsed = {}
    for name, feature in make_parse_example_spec([*model.exogenous_feature_columns, *columns]).items():
        length = past if name == VALUES and not truncate_values else past + future
        if isinstance(feature, parsing_ops.FixedLenFeature):
            parsed[name] = feature._replace(shape=(length, *feature.shape))
        elif feature.dtype == dtypes.string:
            parsed[name] = parsing_ops.FixedLenFeature((length,), dtypes.string)
        else:
            raise at_user_line(ValueError("VarLenFeatures not supported, got %s for key %s" % (feature, name)))
    examples = array_ops.placeholder(dtypes.string, [batch_size], name="input")
    features = parsing_ops.parse_example(serialized=examples, features=parsed)
    features[TIMES] = array_ops.squeeze(features[TIMES], -1)
    features[VALUES] = math_ops.cast(features[VALUES], model.dtype)[:, :past]
    features.update(state_placeholders(model, array_ops.shape(features[TIMES])[0], batch_size))
    return ServingInputReceiver(features, {"examples": examples})
