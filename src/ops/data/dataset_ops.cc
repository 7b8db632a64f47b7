// SPDX-License-Identifier: Apache-2.0
// Ops: data sets, descriptions of sequences of elements in variant scalars, and iterators, which read them.
#include "ops/data/dataset_ops.h"

#include "ops/data/dataset_declarer.h"

namespace millrace {
namespace {

Status FilesShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtMost(0, 1).status());
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return ScalarShape(c);
}

Status ElementShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes, c.Attr<std::vector<PartialShape>>("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument(
        "`output_shapes` must be the same length as `output_types` (", shapes.size(), " vs. ", c.num_outputs(), ")");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

Status ShardShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return ElementShape(c);
}

// A handle and what deletes it.
Status TwoScalars(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::Scalar());
  return absl::OkStatus();
}

Status SparseSlicesShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(const PartialShape values, c.WithRank(1, 1));
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(2, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(0), values.dim(0), "as many indices as values").status());
  MR_RETURN_IF_ERROR(c.MergeDim(indices.dim(1), shape.dim(0), "the rank of indices and of dense_shape").status());
  return ScalarShape(c);
}

// Rows of the arguments become rows of the outputs.
Status MapDefunShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes, c.Attr<std::vector<PartialShape>>("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument(
        "`output_shapes` must be the same length as `output_types` (", shapes.size(), " vs. ", c.num_outputs(), ")");
  }
  int64_t rows = -1;
  const ArgRange arguments = c.input_arg("arguments");
  for (int i = arguments.begin; i < arguments.end; ++i) {
    if (!c.input(i).has_rank()) continue;
    if (c.input(i).rank() == 0)
      return InvalidArgument("Arguments must have rank at least 1. Input ", i, " has rank 0.");
    MR_ASSIGN_OR_RETURN(rows, c.MergeDim(rows, c.input(i).dim(0), "as many rows of each argument"));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& row = shapes[static_cast<size_t>(i)];
    if (!row.has_rank()) continue;
    std::vector<int64_t> dims = row.dims();
    dims.insert(dims.begin(), rows);
    c.set_output(i, PartialShape::Of(std::move(dims)));
  }
  return absl::OkStatus();
}

Status ReducedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes, c.Attr<std::vector<PartialShape>>("output_shapes"));
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument("there are ", c.num_outputs(), " outputs, but ", shapes.size(), " output_shapes");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

void AddSources(const Declarer& add) {
  add(absl::StrCat("TensorDataset(components:[Toutput_types]) -> (handle:var) | Toutput_types:list(type)>=1; ",
                   "output_shapes:list(shape)>=1 | S"),
      "A data set of one element, which is `components`.");
  add(absl::StrCat("TensorSliceDataset(components:[Toutput_types]) -> (handle:var) | Toutput_types:list(type)>=1; ",
                   "output_shapes:list(shape)>=1 | S"),
      "A data set of the rows of `components`, which have as many rows each.");
  add(absl::StrCat("RangeDataset(start:i64, stop:i64, step:i64) -> (handle:var) | ", kOut, " | S"),
      "The numbers from `start` on, `step` apart, before `stop`. InvalidArgument when `step` is 0.");
  for (const char* op : {"RandomDataset", "ExperimentalRandomDataset"}) {
    add(absl::StrCat(op, "(seed:i64, seed2:i64) -> (handle:var) | ", kOut, " | S"),
        "Random numbers from 0 to 2^32 - 1, without end. The seeds decide which, unless both are 0.");
  }
  add("TFRecordDataset(filenames:str, compression_type:str, buffer_size:i64) -> (handle:var) | | S",
      "The records of record files, one file after the other. `compression_type` is \"\", \"ZLIB\" or \"GZIP\"; "
      "buffer_size is checked, and otherwise ignored.",
      FilesShape);
  add("TextLineDataset(filenames:str, compression_type:str, buffer_size:i64) -> (handle:var) | | S",
      "The lines of text files without what ends them, one file after the other. `compression_type` is \"\", \"ZLIB\" "
      "or \"GZIP\"; buffer_size is checked, and otherwise ignored.",
      FilesShape);
  for (const bool second : {false, true}) {
    add(absl::StrCat("FixedLengthRecordDataset", second ? "V2" : "", "(filenames:str, header_bytes:i64, ",
                     "record_bytes:i64, footer_bytes:i64, buffer_size:i64", second ? ", compression_type:str" : "",
                     ") -> (handle:var) | | S"),
        "Records of `record_bytes` bytes between a header and a footer of each file. buffer_size is checked, and "
        "otherwise ignored.",
        FilesShape);
  }
}

