# SPDX-License-Identifier: Apache-2.0
"""tf.data.Dataset."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from millrace import tf_logging
from millrace.data import components, structure
from millrace.data.functions import Function, factory, with_state
from millrace.data.iterators import Iterator
from millrace.data.of_contrib import OfContrib
from millrace.data.options import Options
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework import errors
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, control_dependencies, get_default_graph, name_scope
from millrace.framework.random_seed import op_seeds
from millrace.framework.static_values import constant_value_as_shape
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import DatasetSpec, RaggedTensorSpec, TensorSpec
from millrace.ops import array_ops, control_flow_ops, gen_ops, string_ops
from millrace.ops.dialects import either


def _int64(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.int64) if not isinstance(value, Tensor) or value.dtype == dtypes.int64 else gen_ops.cast(value, dtypes.int64)


class ShardError(ValueError, errors.InvalidArgumentError):  # type: ignore[misc, valid-type]
    """A shard that there is not. Programs before TensorFlow 1.13 expect a ValueError, those from it on what the operation said."""

    def __init__(self, message: str) -> None:
        errors.InvalidArgumentError.__init__(self, None, None, message)


def _number(value: Any) -> Optional[int]:
    return int(value) if isinstance(value, (int, np.integer)) else None


def _mapped(returned: Any) -> Any:
    if returned is None:
        raise at_user_line(TypeError("Unsupported return value from function passed to Dataset.map(): None."))
    return components.returned(returned)


def _dataset(returned: Any) -> "Dataset":
    if not isinstance(returned, Dataset):
        raise at_user_line(TypeError("The function must return a Dataset object, got %r." % (returned,)))
    return returned


def _owners(variant: Tensor) -> Dict[Tensor, Any]:
    """The data sets of a graph by their tensors."""
    return variant.graph.__dict__.setdefault("_data_sets", {})  # type: ignore[no-any-return]


def _made_of(variant: Tensor) -> List[Any]:
    """The data sets that the operation of another takes as such; functions may capture more."""
    owners, inputs, found = _owners(variant), list(variant.op.inputs), []
    for argument in variant.op.op_def.input_arg if inputs else ():
        count = len(variant.op.get_attr(argument.type_list_attr)) if argument.type_list_attr else 1
        count = variant.op.get_attr(argument.number_attr) if argument.number_attr else count
        taken, inputs = inputs[:count], inputs[count:]
        found += [owners[t] for t in taken if argument.type == dtypes.variant.as_datatype_enum and t in owners]
    return found


def _holds(variant: Tensor, op_type: str) -> bool:
    """Whether an operation of that type is among those that a data set is made by."""
    found = [variant.op]
    for operation in found:
        found += [t.op for t in operation.inputs if t.dtype == dtypes.variant and t.op not in found]
    return any(operation.type == op_type for operation in found)


class Dataset(OfContrib):
    """A sequence of elements, each a tensor or a structure of tensors. Elements are made when an iterator asks for them."""

    def __init__(self, variant: Tensor, element_spec: Any) -> None:
        self._tensor, self._element_spec = variant, element_spec
        self._given_options = Options()
        self._made_of = _made_of(variant)

    element_spec = property(lambda self: self._element_spec, doc="The type spec of each component of an element.")
    output_types = property(lambda self: components.types_of(self._element_spec), doc="The types of an element's components.")
    output_shapes = property(lambda self: components.shapes_of(self._element_spec), doc="The shapes of an element's components.")
    output_classes = property(lambda self: components.classes_of(self._element_spec), doc="The classes of an element's components.")
    _variant_tensor = property(lambda self: self._tensor)

    @property
    def _variant(self) -> Tensor:
        """Its tensor, for an op; what that makes is made of this data set, where several have the tensor (with_options)."""
        _owners(self._tensor)[self._tensor] = self
        return self._tensor

    def _inputs(self) -> List["Dataset"]:
        """The data sets that it is made of."""
        return list(self._made_of)

    def _functions(self) -> List[str]:
        """The names of the functions that it calls."""
        op = self._tensor.op
        return [op.get_attr(attr.name).name for attr in op.op_def.attr if attr.type == "func"]

    def _as_serialized_graph(self, stateful_whitelist: Any = None) -> Tensor:
        """A scalar string: a GraphDef that makes it again."""
        return gen_ops.dataset_to_graph(self._variant, stateful_whitelist=stateful_whitelist or [])

    def options(self) -> Options:
        """What `with_options` has given to it and to the data sets that it is made of."""
        made: Any = Options()
        for dataset in self._made_of:
            made = made.merge(dataset.options())
        return made.merge(self._given_options)  # type: ignore[no-any-return]

    def with_options(self, options: Options) -> "Dataset":
        """The same elements; the options are kept beside them."""
        if not isinstance(options, Options):
            raise at_user_line(TypeError("with_options takes tf.data.Options, got %r" % (options,)))
        stats = options.experimental_stats
        made = self._same(self._variant) if stats.aggregator is None else stats.aggregator._counting(self, stats.prefix or "", stats.counter_prefix or "")
        made._made_of, made._given_options = [self], options
        made.options()  # ValueError where both were given other values
        return made

    def __repr__(self) -> str:
        return "<Dataset shapes: %s, types: %s>" % (self.output_shapes, self.output_types)

    @property
    def _spec(self) -> Any:
        """The types and the shapes of the tensors of an element."""
        return components.flat(self._element_spec)

    def _as_variant_tensor(self) -> Tensor:
        return self._variant

    def _same(self, variant: Tensor) -> "Dataset":
        return Dataset(variant, self._element_spec)

    # ---- what begins a pipeline ----

    @staticmethod
    def from_tensors(tensors: Any) -> "Dataset":
        """One element: the tensors."""
        made = components.values(tensors)
        specs = components.specs_of(made)
        return Dataset(gen_ops.tensor_dataset([components.encoded(v) for v in structure.flatten(made)], components.flat(specs)[1]), specs)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> "Dataset":
        """An element for each row of the tensors."""
        made = components.values(tensors)
        rows = TensorShape(None)
        for value in structure.flatten(made):
            if not isinstance(value, Dataset) and value.shape.ndims is not None:
                if value.shape.ndims == 0:
                    raise at_user_line(ValueError("Slicing a scalar: %s has no rows." % value.name))
                rows = rows.merge_with(value.shape[:1])
        sliced = [components.encoded_rows(v) for v in structure.flatten(made)]
        specs = structure.mapped(components.row_of, components.specs_of(made))
        return Dataset(gen_ops.tensor_slice_dataset(sliced, components.flat(specs)[1]), specs)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> "Dataset":
        """An element for each slice of a sparse tensor along its first dimension: indices, values and dense_shape."""
        if not isinstance(sparse_tensor, SparseTensor):
            raise at_user_line(TypeError("`sparse_tensor` must be a `tf.SparseTensor` object."))
        indices, values, shape = sparse_tensor.indices, sparse_tensor.values, sparse_tensor.dense_shape
        rank = shape.shape[0] if shape.shape.ndims is not None else indices.shape.with_rank(2)[1]
        rest = None if rank.value is None else rank.value - 1
        return Dataset(
            gen_ops.sparse_tensor_slice_dataset(indices, values, shape),
            (TensorSpec([None, rest], dtypes.int64), TensorSpec([None], values.dtype), TensorSpec([rest], dtypes.int64)),
        )

    @staticmethod
    def range(*args: Any) -> "Dataset":
        """The numbers of Python's range, as int64."""
        if not 1 <= len(args) <= 3:
            raise at_user_line(ValueError("Invalid arguments to RangeDataset: %s" % (args,)))
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        return Dataset(gen_ops.range_dataset(_int64(start), _int64(stop), _int64(step), [dtypes.int64], [TensorShape([])]), TensorSpec([], dtypes.int64))

    @staticmethod
    def zip(datasets: Any) -> "Dataset":
        """Elements of several data sets side by side, in the structure of the data sets."""
        parts = structure.flatten(datasets)
        for part in parts:
            if not isinstance(part, Dataset):
                raise at_user_line(
                    TypeError(
                        "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects. Python `list` is not supported; "
                        "use a `tuple` instead."
                        if isinstance(part, list)
                        else "zip takes data sets, got %r." % (part,)
                    )
                )
        specs = structure.pack(datasets, [p._element_spec for p in parts])
        return Dataset(gen_ops.zip_dataset([p._variant for p in parts], *components.flat(specs)), specs)

    @staticmethod
    def list_files(file_pattern: Any, shuffle: Optional[bool] = None, seed: Optional[int] = None) -> "Dataset":
        """The names of files that match a pattern, or several, in random order unless shuffle is False. A step that finds none fails."""
        with name_scope("list_files"):
            patterns = convert_to_tensor(file_pattern, dtypes.string, "file_pattern")
            found = gen_ops.matching_files(patterns)
            message = gen_ops.add("No files matched pattern: ", string_ops.reduce_join(patterns, separator=", "))
            with control_dependencies([control_flow_ops.Assert(gen_ops.greater(array_ops.shape(found)[0], 0), [message], name="assert_not_empty")]):
                names = Dataset.from_tensor_slices(array_ops.identity(found))
            # All of them: there are no more files than that.
            return names if shuffle is False else names.shuffle(1 << 30, seed=seed)

    @staticmethod
    def from_generator(generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Any = None) -> "Dataset":
        """What a generator yields; each iteration begins a new one."""
        from millrace.data.generator import from_generator

        return from_generator(Dataset, generator, output_types, output_shapes, () if args is None else args)  # type: ignore[no-any-return]

    # ---- iterators ----

    def __iter__(self) -> Any:
        """RuntimeError: elements are had by sessions, from the iterators that the methods below make."""
        message = "__iter__() is only supported inside of tf.function or when eager execution is enabled: use make_one_shot_iterator().get_next() in sessions."
        raise at_user_line(RuntimeError(message))

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that needs no initialization. The data set must need no state: neither placeholders nor variables."""
        if self._tensor.graph is not get_default_graph():
            tf_logging.warning(
                "The data set %r was made in another graph than its iterator is made in, as where an input_fn reads one that lies outside of it. Please ensure "
                "that all datasets in the pipeline are created in the same graph as the iterator.",
                self,
            )
        name = factory(self._optimized())
        with control_dependencies(None):
            handle = gen_ops.one_shot_iterator(name, *self._spec)
        return Iterator(handle, None, self._element_spec)

    def make_initializable_iterator(self, shared_name: Optional[str] = None) -> Iterator:
        """An iterator whose initializer has to run first."""
        with control_dependencies(None):
            handle = gen_ops.iterator_v2(shared_name or "", "", *self._spec)
        return Iterator(handle, gen_ops.make_iterator(self._optimized(), handle), self._element_spec)

    def _optimized(self) -> Tensor:
        """The variant, under OptimizeDataset where its options allow elements to come as they are ready, and where something is asserted of
        the data set (assert_next): then with all that its options ask for."""
        options, made = self.options(), self._variant
        names = options._static_optimizations()
        if not _holds(made, "AssertNextDataset"):
            names = [name for name in names if name == "make_sloppy"]
        elif options.experimental_optimization.autotune is not False:
            made = gen_ops.model_dataset(made, output_types=self._spec[0], output_shapes=self._spec[1])
        return gen_ops.optimize_dataset(made, convert_to_tensor(names, dtypes.string), *self._spec) if names else made

    # ---- sequences ----

    def take(self, count: Any) -> "Dataset":
        """The first elements; all of them where count is -1."""
        return self._same(gen_ops.take_dataset(self._variant, _int64(count), *self._spec))

    def skip(self, count: Any) -> "Dataset":
        """All but the first elements; none where count is -1."""
        return self._same(gen_ops.skip_dataset(self._variant, _int64(count), *self._spec))

    def repeat(self, count: Any = None) -> "Dataset":
        """The elements several times over; for ever where count is None or -1."""
        return self._same(gen_ops.repeat_dataset(self._variant, _int64(-1 if count is None else count), *self._spec))

    def shard(self, num_shards: Any, index: Any) -> "Dataset":
        """Every num_shards-th element, from the one at `index` on."""
        n, i = _number(num_shards), _number(index)
        if n is not None and n < 1:
            raise at_user_line(ShardError("num_shards must be >= 1; got %s" % num_shards))
        if i is not None and (i < 0 or n is not None and i >= n):
            raise at_user_line(ShardError("index must be in [0, num_shards); got %s" % index))
        return self._same(gen_ops.shard_dataset(self._variant, _int64(num_shards), _int64(index), output_types=self._spec[0], output_shapes=self._spec[1]))

    def concatenate(self, dataset: "Dataset") -> "Dataset":
        """The elements, then those of another data set."""
        mine, other = self._element_spec, dataset._element_spec
        if structure.mapped(lambda s: None, mine) != structure.mapped(lambda s: None, other) or not components.same_types(mine, other):
            raise at_user_line(TypeError("Two datasets to concatenate have different types %s and %s" % (self.output_types, dataset.output_types)))
        specs = structure.pack(mine, [components.common(*pair) for pair in zip(structure.flatten(mine), structure.flatten(other))])
        return Dataset(gen_ops.concatenate_dataset(self._variant, dataset._variant, *components.flat(specs)), specs)

    def cache(self, filename: Any = "") -> "Dataset":
        """Keeps the elements once they have been read to the end: in memory, or in files whose names begin with `filename`."""
        return self._same(gen_ops.cache_dataset(self._variant, filename, *self._spec))

    def prefetch(self, buffer_size: Any) -> "Dataset":
        """Makes elements ahead of time; -1 chooses how many."""
        return self._same(gen_ops.prefetch_dataset(self._variant, _int64(-1 if buffer_size is None else buffer_size), *self._spec))

    def shuffle(self, buffer_size: Any, seed: Optional[int] = None, reshuffle_each_iteration: Optional[bool] = None) -> "Dataset":
        """Draws elements at random from a buffer."""
        first, second = _seeds(seed)
        again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
        return self._same(
            gen_ops.shuffle_dataset(
                self._variant, _int64(buffer_size), first, second, reshuffle_each_iteration=again, output_types=self._spec[0], output_shapes=self._spec[1]
            )
        )

    # ---- batches ----

    def batch(self, batch_size: Any, drop_remainder: bool = False) -> "Dataset":
        """Elements stacked; the last batch may be smaller, or is left out."""
        size = _number(batch_size) if drop_remainder is True else None
        specs = structure.mapped(lambda s: components.batched(s, size), self._element_spec)
        types, shapes = components.flat(specs)
        rows = Dataset(gen_ops.batch_dataset_v2(self._variant, _int64(batch_size), drop_remainder, output_types=types, output_shapes=shapes), specs)
        if not any(isinstance(s, RaggedTensorSpec) for s in structure.flatten(specs)):
            return rows
        # Each ragged tensor as one again, so that the next batch finds alike what has more rows and what has fewer.
        return rows.map(lambda *parts: parts if isinstance(specs, tuple) else parts[0])

    def padded_batch(self, batch_size: Any, padded_shapes: Any, padding_values: Any = None, drop_remainder: bool = False) -> "Dataset":
        """Elements brought to common shapes and stacked; None or -1 in a shape is the largest of the batch."""
        if any(not isinstance(s, TensorSpec) for s in structure.flatten(self._element_spec)):
            raise at_user_line(TypeError("Batching of padded sparse tensors is not currently supported"))
        rows: List[Any] = structure.up_to(self._element_spec, padded_shapes)
        given = structure.up_to(self._element_spec, padding_values)
        size = _number(batch_size) if drop_remainder is True else None
        wanted, static, values = [], [], []
        for row, value, dtype, shape in zip(rows, given, *self._spec):
            sizes = _padded_sizes(row)
            padded = _known_shape(sizes)
            if shape.ndims is not None and padded.ndims is not None:
                pairs = zip(padded.as_list(), shape.as_list())
                if padded.ndims != shape.ndims or any(p is not None and n is not None and p < n for p, n in pairs):
                    raise at_user_line(ValueError("The padded shape %s is not compatible with the corresponding input component shape %s." % (padded, shape)))
            wanted.append(sizes)
            static.append(TensorShape([size]).concatenate(padded))
            if value is None:
                value = "" if dtype == dtypes.string else np.zeros([], dtype.as_numpy_dtype)
            values.append(convert_to_tensor(value, dtype))
        specs = structure.pack(self._element_spec, [TensorSpec(shape, dtype) for shape, dtype in zip(static, self._spec[0])])
        return Dataset(gen_ops.padded_batch_dataset_v2(self._variant, _int64(batch_size), wanted, values, drop_remainder, output_shapes=static), specs)

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False) -> "Dataset":
        """Data sets of `size` elements each; of components of their own."""
        variant = gen_ops.window_dataset(self._variant, _int64(size), _int64(size if shift is None else shift), _int64(stride), drop_remainder, *self._spec)
        return Dataset(variant, structure.mapped(DatasetSpec, self._element_spec))

    # ---- functions ----

    def _function(self, function: Callable[..., Any], stem: str, convert: Callable[[Any], Any]) -> Function:
        return Function(function, stem, self._element_spec, convert)

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, num_threads: Any = None, output_buffer_size: Any = None) -> "Dataset":
        """What a function gives for each element. num_threads is the older name of num_parallel_calls; an output_buffer_size prefetches so many."""
        made = self._map(map_func, either("num_parallel_calls", num_parallel_calls, "num_threads", num_threads))
        return made if output_buffer_size is None else made.prefetch(output_buffer_size)

    def _map(self, map_func: Callable[..., Any], num_parallel_calls: Any, **attributes: Any) -> "Dataset":
        f = self._function(map_func, "Dataset_map", _mapped)
        specs = components.specs_of(f.returned)
        types, shapes = components.flat(specs)
        if num_parallel_calls is None:
            return Dataset(gen_ops.map_dataset(self._variant, f.captured, f.name, types, shapes, **attributes), specs)
        return Dataset(gen_ops.parallel_map_dataset(self._variant, f.captured, num_parallel_calls, f.name, types, shapes, **attributes), specs)

    def filter(self, predicate: Callable[..., Any]) -> "Dataset":
        """The elements of which a function says true."""
        f = self._function(predicate, "Dataset_filter", lambda returned: convert_to_tensor(returned, dtypes.as_dtype("bool")))
        return self._same(gen_ops.filter_dataset(self._variant, f.captured, f.name, *self._spec))

    def flat_map(self, map_func: Callable[..., Any]) -> "Dataset":
        """The elements of the data sets that a function gives, one data set after the other."""
        f = self._function(map_func, "Dataset_flat_map", _dataset)
        inner: Dataset = f.returned
        return inner._same(gen_ops.flat_map_dataset(self._variant, f.captured, f.name, *inner._spec))

    def interleave(self, map_func: Callable[..., Any], cycle_length: Any = -1, block_length: Any = 1, num_parallel_calls: Any = None) -> "Dataset":
        """The elements of the data sets that a function gives: of cycle_length of them in turn (-1: as many as there are processors), block_length
        at a time. With num_parallel_calls a thread reads each of them, ahead of time; the order is the same."""
        if isinstance(cycle_length, int) and cycle_length == -1:
            cycle_length = os.cpu_count() or 1
        f = self._function(map_func, "Dataset_interleave", _dataset)
        inner: Dataset = f.returned
        cycle, block = _int64(cycle_length), _int64(block_length)
        if num_parallel_calls is None:
            return inner._same(gen_ops.interleave_dataset(self._variant, f.captured, cycle, block, f.name, *inner._spec))
        calls = _int64(num_parallel_calls)
        return inner._same(gen_ops.parallel_interleave_dataset_v2(self._variant, f.captured, cycle, block, calls, f.name, *inner._spec))

    filter_with_legacy_function, map_with_legacy_function = filter, map  # functions are graphs in any case

    def enumerate(self, start: Any = 0) -> "Dataset":
        """(number, element) pairs, from `start` on."""
        return Dataset.zip((Dataset.range(start, 2**63 - 1), self))

    def unbatch(self) -> "Dataset":
        """The rows of the elements, as elements."""
        parts, count = structure.flatten(self._element_spec), TensorShape([None])
        for part in parts:
            shape = part._dataset_shape if isinstance(part, DatasetSpec) else part.shape if components.is_of_shape(part) else TensorShape([])
            if shape.ndims == 0:
                raise at_user_line(ValueError("Cannot unbatch an input with scalar components."))
            count = count.merge_with(shape[:1])
        rows = self
        if not all(isinstance(part, TensorSpec) for part in parts):
            rows = self.map(lambda *element: tuple(components.encoded_rows(part) for part in structure.flatten(element)))
        specs = structure.mapped(components.row_of, self._element_spec)
        return Dataset(gen_ops.unbatch_dataset(rows._variant, *components.flat(specs)), specs)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """The last state = reduce_func(state, element), from initial_state."""
        state = components.values(initial_state)
        specs = components.specs_of(state)
        f, after = with_state(reduce_func, "Dataset_reduce", specs, self._element_spec, components.returned)
        flat_state = [components.encoded(v) for v in structure.flatten(state)]
        made = gen_ops.reduce_dataset(self._variant, flat_state, f.captured, f.name, *components.flat(after))
        return components.element(made, after)

    def apply(self, transformation_func: Callable[["Dataset"], "Dataset"]) -> "Dataset":
        """What a function of data sets makes of it."""
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise at_user_line(TypeError("`transformation_func` must return a Dataset."))
        return made


components.kinds["dataset"] = Dataset


def _padded_sizes(shape: Any) -> Tensor:
    """A shape to which padded_batch brings a component as a vector, with -1 for the largest of the batch."""
    if isinstance(shape, Tensor):
        made = shape
    else:
        sizes = shape.as_list() if isinstance(shape, TensorShape) else [shape] if isinstance(shape, int) else list(shape)
        sizes = [getattr(d, "value", d) for d in sizes]
        made = convert_to_tensor(np.array([-1 if d is None else d for d in sizes], None if sizes else np.int64))
    if made.shape.ndims not in (None, 1):
        raise at_user_line(ValueError("Padded shape %s must be a 1-D tensor of tf.int64 values, but its shape was %s." % (shape, made.shape)))
    if made.dtype.base_dtype != dtypes.int64:
        raise at_user_line(TypeError("Padded shape %s must be a 1-D tensor of tf.int64 values, but its element type was %s." % (shape, made.dtype.name)))
    return made


def _known_shape(sizes: Tensor) -> TensorShape:
    """What is known of padded sizes while the graph is made; nothing of what no shape has, which the step refuses."""
    try:
        return constant_value_as_shape(sizes)
    except ValueError:
        return TensorShape([None] * (sizes.shape[0].value or 0)) if sizes.shape.is_fully_defined() else TensorShape(None)


def _seeds(seed: Optional[int]) -> Any:
    """Two numbers; 0 and 0 stand for a random order."""
    if isinstance(seed, Tensor):
        return _int64(op_seeds(1)[0]), _int64(seed)
    first, second = op_seeds(seed)
    first, second = first or 0, second or 0
    if seed is not None and first == 0 and second == 0:
        second = 2**31 - 1
    return _int64(first), _int64(second)
