# SPDX-License-Identifier: Apache-2.0
"""Columns of numbers: those of the features themselves, ranges of them, and classes as zeros and ones."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from millrace.feature_column.base import IdsAndWeights, NumbersAndLengths, buckets_of, is_count
from millrace.feature_column.features import sequence_lengths
from millrace.feature_column.serialization import by_name
from millrace.feature_column.styles import Categorical, Dense, SequenceDense, checked_key, no_sequence, only_sequence
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, gen_ops, math_ops, parsing_ops
from millrace.ops.sparse_math_ops import sparse_slice
from millrace.ops.sparse_ops import sparse_merge, sparse_tensor_to_dense


@by_name
class NumericColumn(Dense, namedtuple("NumericColumn", ("key", "shape", "default_value", "dtype", "normalizer_fn"))):  # type: ignore[misc]
    """Numbers of a shape in each example."""

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """So many numbers in an example."""
        return {self.key: parsing_ops.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of an example's numbers."""
        return TensorShape(self.shape)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Tensor:
        """The numbers as float32."""
        value = transformation_cache.get(self.key, state_manager)
        if isinstance(value, SparseTensor):
            raise at_user_line(ValueError("The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. key: %s" % self.key))
        if self.normalizer_fn is not None:
            value = self.normalizer_fn(value)
        return math_ops.cast(value, dtypes.float32)


def classes_of_ranges(buckets: Tensor, width: int, ranges: int) -> SparseTensor:
    """Numbers of ranges [examples, width] as classes: those of the first number, then those of the second, and so on."""
    batch = array_ops.shape(buckets)[0]
    row = array_ops.reshape(array_ops.tile(array_ops.expand_dims(math_ops.range(0, batch), 1), [1, width]), [-1])
    column = array_ops.tile(math_ops.range(0, width), array_ops.expand_dims(batch, 0))
    classes = array_ops.reshape(buckets, [-1]) + ranges * column
    places = math_ops.cast(array_ops.stack([row, column], 1), dtypes.int64)
    return SparseTensor(places, classes, math_ops.cast(array_ops.stack([batch, width]), dtypes.int64))


def indicators(pair: IdsAndWeights, depth: int) -> Tensor:
    """How often each class is there, or how much it counts, along a new last dimension in place of the ids' last."""
    if pair.weight_tensor is not None:
        merged = sparse_merge(pair.id_tensor, pair.weight_tensor, depth)
        known = sparse_slice(merged, [0, 0], merged.dense_shape)  # without ids of no class, which are -1
        return gen_ops.scatter_nd(known.indices, known.values, known.dense_shape)  # adds up the weights of a class
    dense = sparse_tensor_to_dense(pair.id_tensor, default_value=-1)
    return math_ops.reduce_sum(array_ops.one_hot(dense, depth, 1.0, 0.0), -2)


@by_name
class BucketizedColumn(Dense, Categorical, namedtuple("BucketizedColumn", ("source_column", "boundaries"))):  # type: ignore[misc]
    """Numbers as the ranges that they are in."""

    _source = "source_column"

    @property
    def name(self) -> str:
        """That of its source, bucketized."""
        return "%s_bucketized" % self.source_column.name

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of an example's zeros and ones."""
        return TensorShape((*self.source_column.shape, len(self.boundaries) + 1))

    @property
    def num_buckets(self) -> int:
        """The ranges of all numbers of an example."""
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Tensor:
        """The numbers of the ranges."""
        return gen_ops.bucketize(transformation_cache.get(self.source_column, state_manager), list(self.boundaries))

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Tensor:
        """A one for the range of each number."""
        ranges = math_ops.cast(transformation_cache.get(self, state_manager), dtypes.int64)
        return array_ops.one_hot(ranges, len(self.boundaries) + 1, 1.0, 0.0)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """The ranges of an example's numbers, each with classes of its own."""
        ranges = transformation_cache.get(self, state_manager)
        return IdsAndWeights(classes_of_ranges(ranges, self.source_column.shape[0], len(self.boundaries) + 1), None)


