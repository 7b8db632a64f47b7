# SPDX-License-Identifier: Apache-2.0
"""Columns of classes as learned rows, of a table of their own or of one that several share."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, Callable, Dict, List, Optional, Sequence

from millrace.feature_column.base import CategoricalColumn, IdsAndWeights, NumbersAndLengths, _CategoricalColumn, buckets_of
from millrace.feature_column.categorical import WeightedCategoricalColumn
from millrace.feature_column.features import sequence_lengths
from millrace.feature_column.serialization import by_name
from millrace.feature_column.styles import Dense, SequenceDense, no_sequence, only_sequence
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, add_to_collection, get_collection, get_default_graph, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import init_ops
from millrace.ops.sparse_lookup import safe_embedding_lookup_sparse
from millrace.ops.variable_scope import get_variable
from millrace.ops.variables import PartitionedVariable


def _begun(table: Any, checkpoint: Optional[str], tensor_name: Optional[str]) -> Any:
    """A variable that begins as a tensor of a checkpoint, where one is given."""
    if checkpoint is not None:
        from millrace.train import checkpoint_utils

        parts = list(table) if isinstance(table, PartitionedVariable) else table
        checkpoint_utils.init_from_checkpoint(checkpoint, {tensor_name: parts})
    return table


class _Rows(Dense, SequenceDense):
    """A learned row for each class; of several classes their mean, sum, or sum divided by the root of their number."""

    _source = "categorical_column"
    _suffix: str
    categorical_column: Any
    dimension: int
    combiner: str
    max_norm: Optional[float]

    @property
    def name(self) -> str:
        """That of the classes, as embedding."""
        return self.categorical_column.name + self._suffix

    @property
    def variable_shape(self) -> TensorShape:
        """The length of a row."""
        return TensorShape([self.dimension])

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The classes."""
        return transformation_cache.get(self.categorical_column, state_manager)

    def _table(self, state_manager: Any) -> Any:
        """The variable that has a row for each class."""
        raise NotImplementedError("%s._table" % type(self).__name__)

    def _looked_up(self, pair: IdsAndWeights, state_manager: Any) -> Tensor:
        table = self._table(state_manager)
        return safe_embedding_lookup_sparse(table, pair.id_tensor, pair.weight_tensor, self.combiner, name="%s_weights" % self.name, max_norm=self.max_norm)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Tensor:
        """The rows."""
        no_sequence(self, "embedding_column", transformation_cache)
        return self._looked_up(transformation_cache.classes(self.categorical_column, state_manager), state_manager)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> NumbersAndLengths:
        """The rows of each step."""
        only_sequence(self, "embedding_column", transformation_cache)
        pair = transformation_cache.classes(self.categorical_column, state_manager)
        return NumbersAndLengths(self._looked_up(pair, state_manager), sequence_lengths(pair.id_tensor))


@by_name
class EmbeddingColumn(  # type: ignore[misc]
    _Rows,
    namedtuple(
        "EmbeddingColumn", ("categorical_column", "dimension", "combiner", "initializer", "ckpt_to_load_from", "tensor_name_in_ckpt", "max_norm", "trainable")
    ),
):
    """Rows of a table of its own."""

    _suffix = "_embedding"

    def create_state(self, state_manager: Any) -> None:
        """Makes the table."""
        state_manager.create_variable(
            self,
            name="embedding_weights",
            shape=(buckets_of(self.categorical_column), self.dimension),
            dtype=dtypes.float32,
            trainable=self.trainable,
            use_resource=True,
            initializer=self.initializer,
        )

    def _table(self, state_manager: Any) -> Any:
        table = state_manager.get_variable(self, name="embedding_weights")
        return _begun(table, self.ckpt_to_load_from, self.tensor_name_in_ckpt)