void AddGenerated(const Declarer& add, OpRegistry& r) {
  add("SparseTensorSliceDataset(indices:i64, values:Tvalues, dense_shape:i64) -> (handle:var) | Tvalues:type | S",
      "The slices of a sparse tensor along its first dimension, in whose order its indices are: indices, values and "
      "dense_shape of each.",
      SparseSlicesShape);
  add(absl::StrCat("GeneratorDataset(init_func_other_args:[Tinit_func_args], next_func_other_args:[Tnext_func_args], "
                   "finalize_func_other_args:[Tfinalize_func_args]) -> (handle:var) | init_func:func; next_func:func; "
                   "finalize_func:func; Tinit_func_args:list(type)>=0; Tnext_func_args:list(type)>=0; "
                   "Tfinalize_func_args:list(type)>=0; ",
                   kOut, " | S"),
      "What `next_func` returns for the state that `init_func` has returned, until it ends with OutOfRange; then "
      "`finalize_func` is called, as it is where an iterator goes before.",
      ScalarShape);  // what functions capture has any shape
  r.Add(absl::StrCat("MapDefun(arguments:[Targuments], captured_inputs:[Tcaptured]) -> (output:[output_types]) | ",
                     "Targuments:list(type)>=1; Tcaptured:list(type)>=0=[]; ", kOut,
                     "; f:func; +max_intra_op_parallelism:int=1"))
      .Traits({OpTrait::kWaits})
      .Doc(
          "What `f` returns for each row of `arguments`, with captured_inputs after it, as the rows of the outputs. "
          "Rows are computed one after the other, whatever max_intra_op_parallelism says.")
      .Shape(MapDefunShape)
      .NoGradient("what a function makes of rows has no derivative here: use tf.map_fn")
      .NoExample("a test of input pipelines brings functions");
}

void AddDevices(const Declarer& add) {
  const std::string out = kOut;
  add(absl::StrCat("MultiDeviceIterator() -> (handle:res) | devices:list(string)>=1; shared_name:string; "
                   "container:string; ",
                   out, " | S"),
      "An iterator that deals its elements to `devices` in turn.");
  add(absl::StrCat(
          "AnonymousMultiDeviceIterator() -> (handle:res, deleter:var) | devices:list(string)>=1; ", out, " | S"),
      "A MultiDeviceIterator without a name, which lives as long as its handle, and something to give "
      "DeleteMultiDeviceIterator.",
      TwoScalars);
  add("MultiDeviceIteratorInit(dataset:var, multi_device_iterator:res, max_buffer_size:i64) -> (incarnation_id:i64) | "
      "| S",
      "Sets an iterator to the beginning of a data set, and gives the number of this pass. Up to max_buffer_size "
      "elements wait for each device.")
      .Traits({OpTrait::kWaits});
  add(absl::StrCat("MultiDeviceIteratorGetNextFromShard(multi_device_iterator:res, shard_num:i32, incarnation_id:i64) "
                   "-> (components:[output_types]) | ",
                   out, " | S"),
      "The next element of the device `shard_num`. OutOfRange at the end; InvalidArgument where incarnation_id is not "
      "that of the last MultiDeviceIteratorInit.",
      ShardShape)
      .Traits({OpTrait::kWaits});
  add("MultiDeviceIteratorToStringHandle(multi_device_iterator:res) -> (string_handle:str) | | S",
      "A string that names an iterator in its session.");
  add("MultiDeviceIteratorFromStringHandle(string_handle:str) -> (multi_device_iterator:res) | "
      "output_types:list(type)>=0=[]; output_shapes:list(shape)>=0=[] | S",
      "The iterator that MultiDeviceIteratorToStringHandle has named. InvalidArgument when its elements are not as the "
      "attributes say.");
  add("DeleteMultiDeviceIterator(multi_device_iterator:res, iterators:N*res, deleter:var) -> () | N:int>=0 | S",
      "Says that the iterator is not needed any longer.", NoOutputs);
}

