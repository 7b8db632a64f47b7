# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.linear_optimizer: linear models by dual coordinate ascent, columns of sparse features, and tables in several parts."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.contrib.feature_columns.dense import _RealValuedColumn
from millrace.contrib.feature_columns.sparse import _Classes
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, math_ops
from millrace.train.sdca import SdcaModel, SparseFeatureColumn, classes_of_examples, model_of_columns
from millrace.train.sharded_tables import ShardedMutableDenseHashTable as ShardedMutableDenseHashTable


class SDCAOptimizer:
    """Trains linear estimators of tf.contrib.learn by dual coordinate ascent. The feature `example_id_column` tells an example that comes again."""

    def __init__(
        self,
        example_id_column: Any,
        num_loss_partitions: int = 1,
        num_table_shards: Optional[int] = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = True,
        partitioner: Any = None,
    ) -> None:
        self._example_id_column, self._partitioner = example_id_column, partitioner
        self._options = {
            "num_loss_partitions": num_loss_partitions,
            "num_table_shards": num_table_shards,
            "symmetric_l1_regularization": symmetric_l1_regularization,
            "symmetric_l2_regularization": symmetric_l2_regularization,
            "adaptive": adaptive,
        }

    def get_name(self) -> str:
        """The class's name."""
        return "SDCAOptimizer"

    example_id_column = property(lambda self: self._example_id_column, doc="The feature that tells examples apart.")
    num_loss_partitions = property(lambda self: self._options["num_loss_partitions"], doc="How many optimizers work on the model at once.")
    num_table_shards = property(lambda self: self._options["num_table_shards"], doc="In how many tables the state of examples is.")
    symmetric_l1_regularization = property(lambda self: self._options["symmetric_l1_regularization"], doc="L1 over all examples.")
    symmetric_l2_regularization = property(lambda self: self._options["symmetric_l2_regularization"], doc="L2 over all examples.")
    adaptive = property(lambda self: self._options["adaptive"], doc="Whether examples that are far off come more often.")
    partitioner = property(lambda self: self._partitioner, doc="How weights are cut into parts while they are trained.")

    def get_train_step(
        self, columns_to_variables: Dict[Any, Any], weight_column_name: Optional[str], loss_type: str, features: Dict[Any, Any], targets: Any, global_step: Any
    ) -> Tuple[SdcaModel, Any]:
        """The model of columns of tf.contrib.layers, whose transformed features are given, and what trains it."""
        dense: List[Tuple[Any, Any]] = []
        sparse: List[Tuple[SparseFeatureColumn, Any]] = []
        for column in sorted(columns_to_variables, key=lambda column: column.key):
            variables, value = list(columns_to_variables[column]), features[column]
            if isinstance(column, _RealValuedColumn):
                dense.append((math_ops.to_float(array_ops.reshape(value, [array_ops.shape(value)[0], -1])), variables[0]))
            elif isinstance(column, _Classes):
                sparse.append((classes_of_examples(column.id_tensor(value), column.weight_tensor(value)), variables))
            else:
                raise at_user_line(ValueError("SDCAOptimizer does not support column type %s." % type(column).__name__))
        labels = math_ops.to_float(array_ops.reshape(targets, [-1]))
        options = {**self._options, "loss_type": loss_type}
        model = model_of_columns(sparse, dense, features, labels, weight_column_name, self._example_id_column, options)
        return model, model.minimize(global_step=global_step)
