# SPDX-License-Identifier: Apache-2.0
"""The features of a model and what columns make of them. Everything is made when it is first asked for, and only then."""

from __future__ import annotations

from typing import Any, Dict

from millrace import tf_logging
from millrace.feature_column.base import FeatureColumn, IdsAndWeights, _FeatureColumn
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.sparse_math_ops import sparse_reshape


class FeatureTransformationCache:
    """Asks columns in today's style."""

    _kind: Any = FeatureColumn  # of columns
    mark = ""  # what names of that style begin with

    def __init__(self, features: Dict[Any, Any]) -> None:
        self._features, self._made = dict(features), {}  # type: ignore[var-annotated]

    def get(self, key: Any, state_manager: Any) -> Any:
        """The tensor of a feature's name or of a column."""
        if key not in self._made:
            self._made[key] = self._feature(key) if key in self._features else self._transformed(key, state_manager)
        return self._made[key]

    def classes(self, column: Any, state_manager: Any) -> IdsAndWeights:
        """The classes of a column."""
        return column.get_sparse_tensors(self, state_manager)

    def _ask(self, column: Any, state_manager: Any) -> Any:
        return column.transform_feature(self, state_manager)

    def _transformed(self, column: Any, state_manager: Any) -> Any:
        if isinstance(column, str):
            raise at_user_line(ValueError("Feature %s is not in features dictionary." % column))
        if not isinstance(column, self._kind):
            raise at_user_line(TypeError('"key" must be either a "str" or "%s". Provided: %s' % (self._kind.__name__, column)))
        tf_logging.debug("Transforming feature_column %s.", column)
        made = self._ask(column, state_manager)
        if made is None:
            raise at_user_line(ValueError("Column %s is not supported." % column.name))
        return made

    def _feature(self, key: Any) -> Any:
        """A feature with one row for each example: of rank two at least."""
        value = convert_to_tensor_or_sparse_tensor(self._features[key])
        rank = value.get_shape().ndims
        if rank == 0:
            raise at_user_line(ValueError("Feature (key: %s) cannot have rank 0. Given: %s" % (key, value)))
        if rank is not None:
            return _as_rows(value) if rank == 1 else value
        ranked = check_ops.assert_positive(array_ops.rank(value), message="Feature (key: %s) cannot have rank 0. Given: %s" % (key, value))
        with control_dependencies([ranked]):
            return control_flow_ops.cond(math_ops.equal(1, array_ops.rank(value)), lambda: _as_rows(value), lambda: value)


class _LazyBuilder(FeatureTransformationCache):
    """Asks columns in the style before."""

    _kind = _FeatureColumn
    mark = "_"

    def get(self, key: Any, state_manager: Any = None) -> Any:
        """The tensor of a feature's name or of a column."""
        return super().get(key, state_manager)

    def classes(self, column: Any, state_manager: Any) -> IdsAndWeights:
        """The classes of a column."""
        if state_manager is None:
            return column._get_sparse_tensors(self)
        return column._get_sparse_tensors(self, weight_collections=state_manager.weight_collections, trainable=state_manager.trainable)

    def _ask(self, column: Any, state_manager: Any) -> Any:
        return column._transform_feature(self)


def _as_rows(value: Any) -> Any:
    """A list of values, as rows of one."""
    if isinstance(value, SparseTensor):
        return sparse_reshape(value, array_ops.stack([value.dense_shape[0], 1]))
    return array_ops.expand_dims(value, -1)


def sparse_of(value: Any, ignored: Any = None) -> SparseTensor:
    """A tensor's values but those that stand for none: "", -1 and 0.0, unless `ignored` says which. SparseTensors are as they are."""
    value = convert_to_tensor_or_sparse_tensor(value)
    if isinstance(value, SparseTensor):
        return value
    kind = value.dtype.base_dtype
    if ignored is None:
        ignored = "" if kind == dtypes.string else -1 if kind.is_integer else 0.0
    with name_scope(None, "to_sparse_input", [value]):
        places = array_ops.where(math_ops.not_equal(value, math_ops.cast(ignored, kind)), name="indices")
        return SparseTensor(places, gen_ops.gather_nd(value, places), array_ops.shape(value, out_type=dtypes.int64))


def words_or_numbers(dtype: Any, what: str) -> None:
    """ValueError unless a type is string or an integer."""
    if dtype != dtypes.string and not dtype.is_integer:
        raise at_user_line(ValueError("%s dtype must be string or integer. dtype: %s." % (what, dtype)))


def same_kind(key: str, dtype: Any, value: SparseTensor) -> None:
    """ValueError unless a column of this type can hold the values."""
    words_or_numbers(value.dtype, "column_name: %s input_tensor" % key)
    if dtype.is_integer != value.dtype.is_integer:
        raise at_user_line(
            ValueError("Column dtype and SparseTensors dtype must be compatible. key: %s, column dtype: %s, tensor dtype: %s" % (key, dtype, value.dtype))
        )


def sequence_lengths(steps: SparseTensor, numbers: int = 1) -> Any:
    """How many steps each example has, of `numbers` values each: int64."""
    with name_scope(None, "sequence_length") as name:
        last = gen_ops.unsorted_segment_max(steps.indices[:, 1], steps.indices[:, 0], steps.dense_shape[0])
        return math_ops.maximum(gen_ops.floor_div(last, numbers) + 1, math_ops.cast(0, dtypes.int64), name=name)