void AddSequences(const Declarer& add) {
  add.Over("TakeDataset", ", count:i64", "The first `count` elements; all of them when it is negative.");
  add.Over("SkipDataset", ", count:i64", "All but the first `count` elements; none when it is negative.");
  add.Over("RepeatDataset", ", count:i64", "The elements `count` times over; for ever when it is negative.");
  add.Over("ShardDataset", ", num_shards:i64, index:i64",
           "Every num_shards-th element, from the one at `index` on. `require_non_empty` is ignored.",
           "require_non_empty:bool=false");
  add.Over(
      "ConcatenateDataset", ", another_dataset:var", "The elements of the first data set, then those of the second.");
  constexpr char kCached[] =
      "Keeps the elements when they have been read to the end, and gives them from there afterwards: in memory, or, "
      "where `filename` is not empty, in files whose names begin so. AlreadyExists where another iterator writes "
      "these.";
  add.Over("CacheDataset", ", filename:str", kCached);
  add(absl::StrCat("CacheDatasetV2(input_dataset:var, filename:str, cache:res) -> (handle:var) | ", kOut, " | S"),
      absl::StrCat(kCached, " Memory is that of `cache`."));
  add("AnonymousMemoryCache() -> (handle:res, deleter:var) | | S",
      "Memory for CacheDatasetV2, which lives as long as its handle, and something to give DeleteMemoryCache.",
      TwoScalars);
  add("DeleteMemoryCache(handle:res, deleter:var) -> () | | S", "Says that the cache is not needed any longer.",
      NoOutputs);
  add(absl::StrCat("FilterByLastComponentDataset(input_dataset:var) -> (output:var) | ", kOut),
      "The elements whose last component, a bool, is true, without that component.");
  add.Over("OptimizeDataset", ", optimizations:str", "The input. Pipelines are not rewritten.", "",
           absl::StrCat(kOut, "; +optimization_configs:list(string)=[]"));
  add.Over(
      "SnapshotDataset", ", path:str",
      "The input, whose elements are written to files under `path` while they are read for the first time, and read "
      "there afterwards; as they are made, while another iterator writes. What is the same input, its graph says. "
      "Numbers of threads and buffers are ignored.",
      "compression:string=\"\"; reader_path_prefix:string=\"\"; writer_path_prefix:string=\"\"; "
      "shard_size_bytes:int=10737418240; pending_snapshot_expiry_seconds:int=86400; num_reader_threads:int=1; "
      "reader_buffer_size:int=1; num_writer_threads:int=1; writer_buffer_size:int=1");
  add.Over("OptionsDataset", "", "The input. Options are hints without effect.", "",
           absl::StrCat("serialized_options:string; ", kOut, "; metadata:string=\"\""));
  add.Over(
      "FinalizeDataset", "", "The input. Nothing is put between it and what reads it.", "has_captured_ref:bool=false");
  add.Over("RewriteDataset", ", rewrite_name:str", "The input. Pipelines are not rewritten.");
  add.Over("AssertCardinalityDataset", ", cardinality:i64",
           "The input, which must have `cardinality` elements (-1: without end): FailedPrecondition where it has not.");
  add.Over("ModelDataset", "", "The input. Pipelines are not tuned.", "+algorithm:int=0; +cpu_budget:int=0");
  add(absl::StrCat("ZipDataset(input_datasets:N*var) -> (handle:var) | ", kOut, "; N:int>=1"),
      "Elements of several data sets side by side, as many as the shortest has.");
}