class _SharedEmbeddingColumn(  # type: ignore[misc]
    _Rows,
    namedtuple(
        "_SharedEmbeddingColumn",
        (
            "categorical_column",
            "dimension",
            "combiner",
            "initializer",
            "shared_embedding_collection_name",
            "ckpt_to_load_from",
            "tensor_name_in_ckpt",
            "max_norm",
            "trainable",
        ),
    ),
):
    """Rows of a table that a collection of the graph holds: what tf.feature_column.shared_embedding_columns makes, for input_layer."""

    _suffix = "_shared_embedding"

    @property
    def _var_scope_name(self) -> str:
        return self.shared_embedding_collection_name

    @property
    def _is_v2_column(self) -> bool:
        return False

    def create_state(self, state_manager: Any) -> None:
        """Makes the table, unless a column that shares it has made it."""
        wanted = [buckets_of(self.categorical_column), self.dimension]
        there = get_collection(self.shared_embedding_collection_name)
        advice = (
            "Suggested fix A: Choose a unique name for this collection. Suggested fix B: Do not add any variables to this collection. "
            "The feature_column library already adds a variable under the hood."
        )
        if len(there) > 1:
            raise at_user_line(ValueError("Collection %s can only contain one variable. %s" % (there, advice)))
        if there and there[0].get_shape().as_list() != wanted:
            raise at_user_line(
                ValueError(
                    "Shared embedding collection %s contains variable %s of unexpected shape %s. Expected shape is %s. %s"
                    % (self.shared_embedding_collection_name, there[0].name, there[0].get_shape(), wanted, advice)
                )
            )
        if not there:
            made = state_manager.create_variable(self, "embedding_weights", wanted, dtypes.float32, self.trainable, initializer=self.initializer)
            add_to_collection(self.shared_embedding_collection_name, _begun(made, self.ckpt_to_load_from, self.tensor_name_in_ckpt))

    def _table(self, state_manager: Any) -> Any:
        self.create_state(state_manager)
        return get_collection(self.shared_embedding_collection_name)[0]


class SharedEmbeddingColumnCreator:
    """Makes columns that share a table, and has the table of each graph."""

    def __init__(
        self,
        dimension: int,
        initializer: Any,
        ckpt_to_load_from: Optional[str],
        tensor_name_in_ckpt: Optional[str],
        num_buckets: int,
        trainable: bool,
        name: str = "shared_embedding_column_creator",
    ) -> None:
        self.dimension, self._initializer, self._num_buckets, self._trainable, self._name = dimension, initializer, num_buckets, trainable, name
        self._checkpoint, self._tensor_name = ckpt_to_load_from, tensor_name_in_ckpt
        self._tables: Dict[Any, Any] = {}

    def __call__(self, categorical_column: Any, combiner: str, max_norm: Optional[float]) -> "SharedEmbeddingColumn":
        """A column with these rows."""
        return SharedEmbeddingColumn(categorical_column, self, combiner, max_norm)

    @property
    def embedding_weights(self) -> Any:
        """The table of the default graph."""
        graph = get_default_graph()
        if graph not in self._tables:
            made = get_variable(self._name, (self._num_buckets, self.dimension), dtypes.float32, self._initializer, trainable=self._trainable)
            self._tables[graph] = _begun(made, self._checkpoint, self._tensor_name)
        return self._tables[graph]


def _only_layers(column: Any) -> ValueError:
    return ValueError(
        "SharedEmbeddingColumns are not supported in `linear_model` or `input_layer`. Please use `DenseFeatures` or `LinearModel` instead. Given: %s"
        % (column,)
    )


