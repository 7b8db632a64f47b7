# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.ops.dataset_ops and its experimental kin: data sets by the names of their classes there. Each is a Dataset."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

from millrace.data import components
from millrace.data.dataset import Dataset, _converted, _int64
from millrace.data.functions import Function
from millrace.data.grouping import choose_from_datasets
from millrace.framework.errors import at_user_line
from millrace.framework.graph import colocate_with, device
from millrace.ops import gen_ops

_VariantDataset = Dataset  # of a tensor that is a data set, and of the specs of its elements


def MapDataset(
    input_dataset: Dataset, map_func: Callable[..., Any], use_inter_op_parallelism: bool = True, preserve_cardinality: bool = False, **unused: Any
) -> Dataset:
    """Dataset.map. Where preserve_cardinality is set, a function that has reached an end is an error."""
    del unused
    return input_dataset._map(map_func, None, use_inter_op_parallelism=use_inter_op_parallelism, preserve_cardinality=preserve_cardinality)


def ParallelMapDataset(
    input_dataset: Dataset,
    map_func: Callable[..., Any],
    num_parallel_calls: Any,
    use_inter_op_parallelism: bool = True,
    preserve_cardinality: bool = False,
    **unused: Any,
) -> Dataset:
    """Dataset.map with num_parallel_calls."""
    del unused
    return input_dataset._map(map_func, num_parallel_calls, use_inter_op_parallelism=use_inter_op_parallelism, preserve_cardinality=preserve_cardinality)


def PrefetchDataset(input_dataset: Dataset, buffer_size: Any, slack_period: Any = None) -> Dataset:
    """Dataset.prefetch; nothing waits to let others go first, whatever slack_period says."""
    size = _int64(-1 if buffer_size is None else buffer_size)
    return input_dataset._same(gen_ops.prefetch_dataset(input_dataset._variant, size, *input_dataset._spec, slack_period=slack_period or 0))


def _GeneratorDataset(init_args: Any, init_func: Callable[..., Any], next_func: Callable[..., Any], finalize_func: Callable[..., Any]) -> Dataset:
    """next_func(state) over and over, until that is an OutOfRangeError; state = init_func(init_args). At that end finalize_func(state) is called."""
    made = components.values(init_args)
    with_arguments = Dataset.from_tensors(made)

    def generated(*arguments: Any) -> Dataset:
        given = arguments if isinstance(made, tuple) else arguments[0]
        begin = Function(lambda: init_func(given), "Dataset_init", (), _converted)
        state = components.specs_of(begin.returned)
        following, end = Function(next_func, "Dataset_next", state, _converted), Function(finalize_func, "Dataset_finalize", state, _converted)
        specs = components.specs_of(following.returned)
        names = (begin.name, following.name, end.name)
        return Dataset(gen_ops.generator_dataset(begin.captured, following.captured, end.captured, *names, *components.flat(specs)), specs)

    return with_arguments.flat_map(generated)


def _DirectedInterleaveDataset(selector_input: Dataset, data_inputs: Sequence[Dataset]) -> Dataset:
    """choose_from_datasets."""
    return choose_from_datasets(data_inputs, selector_input)


def _MaxIntraOpParallelismDataset(input_dataset: Dataset, max_intra_op_parallelism: Any) -> Dataset:
    """The data set: kernels take what threads the session has."""
    return input_dataset._same(gen_ops.max_intra_op_parallelism_dataset(input_dataset._variant, _int64(max_intra_op_parallelism), *input_dataset._spec))


def _PrivateThreadPoolDataset(input_dataset: Dataset, num_threads: Any) -> Dataset:
    """The data set: it has threads of its own in any case."""
    return input_dataset._same(gen_ops.private_thread_pool_dataset(input_dataset._variant, _int64(num_threads), *input_dataset._spec))


def _ChooseFastestDataset(datasets: Sequence[Dataset], num_experiments: int = 10) -> Dataset:
    """The one of several data sets with the same elements that gives its first ones soonest."""
    parts: List[Dataset] = list(datasets)
    if not parts:
        raise at_user_line(ValueError("`datasets` must not be empty."))
    first = parts[0]
    return first._same(gen_ops.choose_fastest_dataset([part._variant for part in parts], num_experiments, *first._spec))


def replicate(dataset: Dataset, devices: Sequence[Any]) -> Dict[Any, Dataset]:
    """The data set, stated anew on each of some devices. Making one that needs state is a FailedPreconditionError where the state is elsewhere."""
    if not isinstance(dataset, Dataset):
        raise at_user_line(TypeError("`dataset` must be a `tf.data.Dataset` object."))
    with colocate_with(dataset._variant):
        graph_def = dataset._as_serialized_graph(dataset.options().experimental_stateful_whitelist)
    made = {}
    for place in devices:
        with device(place):
            made[place] = Dataset(gen_ops.dataset_from_graph(graph_def), dataset.element_spec)
    return made
