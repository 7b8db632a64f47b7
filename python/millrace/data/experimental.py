# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.data.experimental: functions for Dataset.apply, data sets of tables and of random numbers, elements that may be absent."""

from __future__ import annotations

from typing import Any, Callable, Dict
from typing import Optional as _Optional

from millrace.framework import not_provided as _not_provided
from millrace.data.csv import CsvDataset, make_csv_dataset  # noqa: F401
from millrace.data.dataset import Dataset
from millrace.data.grouping import (  # noqa: F401
    RandomDataset,
    Reducer,
    bucket_by_sequence_length,
    choose_from_datasets,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    take_while,
    unique,
)
from millrace.data.cardinality import INFINITE as INFINITE_CARDINALITY, UNKNOWN as UNKNOWN_CARDINALITY, count_of as _count_of  # noqa: F401
from millrace.data.optional import Optional, _OptionalImpl, get_next_as_optional  # noqa: F401
from millrace.data.options import DistributeOptions, MapVectorizationOptions, OptimizationOptions, StatsOptions, ThreadingOptions  # noqa: F401
from millrace.data.reading import CheckpointInputPipelineHook, SqlDataset, TFRecordWriter, make_saveable_from_iterator  # noqa: F401
from millrace.data.readers import TFRecordDataset
from millrace.data.running import StatsAggregator, bytes_produced_stats, latency_stats  # noqa: F401
from millrace.data.transformations import (  # noqa: F401
    dense_to_sparse_batch,
    enumerate_dataset,
    get_single_element,
    map_and_batch,
    parallel_interleave,
    unbatch,
)
from millrace.framework import dtypes
from millrace.framework.device import DeviceSpec
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.framework.type_spec import DatasetSpec, OptionalSpec, RaggedTensorSpec, SparseTensorSpec, TensorArraySpec, TensorSpec, TypeSpec
from millrace.ops import parsing_ops
from millrace.ops.readers import ReaderBase

AUTOTUNE = -1
map_and_batch_with_legacy_function = map_and_batch
_NO_DATASET = "The `reader` argument must return a `Dataset` object. `tf.ReaderBase` subclasses are not supported."
_Transformation = Callable[[Dataset], Dataset]


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """start, start + step, and so on, without end."""
    from millrace.ops import math_ops

    kind = dtypes.as_dtype(dtype)
    step = int(step)
    if step == 0:
        raise at_user_line(ValueError("Counter needs a step other than 0."))
    counted = Dataset.range(int(start), 2**63 - 1 if step > 0 else -(2**63), step)
    return counted if kind == dtypes.int64 else counted.map(lambda x: math_ops.cast(x, kind))


