// SPDX-License-Identifier: Apache-2.0
// Data sets into files and out of graphs.
#include "io/record.h"
#include "kernels/cpu/data/dataset_graph.h"
#include "kernels/cpu/data/dataset_wait.h"

namespace millrace {
namespace {

StatusOr<std::string> TextInput(const KernelContext& ctx, int i, absl::string_view what) {
  if (ctx.input(i).rank() != 0) return InvalidArgument(what, " must be a scalar");
  return ctx.input(i).data<TString>()->str();
}

// Each element a record. What has been written before an error stays.
class ToRecordsKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [&ctx](DataContext& data) { return Write(ctx, data); });
  }

 private:
  static Status Write(KernelContext& ctx, DataContext& data) {
    MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(ctx.input(0), "input_dataset"));
    MR_ASSIGN_OR_RETURN(const std::string path, TextInput(ctx, 1, "filename"));
    MR_ASSIGN_OR_RETURN(const std::string name, TextInput(ctx, 2, "compression_type"));
    MR_ASSIGN_OR_RETURN(const Compression compression, CompressionFromName(name));
    MR_ASSIGN_OR_RETURN(const DataIteratorPtr iterator, dataset->MakeIterator(data));
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<RecordWriter> writer, RecordWriter::Open(data.env, path, compression));
    while (true) {
      MR_RETURN_IF_ERROR(data.KeepGoing());
      Element element;
      MR_ASSIGN_OR_RETURN(const bool found, iterator->Next(data, &element));
      if (!found) break;
      MR_RETURN_IF_ERROR(CheckElement({{DType::kString}, {PartialShape::Scalar()}}, element));
      MR_RETURN_IF_ERROR(writer->Write(element[0].data<TString>()->view()));
    }
    return writer->Close();
  }
};

class FromGraphKernel final : public AsyncKernel, public UsesFunctions {
 public:
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { functions_ = std::move(functions); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) -> Status {
      MR_ASSIGN_OR_RETURN(const std::string bytes, TextInput(ctx, 0, "graph_def"));
      wire::GraphDef graph;
      MR_RETURN_IF_ERROR(wire::Decode(bytes, &graph));
      if (!functions_) return Unimplemented("graphs of data sets cannot be run here");
      MR_ASSIGN_OR_RETURN(DatasetRef dataset, DatasetFromGraph(data, std::move(graph), *functions_));
      Tensor handle = TensorOf(std::move(dataset));
      if (!handle.IsInitialized()) return ResourceExhausted("no memory for a data set");
      ctx.set_output(0, std::move(handle));
      return absl::OkStatus();
    });
  }

 private:
  std::shared_ptr<FunctionSource> functions_;
};

}  // namespace

void RegisterDatasetFileKernels(KernelRegistry& r) {
  for (const char* op : {"DatasetToTFRecord", "ExperimentalDatasetToTFRecord"}) r.Add<ToRecordsKernel>({.op = op});
  r.Add<FromGraphKernel>({.op = "DatasetFromGraph"});
}

}  // namespace millrace
