# SPDX-License-Identifier: Apache-2.0
"""Helpers of distributions of tf.contrib: scales as operators, shapes that parameters have together, dimensions that are filled up or moved."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.distributions.distribution import checked
from millrace.distributions.util import prefer_static_value
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, gen_ops, linalg_operators, math_ops


def _tensor(x: Any, name: str) -> Optional[Tensor]:
    return None if x is None else convert_to_tensor(x, name=name)


def _assert_diagonal(positive: bool) -> Any:
    def check(diagonal: Tensor) -> Any:
        if positive:
            return check_ops.assert_positive(diagonal, message="diagonal part must be positive")
        return check_ops.assert_none_equal(diagonal, array_ops.zeros([], diagonal.dtype), message="diagonal part must be non-zero")

    return check


def make_tril_scale(
    loc: Any = None,
    scale_tril: Any = None,
    scale_diag: Any = None,
    scale_identity_multiplier: Any = None,
    shape_hint: Any = None,
    validate_args: bool = False,
    assert_positive: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The sum of a lower triangle, a diagonal and a multiple of one, as many of them as are given, as a linear operator."""
    if scale_tril is None:
        return make_diag_scale(loc, scale_diag, scale_identity_multiplier, shape_hint, validate_args, assert_positive, name)
    with name_scope(name, "make_tril_scale", [scale_tril, scale_diag, scale_identity_multiplier]):
        tril, diag, multiple = _tensor(scale_tril, "scale_tril"), _tensor(scale_diag, "scale_diag"), _tensor(scale_identity_multiplier, "multiplier")
        tril = gen_ops.matrix_band_part(tril, -1, 0)
        diagonal = gen_ops.matrix_diag_part(tril)
        diagonal = diagonal if diag is None else diagonal + diag
        diagonal = diagonal if multiple is None else diagonal + array_ops.expand_dims(multiple, -1)
        diagonal = checked(diagonal, validate_args, _assert_diagonal(assert_positive))
        tril = gen_ops.matrix_set_diag(tril, diagonal)
    return linalg_operators.LinearOperatorLowerTriangular(tril, is_non_singular=True, is_positive_definite=assert_positive or None)


