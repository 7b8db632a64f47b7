# SPDX-License-Identifier: Apache-2.0
"""The shape of a ragged tensor while a step runs, and broadcasting to one."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.ragged import arrays, conversions, segments
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged, is_ragged


class RaggedTensorDynamicShape:
    """The size of each dimension: a number where all rows are as long, else the length of each row (a vector).

    The partitioned dimensions come first: they begin with the number of rows and end with one of different lengths. The inner ones are a vector
    of sizes. A tensor without ragged dimensions has inner ones only.
    """

    def __init__(self, partitioned_dim_sizes: Any, inner_dim_sizes: Any, dim_size_dtype: Any = None) -> None:
        if not isinstance(partitioned_dim_sizes, (list, tuple)):
            raise at_user_line(TypeError("partitioned_dim_sizes must be a list or tuple, got %r" % (partitioned_dim_sizes,)))
        with name_scope(None, "RaggedTensorDynamicShape", [*partitioned_dim_sizes, inner_dim_sizes]):
            sizes = [convert_to_tensor(s, name="partitioned_dimension_size_%d" % i) for i, s in enumerate(partitioned_dim_sizes)]
            inner = convert_to_tensor(inner_dim_sizes, name="inner_dim_sizes")
            for axis, size in enumerate(sizes):
                if size.get_shape().ndims is None:
                    raise at_user_line(ValueError("rank of partitioned_dim_sizes[%d] is unknown" % axis))
                size.get_shape().with_rank_at_most(1)
            if sizes and sizes[0].get_shape().ndims == 1:
                raise at_user_line(ValueError("outermost partitioned dimension must be uniform"))
            if sizes and sizes[-1].get_shape().ndims == 0:
                raise at_user_line(ValueError("innermost partitioned dimension must be ragged"))
            inner.get_shape().assert_has_rank(1)
            if dim_size_dtype is None:
                kinds = {s.dtype.base_dtype for s in sizes if s.get_shape().ndims == 1} or {dtypes.int64}
                if len(kinds) > 1:
                    raise at_user_line(ValueError("partitioned_dim_sizes must have matching dtypes"))
                dim_size_dtype = kinds.pop()
            self._sizes = tuple(math_ops.cast(s, dim_size_dtype) for s in sizes)
            self._inner = math_ops.cast(inner, dim_size_dtype)

    def __repr__(self) -> str:
        return "RaggedTensorDynamicShape(partitioned_dim_sizes=%r, inner_dim_sizes=%r)" % (self._sizes, self._inner)

    @staticmethod
    def from_dim_sizes(dim_sizes: Any) -> "RaggedTensorDynamicShape":
        """Of a size (or the lengths of all rows) for each dimension."""
        with name_scope(None, "RaggedTensorDynamicShapeFromDimensionSizes", list(dim_sizes)):
            sizes = [convert_to_tensor(s, preferred_dtype=dtypes.int64, name="dim_sizes") for s in dim_sizes]
            if any(s.get_shape().ndims not in (0, 1) for s in sizes):
                raise at_user_line(ValueError("Each dim_size must be a scalar or a vector"))
            split = max([i + 1 for i, s in enumerate(sizes) if s.get_shape().ndims == 1] + [0])
            return RaggedTensorDynamicShape(sizes[:split], sizes[split:])

    @classmethod
    def from_tensor(cls, rt_input: Any, dim_size_dtype: Any = None) -> "RaggedTensorDynamicShape":
        """Of a tensor, ragged or not."""
        with name_scope(None, "RaggedTensorDynamicShapeFromTensor", []):
            value = convert_to_tensor_or_ragged(rt_input)
            if not isinstance(value, RaggedTensor):
                return cls([], array_ops.shape(value), dim_size_dtype)
            return cls((value.nrows(), *value.nested_row_lengths()), array_ops.shape(value.flat_values)[1:], dim_size_dtype)

    partitioned_dim_sizes = property(lambda self: self._sizes, doc="The sizes of the dimensions up to the last ragged one.")
    inner_dim_sizes = property(lambda self: self._inner, doc="The sizes of the dimensions behind the ragged ones: a vector.")
    num_partitioned_dimensions = property(lambda self: len(self._sizes), doc="How many dimensions there are up to the last ragged one.")
    num_inner_dimensions = property(lambda self: self._inner.get_shape()[0].value, doc="How many there are behind it; None where that is not known.")
    dim_size_dtype = property(lambda self: self._inner.dtype, doc="The type of the sizes.")

    @property
    def rank(self) -> Optional[int]:
        """How many dimensions there are; None where that is not known."""
        return None if self.num_inner_dimensions is None else len(self._sizes) + self.num_inner_dimensions

    def dimension_size(self, axis: int) -> Tensor:
        """The size of a dimension: a number, or the lengths of the rows."""
        if not isinstance(axis, int):
            raise at_user_line(TypeError("axis must be an integer"))
        return self._sizes[axis] if axis < len(self._sizes) else self._inner[axis - len(self._sizes)]

    def is_ragged(self, axis: int) -> bool:
        """Whether the rows of a dimension may be of different lengths."""
        if not isinstance(axis, int):
            raise at_user_line(TypeError("axis must be an integer"))
        if axis < 0:
            raise at_user_line(ValueError("Negative axis values are not supported"))
        if self.rank is not None and axis >= self.rank:
            raise at_user_line(ValueError("Expected axis=%s < rank=%s" % (axis, self.rank)))
        return 0 < axis < len(self._sizes) and self._sizes[axis].get_shape().ndims == 1

    def num_slices_in_dimension(self, axis: int) -> Tensor:
        """How many slices there are at a depth, all rows together."""
        if axis < 0:
            return convert_to_tensor(1, self.dim_size_dtype)
        if self.is_ragged(axis):
            return math_ops.reduce_sum(self._sizes[axis])
        return self.dimension_size(axis) * self.num_slices_in_dimension(axis - 1)

    def with_dim_size_dtype(self, dtype: Any) -> "RaggedTensorDynamicShape":
        """With sizes of another type."""
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64):
            raise at_user_line(ValueError("dtype must be int32 or int64"))
        return self if self.dim_size_dtype == kind else RaggedTensorDynamicShape(self._sizes, self._inner, kind)

    def broadcast_to_rank(self, rank: int) -> "RaggedTensorDynamicShape":
        """With dimensions of one in front."""
        if self.rank is None:
            raise at_user_line(ValueError("Unable to broadcast: self.rank is unknown"))
        more = rank - self.rank
        if more < 0:
            raise at_user_line(ValueError("Unable to broadcast: rank=%d must be greater than self.rank=%d." % (rank, self.rank)))
        if more == 0:
            return self
        if self._sizes:
            return RaggedTensorDynamicShape((1,) * more + self._sizes, self._inner)
        return RaggedTensorDynamicShape([], array_ops.concat([array_ops.ones([more], self.dim_size_dtype), self._inner], 0), self.dim_size_dtype)

    def broadcast_dimension(self, axis: int, lengths: Any) -> "RaggedTensorDynamicShape":
        """With one dimension as wide as `lengths` says (a number, or one for each row), if it fits; else the step fails."""
        lengths = math_ops.cast(convert_to_tensor(lengths, name="lengths"), self.dim_size_dtype)
        if lengths.get_shape().ndims is None:
            raise at_user_line(ValueError("lengths must have a known rank."))
        if lengths.get_shape().ndims > 1:
            raise at_user_line(ValueError("lengths must be a scalar or vector"))
        uniform = lengths.get_shape().ndims == 0
        have, one = self.dimension_size(axis), convert_to_tensor(1, self.dim_size_dtype)
        if self.is_ragged(axis):
            fits = gen_ops.equal(lengths, one) if uniform else _all_equal(lengths, have)
        elif uniform:
            fits = gen_ops.logical_or(gen_ops.logical_or(gen_ops.equal(lengths, one), gen_ops.equal(have, one)), gen_ops.equal(have, lengths))
        else:
            fits = gen_ops.equal(have, one)
        what = ["Unable to broadcast: dimension size mismatch in dimension", axis, "lengths=", lengths, "dim_size=", have]
        with control_dependencies([control_flow_ops.Assert(fits, what, summarize=10)]):
            if self.is_ragged(axis):
                return RaggedTensorDynamicShape(self._sizes, array_ops.identity(self._inner))
            if axis < len(self._sizes):
                return self._with_partitioned(axis, lengths)
            before, behind = self._inner[: axis - len(self._sizes)], self._inner[axis - len(self._sizes) + 1 :]
            if uniform:
                wide = array_ops.where(gen_ops.equal(have, one), lengths, have)
                return RaggedTensorDynamicShape(self._sizes, array_ops.concat([before, [wide], behind], 0), self.dim_size_dtype)
            if axis == 0:
                raise at_user_line(ValueError("Unable to broadcast: outermost dimension must be uniform."))
            uniform_ones = tuple(self._inner[i] for i in range(axis - len(self._sizes)))
            return RaggedTensorDynamicShape((*self._sizes, *uniform_ones, lengths), behind, self.dim_size_dtype)

    def _with_partitioned(self, axis: int, lengths: Tensor) -> "RaggedTensorDynamicShape":
        have, one = self.dimension_size(axis), convert_to_tensor(1, self.dim_size_dtype)
        sizes = list(self._sizes[:axis])
        if lengths.get_shape().ndims == 0:
            repeats = array_ops.where(gen_ops.equal(have, one), lengths, one)
            lengths = array_ops.where(gen_ops.equal(have, one), lengths, have)
            splits = array_ops.stack([array_ops.zeros([], self.dim_size_dtype), self.num_slices_in_dimension(axis)])
        else:
            splits, repeats = math_ops.range(array_ops.size(lengths, out_type=self.dim_size_dtype) + 1), lengths
        sizes.append(lengths)
        for size in self._sizes[axis + 1 :]:
            if size.get_shape().ndims == 0:
                sizes.append(size)
                splits = splits * size
            else:
                sizes.append(segments.repeat_ranges(size, splits, repeats))
                splits = array_ops.gather(segments.lengths_to_splits(size), splits)
        return RaggedTensorDynamicShape(sizes, self._inner, self.dim_size_dtype)


def _all_equal(a: Tensor, b: Tensor) -> Tensor:
    """Whether vectors are equal; those of different sizes are not."""
    same_size = gen_ops.equal(array_ops.size(a), array_ops.size(b))
    count = gen_ops.minimum(array_ops.size(a), array_ops.size(b))
    return gen_ops.logical_and(same_size, math_ops.reduce_all(gen_ops.equal(a[:count], b[:count])))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> RaggedTensorDynamicShape:
    """The shape to which both broadcast."""
    for name, shape in (("shape_x", shape_x), ("shape_y", shape_y)):
        if not isinstance(shape, RaggedTensorDynamicShape):
            raise at_user_line(TypeError("%s must be a RaggedTensorDynamicShape" % name))
    if shape_x.rank is None or shape_y.rank is None:
        raise at_user_line(ValueError("Unable to broadcast: unknown rank"))
    rank = max(shape_x.rank, shape_y.rank)
    shape_x, shape_y = shape_x.broadcast_to_rank(rank), shape_y.broadcast_to_rank(rank)
    for axis in range(rank):
        shape_x = shape_x.broadcast_dimension(axis, shape_y.dimension_size(axis))
        shape_y = shape_y.broadcast_dimension(axis, shape_x.dimension_size(axis))
    return shape_x


def broadcast_to(rt_input: Any, shape: RaggedTensorDynamicShape, broadcast_inner_dimensions: bool = True) -> Any:
    """A tensor, ragged or not, with another shape; the inner dimensions may be left as they are."""
    if not isinstance(shape, RaggedTensorDynamicShape):
        raise at_user_line(TypeError("shape must be a RaggedTensorDynamicShape"))
    value = convert_to_tensor_or_ragged(rt_input)
    if shape.num_partitioned_dimensions:
        return _to_ragged_shape(value, shape, broadcast_inner_dimensions)
    if isinstance(value, RaggedTensor):
        raise at_user_line(ValueError("Incompatible with shape: ragged rank mismatch"))
    return gen_ops.broadcast_to(value, shape.inner_dim_sizes) if broadcast_inner_dimensions else value


def _to_ragged_shape(value: Any, to: RaggedTensorDynamicShape, inner_too: bool) -> RaggedTensor:
    kind = to.dim_size_dtype
    if isinstance(value, RaggedTensor) and value.row_splits.dtype.base_dtype != kind:
        raise at_user_line(
            ValueError(
                "rt_input and dst_shape have different row_split dtypes; use RaggedTensor.with_row_splits_dtype() or "
                "RaggedTensorDynamicShape.with_dim_size_dtype() to convert to a compatible dtype."
            )
        )
    ndims, rank = value.shape.ndims, to.rank
    if ndims is None or rank is None:
        raise at_user_line(ValueError("Unable to broadcast: unknown rank"))
    if ndims > rank:
        raise at_user_line(ValueError("Incompatible with shape: rank mismatch"))
    if isinstance(value, RaggedTensor) and value.ragged_rank >= to.num_partitioned_dimensions:
        raise at_user_line(ValueError("Incompatible with shape: ragged rank mismatch"))
    have = RaggedTensorDynamicShape.from_tensor(value, kind).broadcast_to_rank(rank)
    value = _of_rank(value, to)
    multiples: List[Any] = [1] * rank
    for axis in range(to.num_partitioned_dimensions):
        if not have.is_ragged(axis) and not to.is_ragged(axis):
            old, new = have.dimension_size(axis), to.dimension_size(axis)
            if constant_value(old) in (1, None) and constant_value(new) != 1:
                one = convert_to_tensor(1, kind)
                multiples[axis] = array_ops.where(gen_ops.equal(old, one), new, one)
    if any(isinstance(m, Tensor) for m in multiples):
        value = arrays.tile(value, multiples)
    if inner_too:
        wide = array_ops.concat([array_ops.shape(value.flat_values, out_type=kind)[:1], to.inner_dim_sizes], 0)
        value = value.with_flat_values(gen_ops.broadcast_to(value.flat_values, wide))
    for axis in range(to.num_partitioned_dimensions):
        if not have.is_ragged(axis) and to.is_ragged(axis):
            value = _repeated_along(value, axis, to.dimension_size(axis), kind)
    return value


def _of_rank(value: Any, to: RaggedTensorDynamicShape) -> RaggedTensor:
    """With rows of one length where the shape has partitioned dimensions, and dimensions of one in front."""
    kind, rank, inner = to.dim_size_dtype, to.rank or 0, to.num_inner_dimensions
    if value.shape.ndims < inner + 1:  # the first dimension of the flat values must be one of the partitioned ones
        dims = array_ops.concat([array_ops.ones([inner + 1 - value.shape.ndims], kind), array_ops.shape(value, out_type=kind)], 0)
        value = array_ops.reshape(value, dims)
    for _ in range(rank - value.shape.ndims):
        rows = value.nrows() if isinstance(value, RaggedTensor) else array_ops.shape(value, out_type=kind)[0]
        value = RaggedTensor.from_row_lengths(value, array_ops.reshape(rows, [1]), validate=False)
    if not isinstance(value, RaggedTensor):
        return conversions.from_tensor(value, None, None, to.num_partitioned_dimensions - 1, None, kind)
    flat: Any = value.flat_values.get_shape().ndims
    more = flat - 1 - inner
    return value.with_flat_values(conversions.from_tensor(value.flat_values, None, None, more, None, kind)) if more > 0 else value


def _repeated_along(value: Any, axis: int, repeats: Tensor, kind: Any) -> RaggedTensor:
    """A dimension of one, as often for each row as repeats say."""
    if not is_ragged(value):
        value = conversions.from_tensor(value, None, None, 1, None, kind)
    if axis > 1:
        return value.with_values(_repeated_along(value.values, axis - 1, repeats, kind))
    splits, lengths = value.row_splits, [repeats]  # type: Tensor, List[Tensor]
    levels: Tuple[Any, ...] = tuple(value._levels())[1:]
    for level in levels:
        lengths.append(segments.repeat_ranges(level.row_lengths(), splits, repeats))
        splits = array_ops.gather(level.row_splits, splits)
    return RaggedTensor.from_nested_row_lengths(segments.repeat_ranges(value.flat_values, splits, repeats), lengths, validate=False)
