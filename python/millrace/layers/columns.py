# SPDX-License-Identifier: Apache-2.0
"""Feature columns as layers of tf.keras: they take a dict of features."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from millrace.feature_column.base import _DenseColumn, _LazyBuilder, checked_columns
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, get_collection
from millrace.layers.base import Layer
from millrace.ops import array_ops, check_ops
from millrace.ops.variable_scope import variable_scope


class _OfColumns(Layer):
    """The variables of columns are the layer's."""

    def __init__(self, feature_columns: Any, trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._columns = sorted(checked_columns(feature_columns), key=lambda column: column.name)

    def _made(self, features: Dict[str, Any], make: Any) -> List[Any]:
        """What `make` makes of each column, with variables in the scope of its name."""
        if not isinstance(features, dict):
            raise at_user_line(ValueError("We expected a dictionary here. Instead we got: %s" % (features,)))
        builder, made = _LazyBuilder(features), []
        with variable_scope(self.name, reuse=True if self.built else None, values=list(features.values())) as scope:
            for column in self._columns:
                with variable_scope(column._var_scope_name):
                    made.append(make(column, builder))
        if not self.built:
            trained = get_collection(GraphKeys.TRAINABLE_VARIABLES, scope.name + "/")
            self._trainable_weights.extend(trained)
            self._non_trainable_weights.extend(v for v in get_collection(GraphKeys.GLOBAL_VARIABLES, scope.name + "/") if v not in trained)
            self.built = True
        return made


class DenseFeatures(_OfColumns):
    """Dense columns beside each other, in the order of their names: float32 [examples, numbers of all columns]."""

    def __init__(self, feature_columns: Any, trainable: bool = True, name: Any = None, **kwargs: Any) -> None:
        super().__init__(feature_columns, trainable, name, **kwargs)
        for column in self._columns:
            if not isinstance(column, _DenseColumn):
                raise at_user_line(
                    ValueError(
                        "Items of feature_columns must be a dense column. You can wrap a categorical column with an embedding_column or "
                        "indicator_column. Given: %s" % (column,)
                    )
                )

    def __call__(self, features: Dict[str, Any], *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        """The numbers."""
        from millrace.feature_column.models import dense_rows

        return array_ops.concat(self._made(features, lambda column, builder: dense_rows(column, builder, None, self.trainable)), -1)


class SequenceFeatures(_OfColumns):
    """Columns of sequences beside each other: (float32 [examples, steps, numbers of all columns], int64 lengths)."""

    def __call__(self, features: Dict[str, Any], *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor]:  # type: ignore[override]
        """The numbers and the lengths, which must be the same for all columns."""
        from millrace.feature_column.sequence import sequence_dense

        made = self._made(features, lambda column, builder: sequence_dense(column, builder, None, self.trainable))
        lengths = made[0][1]
        same = [check_ops.assert_equal(lengths, other, message="sequences of different lengths") for _, other in made[1:]]
        with control_dependencies(same):
            return array_ops.concat([numbers for numbers, _ in made], -1), array_ops.identity(lengths)