def make_diag_scale(
    loc: Any = None,
    scale_diag: Any = None,
    scale_identity_multiplier: Any = None,
    shape_hint: Any = None,
    validate_args: bool = False,
    assert_positive: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The sum of a diagonal and a multiple of one, as many of them as are given, as a linear operator of as many rows as they, loc or shape_hint say."""
    with name_scope(name, "make_diag_scale", [loc, scale_diag, scale_identity_multiplier]):
        loc, diagonal, multiple = _tensor(loc, "loc"), _tensor(scale_diag, "scale_diag"), _tensor(scale_identity_multiplier, "multiplier")
        if diagonal is None:
            if loc is None and shape_hint is None:
                raise at_user_line(ValueError("Cannot infer `event_shape` unless `loc` or `shape_hint` is specified."))
            size = array_ops.shape(loc)[-1] if shape_hint is None else shape_hint
            size = prefer_static_value(size) if isinstance(size, Tensor) else size
            dtype = multiple.dtype if multiple is not None else loc.dtype if loc is not None else dtypes.float32
            diagonal = array_ops.ones(array_ops.reshape(convert_to_tensor(size, dtypes.int32), [1]), dtype)
            diagonal = diagonal if multiple is None else diagonal * array_ops.expand_dims(multiple, -1)
        elif multiple is not None:
            diagonal = diagonal + array_ops.expand_dims(multiple, -1)
        diagonal = checked(diagonal, validate_args, _assert_diagonal(assert_positive))
    return linalg_operators.LinearOperatorDiag(diagonal, is_non_singular=True, is_self_adjoint=True, is_positive_definite=assert_positive or None)


def is_diagonal_scale(scale: Any) -> bool:
    """Whether a linear operator is diagonal. TypeError for what is none."""
    if not isinstance(scale, linalg_operators.LinearOperator):
        raise at_user_line(TypeError("Expected argument 'scale' to be instance of LinearOperator. Found: %s" % (scale,)))
    return isinstance(scale, linalg_operators.LinearOperatorDiag)


def _together(first: Any, second: Any) -> Any:
    """The shape that two broadcast to: a TensorShape where both are known, else a tensor. Each is (what is known of it, a function that makes it)."""
    if first[0].is_fully_defined() and second[0].is_fully_defined():
        return array_ops.broadcast_static_shape(first[0], second[0])
    return array_ops.broadcast_dynamic_shape(first[1](), second[1]())


def shapes_from_loc_and_scale(loc: Any, scale: Any, name: str = "shapes_from_loc_and_scale") -> Tuple[Any, Any]:
    """(batch shape, event shape) of vectors loc + scale z: TensorShapes where they are known, else tensors."""
    if loc is not None and getattr(loc, "shape", TensorShape(None)) == TensorShape([]):
        loc = None  # is of no shape of its own
    with name_scope(name, values=[loc, *scale.graph_parents]):
        event = scale.range_dimension if scale.shape.ndims is not None else None
        known: Any = TensorShape([event.value]) if event is not None and event.value is not None else None
        event_shape = known if known is not None else array_ops.reshape(scale.range_dimension_tensor(), [1])
        batch = scale.batch_shape, scale.batch_shape_tensor
        if loc is None:
            return (batch[0] if batch[0].is_fully_defined() else batch[1]()), event_shape
        loc = convert_to_tensor(loc, name="loc")
        if loc.shape.ndims is not None and known is not None and loc.shape[-1].value not in (None, 1, known[0].value):
            raise at_user_line(ValueError("Event size of 'scale' (%s) could not be broadcast up to that of 'loc' (%s)." % (known[0], loc.shape[-1])))
        lead = loc.shape[:-1] if loc.shape.ndims is not None else TensorShape(None)
        return _together(batch, (lead, lambda: array_ops.shape(loc)[:-1])), event_shape


def get_broadcast_shape(*tensors: Any) -> Any:
    """The shape that tensors broadcast to: a list of numbers where it is known, else a tensor."""
    shape = TensorShape([])
    for tensor in tensors:
        shape = array_ops.broadcast_static_shape(shape, tensor.shape)
    if shape.is_fully_defined():
        return shape.as_list()
    whole = array_ops.shape(tensors[0])
    for tensor in tensors[1:]:
        whole = array_ops.broadcast_dynamic_shape(whole, array_ops.shape(tensor))
    return whole


def mixture_stddev(mixture_weight_vector: Any, mean_vector: Any, stddev_vector: Any) -> Tensor:
    """[batch]: the deviations of mixtures, of the weights, means and deviations of their parts, [batch, parts] each."""
    weights, means, stddevs = (convert_to_tensor(t) for t in (mixture_weight_vector, mean_vector, stddev_vector))
    weights.shape.assert_has_rank(2)
    for what, tensor in (("means", means), ("stddevs", stddevs)):
        if not tensor.shape.is_compatible_with(weights.shape):
            raise at_user_line(ValueError("Expecting %s to have same shape as mixture weights." % what))
    middle = math_ops.reduce_sum(weights * means, -1)
    return gen_ops.sqrt(math_ops.reduce_sum(weights * (gen_ops.square(stddevs) + gen_ops.square(means)), -1) - gen_ops.square(middle))


def pad_mixture_dimensions(x: Any, mixture_distribution: Any, categorical_distribution: Any, event_ndims: int) -> Tensor:
    """x, a value for each of a batch of mixtures, with dimensions of 1 for the batch that the categories lack and for those of an event."""
    with name_scope("pad_mix_dims", values=[x]):
        whole = mixture_distribution.batch_shape_tensor()
        lacking = array_ops.size(whole) * math_ops.cast(gen_ops.equal(array_ops.size(categorical_distribution.batch_shape_tensor()), 0), dtypes.int32)
        shape = array_ops.shape(x)
        ones = array_ops.ones(array_ops.reshape(lacking, [1]), dtypes.int32)
        return array_ops.reshape(x, array_ops.concat([shape[:-1], ones, shape[-1:], array_ops.ones([event_ndims], dtypes.int32)], 0))


def pad(x: Any, axis: Any, front: bool = False, back: bool = False, value: Any = 0, count: Any = 1, name: Optional[str] = None) -> Tensor:
    """x with `count` times a value before (`front`) and after (`back`) what it has along an axis."""
    with name_scope(name, "pad", [x, value, count]):
        if not front and not back:
            raise at_user_line(ValueError("At least one of `front`, `back` must be `True`."))
        x = convert_to_tensor(x, name="x")
        rank = prefer_static_value(array_ops.rank(x))
        number = convert_to_tensor(count, dtypes.int32) * array_ops.one_hot(convert_to_tensor(axis, dtypes.int32) % rank, rank, dtype=dtypes.int32)
        none = array_ops.zeros_like(number)
        ends = array_ops.stack([number if front else none, number if back else none], -1)
        made = array_ops.pad(x, ends, constant_values=math_ops.cast(value, x.dtype))
        known = constant_value(axis), constant_value(count)
        if x.shape.ndims is not None and None not in known:
            sizes = x.shape.as_list()
            at = int(known[0]) % len(sizes)
            sizes[at] = None if sizes[at] is None else sizes[at] + (front + back) * int(known[1])
            made.set_shape(sizes)
        return made


def move_dimension(x: Any, source_idx: Any, dest_idx: Any) -> Tensor:
    """x with one dimension in another place, the others in their order."""
    x = convert_to_tensor(x, name="x")
    rank = x.shape.ndims
    known = [constant_value(i) for i in (source_idx, dest_idx)]
    if rank is not None and None not in known:
        order = [i for i in range(rank) if i != int(known[0]) % rank]
        order.insert(int(known[1]) % rank, int(known[0]) % rank)
        return array_ops.transpose(x, order)
    count = array_ops.rank(x)
    source, target = (convert_to_tensor(i, dtypes.int32) % count for i in (source_idx, dest_idx))
    every = math_ops.range(count)
    others = array_ops.boolean_mask(every, gen_ops.not_equal(every, source))
    return array_ops.transpose(x, array_ops.concat([others[:target], [source], others[target:]], 0))
