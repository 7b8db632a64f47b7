# SPDX-License-Identifier: Apache-2.0
"""Values of several tensors (sparse, ragged, of a program's own, TensorArrays) in branches and loops, which know of tensors alone."""

from __future__ import annotations

from typing import Any, List, NoReturn, Sequence

from millrace.framework import nest
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape, shape_list
from millrace.framework.type_spec import RaggedTensorSpec, SparseTensorSpec, TensorSpec, TypeSpec, type_spec_from_value
from millrace.ops.tensor_array_ops import TensorArray


def is_composite(leaf: Any) -> bool:
    """Whether a leaf of a structure is more than one tensor, or stands for one."""
    return isinstance(leaf, TensorArray) or nest.is_sequence_or_composite(leaf)


def pieces(leaf: Any) -> List[Any]:
    """The tensors of a leaf."""
    return [leaf.flow] if isinstance(leaf, TensorArray) else nest.flatten(leaf, expand_composites=True)


def flat(structure: Any) -> List[Any]:
    """The tensors of a structure."""
    return [piece for leaf in nest.flatten(structure) for piece in pieces(leaf)]


def row_numbers(structure: Any) -> List[int]:
    """Which tensors of a structure are the indices of IndexedSlices. Branches return them as int64, whatever they are in each."""
    found, at = [], 0
    for leaf in nest.flatten(structure):
        if isinstance(leaf, IndexedSlices):
            found.append(at + 1)
        at += len(pieces(leaf))
    return found


def packed(structure: Any, tensors: Any) -> Any:
    """The structure with other tensors."""
    rest = list(tensors)
    leaves: List[Any] = []
    for leaf in nest.flatten(structure):
        count = len(pieces(leaf))
        taken, rest = rest[:count], rest[count:]
        if isinstance(leaf, TensorArray):
            leaves.append(leaf._with_flow(taken[0]))
        else:
            leaves.append(nest.pack_sequence_as(leaf, taken, expand_composites=True) if is_composite(leaf) else taken[0])
    return nest.pack_sequence_as(structure, leaves)


# ---- what of the shapes of a loop's variables stays ----


def invariants(shapes: Any, structure: Any) -> Any:
    """Sizes for each tensor of a structure: -1 for a size that may change, or for all of a tensor; None for one that stays as it begins."""
    leaves = nest.flatten(structure)
    if shapes is None and not any(nest.is_sequence_or_composite(leaf) for leaf in leaves):
        return None
    given = [None] * len(leaves)
    if shapes is not None:
        nest.assert_same_structure(structure, shapes)
        given = nest.flatten(shapes)
    made: List[Any] = []
    for leaf, shape in zip(leaves, given):
        if isinstance(leaf, TensorArray):
            if isinstance(shape, TensorShape) and not says_as_much(leaf.flow.shape, shape):
                _refuse_start(leaf.flow, shape)
            made.append(None)
        elif shape is not None and not isinstance(shape, (TensorShape, TypeSpec)):
            raise at_user_line(ValueError("`shapes` must be a (possibly nested) list of shapes. Got %r" % (shape,)))
        elif isinstance(shape, TypeSpec):
            rough = TensorSpec(None, shape.dtype) if isinstance(shape, TensorSpec) else shape  # what a tensor starts with is check_starts'
            if not rough.is_compatible_with(leaf):
                raise at_user_line(TypeError("the shape invariant %r is not compatible with the loop variable %r" % (shape, leaf)))
            made.extend(_sizes_of(shape))
        elif is_composite(leaf):
            made.extend(_of_composite(leaf, shape))
        elif shape is None:
            made.append(None)
        else:
            made.append(_sizes(shape))
    if len(made) != len(flat(structure)):
        raise at_user_line(ValueError("%d shape invariants are given for the %d tensors of a loop" % (len(made), len(flat(structure)))))
    return made


def _sizes(shape: Any) -> Any:
    dims = shape_list(shape)
    return -1 if dims is None else dims


