# SPDX-License-Identifier: Apache-2.0
"""tf.RaggedTensor."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from millrace.framework import dispatch, dtypes, session
from millrace.framework.composite_tensors import CompositeTensor, SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.graph_elements import session_for
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, math_ops
from millrace.ops.ragged import segments
from millrace.ops.ragged.value import RaggedTensorValue


def is_ragged(value: Any) -> bool:
    """Whether it is a ragged tensor, or the value of one."""
    return isinstance(value, (RaggedTensor, RaggedTensorValue))


class RaggedTensor(CompositeTensor):
    """A tensor with rows of different lengths: `values` one after the other, and `row_splits`, where each row begins and ends.

    values may be ragged in turn: then there are as many ragged dimensions as levels. The first dimension is the number of rows, the second
    has no length of its own. Make one with tf.ragged.constant or RaggedTensor.from_row_splits and its like.
    """

    dispatches = True  # functions of tensors hand calls with it to ops/ragged (framework/dispatch.py)

    def __init__(
        self, values: Any, row_splits: Any, cached_row_lengths: Any = None, cached_value_rowids: Any = None, cached_nrows: Any = None, internal: bool = False
    ) -> None:
        if not internal:
            raise at_user_line(
                ValueError("RaggedTensor constructor is private; please use one of the factory methods instead (e.g., RaggedTensor.from_row_lengths())")
            )
        if not isinstance(row_splits, Tensor):
            raise at_user_line(TypeError("Row-partitioning argument must be a Tensor, got %r" % (row_splits,)))
        if not isinstance(values, (Tensor, RaggedTensor)):
            raise at_user_line(TypeError("values must be a Tensor or RaggedTensor, got %r" % (values,)))
        row_splits.get_shape().assert_has_rank(1)
        if any(not isinstance(cached, (Tensor, type(None))) for cached in (cached_row_lengths, cached_value_rowids, cached_nrows)):
            raise at_user_line(TypeError("Cached value must be a Tensor or None."))
        self._values, self._row_splits, self._lengths = values, row_splits, cached_row_lengths
        self._rowids, self._nrows = cached_value_rowids, cached_nrows

    def _components(self) -> Any:
        return (self.flat_values, *self.nested_row_splits)

    def _of_components(self, parts: Any) -> Any:
        if all(hasattr(p, "graph") for p in parts):
            return RaggedTensor.from_nested_row_splits(parts[0], parts[1:], validate=False)
        from millrace.ops.ragged.value import RaggedTensorValue

        made = parts[0]
        for splits in reversed(parts[1:]):
            made = RaggedTensorValue(made, splits)
        return made

    # ---- factories ----

    @classmethod
    def _of(cls, values: Any, splits: Tensor, rowids: Any = None, nrows: Any = None) -> "RaggedTensor":
        values = convert_to_tensor_or_ragged(values)
        if isinstance(values, RaggedTensor) and values.row_splits.dtype.base_dtype != splits.dtype.base_dtype:
            values, splits = values.with_row_splits_dtype(dtypes.int64), math_ops.cast(splits, dtypes.int64)
            rowids = None if rowids is None else math_ops.cast(rowids, dtypes.int64)
            nrows = None if nrows is None else math_ops.cast(nrows, dtypes.int64)
        if isinstance(values, Tensor):
            values.get_shape().with_rank_at_least(1)
        splits.set_shape([None])
        return cls(values, splits, None, rowids, nrows, True)

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: Optional[str] = None, validate: bool = True) -> "RaggedTensor":
        """Row i is values[row_splits[i]:row_splits[i + 1]]; row_splits [rows + 1] begin with 0 and end with the number of values."""
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise at_user_line(ValueError("row_splits tensor may not be empty."))
        with name_scope(name, "RaggedFromRowSplits", [values, row_splits]):
            values = convert_to_tensor_or_ragged(values, name="values")
            splits = segments.partition(row_splits, "row_splits")
            if splits.get_shape()[0].value == 0:
                raise at_user_line(ValueError("row_splits tensor may not be empty."))
            if validate:
                splits = _checked(
                    [
                        check_ops.assert_equal(splits[0], _like(0, splits), message="Arguments to from_row_splits do not form a valid RaggedTensor: zero"),
                        check_ops.assert_non_negative(
                            segments.splits_to_lengths(splits), message="Arguments to from_row_splits do not form a valid RaggedTensor: monotonic"
                        ),
                        check_ops.assert_equal(
                            splits[-1],
                            _rows_of(values, splits),
                            message="Arguments to from_row_splits do not form a valid RaggedTensor: the last is not the number of values",
                        ),
                    ],
                    splits,
                )
            return cls._of(values, splits)

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: Optional[str] = None, validate: bool = True) -> "RaggedTensor":
        """Rows of these lengths, one after the other."""
        with name_scope(name, "RaggedFromRowLengths", [values, row_lengths]):
            values = convert_to_tensor_or_ragged(values)
            lengths = segments.partition(row_lengths, "row_lengths")
            if validate:
                lengths = _checked(
                    [
                        check_ops.assert_non_negative(lengths, message="Arguments to from_row_lengths do not form a valid RaggedTensor: negative"),
                        check_ops.assert_equal(
                            math_ops.reduce_sum(lengths),
                            _rows_of(values, lengths),
                            message="Arguments to from_row_lengths do not form a valid RaggedTensor: the sum is not the number of values",
                        ),
                    ],
                    lengths,
                )
            made = cls._of(values, segments.lengths_to_splits(lengths))
            made._lengths = lengths if lengths.dtype.base_dtype == made.row_splits.dtype.base_dtype else None
            return made

    @classmethod
    def from_value_rowids(cls, values: Any, value_rowids: Any, nrows: Any = None, name: Optional[str] = None, validate: bool = True) -> "RaggedTensor":
        """The row of each value, in ascending order; nrows where the last ones are empty."""
        with name_scope(name, "RaggedFromValueRowIds", [values, value_rowids, nrows]):
            values = convert_to_tensor_or_ragged(values)
            rowids = segments.partition(value_rowids, "value_rowids")
            kind = rowids.dtype.base_dtype
            if isinstance(nrows, (int, np.integer)) and nrows < 0:
                raise at_user_line(ValueError("Expected nrows >= 0; got %d" % nrows))
            known = None if nrows is None else constant_value(convert_to_tensor(nrows))
            last = constant_value(rowids)
            if known is not None and last is not None and last.size and last[-1] >= known:
                raise at_user_line(ValueError("Expected nrows >= value_rowids[-1] + 1; got nrows=%d, value_rowids[-1]=%d" % (known, last[-1])))
            if nrows is None:
                nrows = math_ops.reduce_max(array_ops.concat([rowids, _like([-1], rowids)], 0)) + 1
            nrows = math_ops.cast(nrows, kind)
            nrows.get_shape().assert_has_rank(0)
            if validate:
                what = "Arguments to from_value_rowids do not form a valid RaggedTensor: "
                rowids = _checked(
                    [
                        check_ops.assert_equal(array_ops.shape(rowids, out_type=kind)[0], _rows_of(values, rowids), message=what + "not one for each value"),
                        check_ops.assert_non_negative(rowids, message=what + "negative"),
                        check_ops.assert_non_negative(rowids[1:] - rowids[:-1], message=what + "not in order"),
                        check_ops.assert_less(rowids, nrows, message=what + "rows beyond nrows"),
                    ],
                    rowids,
                )
            return cls._of(values, segments.segment_ids_to_row_splits(rowids, nrows), rowids, nrows)

    @classmethod
    def from_row_starts(cls, values: Any, row_starts: Any, name: Optional[str] = None, validate: bool = True) -> "RaggedTensor":
        """Where each row begins."""
        with name_scope(name, "RaggedFromRowStarts", [values, row_starts]):
            values = convert_to_tensor_or_ragged(values)
            starts = segments.partition(row_starts, "row_starts")
            splits = array_ops.concat([starts, array_ops.reshape(_rows_of(values, starts), [1])], 0)
            return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_row_limits(cls, values: Any, row_limits: Any, name: Optional[str] = None, validate: bool = True) -> "RaggedTensor":
        """Where each row ends."""
        with name_scope(name, "RaggedFromRowLimits", [values, row_limits]):
            values = convert_to_tensor_or_ragged(values)
            limits = segments.partition(row_limits, "row_limits")
            return cls.from_row_splits(values, array_ops.concat([array_ops.zeros([1], limits.dtype.base_dtype), limits], 0), validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: Optional[str] = None
    ) -> "RaggedTensor":
        """Rows of one length."""
        with name_scope(name, "RaggedFromUniformRowLength", [values]):
            values = convert_to_tensor_or_ragged(values)
            length = math_ops.cast(uniform_row_length, dtypes.int64)
            if nrows is None:
                nrows = gen_ops.floor_div(_rows_of(values, length), gen_ops.maximum(length, _like(1, length)))
            splits = math_ops.range(math_ops.cast(nrows, dtypes.int64) + 1) * length
            return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_nested_row_splits(cls, flat_values: Any, nested_row_splits: Any, name: Optional[str] = None, validate: bool = True) -> "RaggedTensor":
        """A level for each of the splits, the outermost first."""
        return cls._nested(flat_values, nested_row_splits, "nested_row_splits", lambda v, s: cls.from_row_splits(v, s, validate=validate), name)

    @classmethod
    def from_nested_row_lengths(cls, flat_values: Any, nested_row_lengths: Any, name: Optional[str] = None, validate: bool = True) -> "RaggedTensor":
        """A level for each of the lengths, the outermost first."""
        return cls._nested(flat_values, nested_row_lengths, "nested_row_lengths", lambda v, s: cls.from_row_lengths(v, s, validate=validate), name)

    @classmethod
    def from_nested_value_rowids(
        cls, flat_values: Any, nested_value_rowids: Any, nested_nrows: Any = None, name: Optional[str] = None, validate: bool = True
    ) -> "RaggedTensor":
        """A level for each of the row numbers, the outermost first."""
        if isinstance(nested_value_rowids, Tensor):
            raise at_user_line(TypeError("nested_value_rowids must be a list of Tensors"))
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else nested_nrows
        if isinstance(counts, Tensor):
            raise at_user_line(TypeError("nested_nrows must be a list of Tensors"))
        if len(counts) != len(nested_value_rowids):
            raise at_user_line(ValueError("nested_nrows must have the same length as nested_value_rowids"))
        return cls._nested(
            flat_values,
            list(zip(nested_value_rowids, counts)),
            "nested_value_rowids",
            lambda v, s: cls.from_value_rowids(v, s[0], s[1], validate=validate),
            name,
        )

    @classmethod
    def _nested(cls, flat_values: Any, levels: Any, what: str, make: Any, name: Optional[str]) -> Any:
        if isinstance(levels, Tensor):
            raise at_user_line(TypeError("%s must be a list of Tensors" % what))
        with name_scope(name, "RaggedFromNested", [flat_values]):
            made = flat_values
            for level in reversed(levels):
                made = make(made, level)
            return made

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1, name: Optional[str] = None, row_splits_dtype: Any = dtypes.int64
    ) -> "RaggedTensor":
        """The rows of a tensor: whole, or of `lengths`, or without the `padding` at their ends."""
        from millrace.ops.ragged import conversions

        return conversions.from_tensor(tensor, lengths, padding, ragged_rank, name, row_splits_dtype)

    @classmethod
    def from_sparse(cls, st_input: Any, name: Optional[str] = None, row_splits_dtype: Any = dtypes.int64) -> "RaggedTensor":
        """The rows of a sparse matrix, whose elements must stand at the left of their rows."""
        from millrace.ops.ragged import conversions

        return conversions.from_sparse(st_input, name, row_splits_dtype)

    @classmethod
    def _from_variant(
        cls,
        variant: Tensor,
        dtype: Any,
        output_ragged_rank: int,
        input_ragged_rank: Optional[int] = None,
        name: Optional[str] = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> "RaggedTensor":
        """The ragged tensors in a tensor of variants (such as _to_variant gives), whose dimensions become the outer ones.

        Each has input_ragged_rank ragged dimensions (as many as that leaves unless it is given), the result output_ragged_rank of dtype. ValueError where
        these do not fit the rank of `variant`.
        """
        rank = variant.get_shape().ndims
        inner = -1 if input_ragged_rank is None else input_ragged_rank
        if rank is not None and inner != -1 and output_ragged_rank != inner + rank:
            raise at_user_line(
                ValueError("output_ragged_rank must be equal to input_ragged_rank + variant.shape.ndims, got %d, %d and %d" % (output_ragged_rank, inner, rank))
            )
        with name_scope(name, "RaggedFromVariant", [variant]):
            splits, values = gen_ops.ragged_tensor_from_variant(variant, inner, output_ragged_rank, dtype, Tsplits=row_splits_dtype)
            return cls.from_nested_row_splits(values, splits, validate=False)

    def _to_variant(self, batched_input: bool = False, name: Optional[str] = None) -> Tensor:
        """It as one variant, or with batched_input each of its rows as one."""
        with name_scope(name, "RaggedToVariant", [self.flat_values]):
            return gen_ops.ragged_tensor_to_variant(self.nested_row_splits, self.flat_values, batched_input)

    # ---- what it is made of ----

    values = property(lambda self: self._values, doc="The rows one after the other: a tensor, or ragged.")
    row_splits = property(lambda self: self._row_splits, doc="Where each row begins, and where the last one ends.")
    dtype = property(lambda self: self._values.dtype, doc="The type of its elements.")
    op = property(lambda self: self.flat_values.op, doc="The operation that makes its values.")
    graph = property(lambda self: self._row_splits.graph, doc="Its graph.")
    name = property(lambda self: self.flat_values.name, doc="The name of its values.")

    @property
    def shape(self) -> TensorShape:
        """What is known of it: None for ragged dimensions."""
        splits = self._row_splits.get_shape()
        rows = None if splits.ndims is None or splits[0].value is None else splits[0].value - 1
        inner = self._values.shape
        return TensorShape([rows, None]).concatenate(inner[1:]) if inner.ndims is not None else TensorShape(None)

    def get_shape(self) -> TensorShape:
        """What is known of its shape."""
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """How many levels of rows there are."""
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0)

    @property
    def flat_values(self) -> Tensor:
        """The values of the innermost level."""
        inner: Any = self
        while isinstance(inner, RaggedTensor):
            inner = inner.values
        return inner

    def _levels(self) -> List["RaggedTensor"]:
        levels, inner = [], self  # type: List[RaggedTensor], Any
        while isinstance(inner, RaggedTensor):
            levels.append(inner)
            inner = inner.values
        return levels

    @property
    def nested_row_splits(self) -> Tuple[Tensor, ...]:
        """The splits of each level, the outermost first."""
        return tuple(level.row_splits for level in self._levels())

    def nested_row_lengths(self, name: Optional[str] = None) -> Tuple[Tensor, ...]:
        """The row lengths of each level."""
        with name_scope(name, "RaggedNestedRowLengths", [self.flat_values]):
            return tuple(level.row_lengths() for level in self._levels())

    def nested_value_rowids(self, name: Optional[str] = None) -> Tuple[Tensor, ...]:
        """The row numbers of each level."""
        with name_scope(name, "RaggedNestedValueRowIds", [self.flat_values]):
            return tuple(level.value_rowids() for level in self._levels())

    def value_rowids(self, name: Optional[str] = None) -> Tensor:
        """The row of each value."""
        if self._rowids is None:
            with name_scope(name, "RaggedValueRowIds", [self._row_splits]):
                return segments.row_splits_to_segment_ids(self._row_splits)
        return self._rowids

    def nrows(self, out_type: Any = None, name: Optional[str] = None) -> Tensor:
        """How many rows there are."""
        with name_scope(name, "RaggedNRows", [self._row_splits]):
            count = self._nrows if self._nrows is not None else segments.count_of(self._row_splits)
            return count if out_type is None else math_ops.cast(count, out_type)

    def row_starts(self, name: Optional[str] = None) -> Tensor:
        """Where each row begins."""
        with name_scope(name, "RaggedRowStarts", [self._row_splits]):
            return self._row_splits[:-1]

    def row_limits(self, name: Optional[str] = None) -> Tensor:
        """Where each row ends."""
        with name_scope(name, "RaggedRowLimits", [self._row_splits]):
            return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: Optional[str] = None) -> Any:
        """The lengths of the rows along an axis."""
        axis = segments.positive_axis(axis, self.shape.ndims)
        if axis == 0:
            return self.nrows()
        with name_scope(name, "RaggedRowLengths", [self._row_splits]):
            if axis == 1:
                return self._lengths if self._lengths is not None else segments.splits_to_lengths(self._row_splits)
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            size = array_ops.shape(self._values, out_type=self._row_splits.dtype.base_dtype)
            return self.with_values(array_ops.ones(size[: axis - 1], self._row_splits.dtype.base_dtype) * size[axis - 1])

    def bounding_shape(self, axis: Any = None, name: Optional[str] = None, out_type: Any = None) -> Tensor:
        """The smallest shape that holds it; of the axes alone, where they are given."""
        kind = dtypes.as_dtype(out_type) if out_type is not None else self._row_splits.dtype.base_dtype
        with name_scope(name, "RaggedBoundingBox", [self.flat_values]):
            sizes = [self.nrows()] + [math_ops.reduce_max(array_ops.concat([n, _like([0], n)], 0)) for n in self.nested_row_lengths()]
            whole = array_ops.concat([array_ops.stack([math_ops.cast(s, kind) for s in sizes]), array_ops.shape(self.flat_values, out_type=kind)[1:]], 0)
            return whole if axis is None else array_ops.gather(whole, axis)

    # ---- the same rows of others ----

    def with_values(self, new_values: Any) -> "RaggedTensor":
        """Other values in the same rows."""
        new_values = convert_to_tensor_or_ragged(new_values)
        new_values.shape.with_rank_at_least(1)
        return RaggedTensor._of(new_values, self._row_splits, self._rowids, self._nrows)

    def with_flat_values(self, new_values: Any) -> "RaggedTensor":
        """Other values at the innermost level."""
        inner = self._values.with_flat_values(new_values) if isinstance(self._values, RaggedTensor) else new_values
        return self.with_values(inner)

    def with_row_splits_dtype(self, dtype: Any) -> "RaggedTensor":
        """With splits of another type."""
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64):
            raise at_user_line(ValueError("dtype must be int32 or int64, got %s" % kind.name))
        if self._row_splits.dtype.base_dtype == kind:
            return self
        inner = self._values.with_row_splits_dtype(kind) if isinstance(self._values, RaggedTensor) else self._values
        return RaggedTensor(inner, math_ops.cast(self._row_splits, kind), internal=True)

    def to_tensor(self, default_value: Any = None, name: Optional[str] = None, shape: Any = None) -> Tensor:
        """As a dense tensor, with default_value (0, "" or False) behind the ends of rows."""
        with name_scope(name, "RaggedToTensor", [self.flat_values]):
            if default_value is None:
                default_value = array_ops.zeros([], self.dtype.base_dtype)
            default = convert_to_tensor(default_value, self.dtype.base_dtype)
            of_default, of_values = default.get_shape().ndims, self.flat_values.get_shape().ndims
            if of_default is not None and of_values is not None:
                default.get_shape().with_rank_at_most(of_values - 1)
                inner = self.flat_values.get_shape()[of_values - of_default :]
                if 1 not in default.get_shape().as_list():
                    default.get_shape().assert_is_compatible_with(inner)
            wanted: Any = shape if isinstance(shape, Tensor) else -1
            if isinstance(shape, (TensorShape, list, tuple)):
                wanted = [-1 if d is None else d for d in (shape.as_list() if isinstance(shape, TensorShape) else shape)]
            made = gen_ops.ragged_tensor_to_tensor(
                math_ops.cast(convert_to_tensor(wanted), dtypes.int64),
                self.flat_values,
                default,
                list(self.nested_row_splits),
                row_partition_types=["ROW_SPLITS"] * self.ragged_rank,
            )
            if shape is None:
                made.set_shape(
                    self.shape if self.shape.ndims is None else TensorShape([self.shape[0]] + [None] * self.ragged_rank).concatenate(self.flat_values.shape[1:])
                )
            return made

    def to_list(self) -> Any:
        """Raises ValueError, as in graphs of 1.15: there are no values yet."""
        raise at_user_line(
            ValueError(
                "RaggedTensor.to_list() is only supported in eager mode; in graph mode, evaluate the RaggedTensor first and then use RaggedTensorValue.to_list()."
            )
        )

    def to_sparse(self, name: Optional[str] = None) -> SparseTensor:
        """As a sparse tensor with all of its elements."""
        from millrace.ops.ragged import conversions

        return conversions.to_sparse(self, name)

    def __getitem__(self, key: Any) -> Any:
        from millrace.ops.ragged import getitem

        return getitem.ragged_getitem(self, key)

    def eval(self, session: Any = None, feed_dict: Any = None) -> RaggedTensorValue:
        """Its value in a session."""
        return session_for(self.graph, session).run(self, feed_dict)

    def consumers(self) -> List[Any]:
        """The operations that read a part of it."""
        found: List[Any] = []
        for part in [self.flat_values, *self.nested_row_splits]:
            found += [c for c in part.consumers() if c not in found]
        return found

    @property
    def _type_spec(self) -> Any:
        from millrace.framework.type_spec import RaggedTensorSpec

        return RaggedTensorSpec.from_value(self)

    def __repr__(self) -> str:
        return "tf.RaggedTensor(values=%s, row_splits=%s)" % (self._values, self._row_splits)

    def __iter__(self) -> Any:
        raise at_user_line(TypeError("'RaggedTensor' object is not iterable while the graph is built: use tf.map_fn."))

    def __bool__(self) -> bool:
        raise at_user_line(TypeError("RaggedTensor may not be used as a boolean."))


_PAIRS = ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
for _name in [*_PAIRS, *("r" + n for n in _PAIRS), "lt", "le", "gt", "ge", "neg", "abs", "invert"]:
    setattr(RaggedTensor, "__%s__" % _name, dispatch.operator("__%s__" % _name))


def _like(value: Any, other: Tensor) -> Tensor:
    return convert_to_tensor(value, other.dtype.base_dtype)


def _rows_of(values: Any, like: Tensor) -> Tensor:
    kind = like.dtype.base_dtype
    return values.nrows(kind) if isinstance(values, RaggedTensor) else array_ops.shape(values, out_type=kind)[0]


def _checked(checks: Any, tensor: Tensor) -> Tensor:
    with control_dependencies([c for c in checks if c is not None]):
        return array_ops.identity(tensor)


def convert_to_tensor_or_ragged(value: Any, dtype: Any = None, preferred_dtype: Any = None, name: Optional[str] = None) -> Any:
    """A tensor or a ragged tensor."""
    if isinstance(value, RaggedTensor):
        if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
            raise at_user_line(
                ValueError("Tensor conversion requested dtype %s for RaggedTensor with dtype %s: %r" % (dtypes.as_dtype(dtype).name, value.dtype.name, value))
            )
        return value
    if isinstance(value, RaggedTensorValue):
        with name_scope(name, "ConvertToTensorOrRaggedTensor"):
            flat = convert_to_tensor(value.flat_values, dtype, name="flat_values", preferred_dtype=preferred_dtype)
            return RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits, validate=False)
    return convert_to_tensor(value, dtype, name=name, preferred_dtype=preferred_dtype)


convert_to_tensor_or_ragged_tensor = convert_to_tensor_or_ragged


class RaggedTensorType:
    """What tf.map_fn is told of rows of any length: their type, and how many ragged dimensions all of them together have."""

    def __init__(self, dtype: Any, ragged_rank: int, row_splits_dtype: Any = dtypes.int64) -> None:
        self.dtype, self.ragged_rank, self.row_splits_dtype = dtypes.as_dtype(dtype), ragged_rank, dtypes.as_dtype(row_splits_dtype)


def match_row_splits_dtypes(*tensors: Any, return_dtype: bool = False) -> Any:
    """The tensors, with row splits of one type: int64 where some are int64 and some int32."""
    kinds = {t.row_splits.dtype.base_dtype for t in tensors if isinstance(t, RaggedTensor)}
    kind = dtypes.int64 if len(kinds) > 1 else kinds.pop() if kinds else dtypes.int64
    made = tuple(t.with_row_splits_dtype(kind) if isinstance(t, RaggedTensor) else t for t in tensors)
    return (kind, made) if return_dtype else made


def _fetch(ragged: RaggedTensor) -> Any:
    def contract(parts: Any) -> Any:
        made = parts[0]
        for splits in reversed(parts[1:]):
            made = RaggedTensorValue(made, splits)
        return made

    return [ragged.flat_values, *ragged.nested_row_splits], contract


def _feed(ragged: RaggedTensor, value: Any) -> Any:
    parts = [ragged.flat_values, *ragged.nested_row_splits]
    if not isinstance(value, RaggedTensorValue):
        raise at_user_line(TypeError("A RaggedTensor is fed with a tf.ragged.RaggedTensorValue, got %r" % (value,)))
    if value.ragged_rank != ragged.ragged_rank:
        raise at_user_line(ValueError("A RaggedTensor of %d ragged dimensions is fed with a value of %d" % (ragged.ragged_rank, value.ragged_rank)))
    return list(zip(parts, [value.flat_values, *value.nested_row_splits]))


session.register_session_run_conversion_functions(RaggedTensor, _fetch, _feed, lambda ragged: [ragged.flat_values, *ragged.nested_row_splits])