void AddBatches(const Declarer& add) {
  add.Over("BatchDataset", ", batch_size:i64",
           "Elements in batches of `batch_size`, stacked; the last may be smaller. Elements of a batch must have equal "
           "shapes.");
  add.Over("BatchDatasetV2", ", batch_size:i64, drop_remainder:bool",
           "Elements in batches of `batch_size`, stacked. A last batch that is smaller is left out where "
           "`drop_remainder` says so. Elements of a batch must have equal shapes.",
           "+parallel_copy:bool=false");
  add.Over(
      "ParallelBatchDataset", ", batch_size:i64, num_parallel_calls:i64, drop_remainder:bool",
      "BatchDatasetV2. num_parallel_calls and `deterministic` are checked, and otherwise ignored: batches are made "
      "one after the other.",
      "parallel_copy:bool=false", absl::StrCat(kOut, "; deterministic:string=\"default\"; metadata:string=\"\""));
  for (const bool second : {false, true}) {
    add(absl::StrCat("PaddedBatchDataset", second ? "V2" : "", "(input_dataset:var, batch_size:i64, ",
                     "padded_shapes:N*i64, padding_values:[Toutput_types]", second ? ", drop_remainder:bool" : "",
                     ") -> (handle:var) | ", second ? "+parallel_copy:bool=false; " : "",
                     "Toutput_types:list(type)>=1; output_shapes:list(shape)>=1; N:int>=1"),
        "Batches of elements that are brought to padded_shapes with padding_values. A dimension of -1 is that of the "
        "largest element of the batch.");
  }
  add.Over("WindowDataset", ", size:i64, shift:i64, stride:i64, drop_remainder:bool",
           "Data sets of `size` elements each, `stride` apart, that begin `shift` elements after one another.");
}

void AddOrders(const Declarer& add) {
  add.Over(
      "ShuffleDataset", ", buffer_size:i64, seed:i64, seed2:i64",
      "Draws each element at random from a buffer of `buffer_size`. The seeds decide the order, unless both are 0. "
      "With reshuffle_each_iteration, each iteration has an order of its own.",
      "+reshuffle_each_iteration:bool=true");
  add(absl::StrCat(
          "ShuffleDatasetV2(input_dataset:var, buffer_size:i64, seed_generator:res) -> (handle:var) | ", kOut, " | S"),
      "ShuffleDataset, with an order of its own for each iteration, whose seeds come from `seed_generator`.");
  add("AnonymousRandomSeedGenerator(seed:i64, seed2:i64) -> (handle:res, deleter:var) | | S",
      "Seeds for ShuffleDatasetV2, and something to give DeleteRandomSeedGenerator. The two numbers decide which, "
      "unless both are 0.",
      TwoScalars);
  add("DeleteRandomSeedGenerator(handle:res, deleter:var) -> () | | S",
      "Says that the generator is not needed any longer.", NoOutputs);
  add.Over("ShuffleAndRepeatDataset", ", buffer_size:i64, seed:i64, seed2:i64, count:i64",
           "ShuffleDataset, `count` times over (-1: for ever), where the buffer is filled from the next repetition "
           "while the one before still leaves it. Repetitions do not mix. With reshuffle_each_iteration, each has an "
           "order of its own from new seeds.",
           "+reshuffle_each_iteration:bool=true");
  add.Over("SamplingDataset", ", rate:f32, seed:i64, seed2:i64",
           "Each element with the probability `rate`. The seeds decide which, unless both are 0.");
  add.Over("PrefetchDataset", ", buffer_size:i64",
           "The elements, of which up to `buffer_size` are made ahead of time (0: none; -1: a few).", "",
           absl::StrCat(kOut, "; +slack_period:int=0; +legacy_autotune:bool=true"));
}

