# SPDX-License-Identifier: Apache-2.0
"""Functions for Dataset.apply that keep something from one element to the next: groups, states, what was seen; mixtures of data sets."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np

from millrace.data import components, structure
from millrace.data.dataset import Dataset, _dataset, _int64, _seeds
from millrace.data.functions import Function, with_state
from millrace.framework import dtypes
from millrace.framework.arguments import only
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import DatasetSpec, TensorSpec
from millrace.ops import array_ops, gen_ops, math_ops, random_ops

_Transformation = Callable[[Dataset], Dataset]
_SCALAR, _KEY = TensorShape([]), TensorSpec([], dtypes.int64)


def _int64_scalar(returned: Any) -> Tensor:
    made = convert_to_tensor(returned)
    if not made.dtype.is_integer or not made.shape.is_compatible_with(_SCALAR):
        raise at_user_line(ValueError("`key_func` and `window_size_func` must return a single tf.int64 scalar, got %r" % (made,)))
    return math_ops.cast(made, dtypes.int64)


def _key(returned: Any) -> Tensor:
    made = convert_to_tensor(returned)
    if made.dtype != dtypes.int64 or not made.shape.is_compatible_with(_SCALAR):
        raise at_user_line(ValueError("`key_func` must return a single tf.int64 tensor. Got type=%s and shape=%s" % (made.dtype, made.shape)))
    return made


def group_by_window(key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: Any = None, window_size_func: Any = None) -> _Transformation:
    """Elements of one key_func(element) in windows of window_size (or window_size_func(key)), each made a data set by
    reduce_func(key, window); what is left at the end is a window too."""
    if (window_size is None) == (window_size_func is None):
        raise at_user_line(ValueError("Must pass either `window_size` or `window_size_func`."))
    size_of = window_size_func or (lambda key: convert_to_tensor(window_size, dtypes.int64))

    def apply(dataset: Dataset) -> Dataset:
        key = dataset._function(key_func, "Dataset_key", _int64_scalar)
        size = Function(size_of, "Dataset_window_size", _KEY, _int64_scalar)
        reduced = Function(reduce_func, "Dataset_reduce_window", (_KEY, DatasetSpec(dataset.element_spec)), _dataset)
        made: Dataset = reduced.returned
        return made._same(
            gen_ops.group_by_window_dataset(dataset._variant, key.captured, reduced.captured, size.captured, key.name, reduced.name, size.name, *made._spec)
        )

    return apply


class Reducer:
    """A state of the elements of a key: init_func(key) begins it, reduce_func(state, element) goes on, finalize_func(state) is the result."""

    def __init__(self, init_func: Any, reduce_func: Any, finalize_func: Any) -> None:
        self.init_func, self.reduce_func, self.finalize_func = init_func, reduce_func, finalize_func


def group_by_reducer(key_func: Any, reducer: Reducer) -> _Transformation:
    """The result of a reducer for each key_func(element), in the order of the keys."""
    if not isinstance(reducer, Reducer):
        raise at_user_line(ValueError("`reducer` must be an instance of Reducer."))

    def apply(dataset: Dataset) -> Dataset:
        key = dataset._function(key_func, "Dataset_key", _key)
        init = Function(reducer.init_func, "Dataset_init", _KEY, components.returned)
        reduced, state = with_state(reducer.reduce_func, "Dataset_reduce", components.specs_of(init.returned), dataset.element_spec, components.returned)
        final = Function(reducer.finalize_func, "Dataset_finalize", state, components.returned)
        made = components.specs_of(final.returned)
        functions = (key, init, reduced, final)
        given = [f.captured for f in functions] + [f.name for f in functions]
        variant = gen_ops.group_by_reducer_dataset(dataset._variant, *given, *components.flat(made))  # type: ignore[arg-type,call-arg]
        return Dataset(variant, made)

    return apply


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Any,
    bucket_batch_sizes: Any,
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> _Transformation:
    """Batches of elements of similar lengths, padded to the longest of them (pad_to_bucket_boundary: to the bucket's)."""
    boundaries, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
    if len(sizes) != len(boundaries) + 1:
        raise at_user_line(ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1"))

    def bucket_of(*element: Any) -> Tensor:
        length = math_ops.cast(element_length_func(*element), dtypes.int32)
        mins = np.array([np.iinfo(np.int32).min] + boundaries, np.int32)
        maxs = np.array(boundaries + [np.iinfo(np.int32).max], np.int32)
        inside = gen_ops.logical_and(gen_ops.less_equal(mins, length), gen_ops.less(length, maxs))
        return math_ops.reduce_min(array_ops.where(inside))

    def window_size(bucket: Tensor) -> Tensor:
        return convert_to_tensor(np.array(sizes, np.int64))[bucket]

    def apply(dataset: Dataset) -> Dataset:
        def batched(bucket: Tensor, window: Dataset) -> Dataset:
            size = window_size(bucket)
            if no_padding:
                return window.batch(size, drop_remainder=drop_remainder)
            shapes = padded_shapes if padded_shapes is not None else dataset.output_shapes
            if pad_to_bucket_boundary:
                limits = np.array(boundaries, np.int64)
                fits = gen_ops.less(bucket, convert_to_tensor(np.int64(len(boundaries))))
                from millrace.ops import check_ops
                from millrace.framework.graph import control_dependencies

                check = check_ops.assert_equal(fits, True, message="When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries).")
                with control_dependencies([check] if check is not None else []):
                    limit = convert_to_tensor(limits)[bucket] - 1
                shapes = structure.mapped(lambda s: _limited(TensorShape(s), limit), shapes)
            return window.padded_batch(size, shapes, padding_values, drop_remainder=drop_remainder)

        return dataset.apply(group_by_window(bucket_of, batched, window_size_func=window_size))

    return apply


def _limited(shape: TensorShape, limit: Tensor) -> Any:
    """The shape with a limit where it says nothing."""
    dims = shape.as_list()
    if None not in dims:
        return shape
    return array_ops.stack([limit if d is None else convert_to_tensor(np.int64(d)) for d in dims])


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> _Transformation:
    """What scan_func(state, element) -> (state, output) gives as outputs."""

    def apply(dataset: Dataset) -> Dataset:
        state = components.values(initial_state)

        def pair(returned: Any) -> Any:
            if not isinstance(returned, (tuple, list)) or len(returned) != 2:
                raise at_user_line(TypeError("The scan function must return a pair comprising the new state and the output value."))
            return components.returned(tuple(returned))

        f, _ = with_state(scan_func, "Dataset_scan", components.specs_of(state), dataset.element_spec, pair, lambda returned: returned[0])
        output = components.specs_of(f.returned[1])
        flat_state = [components.encoded(v) for v in structure.flatten(state)]
        types, shapes = components.flat(output)
        return Dataset(gen_ops.scan_dataset(dataset._variant, flat_state, f.captured, f.name, types, shapes, preserve_cardinality=True), output)

    return apply


def take_while(predicate: Callable[..., Any]) -> _Transformation:
    """The elements before the first of which the predicate says False."""

    def apply(dataset: Dataset) -> Dataset:
        f = dataset._function(predicate, "Dataset_take_while", lambda returned: convert_to_tensor(returned, dtypes.as_dtype("bool")))
        return dataset._same(gen_ops.take_while_dataset(dataset._variant, f.captured, f.name, *dataset._spec))

    return apply


def unique() -> _Transformation:
    """The elements (scalars of int32, int64 or string) that have not been before."""

    def apply(dataset: Dataset) -> Dataset:
        if dataset.output_types not in (dtypes.int32, dtypes.int64, dtypes.string):
            raise at_user_line(
                TypeError(
                    "`tf.data.experimental.unique()` only supports inputs with a single component of type int32, int64 or string, got %s"
                    % (dataset.output_types,)
                )
            )
        return dataset._same(gen_ops.unique_dataset(dataset._variant, *dataset._spec))

    return apply


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> _Transformation:
    """shuffle, then repeat, with a buffer that repetitions share; they do not mix."""

    def apply(dataset: Dataset) -> Dataset:
        first, second = _seeds(seed)
        return dataset._same(
            gen_ops.shuffle_and_repeat_dataset(dataset._variant, _int64(buffer_size), first, second, _int64(-1 if count is None else count), *dataset._spec)
        )

    return apply


def ignore_errors(log_warning: bool = False) -> _Transformation:
    """Without the elements that cannot be made."""
    only(False, log_warning=log_warning)
    return lambda dataset: dataset._same(gen_ops.ignore_errors_dataset(dataset._variant, output_types=dataset._spec[0], output_shapes=dataset._spec[1]))


# ---- mixtures ----


def choose_from_datasets(datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = False) -> Dataset:
    """For each number of choice_dataset the next element of the data set of that number, while there are any."""
    parts: List[Dataset] = list(datasets)
    if not parts:
        raise at_user_line(ValueError("`datasets` must not be empty."))
    if choice_dataset.output_types != dtypes.int64 or not TensorShape(choice_dataset.output_shapes).is_compatible_with(_SCALAR):
        raise at_user_line(TypeError("`choice_dataset` must be a dataset of scalar `tf.int64` tensors."))
    first = parts[0]
    specs = structure.flatten(first.element_spec)
    for other in parts[1:]:
        if not components.same_types(other.element_spec, first.element_spec):
            raise at_user_line(TypeError("Datasets to mix must have the same type, got %s and %s" % (first.output_types, other.output_types)))
        specs = [components.common(a, b) for a, b in zip(specs, structure.flatten(other.element_spec))]
    packed = structure.pack(first.element_spec, specs)
    variant = gen_ops.directed_interleave_dataset(
        choice_dataset._variant, [p._variant for p in parts], *components.flat(packed), stop_on_empty_dataset=stop_on_empty_dataset
    )
    return Dataset(variant, packed)


class RandomDataset(Dataset):
    """Random integers from 0 to 2^32 - 1, without end; with a seed always the same ones."""

    def __init__(self, seed: Optional[int] = None) -> None:
        first, second = _seeds(seed)
        super().__init__(gen_ops.random_dataset(first, second, [dtypes.int64], [_SCALAR]), _KEY)


def sample_from_datasets(datasets: Any, weights: Any = None, seed: Optional[int] = None, stop_on_empty_dataset: bool = False) -> Dataset:
    """Elements of data sets chosen at random, by weights (numbers, a tensor, or a data set of them)."""
    parts = list(datasets)
    if not parts:
        raise at_user_line(ValueError("`datasets` must not be empty."))
    if isinstance(weights, Dataset):
        logits = weights.map(lambda *w: gen_ops.log(math_ops.cast(w if len(w) > 1 else w[0], dtypes.float32)))
        drawn = Dataset.zip((logits, RandomDataset(seed).batch(2))).map(lambda row, key: _drawn(row, key))
    else:
        weights = [1.0 / len(parts)] * len(parts) if weights is None else weights
        if not isinstance(weights, Tensor):
            if len(weights) != len(parts):
                raise at_user_line(ValueError("`weights` must be a vector of length `len(datasets)`."))
            if not np.issubdtype(np.asarray(weights).dtype, np.floating):
                raise at_user_line(TypeError("`weights` must be a tensor of `tf.float32` or `tf.float64` elements, got %r" % (weights,)))
            weights = np.asarray(weights, np.float32)
            parts = [p for p, w in zip(parts, weights) if w > 0]  # nobody waits for the end of one that is never chosen
            weights = weights[weights > 0]
            if not parts:
                raise at_user_line(ValueError("one of the `weights` must be above 0"))
        row = gen_ops.log(convert_to_tensor(weights, dtypes.float32))
        drawn = RandomDataset(seed).batch(2).map(lambda key: _drawn(row, key))
    return choose_from_datasets(parts, drawn, stop_on_empty_dataset)


def _drawn(logits: Tensor, key: Tensor) -> Tensor:
    """An index, by the logits of a vector."""
    return gen_ops.stateless_multinomial(array_ops.expand_dims(logits, 0), 1, key)[0, 0]


def rejection_resample(class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: Optional[int] = None) -> _Transformation:
    """Pairs of a class and an element, in which classes have the target's frequencies; frequencies before are initial_dist, or are counted."""

    def apply(dataset: Dataset) -> Dataset:
        target = convert_to_tensor(target_dist, dtypes.float32)

        def with_class(*element: Any) -> Any:
            return convert_to_tensor(class_func(*element)), element if len(element) > 1 else element[0]

        pairs = dataset.map(with_class)
        if initial_dist is not None:
            initial = convert_to_tensor(initial_dist, dtypes.float32)
            counted = pairs.map(lambda cls, element: (cls, element, initial))
        else:

            def count(state: Any, element: Any) -> Any:
                cls = element[0]
                seen = state + array_ops.one_hot(cls, target.shape[0].value, dtype=dtypes.float32)
                return seen, (cls, element[1], seen / math_ops.reduce_sum(seen))

            counted = pairs.apply(scan(array_ops.ones_like(target), lambda state, element: count(state, element)))

        def accepted(cls: Any, element: Any, frequencies: Any) -> Any:
            del element  # it was decided before
            ratio = target / gen_ops.maximum(frequencies, np.float32(np.finfo(np.float32).tiny))
            return gen_ops.less(random_ops.random_uniform([], seed=seed), (ratio / math_ops.reduce_max(ratio))[cls])

        return counted.filter(accepted).map(lambda cls, element, _: (cls, element))

    return apply
