# SPDX-License-Identifier: Apache-2.0
"""Labeled tensors picked, joined, reshaped, reduced, multiplied and batched, by the names of their axes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Callable, Dict, List, Optional, Sequence

from millrace.contrib.labeled_tensor import core
from millrace.contrib.labeled_tensor.axes import Axes, Axis, as_axis, concat_axes
from millrace.contrib.labeled_tensor.core import AxisOrderError, LabeledTensor, convert_to_labeled_tensor
from millrace.framework import dtypes
from millrace.framework.convert import constant as _constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, control_flow_ops, functional_ops, math_ops, matrix_ops, random_ops
from millrace.train import batching


def _sizes(axes: Any) -> List[int]:
    return [-1 if axis.size is None else axis.size for axis in axes]


def _must_have(axes: Axes, names: Any, what: str) -> None:
    missing = [name for name in names if name not in axes]
    if missing:
        raise at_user_line(ValueError("%s %r are not contained in the set of axis names %r on the input labeled tensor" % (what, missing, list(axes))))


# ---- parts ----


def _place(axis: Axis, value: Any) -> Any:
    """Where labels are: a place, a slice, or a list of places."""
    if isinstance(value, list):
        return [axis.index(label) for label in value]
    if not isinstance(value, slice):
        if not isinstance(value, Hashable):
            raise at_user_line(TypeError("labels are picked by one, by a list of them or by a slice, not by %r" % (value,)))
        return axis.index(value)
    if value.step is not None:
        raise at_user_line(NotImplementedError("slicing with a step is not yet supported"))
    return slice(None if value.start is None else axis.index(value.start), None if value.stop is None else axis.index(value.stop) + 1)


def select(labeled_tensor: Any, selection: Dict[str, Any], name: Optional[str] = None) -> LabeledTensor:
    """A part by labels: {axis: a label, a list of labels, or a slice from one to another, with this}."""
    with name_scope(name, "lt_select", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        places = {}
        for axis_name, value in selection.items():
            if axis_name not in given.axes:
                raise at_user_line(ValueError("The tensor does not have an axis named %s. Its axes are: %r" % (axis_name, list(given.axes))))
            if given.axes[axis_name].labels is None:
                raise at_user_line(ValueError("The axis named %s does not have labels. The axis is: %r" % (axis_name, given.axes[axis_name])))
            places[axis_name] = _place(given.axes[axis_name], value)
        lists = [axis_name for axis_name, place in places.items() if isinstance(place, list)]
        if not lists:
            return core.slice_function(given, places, name=scope)
        if len(places) > 1:
            raise at_user_line(NotImplementedError("select does not yet support a list selection beside another one"))
        at = list(given.axes).index(lists[0])
        picked = array_ops.gather(given.tensor, _constant(places[lists[0]], dtypes.int64), axis=at, name=scope)
        return LabeledTensor(picked, [Axis(axis.name, selection[axis.name]) if i == at else axis for i, axis in enumerate(given.axes.values())])


def random_crop(labeled_tensor: Any, shape_map: Dict[str, int], seed: Optional[int] = None, name: Optional[str] = None) -> LabeledTensor:
    """A part of some size at a random place; cropped axes lose their labels."""
    with name_scope(name, "lt_random_crop", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        _must_have(given.axes, shape_map, "Selection axes")
        axes = [Axis(axis.name, shape_map[axis.name]) if axis.name in shape_map else axis for axis in given.axes.values()]
        return LabeledTensor(random_ops.random_crop(given.tensor, [len(axis) for axis in axes], seed=seed, name=scope), axes)


def boolean_mask(labeled_tensor: Any, mask: Any, name: Optional[str] = None) -> LabeledTensor:
    """What is at the places along the first axis where a mask of one axis is true."""
    with name_scope(name, "lt_boolean_mask", [labeled_tensor, mask]) as scope:
        given, where_ = convert_to_labeled_tensor(labeled_tensor), convert_to_labeled_tensor(mask)
        if len(where_.axes) > 1:
            raise at_user_line(NotImplementedError("LabeledTensor's boolean_mask currently only supports 1D masks"))
        first, own = next(iter(given.axes.values())), next(iter(where_.axes.values()))
        if first != own:
            raise at_user_line(ValueError("the first axis of the labeled tensor and the mask are not equal:\n%r\n%r" % (first, own)))
        return LabeledTensor(array_ops.boolean_mask(given.tensor, where_.tensor, name=scope), [first.name, *list(given.axes.values())[1:]])


def where(condition: Any, x: Any, y: Any, name: Optional[str] = None) -> LabeledTensor:
    """The elements of x where a condition is true, else those of y."""
    with name_scope(name, "lt_where", [condition, x, y]) as scope:
        when, first, second = map(convert_to_labeled_tensor, (condition, x, y))
        if not when.axes == first.axes == second.axes:
            raise at_user_line(ValueError("all inputs to `where` must have equal axes"))
        return LabeledTensor(array_ops.where(when.tensor, first.tensor, second.tensor, name=scope), first.axes)


# ---- several tensors ----


def _all_labeled(labeled_tensors: Sequence[Any], what: str) -> List[LabeledTensor]:
    given = [convert_to_labeled_tensor(t) for t in labeled_tensors]
    if not given:
        raise at_user_line(ValueError("%s expects at least 1 tensor" % what))
    return given


def concat(labeled_tensors: Sequence[Any], axis_name: str, name: Optional[str] = None) -> LabeledTensor:
    """Tensors behind each other along an axis; the others must be the same."""
    with name_scope(name, "lt_concat", list(labeled_tensors)) as scope:
        given = _all_labeled(labeled_tensors, "concat")
        axes = given[0].axes
        if axis_name not in axes:
            raise at_user_line(ValueError("%s not in %s" % (axis_name, list(axes))))
        shared = axes.remove(axis_name)
        for t in given[1:]:
            if t.axes.remove(axis_name) != shared:
                raise at_user_line(
                    ValueError("Mismatched shared axes: the first tensor had axes %r but this tensor has axes %r." % (shared, t.axes.remove(axis_name)))
                )
        joined = concat_axes([t.axes[axis_name] for t in given])
        tensor = array_ops.concat([t.tensor for t in given], list(axes).index(axis_name), name=scope)
        return LabeledTensor(tensor, [joined if axis.name == axis_name else axis for axis in axes.values()])


def pack(labeled_tensors: Sequence[Any], new_axis: Any, axis_position: int = 0, name: Optional[str] = None) -> LabeledTensor:
    """Tensors of the same axes side by side along a new one."""
    with name_scope(name, "lt_pack", list(labeled_tensors)) as scope:
        given = _all_labeled(labeled_tensors, "pack")
        for t in given:
            if t.axes != given[0].axes:
                raise at_user_line(ValueError("Non-identical axes. Expected %s but got %s" % (given[0].axes, t.axes)))
        axes: List[Any] = list(given[0].axes.values())
        axes.insert(axis_position, new_axis)
        return LabeledTensor(array_ops.stack([t.tensor for t in given], axis=axis_position, name=scope), axes)


def unpack(labeled_tensor: Any, axis_name: Optional[str] = None, name: Optional[str] = None) -> List[LabeledTensor]:
    """The parts along an axis, the first one unless it is given."""
    with name_scope(name, "lt_unpack", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        along = next(iter(given.axes)) if axis_name is None else axis_name
        if along not in given.axes:
            raise at_user_line(ValueError("%s not in %s" % (along, list(given.axes))))
        parts = array_ops.unstack(given.tensor, axis=list(given.axes).index(along), name=scope)
        return [LabeledTensor(part, given.axes.remove(along)) for part in parts]


# ---- shapes ----


def reshape(labeled_tensor: Any, existing_axes: Sequence[str], new_axes: Sequence[Any], name: Optional[str] = None) -> LabeledTensor:
    """Neighbouring axes as others; one of these may be a name alone."""
    with name_scope(name, "lt_reshape", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        old, names = list(existing_axes), list(given.axes)
        if not set(old) <= set(names):
            raise at_user_line(ValueError("existing_axes %r are not contained in the set of axis names %r on the input labeled tensor" % (old, names)))
        start, stop = names.index(old[0]), names.index(old[-1]) + 1
        if old != names[start:stop]:
            raise at_user_line(
                AxisOrderError(
                    "existing_axes %r are not a slice of axis names %r on the input labeled tensor. Use `transpose` or `impose_axis_order` to reorder "
                    "axes on the input explicitly." % (old, names)
                )
            )
        if sum(isinstance(axis, str) for axis in new_axes) > 1:
            raise at_user_line(
                ValueError("at most one axis in new_axes can have unknown size. All other axes must have an indicated integer size or labels: %r" % (new_axes,))
            )
        axes = list(given.axes.values())
        between = [-1 if isinstance(axis, str) else _sizes([as_axis(axis)])[0] for axis in new_axes]
        shape = _sizes(axes[:start]) + between + _sizes(axes[stop:])
        return LabeledTensor(array_ops.reshape(given.tensor, shape, name=scope), axes[:start] + list(new_axes) + axes[stop:])


def rename_axis(labeled_tensor: Any, existing_name: str, new_name: str, name: Optional[str] = None) -> LabeledTensor:
    """An axis under another name."""
    with name_scope(name, "lt_rename_axis", [labeled_tensor]) as scope:
        _must_have(labeled_tensor.axes, [existing_name], "existing_name")
        return reshape(labeled_tensor, [existing_name], [Axis(new_name, labeled_tensor.axes[existing_name].value)], name=scope)


def squeeze(labeled_tensor: Any, axis_names: Optional[Sequence[str]] = None, name: Optional[str] = None) -> LabeledTensor:
    """Without axes of size 1: all of them, or those that are named."""
    with name_scope(name, "lt_squeeze", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        names = [axis.name for axis in given.axes.values() if len(axis) == 1] if axis_names is None else list(axis_names)
        for axis_name in names:
            if axis_name not in given.axes:
                raise at_user_line(ValueError("axis %s is not in tensor axes %s" % (axis_name, given.axes)))
            if len(given.axes[axis_name]) != 1:
                raise at_user_line(ValueError("cannot squeeze axis with size greater than 1: (%s, %s)" % (axis_name, given.axes[axis_name])))
        places = [i for i, axis in enumerate(given.axes) if axis in names]
        tensor = array_ops.squeeze(given.tensor, places, name=scope) if places else array_ops.identity(given.tensor, name=scope)
        return LabeledTensor(tensor, [axis for axis in given.axes.values() if axis.name not in names])


def tile(labeled_tensor: Any, multiples: Dict[str, Any], name: Optional[str] = None) -> LabeledTensor:
    """Repeated along axes without labels."""
    with name_scope(name, "lt_tile", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        _must_have(given.axes, multiples, "tile axes")
        labeled = [axis for axis in multiples if given.axes[axis].labels is not None]
        if labeled:
            raise at_user_line(ValueError("cannot tile axes with tick labels: %r" % labeled))
        made = array_ops.tile(given.tensor, [multiples.get(axis, 1) for axis in given.axes], name=scope)
        return LabeledTensor(made, [axis.name if axis.labels is None else axis for axis in given.axes.values()])


def pad(labeled_tensor: Any, paddings: Dict[str, Any], mode: str = "CONSTANT", name: Optional[str] = None) -> LabeledTensor:
    """With more before and behind along axes: {axis: (sizes or labels before, and behind)}."""
    with name_scope(name, "lt_pad", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        _must_have(given.axes, paddings, "pad axes")
        around = [[Axis(axis, value) for value in paddings.get(axis, (0, 0))] for axis in given.axes]
        axes = [concat_axes([before, axis, behind]) if axis.name in paddings else axis for axis, (before, behind) in zip(given.axes.values(), around)]
        return LabeledTensor(array_ops.pad(given.tensor, [[len(before), len(behind)] for before, behind in around], mode, name=scope), axes)


# ---- functions of parts ----


def map_fn(fn: Callable[[LabeledTensor], LabeledTensor], labeled_tensor: Any, name: Optional[str] = None) -> LabeledTensor:
    """What a function makes of the parts along the first axis, side by side."""
    with name_scope(name, "lt_map_fn", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        first, *rest = given.axes.values()
        if given.dtype == dtypes.string:
            return pack([fn(part) for part in unpack(given)], first, name=scope)
        seen = fn(unpack(given)[0])
        made = functional_ops.map_fn(lambda t: fn(LabeledTensor(t, rest)).tensor, given.tensor, dtype=seen.dtype)
        return core.identity(LabeledTensor(made, [first, *seen.axes.values()]), name=scope)


def foldl(fn: Callable[[LabeledTensor, LabeledTensor], LabeledTensor], labeled_tensor: Any, initial_value: Any, name: Optional[str] = None) -> LabeledTensor:
    """What a function makes of a value and the parts along the first axis, one after the other."""
    with name_scope(name, "lt_foldl", [labeled_tensor, initial_value]) as scope:
        given, start = convert_to_labeled_tensor(labeled_tensor), convert_to_labeled_tensor(initial_value)
        rest = list(given.axes.values())[1:]

        def step(so_far: Any, part: Any) -> Any:
            return fn(LabeledTensor(so_far, start.axes), LabeledTensor(part, rest)).tensor

        return core.identity(LabeledTensor(functional_ops.foldl(step, given.tensor, initializer=start.tensor), start.axes), name=scope)


# ---- sums and products ----


def matmul(a: Any, b: Any, name: Optional[str] = None) -> LabeledTensor:
    """The product of matrices and vectors over the one axis that both have."""
    with name_scope(name, "lt_matmul", [a, b]) as scope:
        first, second = convert_to_labeled_tensor(a), convert_to_labeled_tensor(b)
        ranks = (len(first.axes), len(second.axes))
        if max(ranks) > 2:
            raise at_user_line(NotImplementedError("matmul currently requires inputs with rank 2 or less, but inputs have ranks %r and %r" % ranks))
        if min(ranks) == 0:
            raise at_user_line(ValueError("matmul currently requires inputs with at least rank 1, but inputs have ranks %r and %r" % ranks))
        shared = [axis for axis in first.axes if axis in second.axes]
        if len(shared) > 1:
            raise at_user_line(
                NotImplementedError(
                    "matmul does not yet support summing over multiple shared axes: %r. Use transpose and reshape to create a single shared axis to sum over."
                    % shared
                )
            )
        if not shared:
            raise at_user_line(ValueError("there must have exactly one axis in common between input to matmul: %r, %r" % (list(first.axes), list(second.axes))))
        over = shared[0]
        if first.axes[over] != second.axes[over]:
            raise at_user_line(ValueError("axis %r does not match on input arguments: %r vs %r" % (over, first.axes[over].value, second.axes[over].value)))
        axes = [axis for t in (first, second) for axis in t.axes.values() if axis.name != over]
        order = core.get_axis_order()
        names = [axis.name for axis in axes]
        if order is not None and [axis for axis in order if axis in names] != names:
            first, second, axes = second, first, axes[::-1]
        left = first.tensor if len(first.axes) == 2 else array_ops.reshape(first.tensor, [1, -1])
        right = second.tensor if len(second.axes) == 2 else array_ops.reshape(second.tensor, [-1, 1])
        turned = len(first.axes) == 2 and next(iter(first.axes)) == over, len(second.axes) == 2 and next(iter(second.axes)) != over
        made = matrix_ops.matmul(left, right, transpose_a=turned[0], transpose_b=turned[1])
        extra = [i for i, t in enumerate((first, second)) if len(t.axes) == 1]
        return LabeledTensor(array_ops.identity(array_ops.squeeze(made, extra) if extra else made, name=scope), axes)


def define_reduce_op(op_name: str, reduce_fn: Callable[..., Any]) -> Callable[..., LabeledTensor]:
    """A function of labeled tensors that reduces axes, all unless they are named; one that is given as (name, label) stays, with size 1."""

    def op(labeled_tensor: Any, axes: Any = None, name: Optional[str] = None) -> LabeledTensor:
        with name_scope(name, "lt_" + op_name, [labeled_tensor]) as scope:
            given = convert_to_labeled_tensor(labeled_tensor)
            chosen = list(given.axes) if axes is None else [axes] if isinstance(axes, (str, tuple)) else list(axes)
            kept = {axis[0]: axis[1] for axis in chosen if not isinstance(axis, str)}
            names = [axis if isinstance(axis, str) else axis[0] for axis in chosen]
            for axis in names:
                if axis not in given.axes:
                    raise at_user_line(ValueError("Axis %s not in axes %s" % (axis, given.axes)))
            places = [i for i, axis in enumerate(given.axes) if axis in names]
            reduced = reduce_fn(given.tensor, places, keepdims=True)
            between = [
                axis if axis.name not in names else Axis(axis.name, 1 if kept.get(axis.name) is None else [kept[axis.name]]) for axis in given.axes.values()
            ]
            return squeeze(LabeledTensor(reduced, between), [axis for axis in names if axis not in kept], name=scope)

    op.__name__, op.__doc__ = op_name, "tf.%s over axes, all unless they are named." % op_name
    return op


reduce_all = define_reduce_op("reduce_all", math_ops.reduce_all)
reduce_any = define_reduce_op("reduce_any", math_ops.reduce_any)
reduce_logsumexp = define_reduce_op("reduce_logsumexp", math_ops.reduce_logsumexp)
reduce_max = define_reduce_op("reduce_max", math_ops.reduce_max)
reduce_mean = define_reduce_op("reduce_mean", math_ops.reduce_mean)
reduce_min = define_reduce_op("reduce_min", math_ops.reduce_min)
reduce_prod = define_reduce_op("reduce_prod", math_ops.reduce_prod)
reduce_sum = define_reduce_op("reduce_sum", math_ops.reduce_sum)


# ---- values ----


def constant(value: Any, dtype: Any = None, axes: Any = None, name: Optional[str] = None) -> LabeledTensor:
    """A labeled constant; a number fills the axes if they have sizes."""
    with name_scope(name, "lt_constant", [value]) as scope:
        given = list(axes.values() if isinstance(axes, Axes) else axes or [])
        if any(isinstance(axis, str) for axis in given):
            return LabeledTensor(_constant(value, dtype=dtype, name=scope), given)
        known = [as_axis(axis) for axis in given]
        return LabeledTensor(_constant(value, dtype=dtype, shape=[axis.size for axis in known], name=scope), known)


def _alike(default: str, function: Callable[..., Any], labeled_tensor: Any, dtype: Any, name: Optional[str]) -> LabeledTensor:
    with name_scope(name, default, [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        return LabeledTensor(function(given.tensor, dtype, name=scope), given.axes)


def zeros_like(labeled_tensor: Any, dtype: Any = None, name: Optional[str] = None) -> LabeledTensor:
    """Zeros with the axes of a tensor."""
    return _alike("lt_zeros_like", array_ops.zeros_like, labeled_tensor, dtype, name)


def ones_like(labeled_tensor: Any, dtype: Any = None, name: Optional[str] = None) -> LabeledTensor:
    """Ones with the axes of a tensor."""
    return _alike("lt_ones_like", array_ops.ones_like, labeled_tensor, dtype, name)


def cast(labeled_tensor: Any, dtype: Any = None, name: Optional[str] = None) -> LabeledTensor:
    """The elements in another type."""
    return _alike("lt_cast", math_ops.cast, labeled_tensor, dtype, name)


def verify_tensor_all_finite(labeled_tensor: Any, message: str, name: Optional[str] = None) -> LabeledTensor:
    """The same, with an error when it is run and an element is not finite."""
    with name_scope(name, "lt_verify_tensor_all_finite", [labeled_tensor]) as scope:
        given = convert_to_labeled_tensor(labeled_tensor)
        return LabeledTensor(control_flow_ops.verify_tensor_all_finite(given.tensor, message, name=scope), given.axes)


# ---- batches ----


def _batched(default: str, function: Callable[..., Any], labeled_tensors: Sequence[Any], batch_size: int, many: bool, smaller: bool, name: Any) -> Any:
    with name_scope(name, default, list(labeled_tensors)) as scope:
        given = [convert_to_labeled_tensor(t) for t in labeled_tensors]
        made = function([t.tensor for t in given], batch_size, enqueue_many=many, allow_smaller_final_batch=smaller, name=scope)
        results = []
        for t, tensor in zip(given, made if isinstance(made, list) else [made]):
            if many and next(iter(t.axes), None) != "batch":
                raise at_user_line(
                    ValueError('When enqueue_many is True, input tensors must have an axis called "batch" as their first dimension, but axes were %s' % t.axes)
                )
            rest = list((t.axes.remove("batch") if many else t.axes).values())
            results.append(LabeledTensor(tensor, [("batch", None if smaller else batch_size), *rest]))
        return results


def batch(
    labeled_tensors: Sequence[Any],
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    allow_smaller_final_batch: bool = False,
    name: Optional[str] = None,
) -> List[LabeledTensor]:
    """tf.train.batch with an axis `batch`."""

    def call(tensors: Any, size: int, **settings: Any) -> Any:
        return batching.batch(tensors, size, num_threads=num_threads, capacity=capacity, **settings)

    return _batched("lt_batch", call, labeled_tensors, batch_size, enqueue_many, allow_smaller_final_batch, name)


def shuffle_batch(
    labeled_tensors: Sequence[Any],
    batch_size: int,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    min_after_dequeue: int = 0,
    seed: Optional[int] = None,
    allow_smaller_final_batch: bool = False,
    name: Optional[str] = None,
) -> List[LabeledTensor]:
    """tf.train.shuffle_batch with an axis `batch`."""

    def call(tensors: Any, size: int, **settings: Any) -> Any:
        return batching.shuffle_batch(tensors, size, capacity, min_after_dequeue, num_threads=num_threads, seed=seed, **settings)

    return _batched("lt_shuffle_batch", call, labeled_tensors, batch_size, enqueue_many, allow_smaller_final_batch, name)


class ReshapeCoder:
    """reshape, and the way back."""

    def __init__(self, existing_axis_names: Sequence[str], new_axes: Sequence[Any], name: Optional[str] = None) -> None:
        self._name, self._names, self._new_axes = name, existing_axis_names, new_axes
        self._existing_axes: Optional[List[Axis]] = None

    def encode(self, labeled_tensor: Any) -> LabeledTensor:
        """The tensor with new axes; the old ones must be the same each time."""
        with name_scope(self._name, "lt_reshape_encode", [labeled_tensor]) as scope:
            given = convert_to_labeled_tensor(labeled_tensor)
            made = reshape(given, self._names, self._new_axes, name=scope)
            axes = [given.axes[axis] for axis in self._names]
            if self._existing_axes not in (None, axes):
                raise at_user_line(ValueError("input axes %r do not match axes from previous method call %r" % (axes, self._existing_axes)))
            self._existing_axes = axes
            return made

    def decode(self, labeled_tensor: Any) -> LabeledTensor:
        """A tensor of the new axes with the old ones."""
        if self._existing_axes is None:
            raise at_user_line(ValueError("decode called before encode"))
        with name_scope(self._name, "lt_reshape_decode", [labeled_tensor]) as scope:
            names = [axis if isinstance(axis, str) else as_axis(axis).name for axis in self._new_axes]
            return reshape(labeled_tensor, names, self._existing_axes, name=scope)