void AddFunctions(const Declarer& add, OpRegistry& r) {
  constexpr char kCaptured[] = ", other_arguments:[Targuments]";
  const std::string f = absl::StrCat("f:func; Targuments:list(type)>=0; ", kOut);
  const std::string map = absl::StrCat(f, "; +use_inter_op_parallelism:bool=true");
  add.OverByTwoNames(
      "MapDataset", kCaptured,
      "What `f` returns for each element, with other_arguments after it. OutOfRange in `f` is the end of the data set.",
      "", absl::StrCat(map, "; +preserve_cardinality:bool=false"));
  add.Over("ParallelMapDataset", absl::StrCat(kCaptured, ", num_parallel_calls:i32"),
           "MapDataset with up to num_parallel_calls calls at once (-1: a few). With `sloppy`, their results come as "
           "they are "
           "ready.",
           "", absl::StrCat(map, "; +sloppy:bool=false; +preserve_cardinality:bool=false"));
  const std::string ordered = "; deterministic:string=\"default\"";
  const std::string meta = "; metadata:string=\"\"";
  add.Over("ParallelMapDatasetV2", absl::StrCat(kCaptured, ", num_parallel_calls:i64"),
           "MapDataset with up to num_parallel_calls calls at once (-1: a few). Results come in the order of the "
           "elements where `deterministic` is \"true\", as they are ready where it is \"false\".",
           "",
           absl::StrCat(f, "; use_inter_op_parallelism:bool=true", ordered,
                        "; preserve_cardinality:bool=false; +use_unbounded_threadpool:bool=false", meta));
  add.Over("ParallelFilterDataset", absl::StrCat(kCaptured, ", num_parallel_calls:i64"),
           "FilterDataset. num_parallel_calls and `deterministic` are checked, and otherwise ignored.",
           "predicate:func" + ordered, absl::StrCat("Targuments:list(type)>=0; ", kOut, meta));
  add.Over("FilterDataset", kCaptured, "The elements of which `predicate` says true.", "",
           absl::StrCat("predicate:func; Targuments:list(type)>=0; ", kOut));
  add.Over("FlatMapDataset", kCaptured, "The elements of the data sets that `f` returns, one after the other.", "", f);
  add.Over("InterleaveDataset", absl::StrCat(kCaptured, ", cycle_length:i64, block_length:i64"),
           "The elements of the data sets that `f` returns: of cycle_length of them in turn, block_length at a time.",
           "", f);
  add.Over(
      "ParallelInterleaveDatasetV2",
      absl::StrCat(kCaptured, ", cycle_length:i64, block_length:i64, num_parallel_calls:i64"),
      "InterleaveDataset, with a thread for each data set that is read. The order stays, unless `sloppy` says that "
      "those are passed over which have no element ready. num_parallel_calls is checked, and otherwise ignored.",
      "", absl::StrCat(f, "; sloppy:bool=false"));
  constexpr char kMany[] =
      "ParallelInterleaveDatasetV2, where `deterministic` says whether the order stays: \"true\", \"false\" or, as the "
      "pipeline's options have it, \"default\".";
  add.Over("ParallelInterleaveDatasetV3",
           absl::StrCat(kCaptured, ", cycle_length:i64, block_length:i64, num_parallel_calls:i64"), kMany, "",
           absl::StrCat("f:func", ordered, "; Targuments:list(type)>=0; ", kOut, meta));
  add.Over("ParallelInterleaveDatasetV4",
           absl::StrCat(kCaptured, ", cycle_length:i64, block_length:i64, buffer_output_elements:i64, ",
                        "prefetch_input_elements:i64, num_parallel_calls:i64"),
           absl::StrCat(kMany,
                        " Each data set has up to buffer_output_elements ready, and prefetch_input_elements of "
                        "them are read ahead of their turn."),
           "", absl::StrCat("f:func", ordered, "; Targuments:list(type)>=0; ", kOut, meta));
  r.Add(absl::StrCat("ReduceDataset(input_dataset:var, initial_state:[Tstate], other_arguments:[Targuments]) -> ",
                     "(components:[output_types]) | f:func; Tstate:list(type)>=1; Targuments:list(type)>=0; ", kOut,
                     "; use_inter_op_parallelism:bool=true | S"))
      .Traits({OpTrait::kWaits})
      .Doc("The last state of state = f(state, element), from initial_state, over all elements.")
      .Shape(ReducedShape)
      .NotDifferentiable(kNoGradient)
      .NoExample(kNoExample);
}