def _sizes_of(spec: Any) -> List[Any]:
    return [_sizes(part.shape) for part in nest.flatten(spec._component_specs, expand_composites=True)]


def _of_composite(value: Any, shape: Any) -> List[Any]:
    """The invariants of what a value is made of. That of a SparseTensor is the shape of its dense_shape, that of IndexedSlices of the values."""
    if isinstance(value, IndexedSlices):
        return _of_slices(value, shape)
    if shape is None:
        return _sizes_of(type_spec_from_value(value))
    shape = TensorShape(shape)
    if isinstance(value, SparseTensor):
        _check_start(value.dense_shape, shape)
        return _sizes_of(SparseTensorSpec(None if shape.ndims is None or shape[0].value is None else [None] * shape[0].value, value.dtype))
    if getattr(value, "dispatches", False):
        return _sizes_of(_of_ragged(value, shape))
    return _sizes_of(value._shape_invariant_to_type_spec(shape))


def _of_ragged(value: Any, shape: TensorShape) -> TypeSpec:
    if shape.ndims is not None and shape.ndims <= value.ragged_rank:
        raise at_user_line(ValueError("the shape invariant %s has too few dimensions for a ragged_rank of %d" % (shape, value.ragged_rank)))
    if shape.ndims is not None and any(d.value is not None for d in shape[1 : value.ragged_rank + 1]):
        raise at_user_line(ValueError("the shape invariant %s has a size for a ragged dimension, which must be None" % shape))
    return RaggedTensorSpec(shape, value.dtype, value.ragged_rank, value.row_splits.dtype)


def _of_slices(value: IndexedSlices, shape: Any) -> List[Any]:
    dims = None if shape is None else shape_list(shape)
    if dims is None:
        return [None] * len(pieces(value))
    _check_start(value.values, TensorShape(shape))
    return [dims, dims[:1]] + ([[len(dims)]] if value.dense_shape is not None else [])


def says_as_much(shape: TensorShape, less: TensorShape) -> bool:
    """Whether a shape says all that another one does."""
    dims, known = shape_list(shape), shape_list(less)
    return known is None or dims is not None and len(dims) == len(known) and all(k in (-1, d) for d, k in zip(dims, known))


def check_starts(tensors: Sequence[Tensor], sizes: Any) -> None:
    """Raises ValueError where a loop's variable begins with a shape that its invariant does not allow. Sizes are as of `invariants`."""
    for tensor, dims in zip(tensors, sizes or ()):
        shape = None if dims in (None, -1) else TensorShape([None if d == -1 else d for d in dims])
        if shape is not None and not says_as_much(tensor.shape, shape):
            _refuse_start(tensor, shape)


def _check_start(part: Tensor, shape: TensorShape) -> None:
    if not part.get_shape().is_compatible_with(shape):
        _refuse_start(part, shape)


def _refuse_start(part: Tensor, shape: TensorShape) -> NoReturn:
    raise at_user_line(
        ValueError(
            "The shape invariant specified for %s is not compatible with the initial shape of the loop variable. "
            "It enters the loop with shape %s, but the specified shape invariant is %s." % (part.name, part.get_shape(), shape)
        )
    )


def check_round(start: Sequence[Tensor], shapes: Sequence[TensorShape], results: Sequence[Tensor], told: Sequence[TensorShape] = ()) -> None:
    """Raises ValueError where a loop's variable has a shape after a round that says less than the one it keeps. `told` are the shapes that
    the error names as those before, where they are others."""
    for before, shape, after, entered in zip(start, shapes, results, told or shapes):
        if not says_as_much(after.shape, shape):
            raise at_user_line(
                ValueError(
                    "Input tensor '%s' enters the loop with shape %s, but has shape %s after one iteration. To allow the shape to vary across "
                    "iterations, use the `shape_invariants` argument of tf.while_loop to specify a less-specific shape." % (before.name, entered, after.shape)
                )
            )