class SharedEmbeddingColumn(  # type: ignore[misc]
    _Rows, namedtuple("SharedEmbeddingColumn", ("categorical_column", "shared_embedding_column_creator", "combiner", "max_norm"))
):
    """Rows of a table that a SharedEmbeddingColumnCreator has: what shared_embedding_columns_v2 makes, for layers."""

    _suffix = "_shared_embedding"

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The length of a row."""
        return self.shared_embedding_column_creator.dimension

    @property
    def _is_v2_column(self) -> bool:
        return True

    def _table(self, state_manager: Any) -> Any:
        return self.shared_embedding_column_creator.embedding_weights

    def _looked_up(self, pair: IdsAndWeights, state_manager: Any) -> Tensor:
        with name_scope(None, self.name):
            return super()._looked_up(pair, state_manager)

    @property
    def _parse_example_spec(self) -> Dict[str, Any]:
        raise at_user_line(_only_layers(self))

    def _transform_feature(self, inputs: Any) -> Any:
        raise at_user_line(_only_layers(self))

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> Any:
        raise at_user_line(_only_layers(self))

    def _get_sequence_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Optional[bool] = None) -> Any:
        raise at_user_line(_only_layers(self))

    def _get_config(self) -> Dict[str, Any]:
        raise at_user_line(NotImplementedError("A column that shares its table cannot be written down alone: %s" % (self,)))


# ---- what makes them ----


def _checked_initializer(dimension: Optional[int], ckpt_to_load_from: Any, tensor_name_in_ckpt: Any, initializer: Any, of: str = "") -> Callable[..., Any]:
    """The initializer of rows, or the default one. ValueError where something is wrong with the arguments."""
    if dimension is None or dimension < 1:
        raise at_user_line(ValueError("Invalid dimension %s." % dimension))
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise at_user_line(ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."))
    if initializer is not None and not callable(initializer):
        raise at_user_line(ValueError("initializer must be callable if specified. %s" % of))
    return initializer or init_ops.truncated_normal_initializer(0.0, 1 / math.sqrt(dimension))


def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Classes as learned rows, which may begin as those of a checkpoint."""
    of = "Embedding of column_name: %s" % getattr(categorical_column, "name", None)
    initializer = _checked_initializer(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer, of)
    return EmbeddingColumn(categorical_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)


def _shared_name(columns: Sequence[Any], kind: type, name: Optional[str]) -> str:
    """What columns' common table is called, `name` where it is given. ValueError where they cannot have one."""
    ordered = sorted(columns, key=lambda column: column.name)
    first, *others = (c.categorical_column if isinstance(c, WeightedCategoricalColumn) else c for c in ordered)
    if not isinstance(ordered[0], kind):
        raise at_user_line(
            ValueError("All categorical_columns must be subclasses of %s. Given: %s, of type: %s" % (kind.__name__, ordered[0], type(ordered[0])))
        )
    for column in others:
        if not isinstance(column, type(first)):
            raise at_user_line(
                ValueError(
                    "To use shared_embedding_column, all categorical_columns must have the same type, or be weighted_categorical_column "
                    "of the same type. Given column: %s of type: %s does not match given column: %s of type: %s" % (first, type(first), column, type(column))
                )
            )
        if buckets_of(column) != buckets_of(first):
            raise at_user_line(
                ValueError(
                    "To use shared_embedding_column, all categorical_columns must have the same number of buckets. Given column: %s "
                    "with buckets: %s does not match column: %s with buckets: %s" % (first, buckets_of(first), column, buckets_of(column))
                )
            )
    return name or "_".join(column.name for column in ordered) + "_shared_embedding"


def shared_embedding_columns(
    categorical_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: Optional[str] = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
) -> List[_SharedEmbeddingColumn]:
    """Classes of several columns as learned rows of one table, which a collection holds."""
    initializer = _checked_initializer(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer)
    collection = _shared_name(categorical_columns, _CategoricalColumn, shared_embedding_collection_name)
    return [
        _SharedEmbeddingColumn(c, dimension, combiner, initializer, collection, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)
        for c in categorical_columns
    ]


def shared_embedding_columns_v2(
    categorical_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: Optional[str] = None,
    ckpt_to_load_from: Optional[str] = None,
    tensor_name_in_ckpt: Optional[str] = None,
    max_norm: Optional[float] = None,
    trainable: bool = True,
) -> List[SharedEmbeddingColumn]:
    """Classes of several columns as learned rows of one table, for layers."""
    initializer = _checked_initializer(dimension, ckpt_to_load_from, tensor_name_in_ckpt, initializer)
    name = _shared_name(categorical_columns, CategoricalColumn, shared_embedding_collection_name)
    buckets = buckets_of(categorical_columns[0])
    creator = SharedEmbeddingColumnCreator(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, buckets, trainable, name)
    return [creator(column, combiner, max_norm) for column in categorical_columns]
