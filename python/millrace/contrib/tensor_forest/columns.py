# SPDX-License-Identifier: Apache-2.0
"""data_ops of tf.contrib.tensor_forest: tensors, or dicts of them, as the matrices of numbers that trees look at."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, sparse_math_ops, sparse_ops

DATA_FLOAT, DATA_CATEGORICAL = 0, 1
DTYPE_TO_FTYPE = {
    dtypes.string: DATA_CATEGORICAL,
    dtypes.int32: DATA_CATEGORICAL,
    dtypes.int64: DATA_CATEGORICAL,
    dtypes.float32: DATA_FLOAT,
    dtypes.float64: DATA_FLOAT,
}


class DataColumn:
    """A column of features: numbers or categories."""

    def __init__(self) -> None:
        self.name, self.original_type, self.size = "", "", 0  # type: ignore[var-annotated]

    def SerializeToString(self) -> str:
        """What the kernels read."""
        return "{name: %s original_type: %s size: %s}" % (self.name, self.original_type, self.size)


class DataColumnCollection:
    """Columns in their order."""

    def __init__(self) -> None:
        self.cols: List[DataColumn] = []

    def add(self) -> DataColumn:
        """A new one at the end."""
        self.cols.append(DataColumn())
        return self.cols[-1]

    def size(self) -> int:
        """How many there are."""
        return len(self.cols)

    def SerializeToString(self) -> str:
        """What the kernels read."""
        return "[%s]" % "".join(column.SerializeToString() for column in self.cols)


class TensorForestDataSpec:
    """The columns of a forest's input: the attribute `input_spec` of its ops."""

    def __init__(self) -> None:
        self.sparse, self.dense, self.dense_features_size = DataColumnCollection(), DataColumnCollection(), 0

    def SerializeToString(self) -> str:
        """What the kernels read."""
        return "dense_features_size: %s dense: %s sparse: %s" % (self.dense_features_size, self.dense.SerializeToString(), self.sparse.SerializeToString())


def GetColumnName(column_key: Any, col_num: int) -> Any:
    """A column's key, or its number where it has none."""
    return column_key if isinstance(column_key, str) else str(col_num)


def CastToFloat(tensor: Any) -> Any:
    """Numbers in f32; strings as the numbers of their hashes."""
    if isinstance(tensor, SparseTensor):
        return SparseTensor(tensor.indices, CastToFloat(tensor.values), tensor.dense_shape)
    if tensor.dtype.base_dtype == dtypes.string:
        return gen_ops.reinterpret_string_to_float(tensor)
    return math_ops.to_float(tensor)


def _kind(tensor: Any) -> int:
    kind = DTYPE_TO_FTYPE.get(tensor.dtype.base_dtype)
    if kind is None:
        raise at_user_line(KeyError("features of %s: want numbers (f32, f64) or categories (i32, i64, string)" % tensor.dtype.name))
    return kind


def _describe(column: DataColumn, name: Any, tensor: Any, size: Any) -> None:
    column.name, column.original_type, column.size = name, _kind(tensor), size  # type: ignore[assignment]


def _width(tensor: Tensor) -> int:
    shape = tensor.get_shape()
    if shape.ndims is None or shape.ndims < 2 or shape[1].value is None:
        raise at_user_line(ValueError("features must be matrices whose number of columns is known, got %s" % (shape,)))
    return int(shape[1].value)


def ParseDataTensorOrDict(data: Any) -> Tuple[Optional[Tensor], Optional[SparseTensor], TensorForestDataSpec]:
    """(dense features [batch, n], sparse ones, what they are): of a tensor, or of a dict of them in the order of its keys. Either may be None."""
    spec = TensorForestDataSpec()
    if not isinstance(data, dict):
        return _of_one(data, spec)
    with name_scope("ParseDataTensorOrDict"):
        columns = [(GetColumnName(key, i), data[key]) for i, key in enumerate(sorted(data, key=str))]
        return (
            _dense([c for c in columns if not isinstance(c[1], SparseTensor)], spec),
            _sparse([c for c in columns if isinstance(c[1], SparseTensor)], spec),
            spec,
        )


def _of_one(data: Any, spec: TensorForestDataSpec) -> Tuple[Optional[Tensor], Optional[SparseTensor], TensorForestDataSpec]:
    if isinstance(data, SparseTensor):
        _describe(spec.sparse.add(), "sparse_features", data, -1)
        return None, _floats(data), spec
    dense = convert_to_tensor(data)
    spec.dense_features_size = _width(dense)
    _describe(spec.dense.add(), "dense_features", dense, spec.dense_features_size)
    return _floats(dense), None, spec


def _floats(tensor: Any) -> Any:
    return tensor if tensor.dtype.base_dtype == dtypes.float32 else CastToFloat(tensor)


def _dense(columns: List[Tuple[str, Any]], spec: TensorForestDataSpec) -> Optional[Tensor]:
    parts = []
    for name, value in columns:
        tensor = convert_to_tensor(value)
        _describe(spec.dense.add(), name, tensor, _width(tensor))
        spec.dense_features_size += _width(tensor)
        parts.append(_floats(tensor))
    return array_ops.concat(parts, 1, name="concat") if parts else None


def _sparse(columns: List[Tuple[str, Any]], spec: TensorForestDataSpec) -> Optional[SparseTensor]:
    if not columns:
        return None
    kinds = [_kind(tensor) for _, tensor in columns]
    joined = sparse_math_ops.sparse_concat(1, [_floats(tensor) for _, tensor in columns])
    column = spec.sparse.add()
    column.name, column.original_type, column.size = "all_sparse", max(kinds), -1  # type: ignore[assignment]
    return joined


def ParseLabelTensorOrDict(labels: Any) -> Tensor:
    """Labels in f32: of a tensor, a sparse one (-1 where it has nothing), or a dict of them side by side."""
    if isinstance(labels, dict):
        parts: Dict[str, Any] = {key: _label(labels[key]) for key in sorted(labels)}
        if len({part.dtype.base_dtype for part in parts.values()}) > 1:
            raise at_user_line(TypeError("labels in a dict must all have one type, got %s" % {key: part.dtype.name for key, part in parts.items()}))
        joined = array_ops.concat(list(parts.values()), 1 if len(parts) > 1 else 0)
        return math_ops.to_float(joined)
    return math_ops.to_float(_label(labels))


def _label(labels: Any) -> Tensor:
    if isinstance(labels, SparseTensor):
        return sparse_ops.sparse_tensor_to_dense(labels, -1)
    return convert_to_tensor(labels)
