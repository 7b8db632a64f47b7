# SPDX-License-Identifier: Apache-2.0
"""What every column is: how it gets its values out of a dict of features, each of them once."""

from __future__ import annotations

import collections.abc
import numbers
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from millrace import tf_logging
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor, convert_to_tensor_or_sparse_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.sparse_math_ops import sparse_reshape


class _FeatureColumn:
    """A column of a table. Programs may write their own."""

    @property
    def name(self) -> str:
        """What its variables are called after; no two columns of a model have the same."""
        raise NotImplementedError("%s.name" % type(self).__name__)

    @property
    def _var_scope_name(self) -> str:
        """The scope of its variables."""
        return self.name

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        """How tf.parse_example finds its features."""
        raise NotImplementedError("%s._parse_example_spec" % type(self).__name__)

    def _transform_feature(self, inputs: "_LazyBuilder") -> Any:
        """Its values, made of those of `inputs`."""
        raise NotImplementedError("%s._transform_feature" % type(self).__name__)


class OfOneFeature(_FeatureColumn):
    """A column of one feature, whose name it has."""

    key: str

    @property
    def name(self) -> str:
        """The feature's name."""
        return self.key


class OfClasses(_FeatureColumn):
    """A column that is made of one of classes, and needs its features."""

    categorical_column: Any

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        return self.categorical_column._parse_example_spec


class _DenseColumn(_FeatureColumn):
    """A column that is numbers."""

    @property
    def _variable_shape(self) -> Any:
        """The shape of an example's numbers."""
        raise NotImplementedError("%s._variable_shape" % type(self).__name__)

    def _get_dense_tensor(self, inputs: "_LazyBuilder", weight_collections: Any = None, trainable: Optional[bool] = None) -> Any:
        """The numbers of all examples."""
        raise NotImplementedError("%s._get_dense_tensor" % type(self).__name__)


class IdsAndWeights(NamedTuple):
    """Classes of each example, and how much each counts: two SparseTensors of the same places, or None where all count alike."""

    id_tensor: SparseTensor
    weight_tensor: Optional[SparseTensor]


class _CategoricalColumn(_FeatureColumn):
    """A column of numbers of classes."""

    IdWeightPair = IdsAndWeights

    @property
    def _num_buckets(self) -> int:
        """How many classes there are."""
        raise NotImplementedError("%s._num_buckets" % type(self).__name__)

    def _get_sparse_tensors(self, inputs: "_LazyBuilder", weight_collections: Any = None, trainable: Optional[bool] = None) -> IdsAndWeights:
        """The classes of all examples: `inputs` has them, unless a column says otherwise."""
        del weight_collections, trainable  # a column of classes has no weights
        return IdsAndWeights(inputs.get(self), None)


class _LazyBuilder:
    """The features of a model and what columns make of them. Everything is made when it is first asked for, and only then."""

    def __init__(self, features: Dict[Any, Any]) -> None:
        self._features, self._made = dict(features), {}  # type: ignore[var-annotated]

    def get(self, key: Any) -> Any:
        """The tensor of a feature's name or of a column."""
        if key not in self._made:
            self._made[key] = self._feature(key) if key in self._features else self._transformed(key)
        return self._made[key]

    def _transformed(self, column: Any) -> Any:
        if not isinstance(column, (str, _FeatureColumn)):
            raise at_user_line(TypeError('"key" must be either a "str" or "_FeatureColumn". Provided: %s' % (column,)))
        if not isinstance(column, _FeatureColumn):
            raise at_user_line(ValueError("Feature %s is not in features dictionary." % column))
        tf_logging.debug("Transforming feature_column %s.", column)
        made = column._transform_feature(self)
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


def _as_rows(value: Any) -> Any:
    """A list of values, as rows of one."""
    if isinstance(value, SparseTensor):
        return sparse_reshape(value, array_ops.stack([value.dense_shape[0], -1]))
    return array_ops.expand_dims(value, -1)


def sparse_of(value: Any, ignored: Any = None) -> SparseTensor:
    """A tensor's values but those that stand for none: "" and -1, unless `ignored` says which. SparseTensors are as they are."""
    value = convert_to_tensor_or_sparse_tensor(value)
    if isinstance(value, SparseTensor):
        return value
    if value.get_shape().ndims is None:
        raise at_user_line(ValueError("Undefined input_tensor shape."))
    if ignored is None:
        ignored = "" if value.dtype.base_dtype == dtypes.string else -1
    with name_scope(None, "to_sparse_input", [value]):
        unsigned = value.dtype.is_integer and value.dtype.is_unsigned
        wanted = (
            array_ops.ones_like(value, dtypes.bool) if unsigned and ignored == -1 else math_ops.not_equal(value, math_ops.cast(ignored, value.dtype.base_dtype))
        )
        places = array_ops.where(wanted, name="indices")
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


def is_count(value: Any) -> bool:
    """Whether it is an integer, and no truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def checked_columns(columns: Any) -> List[_FeatureColumn]:
    """The columns as a list. ValueError where there is none, something that is no column, or two of one name."""
    if isinstance(columns, _FeatureColumn):
        columns = [columns]
    if isinstance(columns, dict):
        raise at_user_line(ValueError("Expected feature_columns to be iterable, found dict."))
    listed = list(columns) if isinstance(columns, collections.abc.Iterable) else [columns]
    for column in listed:
        if not isinstance(column, _FeatureColumn):
            raise at_user_line(ValueError("Items of feature_columns must be a _FeatureColumn. Given (type %s): %s." % (type(column), column)))
    if not listed:
        raise at_user_line(ValueError("feature_columns must not be empty."))
    different_names(listed)
    return listed


def different_names(columns: Iterable[Any]) -> None:
    """ValueError where two columns have one name."""
    by_name: Dict[str, Any] = {}
    for column in columns:
        if column.name in by_name:
            raise at_user_line(
                ValueError(
                    "Duplicate feature column name found for columns: %s and %s. Both are of one feature: leave one of them out, "
                    "or give the feature a second name in the features." % (column, by_name[column.name])
                )
            )
        by_name[column.name] = column
