# SPDX-License-Identifier: Apache-2.0
"""Columns of data frames as feature columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict

from millrace.contrib.feature_columns.base import _Dense, of_rank
from millrace.feature_column.features import _LazyBuilder
from millrace.framework import dtypes
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import math_ops


@dataclass(frozen=True)
class DataFrameColumn(_Dense):
    """A column of a data frame (Series) under a name: what it makes of the features that it is made of."""

    column_name: str
    series: Any

    def __deepcopy__(self, memo: Any) -> "DataFrameColumn":
        del memo  # series are no copies of each other
        return self

    @property
    def name(self) -> str:
        """The column's."""
        return self.column_name

    @property
    def config(self) -> Dict[str, Any]:
        """What must be parsed for it, by name."""
        base: Dict[str, Any] = self.series.required_base_features()
        return base

    @property
    def _variable_shape(self) -> TensorShape:
        return TensorShape([1])

    def _transform_feature(self, inputs: _LazyBuilder) -> Any:
        return self.series.build({name: inputs.get(name) for name in self.config})

    def _to_dnn_input_layer(self, input_tensor: Any, weight_collections: Any = None, trainable: bool = True, output_rank: int = 2) -> Any:
        del weight_collections, trainable  # it has no variables
        return of_rank(math_ops.cast(input_tensor, dtypes.float32), output_rank, self.name)

    def _to_dense_tensor(self, input_tensor: Any) -> Any:
        return self._to_dnn_input_layer(input_tensor)