def parse_example_dataset(features: Dict[str, Any], num_parallel_calls: Any = 1) -> _Transformation:
    """Batches of serialized Example messages as dicts of tensors."""
    return lambda dataset: dataset.map(lambda data: parsing_ops.parse_example(data, features), num_parallel_calls=num_parallel_calls)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Dict[str, Any],
    reader: Any = TFRecordDataset,
    label_key: _Optional[str] = None,
    reader_args: Any = None,
    num_epochs: _Optional[int] = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: _Optional[int] = None,
    prefetch_buffer_size: int = AUTOTUNE,
    reader_num_threads: int = 1,
    parser_num_threads: int = 2,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Example messages of files, shuffled, repeated, in batches, as dicts of tensors; (the dict, the label) with a label_key."""
    del sloppy_ordering  # the order is kept
    if isinstance(reader, type) and issubclass(reader, ReaderBase):
        raise at_user_line(TypeError(_NO_DATASET))
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)

    def read(name: Any) -> Dataset:
        made = reader(name, *(reader_args or ()))
        if not isinstance(made, Dataset):
            raise at_user_line(TypeError(_NO_DATASET))
        return made

    records = files.interleave(read, reader_num_threads)
    if records.output_types == (dtypes.string, dtypes.string):
        records = records.map(lambda _, value: value)
    if shuffle:
        records = records.apply(shuffle_and_repeat(shuffle_buffer_size, num_epochs, shuffle_seed))
    elif num_epochs != 1:
        records = records.repeat(num_epochs)
    batches = records.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None).apply(parse_example_dataset(features, parser_num_threads))
    if label_key:
        if label_key not in features:
            raise at_user_line(ValueError("The `label_key` provided (%r) must be one of the `features` keys." % label_key))
        batches = batches.map(lambda made: ({k: v for k, v in made.items() if k != label_key}, made[label_key]))
    return batches.prefetch(prefetch_buffer_size)


def make_tf_record_dataset(
    file_pattern: Any,
    batch_size: int,
    parser_fn: Any = None,
    num_epochs: _Optional[int] = None,
    shuffle: bool = True,
    shuffle_buffer_size: _Optional[int] = None,
    shuffle_seed: _Optional[int] = None,
    prefetch_buffer_size: _Optional[int] = AUTOTUNE,
    num_parallel_reads: _Optional[int] = None,
    num_parallel_parser_calls: _Optional[int] = None,
    drop_final_batch: bool = False,
) -> Dataset:
    """The records of files, shuffled, repeated, put through parser_fn and in batches."""
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    records: Any = TFRecordDataset(files, num_parallel_reads=24 if num_parallel_reads is None else num_parallel_reads)
    if shuffle:
        records = records.apply(shuffle_and_repeat(shuffle_buffer_size or 10000, num_epochs, shuffle_seed))
    elif num_epochs != 1:
        records = records.repeat(num_epochs)
    drop = drop_final_batch or num_epochs is None
    if parser_fn is None:
        batches = records.batch(batch_size, drop_remainder=drop)
    else:
        batches = records.apply(map_and_batch(parser_fn, batch_size, drop_remainder=drop, num_parallel_calls=num_parallel_parser_calls or batch_size))
    return batches if prefetch_buffer_size == 0 else batches.prefetch(prefetch_buffer_size)  # type: ignore[no-any-return]


def prefetch_to_device(device: Any, buffer_size: Any = None) -> _Transformation:
    """prefetch: CPU devices share their memory. Others are refused."""
    return copy_to_device(device, buffer_size=buffer_size)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0", buffer_size: Any = 0) -> _Transformation:
    """The data set as it is: CPU devices share their memory. Others are refused."""
    for device in (target_device, source_device):
        kind = DeviceSpec.from_string(str(device)).device_type
        if kind not in (None, "CPU"):
            raise at_user_line(NotImplementedError("data sets are on CPU devices, not on %r" % (device,)))
    return lambda dataset: dataset if buffer_size == 0 else dataset.prefetch(buffer_size)


def cardinality(dataset: Dataset) -> Tensor:
    """How many elements a data set has; INFINITE_CARDINALITY, or UNKNOWN_CARDINALITY where only reading it would tell."""
    return _count_of(dataset._variant.op)


def to_variant(dataset: Dataset) -> Tensor:
    """The tensor that is a data set."""
    return dataset._variant


def from_variant(variant: Any, structure: Any) -> Dataset:
    """The data set of such a tensor, with elements of these type specs."""
    return Dataset(variant, structure)


# ---- what elements are ----


def get_structure(dataset_or_iterator: Any) -> Any:
    """The type specs of the elements."""
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise at_user_line(TypeError("`dataset_or_iterator` must be a Dataset or Iterator object, but got %s." % type(dataset_or_iterator).__name__))
    return dataset_or_iterator.element_spec


def TensorStructure(dtype: Any, shape: Any) -> TensorSpec:
    """tf.TensorSpec by its older name."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: Any, shape: Any) -> SparseTensorSpec:
    """tf.SparseTensorSpec by its older name."""
    return SparseTensorSpec(shape, dtype)


def RaggedTensorStructure(dtype: Any, shape: Any, ragged_rank: int) -> RaggedTensorSpec:
    """tf.RaggedTensorSpec by its older name."""
    return RaggedTensorSpec(shape, dtype, ragged_rank)


def TensorArrayStructure(dtype: Any, element_shape: Any, dynamic_size: bool, infer_shape: bool) -> TensorArraySpec:
    """TensorArraySpec by its older name."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)


Structure, DatasetStructure, OptionalStructure = TypeSpec, DatasetSpec, OptionalSpec


__getattr__ = _not_provided.getter("data.experimental")
