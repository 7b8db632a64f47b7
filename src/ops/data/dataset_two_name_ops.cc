// SPDX-License-Identifier: Apache-2.0
// Ops of data sets that TensorFlow 1.15 knows by two names: that of its experiments, which began with "Experimental",
// and that which they got afterwards.
#include "ops/data/dataset_declarer.h"

namespace millrace {
namespace {

// An input data set, and a vector besides.
Status VectorBesideShape(ShapeContext& c) {
  for (int i = 0; i + 1 < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_RETURN_IF_ERROR(c.WithRank(c.num_inputs() - 1, 1).status());
  return ScalarShape(c);
}

Status ScalarsShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return absl::OkStatus();
}

Status PatternsShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtMost(0, 1).status());
  return ScalarShape(c);
}

Status CsvShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtMost(0, 1).status());
  for (int i = 1; i < 7; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  MR_RETURN_IF_ERROR(c.WithRank(7, 1).status());
  for (int i = 8; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape value, c.WithRankAtMost(i, 1));
    if (value.has_rank() && value.rank() == 1 && value.dim(0) > 1) {
      return InvalidArgument("Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  return ScalarShape(c);
}

// What keeps something from one element to the next.
void AddStateful(const Declarer& add) {
  add.OverByTwoNames(
      "ScanDataset", ", initial_state:[Tstate], other_arguments:[Targuments]",
      "For each element, with the state before it, `f` returns the next state and then the element of the result.", "",
      absl::StrCat("f:func; Tstate:list(type)>=1; Targuments:list(type)>=0; ", kOut,
                   "; +preserve_cardinality:bool=false; +use_default_device:bool=true"));
  add.OverByTwoNames("TakeWhileDataset", ", other_arguments:[Targuments]",
                     "The elements before the first of which `predicate` says false.", "",
                     absl::StrCat("predicate:func; Targuments:list(type)>=0; ", kOut));
  add.OverByTwoNames(
      "UniqueDataset", "", "The elements, tensors of int32, int64 or string, that have not been before.");
  add.OverByTwoNames(
      "IgnoreErrorsDataset", "", "The elements, without those that cannot be made.", "+log_warning:bool=false");
  add.ByTwoNames(
      absl::StrCat(
          "DirectedInterleaveDataset(selector_input_dataset:var, data_input_datasets:N*var) -> (handle:var) | ", kOut,
          "; N:int>=1; +stop_on_empty_dataset:bool=false"),
      "For each number of selector_input_dataset the next element of the data set of that number; numbers of those "
      "that have ended are passed over.");
}

void AddGroups(const Declarer& add) {
  add.ByTwoNames(
      absl::StrCat(
          "GroupByWindowDataset(input_dataset:var, key_func_other_arguments:[Tkey_func_other_arguments], ",
          "reduce_func_other_arguments:[Treduce_func_other_arguments], ",
          "window_size_func_other_arguments:[Twindow_size_func_other_arguments]) -> (handle:var) | key_func:func; ",
          "reduce_func:func; window_size_func:func; Tkey_func_other_arguments:list(type)>=0; ",
          "Treduce_func_other_arguments:list(type)>=0; Twindow_size_func_other_arguments:list(type)>=0; ", kOut),
      "Elements are put together by the number that key_func gives; window_size_func(key) of them, and what is left at "
      "the end, become what reduce_func(key, data set of them) gives, a data set.",
      GroupsShape);
  add.ByTwoNames(
      absl::StrCat(
          "GroupByReducerDataset(input_dataset:var, key_func_other_arguments:[Tkey_func_other_arguments], ",
          "init_func_other_arguments:[Tinit_func_other_arguments], ",
          "reduce_func_other_arguments:[Treduce_func_other_arguments], ",
          "finalize_func_other_arguments:[Tfinalize_func_other_arguments]) -> (handle:var) | key_func:func; ",
          "init_func:func; reduce_func:func; finalize_func:func; Tkey_func_other_arguments:list(type)>=0; ",
          "Tinit_func_other_arguments:list(type)>=0; Treduce_func_other_arguments:list(type)>=0; ",
          "Tfinalize_func_other_arguments:list(type)>=0; ", kOut, " | S"),
      "For each number that key_func gives, in ascending order: finalize_func of the state that init_func(key) begins "
      "and reduce_func(state, element) goes on with, over all elements of that key.",
      GroupsShape);
}

void AddRows(const Declarer& add) {
  add.OverByTwoNames("UnbatchDataset", "", "The rows of the elements, whose components have as many rows each.");
  add.OverByTwoNames(
      "RebatchDataset", ", num_replicas:i64",
      "Each element as num_replicas elements with as many rows each, of which the last may have fewer, or "
      "none. use_fallback is ignored.",
      "", absl::StrCat(kOut, "; +use_fallback:bool=true"));
  add.OverByTwoNames(
      "SlidingWindowDataset", ", window_size:i64, window_shift:i64, window_stride:i64",
      "Batches of window_size elements each, window_stride apart, that begin window_shift elements after one another.");
  add.ByTwoNames(
      absl::StrCat(
          "DenseToSparseBatchDataset(input_dataset:var, batch_size:i64, row_shape:i64) -> ", "(handle:var) | ", kOut),
      "Elements of one component in batches of `batch_size`, as sparse tensors [rows] + row_shape in the form "
      "of SerializeSparse with variants. A dimension of -1 is that of the largest element of the batch; "
      "elements may be smaller than row_shape.",
      VectorBesideShape);
}

void AddParallel(const Declarer& add) {
  const std::string f = absl::StrCat("f:func; Targuments:list(type)>=0; ", kOut);
  add.OverByTwoNames(
      "MapAndBatchDataset",
      ", other_arguments:[Targuments], batch_size:i64, num_parallel_calls:i64, drop_remainder:bool",
      "Batches of `batch_size` of what `f` returns for each element, with up to num_parallel_calls calls at once (-1: "
      "a "
      "few). A batch fails where one of its calls does; the next one begins behind it. OutOfRange in `f` is the end of "
      "the data set, unless preserve_cardinality says that it is an error.",
      "", absl::StrCat(f, "; preserve_cardinality:bool=false"));
  add.OverByTwoNames(
      "ParallelInterleaveDataset",
      ", other_arguments:[Targuments], cycle_length:i64, block_length:i64, sloppy:bool, buffer_output_elements:i64, "
      "prefetch_input_elements:i64",
      "The elements of the data sets that `f` returns: of cycle_length of them in turn, block_length at a time. A "
      "thread "
      "reads each, up to buffer_output_elements ahead, and prefetch_input_elements more of them begin before their "
      "turn. "
      "With `sloppy`, those that have no element ready are passed over.",
      "", f);
}

// How a pipeline is to be run.
void AddHints(const Declarer& add) {
  add.ByTwoNames(
      absl::StrCat("AssertNextDataset(input_dataset:var, transformations:str) -> (handle:var) | ", kOut),
      "The input. InvalidArgument, when an iterator begins, unless the names of the data sets over it begin with "
      "`transformations`; not under an OptimizeDataset of which rewriting is wanted, since none is done here.",
      VectorBesideShape);
  add.OverByTwoNames("NonSerializableDataset", "", "The input. Iterators over it are saved like others.");
  add.OverByTwoNames("MaxIntraOpParallelismDataset", ", max_intra_op_parallelism:i64",
                     "The input. How many threads an operation has, the session says.");
  add.OverByTwoNames(
      "PrivateThreadPoolDataset", ", num_threads:i64", "The input. Data sets have threads of their own.");
  add.ByTwoNames(
      "ThreadPoolHandle() -> (handle:res) | num_threads:int; max_intra_op_parallelism:int=1; display_name:string; "
      "container:string=\"\"; shared_name:string=\"\" | S",
      "Something to give ThreadPoolDataset.");
  add.ByTwoNames(absl::StrCat("ThreadPoolDataset(input_dataset:var, thread_pool:res) -> (handle:var) | ", kOut, " | S"),
                 "The input. Data sets have threads of their own, and use none of the pool.");
  add.ByTwoNames(
      absl::StrCat(
          "ChooseFastestDataset(input_datasets:N*var) -> (handle:var) | N:int>=2; num_experiments:int; ", kOut),
      "One of several data sets of the same elements: the first. InvalidArgument where types, shapes or numbers of "
      "elements, as far as these are known, are not the same. `num_experiments` is ignored.");
  add(absl::StrCat("ChooseFastestBranchDataset(input_dataset:var, ratio_numerator:i64, ratio_denominator:i64, "
                   "other_arguments:[Targuments]) -> (handle:var) | Targuments:list(type)>=0; "
                   "num_elements_per_branch:int>=1; branches:list(func)>=1; other_arguments_lengths:list(int)>=1; ",
                   kOut),
      "What one of several functions makes of the input, a data set that each makes the same elements of: "
      "ratio_numerator "
      "elements become ratio_denominator. Each makes num_elements_per_branch elements while time is taken, the fastest "
      "the rest. They may read what they are given once.");
  add.OverByTwoNames("SleepDataset", ", sleep_microseconds:i64", "The elements, before each of which time passes.");
}

void AddStats(const Declarer& add) {
  add.ByTwoNames("StatsAggregatorHandle() -> (handle:res) | container:string=\"\"; shared_name:string=\"\" | S",
                 "Where data sets count: histograms by tag.");
  add.ByTwoNames(
      "StatsAggregatorSummary(iterator:res) -> (summary:str) | | S", "What has been counted, as an encoded Summary.");
  add.ByTwoNames(
      absl::StrCat("SetStatsAggregatorDataset(input_dataset:var, stats_aggregator:res, tag:str, ",
                   "counter_prefix:str) -> (handle:var) | ", kOut, " | S"),
      "The input, whose LatencyStatsDataset and BytesProducedStatsDataset count in stats_aggregator, with "
      "`tag` before their tags. Other statistics are not kept; counter_prefix is ignored.");
  add.OverByTwoNames("LatencyStatsDataset", ", tag:str",
                     "The input. The microseconds that each element took are counted, where there is something that "
                     "counts (SetStatsAggregatorDataset).");
  add.OverByTwoNames("BytesProducedStatsDataset", ", tag:str",
                     "The input. The bytes of each element are counted, where there is something that counts "
                     "(SetStatsAggregatorDataset).");
}

void AddFiles(const Declarer& add) {
  add.ByTwoNames(
      "MatchingFilesDataset(patterns:str) -> (handle:var) | | S",
      "The names of the files that match patterns, those of one pattern after those of the other. NotFound "
      "where there are none.",
      PatternsShape);
  add.ByTwoNames(
      "CSVDataset(filenames:str, compression_type:str, buffer_size:i64, header:bool, field_delim:str, "
      "use_quote_delim:bool, na_value:str, select_cols:i64, record_defaults:[output_types]) -> (handle:var) | "
      "output_types in list f32|f64|i32|i64|str>=1; output_shapes:list(shape)>=1 | S",
      "The records of CSV files as in RFC 4180, one file after the other, or of their fields those in select_cols. A "
      "field that is empty, or na_value, gets its default; InvalidArgument where that is empty. With `header`, the "
      "first record of each file is left out.",
      CsvShape);
  for (const char* op : {"DatasetToTFRecord", "ExperimentalDatasetToTFRecord"}) {
    add(absl::StrCat(op, "(input_dataset:var, filename:str, compression_type:str) -> () | | S"),
        "Writes the elements, scalar strings, to a record file. `compression_type` is \"\", \"ZLIB\" or \"GZIP\".",
        ScalarsShape)
        .Traits({OpTrait::kWaits});
  }
  for (const char* op : {"AutoShardDataset", "ExperimentalAutoShardDataset"}) {
    add(absl::StrCat(op, "(input_dataset:var, num_workers:i64, index:i64) -> (handle:var) | ", kOut),
        "What the worker `index` reads of the input: where functions read files (FlatMapDataset and its like), the "
        "elements of every num_workers-th file, else every num_workers-th element. InvalidArgument where a worker has "
        "none. Orders of files that are drawn come behind the choice.")
        .Traits({OpTrait::kWaits, OpTrait::kNeverFolds});
  }
  add.ByTwoNames("DatasetCardinality(input_dataset:var) -> (cardinality:i64)",
                 "How many elements a data set has, without reading it: -1 where it has no end, -2 where that is not "
                 "known.");
  add.ByTwoNames("IteratorGetDevice(resource:res) -> (device:str) | | S", "The name of the device of an iterator.");
  add.ByTwoNames(absl::StrCat("LMDBDataset(filenames:str) -> (handle:var) | ", kOut, " | S"),
                 "Unimplemented: LMDB files cannot be read.", PatternsShape);
  add.ByTwoNames(
      absl::StrCat("SqlDataset(driver_name:str, data_source_name:str, query:str) -> (handle:var) | ", kOut, " | S"),
      "Unimplemented: tf.data.experimental.SqlDataset reads SQLite files by way of Python.");
}

}  // namespace

void AddDatasetsOfTwoNames(const Declarer& add) {
  AddStateful(add);
  AddGroups(add);
  AddRows(add);
  AddParallel(add);
  AddHints(add);
  AddStats(add);
  AddFiles(add);
}

}  // namespace millrace
