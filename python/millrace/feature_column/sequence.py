# SPDX-License-Identifier: Apache-2.0
"""Columns of sequences: of each example any number of steps. Their `get_sequence_dense_tensor` makes tensors [examples, steps, ...] and lengths."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, Callable, Dict, List, Optional, Sequence

from millrace.feature_column import categorical
from millrace.feature_column.base import IdsAndWeights, NumbersAndLengths, buckets_of
from millrace.feature_column.dense import checked_shape
from millrace.feature_column.features import sequence_lengths
from millrace.feature_column.serialization import by_name
from millrace.feature_column.styles import Categorical, OfSteps, SequenceDense
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, math_ops
from millrace.ops.parsing_ops import VarLenFeature
from millrace.ops.sparse_math_ops import sparse_reshape
from millrace.ops.sparse_ops import sparse_tensor_to_dense


@by_name
class SequenceCategoricalColumn(Categorical, OfSteps, namedtuple("SequenceCategoricalColumn", ("categorical_column",))):  # type: ignore[misc]
    """Classes for each step; an embedding_column or indicator_column makes numbers of it."""

    _source = "categorical_column"

    @property
    def name(self) -> str:
        """The feature's."""
        return self.categorical_column.name

    @property
    def num_buckets(self) -> int:
        """How many classes there are."""
        return buckets_of(self.categorical_column)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The classes."""
        return transformation_cache.get(self.categorical_column, state_manager)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """[examples, steps, classes at a step]."""
        pair = transformation_cache.classes(self.categorical_column, state_manager)
        shape = pair.id_tensor.dense_shape
        steps = array_ops.stack([shape[0], shape[1], math_ops.reduce_prod(shape[2:])])
        return IdsAndWeights(sparse_reshape(pair.id_tensor, steps), None if pair.weight_tensor is None else sparse_reshape(pair.weight_tensor, steps))


@by_name
class SequenceNumericColumn(  # type: ignore[misc]
    SequenceDense, namedtuple("SequenceNumericColumn", ("key", "shape", "default_value", "dtype", "normalizer_fn"))
):
    """Numbers for each step."""

    @property
    def parse_example_spec(self) -> Dict[str, Any]:
        """Any number of numbers in an example."""
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def variable_shape(self) -> TensorShape:
        """The shape of a step's numbers."""
        return TensorShape(self.shape)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The numbers, a SparseTensor [examples, numbers of all steps] or [examples, steps, numbers]."""
        made = transformation_cache.get(self.key, state_manager)
        return made if self.normalizer_fn is None else self.normalizer_fn(made)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> NumbersAndLengths:
        """The numbers of each step, with default_value where an example has fewer steps."""
        steps = transformation_cache.get(self, state_manager)
        dense = sparse_tensor_to_dense(steps, self.default_value)
        made = array_ops.reshape(dense, array_ops.concat([[array_ops.shape(dense)[0], -1], list(self.shape)], 0))
        side_by_side = steps.get_shape().ndims == 2  # the numbers of a step are
        return NumbersAndLengths(made, sequence_lengths(steps, self.variable_shape.num_elements() if side_by_side else 1))  # type: ignore[arg-type]


def same_lengths(lengths: List[Tensor]) -> Tensor:
    """The lengths of sequences, which must be the same for all columns."""
    if len(lengths) == 1:
        return lengths[0]
    with name_scope(None, "assert_all_equal", lengths):
        with control_dependencies([check_ops.assert_equal(lengths[0], other) for other in lengths[1:]]):
            return array_ops.identity(lengths[0])


def concatenate_context_input(context_input: Tensor, sequence_input: Tensor) -> Tensor:
    """Numbers of whole examples [examples, n] behind those of each of their steps [examples, steps, m]: [examples, steps, m + n]."""
    inputs = ((sequence_input, 3, "sequence_input"), (context_input, 2, "context_input"))
    for value, _, what in inputs:
        if value.dtype.base_dtype != dtypes.float32:
            raise at_user_line(TypeError("%s must have dtype float32; got %s." % (what, value.dtype)))
    checks = [check_ops.assert_rank(value, rank, message="%s must have rank %d" % (what, rank), data=[array_ops.shape(value)]) for value, rank, what in inputs]
    with control_dependencies(checks):
        steps = array_ops.shape(sequence_input)[1]
        repeated = array_ops.tile(array_ops.expand_dims(context_input, 1), array_ops.stack([1, steps, 1]))
    return array_ops.concat([sequence_input, repeated], 2)


# ---- what makes them ----


def sequence_categorical_column_with_identity(key: str, num_buckets: int, default_value: Optional[int] = None) -> SequenceCategoricalColumn:
    """Steps that are numbers of classes."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(key: str, hash_bucket_size: int, dtype: Any = dtypes.string) -> SequenceCategoricalColumn:
    """Steps that are words or numbers, by hashes of them."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: Optional[int] = None,
    num_oov_buckets: int = 0,
    default_value: Optional[int] = None,
    dtype: Any = dtypes.string,
) -> SequenceCategoricalColumn:
    """Steps that are words of a file, a line each."""
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype)
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> SequenceCategoricalColumn:
    """Steps that are words of a list."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets))


def sequence_numeric_column(
    key: str, shape: Any = (1,), default_value: float = 0.0, dtype: Any = dtypes.float32, normalizer_fn: Optional[Callable[[Tensor], Tensor]] = None
) -> SequenceNumericColumn:
    """Steps of numbers of a shape; default_value stands where an example has fewer steps."""
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise at_user_line(ValueError("dtype must be convertible to float. dtype: %s, key: %s" % (dtype, key)))
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise at_user_line(TypeError("normalizer_fn must be a callable. Given: %s" % (normalizer_fn,)))
    return SequenceNumericColumn(key, checked_shape(shape, key), default_value, dtype, normalizer_fn)