@by_name
class IndicatorColumn(Dense, SequenceDense, namedtuple("IndicatorColumn", ("categorical_column",))):  # type: ignore[misc]
    """Classes as zeros and ones."""

    _source = "categorical_column"

    @property
    def name(self) -> str:
        """That of the classes, as indicator."""
        return "%s_indicator" % self.categorical_column.name

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of an example's zeros and ones."""
        return TensorShape([1, buckets_of(self.categorical_column)])

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Tensor:
        """How often each class is there, or how much it counts."""
        return indicators(transformation_cache.classes(self.categorical_column, state_manager), buckets_of(self.categorical_column))

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Tensor:
        """How often each class is there, or how much it counts."""
        no_sequence(self, "indicator_column", transformation_cache)
        return transformation_cache.get(self, state_manager)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> NumbersAndLengths:
        """The same for each step."""
        only_sequence(self, "indicator_column", transformation_cache)
        ids = transformation_cache.classes(self.categorical_column, state_manager).id_tensor
        return NumbersAndLengths(transformation_cache.get(self, state_manager), sequence_lengths(ids))


# ---- what makes them ----


def checked_shape(shape: Any, key: str) -> Tuple[int, ...]:
    """A shape as a tuple. An error unless it is known and not empty."""
    if shape is None:
        raise at_user_line(AssertionError("shape cannot be None, key: %s" % key))
    shape = tuple(shape) if nest.is_sequence(shape) else (shape,)
    for size in shape:
        if not is_count(size):
            raise at_user_line(TypeError("shape dimensions must be integer. shape: %s, key: %s" % (shape, key)))
        if size < 1:
            raise at_user_line(ValueError("shape dimensions must be greater than 0. shape: %s, key: %s" % (shape, key)))
    return shape


def _filled(shape: Sequence[int], value: Any) -> Any:
    return tuple(_filled(shape[1:], value) for _ in range(shape[0])) if shape else value


def _has_shape(value: Any, shape: Sequence[int]) -> bool:
    if nest.is_sequence(value) != bool(shape):
        return False
    return not shape or len(value) == shape[0] and all(_has_shape(v, shape[1:]) for v in value)


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(v) for v in value) if nest.is_sequence(value) else value


def default_of(value: Any, shape: Tuple[int, ...], dtype: Any, key: str) -> Any:
    """A default as nested tuples of the column's shape; a number stands for all places."""
    if value is None:
        return None
    value = value.tolist() if hasattr(value, "tolist") else value
    numbers = nest.flatten(value) if nest.is_sequence(value) else [value]
    if nest.is_sequence(value) and not _has_shape(value, shape):
        raise at_user_line(ValueError("The shape of default_value must be equal to given shape. default_value: %s, shape: %s, key: %s" % (value, shape, key)))
    if all(isinstance(v, (int, float) if dtype.is_floating else int) for v in numbers):
        return _as_tuples(value) if nest.is_sequence(value) else _filled(shape, value)
    raise at_user_line(TypeError("default_value must be compatible with dtype. default_value: %s, dtype: %s, key: %s" % (value, dtype, key)))


def numeric_column(
    key: str, shape: Any = (1,), default_value: Any = None, dtype: Any = dtypes.float32, normalizer_fn: Optional[Callable[[Any], Any]] = None
) -> NumericColumn:
    """A column of numbers, of this shape in each example."""
    shape, dtype = checked_shape(shape, key), dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise at_user_line(ValueError("dtype must be convertible to float. dtype: %s, key: %s" % (dtype, key)))
    default_value = default_of(default_value, shape, dtype, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise at_user_line(TypeError("normalizer_fn must be a callable. Given: %s" % (normalizer_fn,)))
    return NumericColumn(checked_key(key), shape, default_value, dtype, normalizer_fn)


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """Numbers as ranges between boundaries."""
    if not isinstance(source_column, NumericColumn):
        raise at_user_line(ValueError("source_column must be a column generated with numeric_column(). Given: %s" % (source_column,)))
    if len(source_column.shape) > 1:
        raise at_user_line(ValueError("source_column must be one-dimensional column. Given: %s" % (source_column,)))
    if not boundaries:
        raise at_user_line(ValueError("boundaries must not be empty: boundaries must be a sorted list."))
    if not isinstance(boundaries, (list, tuple)) or any(a >= b for a, b in zip(boundaries, boundaries[1:])):
        raise at_user_line(ValueError("boundaries must be a sorted list."))
    return BucketizedColumn(source_column, tuple(boundaries))


def indicator_column(categorical_column: Any) -> IndicatorColumn:
    """Classes as rows of zeros and ones."""
    return IndicatorColumn(categorical_column)
