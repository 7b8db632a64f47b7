// SPDX-License-Identifier: Apache-2.0
// What one of several workers reads of a data set: where functions read files, those of some of the files, else every
// so many-th element. For files the data set is made again, with a ShardDataset before the functions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/data/dataset_graph.h"
#include "kernels/cpu/data/dataset_wait.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

absl::string_view PlainName(absl::string_view op) {
  absl::ConsumePrefix(&op, "Experimental");
  return op;
}

bool IsOneOf(absl::string_view op, std::initializer_list<absl::string_view> names) {
  return std::find(names.begin(), names.end(), PlainName(op)) != names.end();
}

bool ReadsFiles(absl::string_view op) {
  return IsOneOf(op, {"CSVDataset", "FixedLengthRecordDataset", "FixedLengthRecordDatasetV2", "TextLineDataset",
                      "TFRecordDataset"});
}

bool IsShuffle(absl::string_view op) {
  return IsOneOf(op, {"ShuffleAndRepeatDataset", "ShuffleDataset", "ShuffleDatasetV2"});
}

// Whether it makes its elements of those of its first input such that each worker may have those of its own files.
bool PassesOn(absl::string_view op) {
  return IsShuffle(op) ||
         IsOneOf(
             op,
             {"AssertCardinalityDataset",
              "AssertNextDataset",
              "BatchDataset",
              "BatchDatasetV2",
              "CacheDataset",
              "CacheDatasetV2",
              "FilterDataset",
              "MapAndBatchDataset",
              "MapDataset",
              "ModelDataset",
              "OptimizeDataset",
              "PaddedBatchDataset",
              "PaddedBatchDatasetV2",
              "ParallelBatchDataset",
              "ParallelFilterDataset",
              "ParallelMapDataset",
              "ParallelMapDatasetV2",
              "PrefetchDataset",
              "RepeatDataset",
              "ShardDataset",
              "SkipDataset",
              "TakeDataset"});
}

bool CallsForDatasets(absl::string_view op) {
  return IsOneOf(op, {"FlatMapDataset", "InterleaveDataset", "ParallelInterleaveDataset", "ParallelInterleaveDatasetV2",
                      "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4"});
}

// Whether the function `f` of the data set, or one that it names, reads files.
StatusOr<bool> FunctionReadsFiles(const DatasetOrigin& origin) {
  const StatusOr<FuncAttr> f = GetAttr<FuncAttr>(origin.op->attrs, "f");
  if (!f.ok() || !origin.functions) return false;
  MR_ASSIGN_OR_RETURN(const wire::FunctionDefLibrary library, origin.functions->Definitions({f->name}));
  for (const wire::FunctionDef& function : library.function) {
    for (const wire::NodeDef& node : function.node_def) {
      if (ReadsFiles(node.op)) return true;
    }
  }
  return false;
}

// The data sets whose functions read the files that elements come from.
class ReaderSearch {
 public:
  // Adds those under `dataset`. False: not all of its elements come from such.
  StatusOr<bool> Find(const Dataset& dataset) {
    if (const auto known = known_.find(&dataset); known != known_.end()) return known->second;
    MR_ASSIGN_OR_RETURN(const bool found, Look(dataset));
    return known_[&dataset] = found;
  }
  const std::vector<const Dataset*>& found() const { return found_; }

 private:
  StatusOr<bool> Look(const Dataset& dataset) {
    const DatasetOrigin* origin = dataset.origin();
    if (origin == nullptr || origin->inputs.empty()) return false;
    const absl::string_view op = origin->op->name;
    if (CallsForDatasets(op)) {
      MR_ASSIGN_OR_RETURN(const bool reads, FunctionReadsFiles(*origin));
      if (reads) found_.push_back(&dataset);
      return reads;
    }
    const bool is_many = IsOneOf(op, {"ConcatenateDataset", "ZipDataset"});
    if (!is_many && !PassesOn(op)) return false;
    for (size_t i = 0; i < (is_many ? origin->inputs.size() : 1); ++i) {
      MR_ASSIGN_OR_RETURN(const DatasetRef input, DatasetOf(origin->inputs[i], "input_dataset"));
      MR_ASSIGN_OR_RETURN(const bool all, Find(*input));
      if (!all) return false;
    }
    return true;
  }

  HashMap<const Dataset*, bool> known_;
  std::vector<const Dataset*> found_;
};

// Puts ShardDatasets into the graph of a data set.
class ShardEditor {
 public:
  ShardEditor(wire::GraphDef graph, int64_t workers, int64_t index)
      : graph_(std::move(graph)), workers_(workers), index_(index) {
    end_ = std::move(graph_.node.back());
    graph_.node.pop_back();
    for (size_t i = 0; i < graph_.node.size(); ++i) places_[graph_.node[i].name] = i;
  }

