// SPDX-License-Identifier: Apache-2.0
// States of iterators in files: the types of the elements, how many an iterator has given, and the graph of its data
// set where there is one (else an empty string).
#include <algorithm>

#include "io/bundle_reader.h"
#include "io/bundle_writer.h"
#include "kernel/device_env.h"
#include "kernels/cpu/data/dataset_graph.h"
#include "kernels/cpu/data/iterator_resource.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {
namespace {

constexpr char kTaken[] = "iterator/taken", kTypes[] = "iterator/types", kGraph[] = "iterator/graph";

StatusOr<std::string> PathInput(const KernelContext& ctx) {
  if (ctx.input(1).rank() != 0) return InvalidArgument("path must be a scalar");
  return ctx.input(1).data<TString>()->str();
}

StatusOr<Tensor> TypesTensor(const std::vector<DType>& types) {
  std::vector<int32_t> numbers;
  for (const DType t : types) numbers.push_back(static_cast<int32_t>(t));
  MR_ASSIGN_OR_RETURN(Tensor out, Tensor::Make(DType::kInt32, Shape::Vector(static_cast<int64_t>(numbers.size()))));
  std::copy(numbers.begin(), numbers.end(), out.mutable_data<int32_t>());
  return out;
}

Status SaveIterator(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<IteratorResource> iterator, FindResource<IteratorResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const std::string path, PathInput(ctx));
  MR_ASSIGN_OR_RETURN(const RefPtr<IteratorState> state, iterator->State());
  MR_ASSIGN_OR_RETURN(const Tensor types, TypesTensor(iterator->spec().types));
  const StatusOr<wire::GraphDef> graph = GraphOfDataset(*state->dataset());
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Open(EnvOf(ctx.device()), path));
  MR_RETURN_IF_ERROR(writer->Add(kGraph, Tensor::Scalar(TString(graph.ok() ? wire::Encode(*graph) : ""))));
  MR_RETURN_IF_ERROR(writer->Add(kTaken, Tensor::Scalar<int64_t>(state->taken())));
  MR_RETURN_IF_ERROR(writer->Add(kTypes, types));
  return writer->Finish();
}

// An iterator that has a data set keeps it, with the seeds of the file; another gets that of the file.
class RestoreIteratorKernel final : public AsyncKernel, public UsesFunctions {
 public:
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { functions_ = std::move(functions); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) { return Restore(ctx, data); });
  }

 private:
  Status Restore(KernelContext& ctx, DataContext& data) const {
    MR_ASSIGN_OR_RETURN(const RefPtr<IteratorResource> iterator, FindResource<IteratorResource>(ctx, 0));
    MR_ASSIGN_OR_RETURN(const std::string path, PathInput(ctx));
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(EnvOf(ctx.device()), path));
    MR_ASSIGN_OR_RETURN(const Tensor taken, reader->Read(kTaken));
    MR_ASSIGN_OR_RETURN(const Tensor types, reader->Read(kTypes));
    MR_ASSIGN_OR_RETURN(const int64_t count, taken.IntScalar());
    if (count < 0) return InvalidArgument("the state in ", path, " is of ", count, " elements");
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> saved, types.IntValues());
    const std::vector<DType>& own = iterator->spec().types;
    const auto same = [](int64_t number, DType t) { return number == static_cast<int64_t>(t); };
    if (!std::equal(saved.begin(), saved.end(), own.begin(), own.end(), same)) {
      return InvalidArgument("the state in ", path, " is of an iterator with elements of other types");
    }
    const StatusOr<RefPtr<IteratorState>> state = iterator->State();
    const StatusOr<DatasetRef> dataset =
        state.ok() ? OwnDataset(data, (*state)->dataset(), *reader) : SavedDataset(data, *reader);
    if (!dataset.ok()) return Annotate(dataset.status(), absl::StrCat("the state in ", path, ": "));
    return iterator->Start(data, *dataset, count);
  }

  // With the orders of the saved one, else elements would come twice and others never.
  StatusOr<DatasetRef> OwnDataset(DataContext& data, const DatasetRef& own, const BundleReader& reader) const {
    MR_ASSIGN_OR_RETURN(const wire::GraphDef saved, SavedGraph(reader));
    StatusOr<wire::GraphDef> graph = GraphOfDataset(*own);
    if (!functions_ || absl::IsUnimplemented(graph.status())) return own;
    MR_RETURN_IF_ERROR(graph.status());
    TakeSeeds(saved, &*graph);
    return DatasetFromGraph(data, *std::move(graph), *functions_);
  }

  StatusOr<DatasetRef> SavedDataset(DataContext& data, const BundleReader& reader) const {
    MR_ASSIGN_OR_RETURN(wire::GraphDef graph, SavedGraph(reader));
    if (graph.node.empty()) {
      return FailedPrecondition(
          "it says how many elements were given, not of which data set: run the initializer of the iterator before it "
          "is restored");
    }
    if (!functions_) return Unimplemented("graphs of data sets cannot be run here");
    return DatasetFromGraph(data, std::move(graph), *functions_);
  }

  // Empty where the data set had none.
  static StatusOr<wire::GraphDef> SavedGraph(const BundleReader& reader) {
    wire::GraphDef graph;
    const StatusOr<Tensor> bytes = reader.Read(kGraph);
    if (absl::IsNotFound(bytes.status())) return graph;
    MR_RETURN_IF_ERROR(bytes.status());
    if (bytes->dtype() != DType::kString || bytes->rank() != 0) {
      return InvalidArgument(kGraph, " must be one string");
    }
    MR_RETURN_IF_ERROR(wire::Decode(bytes->data<TString>()->view(), &graph));
    return graph;
  }

  std::shared_ptr<FunctionSource> functions_;
};

Status DatasetToGraph(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(ctx.input(0), "input_dataset"));
  MR_ASSIGN_OR_RETURN(const wire::GraphDef graph, GraphOfDataset(*dataset));
  ctx.set_output(0, Tensor::Scalar(TString(wire::Encode(graph))));
  return absl::OkStatus();
}

}  // namespace

void RegisterSavedIteratorKernels(KernelRegistry& r) {
  r.AddFn({.op = "SaveIterator"}, SaveIterator);
  r.Add<RestoreIteratorKernel>({.op = "RestoreIterator"});
  r.AddFn({.op = "DatasetToGraph"}, DatasetToGraph);
}

}  // namespace millrace
