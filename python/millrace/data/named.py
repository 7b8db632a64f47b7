# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.data.ops.dataset_ops and its experimental kin: data sets by the names of their classes there. Each is a Dataset."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

from millrace.data import components, structure
from millrace.data.dataset import Dataset, _dataset, _int64
from millrace.data.functions import Function
from millrace.data.generator import generated_by
from millrace.data.grouping import choose_from_datasets
from millrace.framework.errors import at_user_line
from millrace.framework.graph import colocate_with, device
from millrace.framework.type_spec import DatasetSpec, TensorSpec
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
    types, shapes = input_dataset._spec
    return input_dataset._same(gen_ops.prefetch_dataset(input_dataset._variant, size, types, shapes, slack_period=slack_period or 0))


def _GeneratorDataset(init_args: Any, init_func: Callable[..., Any], next_func: Callable[..., Any], finalize_func: Callable[..., Any]) -> Dataset:
    """next_func(state) over and over, until that is an OutOfRangeError; state = init_func(init_args). At that end finalize_func(state) is called."""
    made = components.values(init_args)
    with_arguments = Dataset.from_tensors(made)

    def generated(*arguments: Any) -> Any:
        given = arguments if isinstance(made, tuple) else arguments[0]
        return generated_by(Dataset, lambda: init_func(given), next_func, finalize_func)

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
    """One of several data sets with the same elements. InvalidArgumentError where their types, shapes or numbers of elements are not the same."""
    parts: List[Dataset] = list(datasets)
    if not parts:
        raise at_user_line(ValueError("`datasets` must not be empty."))
    first = parts[0]
    return first._same(gen_ops.choose_fastest_dataset([part._variant for part in parts], num_experiments, *first._spec))


def _ChooseFastestBranchDataset(
    input_dataset: Dataset,
    functions: Sequence[Callable[[Dataset], Dataset]],
    ratio_numerator: int = 1,
    ratio_denominator: int = 1,
    num_elements_per_branch: Any = None,
) -> Dataset:
    """What the fastest of some functions makes of a data set, of which each makes the same elements: ratio_numerator of its elements become
    ratio_denominator. Each makes num_elements_per_branch while time is taken. ValueError for ratios that are not positive."""
    if not functions:
        raise at_user_line(ValueError("`functions` must not be empty."))
    if ratio_numerator <= 0 or ratio_denominator <= 0:
        raise at_user_line(ValueError("ratio must be positive."))
    count = ratio_denominator * max(1, 10 // ratio_denominator) if num_elements_per_branch is None else num_elements_per_branch
    branches = [Function(f, "Dataset_branch", DatasetSpec(input_dataset.element_spec), _dataset) for f in functions]
    first: Dataset = branches[0].returned
    if any(branch.returned._spec[0] != first._spec[0] for branch in branches):
        raise at_user_line(ValueError("All functions must give data sets whose elements have the same types."))
    captured = [tensor for branch in branches for tensor in branch.captured]
    lengths = [len(branch.captured) for branch in branches]
    ratio = (_int64(ratio_numerator), _int64(ratio_denominator))
    names = [branch.name for branch in branches]
    return first._same(gen_ops.choose_fastest_branch_dataset(input_dataset._variant, *ratio, captured, count, names, lengths, *first._spec))


def _AutoShardDataset(input_dataset: Dataset, num_workers: Any, index: Any) -> Dataset:
    """What one of several workers reads: where functions of the data set read files, those of every num_workers-th file, else every
    num_workers-th element. InvalidArgumentError where a worker has none."""
    return input_dataset._same(gen_ops.auto_shard_dataset(input_dataset._variant, _int64(num_workers), _int64(index), *input_dataset._spec))


_AutoShardDatasetV1 = _AutoShardDataset


def auto_shard_dataset(dataset: Dataset, num_shards: Any, index: Any) -> Dataset:
    """What one of several workers reads: a share of the files, where the data set reads files, else of the elements."""
    return _AutoShardDataset(dataset, num_shards, index)


def _clone_dataset(dataset: Dataset) -> Dataset:
    """The data set once more, by operations of its own."""
    return dataset._same(gen_ops.dataset_from_graph(dataset._as_serialized_graph()))


def _part_of(spec: Any, num_replicas: int) -> Any:
    """The spec of a part of a batch. ValueError for scalars."""
    shape = spec.shape
    if shape.ndims is None:
        return spec
    if shape.ndims == 0:
        raise at_user_line(ValueError("Input shape should have at least one dimension. Perhaps your input dataset is not batched?"))
    rows = shape[0].value
    part = rows // num_replicas if rows is not None and rows % num_replicas == 0 else None
    return TensorSpec([part, *shape.as_list()[1:]], spec.dtype)


def _RebatchDataset(input_dataset: Dataset, num_replicas: int, use_fallback: bool = True) -> Dataset:
    """Each batch as num_replicas smaller ones with as many rows each, of which the last may have fewer, or none."""
    specs = structure.mapped(lambda spec: _part_of(spec, num_replicas), input_dataset.element_spec)
    made = gen_ops.rebatch_dataset(input_dataset._variant, _int64(num_replicas), *components.flat(specs), use_fallback=use_fallback)
    return Dataset(made, specs)


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