  // Before the node `reader`, which reads what `files` gives. Orders that differ between workers come behind it.
  Status ShardInputOf(const std::string& reader, const ElementSpec& files) {
    std::vector<wire::NodeDef> shuffles;
    std::string input = WithoutShuffles(NodeNamed(reader).input[0], &shuffles);
    wire::NodeDef shard;
    shard.op = "ShardDataset";
    MR_ASSIGN_OR_RETURN(std::string workers, AddNumber(workers_));
    MR_ASSIGN_OR_RETURN(std::string index, AddNumber(index_));
    shard.input = {std::move(input), std::move(workers), std::move(index)};
    MR_ASSIGN_OR_RETURN(shard.attr["output_types"], AttrToProto(AttrValue(files.types)));
    MR_ASSIGN_OR_RETURN(shard.attr["output_shapes"], AttrToProto(AttrValue(files.shapes)));
    MR_ASSIGN_OR_RETURN(shard.attr["require_non_empty"], AttrToProto(AttrValue(true)));
    std::string last = Add(std::move(shard));
    for (auto shuffle = shuffles.rbegin(); shuffle != shuffles.rend(); ++shuffle) {
      shuffle->input[0] = std::move(last);
      last = Add(std::move(*shuffle));
    }
    NodeNamed(reader).input[0] = std::move(last);
    return absl::OkStatus();
  }

  wire::GraphDef Finish() {
    graph_.node.push_back(std::move(end_));
    return std::move(graph_);
  }

 private:
  wire::NodeDef& NodeNamed(const std::string& name) { return graph_.node[places_.at(name)]; }

  // The data set of the node `name`, made again where one below it shuffles; these are put into `shuffles`.
  std::string WithoutShuffles(const std::string& name, std::vector<wire::NodeDef>* shuffles) {
    const wire::NodeDef node = NodeNamed(name);
    if (!PassesOn(node.op)) return name;
    if (IsShuffle(node.op)) {
      shuffles->push_back(node);
      return WithoutShuffles(node.input[0], shuffles);
    }
    std::string below = WithoutShuffles(node.input[0], shuffles);
    if (below == node.input[0]) return name;
    wire::NodeDef copy = node;
    copy.input[0] = std::move(below);
    return Add(std::move(copy));
  }

  StatusOr<std::string> AddNumber(int64_t number) {
    wire::NodeDef node;
    node.op = "Const";
    MR_ASSIGN_OR_RETURN(node.attr["dtype"], AttrToProto(AttrValue(DType::kInt64)));
    MR_ASSIGN_OR_RETURN(node.attr["value"], AttrToProto(AttrValue(Tensor::Scalar<int64_t>(number))));
    return Add(std::move(node));
  }

  std::string Add(wire::NodeDef node) {
    node.name = absl::StrCat("shard/_", graph_.node.size());
    places_[node.name] = graph_.node.size();
    graph_.node.push_back(std::move(node));
    return graph_.node.back().name;
  }

  wire::GraphDef graph_;
  wire::NodeDef end_;
  HashMap<std::string, size_t> places_;
  const int64_t workers_, index_;
};

class AutoShardKernel final : public AsyncKernel, public UsesFunctions {
 public:
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { functions_ = std::move(functions); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) -> Status {
      MR_ASSIGN_OR_RETURN(DatasetRef dataset, Make(ctx, data));
      Tensor handle = TensorOf(std::move(dataset));
      if (!handle.IsInitialized()) return ResourceExhausted("no memory for a data set");
      ctx.set_output(0, std::move(handle));
      return absl::OkStatus();
    });
  }

 private:
  StatusOr<DatasetRef> Make(KernelContext& ctx, DataContext& data) const {
    MR_ASSIGN_OR_RETURN(DatasetRef input, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(const int64_t workers, ScalarInput(ctx, 1, "num_workers"));
    MR_ASSIGN_OR_RETURN(const int64_t index, ScalarInput(ctx, 2, "index"));
    if (workers <= 0) return InvalidArgument("num_workers must be greater than zero.");
    if (index < 0 || index >= workers) return InvalidArgument("index must be between 0 and ", workers - 1);
    ReaderSearch readers;
    MR_ASSIGN_OR_RETURN(const bool of_files, readers.Find(*input));
    if (!of_files) return ShardOf(std::move(input), workers, index, true);

    HashMap<const Dataset*, std::string> names;
    StatusOr<wire::GraphDef> graph = GraphOfDataset(*input, &names);
    if (!graph.ok()) return Annotate(graph.status(), "AutoShardDataset makes the data set again: ");
    if (!functions_) return Unimplemented("graphs of data sets cannot be run here");
    ShardEditor editor(*std::move(graph), workers, index);
    for (const Dataset* reader : readers.found()) {
      MR_ASSIGN_OR_RETURN(const DatasetRef files, DatasetOf(reader->origin()->inputs[0], "input_dataset"));
      MR_RETURN_IF_ERROR(editor.ShardInputOf(names.at(reader), files->spec()));
    }
    return DatasetFromGraph(data, editor.Finish(), *functions_);
  }

  std::shared_ptr<FunctionSource> functions_;
};

}  // namespace

void RegisterDatasetAutoShardKernels(KernelRegistry& r) {
  for (const char* op : {"AutoShardDataset", "ExperimentalAutoShardDataset"}) r.Add<AutoShardKernel>({.op = op});
}

}  // namespace millrace
