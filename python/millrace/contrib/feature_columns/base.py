# SPDX-License-Identifier: Apache-2.0
"""What every column of tf.contrib.layers is: frozen fields, a key that tells it apart, and how its values become inputs of models.
They work in tf.feature_column's models as well."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, NamedTuple, Tuple

from millrace.contrib.framework import model_variable
from millrace.contrib.layers_spatial import _inner_flatten
from millrace.feature_column.base import _DenseColumn, _FeatureColumn
from millrace.feature_column.features import _LazyBuilder
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops
from millrace.ops.sparse_math_ops import sparse_reshape
from millrace.ops.variables import PartitionedVariable


class _LinearEmbeddingLookupArguments(NamedTuple):
    """What a linear model looks up: ids, how much each counts, how many classes there are, and how the variable begins."""

    input_tensor: Any
    weight_tensor: Any
    vocab_size: int
    initializer: Any
    combiner: str


class _Column(_FeatureColumn):
    """A column of contrib: a frozen dataclass."""

    _not_in_key: Tuple[str, ...] = ()  # fields that are functions

    @property
    def key(self) -> str:
        """What tells it apart and orders it: its class and fields."""
        fields = [f.name for f in dataclasses.fields(self) if f.name not in self._not_in_key]  # type: ignore[arg-type]
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % (name, getattr(self, name)) for name in fields))

    @property
    def config(self) -> Dict[str, Any]:
        """How tf.parse_example finds its features."""
        raise NotImplementedError("%s.config" % type(self).__name__)

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        return self.config

    def insert_transformed_feature(self, columns_to_tensors: Dict[Any, Any]) -> None:
        """Adds its values to the features."""
        columns_to_tensors[self] = _Builder(columns_to_tensors).get(self)

    def _to_dnn_input_layer(self, input_tensor: Any, weight_collections: Any = None, trainable: bool = True, output_rank: int = 2) -> Any:
        """Its values as numbers, in a tensor of this rank."""
        raise at_user_line(ValueError("No deep embedding lookup arguments for column %s: wrap it in an embedding_column or one_hot_column." % self.name))

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> _LinearEmbeddingLookupArguments:
        """What a linear model looks up for its values."""
        raise NotImplementedError("No wide embedding lookup arguments for column %s." % self.name)

    def _to_dense_tensor(self, input_tensor: Any) -> Any:
        """Its values as they are in a linear model, [examples, numbers]."""
        raise at_user_line(ValueError("Column %s cannot be used in a linear model: use the column that it is of." % self.name))


class _Dense(_Column, _DenseColumn):
    """A column of numbers."""

    def _get_dense_tensor(self, inputs: _LazyBuilder, weight_collections: Any = None, trainable: Any = None) -> Any:
        return self._to_dnn_input_layer(inputs.get(self), weight_collections, trainable is not False)


class _Builder(_LazyBuilder):
    """Features by name; what is given by columns is theirs already."""

    def _feature(self, key: Any) -> Any:
        return self._features[key] if isinstance(key, _FeatureColumn) else super()._feature(key)

    def _transformed(self, column: Any, state_manager: Any) -> Any:
        if isinstance(column, str):
            raise at_user_line(KeyError("Feature %s is not in features dictionary." % column))
        return super()._transformed(column, state_manager)


class _Transformer:
    """Features, and what columns make of them, each once."""

    def __init__(self, columns_to_tensors: Dict[Any, Any]) -> None:
        self._builder = _Builder(columns_to_tensors)

    def transform(self, feature_column: Any) -> Any:
        """The values of a column."""
        return self._builder.get(feature_column)


def of_rank(value: Any, rank: int, name: str) -> Any:
    """A tensor with its inner dimensions flattened, or with one of size 1 added, so that it has this rank."""
    sparse = isinstance(value, SparseTensor)
    given = value.get_shape().ndims
    if given is None or given == rank:
        return value
    if given > rank:
        return _inner_flatten(value, rank)
    if given + 1 < rank:
        raise at_user_line(ValueError("Rank of column %s is %d: it must be at least %d to become %d." % (name, given, rank - 1, rank)))
    if sparse:
        return sparse_reshape(value, array_ops.concat([value.dense_shape, [1]], 0))
    return array_ops.expand_dims(value, -1)


def weights(name: str, shape: Any, initializer: Any, trainable: bool, collections: Any, checkpoint: Any = None, tensor_name: Any = None) -> Any:
    """A variable of the model, which may begin as a tensor of a checkpoint."""
    made = model_variable(name, shape=shape, dtype=dtypes.float32, initializer=initializer, trainable=trainable, collections=collections)
    if checkpoint is not None:
        from millrace.train import checkpoint_utils

        checkpoint_utils.init_from_checkpoint(checkpoint, {tensor_name: made})
    return made


def parts_of(variable: Any) -> Any:
    """The variables that a variable is made of."""
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


def checked_combiner(combiner: str) -> str:
    """ValueError unless it is one."""
    if combiner not in ("sum", "mean", "sqrtn"):
        raise at_user_line(ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum', got %s" % combiner))
    return combiner


def check_both_or_none(checkpoint: Any, tensor_name: Any) -> None:
    """ValueError where a checkpoint is given without a name, or a name without a checkpoint."""
    if (checkpoint is None) != (tensor_name is None):
        raise at_user_line(ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."))