void AddIterators(const Declarer& add) {
  const std::string out = kOut;
  for (const char* op : {"Iterator", "IteratorV2"}) {
    add(absl::StrCat(op, "() -> (handle:res) | shared_name:string; container:string; ", out, " | S"),
        "An iterator, which MakeIterator sets to the beginning of a data set.");
  }
  add(absl::StrCat("AnonymousIterator() -> (handle:res) | ", out, " | S"),
      "An iterator without a name, which lives as long as its handle.");
  add(absl::StrCat("AnonymousIteratorV2() -> (handle:res, deleter:var) | ", out, " | S"),
      "An iterator without a name, which lives as long as its handle, and something to give DeleteIterator.");
  add("DeleteIterator(handle:res, deleter:var) -> () | | S", "Says that the iterator is not needed any longer.",
      NoOutputs);
  add(absl::StrCat("OneShotIterator() -> (handle:res) | dataset_factory:func; ", out,
                   "; container:string=\"\"; shared_name:string=\"\" | S"),
      "An iterator over the data set that `dataset_factory` gives, from its beginning to its end, once.")
      .Traits({OpTrait::kWaits});
  add("MakeIterator(dataset:var, iterator:res) -> () | | S", "Sets an iterator to the beginning of a data set.",
      NoOutputs)
      .Traits({OpTrait::kWaits});
  for (const char* op : {"IteratorGetNext", "IteratorGetNextSync"}) {
    add(absl::StrCat(op, "(iterator:res) -> (components:[output_types]) | ", out, " | S"),
        "The next element. OutOfRange at the end; FailedPrecondition where MakeIterator has not run.", ElementShape)
        .Traits({OpTrait::kWaits});
  }
  add(absl::StrCat("IteratorGetNextAsOptional(iterator:res) -> (optional:var) | ", out, " | S"),
      "The next element as an optional, which has no value at the end.")
      .Traits({OpTrait::kWaits});
  add("SerializeIterator(resource_handle:res) -> (serialized:var) | | S",
      "Where an iterator is in its data set: how many elements it has given.");
  add("DeserializeIterator(resource_handle:res, serialized:var) -> () | | S",
      "Sets an iterator to where another one was: the elements before are read again and thrown away.", NoOutputs)
      .Traits({OpTrait::kWaits});
  add("SaveIterator(iterator:res, path:str) -> () | | S", "Writes to files how many elements an iterator has given.",
      NoOutputs);
  add("RestoreIterator(iterator:res, path:str) -> () | | S",
      "Sets an iterator to where the one was that SaveIterator has written: the elements before are read again and "
      "thrown away. It keeps the data set that it has; one without gets that of the file.",
      NoOutputs)
      .Traits({OpTrait::kWaits});
  add("DatasetToGraph(input_dataset:var) -> (graph:str) | +stateful_whitelist:list(string)>=0=[]",
      "The nodes that made the data set, as a GraphDef that ends with a _Retval of it; what they took are constants. "
      "Unimplemented where they took resources.");
  add("DatasetFromGraph(graph_def:str) -> (handle:var)",
      "The data set whose graph DatasetToGraph has given. InvalidArgument where it is none.")
      .Traits({OpTrait::kWaits, OpTrait::kNeverFolds});
  add(absl::StrCat("DatasetToSingleElement(dataset:var) -> (components:[output_types]) | ", out, " | S"),
      "The only element of a data set. InvalidArgument when it has none, or several.", ElementShape)
      .Traits({OpTrait::kWaits});
  add("IteratorToStringHandle(resource_handle:res) -> (string_handle:str) | | S",
      "A string that names an iterator in its session.");
  for (const char* op : {"IteratorFromStringHandle", "IteratorFromStringHandleV2"}) {
    add(absl::StrCat(op, "(string_handle:str) -> (resource_handle:res) | output_types:list(type)>=0=[]; ",
                     "output_shapes:list(shape)>=0=[] | S"),
        "The iterator that IteratorToStringHandle has named. InvalidArgument when its elements are not as the "
        "attributes say.");
  }
  add("WrapDatasetVariant(input_handle:var) -> (output_handle:var)", "The data set itself.");
  add("UnwrapDatasetVariant(input_handle:var) -> (output_handle:var)", "The data set itself.");
}

}  // namespace

void RegisterDatasetOps(OpRegistry& r) {
  const Declarer add(r);
  AddSources(add);
  AddGenerated(add, r);
  AddSequences(add);
  AddBatches(add);
  AddOrders(add);
  AddFunctions(add, r);
  AddIterators(add);
  AddDevices(add);
  AddDatasetsOfTwoNames(add);
}

}  // namespace millrace
